//! The two calling conventions and the conversions between them.

mod arg_tuple;
mod arg_type;
mod ivalue;
mod kernel_function;
mod ret_type;
mod schema_type;

pub use arg_tuple::ArgTuple;
pub use arg_type::ArgType;
pub use ivalue::{IValue, Stack};
pub use kernel_function::{BoxedFn, KernelFunction, Unboxed};
pub use ret_type::RetType;
pub(crate) use schema_type::signature_fits;
pub use schema_type::SchemaType;
