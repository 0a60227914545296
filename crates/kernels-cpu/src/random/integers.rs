//! `random_`: integers, in a range or in all that a dtype can hold exactly.

use c10::{check, Element, ElementKind, Generator, Result, ScalarType};
use iter::TensorIterator;

use super::draw::{fill, with_generator};
use crate::dispatch::dispatch;
use crate::map::Stored;
use crate::registration::register;

pub(super) fn register() {
    register! {
        random_kernel: fn(&TensorIterator, Option<&Generator>);
        random_from_kernel: fn(&TensorIterator, i64, Option<i64>, Option<&Generator>);
    }
}

/// From this range on an element takes 64 bits, so that the remainder stays nearly uniform.
const WIDE_RANGE: u64 = 1 << 28;

/// Bits of precision of a floating-point dtype.
fn digits(dtype: ScalarType) -> u32 {
    match dtype {
        ScalarType::BFloat16 => 8,
        ScalarType::Half => 11,
        ScalarType::Float => 24,
        _ => 53,
    }
}

/// 0 up to the largest value of an integer dtype, or up to 2^digits of a floating-point one, inclusive.
fn random_kernel(iter: &TensorIterator, generator: Option<&Generator>) -> Result<()> {
    dispatch!(iter.dtype(0), "random_kernel_cpu", ALL_AND_HALF + Bool, |T| {
        with_generator(generator, |generator| {
            let engine = &mut generator.engine;
            match <T as Element>::SCALAR_TYPE {
                dtype @ (ScalarType::Double | ScalarType::Long) => {
                    let range = if dtype == ScalarType::Long { 1 << 63 } else { (1u64 << 53) + 1 };
                    fill::<u64, T>(iter, engine, |word| {
                        <T as Element>::from_i64((word % range) as i64).store()
                    });
                }
                dtype => {
                    let range = match <T as Element>::KIND {
                        ElementKind::Bool => 2,
                        ElementKind::Floating => (1 << digits(dtype)) + 1,
                        kind => 1u32 << (8 * dtype.item_size() - usize::from(kind == ElementKind::Signed)),
                    };
                    let remainder = Remainder::new(range);
                    fill::<u32, T>(iter, engine, |word| {
                        <T as Element>::from_i64(i64::from(remainder.of(word))).store()
                    });
                }
            }
            Ok(())
        })
    })
}

/// `from` up to `to`, exclusive; without `to` up to the largest value, and from the smallest `i64` all 64 bits.
fn random_from_kernel(
    iter: &TensorIterator,
    from: i64,
    to: Option<i64>,
    generator: Option<&Generator>,
) -> Result<()> {
    let sets = "random_from_to_kernel_cpu";
    dispatch!(iter.dtype(0), sets, ALL_AND_HALF + Bool + BAREBONES_UNSIGNED, |T| {
        let (from, range) = range_of::<T>(from, to)?;
        with_generator(generator, |generator| {
            let engine = &mut generator.engine;
            let value =
                move |offset: u64| <T as Element>::from_i64((offset as i64).wrapping_add(from)).store();
            match range {
                None => fill::<u64, T>(iter, engine, |word| <T as Element>::from_i64(word as i64).store()),
                Some(range) if range >= WIDE_RANGE => {
                    fill::<u64, T>(iter, engine, |word| value(word % range))
                }
                Some(range) => {
                    let remainder = Remainder::new(range as u32);
                    fill::<u32, T>(iter, engine, |word| value(u64::from(remainder.of(word))));
                }
            }
            Ok(())
        })
    })
}

/// The first value, and how many there are: `None` for all 2^64.
///
/// For a floating-point dtype whose numbers are sparser than the integers the bounds move inwards to numbers that it
/// holds.
fn range_of<T: Element>(from: i64, to: Option<i64>) -> Result<(i64, Option<u64>)> {
    let floating = T::KIND == ElementKind::Floating;
    let Some(to) = to else {
        if from == i64::MIN {
            return Ok((from, None));
        }
        let (from, last) = if floating {
            (lower_bound::<T>(from), 1i64 << digits(T::SCALAR_TYPE))
        } else {
            (from, largest::<T>())
        };
        check!(from <= last, "random_ expects 'from' casted to dtype to be less than or equal to 'to_inc' dtype but got from={from} > to_inc={last}");
        return Ok((from, Some((last as u64).wrapping_sub(from as u64).wrapping_add(1))));
    };
    let (from, to) = if floating { (lower_bound::<T>(from), upper_bound::<T>(to)) } else { (from, to) };
    check!(from < to, "random_ expects 'from' to be less than 'to', but got from={from} >= to={to}");
    Ok((from, Some((to as u64).wrapping_sub(from as u64))))
}

/// The largest value of an integer dtype that an `i64` holds.
fn largest<T: Element>() -> i64 {
    match T::KIND {
        ElementKind::Bool => 1,
        ElementKind::Signed => i64::MAX >> (64 - 8 * T::SCALAR_TYPE.item_size()),
        _ => (u64::MAX >> (64 - 8 * T::SCALAR_TYPE.item_size())).min(i64::MAX as u64) as i64,
    }
}

/// The spacing of a dtype's numbers just beyond an integer of this magnitude.
fn spacing(magnitude: u64, digits: u32) -> i64 {
    let exponent = 63u32.saturating_sub(magnitude.max(1).leading_zeros());
    1i64 << (exponent + 1).saturating_sub(digits).min(62)
}

fn lower_bound<T: Element>(from: i64) -> i64 {
    let next = T::from_i64(from.wrapping_add(1)).to_i64();
    if next < from {
        return next.wrapping_add(spacing(from.wrapping_add(1).unsigned_abs(), digits(T::SCALAR_TYPE)));
    }
    from
}

fn upper_bound<T: Element>(to: i64) -> i64 {
    let last = T::from_i64(to.wrapping_sub(1)).to_i64();
    if last >= to {
        return last.wrapping_sub(spacing(to.wrapping_sub(1).unsigned_abs(), digits(T::SCALAR_TYPE)));
    }
    to
}

/// Division by an invariant number, as two multiplications (Lemire, Kaser, Kurz: *Faster remainder by direct
/// computation*, Software: Practice and Experience 49(6), 2019).
#[derive(Clone, Copy)]
struct Remainder {
    divisor: u32,
    /// ⌈2^64 / divisor⌉
    inverse: u64,
}

impl Remainder {
    fn new(divisor: u32) -> Remainder {
        Remainder { divisor, inverse: (u64::MAX / u64::from(divisor)).wrapping_add(1) }
    }

    #[inline(always)]
    fn of(self, word: u32) -> u32 {
        let fraction = self.inverse.wrapping_mul(u64::from(word));
        ((u128::from(fraction) * u128::from(self.divisor)) >> 64) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remainders() {
        for divisor in [1, 2, 3, 7, 10, 257, 2049, (1 << 24) + 1, (1 << 28) - 1, u32::MAX] {
            for word in [0, 1, 2, 6, 7, 256, 257, 65_537, 123_456_789, u32::MAX - 1, u32::MAX] {
                assert_eq!(Remainder::new(divisor).of(word), word % divisor, "{word} % {divisor}");
            }
        }
    }

    #[test]
    fn bounds_that_a_dtype_cannot_hold_move_inwards() {
        assert_eq!(range_of::<f32>(0, Some(16_777_217)).unwrap(), (0, Some(16_777_217)));
        assert_eq!(range_of::<i64>(-5, None).unwrap(), (-5, Some((1 << 63) + 5)));
        assert_eq!(range_of::<i64>(i64::MIN, None).unwrap(), (i64::MIN, None));
        assert_eq!(range_of::<i8>(2, None).unwrap(), (2, Some(126)));
        assert_eq!(range_of::<bool>(0, None).unwrap(), (0, Some(2)));
        // 2^24 + 3 rounds up to 2^24 + 4, which would be outside: the end moves to the number below.
        assert_eq!(range_of::<f32>(0, Some((1 << 24) + 4)).unwrap(), (0, Some((1 << 24) + 2)));
    }
}
