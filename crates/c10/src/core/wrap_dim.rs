//! Negative dimension numbers count from the end.

use crate::{bail, Result};

/// `dim` in `0..ndim`, where a negative one counts from the end. With `wrap_scalar`, a tensor without dimensions takes
/// 0 and -1, as if it had one.
#[inline]
pub fn wrap_dim(dim: i64, ndim: i64, wrap_scalar: bool) -> Result<i64> {
    if 0 <= dim && dim < ndim {
        Ok(dim)
    } else if -ndim <= dim && dim < 0 {
        Ok(dim + ndim)
    } else {
        wrap_dim_slow(dim, ndim, wrap_scalar)
    }
}

/// PyTorch's name for [`wrap_dim`] with `wrap_scalar`.
#[inline]
pub fn maybe_wrap_dim(dim: i64, ndim: i64) -> Result<i64> {
    wrap_dim(dim, ndim, true)
}

#[cold]
fn wrap_dim_slow(dim: i64, ndim: i64, wrap_scalar: bool) -> Result<i64> {
    if ndim <= 0 {
        if !wrap_scalar {
            bail!(Index, "Dimension specified as {dim} but tensor has no dimensions");
        }
        if dim == 0 || dim == -1 {
            return Ok(0);
        }
    }
    let end = ndim.max(1);
    bail!(Index, "Dimension out of range (expected to be in range of [{}, {}], but got {dim})", -end, end - 1)
}

/// Wraps each of `dims` in place.
pub fn maybe_wrap_dims(dims: &mut [i64], ndim: i64, wrap_scalar: bool) -> Result<()> {
    for dim in dims {
        *dim = wrap_dim(*dim, ndim, wrap_scalar)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wraps() -> Result<()> {
        assert_eq!(wrap_dim(-1, 3, true)?, 2);
        assert_eq!(wrap_dim(2, 3, false)?, 2);
        assert_eq!(wrap_dim(-1, 0, true)?, 0);
        Ok(())
    }

    #[test]
    fn messages() {
        let message = |dim, ndim, scalar| wrap_dim(dim, ndim, scalar).err().map(|e| e.to_string());
        assert_eq!(
            message(1, 1, true).as_deref(),
            Some("Dimension out of range (expected to be in range of [-1, 0], but got 1)")
        );
        assert_eq!(
            message(5, 0, true).as_deref(),
            Some("Dimension out of range (expected to be in range of [-1, 0], but got 5)")
        );
        assert_eq!(
            message(0, 0, false).as_deref(),
            Some("Dimension specified as 0 but tensor has no dimensions")
        );
        assert!(wrap_dim(i64::MIN, 3, true).is_err() && wrap_dim(i64::MAX, 3, true).is_err());
    }
}
