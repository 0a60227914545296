//! What a tensor knows of autograd: an opaque part that the autograd crate attaches when it needs one.
//!
//! Most tensors of a forward pass without gradients never get one, and a null test answers `requires_grad`.

use std::any::Any;
use std::sync::OnceLock;

use crate::{Error, Result, Tensor, TensorImpl};

/// A tensor's gradient state. Implementations lock what may change while tensors are shared.
pub trait AutogradMetaInterface: Send + Sync {
    /// Whether the tensor takes part in differentiation: a leaf that asks for it, or the result of a recorded operation.
    fn requires_grad(&self) -> bool;

    /// Sets `requires_grad` of a leaf; `tensor` is the owner, for its dtype.
    fn set_requires_grad(&self, requires_grad: bool, tensor: &TensorImpl) -> Result<()>;

    /// The name of the graph's node that made `tensor`, the owner; `None` for a leaf.
    fn grad_fn_name(&self, tensor: &Tensor) -> Option<String>;

    /// The accumulated gradient.
    fn grad(&self) -> Option<Tensor>;

    /// Replaces the accumulated gradient.
    fn set_grad(&self, grad: Option<Tensor>);

    /// The tangent of forward mode at a level.
    fn fw_grad(&self, level: u64) -> Option<Tensor>;

    /// Replaces the tangent of forward mode at a level.
    fn set_fw_grad(&self, tangent: Option<Tensor>, level: u64) -> Result<()>;

    /// The implementation itself, for the crate that made it.
    fn as_any(&self) -> &dyn Any;
}

/// Makes a gradient state for a tensor that has none.
pub type AutogradMetaFactory = fn() -> Box<dyn AutogradMetaInterface>;

static FACTORY: OnceLock<AutogradMetaFactory> = OnceLock::new();

/// Registers the autograd implementation of this process; the first one stays.
pub fn set_autograd_meta_factory(factory: AutogradMetaFactory) {
    let _ = FACTORY.set(factory);
}

/// A new gradient state.
pub fn make_autograd_meta() -> Result<Box<dyn AutogradMetaInterface>> {
    match FACTORY.get() {
        Some(factory) => Ok(factory()),
        None => Err(Error::runtime("support for autograd has not been loaded: no autograd crate is linked")),
    }
}
