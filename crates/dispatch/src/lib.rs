//! Who runs: operator schemas, the dispatcher, and boxed and unboxed kernels.
//!
//! An operator is an [`OperatorHandle`]: a schema and a table of kernels indexed by runtime dispatch key.
//! Calling it folds the tensor arguments' key sets with the thread-local include and exclude sets, takes the
//! highest bit and jumps. Two calling conventions exist and convert into each other:
//!
//! * **unboxed**: a Rust function over a typed tuple, reached through a [`TypedOp`];
//! * **boxed**: a function over a [`Stack`] of [`IValue`]s, which any generic kernel (autograd, fallbacks,
//!   transforms, Python) can handle without knowing the operator.
//!
//! The crate knows no operator and no backend.

pub mod abi_table;
pub mod boxing;
pub mod dispatcher;
pub mod schema;

pub use boxing::{ArgTuple, ArgType, BoxedFn, DeviceRules, IValue, KernelFunction, RetType, Stack, Unboxed};
pub use dispatcher::{list_operators, observer, Dispatcher, Library, LibraryKind, OperatorHandle, TypedOp};
pub use schema::{FunctionSchema, OpInfo, OperatorName, ReturnAlias};
