//! Convolutions against the definition, in double precision.

use c10::{BFloat16, Element, Half, Result, ScalarType, Tensor};
use num_complex::Complex;

use crate::test_tensor::{element, elements, kernel, layouts, set_elements, with_threads, zeros};

type Forward = fn(&Tensor, &Tensor, Option<&Tensor>, &[i64], &[i64], &[i64], i64, &[Tensor]) -> Result<()>;
type Backward = fn(&Tensor, &Tensor, &[i64], &[i64], &[i64], i64, &[Tensor]) -> Result<()>;

struct Case {
    batch: i64,
    channels: i64,
    outputs: i64,
    groups: i64,
    size: &'static [i64],
    kernel: &'static [i64],
    stride: &'static [i64],
    padding: &'static [i64],
    dilation: &'static [i64],
}

#[rustfmt::skip]
const CASES: [Case; 10] = [
    Case { batch: 2, channels: 3, outputs: 5, groups: 1, size: &[7, 9], kernel: &[3, 3], stride: &[1, 1], padding: &[1, 1], dilation: &[1, 1] },
    Case { batch: 2, channels: 4, outputs: 6, groups: 2, size: &[8, 7], kernel: &[3, 2], stride: &[2, 3], padding: &[1, 0], dilation: &[1, 2] },
    Case { batch: 1, channels: 4, outputs: 8, groups: 4, size: &[6, 20], kernel: &[3, 3], stride: &[2, 1], padding: &[2, 1], dilation: &[1, 1] },
    Case { batch: 3, channels: 5, outputs: 7, groups: 1, size: &[4, 4], kernel: &[1, 1], stride: &[1, 1], padding: &[0, 0], dilation: &[1, 1] },
    Case { batch: 1, channels: 2, outputs: 3, groups: 1, size: &[5, 5], kernel: &[1, 1], stride: &[2, 2], padding: &[0, 0], dilation: &[1, 1] },
    Case { batch: 2, channels: 3, outputs: 4, groups: 1, size: &[17], kernel: &[5], stride: &[3], padding: &[2], dilation: &[2] },
    Case { batch: 1, channels: 2, outputs: 4, groups: 2, size: &[4, 5, 6], kernel: &[2, 3, 3], stride: &[1, 2, 1], padding: &[1, 1, 0], dilation: &[2, 1, 1] },
    Case { batch: 9, channels: 3, outputs: 4, groups: 1, size: &[5, 6], kernel: &[2, 2], stride: &[1, 1], padding: &[0, 0], dilation: &[1, 1] },
    Case { batch: 1, channels: 40, outputs: 20, groups: 1, size: &[20, 20], kernel: &[3, 3], stride: &[1, 1], padding: &[1, 1], dilation: &[1, 1] },
    Case { batch: 0, channels: 3, outputs: 4, groups: 1, size: &[5, 6], kernel: &[2, 2], stride: &[1, 1], padding: &[0, 0], dilation: &[1, 1] },
];

impl Case {
    fn input(&self) -> Vec<i64> {
        [&[self.batch, self.channels][..], self.size].concat()
    }
    fn weight(&self) -> Vec<i64> {
        [&[self.outputs, self.channels / self.groups][..], self.kernel].concat()
    }
    fn output(&self) -> Vec<i64> {
        let size = |d: usize| {
            (self.size[d] + 2 * self.padding[d] - self.dilation[d] * (self.kernel[d] - 1) - 1)
                / self.stride[d]
                + 1
        };
        let sizes: Vec<i64> = (0..self.size.len()).map(size).collect();
        [&[self.batch, self.outputs][..], &sizes].concat()
    }

    /// Calls `f(output, input, weight)` with the flat indices of every term.
    fn terms(&self, mut f: impl FnMut(usize, usize, usize)) {
        let (input, weight, output) = (self.input(), self.weight(), self.output());
        let (places, taps) = (output[2..].iter().product::<i64>(), self.kernel.iter().product::<i64>());
        let per_group = self.outputs / self.groups;
        for n in 0..self.batch {
            for o in 0..self.outputs {
                for place in 0..places {
                    for c in 0..weight[1] {
                        'taps: for tap in 0..taps {
                            let (mut rest_place, mut rest_tap) = (place, tap);
                            let mut at = 0;
                            let mut scale = 1;
                            for d in (0..self.size.len()).rev() {
                                let (p, k) = (rest_place % output[2 + d], rest_tap % self.kernel[d]);
                                (rest_place, rest_tap) =
                                    (rest_place / output[2 + d], rest_tap / self.kernel[d]);
                                let x = p * self.stride[d] - self.padding[d] + k * self.dilation[d];
                                if x < 0 || x >= self.size[d] {
                                    continue 'taps;
                                }
                                at += x * scale;
                                scale *= self.size[d];
                            }
                            let channel = o / per_group * weight[1] + c;
                            f(
                                ((n * self.outputs + o) * places + place) as usize,
                                ((n * input[1] + channel) * scale + at) as usize,
                                ((o * weight[1] + c) * taps + tap) as usize,
                            );
                        }
                    }
                }
            }
        }
    }
}

fn fill<T: Element>(tensor: &Tensor, salt: i64) {
    set_elements(tensor, |i| {
        let value = |salt: i64| ((i * 7 + salt * 13) % 7 - 3) as f64;
        T::from_complex(Complex::new(value(salt), value(salt + 1)))
    });
}

fn complex<T: Element>(tensor: &Tensor) -> Vec<Complex<f64>> {
    elements::<T>(tensor).iter().map(|x| x.to_complex()).collect()
}

fn compare<T: Element>(name: &str, got: &Tensor, expected: &[Complex<f64>]) {
    assert_eq!(got.numel().unwrap() as usize, expected.len(), "{name}");
    for (i, &expected) in expected.iter().enumerate() {
        let integral = !matches!(T::KIND, c10::ElementKind::Floating | c10::ElementKind::Complex);
        let expected = if integral { T::from_i64(expected.re as i64) } else { T::from_complex(expected) };
        assert_eq!(element::<T>(got, i as i64), expected, "{name}, element {i}");
    }
}

fn check<T: Element>() {
    let dtype = T::SCALAR_TYPE;
    for case in &CASES {
        let weight = zeros(&case.weight(), dtype);
        let bias = zeros(&[case.outputs], dtype);
        fill::<T>(&weight, 5);
        fill::<T>(&bias, 3);
        for (layout, input) in layouts(&case.input(), dtype) {
            fill::<T>(&input, 1);
            let (x, w, b) = (complex::<T>(&input), complex::<T>(&weight), complex::<T>(&bias));
            let places = case.output()[2..].iter().product::<i64>() as usize;
            let count = case.output().iter().product::<i64>() as usize;
            let mut expected: Vec<_> = (0..count).map(|i| b[i / places % case.outputs as usize]).collect();
            case.terms(|o, i, k| expected[o] += x[i] * w[k]);
            for (out_layout, out) in
                layouts(&case.output(), dtype).into_iter().filter(|(n, _)| *n != "expanded")
            {
                kernel::<Forward>("conv_forward_kernel")(
                    &input,
                    &weight,
                    Some(&bias),
                    case.stride,
                    case.padding,
                    case.dilation,
                    case.groups,
                    &[out.clone()],
                )
                .unwrap();
                compare::<T>(
                    &format!("forward {dtype} {:?} {layout} {out_layout}", case.input()),
                    &out,
                    &expected,
                );
            }
        }
        for (layout, grad) in layouts(&case.output(), dtype) {
            fill::<T>(&grad, 2);
            let input = zeros(&case.input(), dtype);
            fill::<T>(&input, 1);
            let (g, x, w) = (complex::<T>(&grad), complex::<T>(&input), complex::<T>(&weight));
            let mut to_input = vec![Complex::new(0.0, 0.0); x.len()];
            let mut to_weight = vec![Complex::new(0.0, 0.0); w.len()];
            case.terms(|o, i, k| {
                to_input[i] += g[o] * w[k];
                to_weight[k] += g[o] * x[i];
            });
            let run = |name: &'static str, a: &Tensor, b: &Tensor, out: &Tensor| {
                set_elements(out, |_| T::from_f64(9.0));
                let (s, p, d) = (case.stride, case.padding, case.dilation);
                kernel::<Backward>(name)(a, b, s, p, d, case.groups, &[out.clone()]).unwrap();
            };
            for (out_layout, out) in
                layouts(&case.input(), dtype).into_iter().filter(|(n, _)| *n != "expanded")
            {
                run("conv_input_backward_kernel", &grad, &weight, &out);
                compare::<T>(
                    &format!("input {dtype} {:?} {layout} {out_layout}", case.input()),
                    &out,
                    &to_input,
                );
            }
            for (out_layout, out) in
                layouts(&case.weight(), dtype).into_iter().filter(|(n, _)| *n != "expanded")
            {
                run("conv_weight_backward_kernel", &grad, &input, &out);
                compare::<T>(
                    &format!("weight {dtype} {:?} {layout} {out_layout}", case.input()),
                    &out,
                    &to_weight,
                );
            }
        }
    }
}

#[test]
fn values_and_gradients_are_those_of_the_definition() {
    check::<f32>();
    check::<f64>();
    check::<Half>();
    check::<BFloat16>();
    check::<i64>();
    check::<Complex<f32>>();
}

#[test]
fn threads_do_not_show() {
    let sizes = |n: &[i64]| zeros(n, ScalarType::Float);
    let rough = |t: &Tensor, salt: i64| {
        set_elements(t, |i| ((i * 7919 + salt * 104_729) % 1009) as f32 / 1009.0 - 0.5)
    };
    let run = |threads| {
        with_threads(threads, || {
            let (input, weight, grad) =
                (sizes(&[5, 16, 24, 24]), sizes(&[20, 16, 3, 3]), sizes(&[5, 20, 24, 24]));
            rough(&input, 1);
            rough(&weight, 2);
            rough(&grad, 3);
            let outs = [sizes(&[5, 20, 24, 24]), sizes(&[5, 16, 24, 24]), sizes(&[20, 16, 3, 3])];
            let one = &[1, 1][..];
            kernel::<Forward>("conv_forward_kernel")(&input, &weight, None, one, one, one, 1, &outs[..1])
                .unwrap();
            let backward = |name, a: &Tensor, b: &Tensor, out: &[Tensor]| {
                kernel::<Backward>(name)(a, b, one, one, one, 1, out).unwrap();
            };
            backward("conv_input_backward_kernel", &grad, &weight, &outs[1..2]);
            backward("conv_weight_backward_kernel", &grad, &input, &outs[2..]);
            outs.map(|t| elements::<f32>(&t))
        })
    };
    assert!(run(1) == run(2));
}
