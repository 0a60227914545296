//! `ptr.return_types`: the named tuples of operators that return several named values.

use std::collections::HashMap;
use std::ffi::CString;

use dispatch::Stack;
use parking_lot::Mutex;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::convert::ivalue;
use crate::gen::{bindings, Binding};
use crate::raw::objects::{self, intern};
use crate::raw::{borrow, guard, owned, token, Raised, Res, TextArgument};

/// The types made so far, by name. Addresses of types that live for ever.
static TYPES: Mutex<Option<HashMap<&'static str, usize>>> = Mutex::new(None);

/// The named tuple with what is on the stack.
pub(super) fn make(py: Python<'_>, binding: &'static Binding, stack: &mut Stack) -> Res<*mut ffi::PyObject> {
    let type_ = type_of(py, binding)?;
    // SAFETY: a structure sequence of as many fields as there are values; all are set before it is seen.
    unsafe {
        let result = owned(py, ffi::PyStructSequence_New(type_))?;
        for (i, value) in stack.iter_mut().enumerate() {
            let item = ivalue::into_python(py, std::mem::take(value))?;
            ffi::PyStructSequence_SetItem(result.as_ptr(), i as ffi::Py_ssize_t, item);
        }
        Ok(result.into_ptr())
    }
}

/// The type for a binding, made when first needed.
fn type_of(py: Python<'_>, binding: &'static Binding) -> Res<*mut ffi::PyTypeObject> {
    if let Some(type_) = TYPES.lock().get_or_insert_with(HashMap::new).get(binding.name) {
        return Ok(*type_ as *mut ffi::PyTypeObject);
    }
    let type_ = new_type(binding)?;
    // In-place and plain forms of a name never both return named values, so the names are unique.
    let type_ = *TYPES.lock().get_or_insert_with(HashMap::new).entry(binding.name).or_insert(type_ as usize);
    let type_ = type_ as *mut ffi::PyTypeObject;
    // SAFETY: a live type.
    unsafe { borrow(py, type_.cast()) }.setattr(intern!(py, "__module__")?, "ptr.return_types")?;
    Ok(type_)
}

fn new_type(binding: &Binding) -> Res<*mut ffi::PyTypeObject> {
    let leak = |text: String| CString::new(text).unwrap_or_default().into_raw().cast_const();
    let mut fields: Vec<ffi::PyStructSequence_Field> = binding
        .return_fields
        .iter()
        .map(|name| ffi::PyStructSequence_Field { name: leak((*name).to_owned()), doc: std::ptr::null() })
        .collect();
    fields.push(ffi::PyStructSequence_Field { name: std::ptr::null(), doc: std::ptr::null() });
    let mut desc = ffi::PyStructSequence_Desc {
        name: leak(format!("ptr.return_types.{}", binding.name)),
        doc: std::ptr::null(),
        fields: fields.leak().as_mut_ptr(),
        n_in_sequence: binding.return_fields.len() as std::ffi::c_int,
    };
    // SAFETY: the description is complete, and what it points to lives for ever.
    unsafe {
        let type_ = ffi::PyStructSequence_NewType(&mut desc);
        if type_.is_null() {
            return Err(Raised::already_set());
        }
        (*type_).tp_repr = Some(repr);
        ffi::PyType_Modified(type_);
        Ok(type_)
    }
}

/// One field per line.
unsafe extern "C" fn repr(object: *mut ffi::PyObject) -> *mut ffi::PyObject {
    guard(|| {
        // SAFETY: CPython calls it with a structure sequence, which is a tuple.
        let object = unsafe { borrow(token(), object) };
        let type_ = object.get_type();
        let name = type_.name()?.to_string();
        let fields = type_.getattr(intern!(type_.py(), "__match_args__")?)?;
        let items: Vec<String> = object
            .cast::<PyTuple>()?
            .iter()
            .zip(fields.cast::<PyTuple>()?.iter())
            .map(|(value, field)| Ok::<_, Raised>(format!("{field}={}", value.repr()?)))
            .collect::<Res<_>>()?;
        Ok(objects::string(object.py(), &format!("ptr.return_types.{name}(\n{})", items.join(",\n")))?
            .into_ptr())
    })
}

/// The type of that name, for `ptr.return_types.<name>`.
#[pyfunction]
fn _return_type<'py>(py: Python<'py>, name: TextArgument<'_>) -> Res<Bound<'py, PyAny>> {
    let binding = bindings().find(|b| b.name == &*name && !b.return_fields.is_empty());
    match binding {
        // SAFETY: types made here live for ever.
        Some(binding) => Ok(unsafe { borrow(py, type_of(py, binding)?.cast()) }.to_owned()),
        None => {
            Err(c10::Error::attribute(format!("module 'ptr.return_types' has no attribute '{name}'")).into())
        }
    }
}

/// Adds the function that finds types by name.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(_return_type, module)?)
}
