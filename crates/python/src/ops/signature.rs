//! Argument tables: what a Python call may look like, derived from an operator's schema.

use c10::{Device, Layout, MemoryFormat, Result, ScalarType};
use dispatch::schema::{Argument, DefaultValue, Type};
use dispatch::{Dispatcher, FunctionSchema, IValue, OperatorHandle};
use num_complex::Complex64;
use pyo3::ffi;
use pyo3::prelude::*;
use smallvec::SmallVec;

use crate::convert::errors;
use crate::gen::{Binding, Overload};
use crate::raw::intern_static;

/// What kind of object an argument takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A tensor; or a number too, for operators whose Python form takes numbers as tensors.
    Tensor { numbers: bool },
    /// `Tensor[]`
    TensorList,
    /// `Tensor?[]`
    OptionalTensorList,
    /// `int`
    Int,
    /// `SymInt`
    SymInt,
    /// `int[]` or `SymInt[]`; one number is taken for `broadcast` of them.
    IntList { broadcast: usize, symbolic: bool },
    /// `float`
    Float,
    /// `float[]`
    FloatList { broadcast: usize },
    /// `bool`
    Bool,
    /// `bool[]`
    BoolList,
    /// `complex`
    Complex,
    /// `Scalar`
    Scalar,
    /// `Scalar[]`
    ScalarList,
    /// `str`
    Str,
    /// `ScalarType`
    ScalarType,
    /// `Layout`
    Layout,
    /// `Device`
    Device,
    /// `MemoryFormat`
    MemoryFormat,
    /// `Generator`
    Generator,
    /// `Storage`
    Storage,
    /// Anything else.
    Any,
}

impl Kind {
    fn of(ty: &Type, numbers: bool) -> Kind {
        match ty.unwrap_optional() {
            Type::Tensor => Kind::Tensor { numbers },
            Type::Int | Type::DeviceIndex => Kind::Int,
            Type::SymInt => Kind::SymInt,
            Type::Float | Type::SymFloat => Kind::Float,
            Type::Bool | Type::SymBool => Kind::Bool,
            Type::Complex => Kind::Complex,
            Type::Scalar => Kind::Scalar,
            Type::Str => Kind::Str,
            Type::ScalarType => Kind::ScalarType,
            Type::Layout => Kind::Layout,
            Type::Device => Kind::Device,
            Type::MemoryFormat => Kind::MemoryFormat,
            Type::Generator => Kind::Generator,
            Type::Storage => Kind::Storage,
            Type::List(element, size) => {
                let broadcast = size.unwrap_or(0) as usize;
                match &**element {
                    Type::Tensor => Kind::TensorList,
                    Type::Optional(inner) if **inner == Type::Tensor => Kind::OptionalTensorList,
                    Type::Int => Kind::IntList { broadcast, symbolic: false },
                    Type::SymInt => Kind::IntList { broadcast, symbolic: true },
                    Type::Float => Kind::FloatList { broadcast },
                    Type::Bool => Kind::BoolList,
                    Type::Scalar => Kind::ScalarList,
                    _ => Kind::Any,
                }
            }
            _ => Kind::Any,
        }
    }

    /// The name in messages.
    pub(super) fn type_name(&self) -> &'static str {
        match self {
            Kind::Tensor { .. } => "Tensor",
            Kind::TensorList | Kind::OptionalTensorList => "tuple of Tensors",
            Kind::Int | Kind::SymInt => "int",
            Kind::IntList { .. } => "tuple of ints",
            Kind::Float => "float",
            Kind::FloatList { .. } => "tuple of floats",
            Kind::Bool => "bool",
            Kind::BoolList => "tuple of bools",
            Kind::Complex => "complex",
            Kind::Scalar => "Number",
            Kind::ScalarList => "tuple of Scalars",
            Kind::Str => "str",
            Kind::ScalarType => "torch.dtype",
            Kind::Layout => "torch.layout",
            Kind::Device => "torch.device",
            Kind::MemoryFormat => "torch.memory_format",
            Kind::Generator => "torch.Generator",
            Kind::Storage => "torch.Storage",
            Kind::Any => "object",
        }
    }
}

/// Where a parsed argument goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Slot {
    /// To the operator's argument of that number.
    Argument(usize),
    /// It is `out=`.
    Out,
    /// It is `requires_grad=`, which concerns the result.
    RequiresGrad,
}

/// One parameter of a signature.
pub(super) struct Param {
    /// The name, interned, to be compared by address.
    pub(super) name: *mut ffi::PyObject,
    /// Other names taken for it, as NumPy calls it.
    pub(super) aliases: SmallVec<[*mut ffi::PyObject; 2]>,
    /// The name as text.
    pub(super) text: &'static str,
    pub(super) kind: Kind,
    pub(super) allow_none: bool,
    /// Whether `None` stands for the default, as it does for the dimensions of `amax`: none of them means all.
    pub(super) default_for_none: bool,
    /// What it is when not given; `None` if it must be.
    pub(super) default: Option<IValue>,
    /// The default as messages show it.
    pub(super) default_text: Option<String>,
    pub(super) keyword_only: bool,
    pub(super) slot: Slot,
}

/// Where an argument of the `out=` form comes from.
#[derive(Clone, Copy)]
pub(super) enum OutSource {
    /// From the argument of that number of the plain form.
    Argument(usize),
    /// It is the output of that number.
    Out(usize),
}

/// One way to call a Python function.
pub(super) struct Signature {
    /// The plain form; none if the function can be called with `out=` only.
    pub(super) op: Option<OperatorHandle>,
    /// The form with `out=`.
    pub(super) out: Option<(OperatorHandle, Vec<OutSource>)>,
    pub(super) params: Vec<Param>,
    /// How many arguments the operator has.
    pub(super) num_arguments: usize,
    /// The number of `self` among them, for methods.
    pub(super) self_argument: Option<usize>,
    pub(super) max_positional: usize,
    pub(super) min_args: usize,
    /// Whether `f(2, 3)` means `f((2, 3))`.
    pub(super) varargs_ints: bool,
    /// The number of the `device` argument, for factories that take no tensor.
    pub(super) factory_device: Option<usize>,
    /// Whether it is a function that makes a tensor, and no method.
    pub(super) is_factory: bool,
}

// SAFETY: the addresses are of interned strings that live for ever and are only compared.
unsafe impl Send for Signature {}
// SAFETY: as above.
unsafe impl Sync for Signature {}

/// What NumPy calls some of our parameters.
fn numpy_names(name: &str) -> &'static [&'static str] {
    match name {
        "dim" => &["axis"],
        "keepdim" => &["keepdims"],
        "input" => &["x", "a", "x1"],
        "other" => &["x2"],
        _ => &[],
    }
}

impl Signature {
    /// The signature of one overload.
    pub(super) fn new(
        py: Python<'_>,
        binding: &Binding,
        overload: &Overload,
        method: bool,
    ) -> Result<Signature> {
        let op = overload.op.map(find).transpose()?;
        let out_op = if method { None } else { overload.out.map(find).transpose()? };
        let Some(main) = op.or(out_op) else {
            return Err(c10::Error::internal(format!("{}: an overload without operator", binding.name)));
        };
        let schema = main.schema()?;
        let self_argument = if method { overload.self_arg.map(usize::from) } else { None };
        let mut params = Vec::with_capacity(schema.arguments.len() + 2);
        for (i, argument) in schema.arguments.iter().enumerate() {
            if Some(i) != self_argument && !argument.is_out {
                params.push(Param::of_argument(py, argument, i, method, binding.numbers_as_tensors)?);
            }
        }
        if let Some(out_op) = out_op {
            let outs = out_op.schema()?.out_arguments().count();
            // PyTorch names `out` before the tensor options.
            let place =
                params.iter().position(|p| p.keyword_only && p.text == "dtype").unwrap_or(params.len());
            params.insert(place, Param::out(py, outs, op.is_some())?);
        }
        let takes_requires_grad = binding.takes_requires_grad && schema.has_tensor_options();
        if takes_requires_grad {
            params.push(Param::requires_grad(py)?);
        }
        let out = match out_op {
            Some(out_op) => Some((out_op, out_sources(schema, out_op.schema()?)?)),
            None => None,
        };
        let max_positional = params.iter().filter(|p| !p.keyword_only).count();
        let takes_tensor = schema.arguments.iter().any(|a| a.ty.contains_tensor() && !a.is_out);
        Ok(Signature {
            op,
            out,
            num_arguments: schema.arguments.len(),
            self_argument,
            max_positional,
            min_args: params.iter().filter(|p| p.default.is_none()).count(),
            varargs_ints: max_positional == 1 && matches!(params[0].kind, Kind::IntList { .. }),
            factory_device: if takes_requires_grad && !takes_tensor {
                schema.argument_index("device")
            } else {
                None
            },
            is_factory: takes_requires_grad && !method,
            params,
        })
    }
}

fn find(name: &str) -> Result<OperatorHandle> {
    let (base, overload) = name.split_once('.').unwrap_or((name, ""));
    Dispatcher::find_schema_or_err(base, overload)
}

/// How the arguments of the `out=` form follow from those of the plain form.
fn out_sources(plain: &FunctionSchema, out: &FunctionSchema) -> Result<Vec<OutSource>> {
    let mut outs = 0;
    out.arguments
        .iter()
        .map(|argument| {
            if argument.is_out {
                outs += 1;
                return Ok(OutSource::Out(outs - 1));
            }
            let index = plain.argument_index(&argument.name).ok_or_else(|| {
                c10::Error::internal(format!(
                    "{}: argument {} has no counterpart in {}",
                    out.name, argument.name, plain.name
                ))
            })?;
            Ok(OutSource::Argument(index))
        })
        .collect()
}

impl Param {
    fn of_argument(
        py: Python<'_>,
        argument: &'static Argument,
        index: usize,
        method: bool,
        numbers: bool,
    ) -> Result<Param> {
        let text = if argument.name == "self" && !method { "input" } else { argument.name.as_str() };
        let name = |text: &str| intern_static(py, text).map_err(errors::to_core);
        let default = match &argument.default {
            Some(default) => Some(default_value(default, &argument.ty)?),
            // As in PyTorch's Python layer, a tensor option that the schema leaves open may be left out.
            None => None,
        };
        Ok(Param {
            name: name(text)?,
            aliases: numpy_names(text).iter().map(|alias| name(alias)).collect::<Result<_>>()?,
            text,
            kind: Kind::of(&argument.ty, numbers),
            allow_none: argument.ty.is_optional(),
            default_for_none: matches!(&default, Some(IValue::IntList(items)) if items.is_empty()),
            default_text: argument.default.as_ref().map(default_text),
            default,
            keyword_only: argument.kwarg_only,
            slot: Slot::Argument(index),
        })
    }

    /// A parameter of that type and no name.
    pub(super) fn unnamed(ty: &Type) -> Param {
        Param {
            name: std::ptr::null_mut(),
            aliases: SmallVec::new(),
            text: "",
            kind: Kind::of(ty, true),
            allow_none: ty.is_optional(),
            default_for_none: false,
            default: None,
            default_text: None,
            keyword_only: false,
            slot: Slot::Argument(0),
        }
    }

    fn out(py: Python<'_>, outs: usize, optional: bool) -> Result<Param> {
        Ok(Param {
            name: intern_static(py, "out").map_err(errors::to_core)?,
            aliases: SmallVec::new(),
            text: "out",
            kind: if outs == 1 { Kind::Tensor { numbers: false } } else { Kind::TensorList },
            allow_none: optional,
            default_for_none: false,
            default: optional.then_some(IValue::None),
            default_text: optional.then(|| "None".to_owned()),
            keyword_only: true,
            slot: Slot::Out,
        })
    }

    fn requires_grad(py: Python<'_>) -> Result<Param> {
        Ok(Param {
            name: intern_static(py, "requires_grad").map_err(errors::to_core)?,
            aliases: SmallVec::new(),
            text: "requires_grad",
            kind: Kind::Bool,
            allow_none: false,
            default_for_none: false,
            default: Some(IValue::Bool(false)),
            default_text: Some("False".to_owned()),
            keyword_only: true,
            slot: Slot::RequiresGrad,
        })
    }
}

/// A default of the schema language as a value of the argument's type.
pub(crate) fn default_value(default: &DefaultValue, ty: &Type) -> Result<IValue> {
    let ty = ty.unwrap_optional();
    if let Type::List(element, size) = ty {
        return list_default(default, element, *size);
    }
    Ok(match default {
        DefaultValue::None => IValue::None,
        DefaultValue::Bool(v) => IValue::Bool(*v),
        DefaultValue::Int(v) => match ty {
            Type::Float => IValue::Double(*v as f64),
            Type::ScalarType => {
                u8::try_from(*v).map_or(IValue::None, |v| ScalarType::try_from(v).ok().into())
            }
            Type::MemoryFormat => {
                i8::try_from(*v).map_or(IValue::None, |v| MemoryFormat::try_from(v).ok().into())
            }
            Type::Layout => i8::try_from(*v).map_or(IValue::None, |v| Layout::try_from(v).ok().into()),
            _ => IValue::Int(*v),
        },
        DefaultValue::Float(v) => IValue::Double(*v),
        DefaultValue::Complex { re, im } => IValue::ComplexDouble(Complex64::new(*re, *im)),
        DefaultValue::Str(v) => v.as_str().into(),
        DefaultValue::List(_) => IValue::None,
        DefaultValue::Symbol(name) => symbol(name, ty)?,
    })
}

fn symbol(name: &str, ty: &Type) -> Result<IValue> {
    Ok(match ty {
        Type::MemoryFormat => MemoryFormat::from_name(name).into(),
        Type::Layout => Layout::from_name(name).into(),
        Type::ScalarType => ScalarType::from_name(name).into(),
        Type::Device => name.parse::<Device>()?.into(),
        Type::Int | Type::SymInt => match name {
            "None" => 0i64.into(),
            "Mean" => 1i64.into(),
            "Sum" => 2i64.into(),
            _ => return Err(c10::Error::runtime(format!("unknown default {name} of an int argument"))),
        },
        _ => name.into(),
    })
}

fn list_default(default: &DefaultValue, element: &Type, size: Option<u32>) -> Result<IValue> {
    let items: Vec<&DefaultValue> = match default {
        DefaultValue::None => return Ok(IValue::None),
        DefaultValue::List(items) => items.iter().collect(),
        one => vec![one; size.unwrap_or(1) as usize],
    };
    let ints = || items.iter().map(|d| default_value(d, element)?.to_int());
    Ok(match element {
        Type::Int => IValue::IntList(ints().collect::<Result<_>>()?),
        Type::SymInt => IValue::SymIntList(ints().map(|v| Ok(v?.into())).collect::<Result<_>>()?),
        Type::Float => IValue::DoubleList(
            items.iter().map(|d| default_value(d, element)?.to_double()).collect::<Result<_>>()?,
        ),
        Type::Bool => IValue::BoolList(
            items.iter().map(|d| default_value(d, element)?.to_bool()).collect::<Result<_>>()?,
        ),
        Type::Tensor => IValue::TensorList(std::sync::Arc::from([])),
        _ => IValue::List(std::sync::Arc::new(
            items.iter().map(|d| default_value(d, element)).collect::<Result<_>>()?,
        )),
    })
}

/// A default as Python would write it.
fn default_text(default: &DefaultValue) -> String {
    match default {
        DefaultValue::Bool(true) => "True".to_owned(),
        DefaultValue::Bool(false) => "False".to_owned(),
        DefaultValue::Symbol(name) if MemoryFormat::from_name(name).is_some() => format!("torch.{name}"),
        DefaultValue::List(items) => {
            format!("({})", items.iter().map(default_text).collect::<Vec<_>>().join(","))
        }
        other => other.to_string(),
    }
}
