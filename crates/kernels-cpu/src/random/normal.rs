//! `normal_`.
//!
//! # Note [The two normal streams]
//! A contiguous output of 16 elements or more is filled with uniform numbers first, which the Box–Muller transform
//! then replaces in blocks of 16: eight radii, eight angles. If the size is no multiple of 16 the last 16 elements
//! are drawn again. Smaller or strided outputs draw pairs in double precision, whatever their dtype; the second
//! number of a pair waits in the generator for the next call.

use std::f64::consts::{FRAC_1_SQRT_2, PI};

use c10::{BFloat16, Generator, Half, Result, ScalarType};
use iter::parallel::parallel_for;
use iter::TensorIterator;

use super::cpu_generator::CpuGenerator;
use super::draw::{blocks, complex_blocks, map_words, unit_f32, unit_f64, with_generator, Word, BLOCK};
use super::mt19937::Mt19937;
use crate::address::Address;
use crate::dispatch::dispatch;
use crate::map::Stored;
use crate::registration::register;
use crate::vec::tiered;

pub(super) fn register() {
    register! {
        normal_kernel: fn(&TensorIterator, f64, f64, Option<&Generator>);
        log_normal_kernel: fn(&TensorIterator, f64, f64, Option<&Generator>);
    }
}

/// Elements that one block transforms.
const LANES: usize = 16;

fn normal_kernel(iter: &TensorIterator, mean: f64, std: f64, generator: Option<&Generator>) -> Result<()> {
    // A complex element is two real ones; its variance is shared between them.
    let (dtype, n, std) = match iter.dtype(0) {
        ScalarType::ComplexFloat => (ScalarType::Float, 2 * iter.numel(), std * FRAC_1_SQRT_2),
        ScalarType::ComplexDouble => (ScalarType::Double, 2 * iter.numel(), std * FRAC_1_SQRT_2),
        dtype => (dtype, iter.numel(), std),
    };
    with_generator(generator, |generator| {
        if n < LANES || !iter.output(0).is_contiguous() {
            match iter.dtype(0) {
                ScalarType::ComplexFloat => complex_blocks::<f32>(iter, &mut |out| {
                    out.iter_mut().for_each(|part| *part = generator.normal(mean, std) as f32);
                }),
                ScalarType::ComplexDouble => complex_blocks::<f64>(iter, &mut |out| {
                    out.iter_mut().for_each(|part| *part = generator.normal(mean, std));
                }),
                dtype => dispatch!(dtype, "normal_kernel_cpu", FLOATING_AND_HALF, |T| {
                    one_by_one::<T>(iter, generator, mean, std);
                    Result::<()>::Ok(())
                })?,
            }
            return Ok(());
        }
        let data = Address(iter.data_ptr(0));
        macro_rules! numbers {
            ($T:ty) => {
                // SAFETY: the contiguous output, of this dtype (complex numbers are pairs), of which nobody else has a
                // slice.
                unsafe { data.slice_mut::<$T>(n) }
            };
        }
        match dtype {
            ScalarType::Half => halves(numbers!(Half), &mut generator.engine, mean, std),
            ScalarType::BFloat16 => halves(numbers!(BFloat16), &mut generator.engine, mean, std),
            ScalarType::Float => fill_blocks(numbers!(f32), &mut generator.engine, mean, std)?,
            dtype => dispatch!(dtype, "normal_kernel_cpu", Double, |T| {
                fill_blocks(numbers!(T), &mut generator.engine, mean, std)
            })?,
        }
        Ok(())
    })
}

/// `log_normal_`: the exponential of numbers of the scalar stream.
fn log_normal_kernel(
    iter: &TensorIterator,
    mean: f64,
    std: f64,
    generator: Option<&Generator>,
) -> Result<()> {
    dispatch!(iter.dtype(0), "log_normal_cpu", FLOATING_AND_HALF, |T| {
        with_generator(generator, |generator| {
            blocks::<T>(iter, &mut |out| {
                for out in out {
                    *out = <T as c10::Element>::from_f64(generator.normal(mean, std).exp()).store();
                }
            });
            Ok(())
        })
    })
}

impl CpuGenerator {
    /// One number of the scalar stream.
    fn normal(&mut self, mean: f64, std: f64) -> f64 {
        let sample = self.next_double_normal_sample.take().unwrap_or_else(|| {
            let u1 = unit_f64(self.engine.random64());
            let u2 = unit_f64(self.engine.random64());
            let radius = (-2.0 * (-u2).ln_1p()).sqrt();
            let angle = 2.0 * PI * u1;
            self.next_double_normal_sample = Some(radius * angle.sin());
            radius * angle.cos()
        });
        sample.mul_add(std, mean)
    }
}

fn one_by_one<T: Stored>(iter: &TensorIterator, generator: &mut CpuGenerator, mean: f64, std: f64) {
    blocks::<T>(iter, &mut |out| {
        for out in out {
            *out = T::from_f64(generator.normal(mean, std)).store();
        }
    });
}

/// The type that blocks are computed in.
trait BoxMuller: Stored<Raw = Self> {
    fn uniform(engine: &mut Mt19937, out: &mut [Self]);
    fn transform(blocks: &mut [Self], mean: f64, std: f64);
}

impl BoxMuller for f32 {
    fn uniform(engine: &mut Mt19937, out: &mut [f32]) {
        let mut words = [0u32; BLOCK];
        for out in out.chunks_mut(BLOCK) {
            let words = &mut words[..out.len()];
            engine.fill(words);
            map_words(out, words, unit_f32);
        }
    }

    fn transform(blocks: &mut [f32], mean: f64, std: f64) {
        transform_f32(blocks, mean as f32, std as f32);
    }
}

impl BoxMuller for f64 {
    fn uniform(engine: &mut Mt19937, out: &mut [f64]) {
        let mut words = [0u64; BLOCK];
        for out in out.chunks_mut(BLOCK) {
            let words = &mut words[..out.len()];
            u64::draw(engine, words);
            map_words(out, words, unit_f64);
        }
    }

    fn transform(blocks: &mut [f64], mean: f64, std: f64) {
        for block in blocks.chunks_exact_mut(LANES) {
            let (first, second) = block.split_at_mut(LANES / 2);
            for (a, b) in first.iter_mut().zip(second) {
                let radius = (-2.0 * (1.0 - *a).ln()).sqrt();
                let angle = 2.0 * PI * *b;
                *a = (radius * angle.cos()).mul_add(std, mean);
                *b = (radius * angle.sin()).mul_add(std, mean);
            }
        }
    }
}

/// `out` has 16 elements at least. See Note [The two normal streams].
fn fill_blocks<T: BoxMuller>(out: &mut [T], engine: &mut Mt19937, mean: f64, std: f64) -> Result<()> {
    T::uniform(engine, out);
    let whole = out.len() / LANES;
    let base = Address(out.as_mut_ptr().cast());
    parallel_for(0, whole, 256, &|begin, end| {
        // SAFETY: the pieces are disjoint ranges of whole blocks within `out`, which nothing else touches meanwhile.
        let blocks = unsafe {
            base.offset((begin * LANES * size_of::<T>()) as i64).slice_mut::<T>((end - begin) * LANES)
        };
        T::transform(blocks, mean, std);
    })?;
    if whole * LANES != out.len() {
        let tail = out.len() - LANES;
        T::uniform(engine, &mut out[tail..]);
        T::transform(&mut out[tail..], mean, std);
    }
    Ok(())
}

/// Single precision, rounded once.
fn halves<T: Stored<Raw = T>>(out: &mut [T], engine: &mut Mt19937, mean: f64, std: f64) {
    let mut values = [0f32; BLOCK];
    let mut fill = |out: &mut [T]| {
        let values = &mut values[..out.len()];
        f32::uniform(engine, values);
        f32::transform(values, mean, std);
        for (out, &value) in out.iter_mut().zip(&*values) {
            *out = T::from_f32(value);
        }
    };
    // Unlike the other dtypes', the elements after the last whole block draw no numbers before the tail does.
    let whole = out.len() / LANES * LANES;
    out[..whole].chunks_mut(BLOCK).for_each(&mut fill);
    if !out.len().is_multiple_of(LANES) {
        let tail = out.len() - LANES;
        fill(&mut out[tail..]);
    }
}

tiered! {
    fn transform_f32(blocks: &mut [f32], mean: f32, std: f32) => A {
        let _ = std::marker::PhantomData::<A>;
        for block in blocks.chunks_exact_mut(LANES) {
            let (first, second) = block.split_at_mut(LANES / 2);
            for (a, b) in first.iter_mut().zip(second) {
                let radius = (-2.0 * cephes_log(1.0 - *a)).sqrt();
                let (sin, cos) = cephes_sin_cos(std::f32::consts::TAU * *b);
                *a = (radius * cos).mul_add(std, mean);
                *b = (radius * sin).mul_add(std, mean);
            }
        }
    }
}

/// The natural logarithm of a positive normal number.
///
/// The stream depends on the last bit of this function and the next, so they are not those of `vec::math` but the
/// approximations of S. L. Moshier's Cephes library (`logf`, `sinf`, `cosf`), in the order of operations that
/// PyTorch's streams come from: each multiplication that feeds an addition is fused with it, in every tier.
#[inline(always)]
fn cephes_log(x: f32) -> f32 {
    const SQRT_HALF: f32 = std::f32::consts::FRAC_1_SQRT_2;
    const P: [f32; 9] = [
        7.037_683_6e-2,
        -1.151_461e-1,
        1.167_699_9e-1,
        -1.242_014_1e-1,
        1.424_932_3e-1,
        -1.666_805_8e-1,
        2.000_071_5e-1,
        -2.499_999_4e-1,
        3.333_333e-1,
    ];
    let bits = x.to_bits();
    let exponent = ((bits >> 23) as i32 - 126) as f32;
    let mantissa = f32::from_bits((bits & 0x007f_ffff) | 0x3f00_0000);
    // From [½, 1) to [√½, √2), less one.
    let below = mantissa < SQRT_HALF;
    let e = exponent - if below { 1.0 } else { 0.0 };
    let x = mantissa - 1.0 + if below { mantissa } else { 0.0 };
    let z = x * x;
    let mut y = P[0];
    for p in &P[1..] {
        y = y.mul_add(x, *p);
    }
    let y = (y * x).mul_add(z, e * -2.121_944_4e-4) - z * 0.5;
    e.mul_add(0.693_359_4, x + y)
}

/// Sine and cosine of a number in [0, 2π].
#[inline(always)]
fn cephes_sin_cos(x: f32) -> (f32, f32) {
    // The octant, made even.
    // SAFETY: x is at most 2π.
    let octant = unsafe { (x * (4.0 / std::f32::consts::PI)).to_int_unchecked::<i32>() };
    let octant = (octant + 1) & !1;
    let y = octant as f32;
    let x = y.mul_add(-0.785_156_25, x);
    let x = y.mul_add(-2.418_756_5e-4, x);
    let x = y.mul_add(-3.774_895e-8, x);
    let z = x * x;
    let cos = 2.443_315_7e-5f32.mul_add(z, -1.388_731_6e-3).mul_add(z, 4.166_664_6e-2);
    let cos = (cos * z).mul_add(z, -(z * 0.5)) + 1.0;
    let sin = (-1.951_529_6e-4f32).mul_add(z, 8.332_161e-3).mul_add(z, -1.666_665_5e-1);
    let sin = (sin * z).mul_add(x, x);
    let swap = octant & 2 != 0;
    let (s, c) = if swap { (cos, sin) } else { (sin, cos) };
    let sin_sign = ((octant & 4) as u32) << 29;
    let cos_sign = ((!(octant - 2) & 4) as u32) << 29;
    (f32::from_bits(s.to_bits() ^ sin_sign), f32::from_bits(c.to_bits() ^ cos_sign))
}
