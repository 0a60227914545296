//! `uniform_`.

use c10::{BFloat16, Generator, Half, Result, ScalarType};
use iter::TensorIterator;

use super::draw::{fill, fill_complex, unit_f32, unit_f64, with_generator};
use super::mt19937::Mt19937;
use crate::dispatch::dispatch;
use crate::map::Stored;
use crate::registration::register;

pub(super) fn register() {
    register! {
        uniform_kernel: fn(&TensorIterator, f64, f64, Option<&Generator>);
    }
}

fn uniform_kernel(iter: &TensorIterator, from: f64, to: f64, generator: Option<&Generator>) -> Result<()> {
    with_generator(generator, |generator| {
        let engine = &mut generator.engine;
        match iter.dtype(0) {
            ScalarType::Half => halves::<Half>(iter, engine, from as f32, to as f32),
            ScalarType::BFloat16 => halves::<BFloat16>(iter, engine, from as f32, to as f32),
            ScalarType::Float => {
                let (from, range) = (from as f32, to as f32 - from as f32);
                fill::<u32, f32>(iter, engine, |word| unit_f32(word).mul_add(range, from));
            }
            ScalarType::ComplexFloat => {
                let (from, range) = (from as f32, to as f32 - from as f32);
                fill_complex::<u32, f32>(iter, engine, |word| unit_f32(word).mul_add(range, from));
            }
            ScalarType::ComplexDouble => {
                fill_complex::<u64, f64>(iter, engine, |word| unit_f64(word).mul_add(to - from, from));
            }
            dtype => return double(iter, dtype, engine, from, to),
        }
        Ok(())
    })
}

fn double(iter: &TensorIterator, dtype: ScalarType, engine: &mut Mt19937, from: f64, to: f64) -> Result<()> {
    dispatch!(dtype, "uniform_kernel_cpu", Double, |T| {
        let range = to - from;
        fill::<u64, T>(iter, engine, |word| unit_f64(word).mul_add(range, from));
        Ok(())
    })
}

/// Computed in single precision. What rounds up to the excluded end becomes the lower one.
fn halves<T: Stored<Raw = T> + PartialOrd>(iter: &TensorIterator, engine: &mut Mt19937, from: f32, to: f32) {
    let range = to - from;
    let (low, high) = (T::from_f32(from), T::from_f32(to));
    fill::<u32, T>(iter, engine, |word| {
        let value = T::from_f32(unit_f32(word).mul_add(range, from));
        if value >= high {
            low
        } else {
            value
        }
    });
}
