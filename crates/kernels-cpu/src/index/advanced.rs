//! `index` and `index_put_`: tensors of indices in place of some dimensions.

use c10::{dispatch_dtypes, internal_assert, ErrorKind, Result, Tensor};
use iter::{parallel, IndexPlan};

use super::bounds::OutOfBounds;
use super::scatter_gather::Summand;
use crate::address::Address;
use crate::copy::copy_row;
use crate::map::Stored;
use crate::registration::register;

pub(super) fn register() {
    register! {
        index_kernel: fn(&IndexPlan, &[Tensor]);
        index_put_kernel: fn(&IndexPlan, bool, &[Tensor]);
    }
}

/// The operands before the index tensors: the tensor that is indexed, and the one that takes or gives values.
const DATA: usize = 2;

/// Resolves indices to byte offsets.
struct Indexer<'a> {
    sizes: &'a [i64],
    strides: &'a [i64],
    wrong: OutOfBounds,
}

impl Indexer<'_> {
    fn new(plan: &IndexPlan) -> Result<Indexer<'_>> {
        let (sizes, strides) = (&*plan.indexed_sizes, &*plan.indexed_strides);
        internal_assert!(
            plan.iter.ntensors() == DATA + sizes.len() && sizes.len() == strides.len(),
            "index: {} operands for {} indexed dimensions",
            plan.iter.ntensors(),
            sizes.len()
        );
        Ok(Indexer { sizes, strides, wrong: OutOfBounds::default() })
    }

    /// The offset that the indices at `pointers` (each moved by `i` of its stride) make; `None` if one is out of
    /// bounds.
    ///
    /// # Safety
    /// An element of an index tensor, which is int64, must lie at each of these.
    #[inline]
    unsafe fn offset(&self, pointers: &[*mut u8], pointer_strides: &[i64], i: i64) -> Option<i64> {
        let mut offset = 0;
        for (dim, (&pointer, &stride)) in pointers.iter().zip(pointer_strides).enumerate() {
            // SAFETY: the caller's promise.
            let index = unsafe { Address(pointer).offset(i * stride).read::<i64>() };
            let size = self.sizes[dim];
            let wrapped = if index < 0 { index.wrapping_add(size) } else { index };
            if !(0..size).contains(&wrapped) {
                self.wrong.note(index, dim, size);
                return None;
            }
            offset += wrapped * self.strides[dim];
        }
        Some(offset)
    }
}

/// One row of a walk whose operand `indexed` is looked up: calls `f(indexed, other, indexed stride, other stride, n)`
/// for runs with one offset, checking every index first.
///
/// # Safety
/// `n` elements of the plan's operands must lie at `data`.
#[inline(always)]
unsafe fn row(
    indexer: &Indexer<'_>,
    data: &[*mut u8],
    strides: &[i64],
    n: usize,
    indexed: usize,
    mut f: impl FnMut(Address, Address, i64, i64, usize),
) {
    if indexer.wrong.seen() {
        return;
    }
    let (pointers, pointer_strides) = (&data[DATA..], &strides[DATA..]);
    let other = 1 - indexed;
    if pointer_strides.iter().all(|&stride| stride == 0) {
        // SAFETY: the caller's promise.
        if let Some(offset) = unsafe { indexer.offset(pointers, pointer_strides, 0) } {
            f(
                Address(data[indexed]).offset(offset),
                Address(data[other]),
                strides[indexed],
                strides[other],
                n,
            );
        }
        return;
    }
    for i in 0..n as i64 {
        // SAFETY: the caller's promise.
        let Some(offset) = (unsafe { indexer.offset(pointers, pointer_strides, i) }) else { return };
        let at = |arg: usize| Address(data[arg]).offset(i * strides[arg]);
        f(at(indexed).offset(offset), at(other), 0, 0, 1);
    }
}

fn index_kernel(plan: &IndexPlan, _outs: &[Tensor]) -> Result<()> {
    let indexer = Indexer::new(plan)?;
    let size = plan.iter.element_size(0);
    macro_rules! gather {
        ($W:ty) => {
            plan.iter.for_each(
                &|data, strides, n| {
                    let copy = |from: Address, to: Address, from_stride, to_stride, n| {
                        // SAFETY: elements of the operands: the indices were checked against the sizes.
                        unsafe {
                            if n == 1 {
                                to.write(from.read::<$W>());
                            } else {
                                copy_row(size, from.0, from_stride, to.0, to_stride, n);
                            }
                        }
                    };
                    // SAFETY: a row of the plan's operands.
                    unsafe { row(&indexer, data, strides, n, 1, copy) };
                },
                parallel::GRAIN_SIZE / 2,
            )?
        };
    }
    match size {
        1 => gather!(u8),
        2 => gather!(u16),
        4 => gather!(u32),
        8 => gather!(u64),
        _ => gather!([u64; 2]),
    }
    indexer.wrong.check(ErrorKind::Index)
}

/// In order on one thread, since two indices may name one place: the last value stays, and sums add up in one order.
fn index_put_kernel(plan: &IndexPlan, accumulate: bool, _outs: &[Tensor]) -> Result<()> {
    let indexer = Indexer::new(plan)?;
    let size = plan.iter.element_size(0);
    let numel = plan.iter.numel();
    if accumulate {
        dispatch_dtypes!(plan.iter.dtype(0), "index_put_kernel", EVERY, |T| {
            plan.iter.serial_for_each(
                &mut |data, strides, n| {
                    let add = |to: Address, from: Address, to_stride, from_stride, n| {
                        for i in 0..n as i64 {
                            let to = to.offset(i * to_stride);
                            // SAFETY: elements of the operands, of this dtype: the indices were checked.
                            unsafe {
                                let sum = <T as Stored>::load(to.read())
                                    .plus(<T as Stored>::load(from.offset(i * from_stride).read()));
                                to.write(sum.store());
                            }
                        }
                    };
                    // SAFETY: a row of the plan's operands.
                    unsafe { row(&indexer, data, strides, n, 0, add) };
                },
                0..numel,
            );
        })?;
    } else {
        plan.iter.serial_for_each(
            &mut |data, strides, n| {
                let copy = |to: Address, from: Address, to_stride, from_stride, n| {
                    // SAFETY: elements of the operands: the indices were checked against the sizes.
                    unsafe { copy_row(size, from.0, from_stride, to.0, to_stride, n) };
                };
                // SAFETY: a row of the plan's operands.
                unsafe { row(&indexer, data, strides, n, 0, copy) };
            },
            0..numel,
        );
    }
    indexer.wrong.check(ErrorKind::Index)
}
