//! Maxima over lines, as maxima over planes of one row, and what undoes them.

use c10::{check, Result, ScalarType, SizeInt, SymDimVector, SymInt, Tensor};

use super::average::{as_plane, one};
use crate::at;

/// `aten::max_pool1d_with_indices`
pub fn max_pool1d_with_indices(
    self_: &Tensor,
    kernel_size: &[i64],
    stride: &[i64],
    padding: &[i64],
    dilation: &[i64],
    ceil_mode: bool,
) -> Result<(Tensor, Tensor)> {
    let plane = as_plane("max_pool1d", self_)?;
    let kernel = one("max_pool1d", "kernel_size", kernel_size)?;
    let stride = if stride.is_empty() { kernel } else { one("max_pool1d", "stride", stride)? };
    let padding = one("max_pool1d", "padding", padding)?;
    let dilation = one("max_pool1d", "dilation", dilation)?;
    let (out, indices) = at::max_pool2d_with_indices(
        &plane,
        &[1, kernel],
        &[1, stride],
        &[0, padding],
        &[1, dilation],
        ceil_mode,
    )?;
    Ok((at::squeeze_dim(&out, -2)?, at::squeeze_dim(&indices, -2)?))
}

/// `aten::max_pool1d`
pub fn max_pool1d(
    self_: &Tensor,
    kernel_size: &[i64],
    stride: &[i64],
    padding: &[i64],
    dilation: &[i64],
    ceil_mode: bool,
) -> Result<Tensor> {
    Ok(max_pool1d_with_indices(self_, kernel_size, stride, padding, dilation, ceil_mode)?.0)
}

/// `aten::max_pool3d`
pub fn max_pool3d(
    self_: &Tensor,
    kernel_size: &[i64],
    stride: &[i64],
    padding: &[i64],
    dilation: &[i64],
    ceil_mode: bool,
) -> Result<Tensor> {
    Ok(at::max_pool3d_with_indices(self_, kernel_size, stride, padding, dilation, ceil_mode)?.0)
}

/// `aten::adaptive_max_pool1d`
pub fn adaptive_max_pool1d(self_: &Tensor, output_size: &[i64]) -> Result<(Tensor, Tensor)> {
    let plane = as_plane("adaptive_max_pool1d", self_)?;
    let size = one("adaptive_max_pool1d", "output_size", output_size)?;
    let (out, indices) = at::adaptive_max_pool2d(&plane, &[1, size])?;
    Ok((at::squeeze_dim(&out, -2)?, at::squeeze_dim(&indices, -2)?))
}

/// Puts every element where `indices` says in planes of `output_size`.
fn unpool(
    name: &str,
    self_: &Tensor,
    indices: &Tensor,
    output_size: &[SymInt],
    spatial: usize,
) -> Result<Tensor> {
    check!(
        indices.dtype() == ScalarType::Long,
        "elements in indices should be type int64 but got: {}",
        indices.dtype().short_name()
    );
    check!(
        output_size.len() == spatial,
        "There should be exactly {spatial} elements in output_size, but got {} elements.",
        output_size.len()
    );
    let sizes = self_.sym_sizes();
    check!(
        sizes.len() == spatial + 1 || sizes.len() == spatial + 2,
        "Input to {name} should be a {}d or {}d Tensor, but got a tensor with {} dimensions.",
        spatial + 1,
        spatial + 2,
        sizes.len()
    );
    check!(
        crate::sym::expect_same_sizes(self_, indices)?,
        "Expected shape of indices to be same as that of the input tensor ({sizes:?}) but got indices tensor with shape: {:?}",
        indices.sym_sizes()
    );
    let lead = sizes.len() - spatial;
    for (d, size) in sizes.iter().enumerate().skip(1) {
        check!(
            SymInt::ONE.expect_le(size)?,
            "{name}(): Expected input to have non-zero size for non-batch dimensions, but got {sizes:?} with dimension {d} \
             being empty."
        );
    }
    let flatten = |plane: &[SymInt]| -> Result<SymDimVector> {
        let mut area = SymInt::ONE;
        for size in plane {
            area = area.sym_mul(size)?;
        }
        let mut flat = SymDimVector::from(&sizes[..lead]);
        flat.push(area);
        Ok(flat)
    };
    let (from, to) = (flatten(&sizes[lead..])?, flatten(output_size)?);
    let zeros = at::new_zeros(self_, &to, None, None, None, None)?;
    let out = at::scatter_src(&zeros, -1, &at::reshape(indices, &from)?, &at::reshape(self_, &from)?)?;
    let mut shape = SymDimVector::from(&sizes[..lead]);
    shape.extend(output_size.iter().cloned());
    at::view(&out, &shape)
}

/// `aten::max_unpool2d`
pub fn max_unpool2d(self_: &Tensor, indices: &Tensor, output_size: &[SymInt]) -> Result<Tensor> {
    unpool("max_unpooling2d_forward_out", self_, indices, output_size, 2)
}

/// `aten::max_unpool3d`
pub fn max_unpool3d(
    self_: &Tensor,
    indices: &Tensor,
    output_size: &[SymInt],
    stride: &[i64],
    padding: &[i64],
) -> Result<Tensor> {
    check!(
        stride.len() == 3,
        "There should be exactly three elements (depth, height, width) in stride, but got: {} elements.",
        stride.len()
    );
    check!(
        padding.len() == 3,
        "There should be exactly three elements (depth, height, width) in padding, but got: {} elements.",
        padding.len()
    );
    check!(stride.iter().all(|&s| s > 0), "strides should be greater than zero, but got stride: {stride:?}");
    unpool("max_unpooling3d_forward_out", self_, indices, output_size, 3)
}
