//! Casts: temporaries of another dtype, made by the copy kernel of their device.

use c10::{Complex, DeviceType, Element, Result, ScalarType, Tensor};

use crate::dispatch_stub::DispatchStub;
use crate::empty::empty_like_dtype;
use crate::iterator::TensorIterator;
use crate::kernel_registry::dense_key;
use crate::operand::InlineElement;

/// Copies the input of an iterator ([`TensorIterator::copy_op`]) to its output, converting the dtype. The flag is
/// `non_blocking`.
pub type CopyFn = fn(&TensorIterator, bool) -> Result<()>;

/// The kernels that copy and convert.
pub static COPY_KERNEL: DispatchStub<CopyFn> = DispatchStub::new("copy_kernel");

/// Whether a device type has registered a kernel that copies and converts.
pub fn has_copy_kernel(device_type: DeviceType) -> bool {
    dense_key(device_type).and_then(|key| COPY_KERNEL.get(key)).is_ok()
}

/// `dst.copy_(src)` for tensors on one device, which is current: broadcasts and converts.
pub fn copy_into(dst: &Tensor, src: &Tensor, non_blocking: bool) -> Result<()> {
    let iter = TensorIterator::copy_op(dst, src)?;
    if iter.is_meta() || iter.numel() == 0 {
        return Ok(());
    }
    COPY_KERNEL.get(dense_key(iter.device_type())?)?(&iter, non_blocking)
}

/// `tensor` in another dtype, with its strides if it is dense.
pub fn to_dtype(tensor: &Tensor, dtype: ScalarType) -> Result<Tensor> {
    if tensor.dtype() == dtype {
        return Ok(tensor.clone());
    }
    let result = empty_like_dtype(tensor, dtype)?;
    copy_into(&result, tensor, false)?;
    Ok(result)
}

/// Maps the dtypes with arithmetic to their element types.
macro_rules! with_element_type {
    ($dtype:expr, $T:ident => $body:expr, else $other:expr) => {
        with_element_type!(@ $dtype, $T, $body, $other;
            Bool bool, Byte u8, Char i8, Short i16, Int i32, Long i64, UInt16 u16, UInt32 u32, UInt64 u64,
            Half c10::Half, BFloat16 c10::BFloat16, Float f32, Double f64,
            ComplexHalf Complex<c10::Half>, ComplexFloat Complex<f32>, ComplexDouble Complex<f64>)
    };
    (@ $dtype:expr, $T:ident, $body:expr, $other:expr; $($variant:ident $type:ty),*) => {
        match $dtype {
            $(ScalarType::$variant => {
                type $T = $type;
                $body
            })*
            _ => $other,
        }
    };
}

/// The only element of a CPU tensor in another dtype, without a tensor to hold it: what makes `tensor + 1` cheap.
///
/// `None` for dtypes without arithmetic, and for elements on other devices.
///
/// # Safety
/// A tensor on the CPU must have an element, inside its storage.
pub(crate) unsafe fn cast_single_element(tensor: &Tensor, to: ScalarType) -> Option<InlineElement> {
    let source = tensor.const_data_ptr();
    if !tensor.device().is_cpu() || source.is_null() {
        return None;
    }
    with_element_type!(tensor.dtype(), From => {
        // SAFETY: the caller's promise.
        let value = unsafe { source.cast::<From>().read_unaligned() };
        cast_value(value, to)
    }, else None)
}

/// Whether [`cast_single_element`] knows the dtype.
pub(crate) fn has_arithmetic(dtype: ScalarType) -> bool {
    with_element_type!(dtype, T => size_of::<T>() != 0, else false)
}

fn cast_value<F: Element>(value: F, to: ScalarType) -> Option<InlineElement> {
    with_element_type!(to, To => {
        let mut element = InlineElement::default();
        const { assert!(size_of::<To>() <= size_of::<InlineElement>()) };
        // SAFETY: the element type fits, by the assertion.
        unsafe { element.0.as_mut_ptr().cast::<To>().write_unaligned(To::cast_from(value)) };
        Some(element)
    }, else None)
}
