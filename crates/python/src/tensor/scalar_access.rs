//! Single elements: `item()`, and reading an element of any dtype from memory.

use ::ops::at;
use c10::{
    Complex, DispatchKey, Element, Error, ErrorKind, ExcludeDispatchKeyGuard, Result, Scalar, ScalarType,
    Tensor,
};

use crate::raw::Res;

/// The value of a tensor with one element.
#[inline]
pub(crate) fn item(tensor: &Tensor) -> Res<Scalar> {
    // The usual case needs no dispatch: a plain tensor on the host, and no mode that wants to see the value leave.
    if tensor.is_cpu()
        && !tensor.dtype().is_float8()
        && !dispatch_modes_active()
        && !tensor.key_set().has(DispatchKey::Python)
        && !tensor.is_conj()
        && !tensor.is_neg()
    {
        if tensor.numel()? == 1 && tensor.has_storage() && !tensor.is_sparse() {
            tensor.check_in_storage()?;
            let data = tensor.const_data_ptr();
            if !data.is_null() {
                // SAFETY: the one element is in the tensor's storage, by the check.
                return Ok(unsafe { read_element(data, tensor.dtype()) }?);
            }
        }
        if tensor.numel()? != 1 {
            return Err(wrong_count(tensor)?.into());
        }
    }
    if tensor.is_meta() {
        return Err(Error::runtime("Tensor.item() cannot be called on meta tensors").into());
    }
    Ok(at::item(tensor)?)
}

/// [`item`] for what happens below `__torch_dispatch__` modes: values that become part of new tensors.
pub(crate) fn item_below_modes(tensor: &Tensor) -> Res<Scalar> {
    let _guard = dispatch_modes_active().then(|| ExcludeDispatchKeyGuard::new(DispatchKey::Python));
    item(tensor)
}

/// Whether `__torch_dispatch__` modes see the operators of this thread.
#[inline]
pub(crate) fn dispatch_modes_active() -> bool {
    let keys = c10::tls_local_dispatch_key_set();
    keys.included.has(DispatchKey::Python) && !keys.excluded.has(DispatchKey::Python)
}

/// Shows a tensor that has just been made from Python data to modes, which may put another in its place.
#[inline]
pub(crate) fn lift_fresh(tensor: Tensor) -> Result<Tensor> {
    match dispatch_modes_active() {
        true => at::lift_fresh(&tensor),
        false => Ok(tensor),
    }
}

#[cold]
fn wrong_count(tensor: &Tensor) -> Result<Error> {
    let numel = tensor.numel()?;
    Ok(Error::runtime(format!("a Tensor with {numel} elements cannot be converted to Scalar")))
}

/// Reads the element of the given dtype at an address.
///
/// # Safety
///
/// `data` points to an element of that dtype, which may be unaligned.
#[inline]
pub(crate) unsafe fn read_element(data: *const u8, dtype: ScalarType) -> Result<Scalar> {
    /// # Safety
    ///
    /// As above.
    unsafe fn read<T: Element>(data: *const u8) -> Scalar {
        // SAFETY: passed on to the caller.
        Scalar::from_element(unsafe { data.cast::<T>().read_unaligned() })
    }
    // SAFETY: passed on to the caller. A bool is read as a byte, since foreign memory may hold any.
    unsafe {
        Ok(match dtype {
            ScalarType::Float => Scalar::Float(f64::from(data.cast::<f32>().read_unaligned())),
            ScalarType::Double => Scalar::Float(data.cast::<f64>().read_unaligned()),
            ScalarType::Long => Scalar::Int(data.cast::<i64>().read_unaligned()),
            ScalarType::Bool => Scalar::Bool(data.read() != 0),
            ScalarType::Byte => read::<u8>(data),
            ScalarType::Char => read::<i8>(data),
            ScalarType::Short => read::<i16>(data),
            ScalarType::Int => read::<i32>(data),
            ScalarType::UInt16 => read::<u16>(data),
            ScalarType::UInt32 => read::<u32>(data),
            ScalarType::UInt64 => read::<u64>(data),
            ScalarType::Half => read::<c10::Half>(data),
            ScalarType::BFloat16 => read::<c10::BFloat16>(data),
            ScalarType::ComplexHalf => read::<Complex<c10::Half>>(data),
            ScalarType::ComplexFloat => read::<Complex<f32>>(data),
            ScalarType::ComplexDouble => read::<Complex<f64>>(data),
            other => {
                return Err(Error::new(
                    ErrorKind::NotImplemented,
                    format!("reading an element of dtype {} is not implemented", other.name()),
                ))
            }
        })
    }
}
