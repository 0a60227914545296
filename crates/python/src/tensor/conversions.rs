//! `to`, `type`, `float` and their kin: the same values elsewhere or as another dtype.

use ::ops::at;
use c10::{Device, DeviceType, MemoryFormat, ScalarType, Tensor};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyType};

use super::methods::method;
use super::object;
use crate::convert::{device, dtype, layout, warnings};
use crate::raw::arguments::{flag, wrong_type};
use crate::raw::objects::{self, intern, NewError};
use crate::raw::{method_fast, Res};

/// Where and as what a tensor is wanted.
#[derive(Clone, Copy, Default)]
pub(crate) struct Target {
    pub(crate) dtype: Option<ScalarType>,
    pub(crate) device: Option<Device>,
    pub(crate) non_blocking: bool,
    pub(crate) copy: bool,
    pub(crate) memory_format: Option<MemoryFormat>,
}

impl Target {
    /// Whether the tensor is there already.
    fn is_met_by(&self, tensor: &Tensor) -> bool {
        let device = tensor.device();
        !self.copy
            && self.dtype.is_none_or(|d| d == tensor.dtype())
            && self.device.is_none_or(|d| {
                d == device || (d.type_ == device.type_ && (!d.has_index() || !device.has_index()))
            })
            && match self.memory_format {
                None | Some(MemoryFormat::Preserve) => true,
                Some(format) => tensor.suggest_memory_format() == format && tensor.is_contiguous_in(format),
            }
    }
}

/// The tensor as wanted; the same one if it is so already.
pub(crate) fn to(py: Python<'_>, tensor: &Tensor, target: Target) -> Res<Tensor> {
    if target.is_met_by(tensor) {
        return Ok(tensor.clone());
    }
    let convert = || {
        at::to_dtype_layout(
            tensor,
            target.dtype,
            None,
            target.device,
            None,
            target.non_blocking,
            target.copy,
            target.memory_format,
        )
    };
    let result = crate::ops::call::run_on(py, tensor, convert)?;
    warnings::emit_pending()?;
    Ok(result)
}

/// A `dtype` argument.
pub(super) fn dtype_argument(function: &str, object: Option<&Bound<'_, PyAny>>) -> Res<Option<ScalarType>> {
    match object.filter(|o| !o.is_none()) {
        None => Ok(None),
        Some(object) => match dtype::extract(object) {
            Some(dtype) => Ok(Some(dtype)),
            None => Err(wrong_type(function, "dtype", None, "torch.dtype", object)),
        },
    }
}

fn memory_format_argument(function: &str, object: Option<&Bound<'_, PyAny>>) -> Res<Option<MemoryFormat>> {
    match object.filter(|o| !o.is_none()) {
        None => Ok(None),
        Some(object) => match layout::extract_memory_format(object) {
            Some(format) => Ok(Some(format)),
            None => Err(wrong_type(function, "memory_format", None, "torch.memory_format", object)),
        },
    }
}

#[cold]
fn no_such_to(args: &[Option<Borrowed<'_, '_, PyAny>>]) -> Res<Target> {
    let names: Vec<String> =
        args.iter().flatten().map(|a| Ok(a.get_type().name()?.to_string())).collect::<Res<_>>()?;
    Err(PyTypeError::error(format!(
        "to() received an invalid combination of arguments - got ({}), but expected one of:\n \
         * (torch.device device = None, torch.dtype dtype = None, bool non_blocking = False, bool copy = False, *, torch.memory_format memory_format = None)\n \
         * (torch.dtype dtype, bool non_blocking = False, bool copy = False, *, torch.memory_format memory_format = None)\n \
         * (Tensor tensor, bool non_blocking = False, bool copy = False, *, torch.memory_format memory_format = None)\n",
        names.join(", ")
    ))
    .into())
}

/// Reads the arguments of `to`, whose three forms differ in what comes first.
///
/// # Safety
///
/// The arguments are those of a fast call.
unsafe fn to_arguments(
    py: Python<'_>,
    args: *const *mut ffi::PyObject,
    nargs: ffi::Py_ssize_t,
    keywords: *mut ffi::PyObject,
) -> Res<Target> {
    use crate::raw::arguments::unpack;
    use crate::raw::borrow;
    // SAFETY: as the caller says.
    let first = (nargs > 0).then(|| unsafe { borrow(py, *args) });
    let dtype_first = first.is_some_and(|f| dtype::extract(&f).is_some());
    let other = first.as_deref().and_then(super::get);
    // SAFETY: as the caller says.
    unsafe {
        if let Some(other) = other {
            let names = ["tensor", "non_blocking", "copy", "memory_format"];
            let [_, non_blocking, copy, format] = unpack(py, "to", names, 3, args, nargs, keywords)?;
            return Ok(Target {
                dtype: Some(other.dtype()),
                device: Some(other.device()),
                non_blocking: flag("to", "non_blocking", Some(2), non_blocking.as_deref(), false)?,
                copy: flag("to", "copy", Some(3), copy.as_deref(), false)?,
                memory_format: memory_format_argument("to", format.as_deref())?,
            });
        }
        let (values, positions) = if dtype_first {
            let names = ["dtype", "non_blocking", "copy", "memory_format", "device"];
            let Ok([dtype, non_blocking, copy, format, device]) =
                unpack(py, "to", names, 3, args, nargs, keywords)
            else {
                ffi::PyErr_Clear();
                return no_such_to(&[first]);
            };
            ([device, dtype, non_blocking, copy, format], 2)
        } else {
            let names = ["device", "dtype", "non_blocking", "copy", "memory_format", "other", "tensor"];
            let [device, dtype, non_blocking, copy, format, other, tensor] =
                unpack(py, "to", names, 4, args, nargs, keywords)?;
            if let Some(other) = other.or(tensor).as_deref().and_then(super::get) {
                return Ok(Target {
                    dtype: Some(other.dtype()),
                    device: Some(other.device()),
                    non_blocking: flag("to", "non_blocking", None, non_blocking.as_deref(), false)?,
                    copy: flag("to", "copy", None, copy.as_deref(), false)?,
                    memory_format: memory_format_argument("to", format.as_deref())?,
                });
            }
            ([device, dtype, non_blocking, copy, format], 3)
        };
        let [device, dtype, non_blocking, copy, format] = values;
        let device = match device.filter(|d| !d.is_none()) {
            None => None,
            Some(object) if device::is_device_like(&object) => Some(device::extract(&object)?),
            Some(_) => return no_such_to(&values),
        };
        let dtype = match dtype.filter(|d| !d.is_none()) {
            None => None,
            Some(object) => match dtype::extract(&object) {
                Some(dtype) => Some(dtype),
                None => return no_such_to(&values),
            },
        };
        if non_blocking.is_some_and(|f| !f.is_instance_of::<pyo3::types::PyBool>())
            || copy.is_some_and(|f| !f.is_instance_of::<pyo3::types::PyBool>())
        {
            return no_such_to(&values);
        }
        Ok(Target {
            dtype,
            device,
            non_blocking: flag("to", "non_blocking", Some(positions), non_blocking.as_deref(), false)?,
            copy: flag("to", "copy", Some(positions + 1), copy.as_deref(), false)?,
            memory_format: memory_format_argument("to", format.as_deref())?,
        })
    }
}

unsafe extern "C" fn tensor_to(
    object: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    nargs: ffi::Py_ssize_t,
    keywords: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    crate::raw::guard(|| {
        // SAFETY: CPython calls it with an instance of the type and the arguments of a fast call.
        unsafe {
            if let Some(result) = super::overridden_method(object, "to", args, nargs, keywords)? {
                return Ok(result);
            }
            let py = crate::raw::token();
            let target = to_arguments(py, args, nargs, keywords)?;
            object::wrap(to(py, super::of_self(object), target)?)
        }
    })
}

/// `_C._nn._parse_to(*args, **kwargs)`: the arguments of `Module.to`.
#[pyfunction]
#[pyo3(signature = (*args, **kwargs))]
fn _parse_to<'py>(
    py: Python<'py>,
    args: &Bound<'py, pyo3::types::PyTuple>,
    kwargs: Option<&Bound<'py, pyo3::types::PyDict>>,
) -> Res<Bound<'py, PyAny>> {
    let mut values: Vec<Bound<'py, PyAny>> = args.iter().collect();
    let mut names = Vec::new();
    for (name, value) in kwargs.iter().flat_map(|k| k.iter()) {
        names.push(name);
        values.push(value);
    }
    let names = objects::tuple(py, names)?;
    let pointers: Vec<*mut ffi::PyObject> = values.iter().map(|v| v.as_ptr()).collect();
    // SAFETY: `values` and `names` live until the end.
    let target =
        unsafe { to_arguments(py, pointers.as_ptr(), args.len() as ffi::Py_ssize_t, names.as_ptr())? };
    let none = || py.None().into_bound(py);
    let device = match target.device {
        Some(d) => device::object(py, d)?,
        None => none(),
    };
    let dtype = target.dtype.map_or_else(none, |d| dtype::object(py, d));
    let format = match target.memory_format {
        // SAFETY: a new reference.
        Some(f) => unsafe { crate::raw::owned(py, layout::memory_format_new_ref(f))? },
        None => none(),
    };
    let non_blocking = objects::boolean(py, target.non_blocking);
    Ok(objects::tuple(py, [device, dtype, non_blocking, format])?.into_any())
}

/// Adds the functions.
pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module
        .getattr(intern!(module.py(), "_nn")?)?
        .cast::<PyModule>()?
        .add_function(wrap_pyfunction!(_parse_to, module)?)
}

/// `x.float()` and the others: an optional memory format.
macro_rules! dtype_methods {
    ($($name:ident($text:literal) = $dtype:ident;)*) => {
        $(method!($name, $text, ["memory_format"], 1, |py, t, _object, [format]| {
            let memory_format = memory_format_argument($text, format.as_deref())?;
            object::wrap(to(py, t, Target { dtype: Some(ScalarType::$dtype), memory_format, ..Target::default() })?)
        });)*
        fn dtype_table() -> Vec<ffi::PyMethodDef> {
            vec![$(method_fast(
                match std::ffi::CStr::from_bytes_with_nul(concat!($text, "\0").as_bytes()) {
                    Ok(name) => name,
                    Err(_) => c"",
                },
                $name,
                0,
            ),)*]
        }
    };
}

dtype_methods! {
    float("float") = Float;
    double("double") = Double;
    half("half") = Half;
    bfloat16("bfloat16") = BFloat16;
    byte("byte") = Byte;
    char("char") = Char;
    short("short") = Short;
    int("int") = Int;
    long("long") = Long;
    boolean("bool") = Bool;
    cfloat("cfloat") = ComplexFloat;
    cdouble("cdouble") = ComplexDouble;
    chalf("chalf") = ComplexHalf;
}

method!(cpu, "cpu", ["memory_format"], 1, |py, t, _object, [format]| {
    let memory_format = memory_format_argument("cpu", format.as_deref())?;
    let device = Some(Device::new(DeviceType::CPU, -1));
    object::wrap(to(py, t, Target { device, memory_format, ..Target::default() })?)
});

method!(
    cuda,
    "cuda",
    ["device", "non_blocking", "memory_format"],
    2,
    |py, t, _object, [device, non_blocking, format]| {
        let device = match device.filter(|d| !d.is_none()) {
            Some(object) => device::extract(&object)?,
            None => Device::new(DeviceType::CUDA, -1),
        };
        if device.type_ != DeviceType::CUDA {
            return Err(
                PyValueError::error(format!("Invalid device, must be cuda device, got {device}")).into()
            );
        }
        let non_blocking = flag("cuda", "non_blocking", Some(2), non_blocking.as_deref(), false)?;
        let memory_format = memory_format_argument("cuda", format.as_deref())?;
        object::wrap(to(
            py,
            t,
            Target { device: Some(device), non_blocking, memory_format, ..Target::default() },
        )?)
    }
);

/// The type string of older versions (`"torch.FloatTensor"`).
pub(crate) fn type_string(tensor: &Tensor) -> String {
    let backend = match tensor.device().type_ {
        DeviceType::CPU | DeviceType::Meta => String::new(),
        other => format!("{}.", other.lower_case_name()),
    };
    let sparse = if tensor.is_sparse() { "sparse." } else { "" };
    format!("torch.{backend}{sparse}{}Tensor", tensor.dtype().short_name())
}

/// The dtype and device that a type string names.
fn parse_type_string(text: &str) -> Option<(ScalarType, Device)> {
    let rest = text.strip_prefix("torch.").or_else(|| text.strip_prefix("ptr."))?;
    let (device, name) = match rest.strip_prefix("cuda.") {
        Some(name) => (DeviceType::CUDA, name),
        None => (DeviceType::CPU, rest),
    };
    let short = name.strip_suffix("Tensor")?;
    let dtype = match short {
        "" => c10::get_default_dtype(),
        _ => ScalarType::ALL.into_iter().find(|t| t.short_name() == short)?,
    };
    Some((dtype, Device::new(device, -1)))
}

method!(tensor_type, "type", ["dtype", "non_blocking"], 2, |py, t, _object, [type_, non_blocking]| {
    let Some(type_) = type_.filter(|t| !t.is_none()) else {
        return Ok(objects::string(py, &type_string(t))?.into_ptr());
    };
    let non_blocking = flag("type", "non_blocking", Some(2), non_blocking.as_deref(), false)?;
    let (dtype, device) = if let Some(dtype) = dtype::extract(&type_) {
        (dtype, None)
    } else {
        let text = match type_.cast::<PyType>() {
            Ok(class) => format!("torch.{}", class.name()?),
            Err(_) => match type_.cast::<PyString>() {
                Ok(text) => crate::raw::text_of(&text)?.to_owned(),
                Err(_) => return Err(PyTypeError::error("dtype must be a type, str, or dtype object").into()),
            },
        };
        match parse_type_string(&text) {
            Some((dtype, device)) => (dtype, Some(device)),
            None => return Err(PyValueError::error(format!("invalid type: '{text}'")).into()),
        }
    };
    object::wrap(to(py, t, Target { dtype: Some(dtype), device, non_blocking, ..Target::default() })?)
});

method!(detach, "detach", [], 0, |_py, t, _object, []| object::wrap(at::detach(t)?));

/// The table of methods.
pub(super) fn table() -> Vec<ffi::PyMethodDef> {
    let mut table = dtype_table();
    table.extend([
        method_fast(c"to", tensor_to, 0),
        method_fast(c"cpu", cpu, 0),
        method_fast(c"cuda", cuda, 0),
        method_fast(c"type", tensor_type, 0),
        method_fast(c"detach", detach, 0),
    ]);
    table
}
