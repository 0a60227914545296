//! Attributes that tie a tensor to autograd.

use std::ffi::c_void;
use std::sync::OnceLock;

use ::ops::at;
use autograd::{variable, Node};
use c10::OperatorHold;
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict};

use super::attributes::{bool_ref, getter, int_ref};
use super::object::{self, PyTensor};
use super::{dispatch_modes_active, of_self, overridden_getter, overridden_setter};
use crate::convert::{ivalue, warnings};
use crate::raw::objects::NewError;
use crate::raw::{borrow, getset, guard, guard_int, token, Res};

/// Makes the Python object of a graph node, a new reference.
pub(crate) type GradFnWrapper = fn(Python<'_>, Node) -> Res<*mut ffi::PyObject>;

static GRAD_FN_WRAPPER: OnceLock<GradFnWrapper> = OnceLock::new();

/// Says how nodes are shown to Python; the first caller wins.
pub(crate) fn set_grad_fn_wrapper(wrapper: GradFnWrapper) {
    let _ = GRAD_FN_WRAPPER.set(wrapper);
}

const NON_LEAF_GRAD: &str = "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute \
    won't be populated during autograd.backward(). If you indeed want the .grad field to be populated for a non-leaf Tensor, \
    use .retain_grad() on the non-leaf Tensor. If you access the non-leaf Tensor by mistake, make sure you access the leaf \
    Tensor instead.";

getter!(requires_grad, "requires_grad", |_py, t| bool_ref(variable::requires_grad(t)));
getter!(is_leaf, "is_leaf", |_py, t| bool_ref(variable::is_leaf(t)?));
getter!(output_nr, "output_nr", |_py, t| int_ref(i64::from(variable::output_nr(t))));
getter!(retains_grad, "retains_grad", |_py, t| bool_ref(variable::retains_grad(t)));
getter!(version, "_version", |_py, t| int_ref(i64::from(t.version()?)));
getter!(base, "_base", |py, t| ivalue::into_python(py, variable::base(t).into()));
getter!(data, "data", |_py, t| object::wrap(match dispatch_modes_active() {
    // Modes see that the values are reached past the graph.
    true => at::detach(t)?,
    false => variable::variable_data(t)?,
}));
getter!(cdata, "_cdata", |_py, t| int_ref(t.as_ptr() as i64));
getter!(grad_fn, "grad_fn", |py, t| match variable::grad_fn(t)? {
    None => Ok(py.None().into_ptr()),
    Some(node) => match GRAD_FN_WRAPPER.get() {
        Some(wrap) => {
            // Whoever has the node can make it refer to the tensor, and the collector must see that cycle.
            // SAFETY: the object of this very tensor.
            unsafe { object::track(t.pyobj().cast()) };
            wrap(py, node)
        }
        None => Err(c10::Error::not_implemented("grad_fn: graph nodes are not available in Python").into()),
    },
});
getter!(grad, "grad", |py, t| {
    let grad = variable::grad(t);
    if grad.is_none() && !variable::retains_grad(t) && !variable::is_leaf_as_known(t) {
        warnings::warn(NON_LEAF_GRAD)?;
    }
    ivalue::into_python(py, grad.into())
});

/// Makes a fresh tensor require gradients, as the argument `requires_grad=True` asks.
pub(crate) fn require_grad(tensor: &c10::Tensor) -> Res<()> {
    if !variable::is_differentiable_type(tensor.dtype()) {
        let text = "Only Tensors of floating point and complex dtype can require gradients";
        return Err(PyRuntimeError::error(text).into());
    }
    Ok(variable::set_requires_grad(tensor, true)?)
}

unsafe extern "C" fn set_requires_grad(
    object: *mut ffi::PyObject,
    value: *mut ffi::PyObject,
    _: *mut c_void,
) -> std::ffi::c_int {
    guard_int(|| {
        // SAFETY: CPython calls setters of the type with its instances and a live value or null.
        if unsafe { overridden_setter(object, "requires_grad", value)? } {
            return Ok(0);
        }
        // SAFETY: CPython calls setters of the type with its instances and a live value or null.
        let tensor = unsafe { of_self(object) };
        let flag = match value.is_null() {
            true => None,
            // SAFETY: as above.
            false => unsafe { borrow(token(), value) }.cast::<PyBool>().ok().map(|v| v.is_true()),
        };
        let Some(flag) = flag else {
            return Err(PyRuntimeError::error("requires_grad must be a bool").into());
        };
        variable::set_requires_grad(tensor, flag)?;
        if flag {
            // SAFETY: as above.
            crate::autograd::register_assigned_hooks(&*unsafe { borrow(token(), object) })?;
        }
        Ok(0)
    })
}

unsafe extern "C" fn set_grad(
    object: *mut ffi::PyObject,
    value: *mut ffi::PyObject,
    _: *mut c_void,
) -> std::ffi::c_int {
    guard_int(|| {
        // SAFETY: CPython calls setters of the type with its instances and a live value or null.
        if unsafe { overridden_setter(object, "grad", value)? } {
            return Ok(0);
        }
        // SAFETY: CPython calls setters of the type with its instances and a live value or null.
        let tensor = unsafe { of_self(object) };
        // SAFETY: as above.
        let grad = match (!value.is_null()).then(|| unsafe { borrow(token(), value) }) {
            None => None,
            Some(value) if value.is_none() => None,
            Some(value) => match object::get(&value) {
                Some(grad) if grad.is_same(tensor) => {
                    return Err(PyRuntimeError::error("can't assign Variable as its own grad").into());
                }
                Some(grad) => Some(grad.clone()),
                None => {
                    let found = value.get_type().name()?;
                    let text =
                        format!("assigned grad expected to be a Tensor or None but got grad of type {found}");
                    return Err(PyTypeError::error(text).into());
                }
            },
        };
        variable::set_grad(tensor, grad)?;
        Ok(0)
    })
}

unsafe extern "C" fn set_data(
    object: *mut ffi::PyObject,
    value: *mut ffi::PyObject,
    _: *mut c_void,
) -> std::ffi::c_int {
    guard_int(|| {
        // SAFETY: CPython calls setters of the type with its instances and a live value or null.
        if unsafe { overridden_setter(object, "data", value)? } {
            return Ok(0);
        }
        if value.is_null() {
            return Err(
                PyRuntimeError::error("Deleting tensor data is not allowed. Delete tensor instead!").into()
            );
        }
        // SAFETY: CPython calls setters of the type with its instances and a live value.
        let (tensor, value) = unsafe { (of_self(object), borrow(token(), value)) };
        let Some(new_data) = object::get(&value) else {
            let found = value.get_type().name()?;
            return Err(
                PyTypeError::error(format!("Variable data has to be a tensor, but got {found}")).into()
            );
        };
        let _hold = OperatorHold::acquire(&[], std::slice::from_ref(tensor));
        variable::set_data(tensor, new_data)?;
        Ok(0)
    })
}

/// A getter and a setter for hooks that the object itself holds, and two functions that pass no one by.
macro_rules! hooks {
    ($get:ident, $set:ident, $read:ident, $store:ident, $field:ident, $text:literal, $assigned:path) => {
        getter!($get, $text, |py, t| {
            // SAFETY: the getter was called with the object of this very tensor.
            let object = unsafe { borrow(py, t.pyobj().cast()) };
            Ok($read(&object).map_or_else(|| py.None(), Bound::unbind).into_ptr())
        });

        unsafe extern "C" fn $set(
            object: *mut ffi::PyObject,
            value: *mut ffi::PyObject,
            _: *mut c_void,
        ) -> std::ffi::c_int {
            guard_int(|| {
                // SAFETY: CPython calls it with a tensor and a live value or null.
                unsafe {
                    if overridden_setter(object, $text, value)? {
                        return Ok(0);
                    }
                    if value.is_null() {
                        let text = concat!("Deletion of ", $text, " not allowed!");
                        return Err(PyRuntimeError::error(text).into());
                    }
                    let py = token();
                    let object = borrow(py, object);
                    let value = Some(borrow(py, value)).filter(|v| !v.is_none());
                    if let Some(value) = value.as_ref().filter(|v| !v.is_instance_of::<PyDict>()) {
                        let found = value.get_type().name()?;
                        let text = format!(concat!($text, " expected to be a dict or None, got {}"), found);
                        return Err(PyTypeError::error(text).into());
                    }
                    $store(&object, value.map(|v| v.to_owned()));
                    $assigned(&object)?;
                }
                Ok(0)
            })
        }

        /// The dict of hooks in the attribute, as it is.
        pub(crate) fn $read<'py>(object: &Bound<'py, PyAny>) -> Option<Bound<'py, PyAny>> {
            object::get(object)?;
            // SAFETY: a tensor, which holds its hooks.
            unsafe {
                Bound::from_borrowed_ptr_or_opt(object.py(), (*object.as_ptr().cast::<PyTensor>()).$field)
            }
        }

        /// Stores the dict of hooks in the attribute, without telling the engine.
        pub(crate) fn $store(object: &Bound<'_, PyAny>, dict: Option<Bound<'_, PyAny>>) {
            if object::get(object).is_none() {
                return;
            }
            let dict = dict.map_or(std::ptr::null_mut(), Bound::into_ptr);
            // SAFETY: a tensor; the old reference is given up last.
            unsafe {
                let old = std::mem::replace(&mut (*object.as_ptr().cast::<PyTensor>()).$field, dict);
                object::track(object.as_ptr());
                ffi::Py_XDECREF(old);
            }
        }
    };
}
hooks!(
    get_backward_hooks,
    set_backward_hooks,
    backward_hooks,
    store_backward_hooks,
    backward_hooks,
    "_backward_hooks",
    crate::autograd::backward_hooks_assigned
);
hooks!(
    get_post_accumulate_grad_hooks,
    set_post_accumulate_grad_hooks,
    post_accumulate_grad_hooks,
    store_post_accumulate_grad_hooks,
    post_accumulate_grad_hooks,
    "_post_accumulate_grad_hooks",
    crate::autograd::post_accumulate_grad_hooks_assigned
);

/// The table of attributes.
pub(super) fn table() -> [ffi::PyGetSetDef; 13] {
    [
        getset(c"requires_grad", requires_grad, Some(set_requires_grad)),
        getset(c"grad", grad, Some(set_grad)),
        getset(c"data", data, Some(set_data)),
        getset(c"is_leaf", is_leaf, None),
        getset(c"grad_fn", grad_fn, None),
        getset(c"_grad_fn", grad_fn, None),
        getset(c"output_nr", output_nr, None),
        getset(c"retains_grad", retains_grad, None),
        getset(c"_version", version, None),
        getset(c"_base", base, None),
        getset(c"_cdata", cdata, None),
        getset(c"_backward_hooks", get_backward_hooks, Some(set_backward_hooks)),
        getset(
            c"_post_accumulate_grad_hooks",
            get_post_accumulate_grad_hooks,
            Some(set_post_accumulate_grad_hooks),
        ),
    ]
}
