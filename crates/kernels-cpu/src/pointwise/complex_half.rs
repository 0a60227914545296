//! The operators that complex32 has: they are computed in complex64, as the halves are in float32.

use c10::{Complex, Half, Result, ScalarType};
use iter::TensorIterator;

use crate::map::{binary, unary};

/// Two values of the wider type.
pub(super) type Wide = Complex<f32>;

fn wide(z: Complex<Half>) -> Wide {
    Complex::new(z.re.to_f32(), z.im.to_f32())
}

fn narrow(z: Wide) -> Complex<Half> {
    Complex::new(Half::from_f32(z.re), Half::from_f32(z.im))
}

/// Whether an iterator's operand is complex32.
pub(super) fn is_complex_half(dtype: ScalarType) -> bool {
    dtype == ScalarType::ComplexHalf
}

/// Computes `f` of two complex32 operands.
pub(super) fn arithmetic(iter: &TensorIterator, f: impl Fn(Wide, Wide) -> Wide + Copy + Sync) -> Result<()> {
    binary(iter, 4, move |a: Complex<Half>, b: Complex<Half>| narrow(f(wide(a), wide(b))))
}

/// Computes `f` of one complex32 operand.
pub(super) fn map(iter: &TensorIterator, f: impl Fn(Wide) -> Wide + Copy + Sync) -> Result<()> {
    unary(iter, 4, move |z: Complex<Half>| narrow(f(wide(z))))
}

/// The absolute values, which are halves.
pub(super) fn abs(iter: &TensorIterator) -> Result<()> {
    unary(iter, 8, |z: Complex<Half>| wide(z).re.hypot(wide(z).im))
}

/// Compares two complex32 operands.
pub(super) fn comparison(iter: &TensorIterator, f: impl Fn(Wide, Wide) -> bool + Copy + Sync) -> Result<()> {
    binary(iter, 4, move |a: Complex<Half>, b: Complex<Half>| f(wide(a), wide(b)))
}
