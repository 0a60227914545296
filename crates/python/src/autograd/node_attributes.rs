//! Attributes and methods that all node objects have.

use std::ffi::{c_void, CStr};
use std::sync::Arc;

use autograd::basic_nodes::{DelayedError, GraphRoot, UndefinedGrad};
use autograd::{AccumulateGrad, CopySlices, InputMetadata, Node, SavedMeta, SavedValue};
use c10::{SymInt, TensorOptions};
use pyo3::exceptions::{PyAttributeError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple};

use super::hooks::{self, PyPostHook, PyPreHook};
use super::node_object::{self, of_self, wrap_bound};
use super::{anomaly, raw_saved, tensor_hooks};
use crate::convert::{device, dtype, ivalue, layout, scalar, size};
use crate::raw::objects::{self, intern, NewError};
use crate::raw::{borrow, getset, guard, method_noargs, owned, token, Res};
use crate::tensor;

/// Defines an attribute. The body sees the interpreter and the node.
macro_rules! attribute {
    ($name:ident, |$py:ident, $node:ident| $body:expr) => {
        unsafe extern "C" fn $name(object: *mut ffi::PyObject, _: *mut c_void) -> *mut ffi::PyObject {
            guard(|| {
                // SAFETY: CPython calls it with an instance.
                let ($py, $node) = unsafe { (token(), of_self(object)) };
                let result: Bound<'_, PyAny> = $body;
                Ok(result.into_ptr())
            })
        }
    };
}

/// Defines a method without arguments.
macro_rules! method0 {
    ($name:ident, |$py:ident, $node:ident| $body:expr) => {
        unsafe extern "C" fn $name(object: *mut ffi::PyObject, _: *mut ffi::PyObject) -> *mut ffi::PyObject {
            guard(|| {
                // SAFETY: CPython calls it with an instance.
                let ($py, $node) = unsafe { (token(), of_self(object)) };
                let result: Bound<'_, PyAny> = $body;
                Ok(result.into_ptr())
            })
        }
    };
}

/// Defines a method with one argument.
macro_rules! method1 {
    ($name:ident, |$py:ident, $node:ident, $argument:ident| $body:expr) => {
        unsafe extern "C" fn $name(
            object: *mut ffi::PyObject,
            argument: *mut ffi::PyObject,
        ) -> *mut ffi::PyObject {
            guard(|| {
                // SAFETY: CPython calls it with an instance and one argument, holding the lock.
                let arguments = unsafe { (token(), of_self(object), borrow(token(), argument)) };
                let ($py, $node, $argument) = arguments;
                let result: Bound<'_, PyAny> = $body;
                Ok(result.into_ptr())
            })
        }
    };
}

/// Edges as `((node, input number), ...)`.
fn edges_to_python<'py>(py: Python<'py>, node: &Node) -> Res<Bound<'py, PyAny>> {
    let edges = node.next_edges();
    objects::tuple_of(py, edges.len(), |i| {
        let function = match &edges[i].function {
            Some(function) => wrap_bound(py, function.clone())?,
            None => py.None().into_bound(py),
        };
        Ok(objects::tuple(py, [function, objects::int(py, edges[i].input_nr.into())?.into_any()])?.into_ptr())
    })
}

attribute!(next_functions, |py, node| edges_to_python(py, &node)?);
attribute!(metadata, |py, node| anomaly::metadata_of(py, &node)?);
attribute!(requires_grad, |py, _node| objects::boolean(py, true));
attribute!(input_metadata, |py, node| {
    let list = objects::empty_list(py)?;
    for metadata in node.inputs() {
        list.append(Bound::new(py, PyInputMetadata { metadata: metadata.clone() })?)?;
    }
    list.into_any()
});
attribute!(variable, |py, node| match node.function::<AccumulateGrad>() {
    Some(accumulate) => tensor::wrap_bound(py, accumulate.variable.clone())?,
    None => {
        let text = format!("'{}' object has no attribute 'variable'", node.name());
        return Err(PyAttributeError::error(text).into());
    }
});

/// The name that `name()` gives: nodes that are not made from operators carry PyTorch's namespace.
fn full_name(node: &Node) -> String {
    let name = node.name();
    let is_built_in = node.function::<AccumulateGrad>().is_some()
        || node.function::<CopySlices>().is_some()
        || node.function::<DelayedError>().is_some()
        || node.function::<UndefinedGrad>().is_some()
        || node.function::<GraphRoot>().is_some();
    if is_built_in {
        format!("torch::autograd::{name}")
    } else {
        name
    }
}

method0!(name, |py, node| objects::string(py, &full_name(&node))?.into_any());
method0!(sequence_nr, |py, node| objects::unsigned(py, node.sequence_nr())?.into_any());
method1!(set_sequence_nr, |py, node, nr| {
    node.set_sequence_nr(nr.extract()?);
    py.None().into_bound(py)
});

method1!(register_hook, |py, node, hook| {
    let existing = hooks::find_dict(&node, |any| any.downcast_ref::<PyPostHook>().map(|h| &h.0));
    hooks::add(py, existing, &hook, |dict| {
        node.register_hook(Arc::new(PyPostHook(dict)));
    })?
});
method1!(register_prehook, |py, node, hook| {
    let existing = hooks::find_dict(&node, |any| any.downcast_ref::<PyPreHook>().map(|h| &h.0));
    hooks::add(py, existing, &hook, |dict| {
        node.register_prehook(Arc::new(PyPreHook(dict)));
    })?
});
method1!(register_hook_dict, |py, _node, object| {
    let Some(tensor) = tensor::get(&object) else {
        return Err(PyTypeError::error("_register_hook_dict expected a variable").into());
    };
    tensor_hooks::register_dict(&object, tensor)?;
    py.None().into_bound(py)
});

/// tp_call: runs the node.
pub(super) unsafe extern "C" fn call(
    object: *mut ffi::PyObject,
    args: *mut ffi::PyObject,
    kwargs: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    guard(|| {
        // SAFETY: CPython calls it with an instance, a tuple, and a dict or null.
        let (py, node, args, has_kwargs) = unsafe {
            let py = token();
            let has_kwargs = !kwargs.is_null() && ffi::PyDict_Size(kwargs) > 0;
            (py, of_self(object), borrow(py, args), has_kwargs)
        };
        if has_kwargs {
            return Err(PyTypeError::error("keyword arguments are not supported").into());
        }
        let args = args.cast::<PyTuple>()?;
        let grads = hooks::grads_from_python(&args, |_| "expected Tensor or None".to_owned())?;
        let results = py.detach(|| node.apply(grads))?;
        crate::convert::warnings::emit_pending()?;
        match results.len() {
            1 => ivalue::into_python(py, results[0].clone().into()),
            n => {
                Ok(objects::tuple_of(py, n, |i| ivalue::into_python(py, results[i].clone().into()))?
                    .into_ptr())
            }
        }
    })
}

/// `__dir__`: the class's names and those of the saved values.
unsafe extern "C" fn dir(object: *mut ffi::PyObject, _: *mut ffi::PyObject) -> *mut ffi::PyObject {
    guard(|| {
        // SAFETY: CPython calls it with an instance.
        let (py, node, object) = unsafe { (token(), of_self(object), borrow(token(), object)) };
        let base = py.get_type::<PyAny>().call_method1(intern!(py, "__dir__")?, (object,))?;
        let names = base.cast::<PyList>()?;
        for name in node.saved_attributes() {
            names.append(format!("_saved_{name}"))?;
            if node.raw_saved(&name).is_some() {
                names.append(format!("_raw_saved_{name}"))?;
            }
        }
        Ok(base.into_ptr())
    })
}

/// A method with one argument.
fn method_o(name: &'static CStr, function: ffi::PyCFunction) -> ffi::PyMethodDef {
    let ml_meth = ffi::PyMethodDefPointer { PyCFunction: function };
    ffi::PyMethodDef { ml_name: name.as_ptr(), ml_meth, ml_flags: ffi::METH_O, ml_doc: std::ptr::null() }
}

/// The methods of the base class.
pub(super) fn methods() -> Vec<ffi::PyMethodDef> {
    vec![
        method_noargs(c"name", name),
        method_noargs(c"_sequence_nr", sequence_nr),
        method_o(c"_set_sequence_nr", set_sequence_nr),
        method_o(c"register_hook", register_hook),
        method_o(c"register_prehook", register_prehook),
        method_o(c"_register_hook_dict", register_hook_dict),
        method_noargs(c"__dir__", dir),
    ]
}

/// The attributes of the base class.
pub(super) fn attributes() -> Vec<ffi::PyGetSetDef> {
    vec![
        getset(c"next_functions", next_functions, None),
        getset(c"metadata", metadata, None),
        getset(c"requires_grad", requires_grad, None),
        getset(c"_input_metadata", input_metadata, None),
        getset(c"variable", variable, None),
    ]
}

/// `_saved_<name>` and `_raw_saved_<name>`; `None` when the node has no such value.
pub(super) fn saved<'py>(
    py: Python<'py>,
    node: &Node,
    name: &Bound<'py, PyAny>,
) -> Res<Option<Bound<'py, PyAny>>> {
    let name = name.cast::<PyString>()?.to_str()?;
    if let Some(name) = name.strip_prefix("_raw_saved_") {
        return raw_saved::get(py, node, name);
    }
    let Some(name) = name.strip_prefix("_saved_") else { return Ok(None) };
    if !node.saved_attributes().iter().any(|n| n == name) {
        return Ok(None);
    }
    Ok(Some(saved_to_python(py, node.saved_attribute(name)?)?))
}

fn saved_to_python(py: Python<'_>, value: SavedValue) -> Res<Bound<'_, PyAny>> {
    Ok(match value {
        SavedValue::None => py.None().into_bound(py),
        SavedValue::Tensor(t) => tensor::wrap_bound(py, t)?,
        SavedValue::TensorList(list) => {
            objects::tuple_of(py, list.len(), |i| ivalue::into_python(py, list[i].clone().into()))?
        }
        SavedValue::Value(value) => match ivalue::into_bound(py, value)? {
            list if list.is_instance_of::<PyList>() => {
                objects::tuple(list.py(), list.cast::<PyList>()?.iter())?.into_any()
            }
            other => other,
        },
        SavedValue::SymSizes(sizes) => sym_ints(py, &sizes)?,
        SavedValue::Meta(meta) => meta_to_python(py, &meta)?,
    })
}

fn sym_ints<'py>(py: Python<'py>, values: &[SymInt]) -> Res<Bound<'py, PyAny>> {
    objects::tuple_of(py, values.len(), |i| Ok(scalar::sym_int_to_python(py, &values[i])?.into_ptr()))
}

fn meta_to_python<'py>(py: Python<'py>, meta: &SavedMeta) -> Res<Bound<'py, PyAny>> {
    Ok(match meta {
        SavedMeta::SymInts(values) => sym_ints(py, values)?,
        SavedMeta::SymInt(value) => scalar::sym_int_to_python(py, value)?,
        SavedMeta::ScalarType(value) => dtype::object(py, *value),
        SavedMeta::Options(options) => options_to_python(py, options)?,
        SavedMeta::Int(value) => objects::int(py, *value)?.into_any(),
        SavedMeta::Device(value) => device::object(py, *value)?,
        // SAFETY: a new reference.
        SavedMeta::Layout(value) => unsafe { owned(py, layout::layout_new_ref(*value))? },
        // SAFETY: a new reference.
        SavedMeta::MemoryFormat(value) => unsafe { owned(py, layout::memory_format_new_ref(*value))? },
        SavedMeta::Bool(value) => objects::boolean(py, *value),
        SavedMeta::ListSizes(list) => {
            objects::tuple_of(py, list.len(), |i| size::from_sym_ints(py, &list[i]))?
        }
        SavedMeta::ListScalarTypes(list) => {
            objects::tuple_of(py, list.len(), |i| Ok(dtype::new_ref(list[i])))?
        }
    })
}

fn options_to_python<'py>(py: Python<'py>, options: &TensorOptions) -> Res<Bound<'py, PyAny>> {
    let dict = objects::dict(py)?;
    dict.set_item(intern!(py, "dtype")?, dtype::object(py, options.dtype_or_default()))?;
    dict.set_item(intern!(py, "device")?, device::object(py, options.device_or_default())?)?;
    if let Some(value) = options.layout {
        // SAFETY: a new reference.
        dict.set_item(intern!(py, "layout")?, unsafe { owned(py, layout::layout_new_ref(value))? })?;
    }
    Ok(dict.into_any())
}

/// What a node knows of one of its inputs.
#[pyclass(name = "_InputMetadata", module = "ptr._C._autograd", frozen, skip_from_py_object)]
struct PyInputMetadata {
    metadata: InputMetadata,
}

#[pymethods]
impl PyInputMetadata {
    #[getter]
    fn dtype<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        dtype::object(py, self.metadata.dtype())
    }
    #[getter]
    fn device<'py>(&self, py: Python<'py>) -> Res<Bound<'py, PyAny>> {
        device::object(py, self.metadata.device())
    }
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> Res<Bound<'py, PyAny>> {
        // SAFETY: a new reference.
        unsafe { owned(py, size::from_sym_ints(py, &self.metadata.sym_sizes())?) }
    }
    #[getter]
    fn is_tensor_subclass(&self) -> bool {
        self.metadata.is_tensor_subclass()
    }
}

/// A node given as an argument.
pub(super) fn node_argument(object: &Bound<'_, PyAny>, function: &str) -> Res<Node> {
    match node_object::get(object) {
        Some(node) => Ok(node),
        None => {
            let found = object.get_type().name()?;
            Err(PyTypeError::error(format!("{function}: expected a graph node, got {found}")).into())
        }
    }
}
