//! Operators as Python callables: one table-driven parser and one trampoline for all of them.
//!
//! `binding` makes the callable objects; `signature` turns operator schemas into argument tables when first called; `parser`
//! puts Python arguments onto a stack; `call` runs the operator and wraps what it returns; `error_text` explains calls
//! that fit no signature.

pub(crate) mod binding;
pub(crate) mod call;
mod convert_argument;
mod error_text;
pub(crate) mod operator_handle;
pub(crate) mod overridable;
mod parser;
pub(crate) mod return_types;
mod signature;
pub(crate) mod torch_function;

pub(crate) use binding::{OpTable, SlotOp};
pub(crate) use convert_argument::convert_alone;
pub(crate) use signature::default_value;
