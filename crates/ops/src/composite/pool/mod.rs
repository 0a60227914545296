//! Composites of the `pool` family.

mod average;
mod maximum;
mod pad;
mod resize;
mod shuffle;

pub use average::*;
pub use maximum::*;
pub use pad::*;
pub use resize::*;
pub use shuffle::*;

use c10::{Result, Tensor};

use crate::at;

/// `aten::max_pool2d`
pub fn max_pool2d(
    self_: &Tensor,
    kernel_size: &[i64],
    stride: &[i64],
    padding: &[i64],
    dilation: &[i64],
    ceil_mode: bool,
) -> Result<Tensor> {
    Ok(at::max_pool2d_with_indices(self_, kernel_size, stride, padding, dilation, ceil_mode)?.0)
}
