//! Hurwitz's zeta function `ζ(s, q) = Σ (q + k)^−s`.
//!
//! Ten terms and the Euler–Maclaurin formula for the rest (Abramowitz and Stegun, 23.1 and 23.2). For negative `q` and whole
//! `s` the sum over all integers, which depends on the fraction of `q` only, less the part that is too much.

super::scalar_functions! {
    scalar_binary: special_zeta_kernel: fn(&TensorIterator) = hurwitz;
}

/// `B₂ⱼ / (2j)!`
const BERNOULLI: [f64; 12] = [
    1.0 / 12.0,
    -1.0 / 720.0,
    1.0 / 30_240.0,
    -1.0 / 1_209_600.0,
    1.0 / 47_900_160.0,
    -691.0 / 1_307_674_368_000.0,
    1.0 / 74_724_249_600.0,
    -3617.0 / 10_670_622_842_880_000.0,
    43_867.0 / 5_109_094_217_170_944_000.0,
    -174_611.0 / 802_857_662_698_291_200_000.0,
    77_683.0 / 14_101_100_039_391_805_440_000.0,
    -236_364_091.0 / 1_693_824_136_731_743_669_452_800_000.0,
];

pub(super) fn hurwitz(s: f64, q: f64) -> f64 {
    if s == 1.0 {
        return f64::INFINITY;
    }
    // Also at an infinite offset, as in PyTorch.
    if s.is_nan() || q.is_nan() || s < 1.0 || q == f64::INFINITY {
        return f64::NAN;
    }
    if q <= 0.0 {
        if q == q.floor() {
            return f64::INFINITY;
        }
        if s != s.floor() {
            return f64::NAN;
        }
        let fraction = q - q.floor();
        let mirrored = positive(s, 1.0 - fraction) - positive(s, 1.0 - q);
        let sign = if s % 2.0 == 0.0 { 1.0 } else { -1.0 };
        return positive(s, fraction) + sign * mirrored;
    }
    positive(s, q)
}

fn positive(s: f64, q: f64) -> f64 {
    const TERMS: i32 = 10;
    const EPSILON: f64 = 1e-17;
    let mut sum = 0.0;
    for k in 0..TERMS {
        let term = (q + f64::from(k)).powf(-s);
        sum += term;
        if term.abs() <= EPSILON * sum {
            return sum;
        }
    }
    let w = q + f64::from(TERMS);
    let power = w.powf(-s);
    sum += power * w / (s - 1.0) + 0.5 * power;
    let (mut factor, mut next) = (s / w * power, s);
    for b in BERNOULLI {
        let term = b * factor;
        sum += term;
        if term.abs() <= EPSILON * sum {
            break;
        }
        factor *= (next + 1.0) / w * ((next + 2.0) / w);
        next += 2.0;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values() {
        // From mpmath.
        for (s, q, expected) in [
            (2.0, 1.0, 1.644_934_066_848_226_4),
            (3.5, 0.25, 128.546_958_964_284_35),
            (1.1, 7.0, 8.292_047_056_894_3),
            (30.0, 2.0, 9.313_274_324_196_681e-10),
        ] {
            let found = hurwitz(s, q);
            assert!(((found - expected) / expected).abs() < 1e-14, "ζ({s}, {q}) = {found}, not {expected}");
        }
        // Σ (k − 2.5)^−3 by its first terms and the rest.
        let expected = (-2.5f64).powi(-3) + (-1.5f64).powi(-3) + (-0.5f64).powi(-3) + hurwitz(3.0, 0.5);
        assert!((hurwitz(3.0, -2.5) - expected).abs() < 1e-13);
        assert_eq!(hurwitz(1.0, 2.0), f64::INFINITY);
        assert_eq!(hurwitz(2.0, -3.0), f64::INFINITY);
        assert!(hurwitz(2.5, -3.5).is_nan() && hurwitz(0.5, 1.0).is_nan());
    }
}
