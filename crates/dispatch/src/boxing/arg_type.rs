//! One schema argument type, as a typed kernel sees it.

use std::sync::Arc;

use c10::{
    Device, DispatchKeySet, Generator, Layout, MemoryFormat, Result, Scalar, ScalarType, Storage, Stream,
    SymBool, SymFloat, SymInt, Tensor,
};

use num_complex::Complex64;

use super::ivalue::IValue;
use super::schema_type::SchemaType;

/// A marker for an argument's schema type: the owned Rust type (`Tensor`, `Vec<SymInt>`, `Option<Scalar>`).
///
/// Kernels take [`ArgType::Ref`], a borrow of it, so that an unboxed call moves pointers only.
pub trait ArgType: SchemaType + 'static {
    /// What a kernel receives.
    type Ref<'a>: Copy;
    /// What a boxed call keeps alive while the kernel runs.
    type Holder;

    /// Takes the argument out of a stack slot.
    fn hold(value: IValue) -> Result<Self::Holder>;
    /// Borrows a held argument.
    fn borrow(holder: &Self::Holder) -> Self::Ref<'_>;
    /// Boxes an argument.
    fn to_ivalue(value: Self::Ref<'_>) -> IValue;
    /// The keys that the argument contributes to dispatch.
    #[inline]
    fn key_set(_value: Self::Ref<'_>) -> DispatchKeySet {
        DispatchKeySet::default()
    }
}

impl ArgType for Tensor {
    type Ref<'a> = &'a Tensor;
    type Holder = Tensor;
    #[inline]
    fn hold(value: IValue) -> Result<Tensor> {
        match value {
            IValue::Tensor(t) => Ok(t),
            other => Err(other.mismatch("Tensor")),
        }
    }
    #[inline]
    fn borrow(holder: &Tensor) -> &Tensor {
        holder
    }
    #[inline]
    fn to_ivalue(value: &Tensor) -> IValue {
        IValue::Tensor(value.clone())
    }
    #[inline]
    fn key_set(value: &Tensor) -> DispatchKeySet {
        value.key_set()
    }
}

impl ArgType for Option<Tensor> {
    type Ref<'a> = Option<&'a Tensor>;
    type Holder = Option<Tensor>;
    #[inline]
    fn hold(value: IValue) -> Result<Option<Tensor>> {
        match value {
            IValue::Tensor(t) => Ok(Some(t)),
            IValue::None => Ok(None),
            other => Err(other.mismatch("Tensor?")),
        }
    }
    #[inline]
    fn borrow(holder: &Option<Tensor>) -> Option<&Tensor> {
        holder.as_ref()
    }
    #[inline]
    fn to_ivalue(value: Option<&Tensor>) -> IValue {
        value.cloned().into()
    }
    #[inline]
    fn key_set(value: Option<&Tensor>) -> DispatchKeySet {
        value.map_or(DispatchKeySet::default(), Tensor::key_set)
    }
}

impl ArgType for Vec<Tensor> {
    type Ref<'a> = &'a [Tensor];
    type Holder = Arc<[Tensor]>;
    fn hold(value: IValue) -> Result<Arc<[Tensor]>> {
        match value {
            IValue::TensorList(v) => Ok(v),
            other => other.to_tensor_list(),
        }
    }
    #[inline]
    fn borrow(holder: &Arc<[Tensor]>) -> &[Tensor] {
        holder
    }
    fn to_ivalue(value: &[Tensor]) -> IValue {
        IValue::TensorList(Arc::from(value))
    }
    fn key_set(value: &[Tensor]) -> DispatchKeySet {
        value.iter().fold(DispatchKeySet::default(), |keys, t| keys | t.key_set())
    }
}

impl ArgType for Vec<Option<Tensor>> {
    type Ref<'a> = &'a [Option<Tensor>];
    type Holder = Arc<[Option<Tensor>]>;
    fn hold(value: IValue) -> Result<Arc<[Option<Tensor>]>> {
        match value {
            IValue::OptionalTensorList(v) => Ok(v),
            other => other.to_optional_tensor_list(),
        }
    }
    #[inline]
    fn borrow(holder: &Arc<[Option<Tensor>]>) -> &[Option<Tensor>] {
        holder
    }
    fn to_ivalue(value: &[Option<Tensor>]) -> IValue {
        IValue::OptionalTensorList(Arc::from(value))
    }
    fn key_set(value: &[Option<Tensor>]) -> DispatchKeySet {
        value.iter().flatten().fold(DispatchKeySet::default(), |keys, t| keys | t.key_set())
    }
}

/// Types passed by value, and `Option` of them.
macro_rules! by_value {
    ($($ty:ty, $name:literal, $convert:expr);* $(;)?) => {$(
        impl ArgType for $ty {
            type Ref<'a> = $ty;
            type Holder = $ty;
            #[inline]
            fn hold(value: IValue) -> Result<$ty> {
                let convert: fn(&IValue) -> Result<$ty> = $convert;
                convert(&value)
            }
            #[inline]
            fn borrow(holder: &$ty) -> $ty {
                *holder
            }
            #[inline]
            fn to_ivalue(value: $ty) -> IValue {
                value.into()
            }
        }
        impl ArgType for Option<$ty> {
            type Ref<'a> = Option<$ty>;
            type Holder = Option<$ty>;
            #[inline]
            fn hold(value: IValue) -> Result<Option<$ty>> {
                if value.is_none() { Ok(None) } else { <$ty>::hold(value).map(Some) }
            }
            #[inline]
            fn borrow(holder: &Option<$ty>) -> Option<$ty> {
                *holder
            }
            #[inline]
            fn to_ivalue(value: Option<$ty>) -> IValue {
                value.into()
            }
        }
    )*};
}

macro_rules! variant {
    ($variant:ident, $name:literal) => {
        |value| match value {
            IValue::$variant(v) => Ok(*v),
            other => Err(other.mismatch($name)),
        }
    };
}

by_value! {
    i64, "int", IValue::to_int;
    f64, "float", IValue::to_double;
    bool, "bool", IValue::to_bool;
    ScalarType, "ScalarType", IValue::to_scalar_type;
    Layout, "Layout", variant!(Layout, "Layout");
    Device, "Device", variant!(Device, "Device");
    MemoryFormat, "MemoryFormat", variant!(MemoryFormat, "MemoryFormat");
    Stream, "Stream", variant!(Stream, "Stream");
    Complex64, "complex", |value| match value {
        IValue::ComplexDouble(v) => Ok(*v),
        other => other.to_double().map(Complex64::from),
    };
}

/// Types passed by reference, and `Option` of them.
macro_rules! by_ref {
    ($($ty:ty, $convert:expr);* $(;)?) => {$(
        impl ArgType for $ty {
            type Ref<'a> = &'a $ty;
            type Holder = $ty;
            #[inline]
            fn hold(value: IValue) -> Result<$ty> {
                let convert: fn(IValue) -> Result<$ty> = $convert;
                convert(value)
            }
            #[inline]
            fn borrow(holder: &$ty) -> &$ty {
                holder
            }
            #[inline]
            fn to_ivalue(value: &$ty) -> IValue {
                value.clone().into()
            }
        }
        impl ArgType for Option<$ty> {
            type Ref<'a> = Option<&'a $ty>;
            type Holder = Option<$ty>;
            #[inline]
            fn hold(value: IValue) -> Result<Option<$ty>> {
                if value.is_none() { Ok(None) } else { <$ty>::hold(value).map(Some) }
            }
            #[inline]
            fn borrow(holder: &Option<$ty>) -> Option<&$ty> {
                holder.as_ref()
            }
            #[inline]
            fn to_ivalue(value: Option<&$ty>) -> IValue {
                value.cloned().into()
            }
        }
    )*};
}

by_ref! {
    Scalar, |value| value.to_scalar();
    SymInt, |value| value.to_sym_int();
    SymFloat, |value| match value {
        IValue::SymFloat(v) => Ok(v),
        other => other.to_double().map(SymFloat::from),
    };
    SymBool, |value| match value {
        IValue::SymBool(v) => Ok(v),
        other => other.to_bool().map(SymBool::from),
    };
    Storage, |value| match value {
        IValue::Storage(v) => Ok(v),
        other => Err(other.mismatch("Storage")),
    };
}

/// A generator dispatches too: a random factory has no tensor argument to select the backend.
impl ArgType for Generator {
    type Ref<'a> = &'a Generator;
    type Holder = Generator;
    fn hold(value: IValue) -> Result<Generator> {
        match value {
            IValue::Generator(v) => Ok(v),
            other => Err(other.mismatch("Generator")),
        }
    }
    fn borrow(holder: &Generator) -> &Generator {
        holder
    }
    fn to_ivalue(value: &Generator) -> IValue {
        value.clone().into()
    }
    fn key_set(value: &Generator) -> DispatchKeySet {
        value.key_set()
    }
}

impl ArgType for Option<Generator> {
    type Ref<'a> = Option<&'a Generator>;
    type Holder = Option<Generator>;
    fn hold(value: IValue) -> Result<Option<Generator>> {
        if value.is_none() {
            Ok(None)
        } else {
            Generator::hold(value).map(Some)
        }
    }
    fn borrow(holder: &Option<Generator>) -> Option<&Generator> {
        holder.as_ref()
    }
    fn to_ivalue(value: Option<&Generator>) -> IValue {
        value.cloned().into()
    }
    fn key_set(value: Option<&Generator>) -> DispatchKeySet {
        value.map_or(DispatchKeySet::default(), Generator::key_set)
    }
}

/// Lists passed as slices, and `Option` of them.
macro_rules! slice {
    ($($elem:ty, $variant:ident, $convert:ident);* $(;)?) => {$(
        impl ArgType for Vec<$elem> {
            type Ref<'a> = &'a [$elem];
            type Holder = Arc<[$elem]>;
            #[inline]
            fn hold(value: IValue) -> Result<Arc<[$elem]>> {
                match value {
                    IValue::$variant(v) => Ok(v),
                    other => other.$convert(),
                }
            }
            #[inline]
            fn borrow(holder: &Arc<[$elem]>) -> &[$elem] {
                holder
            }
            fn to_ivalue(value: &[$elem]) -> IValue {
                IValue::$variant(Arc::from(value))
            }
        }
        impl ArgType for Option<Vec<$elem>> {
            type Ref<'a> = Option<&'a [$elem]>;
            type Holder = Option<Arc<[$elem]>>;
            #[inline]
            fn hold(value: IValue) -> Result<Option<Arc<[$elem]>>> {
                if value.is_none() { Ok(None) } else { Vec::<$elem>::hold(value).map(Some) }
            }
            #[inline]
            fn borrow(holder: &Option<Arc<[$elem]>>) -> Option<&[$elem]> {
                holder.as_deref()
            }
            fn to_ivalue(value: Option<&[$elem]>) -> IValue {
                value.map_or(IValue::None, |v| IValue::$variant(Arc::from(v)))
            }
        }
    )*};
}

slice! {
    i64, IntList, to_int_list;
    SymInt, SymIntList, to_sym_int_list;
    f64, DoubleList, to_double_list;
    bool, BoolList, to_bool_list;
}

impl ArgType for Vec<Scalar> {
    type Ref<'a> = &'a [Scalar];
    type Holder = Vec<Scalar>;
    fn hold(value: IValue) -> Result<Vec<Scalar>> {
        match &value {
            IValue::List(v) => v.iter().map(IValue::to_scalar).collect(),
            IValue::IntList(v) => Ok(v.iter().map(|&v| Scalar::Int(v)).collect()),
            IValue::DoubleList(v) => Ok(v.iter().map(|&v| Scalar::Float(v)).collect()),
            IValue::BoolList(v) => Ok(v.iter().map(|&v| Scalar::Bool(v)).collect()),
            other => Err(other.mismatch("Scalar[]")),
        }
    }
    fn borrow(holder: &Vec<Scalar>) -> &[Scalar] {
        holder
    }
    fn to_ivalue(value: &[Scalar]) -> IValue {
        IValue::List(Arc::new(value.iter().cloned().map(IValue::from).collect()))
    }
}

impl ArgType for String {
    type Ref<'a> = &'a str;
    type Holder = Arc<str>;
    fn hold(value: IValue) -> Result<Arc<str>> {
        match value {
            IValue::String(v) => Ok(v),
            other => Err(other.mismatch("str")),
        }
    }
    fn borrow(holder: &Arc<str>) -> &str {
        holder
    }
    fn to_ivalue(value: &str) -> IValue {
        value.into()
    }
}

impl ArgType for Option<String> {
    type Ref<'a> = Option<&'a str>;
    type Holder = Option<Arc<str>>;
    fn hold(value: IValue) -> Result<Option<Arc<str>>> {
        if value.is_none() {
            Ok(None)
        } else {
            String::hold(value).map(Some)
        }
    }
    fn borrow(holder: &Option<Arc<str>>) -> Option<&str> {
        holder.as_deref()
    }
    fn to_ivalue(value: Option<&str>) -> IValue {
        value.map_or(IValue::None, IValue::from)
    }
}
