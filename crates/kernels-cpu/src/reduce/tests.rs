// NaN differs from itself.
#![allow(clippy::eq_op)]

use c10::{BFloat16, Complex, Element, Half, Result, ScalarType, Tensor};
use iter::{make_dim_mask, make_reduction, shape_from_dim_mask, StructuredOutputs, TensorIterator};

use crate::map::Stored;
use crate::test_tensor::{element, elements, kernel, layouts, set_elements, tensor, with_threads, zeros};

type Reduce = fn(&TensorIterator) -> Result<()>;
type WithDim = fn(&Tensor, i64, bool, &[Tensor]) -> Result<()>;
type ArgDim = fn(&Tensor, Option<i64>, bool, &[Tensor]) -> Result<()>;
type Softmax = fn(&Tensor, i64, bool, &[Tensor]) -> Result<()>;
type Backward = fn(&Tensor, &Tensor, i64, &[Tensor]) -> Result<()>;

const SHAPES: [&[i64]; 9] =
    [&[], &[1], &[7], &[300], &[5, 9], &[3, 70, 5], &[33, 64], &[2, 3, 4, 5], &[600, 3]];

fn reduce(name: &'static str, input: &Tensor, dims: Option<&[i64]>, out: ScalarType) -> Tensor {
    let kernel = kernel::<Reduce>(name);
    let mut outs = StructuredOutputs::functional(1);
    let iter = make_reduction("test", &mut outs, input, dims, false, input.dtype(), &[out]).unwrap();
    kernel(&iter).unwrap();
    outs.finish().unwrap();
    outs.take(0).unwrap()
}

/// The dimensions to try for a number of dimensions.
fn dim_choices(ndim: usize) -> Vec<Option<Vec<i64>>> {
    let mut choices = vec![None];
    choices.extend((0..ndim as i64).map(|dim| Some(vec![dim])));
    if ndim >= 3 {
        choices.push(Some(vec![0, 2]));
        choices.push(Some(vec![1, 2]));
    }
    choices
}

/// For each output element, in order, the input elements that go to it, in order.
fn groups<T: Element>(input: &Tensor, dims: Option<&[i64]>) -> Vec<Vec<T>> {
    let sizes = input.sizes().unwrap();
    let mask = make_dim_mask(dims, input.dim(), false).unwrap();
    let shape = shape_from_dim_mask(sizes, mask, true);
    let numel = shape.iter().product::<i64>() as usize;
    let mut groups = vec![Vec::new(); numel];
    for i in 0..input.numel().unwrap() {
        let (mut rest, mut place, mut scale) = (i, 0, 1);
        for d in (0..sizes.len()).rev() {
            place += if shape[d] == 1 { 0 } else { rest % sizes[d] * scale };
            scale *= shape[d];
            rest /= sizes[d];
        }
        groups[place as usize].push(element(input, i));
    }
    groups
}

/// Runs `check(input, dims)` for every layout and choice of dimensions.
fn for_each_case<T: Element>(value: impl Fn(i64) -> T, check: impl Fn(&str, &Tensor, Option<&[i64]>)) {
    for sizes in SHAPES {
        for (name, input) in layouts(sizes, T::SCALAR_TYPE) {
            set_elements(&input, &value);
            for dims in dim_choices(sizes.len()) {
                check(name, &input, dims.as_deref());
            }
        }
    }
}

#[test]
fn float_sums_are_within_a_few_ulp_of_the_exact_one() {
    fn check<T: Element>(epsilon: f64) {
        for_each_case(
            |i| T::cast_from(((i * 7919) % 1013) as f64 / 256.0 - 1.5),
            |name, input, dims| {
                let found = elements::<T>(&reduce("sum_kernel", input, dims, T::SCALAR_TYPE));
                for (found, group) in found.iter().zip(groups::<T>(input, dims)) {
                    let exact: f64 = group.iter().map(|x| x.to_f64()).sum();
                    let scale: f64 = group.iter().map(|x| x.to_f64().abs()).sum();
                    let error = (found.to_f64() - exact).abs();
                    assert!(
                        error <= epsilon * scale,
                        "{} {name} {dims:?}: {found:?} {exact}",
                        T::SCALAR_TYPE
                    );
                }
            },
        );
    }
    check::<f32>(1e-6);
    check::<f64>(1e-15);
    check::<Half>(1e-3);
    check::<BFloat16>(8e-3);
}

#[test]
fn integer_sums_and_products_wrap() {
    fn check<T: Element + std::ops::Add<Output = T>>(add: fn(T, T) -> T, mul: fn(T, T) -> T) {
        for_each_case(
            |i| T::cast_from(i * 31 + 3),
            |name, input, dims| {
                let sums = elements::<T>(&reduce("sum_kernel", input, dims, T::SCALAR_TYPE));
                let products = elements::<T>(&reduce("prod_kernel", input, dims, T::SCALAR_TYPE));
                for ((sum, product), group) in sums.iter().zip(products).zip(groups::<T>(input, dims)) {
                    assert_eq!(*sum, group.iter().copied().fold(T::ZERO, add), "{name} {dims:?}");
                    assert_eq!(product, group.iter().copied().fold(T::ONE, mul), "{name} {dims:?}");
                }
            },
        );
    }
    check::<i64>(i64::wrapping_add, i64::wrapping_mul);
    check::<u8>(u8::wrapping_add, u8::wrapping_mul);
    check::<i16>(i16::wrapping_add, i16::wrapping_mul);
}

#[test]
fn complex_and_bool_sums() {
    let input = zeros(&[40, 33], ScalarType::ComplexFloat);
    set_elements(&input, |i| Complex::new(i as f32, -2.0 * i as f32));
    let n = 40.0 * 33.0;
    let sum = n * (n - 1.0) / 2.0;
    let found = elements::<Complex<f32>>(&reduce("sum_kernel", &input, None, ScalarType::ComplexFloat));
    assert_eq!(found, [Complex::new(sum, -2.0 * sum)]);
    let input = tensor(&[2, 2], &[false, false, true, false]);
    assert_eq!(elements::<bool>(&reduce("sum_kernel", &input, Some(&[1]), ScalarType::Bool)), [false, true]);
    assert_eq!(elements::<bool>(&reduce("prod_kernel", &input, None, ScalarType::Bool)), [false]);
}

#[test]
fn float_products() {
    for_each_case(
        |i| 1.0 + (i % 17) as f32 / 1024.0 - 0.008,
        |name, input, dims| {
            let found = elements::<f32>(&reduce("prod_kernel", input, dims, ScalarType::Float));
            for (&found, group) in found.iter().zip(groups::<f32>(input, dims)) {
                let exact: f64 = group.iter().map(|&x| f64::from(x)).product();
                assert!(
                    (f64::from(found) - exact).abs() <= 1e-5 * exact.abs(),
                    "{name} {dims:?}: {found} {exact}"
                );
            }
        },
    );
}

#[test]
fn extrema_and_truth() {
    fn check<T: Element + PartialOrd>(value: impl Fn(i64) -> T) {
        for_each_case(value, |name, input, dims| {
            let at = |kernel, out| reduce(kernel, input, dims, out);
            let (max, min) = (at("amax_kernel", T::SCALAR_TYPE), at("amin_kernel", T::SCALAR_TYPE));
            let (any, all) = (at("any_kernel", ScalarType::Bool), at("all_kernel", ScalarType::Bool));
            for (i, group) in groups::<T>(input, dims).iter().enumerate() {
                let i = i as i64;
                let pick = |better: fn(&T, &T) -> bool| {
                    group.iter().copied().reduce(|a, b| if a != a || better(&a, &b) { a } else { b }).unwrap()
                };
                let same = |a: T, b: T| a == b || (a != a && b != b);
                let has_nan = group.iter().copied().find(|&x| x != x);
                let expected = has_nan.unwrap_or_else(|| pick(|a, b| a >= b));
                assert!(same(element::<T>(&max, i), expected), "amax {name} {dims:?}");
                let expected = has_nan.unwrap_or_else(|| pick(|a, b| a <= b));
                assert!(same(element::<T>(&min, i), expected), "amin {name} {dims:?}");
                assert_eq!(
                    element::<bool>(&any, i),
                    group.iter().any(|x| x.to_bool()),
                    "any {name} {dims:?}"
                );
                assert_eq!(
                    element::<bool>(&all, i),
                    group.iter().all(|x| x.to_bool()),
                    "all {name} {dims:?}"
                );
            }
        });
    }
    let number = |i: i64| ((i * 7919 + 11) % 101 - 50) as f64;
    check::<f32>(|i| number(i) as f32);
    check::<f32>(|i| if i % 97 == 5 { f32::NAN } else { number(i) as f32 });
    check::<f64>(number);
    check::<Half>(|i| Half::from_f64(number(i)));
    check::<i64>(|i| number(i) as i64);
    check::<u8>(|i| (number(i) + 60.0) as u8);
    check::<i8>(|i| -1 - (i % 5) as i8);
    check::<bool>(|i| i % 7 == 3);
}

#[test]
fn negative_zero_is_false_and_nan_is_true() {
    let input = tensor(&[3], &[-0.0_f32, 0.0, -0.0]);
    assert_eq!(elements::<bool>(&reduce("any_kernel", &input, None, ScalarType::Bool)), [false]);
    let input = tensor(&[2], &[f64::NAN, 1.0]);
    assert_eq!(elements::<bool>(&reduce("all_kernel", &input, None, ScalarType::Bool)), [true]);
    let input = tensor(&[2], &[Complex::new(0.0_f32, 1.0), Complex::new(-0.0, -0.0)]);
    assert_eq!(elements::<bool>(&reduce("any_kernel", &input, Some(&[0]), ScalarType::Bool)), [true]);
    assert_eq!(elements::<bool>(&reduce("all_kernel", &input, Some(&[0]), ScalarType::Bool)), [false]);
}

#[test]
fn reductions_of_nothing_give_the_identity() {
    let input = zeros(&[0, 3], ScalarType::Float);
    assert_eq!(elements::<f32>(&reduce("sum_kernel", &input, Some(&[0]), ScalarType::Float)), [0.0; 3]);
    assert_eq!(elements::<f32>(&reduce("prod_kernel", &input, Some(&[0]), ScalarType::Float)), [1.0; 3]);
    assert_eq!(elements::<bool>(&reduce("any_kernel", &input, None, ScalarType::Bool)), [false]);
    assert_eq!(elements::<bool>(&reduce("all_kernel", &input, None, ScalarType::Bool)), [true]);
    assert!(elements::<f32>(&reduce("sum_kernel", &input, Some(&[1]), ScalarType::Float)).is_empty());
}

#[test]
fn bits_do_not_depend_on_the_number_of_threads() {
    for sizes in [&[200_003][..], &[30_001, 9], &[9, 30_001], &[300, 400], &[4, 500, 130]] {
        for (name, input) in layouts(sizes, ScalarType::Float) {
            set_elements(&input, |i| ((i * 7919) % 100_003) as f32 / 7.0 - 3000.0);
            for dims in dim_choices(sizes.len()) {
                let bits = |threads| {
                    with_threads(threads, || {
                        let sum = reduce("sum_kernel", &input, dims.as_deref(), ScalarType::Float);
                        elements::<f32>(&sum).iter().map(|x| x.to_bits()).collect::<Vec<_>>()
                    })
                };
                let one = bits(1);
                assert_eq!(one, bits(2), "{name} {sizes:?} {dims:?}");
                assert_eq!(one, bits(7), "{name} {sizes:?} {dims:?}");
                let group = &groups::<f32>(&input, dims.as_deref())[0];
                let exact: f64 = group.iter().map(|&x| f64::from(x)).sum();
                let scale: f64 = group.iter().map(|&x| f64::from(x).abs()).sum();
                assert!(
                    (f64::from(f32::from_bits(one[0])) - exact).abs() <= 3e-7 * scale,
                    "{name} {sizes:?}"
                );
            }
        }
    }
}

#[test]
fn a_million_tenths_add_up_better_than_in_one_chain() {
    let input = zeros(&[1_000_000], ScalarType::Float);
    set_elements(&input, |_| 0.1_f32);
    let found = elements::<f32>(&reduce("sum_kernel", &input, None, ScalarType::Float))[0];
    let exact = 1_000_000.0 * f64::from(0.1_f32);
    assert!((f64::from(found) - exact).abs() <= exact * 2.0_f64.powi(-23), "{found} {exact}");
}

fn first_position<T: Element + PartialOrd>(group: &[T], largest: bool) -> usize {
    if let Some(nan) = group.iter().position(|x| x != x) {
        return nan;
    }
    let mut best = 0;
    for (i, x) in group.iter().enumerate() {
        if if largest { *x > group[best] } else { *x < group[best] } {
            best = i;
        }
    }
    best
}

#[test]
fn positions_are_those_of_the_first_extremum() {
    fn check<T: Element + PartialOrd + Stored>(value: impl Fn(i64) -> T) {
        let same = |a: T, b: T| a == b || (a != a && b != b);
        for sizes in SHAPES {
            for (name, input) in layouts(sizes, T::SCALAR_TYPE) {
                set_elements(&input, &value);
                let dims = (0..sizes.len() as i64).map(Some).chain([None]);
                for dim in dims {
                    let list = dim.map(|dim| vec![dim]);
                    let groups = groups::<T>(&input, list.as_deref());
                    let mask = make_dim_mask(list.as_deref(), input.dim(), false).unwrap();
                    for keepdim in [false, true] {
                        let shape = shape_from_dim_mask(sizes, mask, keepdim);
                        for largest in [true, false] {
                            let indices = zeros(&shape, ScalarType::Long);
                            let arg =
                                kernel::<ArgDim>(if largest { "argmax_kernel" } else { "argmin_kernel" });
                            arg(&input, dim, keepdim, std::slice::from_ref(&indices)).unwrap();
                            for (i, group) in groups.iter().enumerate() {
                                let expected = first_position(group, largest) as i64;
                                assert_eq!(
                                    element::<i64>(&indices, i as i64),
                                    expected,
                                    "{name} {sizes:?} {dim:?}"
                                );
                            }
                            let Some(dim) = dim else { continue };
                            let outs = [zeros(&shape, T::SCALAR_TYPE), zeros(&shape, ScalarType::Long)];
                            let with_dim =
                                kernel::<WithDim>(if largest { "max_dim_kernel" } else { "min_dim_kernel" });
                            with_dim(&input, dim - sizes.len() as i64, keepdim, &outs).unwrap();
                            for (i, group) in groups.iter().enumerate() {
                                let expected = first_position(group, largest);
                                assert_eq!(
                                    element::<i64>(&outs[1], i as i64),
                                    expected as i64,
                                    "{name} {sizes:?} {dim}"
                                );
                                assert!(
                                    same(element(&outs[0], i as i64), group[expected]),
                                    "{name} {sizes:?} {dim}"
                                );
                            }
                        }
                    }
                }
            }
        }
    }
    let number = |i: i64| ((i * 7919 + 11) % 37 - 18) as f32;
    check::<f32>(number);
    check::<f32>(|i| if i % 41 == 7 { f32::NAN } else { number(i) });
    check::<f32>(|_| f32::NEG_INFINITY);
    check::<i64>(|i| number(i) as i64);
    check::<Half>(|i| Half::from_f32(number(i)));
    check::<bool>(|i| i % 3 == 1);
}

#[test]
fn positions_in_long_rows_do_not_depend_on_threads() {
    let input = zeros(&[500_000], ScalarType::Float);
    set_elements(&input, |i| (i % 1000) as f32);
    for threads in [1, 4] {
        let index = zeros(&[], ScalarType::Long);
        let argmax = kernel::<ArgDim>("argmax_kernel");
        with_threads(threads, || argmax(&input, None, false, std::slice::from_ref(&index)).unwrap());
        assert_eq!(element::<i64>(&index, 0), 999);
    }
}

/// Softmax of a group, in double.
fn softmax_of(group: &[f64]) -> Vec<f64> {
    let max = group.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = group.iter().map(|x| (x - max).exp()).sum();
    group.iter().map(|x| (x - max).exp() / sum).collect()
}

#[test]
fn softmax_and_its_derivative_in_every_layout() {
    fn check<T: Element>(epsilon: f64) {
        for sizes in [&[][..], &[5], &[300], &[4, 70], &[70, 4], &[3, 9, 33], &[2, 65, 100]] {
            for (name, input) in layouts(sizes, T::SCALAR_TYPE) {
                set_elements(&input, |i| T::cast_from(((i * 7919) % 201) as f64 / 20.0 - 5.0));
                let grad = zeros(sizes, T::SCALAR_TYPE);
                set_elements(&grad, |i| T::cast_from(((i * 31) % 17) as f64 / 8.0 - 1.0));
                for dim in 0..sizes.len().max(1) as i64 {
                    let list = [dim];
                    let x = groups::<T>(&input, Some(&list));
                    let g = groups::<T>(&grad, Some(&list));
                    for log in [false, true] {
                        let out = zeros(sizes, T::SCALAR_TYPE);
                        let forward =
                            kernel::<Softmax>(if log { "log_softmax_kernel" } else { "softmax_kernel" });
                        forward(&input, dim, false, std::slice::from_ref(&out)).unwrap();
                        let grad_input = zeros(sizes, T::SCALAR_TYPE);
                        let backward = kernel::<Backward>(if log {
                            "log_softmax_backward_kernel"
                        } else {
                            "softmax_backward_kernel"
                        });
                        backward(&grad, &out, dim, std::slice::from_ref(&grad_input)).unwrap();
                        let (y, d) = (groups::<T>(&out, Some(&list)), groups::<T>(&grad_input, Some(&list)));
                        for k in 0..x.len() {
                            let wide = |group: &[T]| group.iter().map(|x| x.to_f64()).collect::<Vec<f64>>();
                            let p = softmax_of(&wide(&x[k]));
                            let (g, y, d) = (wide(&g[k]), wide(&y[k]), wide(&d[k]));
                            let sum: f64 =
                                if log { g.iter().sum() } else { g.iter().zip(&p).map(|(g, p)| g * p).sum() };
                            for i in 0..p.len() {
                                let expected = if log { p[i].ln() } else { p[i] };
                                let tolerance = epsilon * (1.0 + expected.abs());
                                assert!((y[i] - expected).abs() <= tolerance, "{log} {name} {sizes:?} {dim}");
                                let expected = if log { g[i] - p[i] * sum } else { (g[i] - sum) * p[i] };
                                let tolerance = 8.0 * epsilon * (1.0 + sum.abs());
                                assert!(
                                    (d[i] - expected).abs() <= tolerance,
                                    "backward {log} {name} {sizes:?} {dim}"
                                );
                            }
                        }
                    }
                }
            }
        }
    }
    check::<f32>(1e-6);
    check::<f64>(1e-14);
    check::<Half>(1e-3);
    check::<BFloat16>(1e-2);
}

#[test]
fn nansum_leaves_out_nan_alone() {
    fn check<T: Element>(epsilon: f64) {
        let value = |i: i64| if i % 3 == 1 { f64::NAN } else { ((i * 7919) % 1013) as f64 / 256.0 };
        for_each_case(
            |i| T::cast_from(value(i)),
            |name, input, dims| {
                let found = elements::<T>(&reduce("nansum_kernel", input, dims, T::SCALAR_TYPE));
                for (found, group) in found.iter().zip(groups::<T>(input, dims)) {
                    let exact: f64 = group.iter().map(|x| x.to_f64()).filter(|x| !x.is_nan()).sum();
                    let error = (found.to_f64() - exact).abs();
                    assert!(
                        error <= 4.0 * epsilon * (1.0 + exact),
                        "{name} {dims:?}: {found:?}, not {exact}"
                    );
                }
            },
        );
    }
    check::<f32>(f64::from(f32::EPSILON));
    check::<f64>(f64::EPSILON);
    check::<Half>(1e-3);
    check::<BFloat16>(8e-3);
}

#[test]
fn nansum_as_integers_truncates_what_is_left() {
    let input = zeros(&[2, 301], ScalarType::Double);
    set_elements(&input, |i| if i % 301 == 7 { f64::NAN } else { 1.75 });
    assert_eq!(elements::<i64>(&reduce("nansum_kernel", &input, Some(&[1]), ScalarType::Long)), [300, 300]);
    assert_eq!(elements::<u8>(&reduce("nansum_kernel", &input, Some(&[1]), ScalarType::Byte)), [44, 44]);
    set_elements(&input, |i| if i < 301 { f64::NAN } else { 0.5 });
    assert_eq!(
        elements::<bool>(&reduce("nansum_kernel", &input, Some(&[1]), ScalarType::Bool)),
        [false, true]
    );
}

#[test]
fn softmax_does_not_depend_on_the_number_of_threads() {
    let input = zeros(&[700, 301], ScalarType::Float);
    set_elements(&input, |i| ((i * 7919) % 2003) as f32 / 100.0);
    for dim in [0, 1] {
        let run = |threads| {
            with_threads(threads, || {
                let out = zeros(&[700, 301], ScalarType::Float);
                kernel::<Softmax>("softmax_kernel")(&input, dim, false, std::slice::from_ref(&out)).unwrap();
                elements::<f32>(&out).iter().map(|x| x.to_bits()).collect::<Vec<_>>()
            })
        };
        assert_eq!(run(1), run(3));
    }
}
