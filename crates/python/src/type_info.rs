//! Questions about dtypes and tensors that no operator answers.

use c10::ScalarType;
use iter::ResultTypeState;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::convert::{dtype, scalar};
use crate::ops::torch_function::handle_function;
use crate::raw::arguments::wrong_type;
use crate::raw::objects::{self, NewError};
use crate::raw::Res;
use crate::tensor;

fn dtype_argument(function: &str, name: &str, position: usize, object: &Bound<'_, PyAny>) -> Res<ScalarType> {
    dtype::extract(object).ok_or_else(|| wrong_type(function, name, Some(position), "torch.dtype", object))
}

/// The smallest dtype that both can be cast to.
#[pyfunction]
fn promote_types<'py>(
    py: Python<'py>,
    type1: &Bound<'py, PyAny>,
    type2: &Bound<'py, PyAny>,
) -> Res<Bound<'py, PyAny>> {
    if let Some(result) = handle_function(py, "promote_types", &[type1, type2], &[], &[])? {
        return Ok(result);
    }
    let a = dtype_argument("promote_types", "type1", 1, type1)?;
    let b = dtype_argument("promote_types", "type2", 2, type2)?;
    Ok(dtype::object(py, c10::promote_types(a, b)?))
}

/// Whether a cast is allowed by the rules of type promotion.
#[pyfunction]
#[pyo3(signature = (from_, to))]
fn can_cast<'py>(
    py: Python<'py>,
    from_: &Bound<'py, PyAny>,
    to: &Bound<'py, PyAny>,
) -> Res<Bound<'py, PyAny>> {
    if let Some(result) = handle_function(py, "can_cast", &[from_, to], &[], &[])? {
        return Ok(result);
    }
    let from = dtype_argument("can_cast", "from_", 1, from_)?;
    let answer = c10::can_cast(from, dtype_argument("can_cast", "to", 2, to)?);
    Ok(objects::boolean(py, answer))
}

/// The dtype that an operation of the two inputs, tensors or numbers, gives.
#[pyfunction]
fn result_type<'py>(
    py: Python<'py>,
    tensor1: &Bound<'py, PyAny>,
    tensor2: &Bound<'py, PyAny>,
) -> Res<Bound<'py, PyAny>> {
    let inputs = [tensor1, tensor2];
    if let Some(result) = handle_function(py, "result_type", &inputs, &[], &inputs)? {
        return Ok(result);
    }
    let mut state = ResultTypeState::default();
    for (position, object) in inputs.into_iter().enumerate() {
        match tensor::get(object) {
            Some(tensor) => state.update(tensor)?,
            None if scalar::number_kind(object).is_some() => {
                state.update_scalar(&scalar::to_scalar(object)?)?
            }
            None => {
                return Err(wrong_type(
                    "result_type",
                    "tensor",
                    Some(position + 1),
                    "Tensor or Number",
                    object,
                ))
            }
        }
    }
    match state.result()? {
        Some(dtype) => Ok(dtype::object(py, dtype)),
        None => Err(PyTypeError::error("result_type(): no inputs").into()),
    }
}

macro_rules! tensor_question {
    ($(#[$doc:meta])* $name:ident, $text:literal, $answer:expr) => {
        $(#[$doc])*
        #[pyfunction]
        fn $name<'py>(py: Python<'py>, input: &Bound<'py, PyAny>) -> Res<Bound<'py, PyAny>> {
            if let Some(result) = handle_function(py, $text, &[input], &[], &[input])? {
                return Ok(result);
            }
            match tensor::get(input) {
                Some(tensor) => Ok(objects::boolean(py, ($answer)(tensor))),
                None => Err(wrong_type($text, "input", Some(1), "Tensor", input)),
            }
        }
    };
}

tensor_question!(
    /// Whether the dtype is a floating one.
    is_floating_point, "is_floating_point", |t: &c10::Tensor| t.is_floating_point()
);
tensor_question!(
    /// Whether the dtype is a complex one.
    is_complex, "is_complex", |t: &c10::Tensor| t.is_complex()
);
tensor_question!(
    /// Whether the dtype has a sign.
    is_signed, "is_signed", |t: &c10::Tensor| t.is_signed()
);
tensor_question!(
    /// Whether the elements are to be read as conjugated.
    is_conj, "is_conj", |t: &c10::Tensor| t.is_conj()
);
tensor_question!(
    /// Whether the elements are to be read as negated.
    is_neg, "is_neg", |t: &c10::Tensor| t.is_neg()
);
tensor_question!(
    /// Whether the tensor was made in inference mode.
    is_inference, "is_inference", |t: &c10::Tensor| t.is_inference()
);

/// The number of elements.
#[pyfunction]
fn numel<'py>(py: Python<'py>, input: &Bound<'py, PyAny>) -> Res<Bound<'py, PyAny>> {
    if let Some(result) = handle_function(py, "numel", &[input], &[], &[input])? {
        return Ok(result);
    }
    match tensor::get(input) {
        Some(tensor) => Ok(objects::int(py, tensor.numel()?)?.into_any()),
        None => Err(wrong_type("numel", "input", Some(1), "Tensor", input)),
    }
}

/// Whether an object is a tensor.
#[pyfunction]
fn is_tensor(obj: &Bound<'_, PyAny>) -> bool {
    tensor::get(obj).is_some()
}

/// Adds the functions.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(promote_types, module)?)?;
    module.add_function(wrap_pyfunction!(can_cast, module)?)?;
    module.add_function(wrap_pyfunction!(result_type, module)?)?;
    module.add_function(wrap_pyfunction!(is_floating_point, module)?)?;
    module.add_function(wrap_pyfunction!(is_complex, module)?)?;
    module.add_function(wrap_pyfunction!(is_signed, module)?)?;
    module.add_function(wrap_pyfunction!(is_conj, module)?)?;
    module.add_function(wrap_pyfunction!(is_neg, module)?)?;
    module.add_function(wrap_pyfunction!(is_inference, module)?)?;
    module.add_function(wrap_pyfunction!(numel, module)?)?;
    module.add_function(wrap_pyfunction!(is_tensor, module)?)
}
