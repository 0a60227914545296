//! Elementary functions as branch-free arithmetic, for loops that LLVM vectorizes.
//!
//! Each function states its error in ULP, which the tests beside it measure against the correctly rounded
//! value. Coefficients are Taylor or continued-fraction terms, cut where the remainder falls below the stated
//! error on the reduced range; the reductions are the classical ones (Cody and Waite, *Software Manual for the
//! Elementary Functions*, 1980; Muller, *Elementary Functions*, 3rd ed., 2016).

mod arith;
mod exp;
mod log;
mod tanh;
#[cfg(test)]
mod ulp;

pub use arith::{Arith, Fused, Unfused};
pub use exp::{exp_f32, exp_f64};
pub use log::{log_f32, log_f64};
pub use tanh::{tanh_f32, tanh_f64};
