//! Products against a naive one in double precision, over layouts and shapes that reach every algorithm.

use c10::{BFloat16, Element, Half, Result, Scalar, ScalarType, Tensor};
use num_complex::Complex;

use super::element::LinalgElement;
use super::gemm::gemm;
use super::matrix::Matrix;
use crate::test_tensor::{
    as_strided, element, elements, kernel, layouts, set_elements, tensor, with_threads, zeros,
};

type MmFn = fn(&Tensor, &Tensor, &[Tensor]) -> Result<()>;
type AddmmFn = fn(&Tensor, &Tensor, &Scalar, &Scalar, &[Tensor]) -> Result<()>;

/// Small numbers that every dtype holds, so that most sums are exact.
fn value(i: i64, salt: i64) -> f64 {
    ((i * 7 + salt * 13) % 11 - 5) as f64
}

fn fill<T: Element>(tensor: &Tensor, salt: i64) {
    set_elements(tensor, |i| T::from_complex(Complex::new(value(i, salt), value(i, salt + 1))));
}

fn naive<T: Element>(a: &Tensor, b: &Tensor) -> Vec<Complex<f64>> {
    let (m, k, n) = (a.size(0).unwrap(), a.size(1).unwrap(), b.size(1).unwrap());
    let (a, b): (Vec<T>, Vec<T>) = (elements(a), elements(b));
    let mut out = Vec::new();
    for i in 0..m {
        for j in 0..n {
            out.push(
                (0..k)
                    .map(|p| a[(i * k + p) as usize].to_complex() * b[(p * n + j) as usize].to_complex())
                    .sum(),
            );
        }
    }
    out
}

fn check<T: Element>(name: &str, out: &Tensor, expected: &[Complex<f64>]) {
    for (i, &expected) in expected.iter().enumerate() {
        // Through the dtype: integers wrap, halves round.
        let expected = match T::KIND {
            c10::ElementKind::Floating | c10::ElementKind::Complex => T::from_complex(expected),
            _ => T::from_i64(expected.re as i64),
        };
        assert_eq!(element::<T>(out, i as i64), expected, "{name}, element {i}");
    }
}

const SHAPES: [(i64, i64, i64); 15] = [
    (1, 1, 1),
    (4, 4, 4),
    (3, 5, 7),
    (16, 16, 16),
    (17, 9, 33),
    (1, 40, 50),
    (50, 40, 1),
    (2, 300, 19),
    (70, 70, 70),
    (13, 600, 35),
    (0, 3, 4),
    (3, 0, 4),
    (65, 2, 90),
    (100, 20, 16),
    (5, 30, 100),
];

fn all_layouts<T: Element>() {
    for (m, k, n) in SHAPES {
        let dtype = T::SCALAR_TYPE;
        for (a_layout, a) in layouts(&[m, k], dtype) {
            fill::<T>(&a, 1);
            for (b_layout, b) in layouts(&[k, n], dtype) {
                fill::<T>(&b, 2);
                let expected = naive::<T>(&a, &b);
                for (out_layout, out) in
                    layouts(&[m, n], dtype).into_iter().filter(|(name, _)| *name != "expanded")
                {
                    kernel::<MmFn>("mm_kernel")(&a, &b, &[out.clone()]).unwrap();
                    let name = format!("mm {dtype} {m}x{k}x{n} {a_layout} {b_layout} {out_layout}");
                    check::<T>(&name, &out, &expected);
                }
            }
        }
    }
}

#[test]
fn mm_of_every_dtype_and_layout() {
    all_layouts::<f32>();
    all_layouts::<f64>();
    all_layouts::<Complex<f32>>();
    all_layouts::<Complex<f64>>();
    all_layouts::<Half>();
    all_layouts::<BFloat16>();
    all_layouts::<u8>();
    all_layouts::<i8>();
    all_layouts::<i16>();
    all_layouts::<i32>();
    all_layouts::<i64>();
}

/// Rows and columns that end in panels of every width, of operands that are read where they lie and packed ones.
fn every_width<T: Element>() {
    for n in 1..=100 {
        for (m, k) in [(n % 29 + 17, 5), (n, 40), (9, 300)] {
            let dtype = T::SCALAR_TYPE;
            let transposed =
                |rows: i64, cols: i64| as_strided(&zeros(&[cols, rows], dtype), &[rows, cols], &[1, rows], 0);
            for (a, b) in
                [(zeros(&[m, k], dtype), zeros(&[k, n], dtype)), (transposed(m, k), transposed(k, n))]
            {
                fill::<T>(&a, 1);
                fill::<T>(&b, 2);
                let out = zeros(&[m, n], dtype);
                kernel::<MmFn>("mm_kernel")(&a, &b, &[out.clone()]).unwrap();
                check::<T>(&format!("mm {dtype} {m}x{k}x{n}"), &out, &naive::<T>(&a, &b));
            }
        }
    }
}

#[test]
fn panels_of_every_width() {
    every_width::<f32>();
    every_width::<f64>();
    every_width::<Complex<f32>>();
    every_width::<BFloat16>();
    every_width::<i32>();
}

#[test]
fn a_right_operand_beyond_the_caches_is_packed() {
    for (m, k, n) in [(20, 512, 600), (9, 700, 403)] {
        let (a, b) = (zeros(&[m, k], ScalarType::Double), zeros(&[k, n], ScalarType::Double));
        fill::<f64>(&a, 1);
        fill::<f64>(&b, 2);
        let out = zeros(&[m, n], ScalarType::Double);
        kernel::<MmFn>("mm_kernel")(&a, &b, &[out.clone()]).unwrap();
        check::<f64>(&format!("mm {m}x{k}x{n}"), &out, &naive::<f64>(&a, &b));
    }
}

#[test]
fn mm_of_bool_is_refused() {
    let a = zeros(&[2, 2], ScalarType::Bool);
    let error = kernel::<MmFn>("mm_kernel")(&a, &a, &[zeros(&[2, 2], ScalarType::Bool)]).unwrap_err();
    assert_eq!(error.message(), "\"addmm_impl_cpu_\" not implemented for 'Bool'");
}

#[test]
fn addmm_scales_and_zero_beta_does_not_read() {
    for (m, k, n) in SHAPES {
        let (a, b) = (zeros(&[m, k], ScalarType::Float), zeros(&[k, n], ScalarType::Float));
        fill::<f32>(&a, 1);
        fill::<f32>(&b, 2);
        let product = naive::<f32>(&a, &b);
        for (beta, alpha, start) in [(0.0, 2.0, f32::NAN), (3.0, 1.0, 2.0), (1.0, -1.0, 5.0), (2.0, 0.0, 1.0)]
        {
            let out = zeros(&[m, n], ScalarType::Float);
            set_elements(&out, |_| start);
            kernel::<AddmmFn>("addmm_kernel")(
                &a,
                &b,
                &Scalar::from(beta),
                &Scalar::from(alpha),
                &[out.clone()],
            )
            .unwrap();
            let expected: Vec<_> = product
                .iter()
                .map(|p| p * alpha + if beta == 0.0 { 0.0 } else { beta * f64::from(start) })
                .collect();
            check::<f32>(&format!("addmm {m}x{k}x{n} beta {beta}"), &out, &expected);
        }
    }
}

#[test]
fn bmm_is_a_product_per_batch() {
    for (batches, m, k, n) in [(1, 3, 4, 5), (7, 8, 8, 8), (3, 70, 20, 30), (0, 2, 2, 2), (5, 1, 30, 20)] {
        for (layout, a) in layouts(&[batches, m, k], ScalarType::Float) {
            let b = zeros(&[batches, k, n], ScalarType::Float);
            fill::<f32>(&a, 1);
            fill::<f32>(&b, 2);
            let out = zeros(&[batches, m, n], ScalarType::Float);
            kernel::<MmFn>("bmm_kernel")(&a, &b, &[out.clone()]).unwrap();
            let add = zeros(&[batches, m, n], ScalarType::Float);
            set_elements(&add, |_| 1f32);
            kernel::<AddmmFn>("baddbmm_kernel")(
                &a,
                &b,
                &Scalar::from(2.0),
                &Scalar::from(3.0),
                &[add.clone()],
            )
            .unwrap();
            let (a, b): (Vec<f32>, Vec<f32>) = (elements(&a), elements(&b));
            for batch in 0..batches {
                let part =
                    |v: &[f32], len: i64| v[(batch * len) as usize..((batch + 1) * len) as usize].to_vec();
                let expected =
                    naive::<f32>(&tensor(&[m, k], &part(&a, m * k)), &tensor(&[k, n], &part(&b, k * n)));
                for (i, expected) in expected.iter().enumerate() {
                    let at = batch * m * n + i as i64;
                    assert_eq!(f64::from(element::<f32>(&out, at)), expected.re, "bmm {layout}");
                    assert_eq!(
                        f64::from(element::<f32>(&add, at)),
                        3.0 * expected.re + 2.0,
                        "baddbmm {layout}"
                    );
                }
            }
        }
    }
}

#[test]
fn dot_of_strided_vectors() {
    let dot = kernel::<MmFn>("dot_kernel");
    for n in [0, 1, 31, 32, 100, 300, 200_000] {
        for (layout, a) in layouts(&[n], ScalarType::Double) {
            let b = zeros(&[n], ScalarType::Double);
            fill::<f64>(&a, 1);
            fill::<f64>(&b, 2);
            let out = zeros(&[], ScalarType::Double);
            dot(&a, &b, &[out.clone()]).unwrap();
            let expected: f64 = elements::<f64>(&a).iter().zip(elements::<f64>(&b)).map(|(a, b)| a * b).sum();
            assert_eq!(element::<f64>(&out, 0), expected, "{layout} {n}");
        }
    }
    let a = tensor(&[3], &[100u8, 200, 3]);
    let out = zeros(&[], ScalarType::Byte);
    dot(&a, &a, &[out.clone()]).unwrap();
    assert_eq!(element::<u8>(&out, 0), ((10_000 + 40_000 + 9) % 256) as u8);
}

/// Numbers whose sums round, so that a changed order shows.
fn rough<T: Element>(n: usize, salt: u32) -> Vec<T> {
    let mut state = salt.wrapping_mul(0x9e37_79b9) | 1;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        f64::from(state >> 8) / f64::from(1 << 24) - 0.5
    };
    (0..n).map(|_| T::from_complex(Complex::new(next(), next()))).collect()
}

/// See Note [Blocks].
fn cuts_do_not_show<T: LinalgElement>() {
    for (m, k, n) in [(256, 700, 300), (3, 1500, 700), (40, 300, 900), (900, 300, 40), (97, 513, 130)] {
        let (a, b, start) = (rough::<T>(m * k, 1), rough::<T>(k * n, 2), rough::<T>(m * n, 3));
        for transposed in [false, true] {
            let matrix = |v: &[T], rows: usize, cols: usize| Matrix {
                data: v.as_ptr().cast_mut(),
                rows,
                cols,
                row_stride: if transposed { 1 } else { cols as isize },
                col_stride: if transposed { rows as isize } else { 1 },
            };
            let run = |threads: usize| {
                let out = start.clone();
                let (alpha, beta) = (<T::Sum as Element>::from_f64(3.0), <T::Sum as Element>::from_f64(2.0));
                with_threads(threads, || {
                    gemm(alpha, matrix(&a, m, k), matrix(&b, k, n), Some(beta), matrix(&out, m, n)).unwrap();
                });
                out
            };
            let whole = run(1);
            for threads in [2, 3, 64] {
                assert!(whole == run(threads), "{} {m}x{k}x{n} on {threads} threads", T::SCALAR_TYPE);
            }
        }
    }
}

#[test]
fn how_a_product_is_cut_does_not_show() {
    cuts_do_not_show::<f32>();
    cuts_do_not_show::<f64>();
    cuts_do_not_show::<Complex<f32>>();
    cuts_do_not_show::<Complex<f64>>();
    cuts_do_not_show::<BFloat16>();
}

#[test]
fn a_factor_of_one_keeps_infinities() {
    let infinite = Complex::new(f32::INFINITY, 0.0);
    let a = tensor(&[20, 20], &[Complex::new(1.0f32, 0.0); 400]);
    let (b, out) = (zeros(&[20, 20], ScalarType::ComplexFloat), zeros(&[20, 20], ScalarType::ComplexFloat));
    set_elements(&out, |_| infinite);
    let one = Scalar::from(1.0);
    kernel::<AddmmFn>("addmm_kernel")(&a, &b, &one, &one, &[out.clone()]).unwrap();
    assert_eq!(element::<Complex<f32>>(&out, 7), infinite);
}

#[test]
fn threads_do_not_show() {
    for (m, k, n) in [(200usize, 300usize, 400usize), (1, 3000, 500), (500, 3000, 1)] {
        for dtype in [ScalarType::Float, ScalarType::BFloat16] {
            let run = |threads| {
                with_threads(threads, || {
                    let (a, b) = (zeros(&[m as i64, k as i64], dtype), zeros(&[k as i64, n as i64], dtype));
                    let (av, bv) = (rough::<f32>(m * k, 1), rough::<f32>(k * n, 2));
                    if dtype == ScalarType::Float {
                        set_elements(&a, |i| av[i as usize]);
                        set_elements(&b, |i| bv[i as usize]);
                    } else {
                        set_elements(&a, |i| BFloat16::from_f32(av[i as usize]));
                        set_elements(&b, |i| BFloat16::from_f32(bv[i as usize]));
                    }
                    let out = zeros(&[m as i64, n as i64], ScalarType::Float);
                    let out =
                        if dtype == ScalarType::Float { out } else { zeros(&[m as i64, n as i64], dtype) };
                    kernel::<MmFn>("mm_kernel")(&a, &b, &[out.clone()]).unwrap();
                    // A column of the transposed view reaches the column-wise kernel.
                    let view = as_strided(&b, &[n as i64, k as i64], &[1, n as i64], 0);
                    let vector = as_strided(&a, &[k as i64, 1], &[1, 1], 0);
                    let product = zeros(&[n as i64, 1], dtype);
                    kernel::<MmFn>("mm_kernel")(&view, &vector, &[product.clone()]).unwrap();
                    if dtype == ScalarType::Float {
                        (elements::<f32>(&out), elements::<f32>(&product))
                    } else {
                        let wide = |t: &Tensor| {
                            elements::<BFloat16>(t).iter().map(|x| x.to_f32()).collect::<Vec<_>>()
                        };
                        (wide(&out), wide(&product))
                    }
                })
            };
            assert!(run(1) == run(2), "{m}x{k}x{n} {dtype}");
        }
    }
}
