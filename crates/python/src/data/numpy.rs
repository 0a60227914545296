//! NumPy arrays, both ways without copying. NumPy is imported only when an array is asked for.

use std::ffi::{c_char, c_int, c_void, CStr};
use std::sync::OnceLock;

use c10::{DataPtr, Device, DeviceType, DimVector, DispatchKey, DispatchKeySet, ScalarType, Tensor};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

use super::owner::Owner;
use super::tolist::plain;
use crate::convert::warnings;
use crate::raw::objects::{intern, NewError};
use crate::raw::{owned, Raised, Res};
use crate::tensor;

/// What `__array_struct__` points to: NumPy's array interface, version 2.
#[repr(C)]
struct PyArrayInterface {
    two: c_int,
    nd: c_int,
    typekind: c_char,
    itemsize: c_int,
    flags: c_int,
    shape: *mut ffi::Py_ssize_t,
    strides: *mut ffi::Py_ssize_t,
    data: *mut c_void,
    descr: *mut ffi::PyObject,
}

const ALIGNED: c_int = 0x100;
const NOTSWAPPED: c_int = 0x200;
const WRITEABLE: c_int = 0x400;

/// Whether an object is a NumPy array.
pub(crate) fn is_array(object: &Bound<'_, PyAny>) -> bool {
    // SAFETY: types have names and bases.
    unsafe {
        let mut type_ = ffi::Py_TYPE(object.as_ptr());
        while !type_.is_null() {
            if CStr::from_ptr((*type_).tp_name) == c"numpy.ndarray" {
                return true;
            }
            type_ = (*type_).tp_base;
        }
    }
    false
}

fn dtype_of_kind(kind: u8, itemsize: c_int) -> Option<ScalarType> {
    Some(match (kind, itemsize) {
        (b'b', 1) => ScalarType::Bool,
        (b'i', 1) => ScalarType::Char,
        (b'i', 2) => ScalarType::Short,
        (b'i', 4) => ScalarType::Int,
        (b'i', 8) => ScalarType::Long,
        (b'u', 1) => ScalarType::Byte,
        (b'u', 2) => ScalarType::UInt16,
        (b'u', 4) => ScalarType::UInt32,
        (b'u', 8) => ScalarType::UInt64,
        (b'f', 2) => ScalarType::Half,
        (b'f', 4) => ScalarType::Float,
        (b'f', 8) => ScalarType::Double,
        (b'c', 8) => ScalarType::ComplexFloat,
        (b'c', 16) => ScalarType::ComplexDouble,
        _ => return None,
    })
}

/// NumPy's number of a dtype.
fn type_number(dtype: ScalarType) -> Option<c_int> {
    Some(match dtype {
        ScalarType::Bool => 0,
        ScalarType::Char => 1,
        ScalarType::Byte => 2,
        ScalarType::Short => 3,
        ScalarType::UInt16 => 4,
        ScalarType::Int => 5,
        ScalarType::UInt32 => 6,
        ScalarType::Long if cfg!(windows) => 9,
        ScalarType::Long => 7,
        ScalarType::UInt64 if cfg!(windows) => 10,
        ScalarType::UInt64 => 8,
        ScalarType::Float => 11,
        ScalarType::Double => 12,
        ScalarType::ComplexFloat => 14,
        ScalarType::ComplexDouble => 15,
        ScalarType::Half => 23,
        _ => return None,
    })
}

/// Reads the array interface of an object that has one.
fn interface<'py>(object: &Bound<'py, PyAny>) -> Res<(Bound<'py, PyAny>, *const PyArrayInterface)> {
    let capsule = object.getattr(intern!(object.py(), "__array_struct__")?)?;
    // SAFETY: NumPy's capsule has no name; the pointer is valid as long as the capsule.
    unsafe {
        let pointer = ffi::PyCapsule_GetPointer(capsule.as_ptr(), std::ptr::null());
        if pointer.is_null() {
            return Err(Raised::already_set());
        }
        Ok((capsule, pointer.cast_const().cast()))
    }
}

/// The dtype of a NumPy array or number; `None` for other objects.
pub(super) fn dtype_of(object: &Bound<'_, PyAny>) -> Res<Option<ScalarType>> {
    // SAFETY: types have names.
    let name = unsafe { CStr::from_ptr((*ffi::Py_TYPE(object.as_ptr())).tp_name) };
    if !name.to_bytes().starts_with(b"numpy.") && !is_array(object) {
        return Ok(None);
    }
    if !object.hasattr(intern!(object.py(), "__array_struct__")?)? {
        return Ok(None);
    }
    let (_capsule, array) = interface(object)?;
    // SAFETY: valid as long as the capsule.
    let (kind, itemsize) = unsafe { ((*array).typekind as u8, (*array).itemsize) };
    match dtype_of_kind(kind, itemsize) {
        Some(dtype) => Ok(Some(dtype)),
        None => Err(unsupported(object)?),
    }
}

#[cold]
fn unsupported(array: &Bound<'_, PyAny>) -> Res<Raised> {
    let type_ = array.getattr(intern!(array.py(), "dtype")?)?.getattr(intern!(array.py(), "type")?)?;
    let type_ = type_.cast::<PyType>()?;
    let name = format!("{}.{}", type_.module()?, type_.name()?);
    Ok(PyTypeError::error(format!(
        "can't convert np.ndarray of type {name}. The only supported types are: float64, float32, float16, complex64, \
         complex128, int64, int32, int16, int8, uint64, uint32, uint16, uint8, and bool."
    ))
    .into())
}

/// A tensor that shares the memory of an array.
pub(crate) fn from_array(array: &Bound<'_, PyAny>) -> Res<Tensor> {
    if !is_array(array) {
        let text = format!("expected np.ndarray (got {})", array.get_type().name()?);
        return Err(PyTypeError::error(text).into());
    }
    let (_capsule, interface) = interface(array)?;
    // SAFETY: valid as long as the capsule.
    let interface = unsafe { &*interface };
    let Some(dtype) = dtype_of_kind(interface.typekind as u8, interface.itemsize) else {
        return Err(unsupported(array)?);
    };
    if interface.flags & NOTSWAPPED == 0 {
        let text = "given numpy array has byte order different from the native byte order. Conversion between byte orders is \
                    currently not supported.";
        return Err(PyValueError::error(text).into());
    }
    let nd = interface.nd as usize;
    let itemsize = interface.itemsize as isize;
    let mut sizes = DimVector::new();
    let mut strides = DimVector::new();
    for i in 0..nd {
        // SAFETY: both arrays have `nd` entries.
        let (size, stride) = unsafe { (*interface.shape.add(i), *interface.strides.add(i)) };
        if stride < 0 {
            let text = "At least one stride in the given numpy array is negative, and tensors with negative strides are not \
                        currently supported. (You can probably work around this by making a copy of your array  with \
                        array.copy().) ";
            return Err(PyValueError::error(text).into());
        }
        if stride % itemsize != 0 {
            let text = "given numpy array strides not a multiple of the element byte size. Copy the numpy array to reallocate \
                        the memory.";
            return Err(PyValueError::error(text).into());
        }
        sizes.push(size as i64);
        strides.push((stride / itemsize) as i64);
    }
    if interface.flags & WRITEABLE == 0 {
        warnings::warn(
            "The given NumPy array is not writable, and PyTorch does not support non-writable tensors. This means writing to \
             this tensor will result in undefined behavior. You may want to copy the array to protect its data or make it \
             writable before converting it to a tensor. This type of warning will be suppressed for the rest of this program.",
        )?;
    }
    let nbytes = c10::compute_storage_nbytes(&sizes, &strides, itemsize as usize, 0)?;
    let device = Device::new(DeviceType::CPU, -1);
    let data = DataPtr::from_owner(interface.data.cast(), Owner::new(array), device);
    let keys = const { DispatchKeySet::from_key(DispatchKey::CPU) };
    // SAFETY: the array has these elements, and the storage keeps the array.
    Ok(unsafe { c10::from_blob(data, nbytes, &sizes, &strides, 0, keys, dtype) }?)
}

/// The functions of NumPy's C interface that are needed, at their places in its table, which is part of its ABI.
struct Api {
    /// Entry 2.
    array_type: *mut ffi::PyObject,
    /// Entry 93.
    new: NewFn,
    /// Entry 282.
    set_base_object: unsafe extern "C" fn(*mut ffi::PyObject, *mut ffi::PyObject) -> c_int,
}

type NewFn = unsafe extern "C" fn(
    *mut ffi::PyObject,
    c_int,
    *const ffi::Py_ssize_t,
    c_int,
    *const ffi::Py_ssize_t,
    *mut c_void,
    c_int,
    c_int,
    *mut ffi::PyObject,
) -> *mut ffi::PyObject;

// SAFETY: addresses in a module that is never unloaded.
unsafe impl Send for Api {}
// SAFETY: as above.
unsafe impl Sync for Api {}

fn api(py: Python<'_>) -> Res<&'static Api> {
    static API: OnceLock<Api> = OnceLock::new();
    if let Some(api) = API.get() {
        return Ok(api);
    }
    static MODULE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let capsule = MODULE.get_or_try_init(py, || {
        // NumPy 2 moved the module.
        let module = py
            .import(intern!(py, "numpy._core._multiarray_umath")?)
            .or_else(|_| py.import(intern!(py, "numpy.core._multiarray_umath")?))?;
        Ok::<_, PyErr>(module.getattr(intern!(py, "_ARRAY_API")?)?.unbind())
    })?;
    // SAFETY: the capsule holds the table, whose entries have these types.
    unsafe {
        let table = ffi::PyCapsule_GetPointer(capsule.as_ptr(), std::ptr::null()).cast::<*mut c_void>();
        if table.is_null() {
            return Err(Raised::already_set());
        }
        let api = Api {
            array_type: (*table.add(2)).cast(),
            new: std::mem::transmute::<*mut c_void, NewFn>(*table.add(93)),
            set_base_object: std::mem::transmute::<
                *mut c_void,
                unsafe extern "C" fn(*mut ffi::PyObject, *mut ffi::PyObject) -> c_int,
            >(*table.add(282)),
        };
        Ok(API.get_or_init(|| api))
    }
}

/// An array that shares the memory of a tensor; with `force`, of a copy where needed.
pub(crate) fn to_numpy<'py>(py: Python<'py>, source: &Tensor, force: bool) -> Res<Bound<'py, PyAny>> {
    let mut array_tensor = source.clone();
    if force {
        array_tensor = plain(py, &::ops::at::detach(source)?)?;
    } else {
        check(source)?;
        if tensor::dispatch_modes_active() {
            // They see that the values leave the graph.
            array_tensor = ::ops::at::detach(source)?;
        }
    }
    let t = &array_tensor;
    let Some(number) = type_number(t.dtype()) else {
        return Err(
            PyTypeError::error(format!("Got unsupported ScalarType {}", t.dtype().short_name())).into()
        );
    };
    let itemsize = t.item_size() as ffi::Py_ssize_t;
    let sizes: smallvec::SmallVec<[ffi::Py_ssize_t; 5]> =
        t.sizes()?.iter().map(|&s| s as ffi::Py_ssize_t).collect();
    let strides: smallvec::SmallVec<[ffi::Py_ssize_t; 5]> =
        t.strides()?.iter().map(|&s| (s as ffi::Py_ssize_t).wrapping_mul(itemsize)).collect();
    t.check_in_storage()?;
    let storage = t.storage()?;
    storage.materialize()?;
    let api = api(py)?;
    // SAFETY: the array gets the tensor's memory and, as its base, the object that keeps it.
    unsafe {
        let array = (api.new)(
            api.array_type,
            sizes.len() as c_int,
            sizes.as_ptr(),
            number,
            strides.as_ptr(),
            t.data_ptr().cast(),
            itemsize as c_int,
            ALIGNED | WRITEABLE,
            std::ptr::null_mut(),
        );
        let array = owned(py, array)?;
        // An alias of its own: `set_` and `.data =` may give the tensor another storage.
        let alias = t.shallow_copy_and_detach(t.version_counter())?;
        let base = tensor::wrap(alias)?;
        if (api.set_base_object)(array.as_ptr(), base) < 0 {
            return Err(Raised::already_set());
        }
        // Moving the memory would leave the array dangling.
        storage.set_resizable(false);
        Ok(array)
    }
}

fn check(tensor: &Tensor) -> Res<()> {
    if tensor.device().type_ != DeviceType::CPU {
        let text = format!(
            "can't convert {} device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first.",
            tensor.device()
        );
        return Err(PyTypeError::error(text).into());
    }
    if tensor.layout() != c10::Layout::Strided {
        let text = format!(
            "can't convert {} layout tensor to numpy. Use Tensor.to_dense() first.",
            tensor.layout().name()
        );
        return Err(PyTypeError::error(text).into());
    }
    let requires = if c10::GradMode::is_enabled() && autograd::variable::requires_grad(tensor) {
        "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead."
    } else if tensor.is_conj() {
        "Can't call numpy() on Tensor that has conjugate bit set. Use tensor.resolve_conj().numpy() instead."
    } else if tensor.is_neg() {
        "Can't call numpy() on Tensor that has negative bit set. Use tensor.resolve_neg().numpy() instead."
    } else {
        return Ok(());
    };
    Err(c10::Error::runtime(requires).into())
}
