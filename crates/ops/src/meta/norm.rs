//! Meta functions of the `norm` operators.

use c10::{check, DimVector, Result, ScalarType, SymInt, Tensor, TensorOptions};
use iter::StructuredOutputs;

use crate::sym::ints;

/// The dtype in which a normalization keeps its statistics.
pub fn statistics_dtype(dtype: ScalarType) -> ScalarType {
    if dtype.is_reduced_floating_point() {
        ScalarType::Float
    } else {
        dtype
    }
}

fn check_parameter(name: &str, parameter: Option<&Tensor>, shape: &[i64]) -> Result<()> {
    if let Some(parameter) = parameter {
        check!(
            parameter.sizes()? == shape,
            "Expected {name} to be of same shape as normalized_shape, but got {name} of shape {:?} and normalized_shape = \
             {shape:?}",
            parameter.sizes()?
        );
    }
    Ok(())
}

/// `native_layer_norm`: the result, and the mean and reciprocal deviation of each row.
pub fn native_layer_norm_meta(
    outs: &mut StructuredOutputs,
    input: &Tensor,
    normalized_shape: &[SymInt],
    weight: Option<&Tensor>,
    bias: Option<&Tensor>,
    _eps: f64,
) -> Result<()> {
    let shape = ints(normalized_shape)?;
    check!(
        !shape.is_empty(),
        "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got \
         normalized_shape = {shape:?}"
    );
    check_parameter("weight", weight, &shape)?;
    check_parameter("bias", bias, &shape)?;
    let sizes = input.sizes()?;
    check!(
        sizes.ends_with(&shape),
        "Given normalized_shape={shape:?}, expected input with shape [*, {}], but got input of size{sizes:?}",
        shape.iter().map(i64::to_string).collect::<Vec<_>>().join(", ")
    );
    let mut statistics = DimVector::from_slice(&sizes[..sizes.len() - shape.len()]);
    statistics.extend(shape.iter().map(|_| 1));
    let options = TensorOptions::new().device(input.device());
    let dtype = statistics_dtype(input.dtype());
    outs.set_output_contiguous(0, sizes, options.dtype(input.dtype()))?;
    outs.set_output_contiguous(1, &statistics, options.dtype(dtype))?;
    outs.set_output_contiguous(2, &statistics, options.dtype(dtype))
}
