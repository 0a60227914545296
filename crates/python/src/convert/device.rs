//! `ptr.device`.

use std::ffi::c_void;
use std::sync::atomic::{AtomicPtr, Ordering};

use c10::{Device, DeviceType};
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};

use crate::convert::scalar;
use crate::raw::objects::{self, NewError};
use crate::raw::{
    getset, guard, guard_len, immortal, method_noargs, method_varargs, owned, token, Res, StaticType,
    TypeBuilder,
};

#[repr(C)]
struct PyDevice {
    ob_base: ffi::PyObject,
    device: Device,
}

/// The type.
pub(crate) static DEVICE: StaticType = StaticType::new();
/// The object for the host, which nearly all attribute reads return.
static CPU: AtomicPtr<ffi::PyObject> = AtomicPtr::new(std::ptr::null_mut());

/// The device object, as a new reference.
#[inline]
pub(crate) fn new_ref(device: Device) -> Res<*mut ffi::PyObject> {
    if device == Device::new(DeviceType::CPU, -1) {
        let cpu = CPU.load(Ordering::Relaxed);
        // SAFETY: made at import and never freed.
        unsafe { ffi::Py_INCREF(cpu) };
        return Ok(cpu);
    }
    make(device)
}

fn make(device: Device) -> Res<*mut ffi::PyObject> {
    // SAFETY: the type's instances have the layout of PyDevice; called with the interpreter's lock.
    unsafe {
        let object = owned(token(), ffi::PyType_GenericAlloc(DEVICE.get(), 0))?.into_ptr();
        (*object.cast::<PyDevice>()).device = device;
        Ok(object)
    }
}

/// The device object.
pub(crate) fn object(py: Python<'_>, device: Device) -> Res<Bound<'_, PyAny>> {
    // SAFETY: a new reference.
    Ok(unsafe { Bound::from_owned_ptr(py, new_ref(device)?) })
}

/// Whether an argument can name a device: a device, a string, or the number of an accelerator.
#[inline]
pub(crate) fn is_device_like(object: &Bound<'_, PyAny>) -> bool {
    DEVICE.is_exact(object) || object.is_instance_of::<PyString>() || scalar::is_int(object)
}

/// The device that an argument names.
pub(crate) fn extract(object: &Bound<'_, PyAny>) -> Res<Device> {
    if DEVICE.is_exact(object) {
        // SAFETY: exactly our type.
        return Ok(unsafe { (*object.as_ptr().cast::<PyDevice>()).device });
    }
    if let Ok(text) = object.cast::<PyString>() {
        return Ok(crate::raw::text_of(text)?.parse::<Device>()?);
    }
    if scalar::is_int(object) {
        let index = scalar::to_i64(object)?;
        if index < 0 {
            return Err(PyRuntimeError::error("Device index must not be negative").into());
        }
        return Ok(Device::checked(DeviceType::CUDA, index)?);
    }
    Err(PyTypeError::error(format!(
        "expected a device, a string or an int, got {}",
        object.get_type().name()?
    ))
    .into())
}

unsafe extern "C" fn device_new(
    _type: *mut ffi::PyTypeObject,
    args: *mut ffi::PyObject,
    kwargs: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    guard(|| {
        // SAFETY: CPython calls constructors with a tuple and a dict or null.
        let (args, kwargs) = unsafe {
            let py = token();
            (Bound::from_borrowed_ptr(py, args), Bound::from_borrowed_ptr_or_opt(py, kwargs))
        };
        let args = args.cast::<PyTuple>()?;
        let mut type_ = args.get_item(0).ok();
        let mut index = args.get_item(1).ok();
        if args.len() > 2 {
            return Err(PyTypeError::error(format!(
                "device() takes at most 2 arguments ({} given)",
                args.len()
            ))
            .into());
        }
        if let Some(kwargs) = kwargs {
            for (key, value) in kwargs.cast::<PyDict>()?.iter() {
                let key = key.cast::<PyString>()?;
                match crate::raw::text_of(key)? {
                    "type" | "device" if type_.is_none() => type_ = Some(value),
                    "index" if index.is_none() => index = Some(value),
                    other => {
                        let text = format!("device() got an unexpected keyword argument '{other}'");
                        return Err(PyTypeError::error(text).into());
                    }
                }
            }
        }
        let Some(type_) = type_ else {
            return Err(
                PyTypeError::error("device() missing 1 required positional argument: \"type\"").into()
            );
        };
        if !is_device_like(&type_) {
            let text = format!(
                "device(): argument 'type' (position 1) must be str, not {}",
                type_.get_type().name()?
            );
            return Err(PyTypeError::error(text).into());
        }
        let mut device = extract(&type_)?;
        if let Some(index) = index.filter(|i| !i.is_none()) {
            if !type_.is_instance_of::<PyString>() {
                let text = format!(
                    "device(): argument 'type' (position 1) must be str beside an index, not {}",
                    type_.get_type().name()?
                );
                return Err(PyTypeError::error(text).into());
            }
            if device.has_index() {
                let text = format!(
                    "type (string) must not include an index because index was passed explicitly: {device}"
                );
                return Err(PyRuntimeError::error(text).into());
            }
            let index = scalar::to_i64(&index)?;
            if index < 0 {
                return Err(PyRuntimeError::error("Device index must not be negative").into());
            }
            device = Device::checked(device.type_, index)?;
        }
        make(device)
    })
}

/// # Safety
///
/// `object` is a device.
unsafe fn of_self(object: *mut ffi::PyObject) -> Device {
    // SAFETY: passed on to the caller.
    unsafe { (*object.cast::<PyDevice>()).device }
}

unsafe extern "C" fn device_repr(object: *mut ffi::PyObject) -> *mut ffi::PyObject {
    guard(|| {
        // SAFETY: CPython calls it with a device.
        let (py, device) = unsafe { (token(), of_self(object)) };
        let name = device.type_.lower_case_name();
        let text = match device.has_index() {
            true => format!("device(type='{name}', index={})", device.index),
            false => format!("device(type='{name}')"),
        };
        Ok(objects::string(py, &text)?.into_ptr())
    })
}

unsafe extern "C" fn device_str(object: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: CPython calls it with a device.
    guard(|| unsafe { Ok(objects::string(token(), &of_self(object).to_string())?.into_ptr()) })
}

unsafe extern "C" fn device_hash(object: *mut ffi::PyObject) -> ffi::Py_hash_t {
    // SAFETY: CPython calls it with a device.
    guard_len(|| unsafe {
        let device = of_self(object);
        Ok((device.type_ as isize) << 8 | (device.index as u8) as isize)
    })
}

unsafe extern "C" fn device_richcompare(
    a: *mut ffi::PyObject,
    b: *mut ffi::PyObject,
    op: std::ffi::c_int,
) -> *mut ffi::PyObject {
    // SAFETY: CPython calls it with a device first.
    unsafe {
        let is_device = std::ptr::eq(ffi::Py_TYPE(b), DEVICE.get());
        let result = match op {
            ffi::Py_EQ => is_device && of_self(a) == of_self(b),
            ffi::Py_NE => !(is_device && of_self(a) == of_self(b)),
            _ => {
                let not_implemented = ffi::Py_NotImplemented();
                ffi::Py_INCREF(not_implemented);
                return not_implemented;
            }
        };
        ffi::PyBool_FromLong(result.into())
    }
}

unsafe extern "C" fn device_type(object: *mut ffi::PyObject, _: *mut c_void) -> *mut ffi::PyObject {
    // SAFETY: CPython calls it with a device.
    guard(|| unsafe { Ok(objects::interned(token(), of_self(object).type_.lower_case_name())?.into_ptr()) })
}

unsafe extern "C" fn device_index(object: *mut ffi::PyObject, _: *mut c_void) -> *mut ffi::PyObject {
    // SAFETY: CPython calls it with a device.
    guard(|| unsafe {
        let device = of_self(object);
        let py = token();
        Ok(match device.has_index() {
            true => objects::int(py, device.index.into())?.into_ptr(),
            false => py.None().into_ptr(),
        })
    })
}

unsafe extern "C" fn device_reduce(object: *mut ffi::PyObject, _: *mut ffi::PyObject) -> *mut ffi::PyObject {
    guard(|| {
        // SAFETY: CPython calls it with a device.
        let (py, device) = unsafe { (token(), of_self(object)) };
        let name = objects::interned(py, device.type_.lower_case_name())?.into_any();
        let args = match device.has_index() {
            true => objects::tuple(py, [name, objects::int(py, device.index.into())?.into_any()])?,
            false => objects::tuple(py, [name])?,
        };
        Ok(objects::tuple(py, [DEVICE.bound(py), args.into_any()])?.into_ptr())
    })
}

/// As a context a device is where factories put tensors.
unsafe extern "C" fn device_enter(object: *mut ffi::PyObject, _: *mut ffi::PyObject) -> *mut ffi::PyObject {
    guard(|| {
        // SAFETY: CPython calls it with a device.
        let (device, object) = unsafe { (of_self(object), crate::raw::borrow(token(), object)) };
        SAVED_DEFAULTS.with_borrow_mut(|saved| saved.push(c10::get_default_device()));
        c10::set_default_device(Some(device));
        Ok(object.to_owned().into_ptr())
    })
}

thread_local! {
    /// The default devices outside of the `with device:` blocks that are open.
    static SAVED_DEFAULTS: std::cell::RefCell<Vec<Option<Device>>> = const { std::cell::RefCell::new(Vec::new()) };
}

unsafe extern "C" fn device_exit(
    _object: *mut ffi::PyObject,
    _args: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    guard(|| {
        if let Some(saved) = SAVED_DEFAULTS.with_borrow_mut(Vec::pop) {
            c10::set_default_device(saved);
        }
        // SAFETY: called by CPython.
        Ok(unsafe { token() }.None().into_ptr())
    })
}

/// Makes the type.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> Res<()> {
    let py = module.py();
    let type_ = TypeBuilder::new::<PyDevice>(c"ptr.device")
        .doc(c"Where the data of a tensor is.")
        .slot(ffi::Py_tp_new, device_new as *const ())
        .slot(ffi::Py_tp_repr, device_repr as *const ())
        .slot(ffi::Py_tp_str, device_str as *const ())
        .slot(ffi::Py_tp_hash, device_hash as *const ())
        .slot(ffi::Py_tp_richcompare, device_richcompare as *const ())
        .getsets([getset(c"type", device_type, None), getset(c"index", device_index, None)])
        .methods([
            method_noargs(c"__reduce__", device_reduce),
            method_noargs(c"__enter__", device_enter),
            method_varargs(c"__exit__", device_exit),
        ])
        .build(py, None)?;
    DEVICE.set(type_);
    // SAFETY: a new reference, kept for ever.
    let cpu = unsafe { Bound::from_owned_ptr(py, make(Device::new(DeviceType::CPU, -1))?) };
    CPU.store(immortal(cpu), Ordering::Release);
    module.add("device", DEVICE.bound(py))?;
    Ok(())
}
