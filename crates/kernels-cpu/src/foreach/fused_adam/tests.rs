use c10::{BFloat16, ScalarType};

use super::*;
use crate::test_tensor::{elements, kernel, layouts, set_elements, tensor, zeros};

type Call = fn(
    &[Tensor],
    &[Tensor],
    &[Tensor],
    &[Tensor],
    &[Tensor],
    &[Tensor],
    f64,
    f64,
    f64,
    f64,
    f64,
    bool,
    bool,
    Option<&Tensor>,
    Option<&Tensor>,
) -> Result<()>;

/// One element's step, as Kingma and Ba write it.
struct Reference {
    param: f64,
    moments: [f64; 3],
}

impl Reference {
    fn step(&mut self, t: i32, mut grad: f64, decay: f64, decoupled: bool, amsgrad: bool, maximize: bool) {
        const LR: f64 = 0.1;
        if maximize {
            grad = -grad;
        }
        if decoupled {
            self.param *= 1.0 - LR * decay;
        } else {
            grad += decay * self.param;
        }
        let [m, v, largest] = &mut self.moments;
        *m = 0.9 * *m + 0.1 * grad;
        *v = 0.99 * *v + 0.01 * grad * grad;
        *largest = largest.max(*v);
        let v = if amsgrad { *largest } else { *v };
        let (m, v) = (*m / (1.0 - 0.9f64.powi(t)), v / (1.0 - 0.99f64.powi(t)));
        self.param -= LR * m / (v.sqrt() + 1e-8);
    }
}

fn grad(step: i32, i: i64) -> f64 {
    ((i64::from(step) * 37 + i * 11) % 17) as f64 / 8.0 - 1.0
}

#[test]
fn steps_follow_the_formula_in_every_layout() {
    const N: i64 = 37;
    for (name, decoupled) in [("fused_adam_kernel", false), ("fused_adamw_kernel", true)] {
        for bits in 0..8 {
            let [amsgrad, maximize, decays] = [0, 1, 2].map(|bit| bits >> bit & 1 == 1);
            let decay = if decays { 0.1 } else { 0.0 };
            for (layout, param) in layouts(&[N], ScalarType::Double) {
                if layout == "expanded" {
                    continue;
                }
                set_elements(&param, |i| i as f64 / 16.0);
                let [grads, first, second, largest] = [(); 4].map(|()| zeros(&[N], ScalarType::Double));
                let mut expected: Vec<Reference> =
                    (0..N).map(|i| Reference { param: i as f64 / 16.0, moments: [0.0; 3] }).collect();
                for t in 1..5 {
                    set_elements(&grads, |i| grad(t, i));
                    kernel::<Call>(name)(
                        std::slice::from_ref(&param),
                        std::slice::from_ref(&grads),
                        std::slice::from_ref(&first),
                        std::slice::from_ref(&second),
                        std::slice::from_ref(&largest),
                        &[tensor(&[], &[t as f32])],
                        0.1,
                        0.9,
                        0.99,
                        decay,
                        1e-8,
                        amsgrad,
                        maximize,
                        None,
                        None,
                    )
                    .unwrap();
                    for (i, element) in expected.iter_mut().enumerate() {
                        element.step(t, grad(t, i as i64), decay, decoupled, amsgrad, maximize);
                    }
                }
                for (got, expected) in elements::<f64>(&param).into_iter().zip(expected) {
                    assert!((got - expected.param).abs() < 1e-12, "{name} {bits} {layout}");
                }
            }
        }
    }
}

#[test]
fn halves_keep_their_states_in_their_own_dtype() {
    let one = |value| tensor(&[1], &[BFloat16::from_f32(value)]);
    let (param, grads, first, second) = (one(1.0), one(0.5), one(0.0), one(0.0));
    kernel::<Call>("fused_adam_kernel")(
        std::slice::from_ref(&param),
        &[grads],
        std::slice::from_ref(&first),
        std::slice::from_ref(&second),
        &[],
        &[tensor(&[], &[1f64])],
        0.25,
        0.5,
        0.75,
        0.0,
        0.0,
        false,
        false,
        None,
        None,
    )
    .unwrap();
    assert_eq!(elements::<BFloat16>(&first), [BFloat16::from_f32(0.25)]);
    assert_eq!(elements::<BFloat16>(&second), [BFloat16::from_f32(0.0625)]);
    assert_eq!(elements::<BFloat16>(&param), [BFloat16::from_f32(0.75)]);
}

#[test]
fn operands_that_do_not_fit_are_refused() {
    let t = |n| zeros(&[n], ScalarType::Float);
    let call = |grads: &[Tensor], seconds: &[Tensor], steps: &[Tensor]| {
        kernel::<Call>("fused_adam_kernel")(
            &[t(2)],
            grads,
            &[t(2)],
            seconds,
            &[],
            steps,
            0.1,
            0.9,
            0.99,
            0.0,
            1e-8,
            false,
            false,
            None,
            None,
        )
    };
    let step = tensor(&[], &[1f32]);
    assert!(call(&[t(2)], &[t(2)], &[step.clone()]).is_ok());
    assert!(call(&[], &[t(2)], &[step.clone()]).is_err());
    assert!(call(&[t(2)], &[t(3)], &[step.clone()]).is_err());
    assert!(call(&[t(2)], &[zeros(&[2], ScalarType::Double)], &[step]).is_err());
    assert!(call(&[t(2)], &[t(2)], &[tensor(&[], &[1i64])]).is_err());
    assert!(call(&[t(2)], &[t(2)], &[tensor(&[2], &[1f32, 1.0])]).is_err());
}
