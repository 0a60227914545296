//! Derivatives of random operators.

/// By what `native_dropout` multiplies the elements that it keeps.
pub fn native_dropout_scale(p: f64, train: Option<bool>) -> f64 {
    match train {
        Some(true) if p == 1.0 => 0.0,
        Some(true) => 1.0 / (1.0 - p),
        _ => 1.0,
    }
}
