//! `Tensor(…)` as older versions had it, `x.new(…)`, `_make_subclass` and `_make_wrapper_subclass`.

use ::ops::at;
use autograd::variable;
use c10::{Device, DispatchKey, DispatchKeySet, Layout, ScalarType, Tensor, TensorImpl, TensorOptions};
use pyo3::exceptions::{PyNotImplementedError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple, PyType};

use super::conversions::{self, Target};
use super::object::{self, TENSOR};
use crate::convert::{device, dtype, layout, scalar, size};
use crate::ops::torch_function;
use crate::raw::arguments::{flag, wrong_type};
use crate::raw::objects::{self, intern, NewError};
use crate::raw::{borrow, check_memory_for, guard, token, Res};

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
    check_memory_for(args.len())?;
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
                return Err(PyTypeError::error(format!(
                    "new() received an unexpected keyword argument '{other}'"
                ))
                .into())
            }
        }
    }
    let args = match &data {
        Some(data) => {
            objects::tuple(py, args.iter().chain(std::iter::once(data.clone())).collect::<Vec<_>>())?
        }
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
        return Err(PyTypeError::error(text).into());
    }
    if let Some(other) = object::get(&data) {
        if other.dtype() != dtype {
            return Err(PyTypeError::error(format!(
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
        return Ok(Tensor::new(tensor.with_sizes_contiguous(&[numel])?)?);
    }
    if scalar::number_kind(&data).is_some() {
        let text = format!("new(): data must be a sequence (got {})", data.get_type().name()?);
        return Err(PyTypeError::error(text).into());
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

/// Offers `x.new(…)` to the tensor's class and to modes.
fn overridden_new(
    object: &Bound<'_, PyAny>,
    args: &Bound<'_, PyTuple>,
    kwargs: Option<&Bound<'_, PyDict>>,
) -> Res<Option<*mut ffi::PyObject>> {
    if !torch_function::is_offered(object) {
        return Ok(None);
    }
    let py = object.py();
    let all = objects::tuple(py, std::iter::once(object.clone()).chain(args.iter()).collect::<Vec<_>>())?;
    let kwargs = kwargs.map_or_else(|| objects::dict(py), |kwargs| Ok(kwargs.clone()))?;
    torch_function::handle_named(object, "new", &all, &kwargs)
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
            if let Some(result) = overridden_new(&borrow(py, object), &args, kwargs.as_ref())? {
                return Ok(result);
            }
            object::wrap(legacy_tensor(py, &args, kwargs.as_ref(), tensor.dtype(), tensor.device())?)
        }
    })
}

/// The arguments of one of the two functions below, sorted by parameter.
struct Named<'py> {
    function: &'static str,
    params: &'static [&'static str],
    /// As many as there are parameters; `None` where no argument was given.
    values: Vec<Option<Bound<'py, PyAny>>>,
}

impl<'py> Named<'py> {
    /// Sorts the arguments. The first two are required, the first `positional` may be given by position.
    fn new(
        function: &'static str,
        params: &'static [&'static str],
        positional: usize,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> Res<Self> {
        let raise = |text: String| Err(PyTypeError::error(format!("{function}() {text}")).into());
        if args.len() > positional {
            return raise(format!(
                "takes from 2 to {positional} positional arguments but {} were given",
                args.len()
            ));
        }
        let mut values: Vec<_> = args.iter().map(Some).collect();
        values.resize(params.len(), None);
        for (name, value) in kwargs.iter().flat_map(|k| k.iter()) {
            let name = name.extract::<String>()?;
            match params.iter().position(|param| *param == name) {
                Some(i) if values[i].is_none() => values[i] = Some(value),
                Some(_) => return raise(format!("got multiple values for argument '{name}'")),
                None => return raise(format!("got an unexpected keyword argument '{name}'")),
            }
        }
        let missing: Vec<String> =
            (0..2).filter(|&i| values[i].is_none()).map(|i| format!("\"{}\"", params[i])).collect();
        if !missing.is_empty() {
            let names = missing.join(", ");
            // The plural is PyTorch's.
            let plural = if missing.len() == 1 { "s" } else { "" };
            return raise(format!("missing {} required positional argument{plural}: {names}", missing.len()));
        }
        Ok(Named { function, params, values })
    }

    /// An argument; None counts as not given.
    fn get(&self, name: &str) -> Option<&Bound<'py, PyAny>> {
        let at = self.params.iter().position(|param| *param == name)?;
        self.values[at].as_ref().filter(|value| !value.is_none())
    }

    fn flag(&self, name: &str) -> Res<bool> {
        flag(self.function, name, None, self.get(name), false)
    }

    /// The first argument, a subclass of the tensor type.
    fn class(&self) -> Res<*mut ffi::PyTypeObject> {
        let class = self.get("cls").ok_or_else(|| PyTypeError::error("cls must be a type (got NoneType)"))?;
        let Ok(type_) = class.cast::<PyType>() else {
            let text = format!("cls must be a type (got {})", class.get_type().name()?);
            return Err(PyTypeError::error(text).into());
        };
        let type_ = type_.as_type_ptr();
        // SAFETY: two live types.
        if unsafe { ffi::PyType_IsSubtype(type_, TENSOR.get()) } == 0 {
            return Err(PyTypeError::error(
                "Creating a Tensor subclass from a class that does not inherit from Tensor is not possible. Make sure your \
                 class inherits from Tensor.",
            )
            .into());
        }
        Ok(type_)
    }

    /// Refuses what asks for metadata that the class computes, or for keys of its own.
    fn refuse_custom_metadata(&self, others: &[&str]) -> Res<()> {
        if let Some(policy) = self.get("dispatch_sizes_strides_policy") {
            let policy = policy.extract::<String>()?;
            if !matches!(policy.as_str(), "sizes" | "strides") {
                return Err(PyValueError::error(format!(
                    "Unknown sizes_strides_policy: {policy}; expected 'strides' or 'sizes'"
                ))
                .into());
            }
        }
        let mut refused = others.iter().find(|name| self.get(name).is_some()).copied();
        for name in ["dispatch_device", "dispatch_layout"] {
            if self.flag(name)? {
                refused = Some(name);
            }
        }
        if self.get("dispatch_sizes_strides_policy").is_some() {
            refused = Some("dispatch_sizes_strides_policy");
        }
        match refused {
            None => Ok(()),
            Some(name) => {
                let text = format!("{}(): the argument '{name}' is not supported", self.function);
                Err(PyNotImplementedError::error(text).into())
            }
        }
    }
}

const SUBCLASS_PARAMS: [&str; 7] = [
    "cls",
    "data",
    "require_grad",
    "dispatch_sizes_strides_policy",
    "dispatch_device",
    "dispatch_layout",
    "device_for_backend_keys",
];

/// `_make_subclass(cls, data, require_grad=False)`: a tensor of class `cls` over the data of `data`.
pub(super) unsafe extern "C" fn make_subclass(
    _self: *mut ffi::PyObject,
    args: *mut ffi::PyObject,
    kwargs: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    guard(|| {
        // SAFETY: CPython calls static methods with a tuple, and a dict or null.
        let (args, kwargs) = unsafe { arguments(token(), args, kwargs)? };
        let named = Named::new("_make_subclass", &SUBCLASS_PARAMS, 3, &args, kwargs.as_ref())?;
        let data = named.get("data");
        let Some(source) = data.and_then(object::get) else {
            let found = match data {
                Some(data) => data.get_type().name()?.to_string(),
                None => "NoneType".to_owned(),
            };
            return Err(PyTypeError::error(format!(
                "_make_subclass(): argument 'data' (position 2) must be Tensor, not {found}"
            ))
            .into());
        };
        let class = named.class()?;
        named.refuse_custom_metadata(&["device_for_backend_keys"])?;
        let tensor = source.shallow_copy_and_detach(source.version_counter())?;
        if named.flag("require_grad")? {
            variable::set_requires_grad(&tensor, true)?;
        }
        // SAFETY: checked to be a subclass.
        unsafe { object::wrap_as(class, tensor) }
    })
}

const WRAPPER_SUBCLASS_PARAMS: [&str; 15] = [
    "cls",
    "size",
    "strides",
    "storage_offset",
    "memory_format",
    "dtype",
    "layout",
    "device",
    "pin_memory",
    "requires_grad",
    "dispatch_sizes_strides_policy",
    "dispatch_device",
    "dispatch_layout",
    "_extra_dispatch_keys",
    "storage_size",
];

/// `_make_wrapper_subclass(cls, size, …)`: a tensor without memory whose class handles every operator.
pub(super) unsafe extern "C" fn make_wrapper_subclass(
    _self: *mut ffi::PyObject,
    args: *mut ffi::PyObject,
    kwargs: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    guard(|| {
        // SAFETY: CPython calls static methods with a tuple, and a dict or null.
        let (args, kwargs) = unsafe { arguments(token(), args, kwargs)? };
        let named =
            Named::new("_make_wrapper_subclass", &WRAPPER_SUBCLASS_PARAMS, 15, &args, kwargs.as_ref())?;
        let class = named.class()?;
        // SAFETY: a live type.
        if !unsafe { crate::ops::torch_function::has_torch_dispatch(class) } {
            // SAFETY: as above.
            let name = unsafe { borrow(token(), class.cast()).getattr(intern!(token(), "__name__")?)? };
            return Err(PyTypeError::error(format!("{name} must define __torch_dispatch__")).into());
        }
        let ints = |value: &Bound<'_, PyAny>| {
            value.try_iter()?.map(|v| scalar::to_i64(&v?)).collect::<Res<Vec<i64>>>()
        };
        let Some(sizes) = named.get("size") else {
            return Err(wrong_type(
                "_make_wrapper_subclass",
                "size",
                Some(2),
                "tuple of ints",
                // SAFETY: the singleton is alive.
                &*unsafe { borrow(token(), ffi::Py_None()) },
            ));
        };
        let sizes = ints(sizes)?;
        // PyTorch looks at neither the memory format nor `pin_memory`.
        named.refuse_custom_metadata(&["_extra_dispatch_keys", "storage_size"])?;
        if let Some(object) = named.get("layout") {
            if layout::extract_layout(object) != Some(Layout::Strided) {
                let text = "_make_wrapper_subclass(): only layout=torch.strided is supported";
                return Err(PyNotImplementedError::error(text).into());
            }
        }
        let strides = match named.get("strides") {
            Some(strides) => ints(strides)?,
            None => c10::compute_contiguous_strides(&sizes).to_vec(),
        };
        let offset = named.get("storage_offset").map_or(Ok(0), scalar::to_i64)?;
        let dtype = match named.get("dtype") {
            Some(object) => dtype::extract(object).ok_or_else(|| {
                PyTypeError::error("_make_wrapper_subclass(): argument 'dtype' must be torch.dtype")
            })?,
            None => c10::get_default_dtype(),
        };
        let device = match named.get("device") {
            Some(object) => device::extract(object)?,
            None => Device::new(c10::DeviceType::CPU, -1),
        };
        let key: DispatchKey = TensorOptions::default().dtype(dtype).device(device).compute_dispatch_key()?;
        let tensor = TensorImpl::new(None, DispatchKeySet::from_key(key), dtype, device);
        let tensor = Tensor::new(tensor.with_sizes_and_strides(&sizes, &strides, offset)?)?;
        tensor.set_python_dispatch(true);
        if named.flag("requires_grad")? {
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
        return Err(PyTypeError::error("as_subclass(): expected a Tensor").into());
    };
    let class = cls.as_type_ptr();
    // SAFETY: two live types; a new reference comes back.
    unsafe {
        if ffi::PyType_IsSubtype(class, TENSOR.get()) == 0 {
            return Err(PyTypeError::error("cls must be a subclass of torch.Tensor").into());
        }
        crate::raw::owned(tensor.py(), object::wrap_as(class, at::alias(source)?)?)
    }
}

/// Whether a tensor has memory, or metadata of memory, of its own.
#[pyfunction]
fn _has_storage(tensor: &Bound<'_, PyAny>) -> bool {
    object::get(tensor).is_some_and(|t| t.has_storage())
}

/// Adds the functions.
pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(_has_storage, module)?)?;
    module.add_function(wrap_pyfunction!(_as_subclass, module)?)
}
