//! Operators with real CPU kernels beneath them, below autograd.

// A test states its case; what fails is named by the assertion.
#![allow(clippy::unwrap_used)]

mod arithmetic;
mod factories;
mod indexing;
mod kernels;
mod lazy_bits;
mod other_backend;
mod products;
#[path = "../../../c10/tests/support/shape_env.rs"]
mod shape_env;
mod symbolic;

use c10::{AutoDispatchBelowADInplaceOrView, Result, Scalar, ScalarType, Tensor};
use ops::{at, sym};

/// Starts the engine on this thread, below autograd, which is another crate's.
fn start() -> Result<AutoDispatchBelowADInplaceOrView> {
    ops::init()?;
    kernels_cpu::init()?;
    Ok(AutoDispatchBelowADInplaceOrView::new())
}

/// A tensor of a shape with these elements.
fn tensor(values: &[f64], sizes: &[i64], dtype: ScalarType) -> Result<Tensor> {
    let tensor =
        at::empty_memory_format(&sym::sym_ints(&[values.len() as i64]), Some(dtype), None, None, None, None)?;
    for (i, &value) in values.iter().enumerate() {
        let element = at::select_int(&tensor, 0, &(i as i64).into())?;
        at::fill__scalar(&element, &Scalar::Float(value))?;
    }
    at::view(&tensor, &sym::sym_ints(sizes))
}

fn floats(values: &[f64]) -> Result<Tensor> {
    tensor(values, &[values.len() as i64], ScalarType::Float)
}

fn longs(values: &[i64]) -> Result<Tensor> {
    let values: Vec<f64> = values.iter().map(|&v| v as f64).collect();
    tensor(&values, &[values.len() as i64], ScalarType::Long)
}

/// The elements in row-major order.
fn values(tensor: &Tensor) -> Result<Vec<f64>> {
    let flat = at::reshape(tensor, &sym::sym_ints(&[-1]))?;
    (0..flat.numel()?).map(|i| at::item(&at::select_int(&flat, 0, &i.into())?)?.to_f64()).collect()
}

fn assert_close(tensor: &Tensor, expected: &[f64]) -> Result<()> {
    let found = values(tensor)?;
    assert_eq!(found.len(), expected.len(), "{found:?}");
    for (a, b) in found.iter().zip(expected) {
        assert!(
            (a - b).abs() <= 1e-5 * (1.0 + b.abs()) || (a.is_nan() && b.is_nan()),
            "{found:?} != {expected:?}"
        );
    }
    Ok(())
}
