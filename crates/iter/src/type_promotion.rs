//! Which dtype mixed inputs are computed in.
//!
//! Inputs fall into three ranks: tensors with dimensions, zero-dimensional tensors, and wrapped numbers (Python
//! scalars). A lower rank changes the result only if its *category* (bool < integer < floating < complex) is higher
//! than everything ranked above it.

use c10::{get_default_dtype, internal_assert, promote_types, Result, Scalar, ScalarType, Tensor};

/// The dtypes seen so far, by rank.
#[derive(Clone, Copy, Debug, Default)]
pub struct ResultTypeState {
    dim_result: Option<ScalarType>,
    zero_result: Option<ScalarType>,
    wrapped_result: Option<ScalarType>,
}

impl ResultTypeState {
    /// Takes a tensor into account.
    pub fn update(&mut self, tensor: &Tensor) -> Result<()> {
        let wrapped = tensor.is_wrapped_number();
        let mut current = tensor.dtype();
        if wrapped {
            current = default_of_category(current)?;
        }
        let rank = if tensor.dim() > 0 {
            &mut self.dim_result
        } else if wrapped {
            &mut self.wrapped_result
        } else {
            &mut self.zero_result
        };
        *rank = promote_optional(*rank, Some(current))?;
        Ok(())
    }

    /// Takes a number into account, as if it were a wrapped number.
    pub fn update_scalar(&mut self, scalar: &Scalar) -> Result<()> {
        let current = default_of_category(scalar.scalar_type())?;
        self.wrapped_result = promote_optional(self.wrapped_result, Some(current))?;
        Ok(())
    }

    /// The dtype all inputs together are computed in; `None` without inputs.
    pub fn result(&self) -> Result<Option<ScalarType>> {
        combine_categories(self.dim_result, combine_categories(self.zero_result, self.wrapped_result)?)
    }
}

/// The dtype that an operator on these tensors computes in, as `torch.result_type`.
pub fn result_type(tensors: &[&Tensor]) -> Result<ScalarType> {
    let mut state = ResultTypeState::default();
    for tensor in tensors {
        state.update(tensor)?;
    }
    let result = state.result()?;
    internal_assert!(result.is_some(), "result_type(): no tensors");
    Ok(result.unwrap_or(ScalarType::Float))
}

/// Python's floats and complex numbers have the default dtype of their category.
fn default_of_category(dtype: ScalarType) -> Result<ScalarType> {
    if dtype.is_complex() {
        get_default_dtype().to_complex()
    } else if dtype.is_floating_point() {
        Ok(get_default_dtype())
    } else {
        Ok(dtype)
    }
}

fn promote_optional(a: Option<ScalarType>, b: Option<ScalarType>) -> Result<Option<ScalarType>> {
    match (a, b) {
        (Some(a), Some(b)) if a != b => promote_types(a, b).map(Some),
        (Some(same), _) | (None, Some(same)) => Ok(Some(same)),
        (None, None) => Ok(None),
    }
}

/// `higher` ranks above `lower`, and yields only to a greater category.
fn combine_categories(higher: Option<ScalarType>, lower: Option<ScalarType>) -> Result<Option<ScalarType>> {
    let (Some(high), Some(low)) = (higher, lower) else {
        return Ok(higher.or(lower));
    };
    if high.is_complex() {
        return Ok(higher);
    }
    if high.is_floating_point() {
        return if low.is_complex() { high.to_complex().map(Some) } else { Ok(higher) };
    }
    if high == ScalarType::Bool || low.is_floating_point() || low.is_complex() {
        return promote_optional(higher, lower);
    }
    Ok(higher)
}
