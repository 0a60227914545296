//! `fill_`: by element size, since a value is only bytes once it has been converted.

use c10::{Element, Result, Scalar, ScalarType};
use iter::{parallel, TensorIterator};

use crate::address::Address;
use crate::dispatch::dispatch;
use crate::map::Stored;
use crate::registration::register;
use crate::vec::tiered;
use c10::float8;

pub(super) fn register() {
    register! {
        fill_kernel: fn(&TensorIterator, &Scalar);
    }
}

/// An element as it lies in memory: the first bytes count.
#[derive(Clone, Copy)]
#[repr(C, align(16))]
pub(crate) struct ElementBytes(pub(crate) [u8; 16]);

impl ElementBytes {
    fn new<T: Stored>(value: T) -> ElementBytes {
        let mut bytes = ElementBytes([0; 16]);
        const { assert!(std::mem::size_of::<T::Raw>() <= 16) };
        // SAFETY: the element fits, by the assertion.
        unsafe { Address(bytes.0.as_mut_ptr()).write(value.store()) };
        bytes
    }

    /// The element as a number of its size.
    pub(crate) fn as_word<W: Copy>(&self) -> W {
        assert!(std::mem::size_of::<W>() <= 16);
        // SAFETY: 16 bytes are there, and callers ask for plain integers.
        unsafe { Address(self.0.as_ptr().cast_mut()).read() }
    }
}

/// A scalar argument as an element of a dtype; an error where PyTorch's `Scalar::to` has one.
pub(crate) fn element_bytes(value: &Scalar, dtype: ScalarType, name: &'static str) -> Result<ElementBytes> {
    if let Some(round) = float8::round(dtype) {
        return Ok(ElementBytes::new(round(value.to_f64()? as f32)));
    }
    match dtype {
        // These round to infinity rather than refuse.
        ScalarType::Half => Ok(ElementBytes::new(c10::Half::cast_from(value.to_f64()?))),
        ScalarType::BFloat16 => Ok(ElementBytes::new(c10::BFloat16::cast_from(value.to_f64()?))),
        _ => Ok(dispatch!(dtype, name, EVERY, |T| ElementBytes::new(value.to::<T>()?))),
    }
}

tiered! { memory_bound:
    fn fill_slice<W>(out: &mut [W], value: W) where { W: Copy } => A {
        let _ = std::marker::PhantomData::<A>;
        for out in out {
            *out = value;
        }
    }
}

fn fill_kernel(iter: &TensorIterator, value: &Scalar) -> Result<()> {
    let bytes = element_bytes(value, iter.dtype(0), "fill_kernel")?;
    let size = iter.element_size(0);
    // Bytes that are all the same, zeros above all, are the C library's business.
    let same = bytes.0[..size].iter().all(|&byte| byte == bytes.0[0]);
    iter.for_each(
        &|data, strides, n| {
            let row = Address(data[0]);
            if same && strides[0] == size as i64 {
                // SAFETY: a dense row of the output, which the iterator checked against its storage.
                unsafe { std::ptr::write_bytes(row.0, bytes.0[0], n * size) };
                return;
            }
            // SAFETY: as above, with the row's stride.
            unsafe {
                match size {
                    1 => fill_row::<u8>(row, strides[0], n, bytes),
                    2 => fill_row::<u16>(row, strides[0], n, bytes),
                    4 => fill_row::<u32>(row, strides[0], n, bytes),
                    8 => fill_row::<u64>(row, strides[0], n, bytes),
                    _ => fill_row::<[u64; 2]>(row, strides[0], n, bytes),
                }
            }
        },
        // Bytes, rather than elements, take the time.
        (parallel::GRAIN_SIZE * 8 / size).max(1),
    )
}

/// # Safety
/// The row must lie in memory, aligned.
unsafe fn fill_row<W: Copy>(row: Address, stride: i64, n: usize, bytes: ElementBytes) {
    let value = bytes.as_word::<W>();
    if stride == std::mem::size_of::<W>() as i64 && row.0.cast::<W>().is_aligned() {
        // SAFETY: the caller's promise.
        fill_slice(unsafe { row.slice_mut::<W>(n) }, value);
        return;
    }
    for i in 0..n as i64 {
        // SAFETY: the caller's promise.
        unsafe { row.offset(i * stride).write(value) };
    }
}
