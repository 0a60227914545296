//! `masked_fill_`.

use c10::{Result, Scalar};
use iter::{parallel, TensorIterator};

use super::scatter_gather::by_size;
use crate::address::Address;
use crate::factory::element_bytes;
use crate::registration::register;
use crate::vec::tiered;

pub(super) fn register() {
    register! {
        masked_fill_kernel: fn(&TensorIterator, &Scalar);
    }
}

tiered! { memory_bound:
    fn fill_dense<W>(out: &mut [W], mask: &[u8], value: W) where { W: Copy } => A {
        let _ = std::marker::PhantomData::<A>;
        // Written back either way: a selection vectorizes, a branch does not.
        for (out, &mask) in out.iter_mut().zip(mask) {
            *out = if mask != 0 { value } else { *out };
        }
    }
}

fn masked_fill_kernel(iter: &TensorIterator, value: &Scalar) -> Result<()> {
    let bytes = element_bytes(value, iter.dtype(0), "masked_fill_kernel")?;
    by_size!(iter.element_size(0), |W| {
        let value = bytes.as_word::<W>();
        let size = std::mem::size_of::<W>() as i64;
        iter.for_each(
            &|data, strides, n| {
                let (out, mask) = (Address(data[0]), Address(data[1]));
                if strides[0] == size && strides[1] == 1 && out.0.cast::<W>().is_aligned() {
                    // SAFETY: dense rows of the operands: an element size, and bool as bytes.
                    unsafe { fill_dense::<W>(out.slice_mut(n), mask.slice(n), value) };
                    return;
                }
                for i in 0..n as i64 {
                    // SAFETY: elements of the operands.
                    unsafe {
                        if mask.offset(i * strides[1]).read::<u8>() != 0 {
                            out.offset(i * strides[0]).write(value);
                        }
                    }
                }
            },
            parallel::GRAIN_SIZE,
        )
    })
}
