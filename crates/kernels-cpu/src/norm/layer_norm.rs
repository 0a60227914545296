//! `native_layer_norm`.

use c10::{try_collect, try_filled, BFloat16, Element, Half, Result, Tensor};
use half::slice::HalfFloatSliceExt;
use iter::parallel::{parallel_for_result, GRAIN_SIZE};

use crate::address::Address;
use crate::dense::{deliver, dense, writable};
use crate::dispatch::dispatch;
use crate::map::Stored;
use crate::registration::register;
use crate::vec::math::Arith;
use crate::vec::tiered;

pub(super) fn register() {
    register! {
        layer_norm_kernel: fn(&Tensor, &[i64], Option<&Tensor>, Option<&Tensor>, f64, &[Tensor]);
    }
}

/// What a row is computed in: itself, or f32 for halves.
trait Normalized: Stored<Raw = Self> {
    type Compute: Real;
    type Centring: Centring;
    const CENTRING: Self::Centring;
    fn widen_slice(from: &[Self], to: &mut [Self::Compute]);
    fn narrow_slice(from: &[Self::Compute], to: &mut [Self]);
}

/// Real arithmetic.
trait Real: Stored<Raw = Self> + PartialOrd {
    fn plus(self, b: Self) -> Self;
    fn minus(self, b: Self) -> Self;
    fn mul_add<A: Arith>(self, b: Self, c: Self) -> Self;
    fn times(self, b: Self) -> Self;
    fn inverse_sqrt(self) -> Self;
}

macro_rules! real {
    ($($T:ty, $fma:ident;)*) => {$(
        impl Real for $T {
            #[inline(always)]
            fn plus(self, b: $T) -> $T { self + b }
            #[inline(always)]
            fn minus(self, b: $T) -> $T { self - b }
            #[inline(always)]
            fn mul_add<A: Arith>(self, b: $T, c: $T) -> $T { A::$fma(self, b, c) }
            #[inline(always)]
            fn times(self, b: $T) -> $T { self * b }
            #[inline(always)]
            fn inverse_sqrt(self) -> $T { 1.0 / self.sqrt() }
        }
        impl Normalized for $T {
            type Compute = $T;
            type Centring = Subtracted;
            const CENTRING: Subtracted = Subtracted;
            fn widen_slice(from: &[$T], to: &mut [$T]) { to.copy_from_slice(from); }
            fn narrow_slice(from: &[$T], to: &mut [$T]) { to.copy_from_slice(from); }
        }
    )*};
}

real! {
    f32, fma32;
    f64, fma64;
}

/// How a row is shifted and scaled. PyTorch has one way for floats and another for halves, and for a row of equal
/// elements, whose deviation is near zero, they round visibly differently.
trait Centring: Copy {
    /// What `apply` takes.
    fn shift<S: Real>(mean: S, rstd: S) -> S;
    fn apply<S: Real, A: Arith>(x: S, shift: S, rstd: S) -> S;
}

/// `(x - mean) · rstd`
#[derive(Clone, Copy)]
struct Subtracted;

impl Centring for Subtracted {
    #[inline(always)]
    fn shift<S: Real>(mean: S, _: S) -> S {
        mean
    }
    #[inline(always)]
    fn apply<S: Real, A: Arith>(x: S, shift: S, rstd: S) -> S {
        x.minus(shift).times(rstd)
    }
}

/// `x · rstd - mean · rstd`
#[derive(Clone, Copy)]
struct Fused;

impl Centring for Fused {
    #[inline(always)]
    fn shift<S: Real>(mean: S, rstd: S) -> S {
        <S as Element>::ZERO.minus(mean.times(rstd))
    }
    #[inline(always)]
    fn apply<S: Real, A: Arith>(x: S, shift: S, rstd: S) -> S {
        x.mul_add::<A>(rstd, shift)
    }
}

macro_rules! half {
    ($($T:ty),*) => {$(
        impl Normalized for $T {
            type Compute = f32;
            type Centring = Fused;
            const CENTRING: Fused = Fused;
            fn widen_slice(from: &[$T], to: &mut [f32]) { from.convert_to_f32_slice(to); }
            fn narrow_slice(from: &[f32], to: &mut [$T]) { to.convert_from_f32_slice(from); }
        }
    )*};
}

half!(Half, BFloat16);

/// Weight and bias.
type Parameters<'a, S> = (Option<&'a [S]>, Option<&'a [S]>);

const LANES: usize = 32;

tiered! {
    /// The mean of a row and the sum of squared deviations from it: two passes over a row in cache, which lose no
    /// digits to cancellation; each pass keeps 32 interleaved sums.
    fn moments<S>(row: &[S], inverse_n: S) -> (S, S) where { S: Real } => A {
        let zero = <S as Element>::ZERO;
        let mut sums = [zero; LANES];
        let chunks = row.chunks_exact(LANES);
        let rest = chunks.remainder();
        for chunk in chunks {
            for i in 0..LANES {
                sums[i] = sums[i].plus(chunk[i]);
            }
        }
        for (sum, &x) in sums.iter_mut().zip(rest) {
            *sum = sum.plus(x);
        }
        let mean = fold(&mut sums).times(inverse_n);
        let mut squares = [zero; LANES];
        for chunk in row.chunks_exact(LANES) {
            for i in 0..LANES {
                let d = chunk[i].minus(mean);
                squares[i] = d.mul_add::<A>(d, squares[i]);
            }
        }
        for (sum, &x) in squares.iter_mut().zip(rest) {
            let d = x.minus(mean);
            *sum = d.mul_add::<A>(d, *sum);
        }
        (mean, fold(&mut squares))
    }
    /// `out = (row - mean) · rstd · weight + bias`.
    fn normalize<S, C>(out: &mut [S], row: &[S], mean: S, rstd: S, parameters: Parameters<'_, S>, _centring: C)
    where { S: Real, C: Centring } => A {
        let shift = C::shift(mean, rstd);
        let (weight, bias) = parameters;
        match (weight, bias) {
            (Some(weight), Some(bias)) => {
                for (((out, &x), &w), &b) in out.iter_mut().zip(row).zip(weight).zip(bias) {
                    *out = C::apply::<S, A>(x, shift, rstd).mul_add::<A>(w, b);
                }
            }
            (Some(weight), None) => {
                for ((out, &x), &w) in out.iter_mut().zip(row).zip(weight) {
                    *out = C::apply::<S, A>(x, shift, rstd).times(w);
                }
            }
            (None, Some(bias)) => {
                for ((out, &x), &b) in out.iter_mut().zip(row).zip(bias) {
                    *out = C::apply::<S, A>(x, shift, rstd).plus(b);
                }
            }
            (None, None) => {
                for (out, &x) in out.iter_mut().zip(row) {
                    *out = C::apply::<S, A>(x, shift, rstd);
                }
            }
        }
    }
}

#[inline(always)]
fn fold<S: Real>(sums: &mut [S; LANES]) -> S {
    let mut width = LANES / 2;
    while width > 0 {
        for i in 0..width {
            sums[i] = sums[i].plus(sums[i + width]);
        }
        width /= 2;
    }
    sums[0]
}

/// A parameter in the type that rows are computed in.
fn widened<T: Normalized>(parameter: Option<&Tensor>, n: usize) -> Result<Option<Vec<T::Compute>>> {
    let Some(parameter) = parameter else { return Ok(None) };
    let wanted = <T::Compute as Element>::SCALAR_TYPE;
    let parameter =
        if parameter.dtype() == wanted { parameter.clone() } else { iter::to_dtype(parameter, wanted)? };
    let parameter = dense(&parameter)?;
    // SAFETY: a contiguous tensor of the normalized shape, of this dtype.
    let values = unsafe { Address(parameter.data_ptr()).slice::<T::Compute>(n) };
    try_collect(values.iter().copied()).map(Some)
}

/// `outs`: the result in the input's dtype, and mean and reciprocal standard deviation per row.
fn layer_norm_kernel(
    input: &Tensor,
    normalized_shape: &[i64],
    weight: Option<&Tensor>,
    bias: Option<&Tensor>,
    eps: f64,
    outs: &[Tensor],
) -> Result<()> {
    let n = normalized_shape.iter().product::<i64>() as usize;
    let rows =
        (input.numel()? as usize).checked_div(n).map_or_else(|| outs[1].numel().map(|n| n as usize), Ok)?;
    dispatch!(input.dtype(), "LayerNormKernelImpl", FLOATING_AND_HALF, |T| {
        let (weight, bias) = (widened::<T>(weight, n)?, widened::<T>(bias, n)?);
        // Outputs of any strides, and statistics of any dtype, by way of contiguous ones.
        let compute = <<T as Normalized>::Compute as Element>::SCALAR_TYPE;
        let input = dense(input)?;
        let out = writable(&outs[0], input.dtype())?;
        let (mean, rstd) = (writable(&outs[1], compute)?, writable(&outs[2], compute)?);
        let parameters = (weight.as_deref(), bias.as_deref());
        normalize_rows::<T>(&input, [&out, &mean, &rstd], rows, n, parameters, eps)?;
        deliver(outs, &[&out, &mean, &rstd])
    })
}

fn normalize_rows<T: Normalized>(
    input: &Tensor,
    [out, mean, rstd]: [&Tensor; 3],
    rows: usize,
    n: usize,
    parameters: Parameters<'_, T::Compute>,
    eps: f64,
) -> Result<()> {
    let [input, out, mean, rstd] = [input, out, mean, rstd].map(|t| Address(t.data_ptr()));
    let (size, compute_size) = (std::mem::size_of::<T>() as i64, std::mem::size_of::<T::Compute>() as i64);
    let inverse_n = T::Compute::from_f64(1.0 / n as f64);
    let eps = T::Compute::from_f64(eps);
    let narrow = T::SCALAR_TYPE != T::Compute::SCALAR_TYPE;
    parallel_for_result(0, rows, (GRAIN_SIZE / 4 / n.max(1)).max(1), &|begin, end| {
        let zero = T::Compute::ZERO;
        let mut wide = try_filled(zero, if narrow { 2 * n } else { 0 })?;
        for row in begin..end {
            let at = row as i64;
            // SAFETY: row `row` of contiguous tensors of `rows` rows of `n` elements; each row belongs to one piece.
            let (x, y) = unsafe {
                (
                    input.offset(at * n as i64 * size).slice::<T>(n),
                    out.offset(at * n as i64 * size).slice_mut::<T>(n),
                )
            };
            let (average, deviation) = if narrow {
                let (x_wide, y_wide) = wide.split_at_mut(n);
                T::widen_slice(x, x_wide);
                let statistics = row_of(y_wide, x_wide, inverse_n, eps, parameters, T::CENTRING);
                T::narrow_slice(y_wide, y);
                statistics
            } else {
                // SAFETY: `T` is `T::Compute`.
                let (x, y) = unsafe {
                    (
                        std::slice::from_raw_parts(x.as_ptr().cast::<T::Compute>(), n),
                        std::slice::from_raw_parts_mut(y.as_mut_ptr().cast::<T::Compute>(), n),
                    )
                };
                row_of(y, x, inverse_n, eps, parameters, T::CENTRING)
            };
            // SAFETY: element `row` of contiguous tensors with one element per row.
            unsafe {
                mean.offset(at * compute_size).write(average);
                rstd.offset(at * compute_size).write(deviation);
            }
        }
        Ok(())
    })
}

/// One row; returns its mean and reciprocal standard deviation.
fn row_of<S: Real, C: Centring>(
    out: &mut [S],
    row: &[S],
    inverse_n: S,
    eps: S,
    parameters: Parameters<'_, S>,
    centring: C,
) -> (S, S) {
    let (mean, squares) = moments(row, inverse_n);
    let rstd = squares.times(inverse_n).plus(eps).inverse_sqrt();
    normalize(out, row, mean, rstd, parameters, centring);
    (mean, rstd)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_tensor::{elements, kernel, layouts, set_elements, zeros};
    use c10::ScalarType;

    type F = fn(&Tensor, &[i64], Option<&Tensor>, Option<&Tensor>, f64, &[Tensor]) -> Result<()>;

    fn check<T: Element>(compute: ScalarType, tolerance: f64) {
        for n in [1i64, 5, 64, 257] {
            for (layout, input) in layouts(&[3, 2, n], T::SCALAR_TYPE) {
                set_elements(&input, |i| T::from_f64(((i * 37 % 101) as f64) / 16.0 + 3.0));
                let (weight, bias) = (zeros(&[n], T::SCALAR_TYPE), zeros(&[n], T::SCALAR_TYPE));
                set_elements(&weight, |i| T::from_f64(1.0 + (i % 3) as f64 / 4.0));
                set_elements(&bias, |i| T::from_f64((i % 5) as f64 / 8.0));
                let outs = [
                    zeros(&[3, 2, n], T::SCALAR_TYPE),
                    zeros(&[3, 2, 1], compute),
                    zeros(&[3, 2, 1], compute),
                ];
                kernel::<F>("layer_norm_kernel")(&input, &[n], Some(&weight), Some(&bias), 1e-5, &outs)
                    .unwrap();
                let x: Vec<f64> = elements::<T>(&input).iter().map(|x| x.to_f64()).collect();
                let y: Vec<f64> = elements::<T>(&outs[0]).iter().map(|x| x.to_f64()).collect();
                for (row, y) in x.chunks(n as usize).zip(y.chunks(n as usize)) {
                    let mean = row.iter().sum::<f64>() / n as f64;
                    let variance = row.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n as f64;
                    for (i, (x, y)) in row.iter().zip(y).enumerate() {
                        let weight = 1.0 + (i % 3) as f64 / 4.0;
                        let expected = (x - mean) / (variance + 1e-5).sqrt() * weight + (i % 5) as f64 / 8.0;
                        assert!(
                            (y - expected).abs() <= tolerance * (1.0 + expected.abs()),
                            "{layout} {y} {expected}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn rows_are_normalized_in_every_layout() {
        check::<f32>(ScalarType::Float, 2e-5);
        check::<f64>(ScalarType::Double, 1e-12);
        check::<Half>(ScalarType::Float, 2e-3);
        check::<BFloat16>(ScalarType::Float, 1e-2);
    }

    #[test]
    fn halves_keep_what_the_product_with_the_mean_rounds() {
        // The value is PyTorch's: the exact x·rstd less mean·rstd in float32.
        let input = crate::test_tensor::tensor(&[1], &[Half::from_f32(-8.4765625)]);
        let outs =
            [zeros(&[1], ScalarType::Half), zeros(&[1], ScalarType::Half), zeros(&[1], ScalarType::Half)];
        kernel::<F>("layer_norm_kernel")(&input, &[1], None, None, 1e-5, &outs).unwrap();
        if crate::vec::capability() != crate::vec::CpuCapability::Default {
            assert_eq!(elements::<Half>(&outs[0])[0].to_f64(), 8.96453857421875e-05);
        }
        assert_eq!(elements::<Half>(&outs[1])[0].to_f64(), -8.4765625);
        assert_eq!(elements::<Half>(&outs[2])[0].to_f64(), 316.25);
    }

    #[test]
    fn statistics_are_the_rows() {
        let input = crate::test_tensor::tensor(&[2, 2], &[1f32, 3.0, 5.0, 5.0]);
        let outs = [
            zeros(&[2, 2], ScalarType::Float),
            zeros(&[2, 1], ScalarType::Float),
            zeros(&[2, 1], ScalarType::Float),
        ];
        kernel::<F>("layer_norm_kernel")(&input, &[2], None, None, 0.0, &outs).unwrap();
        assert_eq!(elements::<f32>(&outs[1]), [2.0, 5.0]);
        assert_eq!(elements::<f32>(&outs[2]), [1.0, f32::INFINITY]);
        assert_eq!(elements::<f32>(&outs[0])[..2], [-1.0, 1.0]);
    }
}
