//! Gradients.

use autograd::variable;
use c10::{Result, Tensor};

/// `requires_grad`, as a method.
pub trait RequiresGrad: Sized {
    /// Says whether gradients are to be recorded for this leaf tensor, and gives it back.
    ///
    /// # Errors
    /// If the dtype is neither floating-point nor complex, or the tensor is not a leaf.
    fn set_requires_grad(self, requires_grad: bool) -> Result<Self>;
}

impl RequiresGrad for Tensor {
    fn set_requires_grad(self, requires_grad: bool) -> Result<Tensor> {
        variable::set_requires_grad(&self, requires_grad)?;
        Ok(self)
    }
}

/// Computes the gradients of a scalar with respect to the leaves it was computed from, and adds them to theirs.
///
/// # Errors
/// If the tensor has more than one element or no history, or if a tensor needed by a gradient was modified.
pub fn backward(loss: &Tensor) -> Result<()> {
    autograd::backward(std::slice::from_ref(loss), &[], None, false, None)
}

/// The gradient that [`backward`] accumulated in a leaf.
pub fn grad(leaf: &Tensor) -> Option<Tensor> {
    variable::grad(leaf)
}
