//! Elementwise kernels, one file per kind of operator.

mod activations;
mod arithmetic;
mod bitwise;
mod clamp;
mod comparison;
mod complex_half;
mod division;
mod divisors;
mod exponential;
pub(crate) mod float_function;
mod gradients;
mod logaddexp;
mod logical;
mod number;
mod parts;
mod pow;
mod rounding;
mod sign;
mod ternary;
mod trigonometric;

/// Registers the family.
pub(crate) fn register() {
    activations::register();
    arithmetic::register();
    bitwise::register();
    clamp::register();
    comparison::register();
    division::register();
    divisors::register();
    exponential::register();
    gradients::register();
    logaddexp::register();
    logical::register();
    parts::register();
    pow::register();
    rounding::register();
    sign::register();
    ternary::register();
    trigonometric::register();
}

#[cfg(test)]
pub(crate) mod kernels_for_tests {
    pub(crate) use super::arithmetic::{add_kernel, mul_kernel};
}
