//! Whether a tier has fused multiply-add.

/// How `a * b + c` is computed in a tier.
pub trait Arith: Copy + 'static {
    /// Whether a product and a sum are rounded once.
    const FUSED: bool;
    /// `a * b + c`.
    fn fma32(a: f32, b: f32, c: f32) -> f32;
    /// `a * b + c`.
    fn fma64(a: f64, b: f64, c: f64) -> f64;
}

/// One instruction, one rounding.
#[derive(Clone, Copy)]
pub struct Fused;

/// A multiplication and an addition: without the instruction, `mul_add` would be a slow library call.
#[derive(Clone, Copy)]
pub struct Unfused;

impl Arith for Fused {
    const FUSED: bool = true;
    #[inline(always)]
    fn fma32(a: f32, b: f32, c: f32) -> f32 {
        a.mul_add(b, c)
    }
    #[inline(always)]
    fn fma64(a: f64, b: f64, c: f64) -> f64 {
        a.mul_add(b, c)
    }
}

impl Arith for Unfused {
    const FUSED: bool = false;
    #[inline(always)]
    fn fma32(a: f32, b: f32, c: f32) -> f32 {
        a * b + c
    }
    #[inline(always)]
    fn fma64(a: f64, b: f64, c: f64) -> f64 {
        a * b + c
    }
}
