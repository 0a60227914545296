//! Meta functions: the checks, the dtype and the shape of structured operators.
//!
//! A meta function sets the shapes of its [`StructuredOutputs`](iter::StructuredOutputs), which may be new tensors,
//! `out=` or the first input, and returns the plan its kernel works by. It runs once per call, for every backend.

pub mod attention;
pub mod conv;
pub mod factory;
pub mod index;
pub mod linalg;
pub mod loss;
pub mod norm;
pub mod pointwise;
pub mod pool;
pub mod presets;
pub mod random;
pub mod reduce;
pub mod rnn;
pub mod scan;
pub mod shape;
pub mod sort;
pub mod special;
