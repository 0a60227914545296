use c10::BFloat16;
use c10::ScalarType::{self, Double, Float};

use super::*;
use crate::test_tensor::{elements, kernel, layouts, set_elements, tensor, zeros};

type Sgd = fn(
    &[Tensor],
    &[Tensor],
    &[Tensor],
    f64,
    f64,
    f64,
    f64,
    bool,
    bool,
    bool,
    Option<&Tensor>,
    Option<&Tensor>,
) -> Result<()>;

/// Per dtype and setting (lr, momentum, dampening, weight decay; nesterov, maximize) an FNV-1a hash of the parameter
/// after four steps of PyTorch 2.13's `SGD(foreach=False)` on [`values`].
#[rustfmt::skip]
const RECORDED: &[(ScalarType, [f64; 4], bool, bool, u64)] = &[
    (Float, [0.1, 0.0, 0.0, 0.0], false, false, 0x2506bc6725cbe021),
    (Float, [0.1, 0.0, 0.0, 0.01], false, true, 0x642f4d1ce6c8b325),
    (Float, [0.1, 0.9, 0.0, 0.0], false, false, 0x8c50d811e4e10d08),
    (Float, [0.03, 0.9, 0.1, 0.013], false, false, 0x9b114951dd51e301),
    (Float, [0.03, 0.9, 0.0, 0.013], true, false, 0xd7f274fa4f5aa21b),
    (Float, [0.03, 0.7, 0.0, 0.013], true, true, 0xc0f6f4281b844275),
    (Double, [0.1, 0.0, 0.0, 0.0], false, false, 0xad2161b450bcb1f1),
    (Double, [0.1, 0.0, 0.0, 0.01], false, true, 0xa23d9da7d4a10732),
    (Double, [0.1, 0.9, 0.0, 0.0], false, false, 0xbaa29faaa22444b0),
    (Double, [0.03, 0.9, 0.1, 0.013], false, false, 0x143f269a48724d35),
    (Double, [0.03, 0.9, 0.0, 0.013], true, false, 0x47aa7f4c37603458),
    (Double, [0.03, 0.7, 0.0, 0.013], true, true, 0x362d46102b782da2),
];

const N: i64 = 37;

fn values<T: Element>(tensor: &Tensor, salt: i64, divisor: f64) {
    set_elements(tensor, |i| {
        let value = ((i * 37 + salt * 11) % 101) as f64 / 32.0 - 1.5;
        // As `values.to(dtype) / divisor` rounds.
        if T::SCALAR_TYPE == ScalarType::Float {
            T::from_f32(value as f32 / divisor as f32)
        } else {
            T::from_f64(value / divisor)
        }
    });
}

fn hash<T: Element>(tensor: &Tensor) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    for value in elements::<T>(tensor) {
        let bits = if T::SCALAR_TYPE == ScalarType::Float {
            value.to_f32().to_le_bytes().to_vec()
        } else {
            value.to_f64().to_le_bytes().to_vec()
        };
        for byte in bits {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    hash
}

fn steps<T: Element>(
    param: &Tensor,
    grad: &Tensor,
    [lr, momentum, dampening, decay]: [f64; 4],
    flags: (bool, bool),
) {
    let buffer = zeros(&[N], T::SCALAR_TYPE);
    values::<T>(param, 1, 3.0);
    for step in 0..4 {
        values::<T>(grad, step + 2, 7.0);
        kernel::<Sgd>("fused_sgd_kernel")(
            &[param.clone()],
            &[grad.clone()],
            &[buffer.clone()],
            decay,
            momentum,
            lr,
            dampening,
            flags.0,
            flags.1,
            step == 0,
            None,
            None,
        )
        .unwrap();
    }
}

#[test]
fn the_bits_of_the_optimizer_written_with_tensors() {
    for &(dtype, settings, nesterov, maximize, expected) in RECORDED {
        for (layout, param) in layouts(&[N], dtype).into_iter().filter(|(name, _)| *name != "expanded") {
            let grad = zeros(&[N], dtype);
            let got = if dtype == ScalarType::Float {
                steps::<f32>(&param, &grad, settings, (nesterov, maximize));
                hash::<f32>(&param)
            } else {
                steps::<f64>(&param, &grad, settings, (nesterov, maximize));
                hash::<f64>(&param)
            };
            assert_eq!(got, expected, "{dtype} {settings:?} {nesterov} {maximize} {layout}");
        }
    }
}

#[test]
fn halves_step_in_single_precision() {
    let param = tensor(&[2], &[BFloat16::from_f32(1.0), BFloat16::from_f32(-2.0)]);
    let grad = tensor(&[2], &[BFloat16::from_f32(0.5), BFloat16::from_f32(0.25)]);
    let call = kernel::<Sgd>("fused_sgd_kernel");
    call(&[param.clone()], &[grad], &[], 0.5, 0.0, 0.1, 0.0, false, false, true, None, None).unwrap();
    let expected = [1.0f32 - 0.1 * 1.0, -2.0 - 0.1 * -0.75].map(BFloat16::from_f32);
    assert_eq!(elements::<BFloat16>(&param), expected);
}

#[test]
fn scaled_gradients_are_unscaled_in_place_and_an_infinity_skips_the_step() {
    let (param, grad) = (tensor(&[2], &[1f32, 2.0]), tensor(&[2], &[8f32, -4.0]));
    let (scale, fine, bad) = (tensor(&[], &[4f32]), tensor(&[], &[0f32]), tensor(&[], &[1f32]));
    let call = kernel::<Sgd>("fused_sgd_kernel");
    let step = |found: &Tensor| {
        call(
            &[param.clone()],
            &[grad.clone()],
            &[],
            0.0,
            0.0,
            0.5,
            0.0,
            false,
            false,
            true,
            Some(&scale),
            Some(found),
        )
        .unwrap();
        (elements::<f32>(&param), elements::<f32>(&grad))
    };
    assert_eq!(step(&bad), (vec![1.0, 2.0], vec![8.0, -4.0]));
    assert_eq!(step(&fine), (vec![0.0, 2.5], vec![2.0, -1.0]));
}

#[test]
fn lists_of_different_lengths_are_refused() {
    let param = zeros(&[1], ScalarType::Float);
    let call = kernel::<Sgd>("fused_sgd_kernel");
    assert!(call(&[param], &[], &[], 0.0, 0.0, 0.5, 0.0, false, false, true, None, None).is_err());
}

#[test]
fn every_tensor_of_the_lists_is_stepped() {
    for momentum in [0.0, 0.5] {
        let params = [1f32, 2.0, 3.0].map(|value| tensor(&[1], &[value]));
        let grads = [1f32, 1.0, 2.0].map(|value| tensor(&[1], &[value]));
        let buffers = [(); 3].map(|()| zeros(&[1], Float));
        let call = kernel::<Sgd>("fused_sgd_kernel");
        call(&params, &grads, &buffers, 0.0, momentum, 0.5, 0.0, false, false, true, None, None).unwrap();
        assert_eq!(params.map(|param| elements::<f32>(&param)[0]), [0.5, 1.5, 2.0]);
    }
}
