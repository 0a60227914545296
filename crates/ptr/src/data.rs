//! Numbers into tensors and out of them.

use c10::{check, check_type, empty_cpu, DeviceType, Element, Result, Tensor};
use ops::at;

/// A contiguous CPU tensor of the given sizes with a copy of `values`, in row-major order.
///
/// # Errors
/// If the sizes do not multiply to the number of values.
///
/// ```
/// ptr::init(ptr::Config::default())?;
/// let t = ptr::tensor(&[1i64, 2, 3, 4, 5, 6], &[2, 3])?;
/// assert_eq!(t.size(1)?, 3);
/// # Ok::<(), ptr::Error>(())
/// ```
pub fn tensor<T: Element>(values: &[T], sizes: &[i64]) -> Result<Tensor> {
    let tensor = empty_cpu(sizes, T::SCALAR_TYPE)?;
    check!(
        tensor.numel()? as usize == values.len(),
        "tensor(): sizes {sizes:?} have {} elements, but {} values were given",
        tensor.numel()?,
        values.len()
    );
    // SAFETY: the new tensor is contiguous, of T's dtype, and has just as many elements; nobody else has it.
    unsafe { std::ptr::copy_nonoverlapping(values.as_ptr(), tensor.data_ptr().cast::<T>(), values.len()) };
    Ok(tensor)
}

/// The tensor's elements in row-major order, whatever its strides are.
///
/// # Errors
/// If the tensor is not of `T`'s dtype, or does not lie in host memory.
pub fn to_vec<T: Element>(tensor: &Tensor) -> Result<Vec<T>> {
    check_type!(
        tensor.dtype() == T::SCALAR_TYPE,
        "to_vec(): expected a tensor of dtype {}, got {}",
        T::SCALAR_TYPE.name(),
        tensor.dtype().name()
    );
    check!(
        tensor.device().device_type() == DeviceType::CPU,
        "to_vec(): expected a tensor on the CPU, got one on {}",
        tensor.device()
    );
    let tensor = at::contiguous(&at::detach(tensor)?, c10::MemoryFormat::Contiguous)?;
    // Its storage may have shrunk.
    tensor.check_in_storage()?;
    let count = tensor.numel()? as usize;
    if T::SCALAR_TYPE == c10::ScalarType::Bool {
        // A byte of a tensor of booleans may hold any number; a Rust `bool` may not.
        // SAFETY: a contiguous tensor of one-byte elements, all of it in its storage.
        let bytes = unsafe { slice::<u8>(&tensor, count) };
        return Ok(bytes.iter().map(|&byte| T::cast_from(byte != 0)).collect());
    }
    // SAFETY: a contiguous tensor of T's dtype, all of it in its storage.
    Ok(unsafe { slice::<T>(&tensor, count) }.to_vec())
}

/// # Safety
/// The tensor must be contiguous and lie in its storage, with elements of `T`'s size that are valid values of `T`.
unsafe fn slice<T>(tensor: &Tensor, count: usize) -> &[T] {
    match count {
        0 => &[],
        // SAFETY: the caller's promise.
        _ => unsafe { std::slice::from_raw_parts(tensor.data_ptr().cast(), count) },
    }
}

/// Seeds the default random generators: the numbers that follow are PyTorch's for the same seed.
pub fn manual_seed(seed: u64) -> Result<()> {
    c10::get_default_generator(c10::Device::current(DeviceType::CPU))?.set_current_seed(seed);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_that_are_not_in_the_storage_are_not_read() -> Result<()> {
        crate::init(crate::Config::default())?;
        let (x, flags) = (tensor(&[1_f32, 2.0], &[2])?, tensor(&[true, false], &[2])?);
        assert_eq!(to_vec::<f32>(&x)?, [1.0, 2.0]);
        for t in [&x, &flags] {
            t.storage()?.resize(0)?;
        }
        assert!(to_vec::<f32>(&x).is_err_and(|e| e.message().contains("out of bounds")));
        assert!(to_vec::<bool>(&flags).is_err());
        Ok(())
    }
}
