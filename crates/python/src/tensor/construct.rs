//! `Tensor(…)` as older versions had it, `x.new(…)`, `_make_subclass` and `_make_wrapper_subclass`.

use ::ops::at;
use autograd::variable;
use c10::{Device, DispatchKey, DispatchKeySet, ScalarType, Tensor, TensorImpl, TensorOptions};
use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple, PyType};

use super::conversions::{self, Target};
use super::object::{self, TENSOR};
use crate::convert::{device, dtype, scalar, size};
use crate::raw::{borrow, guard, token, Res};

/// Positional arguments and keyword arguments, as CPython gives them.
///
/// # Safety
///
/// `args` is a tuple, `kwargs` a dictionary or null.
unsafe fn arguments<'py>(
    py: Python<'py>,
    args: *mut ffi::PyObject,
    kwargs: *mut ffi::PyObject,
) -> Res<(Bound<'py, PyTuple>, Option<Bound<'py, PyDict>>)> {
    // SAFETY: as the caller says.
    unsafe {
        let args = borrow(py, args).cast::<PyTuple>()?.to_owned();
        let kwargs = match kwargs.is_null() {
            true => None,
            false => Some(borrow(py, kwargs).cast::<PyDict>()?.to_owned()),
        };
        Ok((args, kwargs))
    }
}

/// The sizes that a legacy constructor was given, if it was given sizes.
fn legacy_sizes(args: &Bound<'_, PyTuple>) -> Res<Option<Vec<i64>>> {
    if let Ok(only) = args.get_item(0) {
        if args.len() == 1 && size::SIZE.is_exact(&only) {
            return Ok(Some(only.extract()?));
        }
    }
    if args.iter().all(|a| scalar::is_int_like(&a)) {
        return Ok(Some(args.iter().map(|a| scalar::to_i64(&a)).collect::<Res<_>>()?));
    }
    Ok(None)
}

/// `Tensor()`, `Tensor(2, 3)`, `Tensor([1, 2])`, `Tensor(other)`, all of the given dtype.
fn legacy_tensor(
    py: Python<'_>,
    args: &Bound<'_, PyTuple>,
    kwargs: Option<&Bound<'_, PyDict>>,
    dtype: ScalarType,
    default: Device,
) -> Res<Tensor> {
    let mut device = default;
    let mut data = None;
    for (name, value) in kwargs.iter().flat_map(|k| k.iter()) {
        match name.extract::<String>()?.as_str() {
            "device" if !value.is_none() => device = device::extract(&value)?,
            "device" => {}
            "data" | "other" | "size" => data = Some(value),
            other => {
                return Err(PyTypeError::new_err(format!(
                    "new() received an unexpected keyword argument '{other}'"
                ))
                .into())
            }
        }
    }
    let args = match &data {
        Some(data) => PyTuple::new(py, args.iter().chain(std::iter::once(data.clone())).collect::<Vec<_>>())?,
        None => args.clone(),
    };
    let place =
        |tensor: Tensor| conversions::to(py, &tensor, Target { device: Some(device), ..Target::default() });
    if let Some(sizes) = legacy_sizes(&args)? {
        let sizes = if args.is_empty() { vec![0] } else { sizes };
        c10::check_sizes_nonnegative(&sizes)?;
        return place(c10::empty_cpu(&sizes, dtype)?);
    }
    let data = args.get_item(0)?;
    if args.len() > 1 {
        let names: Vec<String> =
            args.iter().map(|a| Ok(a.get_type().name()?.to_string())).collect::<Res<_>>()?;
        let text = format!(
            "new() received an invalid combination of arguments - got ({}), but expected one of:\n * (*, torch.device device = None)\n \
             * (torch.Storage storage)\n * (Tensor other)\n * (tuple of ints size, *, torch.device device = None)\n \
             * (object data, *, torch.device device = None)\n",
            names.join(", ")
        );
        return Err(PyTypeError::new_err(text).into());
    }
    if let Some(other) = object::get(&data) {
        if other.dtype() != dtype {
            return Err(PyTypeError::new_err(format!(
                "expected torch.{} (got {})",
                dtype.short_name().to_owned() + "Tensor",
                conversions::type_string(other)
            ))
            .into());
        }
        return Ok(variable::detach(other)?);
    }
    if let Some(storage) = crate::storage::extract(&data) {
        let numel = (storage.nbytes() / dtype.item_size()) as i64;
        let keys = TensorOptions::default().dtype(dtype).device(storage.device()).compute_dispatch_key()?;
        let device = storage.device();
        let tensor = TensorImpl::new(Some(storage), DispatchKeySet::from_key(keys), dtype, device);
        return Ok(tensor.with_sizes_contiguous(&[numel])?.into());
    }
    if scalar::number_kind(&data).is_some() {
        let text = format!("new(): data must be a sequence (got {})", data.get_type().name()?);
        return Err(PyTypeError::new_err(text).into());
    }
    crate::data::new_tensor(py, &data, Some(dtype), Some(device))
}

/// tp_new.
pub(super) unsafe extern "C" fn new(
    type_: *mut ffi::PyTypeObject,
    args: *mut ffi::PyObject,
    kwargs: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    guard(|| {
        // SAFETY: CPython calls constructors with a subclass, a tuple, and a dict or null.
        unsafe {
            let py = token();
            let (args, kwargs) = arguments(py, args, kwargs)?;
            let default = c10::get_default_device().unwrap_or(Device::new(c10::DeviceType::CPU, -1));
            let tensor = legacy_tensor(py, &args, kwargs.as_ref(), c10::get_default_dtype(), default)?;
            object::wrap_as(type_, tensor)
        }
    })
}

/// `x.new(…)`: as the constructor, of `x`'s dtype and device.
pub(super) unsafe extern "C" fn new_like(
    object: *mut ffi::PyObject,
    args: *mut ffi::PyObject,
    kwargs: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    guard(|| {
        // SAFETY: CPython calls methods of the type with its instances.
        unsafe {
            let (py, tensor) = (token(), super::of_self(object));
            let (args, kwargs) = arguments(py, args, kwargs)?;
            object::wrap(legacy_tensor(py, &args, kwargs.as_ref(), tensor.dtype(), tensor.device())?)
        }
    })
}

/// Named arguments of the two functions below.
struct Named<'py> {
    function: &'static str,
    args: Bound<'py, PyTuple>,
    kwargs: Option<Bound<'py, PyDict>>,
}

impl<'py> Named<'py> {
    /// The argument at a position or of a name; None counts as not given.
    fn get(&self, position: Option<usize>, name: &str) -> Res<Option<Bound<'py, PyAny>>> {
        if let Some(value) = position.and_then(|p| self.args.get_item(p).ok()) {
            return Ok(Some(value).filter(|v| !v.is_none()));
        }
        match &self.kwargs {
            Some(kwargs) => Ok(kwargs.get_item(name)?.filter(|v| !v.is_none())),
            None => Ok(None),
        }
    }

    fn flag(&self, position: Option<usize>, name: &str) -> Res<bool> {
        self.get(position, name)?.map_or(Ok(false), |v| Ok(v.is_truthy()?))
    }

    /// The first argument, a subclass of the tensor type.
    fn class(&self) -> Res<*mut ffi::PyTypeObject> {
        let Some(class) = self.get(Some(0), "cls")? else {
            let text = format!("{}() missing 1 required positional arguments: \"cls\"", self.function);
            return Err(PyTypeError::new_err(text).into());
        };
        let Ok(type_) = class.cast::<PyType>() else {
            let text = format!("cls must be a type (got {})", class.get_type().name()?);
            return Err(PyTypeError::new_err(text).into());
        };
        let type_ = type_.as_type_ptr();
        // SAFETY: two live types.
        if unsafe { ffi::PyType_IsSubtype(type_, TENSOR.get()) } == 0 {
            return Err(PyTypeError::new_err("cls must be a subclass of torch.Tensor").into());
        }
        Ok(type_)
    }
}

/// `_make_subclass(cls, data, require_grad=False)`: a tensor of class `cls` over the data of `data`.
pub(super) unsafe extern "C" fn make_subclass(
    _self: *mut ffi::PyObject,
    args: *mut ffi::PyObject,
    kwargs: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    guard(|| {
        // SAFETY: CPython calls static methods with a tuple, and a dict or null.
        let (args, kwargs) = unsafe { arguments(token(), args, kwargs)? };
        let named = Named { function: "_make_subclass", args, kwargs };
        let class = named.class()?;
        let data = named.get(Some(1), "data")?;
        let Some(source) = data.as_ref().and_then(|d| object::get(d)) else {
            return Err(PyTypeError::new_err(
                "_make_subclass(): argument 'data' (position 2) must be Tensor",
            )
            .into());
        };
        let tensor = source.shallow_copy_and_detach(source.version_counter())?;
        if named.flag(Some(2), "require_grad")? {
            variable::set_requires_grad(&tensor, true)?;
        }
        // SAFETY: checked to be a subclass.
        unsafe { object::wrap_as(class, tensor) }
    })
}

/// `_make_wrapper_subclass(cls, size, …)`: a tensor without memory whose class handles every operator.
pub(super) unsafe extern "C" fn make_wrapper_subclass(
    _self: *mut ffi::PyObject,
    args: *mut ffi::PyObject,
    kwargs: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    guard(|| {
        // SAFETY: CPython calls static methods with a tuple, and a dict or null.
        let (args, kwargs) = unsafe { arguments(token(), args, kwargs)? };
        let named = Named { function: "_make_wrapper_subclass", args, kwargs };
        let class = named.class()?;
        // SAFETY: a live type.
        if !unsafe { crate::ops::torch_function::has_torch_dispatch(class) } {
            let text = "_make_wrapper_subclass(): cls must define __torch_dispatch__";
            return Err(PyTypeError::new_err(text).into());
        }
        let ints = |value: Bound<'_, PyAny>| {
            value.try_iter()?.map(|v| scalar::to_i64(&v?)).collect::<Res<Vec<i64>>>()
        };
        let Some(sizes) = named.get(Some(1), "size")? else {
            let text = "_make_wrapper_subclass() missing 1 required positional arguments: \"size\"";
            return Err(PyTypeError::new_err(text).into());
        };
        let sizes = ints(sizes)?;
        let strides = match named.get(Some(2), "strides")? {
            Some(strides) => ints(strides)?,
            None => c10::compute_contiguous_strides(&sizes).to_vec(),
        };
        let offset = named.get(Some(3), "storage_offset")?.map_or(Ok(0), |v| scalar::to_i64(&v))?;
        let dtype = match named.get(Some(5), "dtype")? {
            Some(object) => dtype::extract(&object).ok_or_else(|| {
                PyTypeError::new_err("_make_wrapper_subclass(): argument 'dtype' must be torch.dtype")
            })?,
            None => c10::get_default_dtype(),
        };
        let device = match named.get(Some(7), "device")? {
            Some(object) => device::extract(&object)?,
            None => Device::new(c10::DeviceType::CPU, -1),
        };
        let key: DispatchKey = TensorOptions::default().dtype(dtype).device(device).compute_dispatch_key()?;
        let tensor = TensorImpl::new(None, DispatchKeySet::from_key(key), dtype, device);
        let tensor: Tensor = tensor.with_sizes_and_strides(&sizes, &strides, offset)?.into();
        tensor.set_python_dispatch(true);
        if named.flag(Some(9), "requires_grad")? {
            variable::set_requires_grad(&tensor, true)?;
        }
        // SAFETY: checked to be a subclass.
        unsafe { object::wrap_as(class, tensor) }
    })
}

/// A view of `tensor`, with its graph, as an instance of the subclass `cls`.
#[pyfunction]
fn _as_subclass<'py>(tensor: &Bound<'py, PyAny>, cls: &Bound<'py, PyType>) -> Res<Bound<'py, PyAny>> {
    let Some(source) = object::get(tensor) else {
        return Err(PyTypeError::new_err("as_subclass(): expected a Tensor").into());
    };
    let class = cls.as_type_ptr();
    // SAFETY: two live types; a new reference comes back.
    unsafe {
        if ffi::PyType_IsSubtype(class, TENSOR.get()) == 0 {
            return Err(PyTypeError::new_err("cls must be a subclass of torch.Tensor").into());
        }
        crate::raw::owned(tensor.py(), object::wrap_as(class, at::alias(source)?)?)
    }
}

/// Adds the functions.
pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(_as_subclass, module)?)
}
