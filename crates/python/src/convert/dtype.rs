//! `ptr.dtype` and its objects `ptr.float32`, ….

use c10::{ScalarType, NUM_SCALAR_TYPES};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyComplex, PyFloat, PyInt, PyType};

use crate::raw::singleton::{value_of, Singletons, SIZE};
use crate::raw::{getset, guard, method_noargs, Res, TypeBuilder};

static DTYPES: Singletons<NUM_SCALAR_TYPES> = Singletons::new();

/// The dtype object, as a new reference.
#[inline]
pub(crate) fn new_ref(dtype: ScalarType) -> *mut ffi::PyObject {
    DTYPES.new_ref(dtype as u8)
}

/// The dtype object.
pub(crate) fn object(py: Python<'_>, dtype: ScalarType) -> Bound<'_, PyAny> {
    DTYPES.bound(py, dtype as u8)
}

/// The dtype that an argument names: a dtype object, or one of Python's number types.
#[inline]
pub(crate) fn extract(object: &Bound<'_, PyAny>) -> Option<ScalarType> {
    match DTYPES.value(object) {
        Some(value) => ScalarType::try_from(value).ok(),
        None => python_number_type(object),
    }
}

/// Whether `object` is a dtype object.
pub(crate) fn is_dtype(object: &Bound<'_, PyAny>) -> bool {
    DTYPES.type_.is_exact(object)
}

#[cold]
fn python_number_type(object: &Bound<'_, PyAny>) -> Option<ScalarType> {
    let type_ = object.cast::<PyType>().ok()?;
    let py = object.py();
    if type_.is(py.get_type::<PyFloat>()) {
        Some(ScalarType::Double)
    } else if type_.is(py.get_type::<PyBool>()) {
        Some(ScalarType::Bool)
    } else if type_.is(py.get_type::<PyInt>()) {
        Some(ScalarType::Long)
    } else if type_.is(py.get_type::<PyComplex>()) {
        Some(ScalarType::ComplexDouble)
    } else {
        None
    }
}

/// # Safety
///
/// `object` is a dtype.
unsafe fn of_self(object: *mut ffi::PyObject) -> Res<ScalarType> {
    // SAFETY: passed on to the caller.
    Ok(ScalarType::try_from(unsafe { value_of(object) })?)
}

macro_rules! flag {
    ($name:ident, $method:expr) => {
        unsafe extern "C" fn $name(
            object: *mut ffi::PyObject,
            _: *mut std::ffi::c_void,
        ) -> *mut ffi::PyObject {
            // SAFETY: CPython calls it with a dtype.
            guard(|| Ok(unsafe { ffi::PyBool_FromLong($method(of_self(object)?).into()) }))
        }
    };
}
flag!(is_floating_point, ScalarType::is_floating_point);
flag!(is_complex, ScalarType::is_complex);
flag!(is_signed, ScalarType::is_signed);

unsafe extern "C" fn itemsize(object: *mut ffi::PyObject, _: *mut std::ffi::c_void) -> *mut ffi::PyObject {
    // SAFETY: CPython calls it with a dtype.
    guard(|| Ok(unsafe { ffi::PyLong_FromSize_t(of_self(object)?.item_size()) }))
}

unsafe extern "C" fn to_real(object: *mut ffi::PyObject, _: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: CPython calls it with a dtype.
    guard(|| Ok(new_ref(unsafe { of_self(object)? }.to_real_value_type())))
}

unsafe extern "C" fn to_complex(object: *mut ffi::PyObject, _: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: CPython calls it with a dtype.
    guard(|| Ok(new_ref(unsafe { of_self(object)? }.to_complex()?)))
}

/// Makes the type and its objects, and adds them to the module under all of their names.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> Res<()> {
    let py = module.py();
    DTYPES.make_type(
        py,
        |name| {
            TypeBuilder::with_size(name, SIZE)
                .flags(ffi::Py_TPFLAGS_DISALLOW_INSTANTIATION)
                .doc(c"The type of a tensor's elements.")
                .getsets([
                    getset(c"is_floating_point", is_floating_point, None),
                    getset(c"is_complex", is_complex, None),
                    getset(c"is_signed", is_signed, None),
                    getset(c"itemsize", itemsize, None),
                ])
                .methods([method_noargs(c"to_real", to_real), method_noargs(c"to_complex", to_complex)])
        },
        c"ptr.dtype",
    )?;
    module.add("dtype", DTYPES.type_.bound(py))?;
    for dtype in ScalarType::ALL {
        DTYPES.make(py, dtype as u8, dtype.name())?;
        module.add(dtype.name(), object(py, dtype))?;
        if let Some(alias) = dtype.legacy_name() {
            module.add(alias, object(py, dtype))?;
        }
    }
    Ok(())
}
