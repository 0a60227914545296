//! Makes the type `ptr.Tensor`.

use pyo3::ffi;
use pyo3::prelude::*;

use super::object::{PyTensor, TENSOR};
use super::{attributes, autograd_attributes, construct, conversions, interpreter, methods, number, object};
use crate::raw::objects::intern;
use crate::raw::{Res, TypeBuilder};

/// Makes the type and tells the core about the interpreter.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> Res<()> {
    let py = module.py();
    interpreter::register()?;
    let builder = TypeBuilder::new::<PyTensor>(c"ptr.Tensor")
        .flags(ffi::Py_TPFLAGS_BASETYPE | ffi::Py_TPFLAGS_HAVE_GC)
        .doc(c"A multi-dimensional array of elements of one dtype.")
        .offset(c"__dictoffset__", std::mem::offset_of!(PyTensor, dict))
        .offset(c"__weaklistoffset__", std::mem::offset_of!(PyTensor, weaklist))
        .slot(ffi::Py_tp_new, construct::new as *const ())
        .slot(ffi::Py_tp_dealloc, object::dealloc as *const ())
        .slot(ffi::Py_tp_traverse, object::traverse as *const ())
        .slot(ffi::Py_tp_clear, object::clear as *const ())
        .getsets(attributes::table())
        .getsets(autograd_attributes::table())
        .methods(methods::table());
    TENSOR.set(number::slots(builder).build(py, None)?);
    let type_ = TENSOR.bound(py);
    type_.setattr(intern!(py, "__array_priority__")?, 1000)?;
    module.add("Tensor", &type_)?;
    module.add("TensorBase", &type_)?;
    Ok(())
}

/// Adds the functions beside the methods; the namespaces of operators exist by now.
pub(crate) fn register_functions(module: &Bound<'_, PyModule>) -> Res<()> {
    construct::register(module)?;
    Ok(conversions::register(module)?)
}
