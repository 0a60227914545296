//! Helpers of derivative formulas, by family. The formulas themselves stand in the operators' declarations.
//!
//! All of them are made of differentiable operators, so that gradients can be differentiated again.

mod activations;
mod attention;
mod conv;
mod elementary;
mod factory;
mod index;
mod linalg;
mod loss;
mod moments;
mod norm;
mod pointwise;
mod pool;
mod random;
mod reduce;
mod rnn;
mod scan;
mod shape;
mod special;

pub use activations::*;
pub use attention::*;
pub use conv::*;
pub use elementary::*;
pub use factory::*;
pub use index::*;
pub use linalg::*;
pub use loss::*;
pub use moments::*;
pub use norm::*;
pub use pointwise::*;
pub use pool::*;
pub use random::*;
pub use reduce::*;
pub use rnn::*;
pub use scan::*;
pub use shape::*;
pub use special::*;

/// Formulas name it.
pub use c10::MemoryFormat;
use c10::{Error, Result, Scalar, Tensor};

/// The gradient of an argument for which there is no formula.
pub fn not_implemented(op: &str, arg: &str, why: &str) -> Result<Tensor> {
    Err(Error::not_implemented(format!("{op}(): the derivative for '{arg}' is not implemented: {why}")))
}

/// `sum + term`, where the sum may have no terms yet.
fn plus(sum: Option<Tensor>, term: Tensor) -> Result<Tensor> {
    match sum {
        Some(sum) => ops::at::add_tensor(&sum, &term, &Scalar::Int(1)),
        None => Ok(term),
    }
}
