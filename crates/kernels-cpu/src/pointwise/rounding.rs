//! `floor`, `ceil`, `trunc`, `round`. Integers are whole already and only copied.

use c10::Result;
use iter::TensorIterator;

use crate::dispatch::dispatch;
use crate::loops::compute_dtype;
use crate::map::unary;
use crate::registration::register;

pub(super) fn register() {
    register! {
        floor_kernel: fn(&TensorIterator);
        ceil_kernel: fn(&TensorIterator);
        trunc_kernel: fn(&TensorIterator);
        round_kernel: fn(&TensorIterator);
    }
}

macro_rules! rounding {
    ($($name:ident, $method:ident);* $(;)?) => {$(
        fn $name(iter: &TensorIterator) -> Result<()> {
            let dtype = compute_dtype(iter.common_dtype());
            if dtype.is_integral(false) {
                return dispatch!(dtype, stringify!($name), INTEGRAL, |T| unary::<T, T>(iter, 1, |a: T| a));
            }
            dispatch!(dtype, stringify!($name), FLOATING, |T| unary::<T, T>(iter, 1, |a: T| a.$method()))
        }
    )*};
}

rounding! {
    floor_kernel, floor;
    ceil_kernel, ceil;
    trunc_kernel, trunc;
    // Halves go to the even neighbour.
    round_kernel, round_ties_even;
}
