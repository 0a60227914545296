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
