//! The zip container, as far as `torch.save` uses it.

pub(crate) mod atomic_file;
pub(crate) mod format;
pub(crate) mod reader;
pub(crate) mod writer;
