use c10::{Element, Half, Result, ScalarType, Tensor};

use crate::test_tensor::{element, elements, kernel, layouts, set_elements, tensor, with_threads, zeros};

type Scan = fn(&Tensor, i64, &[Tensor]) -> Result<()>;

fn run(name: &'static str, input: &Tensor, dim: i64, outs: &[Tensor]) {
    kernel::<Scan>(name)(input, dim, outs).unwrap();
}

/// Compares with sums along each line, for every layout of input and output.
fn check_sums<T: Element>(
    value: impl Fn(i64) -> T,
    add: impl Fn(f64, T) -> f64,
    same: impl Fn(f64, T) -> bool,
) {
    for sizes in [&[][..], &[0], &[7], &[4, 9], &[3, 5, 4], &[2, 1, 130]] {
        for (name, input) in layouts(sizes, T::SCALAR_TYPE) {
            set_elements(&input, &value);
            for (out_name, out) in layouts(sizes, T::SCALAR_TYPE) {
                if out_name == "expanded" {
                    continue;
                }
                for dim in 0..sizes.len().max(1) {
                    run("cumsum_kernel", &input, dim as i64, std::slice::from_ref(&out));
                    let n = sizes.get(dim).copied().unwrap_or(1);
                    let inner: i64 = sizes.iter().skip(dim + 1).product();
                    for line in 0..input.numel().unwrap() / n.max(1) {
                        let mut sum = 0.0;
                        for i in 0..n {
                            let at = (line / inner * n + i) * inner + line % inner;
                            sum = add(sum, element::<T>(&input, at));
                            assert!(same(sum, element::<T>(&out, at)), "{name} {out_name} {sizes:?} {dim}");
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn sums_in_every_layout() {
    let number = |i: i64| ((i * 37) % 11) as f64 - 5.0;
    check_sums::<f32>(|i| number(i) as f32, |sum, x| sum + f64::from(x), |sum, x| sum as f32 == x);
    check_sums::<i64>(|i| number(i) as i64, |sum, x| sum + x as f64, |sum, x| sum as i64 == x);
    check_sums::<Half>(
        |i| Half::from_f64(number(i)),
        |sum, x| sum + f64::from(x.to_f32()),
        |sum, x| Half::from_f64(sum) == x,
    );
}

#[test]
fn an_input_may_be_the_output() {
    let input = tensor(&[4], &[1_i32, 2, 3, 4]);
    run("cumprod_kernel", &input, 0, std::slice::from_ref(&input));
    assert_eq!(elements::<i32>(&input), [1, 2, 6, 24]);
}

#[test]
fn extremes_name_the_latest_and_nan_stays() {
    let input = tensor(&[6], &[1.0_f32, 3.0, 3.0, f32::NAN, 5.0, f32::NAN]);
    let outs = [zeros(&[6], ScalarType::Float), zeros(&[6], ScalarType::Long)];
    run("cummax_kernel", &input, 0, &outs);
    assert_eq!(elements::<i64>(&outs[1]), [0, 1, 2, 3, 3, 5]);
    assert!(elements::<f32>(&outs[0])[4].is_nan());
    let input = tensor(&[4], &[i64::MAX, i64::MAX, 2, 2]);
    let outs = [zeros(&[4], ScalarType::Long), zeros(&[4], ScalarType::Long)];
    run("cummin_kernel", &input, 0, &outs);
    assert_eq!(elements::<i64>(&outs[1]), [0, 1, 2, 3]);
}

#[test]
fn logarithms_of_sums_keep_infinities() {
    let input = tensor(&[4], &[f64::NEG_INFINITY, 0.0, 0.0, f64::INFINITY]);
    let out = zeros(&[4], ScalarType::Double);
    run("logcumsumexp_kernel", &input, 0, std::slice::from_ref(&out));
    assert_eq!(elements::<f64>(&out), [f64::NEG_INFINITY, 0.0, 2.0_f64.ln(), f64::INFINITY]);
}

#[test]
fn same_bits_on_several_threads() {
    let input = zeros(&[300, 500], ScalarType::Float);
    set_elements(&input, |i| ((i * 7919) % 1009) as f32 * 0.37);
    let sums = |threads, dim| {
        let out = zeros(&[300, 500], ScalarType::Float);
        with_threads(threads, || run("cumsum_kernel", &input, dim, std::slice::from_ref(&out)));
        elements::<f32>(&out)
    };
    assert_eq!(sums(1, 0), sums(4, 0));
    assert_eq!(sums(1, 1), sums(4, 1));
}
