//! `Module.__call__`.
//!
//! A module's call runs `_call_impl`, which a class may override, and which may be replaced on a class at any time, as
//! profilers and wrappers do. Almost always it is the one of the base class, and the module has no hooks: then its
//! `forward` is called from here, without a Python frame in between.

use std::ffi::c_int;
use std::sync::atomic::{AtomicPtr, Ordering};

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyType;

use crate::raw::objects::intern;
use crate::raw::{guard, immortal, intern_static, method_fast, owned, token, Raised, Res};

/// A Python object that is set at import and lives for ever.
struct Known(AtomicPtr<ffi::PyObject>);

impl Known {
    const fn new() -> Known {
        Known(AtomicPtr::new(std::ptr::null_mut()))
    }
    fn get(&self) -> *mut ffi::PyObject {
        self.0.load(Ordering::Relaxed)
    }
    fn set(&self, object: *mut ffi::PyObject) {
        self.0.store(object, Ordering::Relaxed);
    }
}

/// The base class's `_call_impl`.
static IMPLEMENTATION: Known = Known::new();
static CALL_IMPL: Known = Known::new();
static FORWARD: Known = Known::new();
static HOOKED: Known = Known::new();
/// The tables of hooks that a call runs. One may have been put into an instance's `__dict__` behind the flag's back.
static TABLES: [Known; 4] = [const { Known::new() }; 4];
const TABLE_NAMES: [&str; 4] =
    ["_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks"];

/// Whether the call is nothing but the module's `forward`.
///
/// # Safety
///
/// `module` is alive, and `bind_module_call` has run.
unsafe fn is_plain(py: Python<'_>, module: *mut ffi::PyObject) -> Res<bool> {
    // SAFETY: the names are strings that live for ever; the results are new references. A module's flag is no
    // computed attribute, so that the generic lookup finds what `module._hooked` does.
    unsafe {
        let implementation = owned(py, ffi::PyObject_GetAttr(ffi::Py_TYPE(module).cast(), CALL_IMPL.get()))?;
        if implementation.as_ptr() != IMPLEMENTATION.get() {
            return Ok(false);
        }
        let hooked = owned(py, ffi::PyObject_GenericGetAttr(module, HOOKED.get()))?;
        if hooked.as_ptr() != ffi::Py_False() {
            return Ok(false);
        }
        let attributes = owned(py, ffi::PyObject_GenericGetDict(module, std::ptr::null_mut()))?;
        for name in &TABLES {
            match ffi::PyDict_Contains(attributes.as_ptr(), name.get()) {
                0 => {}
                1 => return Ok(false),
                _ => return Err(Raised::already_set()),
            }
        }
        Ok(true)
    }
}

unsafe extern "C" fn call(
    module: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    nargs: ffi::Py_ssize_t,
    kwnames: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    guard(|| {
        // SAFETY: CPython calls it with an instance of the class, `nargs` arguments and as many more as there are names.
        unsafe {
            let py = token();
            let named = if kwnames.is_null() { 0 } else { ffi::PyTuple_GET_SIZE(kwnames) };
            let count = (nargs + named) as usize;
            let name = if is_plain(py, module)? { FORWARD.get() } else { CALL_IMPL.get() };
            let mut stack = smallvec::SmallVec::<[*mut ffi::PyObject; 8]>::with_capacity(count + 1);
            stack.push(module);
            if count > 0 {
                stack.extend_from_slice(std::slice::from_raw_parts(args, count));
            }
            let result = ffi::PyObject_VectorcallMethod(name, stack.as_ptr(), nargs as usize + 1, kwnames);
            if result.is_null() {
                return Err(Raised::already_set());
            }
            Ok(result)
        }
    })
}

/// Gives the class of all modules its `__call__`. The last class counts: `ptr.nn` may be imported anew.
#[pyfunction]
#[pyo3(name = "_bind_module_call")]
fn bind_module_call(class: &Bound<'_, PyType>) -> PyResult<()> {
    let py = class.py();
    for (known, name) in [(&CALL_IMPL, "_call_impl"), (&FORWARD, "forward"), (&HOOKED, "_hooked")] {
        known.set(intern_static(py, name)?);
    }
    for (known, name) in TABLES.iter().zip(TABLE_NAMES) {
        known.set(intern_static(py, name)?);
    }
    IMPLEMENTATION.set(immortal(class.getattr(intern!(py, "_call_impl")?)?));
    const NO_FLAGS: c_int = 0;
    // The descriptor keeps the address.
    let definition = Box::leak(Box::new(method_fast(c"__call__", call, NO_FLAGS)));
    definition.ml_doc = c"__call__($self, /, *args, **kwargs)\n--\n\nCall ``_call_impl``.".as_ptr();
    // SAFETY: a class, and a definition that lives for ever; the result is a new reference or null with an exception.
    let method =
        unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyDescr_NewMethod(class.as_type_ptr(), definition))? };
    class.setattr(intern!(py, "__call__")?, method)
}

/// Adds the function.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(bind_module_call, module)?)
}
