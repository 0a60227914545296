//! What a step does with one row: gates and states, and their gradients.

use crate::vec::math::{sigmoid, tanh, Real, Tables};
use crate::vec::tiered;

/// A slice of `4 n` elements as four.
#[inline(always)]
fn quarters<T>(all: &[T], n: usize) -> [&[T]; 4] {
    [&all[..n], &all[n..2 * n], &all[2 * n..3 * n], &all[3 * n..4 * n]]
}

/// As [`quarters`], to write to.
#[inline(always)]
fn quarters_mut<T>(all: &mut [T], n: usize) -> [&mut [T]; 4] {
    let (ab, cd) = all[..4 * n].split_at_mut(2 * n);
    let ((a, b), (c, d)) = (ab.split_at_mut(n), cd.split_at_mut(n));
    [a, b, c, d]
}

tiered! {
    /// `h = tanh(x + g)`
    pub(super) fn tanh_step<T>(x: &[T], g: &[T], h: &mut [T]) where { T: Real + Tables } => A {
        for ((h, &x), &g) in h.iter_mut().zip(x).zip(g) {
            *h = tanh::<A, T>(x + g);
        }
    }
    /// `h = relu(x + g)`, of NaN NaN.
    pub(super) fn relu_step<T>(x: &[T], g: &[T], h: &mut [T]) where { T: Real + Tables } => A {
        let _ = std::marker::PhantomData::<A>;
        for ((h, &x), &g) in h.iter_mut().zip(x).zip(g) {
            let sum = x + g;
            *h = if sum < T::of(0.0) { T::of(0.0) } else { sum };
        }
    }
    /// The gates input, forget, cell, output; kept are their activations.
    pub(super) fn lstm_step<T>(x: &[T], g: &[T], before: &[T], kept: &mut [T], cell: &mut [T], h: &mut [T])
    where { T: Real + Tables } => A {
        let n = h.len();
        let ([xi, xf, xg, xo], [gi, gf, gg, go]) = (quarters(x, n), quarters(g, n));
        let [ki, kf, kg, ko] = quarters_mut(kept, n);
        let (before, cell) = (&before[..n], &mut cell[..n]);
        for j in 0..n {
            let i = sigmoid::<A, T>(xi[j] + gi[j]);
            let f = sigmoid::<A, T>(xf[j] + gf[j]);
            let candidate = tanh::<A, T>(xg[j] + gg[j]);
            let o = sigmoid::<A, T>(xo[j] + go[j]);
            let c = f * before[j] + i * candidate;
            (ki[j], kf[j], kg[j], ko[j]) = (i, f, candidate, o);
            cell[j] = c;
            h[j] = o * tanh::<A, T>(c);
        }
    }
    /// The gates reset, update, new; kept are their activations, and the hidden state's part of the last.
    pub(super) fn gru_step<T>(x: &[T], g: &[T], before: &[T], kept: &mut [T], h: &mut [T])
    where { T: Real + Tables } => A {
        let n = h.len();
        let (xr, xz, xn) = (&x[..n], &x[n..2 * n], &x[2 * n..3 * n]);
        let (gr, gz, gn) = (&g[..n], &g[n..2 * n], &g[2 * n..3 * n]);
        let [kr, kz, kn, kh] = quarters_mut(kept, n);
        let before = &before[..n];
        for j in 0..n {
            let r = sigmoid::<A, T>(xr[j] + gr[j]);
            let z = sigmoid::<A, T>(xz[j] + gz[j]);
            let new = tanh::<A, T>(xn[j] + r * gn[j]);
            (kr[j], kz[j], kn[j], kh[j]) = (r, z, new, gn[j]);
            h[j] = (before[j] - new) * z + new;
        }
    }
    /// The gradient of `x + g` in [`tanh_step`], from that of `h`.
    pub(super) fn tanh_step_backward<T>(grad: &[T], h: &[T], dx: &mut [T]) where { T: Real + Tables } => A {
        let _ = std::marker::PhantomData::<A>;
        for ((dx, &grad), &h) in dx.iter_mut().zip(grad).zip(h) {
            *dx = grad * (T::of(1.0) - h * h);
        }
    }
    /// The gradient of `x + g` in [`relu_step`].
    pub(super) fn relu_step_backward<T>(grad: &[T], h: &[T], dx: &mut [T]) where { T: Real + Tables } => A {
        let _ = std::marker::PhantomData::<A>;
        for ((dx, &grad), &h) in dx.iter_mut().zip(grad).zip(h) {
            *dx = if h > T::of(0.0) { grad } else { T::of(0.0) };
        }
    }
    /// The gradients of [`lstm_step`]: of `x + g`; `carried` holds that of the cell, and then that of the cell before.
    pub(super) fn lstm_step_backward<T>(
        grad: &[T], kept: &[T], cell: &[T], before: &[T], carried: &mut [T], dx: &mut [T]
    ) where { T: Real + Tables } => A {
        let n = grad.len();
        let [ki, kf, kg, ko] = quarters(kept, n);
        let [di, df, dg, d_o] = quarters_mut(dx, n);
        let (cell, before, carried) = (&cell[..n], &before[..n], &mut carried[..n]);
        let one = T::of(1.0);
        for j in 0..n {
            let (i, f, candidate, o) = (ki[j], kf[j], kg[j], ko[j]);
            let squashed = tanh::<A, T>(cell[j]);
            let dc = carried[j] + grad[j] * o * (one - squashed * squashed);
            d_o[j] = grad[j] * squashed * o * (one - o);
            di[j] = dc * candidate * i * (one - i);
            dg[j] = dc * i * (one - candidate * candidate);
            df[j] = dc * before[j] * f * (one - f);
            carried[j] = dc * f;
        }
    }
    /// The gradients of [`gru_step`]: of `x`, of `g`, and, in `direct`, the part of the state before that passes by the gates.
    pub(super) fn gru_step_backward<T>(
        grad: &[T], kept: &[T], before: &[T], dx: &mut [T], dg: &mut [T], direct: &mut [T]
    ) where { T: Real + Tables } => A {
        let _ = std::marker::PhantomData::<A>;
        let n = grad.len();
        let [kr, kz, kn, kh] = quarters(kept, n);
        let (xr, rest) = dx[..3 * n].split_at_mut(n);
        let (xz, xn) = rest.split_at_mut(n);
        let (gr, rest) = dg[..3 * n].split_at_mut(n);
        let (gz, gn) = rest.split_at_mut(n);
        let (before, direct) = (&before[..n], &mut direct[..n]);
        let one = T::of(1.0);
        for j in 0..n {
            let (r, z, new) = (kr[j], kz[j], kn[j]);
            let d_new = grad[j] * (one - z) * (one - new * new);
            let dz = grad[j] * (before[j] - new) * z * (one - z);
            let dr = d_new * kh[j] * r * (one - r);
            (xr[j], xz[j], xn[j]) = (dr, dz, d_new);
            (gr[j], gz[j], gn[j]) = (dr, dz, d_new * r);
            direct[j] = grad[j] * z;
        }
    }
}
