//! Convolutions of one to three spatial dimensions, and their gradients.
//!
//! # Note [Convolution as a product]
//! A convolution is a matrix product whose right operand, the *columns* (a row per input channel and kernel tap, a
//! column per output place), is never formed: the product over packed panels ([`crate::linalg::implicit`]) asks for
//! pieces of it, and [`columns`] reads those from the image. The gradient with respect to the input is one of the
//! same kind: for places that share their remainder by the stride it is a convolution of the output's gradient with
//! some of the taps ([`input_backward`]). The gradient with respect to the weight sums products over the images.
//!
//! Work is cut by image, group and block of places, as a function of the shapes alone.

mod columns;
mod depthwise;
mod forward;
mod input_backward;
mod shape;
mod taps;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod timings;
mod weight_backward;

/// Registers the family.
pub(crate) fn register() {
    forward::register();
    input_backward::register();
    weight_backward::register();
}
