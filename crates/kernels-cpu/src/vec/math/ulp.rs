//! Measures the error of a function in units in the last place.

use std::ops::Range;

/// Points of the range, evenly spread, at which a function is measured.
const POINTS: u32 = 200_000;

/// Checks a single-precision function against a double-precision one, whose own error does not show here.
pub fn check32(
    name: &str,
    range: Range<f32>,
    f: impl Fn(f32) -> f32,
    exact: impl Fn(f64) -> f64,
    limit: f64,
) {
    let mut worst = (0.0, 0.0f32);
    for i in 0..=POINTS {
        let x = range.start + (range.end - range.start) * (i as f32 / POINTS as f32);
        let want = exact(f64::from(x));
        let got = f(x);
        let error = (f64::from(got) - want).abs() / ulp32(want as f32);
        if error > worst.0 {
            worst = (error, x);
        }
    }
    assert!(worst.0 <= limit, "{name}: {} ULP at {:e}", worst.0, worst.1);
}

/// Checks a double-precision function against the platform's, which is within one ULP itself.
pub fn check64(
    name: &str,
    range: Range<f64>,
    f: impl Fn(f64) -> f64,
    platform: impl Fn(f64) -> f64,
    limit: f64,
) {
    let mut worst = (0.0, 0.0f64);
    for i in 0..=POINTS {
        let x = range.start + (range.end - range.start) * (f64::from(i) / f64::from(POINTS));
        let (want, got) = (platform(x), f(x));
        let error = (got - want).abs() / ulp64(want);
        if error > worst.0 {
            worst = (error, x);
        }
    }
    assert!(worst.0 <= limit, "{name}: {} ULP at {:e}", worst.0, worst.1);
}

fn ulp32(x: f32) -> f64 {
    let x = x.abs();
    f64::from(f32::from_bits(x.to_bits() + 1)) - f64::from(x)
}

fn ulp64(x: f64) -> f64 {
    let x = x.abs();
    f64::from_bits(x.to_bits() + 1) - x
}
