//! Rearrangements between channels and places of an image.

use c10::{check, Result, SizeInt, SymDimVector, SymInt, Tensor};

use crate::at;

/// `aten::pixel_shuffle`: blocks of `factor²` channels become squares of places.
pub fn pixel_shuffle(self_: &Tensor, upscale_factor: i64) -> Result<Tensor> {
    check!(
        self_.dim() >= 3,
        "pixel_shuffle expects input to have at least 3 dimensions, but got input with {} dimension(s)",
        self_.dim()
    );
    check!(upscale_factor > 0, "pixel_shuffle expects a positive upscale_factor, but got {upscale_factor}");
    let sizes = self_.sym_sizes();
    let lead = sizes.len() - 3;
    let Some(square) = upscale_factor.checked_mul(upscale_factor) else {
        c10::bail!(Runtime, "pixel_shuffle(): upscale_factor {upscale_factor} is too large")
    };
    let (factor, square) = (SymInt::from(upscale_factor), SymInt::from(square));
    check!(
        sizes[lead].sym_mod(&square)?.expect_eq(&SymInt::ZERO)?,
        "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, but \
         input.size(-3)={} is not divisible by {square}",
        sizes[lead]
    );
    let channels = sizes[lead].sym_floordiv(&square)?;
    let mut split = SymDimVector::from(&sizes[..lead]);
    split.extend([
        channels.clone(),
        factor.clone(),
        factor.clone(),
        sizes[lead + 1].clone(),
        sizes[lead + 2].clone(),
    ]);
    let l = lead as i64;
    let mut order: Vec<i64> = (0..=l).collect();
    order.extend([l + 3, l + 1, l + 4, l + 2]);
    let mut out = SymDimVector::from(&sizes[..lead]);
    out.extend([channels, sizes[lead + 1].sym_mul(&factor)?, sizes[lead + 2].sym_mul(&factor)?]);
    rearranged(self_, &split, &order, &out)
}

/// `aten::pixel_unshuffle`
pub fn pixel_unshuffle(self_: &Tensor, downscale_factor: i64) -> Result<Tensor> {
    check!(
        self_.dim() >= 3,
        "pixel_unshuffle expects input to have at least 3 dimensions, but got input with {} dimension(s)",
        self_.dim()
    );
    check!(
        downscale_factor > 0,
        "pixel_unshuffle expects a positive downscale_factor, but got {downscale_factor}"
    );
    let sizes = self_.sym_sizes();
    let lead = sizes.len() - 3;
    let Some(square) = downscale_factor.checked_mul(downscale_factor) else {
        c10::bail!(Runtime, "pixel_unshuffle(): downscale_factor {downscale_factor} is too large")
    };
    let factor = SymInt::from(downscale_factor);
    for (name, at) in [("height", lead + 1), ("width", lead + 2)] {
        check!(
            sizes[at].sym_mod(&factor)?.expect_eq(&SymInt::ZERO)?,
            "pixel_unshuffle expects {name} to be divisible by downscale_factor, but input.size({})={} is not divisible by \
             {factor}",
            at as i64 - sizes.len() as i64,
            sizes[at]
        );
    }
    let (height, width) = (sizes[lead + 1].sym_floordiv(&factor)?, sizes[lead + 2].sym_floordiv(&factor)?);
    let mut split = SymDimVector::from(&sizes[..lead]);
    split.extend([sizes[lead].clone(), height.clone(), factor.clone(), width.clone(), factor.clone()]);
    let l = lead as i64;
    let mut order: Vec<i64> = (0..=l).collect();
    order.extend([l + 2, l + 4, l + 1, l + 3]);
    let mut out = SymDimVector::from(&sizes[..lead]);
    out.extend([sizes[lead].sym_mul(&SymInt::from(square))?, height, width]);
    rearranged(self_, &split, &order, &out)
}

/// A new tensor: split into `split`, permuted, and joined to `out`.
fn rearranged(self_: &Tensor, split: &[SymInt], order: &[i64], out: &[SymInt]) -> Result<Tensor> {
    let permuted = at::permute(&at::reshape(self_, split)?, order)?;
    at::reshape(&at::clone(&permuted, Some(c10::MemoryFormat::Contiguous))?, out)
}

/// `aten::channel_shuffle`: the channels of all groups take turns.
pub fn channel_shuffle(self_: &Tensor, groups: &SymInt) -> Result<Tensor> {
    check!(
        self_.dim() > 2,
        "channel_shuffle expects input with > 2 dims, but got input with sizes {:?}",
        self_.sym_sizes()
    );
    check!(
        SymInt::ONE.expect_le(groups)?,
        "Number of groups to divide channels in must be positive. Value of groups:{groups}"
    );
    let sizes = self_.sym_sizes();
    check!(
        sizes[1].sym_mod(groups)?.expect_eq(&SymInt::ZERO)?,
        "Number of channels must be divisible by groups. Got {} channels and {groups} groups.",
        sizes[1]
    );
    let mut split = SymDimVector::from(&sizes[..1]);
    split.extend([groups.clone(), sizes[1].sym_floordiv(groups)?]);
    split.extend(sizes[2..].iter().cloned());
    let mut order: Vec<i64> = (0..split.len() as i64).collect();
    order.swap(1, 2);
    rearranged(self_, &split, &order, &sizes)
}

/// `aten::native_channel_shuffle`
pub fn native_channel_shuffle(self_: &Tensor, groups: &SymInt) -> Result<Tensor> {
    channel_shuffle(self_, groups)
}
