//! c10 as its users see it.

mod autograd_meta;
mod pyobject;
mod tensor;
mod tensor_kinds;
