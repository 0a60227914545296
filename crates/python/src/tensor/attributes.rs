//! Attributes that describe a tensor, and those that are views of it.

use ::ops::at;
use std::ffi::c_void;

use c10::{Device, Tensor};
use pyo3::exceptions::PyRuntimeError;
use pyo3::ffi;
use pyo3::prelude::*;

use super::{object, of_self, overridden_getter};
use crate::convert::{device, dtype, layout, size};
use crate::raw::objects::NewError;
use crate::raw::{borrow, getset, guard, guard_int, token, Res};

/// Defines a getter. The body sees the interpreter and the tensor.
macro_rules! getter {
    ($name:ident, $text:literal, |$py:ident, $tensor:ident| $body:expr) => {
        pub(super) unsafe extern "C" fn $name(
            object: *mut ffi::PyObject,
            _: *mut c_void,
        ) -> *mut ffi::PyObject {
            guard(|| {
                // SAFETY: CPython calls getters of the type with its instances.
                let ($py, $tensor) = unsafe {
                    if let Some(result) = overridden_getter(object, $text)? {
                        return Ok(result);
                    }
                    (token(), of_self(object))
                };
                let _ = $py;
                $body
            })
        }
    };
}
pub(super) use getter;

/// A new reference to a truth value.
pub(super) fn bool_ref(value: bool) -> Res<*mut ffi::PyObject> {
    // SAFETY: always succeeds.
    Ok(unsafe { ffi::PyBool_FromLong(value.into()) })
}

/// A new reference to an integer.
pub(super) fn int_ref(value: i64) -> Res<*mut ffi::PyObject> {
    // SAFETY: a new reference, or null with the exception set, which the callers return as it is.
    Ok(unsafe { ffi::PyLong_FromLongLong(value) })
}

getter!(shape, "shape", |py, t| match t.sizes() {
    Ok(sizes) => size::from_ints(sizes),
    Err(_) => size::from_sym_ints(py, &t.sym_sizes()),
});
getter!(get_dtype, "dtype", |_py, t| Ok(dtype::new_ref(t.dtype())));
getter!(get_device, "device", |_py, t| device::new_ref(t.device()));
getter!(get_layout, "layout", |_py, t| Ok(layout::layout_new_ref(t.layout())));
getter!(ndim, "ndim", |_py, t| int_ref(t.dim()));
getter!(itemsize, "itemsize", |_py, t| int_ref(t.item_size() as i64));
getter!(nbytes, "nbytes", |_py, t| int_ref(t.nbytes()? as i64));

getter!(is_cpu, "is_cpu", |_py, t| bool_ref(t.is_cpu()));
getter!(is_cuda, "is_cuda", |_py, t| bool_ref(t.is_cuda()));
getter!(is_meta, "is_meta", |_py, t| bool_ref(t.is_meta()));
getter!(is_mps, "is_mps", |_py, t| bool_ref(t.device().is_mps()));
getter!(is_xpu, "is_xpu", |_py, t| bool_ref(t.device().is_xpu()));
getter!(is_sparse, "is_sparse", |_py, t| bool_ref(t.is_sparse()));
getter!(is_sparse_csr, "is_sparse_csr", |_py, t| bool_ref(t.layout() == c10::Layout::SparseCsr));
getter!(is_mkldnn, "is_mkldnn", |_py, t| bool_ref(t.layout() == c10::Layout::Mkldnn));
getter!(is_quantized, "is_quantized", |_py, t| bool_ref(t.is_quantized()));
getter!(is_nested, "is_nested", |_py, t| bool_ref(t.is_nested()));
getter!(never, "is_xla", |_py, _t| bool_ref(false));

getter!(transposed, "T", |_py, t| object::wrap(at::numpy_t(t)?));
getter!(matrix_h, "H", |_py, t| object::wrap(at::matrix_h(t)?));
getter!(m_t, "mT", |_py, t| object::wrap(at::mt(t)?));
getter!(m_h, "mH", |_py, t| object::wrap(at::mh(t)?));
getter!(real, "real", |_py, t| object::wrap(at::real(t)?));
getter!(imag, "imag", |_py, t| object::wrap(at::imag(t)?));

/// Writes to a part of a tensor: `x.real = y`.
fn set_part(part: fn(&Tensor) -> c10::Result<Tensor>, tensor: &Tensor, value: &Bound<'_, PyAny>) -> Res<()> {
    let part = part(tensor)?;
    match object::get(value) {
        Some(value) => at::copy_(&part, value, false)?,
        None => at::fill__scalar(&part, &crate::convert::scalar::to_scalar(value)?)?,
    };
    Ok(())
}

macro_rules! part_setter {
    ($name:ident, $part:expr, $text:literal) => {
        unsafe extern "C" fn $name(
            object: *mut ffi::PyObject,
            value: *mut ffi::PyObject,
            _: *mut c_void,
        ) -> std::ffi::c_int {
            guard_int(|| {
                if value.is_null() {
                    return Err(PyRuntimeError::error(concat!("cannot delete ", $text)).into());
                }
                // SAFETY: CPython calls setters of the type with its instances and a live value.
                let (tensor, value) = unsafe { (of_self(object), borrow(token(), value)) };
                set_part($part, tensor, &value)?;
                Ok(0)
            })
        }
    };
}
part_setter!(set_real, at::real, "real");
part_setter!(set_imag, at::imag, "imag");

/// `__dict__`: whoever holds it can make a cycle, so the tensor is tracked from then on.
unsafe extern "C" fn get_dict(object: *mut ffi::PyObject, closure: *mut c_void) -> *mut ffi::PyObject {
    // SAFETY: CPython calls it with a tensor.
    unsafe {
        object::track(object);
        ffi::PyObject_GenericGetDict(object, closure)
    }
}

unsafe extern "C" fn set_dict(
    object: *mut ffi::PyObject,
    value: *mut ffi::PyObject,
    closure: *mut c_void,
) -> std::ffi::c_int {
    // SAFETY: as above.
    unsafe {
        object::track(object);
        ffi::PyObject_GenericSetDict(object, value, closure)
    }
}

/// tp_setattro: a tensor with attributes of its own is tracked.
pub(super) unsafe extern "C" fn setattro(
    object: *mut ffi::PyObject,
    name: *mut ffi::PyObject,
    value: *mut ffi::PyObject,
) -> std::ffi::c_int {
    // SAFETY: CPython calls it with a tensor.
    unsafe {
        let result = ffi::PyObject_GenericSetAttr(object, name, value);
        if !(*object.cast::<object::PyTensor>()).dict.is_null() {
            object::track(object);
        }
        result
    }
}

/// The index that `get_device()` returns.
pub(super) fn device_index(device: Device) -> i64 {
    i64::from(device.index)
}

/// The table of attributes.
pub(super) fn table() -> Vec<ffi::PyGetSetDef> {
    let read_only: [(&'static std::ffi::CStr, ffi::getter); 27] = [
        (c"shape", shape),
        (c"dtype", get_dtype),
        (c"device", get_device),
        (c"layout", get_layout),
        (c"ndim", ndim),
        (c"itemsize", itemsize),
        (c"nbytes", nbytes),
        (c"is_cpu", is_cpu),
        (c"is_cuda", is_cuda),
        (c"is_meta", is_meta),
        (c"is_mps", is_mps),
        (c"is_xpu", is_xpu),
        (c"is_sparse", is_sparse),
        (c"is_sparse_csr", is_sparse_csr),
        (c"is_mkldnn", is_mkldnn),
        (c"is_quantized", is_quantized),
        (c"is_nested", is_nested),
        (c"is_xla", never),
        (c"is_ipu", never),
        (c"is_maia", never),
        (c"is_vulkan", never),
        (c"is_mtia", never),
        (c"is_hpu", never),
        (c"T", transposed),
        (c"H", matrix_h),
        (c"mT", m_t),
        (c"mH", m_h),
    ];
    let mut table: Vec<_> = read_only.into_iter().map(|(name, get)| getset(name, get, None)).collect();
    table.push(getset(c"real", real, Some(set_real)));
    table.push(getset(c"imag", imag, Some(set_imag)));
    table.push(getset(c"__dict__", get_dict, Some(set_dict)));
    table
}
