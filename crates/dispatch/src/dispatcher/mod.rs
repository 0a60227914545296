//! The dispatcher: operators, their kernel tables, registration and calls.

mod library;
pub mod observer;
mod operator_entry;
mod operator_handle;
mod registry;
mod typed_op;

pub use library::{Library, LibraryKind};
pub use operator_handle::OperatorHandle;
pub use registry::{list_operators, Dispatcher};
pub use typed_op::TypedOp;
