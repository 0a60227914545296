//! Methods that only look at metadata, or that no operator declares. They do not go through the dispatcher.

use ::ops::at;
use autograd::variable;
use c10::MemoryFormat;
use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;

use super::attributes::{bool_ref, device_index, int_ref};
use super::{construct, conversions, number, object, of_self, overridden_method};
use crate::convert::{layout, scalar, size};
use crate::raw::arguments::{flag, wrong_type};
use crate::raw::objects::{self, NewError};
use crate::raw::{borrow, guard, method_fast, method_kw, method_noargs, token, Res};

/// Defines a method without arguments. The body sees the interpreter and the tensor.
macro_rules! metadata_method {
    ($name:ident, $text:literal, |$py:ident, $tensor:ident| $body:expr) => {
        unsafe extern "C" fn $name(object: *mut ffi::PyObject, _: *mut ffi::PyObject) -> *mut ffi::PyObject {
            guard(|| {
                // SAFETY: CPython calls methods of the type with its instances.
                let ($py, $tensor) = unsafe {
                    if let Some(result) =
                        overridden_method(object, $text, std::ptr::null(), 0, std::ptr::null_mut())?
                    {
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

/// Defines a method with arguments. The body sees the interpreter, the tensor, the object and the arguments.
macro_rules! method {
    ($name:ident, $text:literal, [$($param:literal),*], $positional:literal, |$py:ident, $tensor:ident, $object:ident, $args:pat_param| $body:expr) => {
        pub(super) unsafe extern "C" fn $name(
            $object: *mut ffi::PyObject,
            args: *const *mut ffi::PyObject,
            nargs: ffi::Py_ssize_t,
            keywords: *mut ffi::PyObject,
        ) -> *mut ffi::PyObject {
            crate::raw::guard(|| {
                // SAFETY: CPython calls methods of the type with its instances and the arguments of a fast call.
                let ($py, $tensor, $args) = unsafe {
                    if let Some(result) = crate::tensor::overridden_method($object, $text, args, nargs, keywords)? {
                        return Ok(result);
                    }
                    let py = crate::raw::token();
                    let names = [$($param),*];
                    let values = crate::raw::arguments::unpack(py, $text, names, $positional, args, nargs, keywords)?;
                    (py, crate::tensor::of_self($object), values)
                };
                let _ = $py;
                $body
            })
        }
    };
}
pub(super) use method;

metadata_method!(dim, "dim", |_py, t| int_ref(t.dim()));
metadata_method!(numel, "numel", |py, t| match t.numel() {
    Ok(numel) => int_ref(numel),
    Err(_) => Ok(scalar::sym_int_to_python(py, &t.sym_numel())?.into_ptr()),
});
metadata_method!(storage_offset, "storage_offset", |_py, t| int_ref(t.storage_offset()?));
metadata_method!(element_size, "element_size", |_py, t| int_ref(t.item_size() as i64));
metadata_method!(get_device, "get_device", |_py, t| int_ref(device_index(t.device())));
metadata_method!(is_floating_point, "is_floating_point", |_py, t| bool_ref(t.is_floating_point()));
metadata_method!(is_complex, "is_complex", |_py, t| bool_ref(t.is_complex()));
metadata_method!(is_signed, "is_signed", |_py, t| bool_ref(t.is_signed()));
metadata_method!(is_conj, "is_conj", |_py, t| bool_ref(t.is_conj()));
metadata_method!(is_neg, "is_neg", |_py, t| bool_ref(t.is_neg()));
metadata_method!(is_inference, "is_inference", |_py, t| bool_ref(t.is_inference()));
metadata_method!(is_view, "_is_view", |_py, t| bool_ref(variable::is_view(t)));
metadata_method!(has_names, "has_names", |_py, _t| bool_ref(false));
metadata_method!(is_pinned, "_is_pinned", |_py, t| {
    bool_ref(t.is_cpu() && t.has_storage() && c10::is_pinned_ptr(t.const_data_ptr()))
});
metadata_method!(is_zerotensor, "_is_zerotensor", |_py, t| bool_ref(t.is_zerotensor()));
metadata_method!(item, "item", |py, t| Ok(scalar::scalar_to_python(py, &super::item(t)?)?.into_ptr()));
metadata_method!(tolist, "tolist", |py, t| crate::data::tolist(py, t));
metadata_method!(data_ptr, "data_ptr", |_py, t| {
    if !t.has_storage() && !t.is_meta() {
        let text = "Cannot access data pointer of Tensor that doesn't have storage";
        return Err(c10::Error::runtime(text).into());
    }
    if let Some(storage) = t.unsafe_storage() {
        // Whoever gets the address may write.
        storage.materialize()?;
    }
    int_ref(t.data_ptr() as i64)
});
metadata_method!(untyped_storage, "untyped_storage", |py, t| {
    Ok(crate::storage::wrap(py, t.storage()?.clone())?.into_ptr())
});
metadata_method!(retain_grad, "retain_grad", |py, t| {
    variable::retain_grad(t)?;
    Ok(py.None().into_ptr())
});

unsafe extern "C" fn detach_(object: *mut ffi::PyObject, _: *mut ffi::PyObject) -> *mut ffi::PyObject {
    guard(|| {
        // SAFETY: CPython calls it with an instance of the type.
        unsafe {
            if let Some(result) =
                overridden_method(object, "detach_", std::ptr::null(), 0, std::ptr::null_mut())?
            {
                return Ok(result);
            }
            variable::detach_(of_self(object))?;
            ffi::Py_INCREF(object);
        }
        Ok(object)
    })
}

/// A dimension given as an argument.
fn dim_argument(function: &str, object: &Bound<'_, PyAny>) -> Res<i64> {
    if !scalar::is_int_like(object) && !super::get(object).is_some_and(|t| t.dtype().is_integral(false)) {
        return Err(wrong_type(function, "dim", Some(1), "int", object));
    }
    scalar::to_i64(object)
}

method!(get_size, "size", ["dim"], 1, |py, t, _object, [dim]| match dim {
    Some(dim) if !dim.is_none() => {
        let dim = dim_argument("size", &dim)?;
        match t.size(dim) {
            Ok(size) => int_ref(size),
            Err(error) if !t.has_symbolic_sizes_strides() => Err(error.into()),
            Err(_) => Ok(scalar::sym_int_to_python(py, &t.sym_size(dim)?)?.into_ptr()),
        }
    }
    _ => match t.sizes() {
        Ok(sizes) => size::from_ints(sizes),
        Err(_) => size::from_sym_ints(py, &t.sym_sizes()),
    },
});

method!(get_stride, "stride", ["dim"], 1, |py, t, _object, [dim]| match dim {
    Some(dim) if !dim.is_none() => int_ref(t.stride(dim_argument("stride", &dim)?)?),
    _ => {
        let strides = t.strides()?;
        Ok(objects::tuple_of(py, strides.len(), |i| int_ref(strides[i]))?.into_ptr())
    }
});

method!(is_contiguous, "is_contiguous", ["memory_format"], 1, |_py, t, _object, [format]| match format {
    None => bool_ref(t.is_contiguous()),
    Some(object) => match layout::extract_memory_format(&object) {
        Some(MemoryFormat::Preserve) => {
            Err(c10::Error::runtime(
                "is_contiguous(): preserve memory format is unsupported by this operator",
            )
            .into())
        }
        Some(format) => bool_ref(t.is_contiguous_in(format)),
        None => Err(wrong_type("is_contiguous", "memory_format", None, "torch.memory_format", &object)),
    },
});

method!(requires_grad_, "requires_grad_", ["requires_grad"], 1, |py, t, object, [value]| {
    let value = flag("requires_grad_", "requires_grad", Some(1), value.as_deref(), true)?;
    variable::set_requires_grad(t, value)?;
    if value {
        // SAFETY: a live object.
        crate::autograd::register_assigned_hooks(&*unsafe { borrow(py, object) })?;
    }
    // SAFETY: a live object.
    unsafe { ffi::Py_INCREF(object) };
    Ok(object)
});

method!(numpy, "numpy", ["force"], 0, |py, t, _object, [force]| {
    let force = flag("numpy", "force", None, force.as_deref(), false)?;
    Ok(crate::data::to_numpy(py, t, force)?.into_ptr())
});

method!(is_set_to, "is_set_to", ["tensor"], 1, |_py, t, _object, [other]| {
    let Some(other) = other.as_deref().and_then(super::get) else {
        return Err(PyTypeError::error("is_set_to(): argument 'tensor' (position 1) must be Tensor").into());
    };
    let same = t.is_alias_of(other)
        && t.storage_offset()? == other.storage_offset()?
        && t.sizes()? == other.sizes()?
        && t.strides()? == other.strides()?;
    bool_ref(same)
});

method!(
    new_tensor,
    "new_tensor",
    ["data", "dtype", "device", "requires_grad", "layout", "pin_memory"],
    1,
    |py, t, _object, [data, dtype, device, requires_grad, _layout, pin_memory]| {
        let Some(data) = data else {
            return Err(
                PyTypeError::error("new_tensor() missing 1 required positional arguments: \"data\"").into()
            );
        };
        let dtype = conversions::dtype_argument("new_tensor", dtype.as_deref())?.unwrap_or(t.dtype());
        let device = match device.filter(|d| !d.is_none()) {
            Some(device) => crate::convert::device::extract(&device)?,
            None => t.device(),
        };
        let mut tensor = crate::data::new_tensor(py, &data, Some(dtype), Some(device))?;
        if flag("new_tensor", "pin_memory", None, pin_memory.as_deref(), false)? {
            tensor = crate::data::pinned(&tensor)?;
        }
        if flag("new_tensor", "requires_grad", None, requires_grad.as_deref(), false)? {
            super::require_grad(&tensor)?;
        }
        object::wrap(tensor)
    }
);

method!(contiguous, "contiguous", ["memory_format"], 0, |_py, t, object, [format]| {
    let format = match format {
        None => MemoryFormat::Contiguous,
        Some(object) => match layout::extract_memory_format(&object) {
            Some(format) => format,
            None => {
                return Err(wrong_type("contiguous", "memory_format", None, "torch.memory_format", &object))
            }
        },
    };
    // The usual case: nothing to do, and no need to ask the dispatcher.
    if format != MemoryFormat::Preserve && t.is_contiguous_in(format) {
        // SAFETY: a live object.
        unsafe { ffi::Py_INCREF(object) };
        return Ok(object);
    }
    super::wrap(at::contiguous(t, format)?)
});

/// The table of methods.
pub(super) fn table() -> Vec<ffi::PyMethodDef> {
    let mut table = vec![
        method_noargs(c"dim", dim),
        method_noargs(c"ndimension", dim),
        method_noargs(c"numel", numel),
        method_noargs(c"nelement", numel),
        method_noargs(c"storage_offset", storage_offset),
        method_noargs(c"element_size", element_size),
        method_noargs(c"get_device", get_device),
        method_noargs(c"is_floating_point", is_floating_point),
        method_noargs(c"is_complex", is_complex),
        method_noargs(c"is_signed", is_signed),
        method_noargs(c"is_conj", is_conj),
        method_noargs(c"is_neg", is_neg),
        method_noargs(c"is_inference", is_inference),
        method_noargs(c"_is_view", is_view),
        method_noargs(c"has_names", has_names),
        method_noargs(c"_is_pinned", is_pinned),
        method_noargs(c"_is_zerotensor", is_zerotensor),
        method_noargs(c"item", item),
        method_noargs(c"tolist", tolist),
        method_noargs(c"data_ptr", data_ptr),
        method_noargs(c"untyped_storage", untyped_storage),
        method_noargs(c"retain_grad", retain_grad),
        method_noargs(c"detach_", detach_),
        method_noargs(c"__complex__", number::to_complex),
        method_fast(c"size", get_size, 0),
        method_fast(c"stride", get_stride, 0),
        method_fast(c"is_contiguous", is_contiguous, 0),
        method_fast(c"contiguous", contiguous, 0),
        method_fast(c"requires_grad_", requires_grad_, 0),
        method_fast(c"numpy", numpy, 0),
        method_fast(c"is_set_to", is_set_to, 0),
        method_fast(c"new_tensor", new_tensor, 0),
        method_kw(c"new", construct::new_like, 0),
        method_kw(c"_make_subclass", construct::make_subclass, ffi::METH_STATIC),
        method_kw(c"_make_wrapper_subclass", construct::make_wrapper_subclass, ffi::METH_STATIC),
    ];
    table.extend(conversions::table());
    table
}
