//! `mm`, `addmm`.

use c10::{Element, Result, Scalar, Tensor};

use super::element::LinalgElement;
use super::gemm::gemm;
use super::matrix::Matrix;
use crate::dispatch::dispatch;
use crate::registration::register;

pub(super) fn register() {
    register! {
        mm_kernel: fn(&Tensor, &Tensor, &[Tensor]);
        addmm_kernel: fn(&Tensor, &Tensor, &Scalar, &Scalar, &[Tensor]);
    }
}

fn mm_kernel(a: &Tensor, b: &Tensor, outs: &[Tensor]) -> Result<()> {
    dispatch!(outs[0].dtype(), "addmm_impl_cpu_", ALL_AND_COMPLEX + HALF, |T| {
        let one = <<T as LinalgElement>::Sum as Element>::ONE;
        gemm::<T>(one, Matrix::of(a)?, Matrix::of(b)?, None, Matrix::of(&outs[0])?)
    })
}

/// The factor of the output: none if it is zero, which does not read it.
pub(super) fn factor<S: Element>(beta: &Scalar) -> Result<Option<S>> {
    let beta = beta.to::<S>()?;
    Ok((beta != S::ZERO).then_some(beta))
}

/// `outs[0]` holds `self`, broadcast.
fn addmm_kernel(a: &Tensor, b: &Tensor, beta: &Scalar, alpha: &Scalar, outs: &[Tensor]) -> Result<()> {
    dispatch!(outs[0].dtype(), "addmm_impl_cpu_", ALL_AND_COMPLEX + HALF, |T| {
        let alpha = alpha.to::<<T as LinalgElement>::Sum>()?;
        gemm::<T>(alpha, Matrix::of(a)?, Matrix::of(b)?, factor(beta)?, Matrix::of(&outs[0])?)
    })
}
