//! Shapes of views and broadcasts.

use crate::geometry::multiply_integers;
use crate::{bail, DimVector, Result};

/// Fills in the one `-1` of a requested shape, for `view` and `reshape` of `numel` elements.
pub fn infer_size(shape: &[i64], numel: i64) -> Result<DimVector> {
    let mut sizes = DimVector::from_slice(shape);
    let mut inferred = None;
    let mut product = Some(1_i64);
    for (dim, &size) in shape.iter().enumerate() {
        if size == -1 {
            if inferred.is_some() {
                bail!(Runtime, "only one dimension can be inferred");
            }
            inferred = Some(dim);
        } else if size < 0 {
            bail!(Runtime, "invalid shape dimension {size} at index {dim} of shape {shape:?}");
        } else {
            // Once zero, always zero; an overflow that a later zero undoes is settled below.
            product = product.and_then(|p| p.checked_mul(size));
        }
    }
    if product.is_none() && shape.contains(&0) {
        product = Some(0);
    }
    match (inferred, product) {
        (None, Some(product)) if product == numel => Ok(sizes),
        (Some(_), Some(0)) if numel == 0 => bail!(
            Runtime,
            "cannot reshape tensor of 0 elements into shape {shape:?} because the unspecified dimension size -1 can be \
             any value and is ambiguous"
        ),
        (Some(dim), Some(product)) if product > 0 && numel % product == 0 => {
            sizes[dim] = numel / product;
            Ok(sizes)
        }
        _ => bail!(Runtime, "shape '{shape:?}' is invalid for input of size {numel}"),
    }
}

/// The strides of a view of the same memory with another shape, or `None` if a copy is needed. Both shapes have
/// the same number of elements.
///
/// Old dimensions are grouped into maximal runs that are contiguous among themselves; a new shape is viewable when
/// each run is covered by a whole number of new dimensions.
pub fn compute_stride(
    old_sizes: &[i64],
    old_strides: &[i64],
    new_sizes: &[i64],
) -> Result<Option<DimVector>> {
    let numel = multiply_integers(old_sizes)?;
    if old_sizes.is_empty() {
        return Ok(Some(DimVector::from_elem(1, new_sizes.len())));
    }
    if numel == 0 {
        if old_sizes == new_sizes {
            return Ok(Some(DimVector::from_slice(old_strides)));
        }
        let mut strides = DimVector::from_elem(0, new_sizes.len());
        crate::geometry::fill_contiguous_strides(new_sizes, &mut strides);
        return Ok(Some(strides));
    }

    let mut new_strides = DimVector::from_elem(0, new_sizes.len());
    // The next new dimension to cover, counted from the end.
    let mut view_dims = new_sizes.len();
    let mut run_stride = old_strides[old_strides.len() - 1];
    let mut run_numel = 1_i64;
    for dim in (0..old_sizes.len()).rev() {
        run_numel = run_numel.saturating_mul(old_sizes[dim]);
        let run_ends = dim == 0
            || (old_sizes[dim - 1] != 1 && Some(old_strides[dim - 1]) != run_numel.checked_mul(run_stride));
        if !run_ends {
            continue;
        }
        let mut view_numel = 1_i64;
        while view_dims > 0 && (view_numel < run_numel || new_sizes[view_dims - 1] == 1) {
            view_dims -= 1;
            new_strides[view_dims] = view_numel.saturating_mul(run_stride);
            view_numel = view_numel.saturating_mul(new_sizes[view_dims]);
        }
        if view_numel != run_numel {
            return Ok(None);
        }
        if dim > 0 {
            run_stride = old_strides[dim - 1];
            run_numel = 1;
        }
    }
    Ok((view_dims == 0).then_some(new_strides))
}

/// Sizes and strides of `expand`: new leading dimensions, and dimensions of size 1 repeated with stride 0.
/// `-1` keeps a size.
pub fn infer_expand_geometry(
    tensor_sizes: &[i64],
    tensor_strides: &[i64],
    sizes: &[i64],
) -> Result<(DimVector, DimVector)> {
    let ndim = sizes.len();
    let tensor_dim = tensor_sizes.len();
    if ndim < tensor_dim {
        bail!(
            Runtime,
            "expand: the number of sizes provided ({ndim}) must be greater or equal to the number of dimensions in the \
             tensor ({tensor_dim})"
        );
    }
    let mut expanded_sizes = DimVector::from_elem(0, ndim);
    let mut expanded_strides = DimVector::from_elem(0, ndim);
    for i in (0..ndim).rev() {
        let existing = (i + tensor_dim).checked_sub(ndim);
        let (mut size, mut stride) = match existing {
            Some(dim) => (tensor_sizes[dim], tensor_strides[dim]),
            // A dimension that does not exist behaves as one of size 1 around those already laid out.
            None if i + 1 < ndim => (1, expanded_sizes[i + 1].saturating_mul(expanded_strides[i + 1])),
            None => (1, 1),
        };
        let mut target = sizes[i];
        if target == -1 {
            if existing.is_none() {
                bail!(
                    Runtime,
                    "The expanded size of the tensor ({target}) isn't allowed in a leading, non-existing dimension {i}"
                );
            }
            target = size;
        } else if target < 0 {
            bail!(Runtime, "Trying to create tensor with negative dimension {target}: {sizes:?}");
        }
        if size != target {
            if size != 1 {
                bail!(
                    Runtime,
                    "The expanded size of the tensor ({target}) must match the existing size ({size}) at non-singleton \
                     dimension {i}.  Target sizes: {sizes:?}.  Tensor sizes: {tensor_sizes:?}"
                );
            }
            size = target;
            stride = 0;
        }
        expanded_sizes[i] = size;
        expanded_strides[i] = stride;
    }
    Ok((expanded_sizes, expanded_strides))
}

/// The shape two shapes broadcast to.
pub fn infer_broadcast_size(a: &[i64], b: &[i64]) -> Result<DimVector> {
    let ndim = a.len().max(b.len());
    let mut sizes = DimVector::from_elem(1, ndim);
    let size_at =
        |shape: &[i64], dim: usize| (dim + shape.len()).checked_sub(ndim).map_or(1, |dim| shape[dim]);
    for (dim, to) in sizes.iter_mut().enumerate().rev() {
        let (size_a, size_b) = (size_at(a, dim), size_at(b, dim));
        if size_a != size_b && size_a != 1 && size_b != 1 {
            bail!(
                Runtime,
                "The size of tensor a ({size_a}) must match the size of tensor b ({size_b}) at non-singleton dimension {dim}"
            );
        }
        *to = if size_a == 1 { size_b } else { size_a };
    }
    Ok(sizes)
}

/// Whether `shape` can be expanded to `desired`.
pub fn is_expandable_to(shape: &[i64], desired: &[i64]) -> bool {
    let Some(leading) = desired.len().checked_sub(shape.len()) else {
        return false;
    };
    shape.iter().zip(&desired[leading..]).all(|(&size, &target)| size == target || size == 1)
}
