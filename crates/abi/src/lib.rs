//! The stable binary interface between `ptr` and separately built extensions.
//!
//! A separately built module has its own statics, so it cannot reach the process's dispatcher by linking the
//! `dispatch` crate. It gets an [`Abi`] table instead, exported by `ptr._C` as the PyCapsule
//! [`CAPSULE_NAME`]: registration of operators, kernels, fallbacks and allocators; boxed calls; tensors as
//! opaque handles; errors. [`Library`], [`Tensor`], [`Stack`] wrap it safely.
//!
//! ```ignore
//! let api = unsafe { abi::Api::from_table(table)? };
//! let mut library = api.library(abi::LibraryKind::Fragment, "demo")?;
//! library.def("scale(Tensor x, float by) -> Tensor")?;
//! library.kernel("scale", "CPU", |call| { … })?;
//! ```

mod error;
mod library;
mod stack;
mod table;
mod tensor;

pub use error::{Error, ErrorKind, Result};
pub use library::{Api, Call, Library, LibraryKind, Op};
pub use stack::{Stack, Value};
pub use table::{
    Abi, AbiAllocator, AbiError, AbiKernel, AbiLibrary, AbiOp, AbiStack, AbiStr, AbiTensor, AbiValue,
    Payload, Tag, CAPSULE_NAME, VERSION,
};
pub use tensor::Tensor;
