//! Elementary functions as branch-free arithmetic, for loops that LLVM vectorizes.
//!
//! Each function states its error in ULP, which the tests beside it measure against the correctly rounded
//! value. They are written once for both precisions, over [`Real`] and the polynomials of [`Tables`]; the reductions are the
//! classical ones (Cody and Waite, *Software Manual for the Elementary Functions*, 1980; Muller, *Elementary Functions*,
//! 3rd ed., 2016).

mod arith;
mod erf;
mod exp;
mod hyperbolic;
mod log;
mod real;
mod tables;
mod trigonometric;
#[cfg(test)]
mod ulp;

pub use arith::{Arith, Fused, Unfused};
pub use erf::{bell, erf, erfc, erfcx_positive};
pub use exp::{exp, exp2, exp_of_negative, expm1};
pub use hyperbolic::{acosh, asinh, atanh, cosh, sigmoid, sinh, tanh};
pub use log::{log, log10, log1p, log2};
pub use real::{polynomial, Real};
pub use tables::Tables;
pub use trigonometric::{acos, asin, atan, atan2, cos, is_reducible, sin, tan};
