//! Shapes of views and broadcasts.

use crate::geometry::contiguous_strides_of;
use crate::{bail, Result, SizeInt, SizeVector};

/// Fills in the one `-1` of a requested shape, for `view` and `reshape` of `numel` elements.
pub fn infer_size<I: SizeInt>(shape: &[I], numel: &I) -> Result<SizeVector<I>> {
    let mut sizes = I::to_vector(shape);
    let mut inferred = None;
    let mut product = Some(I::ONE);
    for (dim, size) in shape.iter().enumerate() {
        if *size == -1 {
            if inferred.is_some() {
                bail!(Runtime, "only one dimension can be inferred");
            }
            inferred = Some(dim);
        } else if !size.expect_nonnegative()? {
            bail!(Runtime, "invalid shape dimension {size} at index {dim} of shape {shape:?}");
        } else {
            // Once zero, always zero; an overflow that a later zero undoes is settled below.
            product = product.and_then(|p| p.sym_mul(size).ok());
        }
    }
    if product.is_none() && shape.iter().any(|size| *size == 0) {
        product = Some(I::ZERO);
    }
    let Some(product) = product else { return invalid_shape(shape, numel) };
    let Some(dim) = inferred else {
        return if numel.expect_eq(&product)? { Ok(sizes) } else { invalid_shape(shape, numel) };
    };
    if product.is_zero()? {
        if numel.is_zero()? {
            bail!(
                Runtime,
                "cannot reshape tensor of 0 elements into shape {shape:?} because the unspecified dimension size -1 can \
                 be any value and is ambiguous"
            );
        }
        return invalid_shape(shape, numel);
    }
    // A divisor of 1 leaves no remainder; asking would make an expression of it.
    if product != 1 && !numel.sym_mod(&product)?.expect_eq(&I::ZERO)? {
        return invalid_shape(shape, numel);
    }
    sizes[dim] = numel.sym_floordiv(&product)?;
    Ok(sizes)
}

#[cold]
fn invalid_shape<I: SizeInt>(shape: &[I], numel: &I) -> Result<SizeVector<I>> {
    bail!(Runtime, "shape '{shape:?}' is invalid for input of size {numel}")
}

/// The strides of a view of the same memory with another shape, or `None` if a copy is needed. Both shapes have
/// the same number of elements, `numel`.
///
/// Old dimensions are grouped into maximal runs that are contiguous among themselves; a new shape is viewable when
/// each run is covered by a whole number of new dimensions.
pub fn compute_stride<I: SizeInt>(
    old_sizes: &[I],
    old_strides: &[I],
    numel: &I,
    new_sizes: &[I],
) -> Result<Option<SizeVector<I>>> {
    if old_sizes.is_empty() {
        return Ok(Some(smallvec::smallvec![I::ONE; new_sizes.len()]));
    }
    if numel.is_zero()? {
        if old_sizes == new_sizes {
            return Ok(Some(I::to_vector(old_strides)));
        }
        return contiguous_strides_of(new_sizes).map(Some);
    }

    let mut new_strides: SizeVector<I> = smallvec::smallvec![I::ZERO; new_sizes.len()];
    // The next new dimension to cover, counted from the end.
    let mut view_dims = new_sizes.len();
    let mut run_stride = old_strides[old_strides.len() - 1].clone();
    let mut run_numel = I::ONE;
    for dim in (0..old_sizes.len()).rev() {
        run_numel = run_numel.stride_mul(&old_sizes[dim])?;
        if dim > 0 && continues_run(&old_sizes[dim - 1], &old_strides[dim - 1], &run_numel, &run_stride)? {
            continue;
        }
        let mut view_numel = I::ONE;
        while view_dims > 0
            && ((view_numel != run_numel && view_numel.guard_lt(&run_numel)?)
                || new_sizes[view_dims - 1].is_one()?)
        {
            view_dims -= 1;
            new_strides[view_dims] = view_numel.stride_mul(&run_stride)?;
            view_numel = view_numel.stride_mul(&new_sizes[view_dims])?;
        }
        if !view_numel.guard_eq(&run_numel)? {
            return Ok(None);
        }
        if dim > 0 {
            run_stride = old_strides[dim - 1].clone();
            run_numel = I::ONE;
        }
    }
    Ok((view_dims == 0).then_some(new_strides))
}

/// Whether a dimension walks memory like one with the faster dimensions of a run.
fn continues_run<I: SizeInt>(size: &I, stride: &I, run_numel: &I, run_stride: &I) -> Result<bool> {
    let Ok(expected) = run_numel.sym_mul(run_stride) else { return size.is_one() };
    Ok(*stride == expected || size.is_one()? || stride.guard_eq(&expected)?)
}

/// Sizes and strides of `expand`: new leading dimensions, and dimensions of size 1 repeated with stride 0.
/// `-1` keeps a size.
pub fn infer_expand_geometry<I: SizeInt>(
    tensor_sizes: &[I],
    tensor_strides: &[I],
    sizes: &[I],
) -> Result<(SizeVector<I>, SizeVector<I>)> {
    let ndim = sizes.len();
    let tensor_dim = tensor_sizes.len();
    if ndim < tensor_dim {
        bail!(
            Runtime,
            "expand: the number of sizes provided ({ndim}) must be greater or equal to the number of dimensions in the \
             tensor ({tensor_dim})"
        );
    }
    let mut expanded_sizes: SizeVector<I> = smallvec::smallvec![I::ZERO; ndim];
    let mut expanded_strides: SizeVector<I> = smallvec::smallvec![I::ZERO; ndim];
    for i in (0..ndim).rev() {
        let existing = (i + tensor_dim).checked_sub(ndim);
        let (mut size, mut stride) = match existing {
            Some(dim) => (tensor_sizes[dim].clone(), tensor_strides[dim].clone()),
            // A dimension that does not exist behaves as one of size 1 around those already laid out.
            None if i + 1 < ndim => (I::ONE, expanded_sizes[i + 1].stride_mul(&expanded_strides[i + 1])?),
            None => (I::ONE, I::ONE),
        };
        let target = &sizes[i];
        if *target == -1 {
            if existing.is_none() {
                bail!(
                    Runtime,
                    "The expanded size of the tensor ({target}) isn't allowed in a leading, non-existing dimension {i}"
                );
            }
        } else if !target.expect_nonnegative()? {
            bail!(Runtime, "Trying to create tensor with negative dimension {target}: {sizes:?}");
        } else if size != *target {
            if size.is_one()? {
                if !target.is_one()? {
                    stride = I::ZERO;
                }
                size = target.clone();
            } else if !size.expect_eq(target)? {
                bail!(
                    Runtime,
                    "The expanded size of the tensor ({target}) must match the existing size ({size}) at non-singleton \
                     dimension {i}.  Target sizes: {sizes:?}.  Tensor sizes: {tensor_sizes:?}"
                );
            }
        }
        expanded_sizes[i] = size;
        expanded_strides[i] = stride;
    }
    Ok((expanded_sizes, expanded_strides))
}

/// The size two sizes broadcast to, if they do: that which is not 1.
#[inline]
fn broadcast<I: SizeInt>(a: &I, b: &I) -> Result<Option<I>> {
    if a == b {
        return Ok(Some(a.clone()));
    }
    if a.is_one()? {
        return Ok(Some(b.clone()));
    }
    if b.is_one()? || a.expect_eq(b)? {
        return Ok(Some(a.clone()));
    }
    Ok(None)
}

/// The shape two shapes broadcast to.
pub fn infer_broadcast_size<I: SizeInt>(a: &[I], b: &[I]) -> Result<SizeVector<I>> {
    let ndim = a.len().max(b.len());
    let mut sizes: SizeVector<I> = smallvec::smallvec![I::ONE; ndim];
    let existing = |shape: &[I], dim: usize| (dim + shape.len()).checked_sub(ndim);
    for (dim, to) in sizes.iter_mut().enumerate().rev() {
        *to = match (existing(a, dim), existing(b, dim)) {
            (Some(i), Some(j)) => match broadcast(&a[i], &b[j])? {
                Some(size) => size,
                None => bail!(
                    Runtime,
                    "The size of tensor a ({}) must match the size of tensor b ({}) at non-singleton dimension {dim}",
                    a[i],
                    b[j]
                ),
            },
            (Some(i), None) => a[i].clone(),
            (None, Some(j)) => b[j].clone(),
            (None, None) => I::ONE,
        };
    }
    Ok(sizes)
}

/// Whether `shape` can be expanded to `desired`.
pub fn is_expandable_to<I: SizeInt>(shape: &[I], desired: &[I]) -> Result<bool> {
    let Some(leading) = desired.len().checked_sub(shape.len()) else {
        return Ok(false);
    };
    for (size, target) in shape.iter().zip(&desired[leading..]) {
        if size != target && !size.is_one()? && !size.expect_eq(target)? {
            return Ok(false);
        }
    }
    Ok(true)
}
