//! Composites of the `sort` family.

use c10::{Result, Tensor};

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
