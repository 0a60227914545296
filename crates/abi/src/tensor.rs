//! Tensors, for extensions.

use crate::error::{check, Result};
use crate::table::{Abi, AbiTensor};

/// An owned reference to a tensor.
pub struct Tensor {
    pub(crate) table: &'static Abi,
    pub(crate) raw: *mut AbiTensor,
}

// SAFETY: tensors are reference-counted atomically, and the table's functions are thread-safe.
unsafe impl Send for Tensor {}
// SAFETY: as above.
unsafe impl Sync for Tensor {}

impl Tensor {
    /// Takes over an owned reference.
    ///
    /// # Safety
    /// `raw` must be an owned reference of the process that `table` belongs to.
    pub unsafe fn from_raw(table: &'static Abi, raw: *mut AbiTensor) -> Tensor {
        Tensor { table, raw }
    }

    /// Gives the reference out.
    pub fn into_raw(self) -> *mut AbiTensor {
        let raw = self.raw;
        std::mem::forget(self);
        raw
    }

    /// Sizes.
    pub fn sizes(&self) -> Result<Vec<i64>> {
        // SAFETY: the buffer has `dim` elements, as the functions ask.
        unsafe {
            let mut out = vec![0; (self.table.tensor_dim)(self.raw) as usize];
            check(self.table, (self.table.tensor_sizes)(self.raw, out.as_mut_ptr()))?;
            Ok(out)
        }
    }

    /// Strides, in elements.
    pub fn strides(&self) -> Result<Vec<i64>> {
        // SAFETY: as in `sizes`.
        unsafe {
            let mut out = vec![0; (self.table.tensor_dim)(self.raw) as usize];
            check(self.table, (self.table.tensor_strides)(self.raw, out.as_mut_ptr()))?;
            Ok(out)
        }
    }

    /// Number of elements.
    pub fn numel(&self) -> Result<i64> {
        Ok(self.sizes()?.iter().product())
    }

    /// Whether the elements lie in memory in row-major order without gaps.
    pub fn is_contiguous(&self) -> Result<bool> {
        let mut expected = 1;
        for (size, stride) in self.sizes()?.into_iter().zip(self.strides()?).rev() {
            if size != 1 && stride != expected {
                return Ok(false);
            }
            expected *= size;
        }
        Ok(true)
    }

    /// PyTorch's number of the dtype (6 is float32, 7 float64, 4 int64).
    pub fn dtype(&self) -> u32 {
        // SAFETY: `raw` is a live reference.
        unsafe { (self.table.tensor_dtype)(self.raw) }
    }

    /// Device type in the high 32 bits, index in the low 32.
    pub fn device(&self) -> i64 {
        // SAFETY: `raw` is a live reference.
        unsafe { (self.table.tensor_device)(self.raw) }
    }

    /// Address of element 0.
    pub fn data_ptr(&self) -> *mut std::ffi::c_void {
        // SAFETY: `raw` is a live reference.
        unsafe { (self.table.tensor_data)(self.raw) }
    }
}

impl Clone for Tensor {
    fn clone(&self) -> Tensor {
        // SAFETY: `raw` is a live reference; the result is owned.
        unsafe { Tensor::from_raw(self.table, (self.table.tensor_clone)(self.raw)) }
    }
}

impl Drop for Tensor {
    fn drop(&mut self) {
        // SAFETY: this reference is owned and given back once.
        unsafe { (self.table.tensor_free)(self.raw) }
    }
}
