//! `clamp` to scalar bounds, `relu`, `threshold`.

use c10::{Element, Result, Scalar};
use iter::TensorIterator;

use super::comparison::Ordered;
use crate::dispatch::dispatch;
use crate::loops::compute_dtype;
use crate::map::{binary, unary};
use crate::registration::register;

pub(super) fn register() {
    register! {
        clamp_kernel: fn(&TensorIterator, Option<&Scalar>, Option<&Scalar>);
        relu_kernel: fn(&TensorIterator);
        threshold_kernel: fn(&TensorIterator, &Scalar, &Scalar);
        threshold_backward_kernel: fn(&TensorIterator, &Scalar);
    }
}

/// NaN stays NaN, and where the bounds cross the upper one wins.
pub(super) fn clamp_kernel(iter: &TensorIterator, min: Option<&Scalar>, max: Option<&Scalar>) -> Result<()> {
    dispatch!(compute_dtype(iter.common_dtype()), "clamp_kernel", ALL_AND_BOOL, |T| {
        match (min, max) {
            (Some(min), Some(max)) => {
                let (min, max) = (min.to::<T>()?, max.to::<T>()?);
                unary::<T, T>(iter, 1, move |a: T| {
                    let low = Ordered::maximum(a, min);
                    Ordered::minimum(low, max)
                })
            }
            (Some(min), None) => {
                let min = min.to::<T>()?;
                unary::<T, T>(iter, 1, move |a: T| Ordered::maximum(a, min))
            }
            (None, Some(max)) => {
                let max = max.to::<T>()?;
                unary::<T, T>(iter, 1, move |a: T| Ordered::minimum(a, max))
            }
            (None, None) => unary::<T, T>(iter, 1, |a: T| a),
        }
    })
}

fn relu_kernel(iter: &TensorIterator) -> Result<()> {
    dispatch!(compute_dtype(iter.common_dtype()), "relu_kernel", ALL, |T| {
        // Written so that NaN passes.
        unary::<T, T>(iter, 1, |a: T| if a < <T as Element>::ZERO { <T as Element>::ZERO } else { a })
    })
}

fn threshold_kernel(iter: &TensorIterator, threshold: &Scalar, value: &Scalar) -> Result<()> {
    dispatch!(compute_dtype(iter.common_dtype()), "threshold_kernel", ALL, |T| {
        let (threshold, value) = (threshold.to::<T>()?, value.to::<T>()?);
        unary::<T, T>(iter, 1, move |a: T| if a <= threshold { value } else { a })
    })
}

/// The gradient where `self > threshold`; NaN passes it too, as in the forward function.
fn threshold_backward_kernel(iter: &TensorIterator, threshold: &Scalar) -> Result<()> {
    dispatch!(compute_dtype(iter.common_dtype()), "threshold_backward_kernel", ALL, |T| {
        let threshold = threshold.to::<T>()?;
        binary::<T, T, T>(iter, 1, move |grad, a| if a <= threshold { <T as Element>::ZERO } else { grad })
    })
}
