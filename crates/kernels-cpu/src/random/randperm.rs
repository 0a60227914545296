//! `randperm`.

use c10::{Element, Generator, Result, Tensor};

use super::draw::{with_generator, BLOCK};
use crate::dispatch::dispatch;
use crate::registration::register;

pub(super) fn register() {
    register! {
        randperm_kernel: fn(i64, Option<&Generator>, &[Tensor]);
    }
}

/// Fisher–Yates from the front: element `i` changes places with one of those not before it.
fn randperm_kernel(n: i64, generator: Option<&Generator>, outs: &[Tensor]) -> Result<()> {
    let out = &outs[0];
    let n = usize::try_from(n).unwrap_or(0);
    if n == 0 {
        return Ok(());
    }
    dispatch!(out.dtype(), "randperm", ALL_AND_HALF + BAREBONES_UNSIGNED, |T| {
        // SAFETY: the output is contiguous with n elements of this dtype.
        let values = unsafe { std::slice::from_raw_parts_mut(out.data_ptr().cast::<T>(), n) };
        for (i, value) in values.iter_mut().enumerate() {
            *value = <T as Element>::from_i64(i as i64);
        }
        with_generator(generator, |generator| {
            // Beyond this size 32 bits would favour some permutations.
            if n < (u32::MAX / 20) as usize {
                let mut words = [0u32; BLOCK];
                let mut begin = 0;
                while begin < n - 1 {
                    let words = &mut words[..BLOCK.min(n - 1 - begin)];
                    generator.engine.fill(words);
                    for (i, &word) in (begin..).zip(&*words) {
                        values.swap(i, i + word as usize % (n - i));
                    }
                    begin += words.len();
                }
            } else {
                for i in 0..n - 1 {
                    values.swap(i, i + (generator.engine.random64() % (n - i) as u64) as usize);
                }
            }
            Ok(())
        })
    })
}
