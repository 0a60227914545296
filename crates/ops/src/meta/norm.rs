//! Meta functions of the `norm` operators.

use c10::{check, Result, ScalarType, SizeInt, SymInt, Tensor, TensorOptions};
use iter::StructuredOutputs;

/// The dtype in which a normalization computes its statistics.
pub fn statistics_dtype(dtype: ScalarType) -> ScalarType {
    if dtype.is_reduced_floating_point() {
        ScalarType::Float
    } else {
        dtype
    }
}

fn check_parameter<I: SizeInt>(name: &str, parameter: Option<&Tensor>, shape: &[I]) -> Result<()> {
    if let Some(parameter) = parameter {
        check!(
            I::expect_same(&I::sizes_of(parameter)?, shape)?,
            "Expected {name} to be of same shape as normalized_shape, but got {name} of shape {:?} and normalized_shape = \
             {shape:?}",
            parameter.sym_sizes()
        );
    }
    Ok(())
}

/// Whether the parameters are of another dtype than the input: halves may be normalized with float32 parameters.
pub fn has_mixed_parameters(input: &Tensor, parameters: &[Option<&Tensor>]) -> Result<bool> {
    let given = || parameters.iter().copied().flatten();
    let Some(first) = given().next() else { return Ok(false) };
    if first.dtype() == input.dtype() {
        for parameter in given() {
            check!(
                parameter.dtype() == input.dtype(),
                "expected scalar type {} but found {}",
                input.dtype(),
                parameter.dtype()
            );
        }
        return Ok(false);
    }
    check!(
        given().all(|parameter| parameter.dtype() == ScalarType::Float),
        "mixed dtype (CPU): expect parameter to have scalar type of Float"
    );
    check!(
        input.dtype().is_reduced_floating_point(),
        "mixed dtype (CPU): all inputs must share same datatype."
    );
    Ok(true)
}

/// `native_layer_norm`: the result, and the mean and reciprocal deviation of each row.
pub fn native_layer_norm_meta<I: SizeInt>(
    outs: &mut StructuredOutputs,
    input: &Tensor,
    normalized_shape: &[SymInt],
    weight: Option<&Tensor>,
    bias: Option<&Tensor>,
    _eps: f64,
) -> Result<()> {
    let shape = I::from_sym_slice(normalized_shape)?;
    check!(
        !shape.is_empty(),
        "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got \
         normalized_shape = {shape:?}"
    );
    check_parameter("weight", weight, &shape)?;
    check_parameter("bias", bias, &shape)?;
    let sizes = I::sizes_of(input)?;
    let leading = sizes.len().checked_sub(shape.len());
    check!(
        leading.map_or(Ok(false), |leading| I::expect_same(&sizes[leading..], &shape))?,
        "Given normalized_shape={shape:?}, expected input with shape [*, {}], but got input of size{:?}",
        shape.iter().map(I::to_string).collect::<Vec<_>>().join(", "),
        &sizes[..]
    );
    let mut statistics = I::to_vector(&sizes[..leading.unwrap_or(0)]);
    statistics.extend(shape.iter().map(|_| I::ONE));
    let options = TensorOptions::new().device(input.device());
    let mut dtype = statistics_dtype(input.dtype());
    // The CPU keeps the statistics of halves in float32 for float32 parameters only; other devices always do.
    if input.is_cpu() && !has_mixed_parameters(input, &[weight, bias])? {
        dtype = input.dtype();
    }
    outs.set_output_contiguous(0, &sizes, options.dtype(input.dtype()))?;
    outs.set_output_contiguous(1, &statistics, options.dtype(dtype))?;
    outs.set_output_contiguous(2, &statistics, options.dtype(dtype))
}
