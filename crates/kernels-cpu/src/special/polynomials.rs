//! Orthogonal polynomials, by their recurrences (Abramowitz and Stegun, 22.7); inside (−1, 1) Chebyshev's of higher degrees by
//! trigonometric functions. The degree is cut to an integer; those of negative degree are 0.

super::scalar_functions! {
    scalar_binary:
        special_chebyshev_polynomial_t_kernel: fn(&TensorIterator) = chebyshev_t,
        special_chebyshev_polynomial_u_kernel: fn(&TensorIterator) = chebyshev_u,
        special_chebyshev_polynomial_v_kernel: fn(&TensorIterator) = chebyshev_v,
        special_chebyshev_polynomial_w_kernel: fn(&TensorIterator) = chebyshev_w,
        special_shifted_chebyshev_polynomial_t_kernel: fn(&TensorIterator) = shifted_t,
        special_shifted_chebyshev_polynomial_u_kernel: fn(&TensorIterator) = shifted_u,
        special_shifted_chebyshev_polynomial_v_kernel: fn(&TensorIterator) = shifted_v,
        special_shifted_chebyshev_polynomial_w_kernel: fn(&TensorIterator) = shifted_w,
        special_hermite_polynomial_h_kernel: fn(&TensorIterator) = hermite_h,
        special_hermite_polynomial_he_kernel: fn(&TensorIterator) = hermite_he,
        special_laguerre_polynomial_l_kernel: fn(&TensorIterator) = laguerre,
        special_legendre_polynomial_p_kernel: fn(&TensorIterator) = legendre;
}

/// `p₀ = 1`, `p₁ = first`, `p_{k+1} = next(k, p_k, p_{k−1})`. It ends early where all further ones are NaN.
fn recurrence(n: f64, first: f64, next: impl Fn(f64, f64, f64) -> f64) -> f64 {
    let n = n as i64;
    match n {
        ..0 => return 0.0,
        0 => return 1.0,
        _ => {}
    }
    let (mut before, mut value) = (1.0, first);
    for k in 1..n {
        if value.is_nan() {
            break;
        }
        (before, value) = (value, next(k as f64, value, before));
    }
    value
}

/// All of Chebyshev's have one recurrence.
fn chebyshev(x: f64, n: f64, first: f64) -> f64 {
    recurrence(n, first, |_, p, before| 2.0 * x * p - before)
}

fn is_even(n: f64) -> bool {
    n as i64 % 2 == 0
}

/// The degree, if it is so high and the argument so small that trigonometric functions are better.
fn high_degree(x: f64, n: f64, least: f64) -> Option<f64> {
    (n.trunc() > least && x.abs() < 1.0).then(|| n.trunc())
}

fn chebyshev_t(x: f64, n: f64) -> f64 {
    if n.trunc() >= 0.0 && x.abs() == 1.0 {
        return if x > 0.0 || is_even(n) { 1.0 } else { -1.0 };
    }
    match high_degree(x, n, 6.0) {
        Some(n) => (n * x.acos()).cos(),
        None => chebyshev(x, n, x),
    }
}

fn chebyshev_u(x: f64, n: f64) -> f64 {
    if n.trunc() >= 0.0 && x.abs() == 1.0 {
        return (n.trunc() + 1.0) * if x > 0.0 || is_even(n) { 1.0 } else { -1.0 };
    }
    match high_degree(x, n, 8.0) {
        Some(n) => ((n + 1.0) * x.acos()).sin() / x.acos().sin(),
        None => chebyshev(x, n, 2.0 * x),
    }
}

fn chebyshev_v(x: f64, n: f64) -> f64 {
    if n.trunc() >= 0.0 && x.abs() == 1.0 {
        let size = 2.0 * n.trunc() + 1.0;
        return if x > 0.0 { 1.0 } else { size * if is_even(n) { 1.0 } else { -1.0 } };
    }
    match high_degree(x, n, 8.0) {
        Some(n) => ((n + 0.5) * x.acos()).cos() / (0.5 * x.acos()).cos(),
        None => chebyshev(x, n, 2.0 * x - 1.0),
    }
}

fn chebyshev_w(x: f64, n: f64) -> f64 {
    if n.trunc() >= 0.0 && x.abs() == 1.0 {
        let size = 2.0 * n.trunc() + 1.0;
        return if x > 0.0 {
            size
        } else if is_even(n) {
            1.0
        } else {
            -1.0
        };
    }
    match high_degree(x, n, 8.0) {
        Some(n) => ((n + 0.5) * x.acos()).sin() / (0.5 * x.acos()).sin(),
        None => chebyshev(x, n, 2.0 * x + 1.0),
    }
}

fn shifted_t(x: f64, n: f64) -> f64 {
    chebyshev_t(2.0 * x - 1.0, n)
}

fn shifted_u(x: f64, n: f64) -> f64 {
    chebyshev_u(2.0 * x - 1.0, n)
}

fn shifted_v(x: f64, n: f64) -> f64 {
    chebyshev_v(2.0 * x - 1.0, n)
}

fn shifted_w(x: f64, n: f64) -> f64 {
    chebyshev_w(2.0 * x - 1.0, n)
}

/// Degrees above which Hermite's are given up: their coefficients overflow.
const HERMITE_LIMIT: f64 = 512.0;

fn hermite_h(x: f64, n: f64) -> f64 {
    if n > HERMITE_LIMIT {
        return f64::NAN;
    }
    recurrence(n, 2.0 * x, |k, p, before| 2.0 * x * p - 2.0 * k * before)
}

fn hermite_he(x: f64, n: f64) -> f64 {
    if n > HERMITE_LIMIT {
        return f64::NAN;
    }
    recurrence(n, x, |k, p, before| x * p - k * before)
}

fn laguerre(x: f64, n: f64) -> f64 {
    if x == 0.0 && n.trunc() >= 0.0 {
        return 1.0;
    }
    recurrence(n, 1.0 - x, |k, p, before| ((2.0 * k + 1.0 - x) * p - k * before) / (k + 1.0))
}

fn legendre(x: f64, n: f64) -> f64 {
    if n.trunc() >= 0.0 && x.abs() == 1.0 {
        return if x > 0.0 || is_even(n) { 1.0 } else { -1.0 };
    }
    recurrence(n, x, |k, p, before| ((2.0 * k + 1.0) * x * p - k * before) / (k + 1.0))
}
