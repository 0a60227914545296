//! `exponential_`, `cauchy_`, `geometric_`: a uniform number through the inverse of the distribution, in double precision.

use std::f64::consts::PI;

use c10::{Generator, Result};
use iter::TensorIterator;

use super::draw::{blocks, unit_f64, with_generator, Word, BLOCK};
use crate::dispatch::dispatch;
use crate::map::Stored;
use crate::registration::register;

pub(super) fn register() {
    register! {
        exponential_kernel: fn(&TensorIterator, f64, Option<&Generator>);
        cauchy_kernel: fn(&TensorIterator, f64, f64, Option<&Generator>);
        geometric_kernel: fn(&TensorIterator, f64, Option<&Generator>);
    }
}

/// Fills the output with `f` of uniform numbers in [0, 1).
fn fill<T: Stored>(
    iter: &TensorIterator,
    generator: Option<&Generator>,
    f: impl Fn(f64) -> f64,
) -> Result<()> {
    with_generator(generator, |generator| {
        let mut words = [0u64; BLOCK];
        blocks::<T>(iter, &mut |out| {
            let words = &mut words[..out.len()];
            u64::draw(&mut generator.engine, words);
            for (out, &word) in out.iter_mut().zip(&*words) {
                *out = <T as c10::Element>::from_f64(f(unit_f64(word))).store();
            }
        });
        Ok(())
    })
}

fn exponential_kernel(iter: &TensorIterator, lambd: f64, generator: Option<&Generator>) -> Result<()> {
    let scale = -1.0 / lambd;
    dispatch!(iter.dtype(0), "exponential_cpu", FLOATING_AND_HALF, |T| {
        fill::<T>(iter, generator, |u| scale * (-u).ln_1p())
    })
}

fn cauchy_kernel(
    iter: &TensorIterator,
    median: f64,
    sigma: f64,
    generator: Option<&Generator>,
) -> Result<()> {
    dispatch!(iter.dtype(0), "cauchy_cpu", FLOATING_AND_HALF, |T| {
        fill::<T>(iter, generator, |u| median + sigma * (PI * (u - 0.5)).tan())
    })
}

/// The number of trials up to the first success, of probability `p`.
fn geometric_kernel(iter: &TensorIterator, p: f64, generator: Option<&Generator>) -> Result<()> {
    let failure = (-p).ln_1p();
    dispatch!(iter.dtype(0), "geometric_cpu", ALL + HALF, |T| {
        fill::<T>(iter, generator, |u| (u.ln() / failure).ceil())
    })
}
