//! Special functions, one file per kind.
//!
//! Most compute in double precision, also for single: a function that takes a hundred operations gains little from a second
//! set of coefficients. The error functions and logarithms are in [`crate::vec::math`].

mod airy;
mod bessel;
mod error;
mod gamma;
mod incomplete_gamma;
mod logarithms;
mod modified_bessel;
mod polynomials;
mod tables;
mod zeta;

use c10::Result;
use iter::TensorIterator;

use crate::dispatch::dispatch;
use crate::loops::compute_dtype;
use crate::map::{binary, unary};

/// Registers the family.
pub(crate) fn register() {
    airy::register();
    bessel::register();
    error::register();
    gamma::register();
    incomplete_gamma::register();
    logarithms::register();
    modified_bessel::register();
    polynomials::register();
    zeta::register();
}

/// Relative to an addition, of a function of this family.
const COST: usize = 64;

/// `out = f(a)`, computed in double precision. One instance of the loop serves all functions.
fn scalar_unary(iter: &TensorIterator, name: &'static str, f: fn(f64) -> f64) -> Result<()> {
    dispatch!(compute_dtype(iter.common_dtype()), name, FLOATING, |T| {
        unary::<T, T>(iter, COST, move |a: T| <T as c10::Element>::from_f64(f(c10::Element::to_f64(a))))
    })
}

/// `out = f(a, b)`, computed in double precision.
fn scalar_binary(iter: &TensorIterator, name: &'static str, f: fn(f64, f64) -> f64) -> Result<()> {
    dispatch!(compute_dtype(iter.common_dtype()), name, FLOATING, |T| {
        binary::<T, T, T>(iter, COST, move |a: T, b: T| {
            <T as c10::Element>::from_f64(f(c10::Element::to_f64(a), c10::Element::to_f64(b)))
        })
    })
}

/// Kernels of functions of one or two numbers, registered under their names.
macro_rules! scalar_functions {
    ($($driver:ident: $($kernel:ident: fn(&TensorIterator) = $f:path),* $(,)?;)*) => {
        pub(super) fn register() {
            $($(iter::kernel_registry::register(
                stringify!($kernel),
                c10::DispatchKey::CPU,
                $kernel as fn(&iter::TensorIterator) -> c10::Result<()>,
            );)*)*
        }

        $($(fn $kernel(iter: &iter::TensorIterator) -> c10::Result<()> {
            $crate::special::$driver(iter, stringify!($kernel), $f)
        })*)*
    };
}

use scalar_functions;
