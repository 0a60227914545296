//! Derivatives of views, concatenation and broadcasting.

use c10::{
    bail, maybe_wrap_dim, order_by_stride, sym_min_storage_size, Result, Scalar, ScalarType, SizeInt,
    SymDimVector, SymInt, Tensor, TensorOptions,
};
use ops::at;

use super::pointwise::handle_r_to_c;
const ONE: Scalar = Scalar::Int(1);

/// Sums what broadcasting had repeated, so that the result has the given sizes.
pub fn sum_to(grad: &Tensor, sizes: &[SymInt]) -> Result<Tensor> {
    ops::composite::reduce::sum_to(grad, sizes)
}

/// `squeeze`
pub fn unsqueeze_to(grad: &Tensor, sizes: &[SymInt]) -> Result<Tensor> {
    at::reshape(grad, sizes)
}

/// `permute`
pub fn permute_backwards(grad: &Tensor, dims: &[i64]) -> Result<Tensor> {
    let ndim = dims.len() as i64;
    let mut inverse = vec![0; dims.len()];
    for (to, &from) in dims.iter().enumerate() {
        inverse[maybe_wrap_dim(from, ndim)? as usize] = to as i64;
    }
    at::permute(grad, &inverse)
}

/// The start of a slice, its default spelled out.
pub fn slice_start(start: Option<&SymInt>) -> SymInt {
    start.cloned().unwrap_or(SymInt::ZERO)
}

/// The end of a slice, its default spelled out.
pub fn slice_end(end: Option<&SymInt>, sizes: &[SymInt], dim: i64) -> Result<SymInt> {
    match end {
        Some(end) => Ok(end.clone()),
        None => Ok(sizes[maybe_wrap_dim(dim, sizes.len() as i64)? as usize].clone()),
    }
}

/// `cat`: each tensor gets its part.
pub fn cat_tensors_backward(
    grad: &Tensor,
    sizes: &[SymDimVector],
    dtypes: &[ScalarType],
    dim: i64,
) -> Result<Vec<Option<Tensor>>> {
    let dim = maybe_wrap_dim(dim, grad.dim())?;
    let mut start = SymInt::from(0);
    let mut grads = Vec::with_capacity(sizes.len());
    for (sizes, &dtype) in sizes.iter().zip(dtypes) {
        let is_legacy_empty = sizes.len() == 1 && sizes[0].maybe_as_int() == Some(0);
        if is_legacy_empty && grad.dim() != 1 {
            // `cat` skips tensors of shape [0] whatever the others' shape is.
            let zeros = at::new_zeros(grad, sizes, None, None, None, None)?;
            grads.push(Some(handle_r_to_c(dtype, &zeros)?));
            continue;
        }
        let length = &sizes[dim as usize];
        let part = at::narrow(grad, dim, &start, length)?;
        start = start.sym_add(length)?;
        grads.push(Some(handle_r_to_c(dtype, &part)?));
    }
    Ok(grads)
}

/// `stack`: each tensor gets its part.
pub fn stack_tensors_backward(grad: &Tensor, dim: i64, dtypes: &[ScalarType]) -> Result<Vec<Option<Tensor>>> {
    if dtypes.is_empty() {
        return Ok(Vec::new());
    }
    let parts = at::unbind_int(grad, dim)?;
    parts.iter().zip(dtypes).map(|(part, &dtype)| handle_r_to_c(dtype, part).map(Some)).collect()
}

/// `unbind`
pub fn unbind_backward(
    grads: &[Option<Tensor>],
    dim: i64,
    sizes: &[SymInt],
    options: TensorOptions,
) -> Result<Tensor> {
    let dim = maybe_wrap_dim(dim, sizes.len() as i64)?;
    let mut part_sizes: SymDimVector = sizes.iter().cloned().collect();
    part_sizes.remove(dim as usize);
    at::stack(&materialize(grads, |_| part_sizes.clone(), options)?, dim)
}

/// `split.Tensor`
pub fn split_backward(
    grads: &[Option<Tensor>],
    split_size: &SymInt,
    dim: i64,
    sizes: &[SymInt],
    options: TensorOptions,
) -> Result<Tensor> {
    let dim = maybe_wrap_dim(dim, sizes.len() as i64)?;
    let total = &sizes[dim as usize];
    let mut split_sizes = vec![split_size.clone(); grads.len()];
    if let Some(last) = split_sizes.last_mut() {
        let before = split_size.sym_mul(&SymInt::from(grads.len() as i64 - 1))?;
        *last = total.sym_sub(&before)?;
    }
    split_with_sizes_backward(grads, &split_sizes, dim, sizes, options)
}

/// `split_with_sizes`
pub fn split_with_sizes_backward(
    grads: &[Option<Tensor>],
    split_sizes: &[SymInt],
    dim: i64,
    sizes: &[SymInt],
    options: TensorOptions,
) -> Result<Tensor> {
    let dim = maybe_wrap_dim(dim, sizes.len() as i64)?;
    let part_sizes = |i: usize| {
        let mut part: SymDimVector = sizes.iter().cloned().collect();
        if let Some(size) = split_sizes.get(i) {
            part[dim as usize] = size.clone();
        }
        part
    };
    at::cat(&materialize(grads, part_sizes, options)?, dim)
}

/// Makes zeros for gradients that nobody made.
fn materialize(
    grads: &[Option<Tensor>],
    sizes: impl Fn(usize) -> SymDimVector,
    options: TensorOptions,
) -> Result<Vec<Tensor>> {
    grads
        .iter()
        .enumerate()
        .map(|(i, grad)| match grad {
            Some(grad) => Ok(grad.clone()),
            None => at::zeros(&sizes(i), options.dtype, options.layout, options.device, None),
        })
        .collect()
}

/// `unfold`: overlapping windows add up.
pub fn unfold_backward(
    grad: &Tensor,
    sizes: &[SymInt],
    dimension: i64,
    size: i64,
    step: i64,
) -> Result<Tensor> {
    if sizes.is_empty() {
        return at::reshape(&at::sum(grad, None)?, sizes);
    }
    let dim = maybe_wrap_dim(dimension, sizes.len() as i64)?;
    let length = Scalar::SymInt(sizes[dim as usize].clone());
    let positions = at::arange(&length, Some(ScalarType::Long), None, Some(grad.device()), None)?;
    let flat = at::reshape(&at::unfold(&positions, 0, size, step)?, &[SymInt::from(-1)])?;
    // [.., windows, .., size] to [.., windows * size, ..]
    let mut order: Vec<i64> = (0..sizes.len() as i64).collect();
    order.insert(dim as usize + 1, sizes.len() as i64);
    let mut merged: SymDimVector = sizes.iter().cloned().collect();
    merged[dim as usize] = SymInt::from(-1);
    let source = at::reshape(&at::permute(grad, &order)?, &merged)?;
    let zeros = at::new_zeros(grad, sizes, None, None, None, None)?;
    at::index_add(&zeros, dim, &flat, &source, &ONE)
}

/// Sizes and strides without dimensions of one element.
#[derive(Default)]
struct Geometry {
    sizes: SymDimVector,
    strides: SymDimVector,
}

impl Geometry {
    /// One past the largest offset that the geometry reaches.
    fn min_storage_size(&self, offset: &SymInt) -> Result<SymInt> {
        sym_min_storage_size(&self.sizes, &self.strides, offset)
    }

    /// Whether two places may be one element of memory. May say yes when the answer is no.
    fn maybe_overlaps(&self) -> Result<bool> {
        let mut reach = SymInt::ZERO;
        for dim in order_by_stride(&self.strides, 0..self.sizes.len())? {
            let (size, stride) = (&self.sizes[dim], &self.strides[dim]);
            if stride.guard_le(&reach)? {
                return Ok(true);
            }
            reach = reach.sym_add(&stride.sym_mul(&size.sym_sub(&SymInt::ONE)?)?)?;
        }
        Ok(false)
    }

    fn view(&self, of: &Tensor, offset: &SymInt) -> Result<Tensor> {
        at::as_strided(of, &self.sizes, &self.strides, Some(offset))
    }
}

/// `as_strided`.
///
/// The gradient is written to memory laid out as the input's, at the places of the output, and read at the
/// places of the input. Places that several output elements share add up; input elements that share a place share its gradient.
pub fn as_strided_backward(
    grad: &Tensor,
    input_sizes: &[SymInt],
    input_strides: &[SymInt],
    input_offset: SymInt,
    sizes: &[SymInt],
    strides: &[SymInt],
    storage_offset: Option<&SymInt>,
) -> Result<Tensor> {
    let output_offset = storage_offset.unwrap_or(&input_offset);
    if sizes.len() != strides.len() || sizes.len() != grad.dim() as usize {
        bail!(
            Internal,
            "as_strided_backward: sizes {sizes:?} and strides {strides:?} do not fit the gradient"
        );
    }
    let zeros = || at::new_zeros(grad, input_sizes, None, None, None, None);

    // The output, without dimensions of one element and with expanded ones summed.
    let mut reduced = grad.clone();
    let mut output = Geometry::default();
    for (dim, (size, stride)) in sizes.iter().zip(strides).enumerate().rev() {
        if size.is_zero()? {
            return zeros();
        }
        if size.is_one()? {
            reduced = at::squeeze_dim(&reduced, dim as i64)?;
        } else if stride.is_zero()? {
            reduced = at::sum_dim_intlist(&reduced, Some(&[dim as i64]), false, None)?;
        } else {
            output.sizes.insert(0, size.clone());
            output.strides.insert(0, stride.clone());
        }
    }
    let mut input = Geometry::default();
    for (size, stride) in input_sizes.iter().zip(input_strides) {
        if size.is_zero()? {
            return zeros();
        }
        if !size.is_one()? {
            input.sizes.push(size.clone());
            input.strides.push(stride.clone());
        }
    }

    let shared = input_offset.sym_min(output_offset)?;
    let (input_offset, output_offset) = (input_offset.sym_sub(&shared)?, output_offset.sym_sub(&shared)?);
    let numel = input.min_storage_size(&input_offset)?.sym_max(&output.min_storage_size(&output_offset)?)?;
    let mut storage = at::new_zeros(grad, std::slice::from_ref(&numel), None, None, None, None)?;
    let all = [SymInt::from(-1)];
    let length = ops::sym::scalar(&numel);
    let positions = || at::arange(&length, Some(ScalarType::Long), None, Some(grad.device()), None);
    if output.maybe_overlaps()? {
        let at_output = at::reshape(&output.view(&positions()?, &output_offset)?, &all)?;
        storage = at::index_add(&storage, 0, &at_output, &at::reshape(&reduced, &all)?, &ONE)?;
    } else {
        at::copy_(&output.view(&storage, &output_offset)?, &reduced, false)?;
    }
    if input.maybe_overlaps()? {
        let at_input = at::reshape(&input.view(&positions()?, &input_offset)?, &all)?;
        let ones = at::ones_like(&at_input, Some(storage.scalar_type()), None, None, None, None)?;
        let zeros = at::zeros_like(&storage, None, None, None, None, None)?;
        // Places outside the input become NaN, and nobody reads them.
        storage = at::div_tensor(&storage, &at::index_add(&zeros, 0, &at_input, &ones, &ONE)?)?;
    }
    at::as_strided(&storage, input_sizes, input_strides, Some(&input_offset))
}

/// Zeros of given sizes, as gradients are made.
pub fn zeros_of(grad: &Tensor, sizes: &[SymInt]) -> Result<Tensor> {
    at::new_zeros(grad, sizes, None, None, None, None)
}

/// `repeat`: the copies add up.
pub fn repeat_backward(grad: &Tensor, repeats: &[SymInt], sizes: &[SymInt]) -> Result<Tensor> {
    for repeat in repeats {
        if repeat.is_zero()? {
            return zeros_of(grad, sizes);
        }
    }
    let added = repeats.len() - sizes.len();
    let mut apart = SymDimVector::new();
    let mut summed = Vec::with_capacity(repeats.len());
    for (dim, repeat) in repeats.iter().enumerate() {
        summed.push(apart.len() as i64);
        apart.push(repeat.clone());
        if dim >= added {
            apart.push(sizes[dim - added].clone());
        }
    }
    if summed.is_empty() {
        return Ok(grad.clone());
    }
    at::sum_dim_intlist(&at::reshape(grad, &apart)?, Some(&summed), false, None)
}

/// `roll`: the other way round, the last dimension first.
pub fn roll_backward(grad: &Tensor, shifts: &[SymInt], dims: &[i64]) -> Result<Tensor> {
    let back =
        shifts.iter().rev().map(|shift| SymInt::ZERO.sym_sub(shift)).collect::<Result<SymDimVector>>()?;
    let dims: Vec<i64> = dims.iter().rev().copied().collect();
    at::roll(grad, &back, &dims)
}

/// `narrow_copy`
pub fn narrow_copy_backward(
    grad: &Tensor,
    sizes: &[SymInt],
    dim: i64,
    start: &SymInt,
    length: &SymInt,
) -> Result<Tensor> {
    let size = &sizes[maybe_wrap_dim(dim, sizes.len() as i64)? as usize];
    let start = if start.guard_lt(&SymInt::ZERO)? { start.sym_add(size)? } else { start.clone() };
    at::slice_backward(grad, sizes, dim, &start, &start.sym_add(length)?, &SymInt::ONE)
}

/// `as_strided_scatter` with respect to `self`: nothing where the source went. The gradient is first laid out as `self`.
#[allow(clippy::too_many_arguments)]
pub fn as_strided_scatter_backward(
    grad: &Tensor,
    sizes: &[SymInt],
    strides: &[SymInt],
    offset: SymInt,
    src_sizes: &[SymInt],
    size: &[SymInt],
    stride: &[SymInt],
    storage_offset: Option<&SymInt>,
) -> Result<Tensor> {
    let length = sym_min_storage_size(sizes, strides, &offset)?;
    let reached = sym_min_storage_size(size, stride, storage_offset.unwrap_or(&offset))?;
    let storage = zeros_of(grad, &[length.sym_max(&reached)?])?;
    let laid_out = at::as_strided_scatter(&storage, grad, sizes, strides, Some(&offset))?;
    let start = storage_offset.unwrap_or(&offset);
    let emptied = at::as_strided_scatter(&laid_out, &zeros_of(grad, src_sizes)?, size, stride, Some(start))?;
    at::as_strided(&emptied, sizes, strides, Some(&offset))
}
