//! `bernoulli_`.

use c10::{check, Generator, Result};
use iter::TensorIterator;

use super::draw::{fill, unit_f32, unit_f64, with_generator, Word, BLOCK};
use super::mt19937::Mt19937;
use crate::dispatch::dispatch;
use crate::map::Stored;
use crate::registration::register;

pub(super) fn register() {
    register! {
        bernoulli_scalar_kernel: fn(&TensorIterator, f64, Option<&Generator>);
        bernoulli_tensor_kernel: fn(&TensorIterator, Option<&Generator>);
    }
}

/// One 64-bit draw per element, whatever the dtype.
fn bernoulli_scalar_kernel(iter: &TensorIterator, p: f64, generator: Option<&Generator>) -> Result<()> {
    dispatch!(iter.dtype(0), "bernoulli_scalar_cpu_", EVERY, |T| {
        let (one, zero) = (<T as c10::Element>::ONE.store(), <T as c10::Element>::ZERO.store());
        with_generator(generator, |generator| {
            fill::<u64, T>(iter, &mut generator.engine, |word| if unit_f64(word) < p { one } else { zero });
            Ok(())
        })
    })
}

/// The probabilities' dtype decides how many bits an element draws: 64 for float64, else 32.
fn bernoulli_tensor_kernel(iter: &TensorIterator, generator: Option<&Generator>) -> Result<()> {
    dispatch!(iter.dtype(0), "bernoulli_tensor_cpu_self_", EVERY, |T| {
        with_generator(generator, |generator| {
            dispatch!(iter.dtype(1), "bernoulli_tensor_cpu_p_", FLOATING_AND_HALF, |P| {
                per_element::<T, P>(iter, &mut generator.engine)
            })
        })
    })
}

fn per_element<T: Stored, P: Stored>(iter: &TensorIterator, engine: &mut Mt19937) -> Result<()> {
    let mut valid = true;
    iter.serial_for_each(
        &mut |data, strides, n| {
            let mut begin = 0;
            while begin < n && valid {
                let count = BLOCK.min(n - begin);
                let at = |arg: usize, i: usize| {
                    data[arg].wrapping_offset((begin + i) as isize * strides[arg] as isize)
                };
                let mut uniform = [0f64; BLOCK];
                draw::<P>(engine, &mut uniform[..count]);
                for (i, &u) in uniform[..count].iter().enumerate() {
                    // SAFETY: element `begin + i` of the row, of a dtype that the dtype switch matched.
                    let p = unsafe { at(1, i).cast::<P>().read_unaligned() }.to_f64();
                    valid &= (0.0..=1.0).contains(&p);
                    let value = if u < p { T::ONE } else { T::ZERO };
                    // SAFETY: as above.
                    unsafe { at(0, i).cast::<T::Raw>().write_unaligned(value.store()) };
                }
                begin += count;
            }
        },
        0..iter.numel(),
    );
    check!(valid, "Expected p_in >= 0 && p_in <= 1 to be true, but got false.");
    Ok(())
}

/// Uniform numbers of the probabilities' precision; doubles hold both kinds exactly.
fn draw<P: Stored>(engine: &mut Mt19937, out: &mut [f64]) {
    if P::SCALAR_TYPE == c10::ScalarType::Double {
        let mut words = [0u64; BLOCK];
        let words = &mut words[..out.len()];
        u64::draw(engine, words);
        out.iter_mut().zip(&*words).for_each(|(out, &word)| *out = unit_f64(word));
    } else {
        let mut words = [0u32; BLOCK];
        let words = &mut words[..out.len()];
        engine.fill(words);
        out.iter_mut().zip(&*words).for_each(|(out, &word)| *out = f64::from(unit_f32(word)));
    }
}
