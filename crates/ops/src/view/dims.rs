//! Views that reorder, add or drop dimensions.

use c10::{check, check_index, wrap_dim, Result, SizeInt, SizeVector, SmallVec, SymInt, Tensor};

use super::alias_with_sizes_and_strides;

/// `aten::transpose.int`
pub fn transpose_int<I: SizeInt>(self_: &Tensor, dim0: i64, dim1: i64) -> Result<Tensor> {
    let ndim = self_.dim();
    let (dim0, dim1) = (wrap_dim(dim0, ndim, true)? as usize, wrap_dim(dim1, ndim, true)? as usize);
    let mut sizes = I::to_vector(&I::sizes_of(self_)?);
    let mut strides = I::to_vector(&I::strides_of(self_)?);
    if dim0 != dim1 {
        sizes.swap(dim0, dim1);
        strides.swap(dim0, dim1);
    }
    alias_with_sizes_and_strides(self_, &sizes, &strides, &I::storage_offset_of(self_)?)
}

/// `aten::t`
pub fn t<I: SizeInt>(self_: &Tensor) -> Result<Tensor> {
    check!(self_.dim() <= 2, "t() expects a tensor with <= 2 dimensions, but self is {}D", self_.dim());
    transpose_int::<I>(self_, 0, if self_.dim() < 2 { 0 } else { 1 })
}

/// `aten::permute`
pub fn permute<I: SizeInt>(self_: &Tensor, dims: &[i64]) -> Result<Tensor> {
    let ndim = self_.dim();
    check!(
        dims.len() as i64 == ndim,
        "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired ordering \
         of dimensions i.e. input.dim() = {ndim} is not equal to len(dims) = {}",
        dims.len()
    );
    let (old_sizes, old_strides) = (I::sizes_of(self_)?, I::strides_of(self_)?);
    // Tensors may have more dimensions than a word has bits.
    let mut seen = SmallVec::<[bool; 8]>::from_elem(false, dims.len());
    let (mut sizes, mut strides) = (SizeVector::new(), SizeVector::new());
    for &dim in dims {
        let dim = wrap_dim(dim, ndim, true)? as usize;
        check!(!std::mem::replace(&mut seen[dim], true), "permute(): duplicate dims are not allowed.");
        sizes.push(old_sizes[dim].clone());
        strides.push(old_strides[dim].clone());
    }
    alias_with_sizes_and_strides(self_, &sizes, &strides, &I::storage_offset_of(self_)?)
}

fn squeeze_where<I: SizeInt>(self_: &Tensor, drop: impl Fn(usize) -> bool) -> Result<Tensor> {
    let (old_sizes, old_strides) = (I::sizes_of(self_)?, I::strides_of(self_)?);
    let (mut sizes, mut strides) = (SizeVector::new(), SizeVector::new());
    for (dim, (size, stride)) in old_sizes.iter().zip(old_strides.iter()).enumerate() {
        if !(drop(dim) && size.is_one()?) {
            sizes.push(size.clone());
            strides.push(stride.clone());
        }
    }
    alias_with_sizes_and_strides(self_, &sizes, &strides, &I::storage_offset_of(self_)?)
}

/// `aten::squeeze`
pub fn squeeze<I: SizeInt>(self_: &Tensor) -> Result<Tensor> {
    squeeze_where::<I>(self_, |_| true)
}

/// `aten::squeeze.dim`
pub fn squeeze_dim<I: SizeInt>(self_: &Tensor, dim: i64) -> Result<Tensor> {
    let dim = wrap_dim(dim, self_.dim(), true)? as usize;
    squeeze_where::<I>(self_, |d| d == dim)
}

/// `aten::squeeze.dims`
pub fn squeeze_dims<I: SizeInt>(self_: &Tensor, dim: &[i64]) -> Result<Tensor> {
    let mask = iter::make_dim_mask(Some(dim), self_.dim(), true)?;
    squeeze_where::<I>(self_, |d| iter::is_reduced(mask, d))
}

/// `aten::unsqueeze`
pub fn unsqueeze<I: SizeInt>(self_: &Tensor, dim: i64) -> Result<Tensor> {
    let dim = wrap_dim(dim, self_.dim() + 1, true)? as usize;
    let mut sizes = I::to_vector(&I::sizes_of(self_)?);
    let mut strides = I::to_vector(&I::strides_of(self_)?);
    let stride = if dim < sizes.len() { sizes[dim].stride_mul(&strides[dim])? } else { I::ONE };
    sizes.insert(dim, I::ONE);
    strides.insert(dim, stride);
    alias_with_sizes_and_strides(self_, &sizes, &strides, &I::storage_offset_of(self_)?)
}

/// `aten::select.int`
pub fn select_int<I: SizeInt>(self_: &Tensor, dim: i64, index: &SymInt) -> Result<Tensor> {
    let ndim = self_.dim();
    check_index!(ndim != 0, "select() cannot be applied to a 0-dim tensor.");
    let dim = wrap_dim(dim, ndim, true)? as usize;
    let index = I::from_sym(index)?;
    let mut sizes = I::to_vector(&I::sizes_of(self_)?);
    let mut strides = I::to_vector(&I::strides_of(self_)?);
    let negative = index.guard_lt(&I::ZERO)?;
    let from_start = if negative { index.sym_add(&sizes[dim])? } else { index.clone() };
    check_index!(
        from_start.expect_nonnegative()? && from_start.expect_lt(&sizes[dim])?,
        "select(): index {index} out of range for tensor of size {sizes:?} at dimension {dim}"
    );
    sizes.remove(dim);
    let offset = I::storage_offset_of(self_)?.sym_add(&from_start.stride_mul(&strides.remove(dim))?)?;
    alias_with_sizes_and_strides(self_, &sizes, &strides, &offset)
}

/// Start and length of a slice of `size` elements, wrapped and clamped as Python does.
///
/// What is certain asks no guard: the whole, and bounds that are the size itself.
fn slice_bounds<I: SizeInt>(start: Option<I>, end: Option<I>, size: &I) -> Result<(I, I)> {
    let wrap = |value: I| -> Result<I> {
        if value.guard_lt(&I::ZERO)? {
            value.sym_add(size)
        } else {
            Ok(value)
        }
    };
    let start = match start {
        None => I::ZERO,
        Some(start) if start == 0 || start == *size => start,
        Some(start) => {
            let start = wrap(start)?;
            if start.guard_lt(&I::ZERO)? {
                I::ZERO
            } else if size.guard_lt(&start)? {
                size.clone()
            } else {
                start
            }
        }
    };
    let end = match end {
        Some(end) if end != i64::MAX && end != *size => {
            let end = wrap(end)?;
            if end.guard_lt(&start)? {
                start.clone()
            } else if size.guard_lt(&end)? {
                size.clone()
            } else {
                end
            }
        }
        _ => size.clone(),
    };
    let length = end.sym_sub(&start)?;
    Ok((start, length))
}

/// `aten::slice.Tensor`
pub fn slice_tensor<I: SizeInt>(
    self_: &Tensor,
    dim: i64,
    start: Option<&SymInt>,
    end: Option<&SymInt>,
    step: &SymInt,
) -> Result<Tensor> {
    let ndim = self_.dim();
    check!(ndim != 0, "slice() cannot be applied to a 0-dim tensor.");
    let dim = wrap_dim(dim, ndim, true)? as usize;
    let step = I::from_sym(step)?;
    check!(I::ZERO.expect_lt(&step)?, "slice step must be positive");
    let mut sizes = I::to_vector(&I::sizes_of(self_)?);
    let mut strides = I::to_vector(&I::strides_of(self_)?);
    let (start, length) = slice_bounds(I::from_sym_opt(start)?, I::from_sym_opt(end)?, &sizes[dim])?;
    let offset = I::storage_offset_of(self_)?.sym_add(&start.stride_mul(&strides[dim])?)?;
    sizes[dim] = if step == 1 { length } else { length.sym_ceildiv(&step)? };
    // A step beyond the only element is never taken.
    strides[dim] = strides[dim].stride_mul(&step)?;
    alias_with_sizes_and_strides(self_, &sizes, &strides, &offset)
}

/// `aten::diagonal`
pub fn diagonal<I: SizeInt>(self_: &Tensor, offset: i64, dim1: i64, dim2: i64) -> Result<Tensor> {
    let ndim = self_.dim();
    let (dim1_, dim2_) = (wrap_dim(dim1, ndim, true)?, wrap_dim(dim2, ndim, true)?);
    check!(dim1_ != dim2_, "diagonal dimensions cannot be identical {dim1}, {dim2}");
    let (dim1, dim2) = (dim1_ as usize, dim2_ as usize);
    let mut sizes = I::to_vector(&I::sizes_of(self_)?);
    let mut strides = I::to_vector(&I::strides_of(self_)?);
    check_index!(
        dim1 < sizes.len() && dim2 < sizes.len(),
        "diagonal(): expected at least 2 dimensions, got {ndim}"
    );
    let shift = I::from(offset.saturating_abs());
    let length = if offset >= 0 {
        sizes[dim1].sym_min(&sizes[dim2].sym_sub(&shift)?)?
    } else {
        sizes[dim1].sym_sub(&shift)?.sym_min(&sizes[dim2])?
    }
    .sym_max(&I::ZERO)?;
    let mut storage_offset = I::storage_offset_of(self_)?;
    if offset != 0 && !length.is_zero()? {
        let stride = if offset >= 0 { &strides[dim2] } else { &strides[dim1] };
        storage_offset = storage_offset.sym_add(&shift.sym_mul(stride)?)?;
    }
    let stride = strides[dim1].stride_add(&strides[dim2])?;
    for dim in [dim1.max(dim2), dim1.min(dim2)] {
        sizes.remove(dim);
        strides.remove(dim);
    }
    sizes.push(length);
    strides.push(stride);
    alias_with_sizes_and_strides(self_, &sizes, &strides, &storage_offset)
}

/// `aten::unfold`
pub fn unfold<I: SizeInt>(self_: &Tensor, dimension: i64, size: i64, step: i64) -> Result<Tensor> {
    let ndim = self_.dim();
    let dim = wrap_dim(dimension, ndim, true)? as usize;
    let mut sizes = I::to_vector(&I::sizes_of(self_)?);
    let mut strides = I::to_vector(&I::strides_of(self_)?);
    let (old_size, old_stride) =
        if ndim == 0 { (I::ONE, I::ONE) } else { (sizes[dim].clone(), strides[dim].clone()) };
    check!(size >= 0, "size is {size} but must be >= 0");
    let window = I::from(size);
    check!(
        window.expect_le(&old_size)?,
        "maximum size for tensor at dimension {dim} is {old_size} but size is {size}"
    );
    check!(step > 0, "step is {step} but must be > 0");
    let step = I::from(step);
    if ndim > 0 {
        sizes[dim] = old_size.sym_sub(&window)?.sym_floordiv(&step)?.sym_add(&I::ONE)?;
        strides[dim] = old_stride.stride_mul(&step)?;
    }
    sizes.push(window);
    strides.push(old_stride);
    alias_with_sizes_and_strides(self_, &sizes, &strides, &I::storage_offset_of(self_)?)
}
