//! `exponential_`.

use c10::{Generator, Result};
use iter::TensorIterator;

use super::draw::{blocks, unit_f64, with_generator, Word, BLOCK};
use crate::dispatch::dispatch;
use crate::map::Stored;
use crate::registration::register;

pub(super) fn register() {
    register! {
        exponential_kernel: fn(&TensorIterator, f64, Option<&Generator>);
    }
}

/// By inversion, in double precision.
fn exponential_kernel(iter: &TensorIterator, lambd: f64, generator: Option<&Generator>) -> Result<()> {
    dispatch!(iter.dtype(0), "exponential_cpu", FLOATING_AND_HALF, |T| {
        with_generator(generator, |generator| {
            let scale = -1.0 / lambd;
            let mut words = [0u64; BLOCK];
            blocks::<T>(iter, &mut |out| {
                let words = &mut words[..out.len()];
                u64::draw(&mut generator.engine, words);
                for (out, &word) in out.iter_mut().zip(&*words) {
                    *out = <T as c10::Element>::from_f64(scale * (-unit_f64(word)).ln_1p()).store();
                }
            });
            Ok(())
        })
    })
}
