//! Composites of the `linalg` family: here products of any rank, in terms of matrix products; beside it other
//! [products](products), [einsum](einsum) and [norms](norms).

mod einsum;
mod norms;
mod products;

use c10::{
    check, infer_broadcast_size, sym_multiply_integers, Result, Scalar, SizeInt, SizeVector, SymDimVector,
    SymInt, Tensor,
};

pub use einsum::einsum;
pub use norms::*;
pub use products::*;

use crate::at;
use crate::sym::{is_empty, with_sizes};

const ONE: Scalar = Scalar::Int(1);

/// `aten::mv`
pub fn mv(self_: &Tensor, vec: &Tensor) -> Result<Tensor> {
    check!(
        self_.dim() == 2 && vec.dim() == 1,
        "vector + matrix @ vector expected, got 1, {}, {}",
        self_.dim(),
        vec.dim()
    );
    let (sizes, length) = (self_.sym_sizes(), vec.sym_size(0)?);
    check!(
        sizes[1].expect_eq(&length)?,
        "size mismatch, got input ({}), mat ({}x{}), vec ({length})",
        sizes[0],
        sizes[0],
        sizes[1]
    );
    at::squeeze_dim(&at::mm(self_, &at::unsqueeze(vec, 1)?)?, 1)
}

/// `aten::outer`
pub fn outer(self_: &Tensor, vec2: &Tensor) -> Result<Tensor> {
    check!(self_.dim() == 1, "outer: Expected 1-D argument self, but got {}-D", self_.dim());
    check!(vec2.dim() == 1, "outer: Expected 1-D argument vec2, but got {}-D", vec2.dim());
    at::mul_tensor(&at::unsqueeze(self_, 1)?, vec2)
}

/// `aten::matmul`
pub fn matmul(self_: &Tensor, other: &Tensor) -> Result<Tensor> {
    let (dim1, dim2) = (self_.dim(), other.dim());
    check!(
        dim1 != 0 && dim2 != 0,
        "both arguments to matmul need to be at least 1D, but they are {dim1}D and {dim2}D"
    );
    match (dim1, dim2) {
        (1, 1) => at::dot(self_, other),
        (2, 1) => at::mv(self_, other),
        (1, 2) => at::squeeze_dim(&at::mm(&at::unsqueeze(self_, 0)?, other)?, 0),
        (2, 2) => at::mm(self_, other),
        _ if with_sizes!([self_, other] should_fold(self_, other))? => folded(self_, other),
        _ => with_sizes!([self_, other] batched(self_, other)),
    }
}

/// Whether the batch can be folded into the rows of one matrix product: one side is at most a matrix, and folding
/// the other needs no copy (or the batch is not worth one product each).
fn should_fold<I: SizeInt>(a: &Tensor, b: &Tensor) -> Result<bool> {
    let (large, small) = if a.dim() >= b.dim() { (a, b) } else { (b, a) };
    if large.dim() < 3 || small.dim() > 2 {
        return Ok(false);
    }
    if small.requires_grad() || small.dim() == 1 || is_empty(large)? {
        return Ok(true);
    }
    // The batch dimensions of the larger side must walk memory as one.
    let (sizes, strides) = (I::sizes_of(large)?, I::strides_of(large)?);
    for d in 0..sizes.len() - 2 {
        if !strides[d].guard_eq(&strides[d + 1].stride_mul(&sizes[d + 1])?)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn folded(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    // x @ A with A batched is (Aᵀ @ xᵀ)ᵀ, so the larger side is always on the left.
    let transposed = b.dim() > a.dim();
    let (left, right) = if transposed {
        (transpose_last(b)?, if a.dim() == 2 { at::t(a)? } else { a.clone() })
    } else {
        (a.clone(), b.clone())
    };
    let mut out = left.sym_sizes();
    let Some(inner) = out.pop() else { return at::mm(&left, &right) };
    let flat = at::reshape(&left, &[sym_multiply_integers(&out)?, inner])?;
    if right.dim() == 1 {
        return at::_unsafe_view(&at::mv(&flat, &right)?, &out);
    }
    let product = at::mm(&flat, &right)?;
    out.push(right.sym_size(1)?);
    let product = at::_unsafe_view(&product, &out)?;
    if transposed {
        transpose_last(&product)
    } else {
        Ok(product)
    }
}

fn transpose_last(tensor: &Tensor) -> Result<Tensor> {
    at::transpose_int(tensor, -1, -2)
}

fn batched<I: SizeInt>(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let (vector_left, vector_right) = (a.dim() == 1, b.dim() == 1);
    let a = if vector_left { at::unsqueeze(a, 0)? } else { a.clone() };
    let b = if vector_right { at::unsqueeze(b, 1)? } else { b.clone() };
    let (a_sizes, b_sizes) = (I::sizes_of(&a)?, I::sizes_of(&b)?);
    let (a_batch, a_matrix) = a_sizes.split_at(a_sizes.len() - 2);
    let (b_batch, b_matrix) = b_sizes.split_at(b_sizes.len() - 2);
    let batch = infer_broadcast_size(a_batch, b_batch)?;
    let product = at::bmm(&flatten_batch(&a, &batch, a_matrix)?, &flatten_batch(&b, &batch, b_matrix)?)?;
    let mut out = batch;
    if !vector_left {
        out.push(a_matrix[0].clone());
    }
    if !vector_right {
        out.push(b_matrix[1].clone());
    }
    at::_unsafe_view(&product, &I::to_sym_slice(&out))
}

fn flatten_batch<I: SizeInt>(tensor: &Tensor, batch: &[I], matrix: &[I]) -> Result<Tensor> {
    let mut expanded: SizeVector<I> = I::to_vector(batch);
    expanded.extend(matrix.iter().cloned());
    let mut flat: SymDimVector = SymDimVector::new();
    flat.push(sym_multiply_integers(&I::to_sym_slice(batch))?);
    flat.extend(matrix.iter().map(I::to_sym));
    at::reshape(&at::expand(tensor, &I::to_sym_slice(&expanded), false)?, &flat)
}

/// `aten::linear`
pub fn linear(input: &Tensor, weight: &Tensor, bias: Option<&Tensor>) -> Result<Tensor> {
    check!(
        input.dim() != 0 && weight.dim() != 0,
        "both arguments to linear need to be at least 1D, but they are {}D and {}D",
        input.dim(),
        weight.dim()
    );
    let transposed = at::t(weight)?;
    let Some(bias) = bias else {
        return at::matmul(input, &transposed);
    };
    if input.dim() == 2 && weight.dim() == 2 {
        return at::addmm(bias, input, &transposed, &ONE, &ONE);
    }
    if input.dim() == 3 && weight.dim() == 2 && bias.dim() == 1 && input.is_contiguous() {
        let mut sizes = input.sym_sizes();
        let rows = sizes[0].sym_mul(&sizes[1])?;
        let product = at::addmm(bias, &at::view(input, &[rows, sizes[2].clone()])?, &transposed, &ONE, &ONE)?;
        sizes[2] = product.sym_size(1)?;
        return at::view(&product, &sizes);
    }
    at::add_tensor(&at::matmul(input, &transposed)?, bias, &ONE)
}

/// `aten::bilinear`: `input1`, each output's matrix of `weight`, and `input2`, multiplied and summed.
pub fn bilinear(input1: &Tensor, input2: &Tensor, weight: &Tensor, bias: Option<&Tensor>) -> Result<Tensor> {
    check!(
        input1.dim() == input2.dim(),
        "bilinear(): input dimensions do not match: got {} and {}",
        input1.dim(),
        input2.dim()
    );
    check!(
        input1.dim() > 0 && weight.dim() == 3,
        "bilinear(): expected inputs of at least 1 dimension and a weight of 3, got {} and {}",
        input1.dim(),
        weight.dim()
    );
    let (mut sizes, sizes2, weights) = (input1.sym_sizes(), input2.sym_sizes(), weight.sym_sizes());
    let last = sizes.len() - 1;
    for (dim, (a, b)) in sizes.iter().zip(&sizes2).take(last).enumerate() {
        check!(
            a.expect_eq(b)?,
            "bilinear(): input batch dimensions do not match at dim {dim}: got {a} and {b}"
        );
    }
    check!(
        sizes[last].expect_eq(&weights[1])?,
        "bilinear(): input1 size does not match weight size: got {} but expected {}",
        sizes[last],
        weights[1]
    );
    check!(
        sizes2[last].expect_eq(&weights[2])?,
        "bilinear(): input2 size does not match weight size: got {} but expected {}",
        sizes2[last],
        weights[2]
    );
    if let Some(bias) = bias {
        let given = bias.sym_sizes();
        check!(
            given.len() == 1 && given[0].expect_eq(&weights[0])?,
            "bilinear(): bias size does not match weight size: got {given:?} but expected [{}]",
            weights[0]
        );
    }
    let rows = sym_multiply_integers(&sizes[..last])?;
    let left = at::reshape(input1, &[rows.clone(), weights[1].clone()])?;
    let right = at::reshape(input2, &[rows.clone(), weights[2].clone(), SymInt::ONE])?;
    // One product for all outputs, and then one for each row.
    let matrices = at::reshape(
        &at::transpose_int(weight, 0, 1)?,
        &[weights[1].clone(), weights[0].sym_mul(&weights[2])?],
    )?;
    let half = at::reshape(&at::mm(&left, &matrices)?, &[rows, weights[0].clone(), weights[2].clone()])?;
    sizes[last] = weights[0].clone();
    let product = at::reshape(&at::bmm(&half, &right)?, &sizes)?;
    match bias {
        Some(bias) => at::add_tensor(&product, bias, &ONE),
        None => Ok(product),
    }
}
