//! `logaddexp`, `logaddexp2`, `hypot`.

use c10::Result;
use iter::TensorIterator;
use num_complex::Complex;

use super::exponential::log1p_complex;
use crate::dispatch::dispatch;
use crate::loops::compute_dtype;
use crate::map::binary;
use crate::registration::register;

pub(super) fn register() {
    register! {
        logaddexp_kernel: fn(&TensorIterator);
        logaddexp2_kernel: fn(&TensorIterator);
        hypot_kernel: fn(&TensorIterator);
    }
}

/// `log(exp a + exp b)`, which neither overflows nor loses the smaller summand, and the same to base 2.
trait LogSum: Copy {
    fn logaddexp(self, other: Self) -> Self;
}

trait LogSum2: Copy {
    fn logaddexp2(self, other: Self) -> Self;
}

macro_rules! log_sum {
    ($($T:ident),*) => {$(
        impl LogSum for $T {
            #[inline(always)]
            fn logaddexp(self, other: $T) -> $T {
                // Equal infinities have no difference.
                if self.is_infinite() && self == other {
                    return self;
                }
                maximum!(self, other) + (-(self - other).abs()).exp().ln_1p()
            }
        }
        impl LogSum2 for $T {
            #[inline(always)]
            fn logaddexp2(self, other: $T) -> $T {
                if self.is_infinite() && self == other {
                    return self;
                }
                maximum!(self, other) + (-(self - other).abs()).exp2().ln_1p() * std::$T::consts::LOG2_E
            }
        }
    )*};
}

/// The larger; a NaN in `b` is found in the difference as well.
macro_rules! maximum {
    ($a:expr, $b:expr) => {
        if $a >= $b {
            $a
        } else {
            $b
        }
    };
}

log_sum!(f32, f64);

impl LogSum for Complex<f64> {
    fn logaddexp(self, other: Complex<f64>) -> Complex<f64> {
        if self.is_nan() || other.is_nan() {
            return Complex::new(f64::NAN, f64::NAN);
        }
        let (small, large) = if self.re < other.re { (self, other) } else { (other, self) };
        if !small.re.is_finite() && small.re == large.re {
            // At −∞ both summands are zero, whose angle says nothing; at ∞ the difference would be NaN.
            return if small.re < 0.0 { small } else { (small.exp() + large.exp()).ln() };
        }
        large + log1p_complex((small - large).exp())
    }
}

impl LogSum for Complex<f32> {
    fn logaddexp(self, other: Complex<f32>) -> Complex<f32> {
        let wide = |z: Complex<f32>| Complex::new(f64::from(z.re), f64::from(z.im));
        let sum = wide(self).logaddexp(wide(other));
        Complex::new(sum.re as f32, sum.im as f32)
    }
}

fn logaddexp_kernel(iter: &TensorIterator) -> Result<()> {
    dispatch!(compute_dtype(iter.common_dtype()), "logaddexp_cpu", FLOATING_AND_COMPLEX, |T| {
        binary::<T, T, T>(iter, 24, <T as LogSum>::logaddexp)
    })
}

fn logaddexp2_kernel(iter: &TensorIterator) -> Result<()> {
    dispatch!(compute_dtype(iter.common_dtype()), "logaddexp2_cpu", FLOATING, |T| {
        binary::<T, T, T>(iter, 24, <T as LogSum2>::logaddexp2)
    })
}

fn hypot_kernel(iter: &TensorIterator) -> Result<()> {
    dispatch!(compute_dtype(iter.common_dtype()), "hypot_cpu", FLOATING, |T| {
        binary::<T, T, T>(iter, 8, |a: T, b: T| a.hypot(b))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_of_infinities_and_of_small_and_large() {
        let inf = f64::INFINITY;
        assert_eq!(inf.logaddexp(inf), inf);
        assert_eq!((-inf).logaddexp(-inf), -inf);
        assert_eq!((-inf).logaddexp(1.0), 1.0);
        assert!(f64::NAN.logaddexp(inf).is_nan() && inf.logaddexp(f64::NAN).is_nan());
        assert_eq!(0f64.logaddexp(0.0), std::f64::consts::LN_2);
        assert_eq!(800f64.logaddexp(700.0), 800.0);
        assert_eq!(0f32.logaddexp2(0.0), 1.0);
        assert_eq!((-inf).logaddexp2(-inf), -inf);
    }

    #[test]
    fn complex_sums_of_infinities() {
        let z = Complex::new;
        let inf = f64::INFINITY;
        assert_eq!(z(-inf, 1.0).logaddexp(z(-inf, -1.0)), z(-inf, -1.0));
        assert_eq!(z(-inf, 0.0).logaddexp(z(1.0, 1.0)), z(1.0, 1.0));
        let sum = z(inf, 1.0).logaddexp(z(inf, 2.0));
        assert!(sum.re == inf && sum.im.is_nan());
        let sum = z(f64::NAN, 1.0).logaddexp(z(1.0, 0.0));
        assert!(sum.re.is_nan() && sum.im.is_nan());
    }
}
