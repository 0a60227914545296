//! `softmax` and `log_softmax`, and their derivatives.
//!
//! Along the last dimension a row at a time, along another one a block of columns at a time, in a scratch buffer of
//! the compute type that stays in cache: memory is read once and written once.

mod backward;
mod columns;
mod forward;
mod rows;

use c10::{internal_assert, wrap_dim, BFloat16, Element, Half, Result, ScalarType, Tensor};
use iter::{empty, parallel, to_dtype};

use crate::map::Stored;
use crate::narrow::{round_bfloat16, round_half, widen_bfloat16, widen_half};
use crate::reduce::accumulate::Accumulated;
use crate::reduce::extremum::Ordered;
use crate::vec::math::{exp, Arith};

pub(super) fn register() {
    forward::register();
    backward::register();
}

/// float32 or float64.
pub(super) trait Real:
    Element
    + Stored<Raw = Self>
    + Ordered<Key = Self>
    + Accumulated<Total = f64>
    + PartialOrd
    + std::ops::Add<Output = Self>
    + std::ops::Sub<Output = Self>
    + std::ops::Mul<Output = Self>
{
    fn exp<A: Arith>(self) -> Self;
    fn ln(self) -> Self;
    fn recip(self) -> Self;
    fn to_double(self) -> f64;
    fn from_double(value: f64) -> Self;
}

macro_rules! real {
    ($T:ident) => {
        impl Real for $T {
            #[inline(always)]
            fn exp<A: Arith>(self) -> $T {
                exp::<A, $T>(self)
            }
            #[inline(always)]
            fn ln(self) -> $T {
                $T::ln(self)
            }
            #[inline(always)]
            fn recip(self) -> $T {
                1.0 / self
            }
            #[inline(always)]
            fn to_double(self) -> f64 {
                f64::from(self)
            }
            #[inline(always)]
            fn from_double(value: f64) -> $T {
                value as $T
            }
        }
    };
}

real!(f32);
real!(f64);

/// A dtype that has a softmax, and the type it is computed in.
pub(super) trait Floating: Stored<Raw = Self> {
    type Compute: Real;
    fn lift(self) -> Self::Compute;
    fn lower(value: Self::Compute) -> Self;
}

macro_rules! floating {
    ($($T:ident: $Compute:ident, $lift:expr, $lower:expr);* $(;)?) => {$(
        impl Floating for $T {
            type Compute = $Compute;
            #[inline(always)]
            fn lift(self) -> $Compute {
                ($lift)(self)
            }
            #[inline(always)]
            fn lower(value: $Compute) -> $T {
                ($lower)(value)
            }
        }
    )*};
}

floating! {
    f32: f32, |x: f32| x, |x: f32| x;
    f64: f64, |x: f64| x, |x: f64| x;
    Half: f32, widen_half, round_half;
    BFloat16: f32, widen_bfloat16, round_bfloat16;
}

/// Elements of cheap work per piece; an exponential costs several.
const GRAIN: usize = parallel::GRAIN_SIZE / 4;

/// A dense tensor seen as `outer × n × inner`, the middle one being the dimension of the softmax.
#[derive(Clone, Copy)]
pub(super) struct Extent {
    outer: usize,
    n: usize,
    inner: usize,
}

impl Extent {
    fn new(tensor: &Tensor, dim: i64) -> Result<Extent> {
        let dim = wrap_dim(dim, tensor.dim(), true)? as usize;
        let sizes = tensor.sizes()?;
        let product = |sizes: &[i64]| sizes.iter().product::<i64>() as usize;
        if sizes.is_empty() {
            return Ok(Extent { outer: 1, n: 1, inner: 1 });
        }
        Ok(Extent {
            outer: product(&sizes[..dim]),
            n: sizes[dim] as usize,
            inner: product(&sizes[dim + 1..]),
        })
    }

    fn numel(self) -> usize {
        self.outer * self.n * self.inner
    }

    /// Columns that are computed together: their scratch buffer stays near the first cache level.
    fn block(self) -> usize {
        (16384 / self.n.max(1)).clamp(16, 256) / 16 * 16
    }
}

/// The tensor in row-major order and a dtype: itself, or a copy.
fn dense(tensor: &Tensor, dtype: ScalarType) -> Result<Tensor> {
    let tensor = to_dtype(tensor, dtype)?;
    if tensor.is_contiguous() {
        return Ok(tensor);
    }
    let copy = empty(tensor.sizes()?, &tensor.options())?;
    iter::copy_into(&copy, &tensor, false)?;
    Ok(copy)
}

/// The output, or a dense stand-in for it.
fn dense_output(outs: &[Tensor]) -> Result<Tensor> {
    let Some(out) = outs.first() else { c10::bail!(Internal, "softmax: no output") };
    internal_assert!(!out.sizes()?.contains(&0), "softmax: an empty output");
    if out.is_contiguous() {
        return Ok(out.clone());
    }
    empty(out.sizes()?, &out.options())
}

/// Copies the stand-in, if there was one, to the output.
fn finish(outs: &[Tensor], written: &Tensor) -> Result<()> {
    match outs.first() {
        Some(out) if !out.is_same(written) => iter::copy_into(out, written, false),
        _ => Ok(()),
    }
}
