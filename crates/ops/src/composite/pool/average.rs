//! Averages over lines, as averages over planes of one row, and averages to a size.

use c10::{check, Result, SymDimVector, SymInt, Tensor};

use crate::at;

/// A line as a plane of one row.
pub(super) fn as_plane(name: &str, self_: &Tensor) -> Result<Tensor> {
    check!(
        self_.dim() == 2 || self_.dim() == 3,
        "{name}() Expected 2D or 3D input tensor, but got {:?}",
        self_.sym_sizes()
    );
    at::unsqueeze(self_, -2)
}

pub(super) fn one(name: &str, list: &str, values: &[i64]) -> Result<i64> {
    match values {
        [value] => Ok(*value),
        _ => c10::bail!(Runtime, "{name}() argument '{list}' must contain one int (got {})", values.len()),
    }
}

/// `aten::avg_pool1d`
pub fn avg_pool1d(
    self_: &Tensor,
    kernel_size: &[i64],
    stride: &[i64],
    padding: &[i64],
    ceil_mode: bool,
    count_include_pad: bool,
) -> Result<Tensor> {
    let plane = as_plane("avg_pool1d", self_)?;
    let kernel = one("avg_pool1d", "kernel_size", kernel_size)?;
    let stride = if stride.is_empty() { kernel } else { one("avg_pool1d", "stride", stride)? };
    let padding = one("avg_pool1d", "padding", padding)?;
    let out = at::avg_pool2d(
        &plane,
        &[1, kernel],
        &[1, stride],
        &[0, padding],
        ceil_mode,
        count_include_pad,
        None,
    )?;
    at::squeeze_dim(&out, -2)
}

/// `aten::adaptive_avg_pool1d`
pub fn adaptive_avg_pool1d(self_: &Tensor, output_size: &[i64]) -> Result<Tensor> {
    let plane = as_plane("adaptive_avg_pool1d", self_)?;
    let size = one("adaptive_avg_pool1d", "output_size", output_size)?;
    at::squeeze_dim(&at::adaptive_avg_pool2d(&plane, &[SymInt::ONE, SymInt::from(size)])?, -2)
}

fn adaptive(self_: &Tensor, output_size: &[SymInt], spatial: usize) -> Result<Tensor> {
    check!(output_size.len() == spatial, "adaptive_avg_pool{spatial}d: output_size must be {spatial}");
    let mut whole = true;
    for size in output_size {
        check!(
            *size == 0 || c10::SizeInt::expect_nonnegative(size)?,
            "adaptive_avg_pool{spatial}d: elements of output_size must be greater than or equal to 0 but received \
             {output_size:?}"
        );
        whole = whole && *size == 1;
    }
    // One window is a mean.
    let ndim = self_.dim();
    if whole && (ndim == spatial as i64 + 1 || ndim == spatial as i64 + 2) && self_.is_contiguous() {
        let dims: Vec<i64> = (1..=spatial as i64).map(|d| -d).collect();
        if !crate::sym::is_empty(self_)? && !self_.dtype().is_integral(true) {
            return at::mean_dim(self_, Some(&dims), true, None);
        }
    }
    match spatial {
        2 => at::_adaptive_avg_pool2d(self_, output_size),
        _ => at::_adaptive_avg_pool3d(self_, output_size),
    }
}

/// `aten::adaptive_avg_pool2d`
pub fn adaptive_avg_pool2d(self_: &Tensor, output_size: &[SymInt]) -> Result<Tensor> {
    adaptive(self_, output_size, 2)
}

/// `aten::adaptive_avg_pool3d`
pub fn adaptive_avg_pool3d(self_: &Tensor, output_size: &[SymInt]) -> Result<Tensor> {
    adaptive(self_, output_size, 3)
}

/// The last `count` of a tensor's sizes.
pub fn last_sizes(sizes: &[SymInt], count: usize) -> Result<SymDimVector> {
    check!(sizes.len() >= count, "expected at least {count} dimensions, got {}", sizes.len());
    Ok(SymDimVector::from(&sizes[sizes.len() - count..]))
}
