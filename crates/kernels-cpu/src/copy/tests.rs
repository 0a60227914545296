// NaN differs from itself.
#![allow(clippy::eq_op)]

use c10::{empty_cpu, Complex, Element, Half, ScalarType};

use crate::test_tensor::{element, layouts, set_element, with_threads};

/// Every pair of dtypes and layouts against `Element::cast_from`, element by element.
fn check<F: Element, T: Element>(values: &[F]) {
    for sizes in [&[][..], &[0, 3], &[5], &[300], &[7, 9], &[3, 40, 5], &[65, 33]] {
        for (name, from) in layouts(sizes, F::SCALAR_TYPE) {
            let numel = from.numel().unwrap();
            for i in 0..numel {
                set_element(&from, i, values[i as usize % values.len()]);
            }
            for (to_name, to) in layouts(sizes, T::SCALAR_TYPE) {
                if to_name == "expanded" {
                    continue;
                }
                iter::copy_into(&to, &from, false).unwrap();
                for i in 0..numel {
                    let expected = T::cast_from(element::<F>(&from, i));
                    let found = element::<T>(&to, i);
                    assert!(
                        found == expected || (found != found && expected != expected),
                        "{} {name} to {} {to_name} {sizes:?} [{i}]: {found:?}, not {expected:?}",
                        F::SCALAR_TYPE,
                        T::SCALAR_TYPE
                    );
                }
            }
        }
    }
}

fn values_of<F: Element>() -> Vec<F> {
    [0.0, 1.0, -1.0, 2.5, 100.7, -3.99, 255.0, 70000.0, 1e10, f64::NAN, 33554433.0]
        .iter()
        .map(|&value| F::cast_from(Complex::new(value, -value)))
        .collect()
}

#[test]
fn every_dtype_converts_to_every_other_in_every_layout() {
    crate::init().unwrap();
    for from in ScalarType::ALL.iter().copied() {
        for to in ScalarType::ALL.iter().copied() {
            // Dtypes without an element type have no conversions here.
            let _ = c10::dispatch_dtypes!(from, "test", EVERY, |F| {
                let _ = c10::dispatch_dtypes!(to, "test", EVERY, |T| check::<F, T>(&values_of::<F>()));
            });
        }
    }
}

#[test]
fn integers_round_once_on_the_way_to_float() {
    crate::init().unwrap();
    let value = (1_i64 << 54) + (1 << 30) + 1;
    let from = empty_cpu(&[1], ScalarType::Long).unwrap();
    set_element(&from, 0, value);
    let to = iter::to_dtype(&from, ScalarType::Float).unwrap();
    assert_eq!(element::<f32>(&to, 0), value as f32);
    let to = iter::to_dtype(&from, ScalarType::ComplexFloat).unwrap();
    assert_eq!(element::<Complex<f32>>(&to, 0), Complex::new(value as f32, 0.0));
    let half = iter::to_dtype(&from, ScalarType::Half).unwrap();
    assert_eq!(element::<Half>(&half, 0), Half::cast_from(value));
}

#[test]
fn large_copies_do_not_depend_on_the_number_of_threads() {
    crate::init().unwrap();
    for sizes in [&[1_000_003][..], &[1025, 771]] {
        for (name, from) in layouts(sizes, ScalarType::Float) {
            let numel = from.numel().unwrap();
            for i in 0..numel {
                set_element(&from, i, i as f32);
            }
            for threads in [1, 2, 5] {
                let to = empty_cpu(sizes, ScalarType::Float).unwrap();
                with_threads(threads, || iter::copy_into(&to, &from, false).unwrap());
                for i in (0..numel).step_by(997) {
                    assert_eq!(element::<f32>(&to, i), element::<f32>(&from, i), "{name} {sizes:?} [{i}]");
                }
            }
        }
    }
}

#[test]
fn a_dtype_without_conversions_is_refused() {
    crate::init().unwrap();
    let from = empty_cpu(&[2], ScalarType::QInt8).unwrap();
    let to = empty_cpu(&[2], ScalarType::Float).unwrap();
    let error = iter::copy_into(&to, &from, false).unwrap_err();
    assert!(error.message().contains("no conversion"), "{}", error.message());
}
