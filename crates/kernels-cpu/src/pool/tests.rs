//! Pooling against a naive walk over windows.

use c10::{BFloat16, Element, Half, Result, ScalarType, Tensor};

use crate::test_tensor::{elements, kernel, layouts, set_elements, tensor, with_threads, zeros};

type Forward = fn(&Tensor, &[i64], &[i64], &[i64], &[i64], &[Tensor]) -> Result<()>;
type Backward = fn(&Tensor, &Tensor, &[Tensor]) -> Result<()>;

struct Case {
    input: [i64; 4],
    kernel: [i64; 2],
    stride: [i64; 2],
    padding: [i64; 2],
    dilation: [i64; 2],
    ceil: bool,
}

const CASES: [Case; 6] = [
    Case {
        input: [2, 3, 7, 9],
        kernel: [2, 2],
        stride: [2, 2],
        padding: [0, 0],
        dilation: [1, 1],
        ceil: false,
    },
    Case {
        input: [2, 3, 7, 9],
        kernel: [3, 3],
        stride: [2, 2],
        padding: [1, 1],
        dilation: [1, 1],
        ceil: true,
    },
    Case {
        input: [1, 2, 8, 20],
        kernel: [3, 2],
        stride: [1, 1],
        padding: [1, 0],
        dilation: [2, 3],
        ceil: false,
    },
    Case {
        input: [1, 1, 5, 5],
        kernel: [2, 2],
        stride: [3, 3],
        padding: [1, 1],
        dilation: [1, 1],
        ceil: true,
    },
    Case {
        input: [1, 5, 4, 4],
        kernel: [4, 4],
        stride: [1, 3],
        padding: [2, 2],
        dilation: [1, 1],
        ceil: false,
    },
    Case {
        input: [0, 5, 4, 4],
        kernel: [2, 2],
        stride: [2, 2],
        padding: [0, 0],
        dilation: [1, 1],
        ceil: false,
    },
];

impl Case {
    fn output(&self, i: usize) -> i64 {
        let room = self.input[2 + i] + 2 * self.padding[i] - self.dilation[i] * (self.kernel[i] - 1) - 1;
        let up = if self.ceil { self.stride[i] - 1 } else { 0 };
        let size = (room + up) / self.stride[i] + 1;
        // The last window must begin inside the input or the padding before it.
        if self.ceil && (size - 1) * self.stride[i] >= self.input[2 + i] + self.padding[i] {
            size - 1
        } else {
            size
        }
    }

    fn naive(&self, x: &[f64]) -> (Vec<f64>, Vec<i64>) {
        let [n, c, h, w] = self.input;
        let (mut values, mut indices) = (Vec::new(), Vec::new());
        for plane in 0..n * c {
            for oy in 0..self.output(0) {
                for ox in 0..self.output(1) {
                    let mut best: Option<(f64, i64)> = None;
                    for ky in 0..self.kernel[0] {
                        for kx in 0..self.kernel[1] {
                            let y = oy * self.stride[0] - self.padding[0] + ky * self.dilation[0];
                            let xx = ox * self.stride[1] - self.padding[1] + kx * self.dilation[1];
                            if y < 0 || y >= h || xx < 0 || xx >= w {
                                continue;
                            }
                            let value = x[(plane * h * w + y * w + xx) as usize];
                            if best.is_none_or(|(b, _)| value > b || value.is_nan()) {
                                best = Some((value, y * w + xx));
                            }
                        }
                    }
                    let (value, index) = best.unwrap();
                    values.push(value);
                    indices.push(index);
                }
            }
        }
        (values, indices)
    }

    fn run(&self, input: &Tensor, out: &Tensor, indices: &Tensor) {
        let outs = [out.clone(), indices.clone()];
        let call = kernel::<Forward>("max_pool2d_kernel");
        call(input, &self.kernel, &self.stride, &self.padding, &self.dilation, &outs).unwrap();
    }
}

fn fill<T: Element>(tensor: &Tensor, nans: bool) {
    let floating = T::KIND == c10::ElementKind::Floating;
    set_elements(tensor, |i| {
        let value = i * 29 % 23;
        if nans && floating && value == 7 {
            T::from_f64(f64::NAN)
        } else if nans && floating && value < 5 {
            T::from_f64(f64::NEG_INFINITY)
        } else {
            T::from_i64(value)
        }
    });
}

fn check<T: Element>() {
    for case in &CASES {
        let sizes = [case.input[0], case.input[1], case.output(0), case.output(1)];
        for nans in [false, true] {
            for (layout, input) in layouts(&case.input, T::SCALAR_TYPE) {
                fill::<T>(&input, nans);
                let x: Vec<f64> = elements::<T>(&input).iter().map(|x| x.to_f64()).collect();
                let (values, places) = case.naive(&x);
                let outs = layouts(&sizes, T::SCALAR_TYPE).into_iter().zip(layouts(&sizes, ScalarType::Long));
                for ((out_layout, out), (_, indices)) in outs.filter(|((name, _), _)| *name != "expanded") {
                    case.run(&input, &out, &indices);
                    let got: Vec<f64> = elements::<T>(&out).iter().map(|x| x.to_f64()).collect();
                    let name = format!("{} {:?} {layout} {out_layout}", T::SCALAR_TYPE, case.input);
                    assert_eq!(elements::<i64>(&indices), places, "{name}");
                    assert!(
                        got.iter().zip(&values).all(|(a, b)| a == b || (a.is_nan() && b.is_nan())),
                        "{name}"
                    );
                }
            }
        }
    }
}

#[test]
fn maxima_and_their_places() {
    check::<f32>();
    check::<f64>();
    check::<Half>();
    check::<BFloat16>();
    check::<i8>();
    check::<i64>();
}

#[test]
fn one_entry_counts_for_both_directions_and_no_stride_means_the_kernels() {
    let input = tensor(&[1, 4, 4], &(0..16).map(|i| i as f32).collect::<Vec<_>>());
    let outs = [zeros(&[1, 2, 2], ScalarType::Float), zeros(&[1, 2, 2], ScalarType::Long)];
    kernel::<Forward>("max_pool2d_kernel")(&input, &[2], &[], &[0], &[1], &outs).unwrap();
    assert_eq!(elements::<f32>(&outs[0]), [5.0, 7.0, 13.0, 15.0]);
}

#[test]
fn gradients_add_up_at_the_maxima() {
    let backward = kernel::<Backward>("max_pool2d_backward_kernel");
    let indices = tensor(&[1, 2, 2, 2], &[0i64, 0, 3, 1, 5, 5, 5, 5]);
    for (layout, grad) in layouts(&[1, 2, 2, 2], ScalarType::Float) {
        set_elements(&grad, |i| 1.0 + i as f32);
        let g: Vec<f32> = elements(&grad);
        for (out_layout, out) in
            layouts(&[1, 2, 3, 2], ScalarType::Float).into_iter().filter(|(n, _)| *n != "expanded")
        {
            set_elements(&out, |_| f32::NAN);
            backward(&grad, &indices, &[out.clone()]).unwrap();
            let expected =
                [g[0] + g[1], g[3], 0.0, g[2], 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, g[4] + g[5] + g[6] + g[7]];
            assert_eq!(elements::<f32>(&out), expected, "{layout} {out_layout}");
        }
    }
    let bad = tensor(&[1, 1, 1], &[6i64]);
    let error =
        backward(&zeros(&[1, 1, 1], ScalarType::Float), &bad, &[zeros(&[1, 3, 2], ScalarType::Float)])
            .unwrap_err();
    assert!(error.message().contains("index 6 is out of bounds"), "{error}");
}

#[test]
fn threads_do_not_show() {
    let case = Case {
        input: [2, 40, 40, 40],
        kernel: [3, 3],
        stride: [2, 2],
        padding: [1, 1],
        dilation: [1, 1],
        ceil: false,
    };
    let run = |threads| {
        with_threads(threads, || {
            let input = zeros(&case.input, ScalarType::Float);
            fill::<f32>(&input, true);
            let sizes = [2, 40, case.output(0), case.output(1)];
            let (out, indices) = (zeros(&sizes, ScalarType::Float), zeros(&sizes, ScalarType::Long));
            case.run(&input, &out, &indices);
            elements::<i64>(&indices)
        })
    };
    assert_eq!(run(1), run(2));
}
