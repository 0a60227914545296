//! Values between Python and the engine: one file per kind of object.

pub(crate) mod device;
pub(crate) mod dtype;
pub(crate) mod errors;
pub(crate) mod generator;
pub(crate) mod ivalue;
pub(crate) mod layout;
pub(crate) mod numeric_limits;
pub(crate) mod scalar;
pub(crate) mod size;
pub(crate) mod warnings;
