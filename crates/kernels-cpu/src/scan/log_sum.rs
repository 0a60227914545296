//! `logcumsumexp`.

use c10::{Complex, Result, Tensor};

use super::lines::scan;
use crate::address::check_same_dtype;
use crate::dispatch::dispatch;
use crate::map::Stored;
use crate::reduce::Accumulated;
use crate::registration::register;

pub(super) fn register() {
    register! {
        logcumsumexp_kernel: fn(&Tensor, i64, &[Tensor]);
    }
}

/// A number that exponentials are added up in the logarithms of.
trait LogSum: Copy + Send + Sync {
    const LOG_ZERO: Self;
    fn log_add_exp(self, other: Self) -> Self;
}

impl LogSum for f64 {
    const LOG_ZERO: f64 = f64::NEG_INFINITY;
    #[inline]
    fn log_add_exp(self, other: f64) -> f64 {
        if self.is_nan() || other.is_nan() {
            return f64::NAN;
        }
        let (least, greatest) = (self.min(other), self.max(other));
        if least == greatest && least.is_infinite() {
            return greatest;
        }
        (least - greatest).exp().ln_1p() + greatest
    }
}

impl LogSum for Complex<f64> {
    const LOG_ZERO: Complex<f64> = Complex { re: f64::NEG_INFINITY, im: 0.0 };
    #[inline]
    fn log_add_exp(self, other: Complex<f64>) -> Complex<f64> {
        if self.re.is_nan() || self.im.is_nan() || other.re.is_nan() || other.im.is_nan() {
            return Complex::new(f64::NAN, f64::NAN);
        }
        let (least, greatest) = if self.re <= other.re { (self, other) } else { (other, self) };
        if least.re == f64::NEG_INFINITY {
            // Its exponential is zero, whatever its imaginary part.
            return greatest;
        }
        if greatest.re == f64::INFINITY {
            return (least.exp() + greatest.exp()).ln();
        }
        let ratio = (least - greatest).exp();
        // log(1 + z): its real part without losing a small z.
        let re = 0.5 * (ratio.re * (2.0 + ratio.re) + ratio.im * ratio.im).ln_1p();
        let im = ratio.im.atan2(1.0 + ratio.re);
        greatest + Complex::new(re, im)
    }
}

fn log_sums<T>(self_: &Tensor, dim: i64, out: &Tensor) -> Result<()>
where
    T: Accumulated,
    T::Total: LogSum,
{
    let step = |state: T::Total, element: <T as Stored>::Raw| state.log_add_exp(T::widen(T::lift(element)));
    // SAFETY: both have `T`'s dtype.
    unsafe {
        scan::<<T as Stored>::Raw, T::Total, 1>(self_, dim, [out], T::Total::LOG_ZERO, step, |state, at| {
            at[0].write(T::finish(state));
        })
    }
}

fn logcumsumexp_kernel(self_: &Tensor, dim: i64, outs: &[Tensor]) -> Result<()> {
    let [out] = outs else { c10::bail!(Internal, "logcumsumexp: {} outputs", outs.len()) };
    check_same_dtype("logcumsumexp", self_, out)?;
    dispatch!(self_.dtype(), "logcumsumexp_out_cpu", FLOATING_AND_COMPLEX + HALF, |T| {
        log_sums::<T>(self_, dim, out)
    })
}
