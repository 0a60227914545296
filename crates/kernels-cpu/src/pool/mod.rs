//! Pooling.

mod element;
mod linear_maps;
mod max_pool2d;
mod max_pool2d_backward;
mod separable;
mod taps;
#[cfg(test)]
mod tests;
mod window_max;

use c10::{Result, Tensor};

/// Whether nothing is to be computed: such calls end before tables are made, which are as long as a dimension and not
/// as the tensor, of `[0, 1 << 40]` too. The gradient that nothing flows into is zero.
fn is_trivial(given: &Tensor, out: &Tensor, backward: bool) -> Result<bool> {
    if out.numel()? == 0 {
        return Ok(true);
    }
    if !backward || given.numel()? != 0 {
        return Ok(false);
    }
    let zero = c10::empty_cpu(&[], out.dtype())?;
    // SAFETY: the tensor was just made, with one element, and nobody else has seen it; zeros are a number of any dtype.
    unsafe { zero.data_ptr().write_bytes(0, zero.item_size()) };
    iter::copy_into(out, &zero, false)?;
    Ok(true)
}

/// Registers the family.
pub(crate) fn register() {
    linear_maps::register();
    max_pool2d::register();
    max_pool2d_backward::register();
    window_max::register();
}
