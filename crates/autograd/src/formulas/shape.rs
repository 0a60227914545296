//! Derivatives of views, concatenation and broadcasting.

use c10::{
    bail, maybe_wrap_dim, DimVector, Result, Scalar, ScalarType, SymDimVector, SymInt, Tensor, TensorOptions,
};
use ops::at;

use super::pointwise::handle_r_to_c;
use crate::tensor_ops;

const ONE: Scalar = Scalar::Int(1);

/// Sums what broadcasting had repeated, so that the result has the given sizes.
pub fn sum_to(grad: &Tensor, sizes: &[SymInt]) -> Result<Tensor> {
    tensor_ops::sum_to(grad, sizes)
}

/// `squeeze`
pub fn unsqueeze_to(grad: &Tensor, sizes: &[SymInt]) -> Result<Tensor> {
    at::reshape(grad, sizes)
}

/// `squeeze.dim` and `squeeze.dims`
pub fn unsqueeze_dims_to(grad: &Tensor, dims: &[i64], sizes: &[SymInt]) -> Result<Tensor> {
    let _ = dims;
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
pub fn slice_start(start: Option<&SymInt>, sizes: &[SymInt], dim: i64) -> Result<SymInt> {
    let _ = (sizes, dim);
    Ok(start.cloned().unwrap_or_else(|| SymInt::from(0)))
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
struct Geometry {
    sizes: DimVector,
    strides: DimVector,
}

impl Geometry {
    /// One past the largest offset that the geometry reaches.
    fn min_storage_size(&self, offset: i64) -> i64 {
        self.sizes.iter().zip(&self.strides).map(|(size, stride)| (size - 1) * stride).sum::<i64>()
            + offset
            + 1
    }

    /// Whether two places may be one element of memory. May say yes when the answer is no.
    fn maybe_overlaps(&self) -> bool {
        let mut dims: Vec<usize> = (0..self.sizes.len()).collect();
        dims.sort_by_key(|&i| self.strides[i]);
        let mut reach = 0;
        for i in dims {
            if self.strides[i] <= reach {
                return true;
            }
            reach += self.strides[i] * (self.sizes[i] - 1);
        }
        false
    }

    fn sym(values: &[i64]) -> SymDimVector {
        values.iter().map(|&n| SymInt::from(n)).collect()
    }

    fn view(&self, of: &Tensor, offset: i64) -> Result<Tensor> {
        at::as_strided(of, &Self::sym(&self.sizes), &Self::sym(&self.strides), Some(&SymInt::from(offset)))
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
    let ints = |values: &[SymInt]| c10::guard_int_array(values);
    let (input_sizes, input_strides) = (ints(input_sizes)?, ints(input_strides)?);
    let (sizes, strides) = (ints(sizes)?, ints(strides)?);
    let input_offset = input_offset.guard_int()?;
    let output_offset = storage_offset.map_or(Ok(input_offset), SymInt::guard_int)?;
    if sizes.len() != strides.len() || sizes.len() != grad.dim() as usize {
        bail!(
            Internal,
            "as_strided_backward: sizes {sizes:?} and strides {strides:?} do not fit the gradient"
        );
    }
    let zeros = || at::new_zeros(grad, &Geometry::sym(&input_sizes), None, None, None, None);

    // The output, without dimensions of one element and with expanded ones summed.
    let mut reduced = grad.clone();
    let mut output = Geometry { sizes: DimVector::new(), strides: DimVector::new() };
    for i in (0..sizes.len()).rev() {
        match (sizes[i], strides[i]) {
            (0, _) => return zeros(),
            (1, _) => reduced = at::squeeze_dim(&reduced, i as i64)?,
            (_, 0) => reduced = at::sum_dim_intlist(&reduced, Some(&[i as i64]), false, None)?,
            (size, stride) => {
                output.sizes.insert(0, size);
                output.strides.insert(0, stride);
            }
        }
    }
    let mut input = Geometry { sizes: DimVector::new(), strides: DimVector::new() };
    for (&size, &stride) in input_sizes.iter().zip(&input_strides) {
        match size {
            0 => return zeros(),
            1 => {}
            _ => {
                input.sizes.push(size);
                input.strides.push(stride);
            }
        }
    }

    let shared = input_offset.min(output_offset);
    let (input_offset, output_offset) = (input_offset - shared, output_offset - shared);
    let numel = input.min_storage_size(input_offset).max(output.min_storage_size(output_offset));
    let mut storage = at::new_zeros(grad, &[SymInt::from(numel)], None, None, None, None)?;
    let all = [SymInt::from(-1)];
    let positions =
        || at::arange(&Scalar::Int(numel), Some(ScalarType::Long), None, Some(grad.device()), None);
    if output.maybe_overlaps() {
        let at_output = at::reshape(&output.view(&positions()?, output_offset)?, &all)?;
        storage = at::index_add(&storage, 0, &at_output, &at::reshape(&reduced, &all)?, &ONE)?;
    } else {
        at::copy_(&output.view(&storage, output_offset)?, &reduced, false)?;
    }
    if input.maybe_overlaps() {
        let at_input = at::reshape(&input.view(&positions()?, input_offset)?, &all)?;
        let ones = at::ones_like(&at_input, Some(storage.scalar_type()), None, None, None, None)?;
        let zeros = at::zeros_like(&storage, None, None, None, None, None)?;
        // Places outside the input become NaN, and nobody reads them.
        storage = at::div_tensor(&storage, &at::index_add(&zeros, 0, &at_input, &ones, &ONE)?)?;
    }
    at::as_strided(
        &storage,
        &Geometry::sym(&input_sizes),
        &Geometry::sym(&input_strides),
        Some(&SymInt::from(input_offset)),
    )
}
