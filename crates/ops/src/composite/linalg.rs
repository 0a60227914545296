//! Composites of the `linalg` family: products of any rank, in terms of matrix products.

use c10::{check, infer_broadcast_size, DimVector, Result, Scalar, SymInt, Tensor};

use crate::{at, sym};

const ONE: Scalar = Scalar::Int(1);

/// `aten::mv`
pub fn mv(self_: &Tensor, vec: &Tensor) -> Result<Tensor> {
    check!(
        self_.dim() == 2 && vec.dim() == 1,
        "vector + matrix @ vector expected, got 1, {}, {}",
        self_.dim(),
        vec.dim()
    );
    check!(
        self_.sizes()?[1] == vec.sizes()?[0],
        "size mismatch, got input ({}), mat ({}x{}), vec ({})",
        self_.sizes()?[0],
        self_.sizes()?[0],
        self_.sizes()?[1],
        vec.sizes()?[0]
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
        _ if should_fold(self_, other)? => folded(self_, other),
        _ => batched(self_, other),
    }
}

/// Whether the batch can be folded into the rows of one matrix product: one side is at most a matrix, and folding
/// the other needs no copy (or the batch is not worth one product each).
fn should_fold(a: &Tensor, b: &Tensor) -> Result<bool> {
    let (large, small) = if a.dim() >= b.dim() { (a, b) } else { (b, a) };
    if large.dim() < 3 || small.dim() > 2 {
        return Ok(false);
    }
    if small.requires_grad() || small.dim() == 1 || large.numel()? == 0 {
        return Ok(true);
    }
    // The batch dimensions of the larger side must walk memory as one.
    let (sizes, strides) = (large.sizes()?, large.strides()?);
    Ok((0..sizes.len() - 2).all(|d| strides[d] == strides[d + 1].saturating_mul(sizes[d + 1])))
}

fn folded(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    // x @ A with A batched is (Aᵀ @ xᵀ)ᵀ, so the larger side is always on the left.
    let transposed = b.dim() > a.dim();
    let (left, right) = if transposed {
        (transpose_last(b)?, if a.dim() == 2 { at::t(a)? } else { a.clone() })
    } else {
        (a.clone(), b.clone())
    };
    let sizes = DimVector::from_slice(left.sizes()?);
    let inner = sizes[sizes.len() - 1];
    let rows: i64 = sizes[..sizes.len() - 1].iter().product();
    let mut out = DimVector::from_slice(&sizes[..sizes.len() - 1]);
    let flat = at::reshape(&left, &[SymInt::from(rows), SymInt::from(inner)])?;
    if right.dim() == 1 {
        return at::_unsafe_view(&at::mv(&flat, &right)?, &sym::sym_ints(&out));
    }
    let product = at::mm(&flat, &right)?;
    out.push(right.sizes()?[1]);
    let product = at::_unsafe_view(&product, &sym::sym_ints(&out))?;
    if transposed {
        transpose_last(&product)
    } else {
        Ok(product)
    }
}

fn transpose_last(tensor: &Tensor) -> Result<Tensor> {
    at::transpose_int(tensor, -1, -2)
}

fn batched(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let (vector_left, vector_right) = (a.dim() == 1, b.dim() == 1);
    let a = if vector_left { at::unsqueeze(a, 0)? } else { a.clone() };
    let b = if vector_right { at::unsqueeze(b, 1)? } else { b.clone() };
    let (a_sizes, b_sizes) = (DimVector::from_slice(a.sizes()?), DimVector::from_slice(b.sizes()?));
    let (a_batch, a_matrix) = a_sizes.split_at(a_sizes.len() - 2);
    let (b_batch, b_matrix) = b_sizes.split_at(b_sizes.len() - 2);
    let batch = infer_broadcast_size(a_batch, b_batch)?;
    let count: i64 = batch.iter().product();
    let product =
        at::bmm(&flatten_batch(&a, &batch, a_matrix, count)?, &flatten_batch(&b, &batch, b_matrix, count)?)?;
    let mut out = batch;
    if !vector_left {
        out.push(a_matrix[0]);
    }
    if !vector_right {
        out.push(b_matrix[1]);
    }
    at::_unsafe_view(&product, &sym::sym_ints(&out))
}

fn flatten_batch(tensor: &Tensor, batch: &[i64], matrix: &[i64], count: i64) -> Result<Tensor> {
    let mut expanded = DimVector::from_slice(batch);
    expanded.extend_from_slice(matrix);
    let expanded = at::expand(tensor, &sym::sym_ints(&expanded), false)?;
    at::reshape(&expanded, &sym::sym_ints(&[count, matrix[0], matrix[1]]))
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
        let sizes = DimVector::from_slice(input.sizes()?);
        let flat = at::view(input, &sym::sym_ints(&[sizes[0] * sizes[1], sizes[2]]))?;
        let product = at::addmm(bias, &flat, &transposed, &ONE, &ONE)?;
        let features = product.sizes()?[1];
        return at::view(&product, &sym::sym_ints(&[sizes[0], sizes[1], features]));
    }
    at::add_tensor(&at::matmul(input, &transposed)?, bias, &ONE)
}
