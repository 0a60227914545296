//! The rules of the common kinds of operators.

use c10::{Result, ScalarType, Tensor};

use crate::config::TensorIteratorConfig;
use crate::iterator::TensorIterator;
use crate::structured_outputs::StructuredOutputs;

/// Promotion among the inputs, with the result cast back to a given output.
fn promoting<'a>(op_name: &'static str) -> TensorIteratorConfig<'a> {
    TensorIteratorConfig::new()
        .op_name(op_name)
        .promote_inputs_to_common_dtype(true)
        .cast_common_dtype_to_outputs(true)
        .enforce_safe_casting_to_output(true)
}

impl TensorIterator {
    /// `out = f(a, b)` in the dtype that the inputs promote to.
    pub fn binary_op(
        outs: &mut StructuredOutputs,
        op_name: &'static str,
        a: &Tensor,
        b: &Tensor,
    ) -> Result<Self> {
        promoting(op_name).allow_cpu_scalars(true).add_input(a).add_input(b).build(outs)
    }

    /// [`binary_op`](Self::binary_op) where integral inputs are computed in the default dtype (division).
    pub fn binary_float_op(
        outs: &mut StructuredOutputs,
        op_name: &'static str,
        a: &Tensor,
        b: &Tensor,
    ) -> Result<Self> {
        promoting(op_name)
            .promote_integer_inputs_to_float(true)
            .allow_cpu_scalars(true)
            .add_input(a)
            .add_input(b)
            .build(outs)
    }

    /// A comparison: inputs promote, the output is bool. A given output of another dtype is computed in the common
    /// dtype and cast.
    pub fn comparison_op(
        outs: &mut StructuredOutputs,
        op_name: &'static str,
        a: &Tensor,
        b: &Tensor,
    ) -> Result<Self> {
        let cast = outs.maybe_get_output(0).is_some_and(|out| out.dtype() != ScalarType::Bool);
        TensorIteratorConfig::new()
            .op_name(op_name)
            .promote_inputs_to_common_dtype(true)
            .cast_common_dtype_to_outputs(cast)
            .declare_static_dtype(ScalarType::Bool)
            .allow_cpu_scalars(true)
            .add_input(a)
            .add_input(b)
            .build(outs)
    }

    /// `out = f(a)` in the input's dtype, which a given output must have.
    pub fn unary_op(outs: &mut StructuredOutputs, op_name: &'static str, a: &Tensor) -> Result<Self> {
        TensorIteratorConfig::new().op_name(op_name).add_input(a).build(outs)
    }

    /// `out = f(a)`, computed in the default dtype when the input is integral.
    pub fn unary_float_op(outs: &mut StructuredOutputs, op_name: &'static str, a: &Tensor) -> Result<Self> {
        promoting(op_name).promote_integer_inputs_to_float(true).add_input(a).build(outs)
    }

    /// A predicate of each element: the output is bool, whatever the input.
    pub fn unary_force_boolean_op(
        outs: &mut StructuredOutputs,
        op_name: &'static str,
        a: &Tensor,
    ) -> Result<Self> {
        TensorIteratorConfig::new()
            .op_name(op_name)
            .check_all_same_dtype(false)
            .declare_static_dtype(ScalarType::Bool)
            .declare_static_device(a.device())
            .add_input(a)
            .build(outs)
    }

    /// `out = f(a, b, c)` in the dtype that the inputs promote to.
    pub fn ternary_op(
        outs: &mut StructuredOutputs,
        op_name: &'static str,
        a: &Tensor,
        b: &Tensor,
        c: &Tensor,
    ) -> Result<Self> {
        promoting(op_name).allow_cpu_scalars(true).add_input(a).add_input(b).add_input(c).build(outs)
    }

    /// Fills `out`: no inputs.
    pub fn nullary_op(out: &Tensor) -> Result<Self> {
        TensorIteratorConfig::new()
            .check_all_same_dtype(false)
            .resize_outputs(false)
            .add_output(out)
            .build_standalone()
    }

    /// `dst = src`, broadcasting; the kernel converts between the dtypes, and perhaps devices.
    pub fn copy_op(dst: &Tensor, src: &Tensor) -> Result<Self> {
        TensorIteratorConfig::new()
            .op_name("copy_")
            .resize_outputs(false)
            .check_all_same_dtype(false)
            .check_all_same_device(false)
            .add_output(dst)
            .add_input(src)
            .build_standalone()
    }
}
