//! c10 as its users see it.

mod autograd_meta;
mod pyobject;
#[path = "../support/shape_env.rs"]
mod shape_env;
mod symbolic_shapes;
mod tensor;
mod tensor_kinds;
