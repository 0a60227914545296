//! Arithmetic on sizes and strides: the one place where shapes are multiplied, bounded and proved to fit.
//!
//! Strides are in elements. Sizes come from users, so every product here is checked; functions that return
//! `Result` give PyTorch's messages.

mod contiguity;
mod shape_inference;

pub use contiguity::*;
pub use shape_inference::*;

use crate::{bail, DimVector, MemoryFormat, Result, ScalarType, SizeInt, SizeVector, Storage, SymInt};

/// Refuses negative sizes.
#[inline]
pub fn check_sizes_nonnegative<I: SizeInt>(sizes: &[I]) -> Result<()> {
    for size in sizes {
        if !size.expect_nonnegative()? {
            bail!(Runtime, "Trying to create tensor with negative dimension {size}: {sizes:?}");
        }
    }
    Ok(())
}

/// The product. With a zero among the factors it is zero, however large the others are.
#[inline]
pub fn multiply_integers(factors: &[i64]) -> Result<i64> {
    let mut product = 1_i64;
    let mut overflowed = false;
    for &factor in factors {
        let (next, carry) = product.overflowing_mul(factor);
        product = next;
        overflowed |= carry;
    }
    if !overflowed {
        return Ok(product);
    }
    if factors.contains(&0) {
        return Ok(0);
    }
    bail!(Runtime, "numel: integer multiplication overflow in the sizes {factors:?}")
}

/// The number of elements of a tensor of `itemsize` bytes each. The sizes of a tensor without elements, too, have to
/// make strides and byte offsets that an `i64` holds: kernels multiply them before they look at an element.
#[inline]
pub fn checked_numel(sizes: &[i64], itemsize: usize) -> Result<i64> {
    let numel = multiply_integers(sizes)?;
    if numel == 0 {
        let product =
            sizes.iter().try_fold(itemsize.max(1) as i64, |product, &size| product.checked_mul(size.max(1)));
        if product.is_none() {
            bail!(Runtime, "numel: integer multiplication overflow in the sizes {sizes:?}");
        }
    }
    Ok(numel)
}

/// Writes the strides of a row-major tensor. Sizes of 0 count as 1, and products saturate: a tensor so large
/// is refused where its number of elements or bytes is computed.
#[inline]
pub fn fill_contiguous_strides(sizes: &[i64], strides: &mut [i64]) {
    let mut stride = 1_i64;
    for (to, &size) in strides.iter_mut().zip(sizes).rev() {
        *to = stride;
        stride = stride.saturating_mul(size.max(1));
    }
}

/// The strides of a row-major tensor; see [`fill_contiguous_strides`].
#[inline]
pub fn compute_contiguous_strides(sizes: &[i64]) -> DimVector {
    let mut strides = DimVector::from_elem(0, sizes.len());
    fill_contiguous_strides(sizes, &mut strides);
    strides
}

/// Dimensions in an order.
pub type DimOrder = smallvec::SmallVec<[usize; 5]>;

/// The dimensions of a tensor, those first that `compare` says go before others; undecided, the last is first.
///
/// An insertion sort, since a comparison that cannot decide (one of the two is repeated) is not transitive: an undecided
/// pair is looked past, which is what PyTorch does.
pub fn order_dims(
    ndim: usize,
    mut compare: impl FnMut(usize, usize) -> Result<std::cmp::Ordering>,
) -> Result<DimOrder> {
    let mut order: DimOrder = (0..ndim).rev().collect();
    for i in 1..ndim {
        let mut moving = i;
        for other in (0..i).rev() {
            match compare(order[other], order[moving])? {
                std::cmp::Ordering::Greater => {
                    order.swap(other, moving);
                    moving = other;
                }
                std::cmp::Ordering::Less => break,
                std::cmp::Ordering::Equal => {}
            }
        }
    }
    Ok(order)
}

/// Some of a tensor's dimensions by stride, the smallest first; of equal ones, the first is first.
pub fn order_by_stride<I: SizeInt>(strides: &[I], dims: impl Iterator<Item = usize>) -> Result<DimOrder> {
    let mut order = DimOrder::new();
    for dim in dims {
        let mut place = order.len();
        while place > 0 && strides[dim].guard_lt(&strides[order[place - 1]])? {
            place -= 1;
        }
        order.insert(place, dim);
    }
    Ok(order)
}

/// Strides such that `order` lists the dimensions from the fastest to the slowest.
pub fn strides_in_order<I: SizeInt>(
    sizes: &[I],
    order: impl Iterator<Item = usize>,
) -> Result<SizeVector<I>> {
    let mut strides: SizeVector<I> = smallvec::smallvec![I::ZERO; sizes.len()];
    let mut stride = I::ONE;
    for dim in order {
        let next = stride.stride_mul(&sizes[dim].sym_max(&I::ONE)?)?;
        strides[dim] = std::mem::replace(&mut stride, next);
    }
    Ok(strides)
}

/// [`compute_contiguous_strides`] for any integers.
pub fn contiguous_strides_of<I: SizeInt>(sizes: &[I]) -> Result<SizeVector<I>> {
    strides_in_order(sizes, (0..sizes.len()).rev())
}

/// The channels-last strides of (N)CHW sizes, as (N)HWC in memory.
pub fn get_channels_last_strides_2d<I: SizeInt>(sizes: &[I]) -> Result<SizeVector<I>> {
    match sizes.len() {
        4 => strides_in_order(sizes, [1, 3, 2, 0].into_iter()),
        3 => strides_in_order(sizes, [0, 2, 1].into_iter()),
        n => bail!(Runtime, "channels_last requires a tensor of 3 or 4 dimensions, got {n}"),
    }
}

/// The channels-last strides of (N)CDHW sizes, as (N)DHWC in memory.
pub fn get_channels_last_strides_3d<I: SizeInt>(sizes: &[I]) -> Result<SizeVector<I>> {
    match sizes.len() {
        5 => strides_in_order(sizes, [1, 4, 3, 2, 0].into_iter()),
        4 => strides_in_order(sizes, [0, 3, 2, 1].into_iter()),
        n => bail!(Runtime, "channels_last_3d requires a tensor of 4 or 5 dimensions, got {n}"),
    }
}

/// The strides of a new tensor in a memory format.
pub fn compute_strides_for_memory_format<I: SizeInt>(
    sizes: &[I],
    format: MemoryFormat,
) -> Result<SizeVector<I>> {
    match format {
        MemoryFormat::Contiguous => contiguous_strides_of(sizes),
        MemoryFormat::ChannelsLast if sizes.len() == 4 => get_channels_last_strides_2d(sizes),
        MemoryFormat::ChannelsLast => bail!(Runtime, "required rank 4 tensor to use channels_last format"),
        MemoryFormat::ChannelsLast3d if sizes.len() == 5 => get_channels_last_strides_3d(sizes),
        MemoryFormat::ChannelsLast3d => {
            bail!(Runtime, "required rank 5 tensor to use channels_last_3d format")
        }
        MemoryFormat::Preserve => {
            bail!(Runtime, "unsupported memory format preserve_format: it needs an input tensor")
        }
    }
}

/// Dense strides in the dimension order of a given tensor: what `empty_like` gives to inputs that overlap or have gaps.
pub fn infer_dense_strides<I: SizeInt>(sizes: &[I], strides: &[I]) -> Result<SizeVector<I>> {
    use std::cmp::Ordering::{Equal, Greater, Less};
    // Broadcast dimensions (stride 0) have no place of their own, so the order is partial.
    let order = order_dims(sizes.len(), |a, b| {
        let (x, y) = (&strides[a], &strides[b]);
        if x.is_zero()? || y.is_zero()? {
            return Ok(Equal);
        }
        if !x.guard_eq(y)? {
            return Ok(if x.guard_lt(y)? { Less } else { Greater });
        }
        Ok(if sizes[b].guard_lt(&sizes[a])? { Greater } else { Equal })
    })?;
    strides_in_order(sizes, order.into_iter())
}

/// The elements between the first and one past the last that a strided tensor reaches; 0 when it is empty.
fn extent(sizes: &[i64], strides: &[i64]) -> Option<u64> {
    let mut extent = 1_u64;
    for (&size, &stride) in sizes.iter().zip(strides) {
        let size = u64::try_from(size).ok()?;
        if size == 0 {
            return Some(0);
        }
        if size > 1 {
            let stride = u64::try_from(stride).ok()?;
            extent = extent.checked_add(stride.checked_mul(size - 1)?)?;
        }
    }
    Some(extent)
}

/// What fits both an allocation and a byte offset.
fn to_nbytes(elements: u64, itemsize: usize) -> Option<usize> {
    let nbytes = elements.checked_mul(itemsize as u64)?;
    isize::try_from(nbytes).ok()?;
    usize::try_from(nbytes).ok()
}

/// The bytes a storage needs for a strided tensor that starts at `storage_offset`.
pub fn compute_storage_nbytes(
    sizes: &[i64],
    strides: &[i64],
    itemsize: usize,
    storage_offset: i64,
) -> Result<usize> {
    // A zero anywhere wins over overflow elsewhere.
    if sizes.contains(&0) {
        return Ok(0);
    }
    let nbytes = extent(sizes, strides)
        .and_then(|extent| extent.checked_add(u64::try_from(storage_offset).ok()?))
        .and_then(|elements| to_nbytes(elements, itemsize));
    match nbytes {
        Some(nbytes) => Ok(nbytes),
        None => {
            bail!(Runtime, "Storage size calculation overflowed with sizes={sizes:?} and strides={strides:?}")
        }
    }
}

/// The bytes a storage needs for a contiguous tensor that starts at `storage_offset`.
#[inline]
pub fn compute_storage_nbytes_contiguous(
    sizes: &[i64],
    itemsize: usize,
    storage_offset: i64,
) -> Result<usize> {
    let nbytes = multiply_integers(sizes).ok().and_then(|numel| match numel {
        0 => Some(0),
        numel => {
            let elements = u64::try_from(numel).ok()?.checked_add(u64::try_from(storage_offset).ok()?)?;
            to_nbytes(elements, itemsize)
        }
    });
    match nbytes {
        Some(nbytes) => Ok(nbytes),
        None => bail!(Runtime, "Storage size calculation overflowed with sizes={sizes:?}"),
    }
}

/// The bytes a storage needs for symbolic sizes.
pub fn sym_compute_storage_nbytes(
    sizes: &[SymInt],
    strides: &[SymInt],
    itemsize: usize,
    storage_offset: &SymInt,
) -> Result<SymInt> {
    for size in sizes {
        if size.is_zero()? {
            return Ok(SymInt::ZERO);
        }
    }
    sym_min_storage_size(sizes, strides, storage_offset)?.sym_mul(&SymInt::from(itemsize as i64))
}

/// One past the largest offset that a tensor of one element at least reaches.
pub fn sym_min_storage_size(sizes: &[SymInt], strides: &[SymInt], storage_offset: &SymInt) -> Result<SymInt> {
    let mut end = storage_offset.sym_add(&SymInt::ONE)?;
    for (size, stride) in sizes.iter().zip(strides) {
        end = end.sym_add(&stride.sym_mul(&size.sym_sub(&SymInt::ONE)?)?)?;
    }
    Ok(end)
}

/// [`check_in_bounds_for_storage`] for any integers. Where memory is reached they are decided; a storage without memory
/// is expected to be large enough.
pub fn check_in_bounds_for_symbolic_storage<I: SizeInt>(
    sizes: &[I],
    strides: &[I],
    storage_offset: &I,
    dtype: ScalarType,
    storage: &Storage,
) -> Result<()> {
    let ints = (I::as_ints(sizes), I::as_ints(strides), storage_offset.maybe_as_int());
    let maybe_symbolic = storage.device().is_meta() && storage.sym_nbytes().is_symbolic();
    if let ((Some(sizes), Some(strides), Some(offset)), false) = (ints, maybe_symbolic) {
        return check_in_bounds_for_storage(sizes, strides, offset, dtype, storage);
    }
    let (sizes, strides) = (I::to_sym_slice(sizes), I::to_sym_slice(strides));
    if !storage.device().is_meta() {
        let (sizes, strides) = (crate::guard_int_array(&sizes)?, crate::guard_int_array(&strides)?);
        return check_in_bounds_for_storage(
            &sizes,
            &strides,
            storage_offset.to_sym().guard_int()?,
            dtype,
            storage,
        );
    }
    let (offset, nbytes) = (storage_offset.to_sym(), storage.sym_nbytes());
    check_strided_geometry(&sizes, &strides, &offset)?;
    let itemsize = dtype.item_size();
    let needed = sym_compute_storage_nbytes(&sizes, &strides, itemsize, &offset)?;
    if needed != 0 && !needed.expect_le(&nbytes)? {
        return out_of_bounds(&sizes, &strides, &offset, itemsize, &needed, &nbytes);
    }
    Ok(())
}

/// Refuses sizes, strides and offsets that no tensor has.
fn check_strided_geometry<I: SizeInt>(sizes: &[I], strides: &[I], storage_offset: &I) -> Result<()> {
    check_sizes_nonnegative(sizes)?;
    if sizes.len() != strides.len() {
        bail!(
            Runtime,
            "mismatch in length of strides and shape: sizes {sizes:?} have {} dimensions, strides {strides:?} have {}",
            sizes.len(),
            strides.len()
        );
    }
    for stride in strides {
        if !stride.expect_nonnegative()? {
            bail!(
                Runtime,
                "as_strided: Negative strides are not supported at the moment, got strides: {strides:?}"
            );
        }
    }
    if !storage_offset.expect_nonnegative()? {
        bail!(Runtime, "Tensor: invalid storage offset {storage_offset}");
    }
    Ok(())
}

#[cold]
fn out_of_bounds<I: SizeInt>(
    sizes: &[I],
    strides: &[I],
    offset: &I,
    itemsize: usize,
    needed: &dyn std::fmt::Display,
    nbytes: &dyn std::fmt::Display,
) -> Result<()> {
    bail!(
        Runtime,
        "setStorage: sizes {sizes:?}, strides {strides:?}, storage offset {offset}, and itemsize {itemsize} requiring a \
         storage size of {needed} are out of bounds for storage of size {nbytes}"
    )
}

/// Proves that memory of others (NumPy, DLPack, a buffer) may be read as elements of a dtype.
#[inline]
pub fn check_aligned(data: *const u8, dtype: ScalarType) -> Result<()> {
    let size = dtype.item_size();
    let align = (if dtype.is_complex() { size / 2 } else { size }).max(1);
    if data as usize & (align - 1) != 0 {
        bail!(
            Runtime,
            "expected memory aligned to {align} bytes for elements of {dtype}, but got an address that is {} bytes off; \
             copy the buffer first",
            data as usize & (align - 1)
        );
    }
    Ok(())
}

/// Proves that a strided tensor stays inside its storage. Every operator that restrides memory (`as_strided`,
/// `set_`, loading) passes through here, so that kernels may trust sizes and strides.
pub fn check_in_bounds_for_storage(
    sizes: &[i64],
    strides: &[i64],
    storage_offset: i64,
    dtype: ScalarType,
    storage: &Storage,
) -> Result<()> {
    check_strided_geometry(sizes, strides, &storage_offset)?;
    let itemsize = dtype.item_size();
    let needed = compute_storage_nbytes(sizes, strides, itemsize, storage_offset)?;
    // An empty tensor reads nothing, wherever it claims to start.
    if needed != 0 && needed > storage.nbytes() {
        return out_of_bounds(sizes, strides, &storage_offset, itemsize, &needed, &storage.nbytes());
    }
    Ok(())
}

#[cfg(test)]
mod tests;
