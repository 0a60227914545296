use c10::ScalarType;

use super::*;
use crate::test_tensor::{elements, kernel, tensor, zeros};

type Call = fn(
    &[Tensor],
    &[Tensor],
    &[Tensor],
    &[Tensor],
    f64,
    f64,
    f64,
    f64,
    bool,
    Option<&Tensor>,
    Option<&Tensor>,
) -> Result<()>;

#[test]
fn steps_follow_the_formula_and_the_scaler() {
    let (param, sum) = (tensor(&[2], &[1f64, -2.0]), zeros(&[2], ScalarType::Double));
    let (mut expected, mut sums) = ([1.0, -2.0], [0.0; 2]);
    let (scale, found) = (tensor(&[], &[4f32]), tensor(&[], &[1f32]));
    let call = |grad: &Tensor, t: f32, found: Option<&Tensor>| {
        kernel::<Call>("fused_adagrad_kernel")(
            std::slice::from_ref(&param),
            std::slice::from_ref(grad),
            std::slice::from_ref(&sum),
            &[tensor(&[], &[t])],
            0.1,
            0.5,
            0.01,
            1e-10,
            true,
            Some(&scale),
            found,
        )
        .unwrap();
    };
    for t in 1..4 {
        let grads = [f64::from(t), -0.5];
        let grad = tensor(&[2], &grads.map(|g| g * 4.0));
        call(&grad, t as f32, Some(&found));
        assert_eq!(elements::<f64>(&grad), grads.map(|g| g * 4.0));
        call(&grad, t as f32, None);
        assert_eq!(elements::<f64>(&grad), grads);
        for i in 0..2 {
            let g = -grads[i] + 0.01 * expected[i];
            sums[i] += g * g;
            expected[i] -= 0.1 / (1.0 + f64::from(t - 1) * 0.5) * g / (f64::sqrt(sums[i]) + 1e-10);
        }
    }
    for (got, expected) in elements::<f64>(&param).into_iter().zip(expected) {
        assert!((got - expected).abs() < 1e-14);
    }
}
