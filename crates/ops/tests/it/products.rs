//! Matrix products, convolution, losses and normalization against hand-computed values.

use c10::{Result, Scalar, ScalarType, SymInt};
use ops::{at, sym};

use crate::{assert_close, floats, longs, start, tensor};

#[test]
fn products_of_matrices_and_vectors() -> Result<()> {
    let _guard = start()?;
    let a = tensor(&[1.0, 2.0, 3.0, 4.0], &[2, 2], ScalarType::Float)?;
    let v = floats(&[1.0, -1.0])?;
    assert_close(&at::matmul(&a, &v)?, &[-1.0, -1.0])?;
    assert_close(&at::matmul(&v, &a)?, &[-2.0, -2.0])?;
    assert_close(&at::dot(&v, &v)?, &[2.0])?;
    assert_close(&at::linear(&a, &a, Some(&v))?, &[6.0, 10.0, 12.0, 24.0])?;
    let batch = at::stack(&[a.clone(), a.clone()], 0)?;
    assert_close(&at::matmul(&batch, &a)?, &[7.0, 10.0, 15.0, 22.0, 7.0, 10.0, 15.0, 22.0])?;
    assert_close(&at::matmul(&a, &batch)?, &[7.0, 10.0, 15.0, 22.0, 7.0, 10.0, 15.0, 22.0])?;
    let poisoned = tensor(&[f64::NAN; 4], &[2, 2], ScalarType::Float)?;
    assert_close(&at::addmm(&poisoned, &a, &a, &Scalar::Int(0), &Scalar::Int(1))?, &[7.0, 10.0, 15.0, 22.0])
}

#[test]
fn convolution_and_its_gradients() -> Result<()> {
    let _guard = start()?;
    let ints = |v: i64| vec![SymInt::from(v), SymInt::from(v)];
    let input = tensor(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0], &[1, 1, 3, 3], ScalarType::Float)?;
    let weight = tensor(&[1.0, 0.0, 0.0, -1.0], &[1, 1, 2, 2], ScalarType::Float)?;
    let one = SymInt::from(1_i64);
    let bias = floats(&[0.5])?;
    let out = at::conv2d(&input, &weight, Some(&bias), &ints(1), &ints(0), &ints(1), &one)?;
    assert_close(&out, &[-3.5, -3.5, -3.5, -3.5])?;
    let grad = at::ones_like(&out, None, None, None, None, None)?;
    let (stride, zero) = (ints(1), ints(0));
    let (grad_input, grad_weight, grad_bias) = at::convolution_backward(
        &grad,
        &input,
        &weight,
        Some(std::slice::from_ref(&one)),
        &stride,
        &zero,
        &stride,
        false,
        &zero,
        &one,
        &[true, true, true],
    )?;
    assert_close(&grad_input.unwrap(), &[1.0, 1.0, 0.0, 1.0, 0.0, -1.0, 0.0, -1.0, -1.0])?;
    assert_close(&grad_weight.unwrap(), &[12.0, 16.0, 24.0, 28.0])?;
    assert_close(&grad_bias.unwrap(), &[4.0])?;
    let pooled = at::max_pool2d(&input, &[2], &[], &[0], &[1], true)?;
    assert_close(&pooled, &[5.0, 6.0, 8.0, 9.0])
}

#[test]
fn cross_entropy_in_all_its_forms() -> Result<()> {
    let _guard = start()?;
    let logits = tensor(&[0.0, 0.0, 0.0, 1.0_f64.exp().ln()], &[2, 2], ScalarType::Float)?;
    let target = longs(&[0, 1])?;
    let ignore = SymInt::from(-100_i64);
    let (first, second) = (2.0_f64.ln(), (1.0 + (-1.0_f64).exp()).ln());
    let loss =
        |reduction, smoothing| at::cross_entropy_loss(&logits, &target, None, reduction, &ignore, smoothing);
    assert_close(&loss(0, 0.0)?, &[first, second])?;
    assert_close(&loss(1, 0.0)?, &[(first + second) / 2.0])?;
    assert_close(&loss(2, 0.0)?, &[first + second])?;
    let other = second + 1.0;
    let smooth = (0.9 * first + 0.1 * first) + (0.9 * second + 0.05 * (second + other));
    assert_close(&loss(2, 0.1)?, &[smooth])?;
    let probabilities = tensor(&[1.0, 0.0, 0.0, 1.0], &[2, 2], ScalarType::Float)?;
    assert_close(
        &at::cross_entropy_loss(&logits, &probabilities, None, 2, &ignore, 0.0)?,
        &[first + second],
    )?;
    assert!(at::cross_entropy_loss(&logits, &longs(&[0, 2])?, None, 1, &ignore, 0.0).is_err());
    Ok(())
}

#[test]
fn layer_norm_and_softmax() -> Result<()> {
    let _guard = start()?;
    let a = tensor(&[1.0, 3.0, -2.0, 2.0], &[2, 2], ScalarType::Float)?;
    let shape = sym::sym_ints(&[2]);
    assert_close(&at::layer_norm(&a, &shape, None, None, 0.0, true)?, &[-1.0, 1.0, -1.0, 1.0])?;
    let weight = floats(&[2.0, 1.0])?;
    let normed = at::layer_norm(&a, &shape, Some(&weight), Some(&floats(&[0.0, 5.0])?), 0.0, true)?;
    assert_close(&normed, &[-2.0, 6.0, -2.0, 6.0])?;
    let half = at::softmax_int(&tensor(&[0.0, 0.0], &[1, 2], ScalarType::Float)?, 1, None)?;
    assert_close(&half, &[0.5, 0.5])?;
    assert_close(&at::log_softmax_int(&a, 0, None)?, &[-0.0485873, -0.3132617, -3.0485873, -1.3132617])
}
