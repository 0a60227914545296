//! Meta functions shared by many operators: they need the tensors and the operator's name.

use c10::{Result, Tensor};
use iter::{StructuredOutputs, TensorIterator};

/// `out = f(a)` in the input's dtype.
pub fn unary_op(outs: &mut StructuredOutputs, name: &'static str, a: &Tensor) -> Result<TensorIterator> {
    TensorIterator::unary_op(outs, name, a)
}

/// `out = f(a)`, integral inputs computed in the default dtype.
pub fn unary_float_op(
    outs: &mut StructuredOutputs,
    name: &'static str,
    a: &Tensor,
) -> Result<TensorIterator> {
    TensorIterator::unary_float_op(outs, name, a)
}

/// A predicate of each element.
pub fn unary_bool_op(outs: &mut StructuredOutputs, name: &'static str, a: &Tensor) -> Result<TensorIterator> {
    TensorIterator::unary_force_boolean_op(outs, name, a)
}

/// `out = f(a, b)` in the dtype that the inputs promote to.
pub fn binary_op(
    outs: &mut StructuredOutputs,
    name: &'static str,
    a: &Tensor,
    b: &Tensor,
) -> Result<TensorIterator> {
    TensorIterator::binary_op(outs, name, a, b)
}

/// `out = f(a, b)`, integral inputs computed in the default dtype.
pub fn binary_float_op(
    outs: &mut StructuredOutputs,
    name: &'static str,
    a: &Tensor,
    b: &Tensor,
) -> Result<TensorIterator> {
    TensorIterator::binary_float_op(outs, name, a, b)
}

/// A predicate of pairs of elements.
pub fn comparison_op(
    outs: &mut StructuredOutputs,
    name: &'static str,
    a: &Tensor,
    b: &Tensor,
) -> Result<TensorIterator> {
    TensorIterator::comparison_op(outs, name, a, b)
}

/// Writes every element of `self`, reading none.
pub fn fill_op(outs: &mut StructuredOutputs, _name: &'static str, self_: &Tensor) -> Result<TensorIterator> {
    debug_assert!(outs.is_inplace());
    // Elements that share a place get the same value.
    iter::TensorIteratorConfig::new()
        .check_all_same_dtype(false)
        .resize_outputs(false)
        .check_mem_overlap(false)
        .add_output(self_)
        .build_standalone()
}
