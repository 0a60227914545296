//! DLPack 1.x, both ways, in the versioned and the older form.
//!
//! A capsule owns what it points to until a consumer renames it; from then on the consumer calls the deleter.

use std::ffi::{c_void, CStr};

use c10::{
    DataPtr, Device, DeviceType, DimVector, DispatchKey, DispatchKeySet, Layout, ScalarType, Storage, Tensor,
};
use pyo3::exceptions::{PyBufferError, PyRuntimeError};
use pyo3::ffi;
use pyo3::prelude::*;

use crate::raw::objects::{NewError, Text};
use crate::raw::{owned, Res};
use crate::tensor;

const VERSION: DLPackVersion = DLPackVersion { major: 1, minor: 1 };
const FLAG_READ_ONLY: u64 = 1;
const FLAG_IS_COPIED: u64 = 2;

const NAME: &CStr = c"dltensor";
const NAME_USED: &CStr = c"used_dltensor";
const NAME_VERSIONED: &CStr = c"dltensor_versioned";
const NAME_VERSIONED_USED: &CStr = c"used_dltensor_versioned";

const INVALID_CAPSULE: &str =
    "from_dlpack received an invalid capsule. Note that DLTensor capsules can be consumed only \
once, so you might have already constructed a tensor from it once.";

#[repr(C)]
#[derive(Clone, Copy)]
struct DLPackVersion {
    major: u32,
    minor: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct DLDevice {
    device_type: i32,
    device_id: i32,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct DLDataType {
    code: u8,
    bits: u8,
    lanes: u16,
}

#[repr(C)]
struct DLTensor {
    data: *mut c_void,
    device: DLDevice,
    ndim: i32,
    dtype: DLDataType,
    shape: *mut i64,
    strides: *mut i64,
    byte_offset: u64,
}

#[repr(C)]
struct DLManagedTensor {
    dl_tensor: DLTensor,
    manager_ctx: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut DLManagedTensor)>,
}

#[repr(C)]
struct DLManagedTensorVersioned {
    version: DLPackVersion,
    manager_ctx: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut DLManagedTensorVersioned)>,
    flags: u64,
    dl_tensor: DLTensor,
}

/// The two forms of a managed tensor.
trait Managed: Sized + 'static {
    const NAME: &'static CStr;
    const NAME_USED: &'static CStr;

    fn new(dl_tensor: DLTensor, flags: u64) -> Self;
    fn tensor(&self) -> &DLTensor;
    fn set_owner(&mut self, owner: *mut c_void);
    /// Calls the deleter.
    ///
    /// # Safety
    ///
    /// `this` is a managed tensor that nobody uses any more.
    unsafe fn delete(this: *mut Self);
}

impl Managed for DLManagedTensor {
    const NAME: &'static CStr = NAME;
    const NAME_USED: &'static CStr = NAME_USED;

    fn new(dl_tensor: DLTensor, _: u64) -> Self {
        unsafe extern "C" fn deleter(this: *mut DLManagedTensor) {
            // SAFETY: consumers call the deleter once, with what `export` made.
            unsafe { drop(Box::from_raw((*this).manager_ctx.cast::<Exported<DLManagedTensor>>())) };
        }
        DLManagedTensor { dl_tensor, manager_ctx: std::ptr::null_mut(), deleter: Some(deleter) }
    }

    fn tensor(&self) -> &DLTensor {
        &self.dl_tensor
    }

    fn set_owner(&mut self, owner: *mut c_void) {
        self.manager_ctx = owner;
    }

    unsafe fn delete(this: *mut Self) {
        // SAFETY: passed on to the caller.
        unsafe {
            if let Some(deleter) = (*this).deleter {
                deleter(this);
            }
        }
    }
}

impl Managed for DLManagedTensorVersioned {
    const NAME: &'static CStr = NAME_VERSIONED;
    const NAME_USED: &'static CStr = NAME_VERSIONED_USED;

    fn new(dl_tensor: DLTensor, flags: u64) -> Self {
        unsafe extern "C" fn deleter(this: *mut DLManagedTensorVersioned) {
            // SAFETY: consumers call the deleter once, with what `export` made.
            unsafe { drop(Box::from_raw((*this).manager_ctx.cast::<Exported<DLManagedTensorVersioned>>())) };
        }
        DLManagedTensorVersioned {
            version: VERSION,
            manager_ctx: std::ptr::null_mut(),
            deleter: Some(deleter),
            flags,
            dl_tensor,
        }
    }

    fn tensor(&self) -> &DLTensor {
        &self.dl_tensor
    }

    fn set_owner(&mut self, owner: *mut c_void) {
        self.manager_ctx = owner;
    }

    unsafe fn delete(this: *mut Self) {
        // SAFETY: passed on to the caller.
        unsafe {
            if let Some(deleter) = (*this).deleter {
                deleter(this);
            }
        }
    }
}

/// What a capsule made here points into.
struct Exported<M> {
    managed: M,
    _storage: Option<Storage>,
    shape: DimVector,
    strides: DimVector,
}

/// (code, bits) of a dtype; lanes are always 1.
fn to_dl_dtype(dtype: ScalarType) -> Res<DLDataType> {
    use ScalarType::*;
    let (code, bits) = match dtype {
        Char => (0, 8),
        Short => (0, 16),
        Int => (0, 32),
        Long => (0, 64),
        Byte => (1, 8),
        UInt16 => (1, 16),
        UInt32 => (1, 32),
        UInt64 => (1, 64),
        Half => (2, 16),
        Float => (2, 32),
        Double => (2, 64),
        BFloat16 => (4, 16),
        ComplexHalf => (5, 32),
        ComplexFloat => (5, 64),
        ComplexDouble => (5, 128),
        Bool => (6, 8),
        Float8_e4m3fn => (10, 8),
        Float8_e4m3fnuz => (11, 8),
        Float8_e5m2 => (12, 8),
        Float8_e5m2fnuz => (13, 8),
        Float8_e8m0fnu => (14, 8),
        other => {
            let text = format!("{} type is not supported by dlpack", other.name());
            return Err(PyBufferError::error(text).into());
        }
    };
    Ok(DLDataType { code, bits, lanes: 1 })
}

fn from_dl_dtype(dtype: DLDataType) -> Res<ScalarType> {
    use ScalarType::*;
    if dtype.lanes != 1 {
        let text = format!("ATen does not support lanes != 1 in DLPack, got {}", dtype.lanes);
        return Err(PyBufferError::error(text).into());
    }
    Ok(match (dtype.code, dtype.bits) {
        (0, 8) => Char,
        (0, 16) => Short,
        (0, 32) => Int,
        (0, 64) => Long,
        (1, 8) => Byte,
        (1, 16) => UInt16,
        (1, 32) => UInt32,
        (1, 64) => UInt64,
        (2, 16) => Half,
        (2, 32) => Float,
        (2, 64) => Double,
        (4, 16) => BFloat16,
        (5, 32) => ComplexHalf,
        (5, 64) => ComplexFloat,
        (5, 128) => ComplexDouble,
        (6, 8) => Bool,
        (10, 8) => Float8_e4m3fn,
        (11, 8) => Float8_e4m3fnuz,
        (12, 8) => Float8_e5m2,
        (13, 8) => Float8_e5m2fnuz,
        (14, 8) => Float8_e8m0fnu,
        (code, bits) => {
            let text = format!("Unsupported DLPack dtype: code {code} with {bits} bits");
            return Err(PyBufferError::error(text).into());
        }
    })
}

fn to_dl_device(device: Device) -> Res<DLDevice> {
    let device_type = match device.type_ {
        DeviceType::CPU => 1,
        DeviceType::CUDA => 2,
        DeviceType::PrivateUse1 => 12,
        other => {
            return Err(
                PyBufferError::error(format!("Cannot pack tensors on {}", other.lower_case_name())).into()
            );
        }
    };
    Ok(DLDevice { device_type, device_id: i32::from(device.index.max(0)) })
}

/// The device and the backend's dispatch key.
fn from_dl_device(device: DLDevice) -> Res<(Device, DispatchKey)> {
    let (type_, key) = match device.device_type {
        1 => return Ok((Device::new(DeviceType::CPU, -1), DispatchKey::CPU)),
        2 => (DeviceType::CUDA, DispatchKey::CUDA),
        12 => (DeviceType::PrivateUse1, DispatchKey::PrivateUse1),
        other => return Err(PyBufferError::error(format!("Unsupported device_type: {other}")).into()),
    };
    Ok((Device::checked(type_, i64::from(device.device_id))?, key))
}

/// Refuses tensors whose memory does not say what they are.
fn check_exportable(tensor: &Tensor) -> Res<()> {
    let problem = if autograd::variable::requires_grad(tensor) {
        "Can't export tensors that require gradient, use tensor.detach()"
    } else if tensor.is_conj() {
        "Can't export tensors with the conjugate bit set"
    } else if tensor.is_neg() {
        "Can't export tensors with the negative bit set"
    } else if tensor.layout() != Layout::Strided {
        "Can't export tensors with layout other than torch.strided"
    } else {
        return Ok(());
    };
    Err(PyBufferError::error(problem).into())
}

/// Makes a capsule of the form `M`.
fn export<'py, M: Managed>(py: Python<'py>, tensor: &Tensor, flags: u64) -> Res<Bound<'py, PyAny>> {
    check_exportable(tensor)?;
    let (device, dtype) = (to_dl_device(tensor.device())?, to_dl_dtype(tensor.dtype())?);
    if let Some(storage) = tensor.unsafe_storage() {
        tensor.check_in_storage()?;
        // Whoever gets the memory may write to it.
        storage.materialize()?;
        // Moving the memory would leave the consumer's view of it dangling.
        storage.set_resizable(false);
    }
    let shape = DimVector::from_slice(tensor.sizes()?);
    // Strides of dimensions that nothing steps along are normalized: consumers compare them to contiguous ones.
    let strides = shape
        .iter()
        .zip(tensor.strides()?)
        .map(|(&size, &stride)| if size < 2 { 1 } else { stride })
        .collect();
    let dl_tensor = DLTensor {
        data: tensor.data_ptr().cast(),
        device,
        ndim: shape.len() as i32,
        dtype,
        shape: std::ptr::null_mut(),
        strides: std::ptr::null_mut(),
        byte_offset: 0,
    };
    let exported = Exported {
        managed: M::new(dl_tensor, flags),
        _storage: tensor.unsafe_storage().cloned(),
        shape,
        strides,
    };
    let exported = Box::into_raw(Box::new(exported));
    // SAFETY: just made; its vectors stay where they are as long as the box does.
    unsafe {
        let managed = &raw mut (*exported).managed;
        (*managed).set_owner(exported.cast());
        let dl_tensor = std::ptr::from_ref((*managed).tensor()).cast_mut();
        (*dl_tensor).shape = (*exported).shape.as_mut_ptr();
        (*dl_tensor).strides = (*exported).strides.as_mut_ptr();
        let capsule = ffi::PyCapsule_New(managed.cast(), M::NAME.as_ptr(), Some(destroy::<M>));
        if capsule.is_null() {
            drop(Box::from_raw(exported));
        }
        owned(py, capsule)
    }
}

/// Frees what an unconsumed capsule owns.
unsafe extern "C" fn destroy<M: Managed>(capsule: *mut ffi::PyObject) {
    // SAFETY: CPython calls it with a capsule of ours; a consumed one has another name and owns nothing.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, M::NAME.as_ptr()) != 0 {
            let managed = ffi::PyCapsule_GetPointer(capsule, M::NAME.as_ptr()).cast::<M>();
            if !managed.is_null() {
                M::delete(managed);
            }
        }
    }
}

/// A consumed managed tensor; dropping it calls the producer's deleter.
struct Imported<M: Managed>(*mut M);

// SAFETY: the protocol lets the consumer call the deleter on any thread.
unsafe impl<M: Managed> Send for Imported<M> {}

impl<M: Managed> Drop for Imported<M> {
    fn drop(&mut self) {
        // SAFETY: consumed, so this is its only owner.
        unsafe { M::delete(self.0) };
    }
}

/// Makes a tensor over the memory of a capsule of the form `M`, which is consumed.
///
/// # Safety
///
/// `capsule` is a valid capsule of that form, made by a producer that follows the protocol.
unsafe fn import<M: Managed>(capsule: *mut ffi::PyObject) -> Res<Tensor> {
    // SAFETY: as the caller says; the managed tensor lives until its deleter is called.
    let (owner, dl) = unsafe {
        let managed = ffi::PyCapsule_GetPointer(capsule, M::NAME.as_ptr()).cast::<M>();
        if managed.is_null() || ffi::PyCapsule_SetName(capsule, M::NAME_USED.as_ptr()) != 0 {
            return Err(crate::raw::Raised::already_set());
        }
        (Imported(managed), (*managed).tensor())
    };
    let dtype = from_dl_dtype(dl.dtype)?;
    let (device, key) = from_dl_device(dl.device)?;
    let ndim = usize::try_from(dl.ndim)
        .map_err(|_| PyBufferError::error("DLPack: negative number of dimensions"))?;
    // SAFETY: the protocol gives `ndim` sizes, and as many strides or none.
    let (sizes, given) =
        unsafe { (dims(dl.shape, ndim), (!dl.strides.is_null()).then(|| dims(dl.strides, ndim))) };
    let strides = given.unwrap_or_else(|| c10::compute_contiguous_strides(&sizes));
    let nbytes = c10::compute_storage_nbytes(&sizes, &strides, dtype.item_size(), 0)?;
    let data = dl.data.cast::<u8>().wrapping_add(dl.byte_offset as usize);
    if nbytes > 0 && data.is_null() {
        return Err(PyBufferError::error("DLPack: a tensor with elements has no memory").into());
    }
    let keys = DispatchKeySet::from_key(key);
    let data = DataPtr::from_owner(data, owner, device);
    // SAFETY: the producer vouches for the memory up to the last element, and the owner keeps it.
    Ok(unsafe { c10::from_blob(data, nbytes, &sizes, &strides, 0, keys, dtype)? })
}

/// # Safety
///
/// `values` points to `count` integers, or `count` is 0.
unsafe fn dims(values: *const i64, count: usize) -> DimVector {
    if count == 0 || values.is_null() {
        return DimVector::new();
    }
    // SAFETY: as the caller says.
    DimVector::from_slice(unsafe { std::slice::from_raw_parts(values, count) })
}

fn tensor_argument<'a>(object: &'a Bound<'_, PyAny>) -> Res<&'a Tensor> {
    match tensor::get(object) {
        Some(tensor) => Ok(tensor),
        None => {
            let found = object.get_type().name()?;
            Err(pyo3::exceptions::PyTypeError::error(format!("to_dlpack: expected a Tensor, got {found}"))
                .into())
        }
    }
}

/// A capsule in the form of DLPack before 1.0.
#[pyfunction]
fn _to_dlpack<'py>(tensor: &Bound<'py, PyAny>) -> Res<Bound<'py, PyAny>> {
    export::<DLManagedTensor>(tensor.py(), tensor_argument(tensor)?, 0)
}

/// A capsule in the form of DLPack 1.x.
#[pyfunction]
#[pyo3(signature = (tensor, is_copied = false, read_only = false))]
fn _to_dlpack_versioned<'py>(
    tensor: &Bound<'py, PyAny>,
    is_copied: bool,
    read_only: bool,
) -> Res<Bound<'py, PyAny>> {
    let flags = if is_copied { FLAG_IS_COPIED } else { 0 } | if read_only { FLAG_READ_ONLY } else { 0 };
    export::<DLManagedTensorVersioned>(tensor.py(), tensor_argument(tensor)?, flags)
}

/// A tensor over the memory of a capsule, which is consumed.
#[pyfunction]
fn _from_dlpack<'py>(capsule: &Bound<'py, PyAny>) -> Res<Bound<'py, PyAny>> {
    let py = capsule.py();
    let pointer = capsule.as_ptr();
    // SAFETY: a live object; the checks hold for any object.
    let (is_versioned, is_plain) = unsafe {
        (
            ffi::PyCapsule_IsValid(pointer, NAME_VERSIONED.as_ptr()) != 0,
            ffi::PyCapsule_IsValid(pointer, NAME.as_ptr()) != 0,
        )
    };
    let tensor = if is_versioned {
        // SAFETY: a valid capsule with that name; its first field is the version in every version.
        let version = unsafe {
            (*ffi::PyCapsule_GetPointer(pointer, NAME_VERSIONED.as_ptr()).cast::<DLManagedTensorVersioned>())
                .version
        };
        if version.major > VERSION.major {
            let text = format!(
                "Unsupported DLPack major version: {}, expected at most {}",
                version.major, VERSION.major
            );
            return Err(PyBufferError::error(text).into());
        }
        // SAFETY: checked above.
        unsafe { import::<DLManagedTensorVersioned>(pointer)? }
    } else if is_plain {
        // SAFETY: checked above.
        unsafe { import::<DLManagedTensor>(pointer)? }
    } else {
        return Err(PyRuntimeError::error(INVALID_CAPSULE).into());
    };
    tensor::wrap_bound(py, tensor)
}

/// The DLPack numbers of a tensor's device.
#[pyfunction]
fn _dlpack_device(tensor: &Bound<'_, PyAny>) -> Res<(i32, i32)> {
    let device = to_dl_device(tensor_argument(tensor)?.device())?;
    Ok((device.device_type, device.device_id))
}

/// The device string of DLPack numbers.
#[pyfunction]
fn _dlpack_device_name(device_type: i32, device_id: i32) -> Res<Text<String>> {
    Ok(Text(from_dl_device(DLDevice { device_type, device_id })?.0.to_string()))
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(_to_dlpack, module)?)?;
    module.add_function(wrap_pyfunction!(_to_dlpack_versioned, module)?)?;
    module.add_function(wrap_pyfunction!(_from_dlpack, module)?)?;
    module.add_function(wrap_pyfunction!(_dlpack_device, module)?)?;
    module.add_function(wrap_pyfunction!(_dlpack_device_name, module)?)
}
