//! Which memory formats a pair of sizes and strides is in.
//!
//! "Contiguous in a format" says that memory is dense and in exactly that order. "Strides like channels last" is weaker:
//! the order of the strides agrees, gaps are allowed; it is what `suggest_memory_format` asks.

use crate::{Result, SizeInt};

/// Whether walking `dims`, fastest first, meets each element of memory once, in order. Dimensions of size 1
/// may have any stride.
#[inline]
pub(crate) fn is_dense_in_order<I: SizeInt>(
    sizes: &[I],
    strides: &[I],
    dims: impl Iterator<Item = usize>,
) -> Result<bool> {
    let mut expected = I::ONE;
    for dim in dims {
        let (size, stride) = (&sizes[dim], &strides[dim]);
        // What is certainly in order needs no decision about sizes of 1.
        if *stride != expected {
            if size.is_one()? {
                continue;
            }
            if !stride.guard_eq(&expected)? {
                return Ok(false);
            }
        }
        expected = expected.stride_mul(size)?;
    }
    Ok(true)
}

/// Whether memory is row-major. Empty tensors are.
#[inline]
pub fn compute_contiguous(sizes: &[i64], strides: &[i64], numel: i64) -> bool {
    numel == 0 || is_dense_in_order(sizes, strides, (0..sizes.len()).rev()).unwrap_or(false)
}

/// Whether memory is NHWC, for NCHW sizes.
pub fn compute_channels_last_contiguous_2d(sizes: &[i64], strides: &[i64]) -> bool {
    sizes.len() == 4 && is_dense_in_order(sizes, strides, [1, 3, 2, 0].into_iter()).unwrap_or(false)
}

/// Whether memory is NDHWC, for NCDHW sizes.
pub fn compute_channels_last_contiguous_3d(sizes: &[i64], strides: &[i64]) -> bool {
    sizes.len() == 5 && is_dense_in_order(sizes, strides, [1, 4, 3, 2, 0].into_iter()).unwrap_or(false)
}

/// Whether strides grow in the order of `dims`, the channel dimension first.
pub(crate) fn is_like_channels_last<I: SizeInt>(sizes: &[I], strides: &[I], dims: &[usize]) -> Result<bool> {
    // A broadcast channel dimension says nothing: call it contiguous.
    if strides[1].is_zero()? {
        return Ok(false);
    }
    let mut min = I::ZERO;
    for &dim in dims {
        if sizes[dim].is_zero()? || strides[dim].guard_lt(&min)? {
            return Ok(false);
        }
        // Ambiguous: N111 with equal strides, contiguous or sliced. Row-major wins.
        if dim == 0 && min.guard_eq(&strides[1])? {
            return Ok(false);
        }
        // A dimension of size 1 that claims the stride of its predecessor's block distinguishes
        // N1H1 in the two formats, so sizes above 1 raise the bar.
        min = strides[dim].clone();
        if I::ONE.guard_lt(&sizes[dim])? {
            min = min.stride_mul(&sizes[dim])?;
        }
    }
    Ok(true)
}

/// Whether the strides of NCHW sizes are ordered as channels last.
pub fn is_channels_last_strides_2d(sizes: &[i64], strides: &[i64]) -> bool {
    sizes.len() == 4 && is_like_channels_last(sizes, strides, &[1, 3, 2, 0]).unwrap_or(false)
}

/// Whether the strides of NCDHW sizes are ordered as channels last.
pub fn is_channels_last_strides_3d(sizes: &[i64], strides: &[i64]) -> bool {
    sizes.len() == 5 && is_like_channels_last(sizes, strides, &[1, 4, 3, 2, 0]).unwrap_or(false)
}

/// Whether the elements fill a block of memory, each once, in any dimension order.
pub fn compute_non_overlapping_and_dense(sizes: &[i64], strides: &[i64]) -> bool {
    is_dense_in_some_order(sizes, strides).unwrap_or(false)
}

/// [`compute_non_overlapping_and_dense`] for any integers.
pub(crate) fn is_dense_in_some_order<I: SizeInt>(sizes: &[I], strides: &[I]) -> Result<bool> {
    let two = I::from(2);
    if sizes.len() == 1 {
        return Ok(strides[0] == I::ONE || sizes[0].guard_lt(&two)? || strides[0].guard_eq(&I::ONE)?);
    }
    // By stride; sizes 0 and 1 are left out, since their strides say nothing.
    let mut dims = super::DimOrder::new();
    for (dim, size) in sizes.iter().enumerate() {
        if !size.guard_lt(&two)? {
            dims.push(dim);
        }
    }
    let mut required = I::ONE;
    for dim in super::order_by_stride(strides, dims.into_iter())? {
        if !strides[dim].guard_eq(&required)? {
            return Ok(false);
        }
        required = required.stride_mul(&sizes[dim])?;
    }
    Ok(true)
}

/// The cached answers of one tensor, a bit each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContiguityFlags(u8);

impl ContiguityFlags {
    const CONTIGUOUS: u8 = 1;
    const CHANNELS_LAST_CONTIGUOUS: u8 = 2;
    const CHANNELS_LAST_3D_CONTIGUOUS: u8 = 4;
    const CHANNELS_LAST: u8 = 8;
    const CHANNELS_LAST_3D: u8 = 16;
    const NON_OVERLAPPING_AND_DENSE: u8 = 32;

    /// The flags of a tensor that is known to be row-major and has no 4 or 5 dimensions.
    pub const fn row_major() -> Self {
        Self(Self::CONTIGUOUS | Self::NON_OVERLAPPING_AND_DENSE)
    }

    /// Computes all flags.
    #[inline]
    pub fn compute(sizes: &[i64], strides: &[i64], numel: i64) -> Self {
        let contiguous = compute_contiguous(sizes, strides, numel);
        if contiguous && !matches!(sizes.len(), 4 | 5) {
            return Self::row_major();
        }
        Self::compute_rest(sizes, strides, contiguous)
    }

    #[inline(never)]
    fn compute_rest(sizes: &[i64], strides: &[i64], contiguous: bool) -> Self {
        let mut flags = if contiguous { Self::CONTIGUOUS } else { 0 };
        let mut dense = contiguous;
        match sizes.len() {
            4 => {
                if compute_channels_last_contiguous_2d(sizes, strides) {
                    flags |= Self::CHANNELS_LAST_CONTIGUOUS;
                    dense = true;
                }
                if is_channels_last_strides_2d(sizes, strides) {
                    flags |= Self::CHANNELS_LAST;
                }
            }
            5 => {
                if compute_channels_last_contiguous_3d(sizes, strides) {
                    flags |= Self::CHANNELS_LAST_3D_CONTIGUOUS;
                    dense = true;
                }
                if is_channels_last_strides_3d(sizes, strides) {
                    flags |= Self::CHANNELS_LAST_3D;
                }
            }
            _ => {}
        }
        if dense || compute_non_overlapping_and_dense(sizes, strides) {
            flags |= Self::NON_OVERLAPPING_AND_DENSE;
        }
        Self(flags)
    }

    /// Row-major.
    #[inline]
    pub const fn is_contiguous(self) -> bool {
        self.0 & Self::CONTIGUOUS != 0
    }

    /// Dense NHWC.
    #[inline]
    pub const fn is_channels_last_contiguous(self) -> bool {
        self.0 & Self::CHANNELS_LAST_CONTIGUOUS != 0
    }

    /// Dense NDHWC.
    #[inline]
    pub const fn is_channels_last_3d_contiguous(self) -> bool {
        self.0 & Self::CHANNELS_LAST_3D_CONTIGUOUS != 0
    }

    /// Strides ordered as NHWC.
    #[inline]
    pub const fn is_strides_like_channels_last(self) -> bool {
        self.0 & Self::CHANNELS_LAST != 0
    }

    /// Strides ordered as NDHWC.
    #[inline]
    pub const fn is_strides_like_channels_last_3d(self) -> bool {
        self.0 & Self::CHANNELS_LAST_3D != 0
    }

    /// Dense in some order.
    #[inline]
    pub const fn is_non_overlapping_and_dense(self) -> bool {
        self.0 & Self::NON_OVERLAPPING_AND_DENSE != 0
    }
}
