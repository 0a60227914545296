// NaN differs from itself.
#![allow(clippy::eq_op)]

use std::cmp::Ordering;

use c10::{BFloat16, Element, Half, Result, ScalarType, Tensor};

use crate::test_tensor::{element, elements, kernel, layouts, set_elements, tensor, with_threads, zeros};

type Sort = fn(&Tensor, Option<bool>, i64, bool, &[Tensor]) -> Result<()>;

fn sort(input: &Tensor, dim: i64, descending: bool, outs: &[Tensor]) {
    kernel::<Sort>("sort_kernel")(input, Some(true), dim, descending, outs).unwrap();
}

/// NaN is the largest, and all NaN are equal.
fn order<T: Element + PartialOrd>(a: &T, b: &T) -> Ordering {
    match (a != a, b != b) {
        (true, true) => Ordering::Equal,
        (true, false) => Ordering::Greater,
        (false, true) => Ordering::Less,
        _ => a.partial_cmp(b).unwrap(),
    }
}

fn check<T: Element + PartialOrd>(value: impl Fn(i64) -> T) {
    for sizes in [&[][..], &[0], &[1], &[9], &[1500], &[5, 9], &[3, 20, 4], &[2, 1030]] {
        for (name, input) in layouts(sizes, T::SCALAR_TYPE) {
            set_elements(&input, &value);
            for dim in 0..sizes.len().max(1) {
                let n = sizes.get(dim).copied().unwrap_or(1);
                let inner: i64 = sizes.iter().skip(dim + 1).product();
                for descending in [false, true] {
                    for (out_name, values) in layouts(sizes, T::SCALAR_TYPE) {
                        if out_name == "expanded" {
                            continue;
                        }
                        let indices = zeros(sizes, ScalarType::Long);
                        let outs = [values, indices];
                        sort(&input, dim as i64, descending, &outs);
                        for row in 0..input.numel().unwrap() / n.max(1) {
                            let at = |i: i64| (row / inner * n + i) * inner + row % inner;
                            let mut expected: Vec<i64> = (0..n).collect();
                            expected.sort_by(|&a, &b| {
                                let (a, b) = (element::<T>(&input, at(a)), element::<T>(&input, at(b)));
                                if descending {
                                    order(&b, &a)
                                } else {
                                    order(&a, &b)
                                }
                            });
                            for i in 0..n {
                                let from = expected[i as usize];
                                assert_eq!(
                                    element::<i64>(&outs[1], at(i)),
                                    from,
                                    "{name} {sizes:?} {dim} {descending}"
                                );
                                let (a, b) = (element::<T>(&outs[0], at(i)), element::<T>(&input, at(from)));
                                assert_eq!(
                                    order(&a, &b),
                                    Ordering::Equal,
                                    "{name} {sizes:?} {dim} {descending}"
                                );
                            }
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn every_dtype_layout_and_direction_is_sorted_stably() {
    let number = |i: i64| ((i * 7919 + 13) % 211) as f64 - 105.0;
    check::<f32>(|i| if i % 50 == 7 { f32::NAN } else { (number(i) * 1.25) as f32 });
    check::<f64>(|i| if i % 50 == 7 { f64::NAN } else { number(i) * 1e100 });
    check::<Half>(|i| Half::from_f64(number(i)));
    check::<BFloat16>(|i| BFloat16::from_f64(number(i)));
    check::<i64>(|i| number(i) as i64 * (1 << 50));
    check::<u64>(|i| (number(i) as i64 * (1 << 50)) as u64);
    check::<i32>(|i| number(i) as i32 * 1_000_000);
    check::<u32>(|i| (number(i) as i32 * 1_000_000) as u32);
    check::<i16>(|i| number(i) as i16 * 100);
    check::<u16>(|i| (number(i) + 200.0) as u16);
    check::<i8>(|i| number(i) as i8);
    check::<u8>(|i| (number(i) + 110.0) as u8);
    check::<bool>(|i| i % 3 == 1);
}

#[test]
fn zeros_keep_their_sign_and_nan_its_bits() {
    let nan = f32::from_bits(0xffc0_1234);
    let input = tensor(&[5], &[0.0_f32, -0.0, nan, f32::INFINITY, -1.0]);
    let outs = [zeros(&[5], ScalarType::Float), zeros(&[5], ScalarType::Long)];
    sort(&input, 0, true, &outs);
    assert_eq!(elements::<i64>(&outs[1]), [2, 3, 0, 1, 4]);
    let values = elements::<f32>(&outs[0]);
    assert_eq!(values[0].to_bits(), nan.to_bits());
    assert!(values[2].is_sign_positive() && values[3].is_sign_negative());
}

#[test]
fn many_rows_on_several_threads() {
    let input = zeros(&[500, 60], ScalarType::Float);
    set_elements(&input, |i| ((i * 7919) % 1009) as f32);
    let run = |threads| {
        let outs = [zeros(&[500, 60], ScalarType::Float), zeros(&[500, 60], ScalarType::Long)];
        with_threads(threads, || sort(&input, 1, false, &outs));
        (elements::<f32>(&outs[0]), elements::<i64>(&outs[1]))
    };
    assert_eq!(run(1), run(4));
}

#[test]
fn extreme_keys() {
    let input = tensor(&[4], &[i64::MAX, i64::MIN, 0, -1]);
    let outs = [zeros(&[4], ScalarType::Long), zeros(&[4], ScalarType::Long)];
    sort(&input, 0, false, &outs);
    assert_eq!(elements::<i64>(&outs[0]), [i64::MIN, -1, 0, i64::MAX]);
    let input = tensor(&[4], &[f64::NEG_INFINITY, f64::NAN, f64::INFINITY, -0.0]);
    let outs = [zeros(&[4], ScalarType::Double), zeros(&[4], ScalarType::Long)];
    sort(&input, 0, false, &outs);
    assert_eq!(elements::<i64>(&outs[1]), [0, 3, 2, 1]);
}
