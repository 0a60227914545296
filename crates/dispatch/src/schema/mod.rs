//! PyTorch's operator schema language: `aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor`.
//!
//! [`FunctionSchema::parse`] reads what `native_functions.yaml` and `TORCH_LIBRARY` strings contain, and `Display`
//! writes PyTorch's own spelling. Parsing yields one canonical value per meaning, so `parse(print(x)) == x`.
//!
//! One idea per file: the text is cut by `lexer`, read by `parser`, `parse_type` and `parse_default`, and written by
//! `printer`; the data is [`FunctionSchema`] over [`Argument`]s with a [`Type`], [`AliasInfo`] and [`DefaultValue`];
//! `op_info` digests a schema for generic kernels; `validate` and `compat` judge schemas, alone and against an older one.

mod alias;
mod argument;
mod compat;
mod default;
mod error;
mod function_schema;
mod lexer;
mod op_info;
mod operator_name;
mod parse_default;
mod parse_type;
mod parser;
mod printer;
mod type_;
mod validate;

#[cfg(test)]
mod tests;

pub use alias::{AliasInfo, AliasSet, WILDCARD};
pub use argument::Argument;
pub use default::DefaultValue;
pub use error::{Result, SchemaError};
pub use function_schema::{FunctionSchema, SchemaKind};
pub use op_info::{OpInfo, ReturnAlias};
pub use operator_name::OperatorName;
pub use type_::Type;
