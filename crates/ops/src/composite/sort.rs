//! Composites of the `sort` family; beside it [different elements and histograms](unique).

mod unique;

use c10::{Result, SymInt, Tensor};
pub use unique::*;

use crate::at;

/// `aten::sort`
pub fn sort(self_: &Tensor, dim: i64, descending: bool) -> Result<(Tensor, Tensor)> {
    at::sort_stable(self_, Some(false), dim, descending)
}

/// `aten::sort.values`
pub fn sort_out(
    self_: &Tensor,
    dim: i64,
    descending: bool,
    values: &Tensor,
    indices: &Tensor,
) -> Result<(Tensor, Tensor)> {
    at::sort_values_stable(self_, Some(false), dim, descending, values, indices)
}

/// `aten::argsort`
pub fn argsort(self_: &Tensor, dim: i64, descending: bool) -> Result<Tensor> {
    Ok(at::sort(self_, dim, descending)?.1)
}

/// `aten::argsort.stable`
pub fn argsort_stable(self_: &Tensor, stable: bool, dim: i64, descending: bool) -> Result<Tensor> {
    Ok(at::sort_stable(self_, Some(stable), dim, descending)?.1)
}

/// `aten::bucketize.Tensor`
pub fn bucketize_tensor(self_: &Tensor, boundaries: &Tensor, out_int32: bool, right: bool) -> Result<Tensor> {
    c10::check!(
        boundaries.dim() == 1,
        "bucketize(): boundaries tensor must be 1 dimension, but got dim({})",
        boundaries.dim()
    );
    at::searchsorted_tensor(boundaries, self_, out_int32, right, None, None)
}

/// `aten::isin.Tensor_Tensor`: a search in the sorted test elements.
pub fn isin_tensor_tensor(
    elements: &Tensor,
    test_elements: &Tensor,
    _assume_unique: bool,
    invert: bool,
) -> Result<Tensor> {
    use c10::{Scalar, ScalarType, SymInt};
    let refused = [ScalarType::Bool, ScalarType::ComplexFloat, ScalarType::ComplexDouble];
    for tensor in [elements, test_elements] {
        c10::check!(
            !refused.contains(&tensor.dtype()),
            "Unsupported input type encountered for isin(): {}",
            tensor.dtype().short_name()
        );
    }
    let dtype = iter::result_type(&[elements, test_elements])?;
    let elements = at::to_dtype(elements, dtype, false, false, None)?;
    let flat = at::reshape(&at::to_dtype(test_elements, dtype, false, false, None)?, &[SymInt::from(-1)])?;
    let last = flat.sym_numel().sym_sub(&SymInt::from(1))?.guard_int()?;
    if last < 0 {
        return at::full_like(
            &elements,
            &Scalar::Bool(invert),
            Some(ScalarType::Bool),
            None,
            None,
            None,
            None,
        );
    }
    let (sorted, _) = at::sort(&flat, 0, false)?;
    let place = at::searchsorted_tensor(&sorted, &elements, false, false, None, None)?;
    let place = at::clamp_max(&place, &Scalar::Int(last))?;
    let nearest = at::index_tensor(&sorted, &[Some(place)])?;
    if invert {
        at::ne_tensor(&nearest, &elements)
    } else {
        at::eq_tensor(&nearest, &elements)
    }
}

/// `aten::msort`
pub fn msort(self_: &Tensor) -> Result<Tensor> {
    Ok(at::sort(self_, 0, false)?.0)
}

fn flattened(self_: &Tensor) -> Result<Tensor> {
    at::reshape(self_, &[SymInt::from(-1)])
}

/// `aten::median`
pub fn median(self_: &Tensor) -> Result<Tensor> {
    median_of_all(self_, false)
}

/// `aten::nanmedian`
pub fn nanmedian(self_: &Tensor) -> Result<Tensor> {
    median_of_all(self_, true)
}

fn median_of_all(self_: &Tensor, ignore_nan: bool) -> Result<Tensor> {
    if crate::sym::is_empty(self_)? {
        // Of nothing: NaN, or the least integer.
        let value = if self_.is_floating_point() {
            c10::Scalar::Float(f64::NAN)
        } else {
            least_integer(self_.dtype())
        };
        return at::new_full(self_, &[], &value, None, None, None, None);
    }
    let flat = flattened(self_)?;
    let (value, _) =
        if ignore_nan { at::nanmedian_dim(&flat, 0, false)? } else { at::median_dim(&flat, 0, false)? };
    Ok(value)
}

fn least_integer(dtype: c10::ScalarType) -> c10::Scalar {
    c10::Scalar::Int(match dtype {
        c10::ScalarType::Char => i8::MIN.into(),
        c10::ScalarType::Short => i16::MIN.into(),
        c10::ScalarType::Int => i32::MIN.into(),
        c10::ScalarType::Long => i64::MIN,
        _ => 0,
    })
}
