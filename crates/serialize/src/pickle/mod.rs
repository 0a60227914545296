//! Pickles: the value tree, reading, writing, and which globals may be read.

pub(crate) mod allow_list;
pub(crate) mod builder;
pub(crate) mod compat;
pub(crate) mod number;
pub(crate) mod opcode;
pub(crate) mod order;
pub(crate) mod pickler;
pub(crate) mod records;
pub(crate) mod text;
pub(crate) mod unpickler;
pub(crate) mod value;
