//! Meta functions of the `special` operators that need more than a preset.

use c10::{check, Result, Tensor};
use iter::{StructuredOutputs, TensorIterator};

/// `polygamma`
pub fn polygamma_meta(outs: &mut StructuredOutputs, n: i64, self_: &Tensor) -> Result<TensorIterator> {
    check!(n >= 0, "polygamma(n, x) does not support negative n.");
    TensorIterator::unary_float_op(outs, "polygamma", self_)
}
