//! Types of schema arguments and returns.

use std::fmt;
use std::str::FromStr;

use super::error::{Result, SchemaError};
use super::parser::Parser;
use super::printer;

/// The type of an argument or a return. `Display` is PyTorch's spelling.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// `Tensor`
    Tensor,
    /// `Storage`
    Storage,
    /// `int`
    Int,
    /// `float`
    Float,
    /// `bool`
    Bool,
    /// `complex`
    Complex,
    /// `Scalar`: an int, float, complex or bool.
    Scalar,
    /// `str`
    Str,
    /// `ScalarType`: a dtype.
    ScalarType,
    /// `Layout`
    Layout,
    /// `MemoryFormat`
    MemoryFormat,
    /// `Device`
    Device,
    /// `DeviceIndex`: an `int` that PyTorch registers as `int`.
    DeviceIndex,
    /// `Generator`
    Generator,
    /// `Stream`
    Stream,
    /// `QScheme`
    QScheme,
    /// `Dimname`
    Dimname,
    /// `SymInt`
    SymInt,
    /// `SymFloat`
    SymFloat,
    /// `SymBool`
    SymBool,
    /// `AnyEnumType`
    AnyEnumType,
    /// `AnyClassType`
    AnyClassType,
    /// `list`: a list of anything.
    AnyList,
    /// `tuple`: a tuple of anything.
    AnyTuple,
    /// `Any`
    Any,
    /// `NoneType`
    None,
    /// `Capsule`
    Capsule,
    /// `GraphModule`
    GraphModule,
    /// `T?`
    Optional(Box<Type>),
    /// `T[]`, or `T[2]`: a list for which one `T` given stands for two. The size is a hint for that broadcast only:
    /// a list given may have another length.
    List(Box<Type>, Option<u32>),
    /// `(T, U)`
    Tuple(Vec<Type>),
    /// `Union(T, U)`
    Union(Vec<Type>),
    /// `Dict(K, V)`
    Dict(Box<Type>, Box<Type>),
    /// `Future(T)`
    Future(Box<Type>),
    /// `Await(T)`
    Await(Box<Type>),
    /// `RRef(T)`
    RRef(Box<Type>),
    /// A type variable: any name in lower case that is no type, as the `t` of `t[] self`.
    Var(String),
    /// `__torch__.torch.classes.<namespace>.<name>`, whole.
    Class(String),
}

impl Type {
    /// Reads a type alone, as in `SymInt[2]?`. Alias annotations are not part of a type and are refused.
    pub fn parse(text: &str) -> Result<Type> {
        Parser::new(text).whole_type()
    }

    /// `T?`; `T??` is `T?`.
    pub fn optional(inner: Type) -> Type {
        match inner {
            Type::Optional(_) => inner,
            _ => Type::Optional(Box::new(inner)),
        }
    }

    /// `T[]`
    pub fn list(element: Type) -> Type {
        Type::List(Box::new(element), None)
    }

    /// The `T` of a `T?`, any other type itself.
    pub fn unwrap_optional(&self) -> &Type {
        match self {
            Type::Optional(inner) => inner,
            _ => self,
        }
    }

    /// Whether this is `T?`.
    pub fn is_optional(&self) -> bool {
        matches!(self, Type::Optional(_))
    }

    /// Element type and size hint of `T[]`, `T[n]`, `T[]?` and `T[n]?`.
    pub fn as_list(&self) -> Option<(&Type, Option<u32>)> {
        match self.unwrap_optional() {
            Type::List(element, size) => Some((element, *size)),
            _ => None,
        }
    }

    /// Whether a tensor is or may be inside: `Tensor`, `Tensor?[]`, `(Tensor, int)`.
    pub fn contains_tensor(&self) -> bool {
        match self {
            Type::Tensor => true,
            Type::Optional(t) | Type::List(t, _) | Type::Future(t) | Type::Await(t) | Type::RRef(t) => {
                t.contains_tensor()
            }
            Type::Tuple(ts) | Type::Union(ts) => ts.iter().any(Type::contains_tensor),
            Type::Dict(k, v) => k.contains_tensor() || v.contains_tensor(),
            _ => false,
        }
    }

    /// The type of that name, for the names that take no parameters; also the spelling of those types.
    pub(super) fn from_name(name: &str) -> Option<Type> {
        Some(match name {
            "Tensor" => Type::Tensor,
            "Storage" => Type::Storage,
            "int" => Type::Int,
            "float" => Type::Float,
            "bool" => Type::Bool,
            "complex" => Type::Complex,
            "Scalar" => Type::Scalar,
            "str" => Type::Str,
            "ScalarType" => Type::ScalarType,
            "Layout" => Type::Layout,
            "MemoryFormat" => Type::MemoryFormat,
            "Device" => Type::Device,
            "DeviceIndex" => Type::DeviceIndex,
            "Generator" => Type::Generator,
            "Stream" => Type::Stream,
            "QScheme" => Type::QScheme,
            "Dimname" => Type::Dimname,
            "SymInt" => Type::SymInt,
            "SymFloat" => Type::SymFloat,
            "SymBool" => Type::SymBool,
            "AnyEnumType" => Type::AnyEnumType,
            "AnyClassType" => Type::AnyClassType,
            "list" => Type::AnyList,
            "tuple" => Type::AnyTuple,
            "Any" => Type::Any,
            "NoneType" => Type::None,
            "Capsule" => Type::Capsule,
            "GraphModule" => Type::GraphModule,
            _ => return None,
        })
    }

    /// The inverse of [`Type::from_name`]; `None` for types with parts.
    pub(super) fn name(&self) -> Option<&str> {
        Some(match self {
            Type::Tensor => "Tensor",
            Type::Storage => "Storage",
            Type::Int => "int",
            Type::Float => "float",
            Type::Bool => "bool",
            Type::Complex => "complex",
            Type::Scalar => "Scalar",
            Type::Str => "str",
            Type::ScalarType => "ScalarType",
            Type::Layout => "Layout",
            Type::MemoryFormat => "MemoryFormat",
            Type::Device => "Device",
            Type::DeviceIndex => "DeviceIndex",
            Type::Generator => "Generator",
            Type::Stream => "Stream",
            Type::QScheme => "QScheme",
            Type::Dimname => "Dimname",
            Type::SymInt => "SymInt",
            Type::SymFloat => "SymFloat",
            Type::SymBool => "SymBool",
            Type::AnyEnumType => "AnyEnumType",
            Type::AnyClassType => "AnyClassType",
            Type::AnyList => "list",
            Type::AnyTuple => "tuple",
            Type::Any => "Any",
            Type::None => "NoneType",
            Type::Capsule => "Capsule",
            Type::GraphModule => "GraphModule",
            Type::Var(name) | Type::Class(name) => name,
            Type::Optional(_) | Type::List(..) | Type::Tuple(_) | Type::Union(_) | Type::Dict(..) => {
                return None
            }
            Type::Future(_) | Type::Await(_) | Type::RRef(_) => return None,
        })
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        printer::write_type(f, self, None)
    }
}

impl FromStr for Type {
    type Err = SchemaError;

    fn from_str(text: &str) -> Result<Type> {
        Type::parse(text)
    }
}
