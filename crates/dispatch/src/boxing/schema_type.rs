//! Which schema type a Rust type stands for, so that typed handles can be compared with the schemas they name.

use std::sync::Arc;

use c10::{
    Device, Generator, Layout, MemoryFormat, Scalar, ScalarType, Storage, Stream, SymBool, SymFloat, SymInt,
    Tensor,
};
use num_complex::Complex64;

use crate::schema::{FunctionSchema, Type};

/// A Rust type that stands for a schema type.
pub trait SchemaType {
    /// The schema type.
    fn schema_type() -> Type;
}

macro_rules! schema_types {
    ($($ty:ty => $variant:ident),* $(,)?) => {$(
        impl SchemaType for $ty {
            fn schema_type() -> Type {
                Type::$variant
            }
        }
    )*};
}

schema_types! {
    Tensor => Tensor, Storage => Storage, Generator => Generator, Stream => Stream, Scalar => Scalar,
    i64 => Int, f64 => Float, bool => Bool, Complex64 => Complex, String => Str,
    SymInt => SymInt, SymFloat => SymFloat, SymBool => SymBool,
    ScalarType => ScalarType, Layout => Layout, Device => Device, MemoryFormat => MemoryFormat,
}

impl<T: SchemaType> SchemaType for Option<T> {
    fn schema_type() -> Type {
        Type::optional(T::schema_type())
    }
}

impl<T: SchemaType> SchemaType for Vec<T> {
    fn schema_type() -> Type {
        Type::list(T::schema_type())
    }
}

impl<T: SchemaType> SchemaType for Arc<[T]> {
    fn schema_type() -> Type {
        Type::list(T::schema_type())
    }
}

/// Whether a value of the Rust type may stand where the schema says `declared`. List sizes are hints to callers.
fn fits(given: &Type, declared: &Type) -> bool {
    match (given, declared) {
        (Type::Optional(given), Type::Optional(declared))
        | (Type::List(given, _), Type::List(declared, _)) => fits(given, declared),
        (Type::Int, Type::DeviceIndex) | (_, Type::Any | Type::Var(_)) => true,
        (given, declared) => given == declared,
    }
}

/// Whether a typed signature is that of a schema. A return that may be missing is an optional for Rust alone.
pub(crate) fn signature_fits(arguments: &[Type], returns: &[Type], schema: &FunctionSchema) -> bool {
    arguments.len() == schema.arguments.len()
        && returns.len() == schema.returns.len()
        && arguments.iter().zip(&schema.arguments).all(|(given, argument)| fits(given, &argument.ty))
        && returns
            .iter()
            .zip(&schema.returns)
            .all(|(given, declared)| fits(given, &declared.ty) || fits(given.unwrap_optional(), &declared.ty))
}
