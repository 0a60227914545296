//! A tensor's version and gradient state.

use std::any::Any;
use std::sync::OnceLock;

use crate::core::tensor_impl::{TensorImpl, VariableVersion};
use crate::{bail, make_autograd_meta, AutogradMetaInterface, Result};

/// Versions and gradients.
impl TensorImpl {
    /// The number of in-place changes so far. Inference tensors do not count: an error.
    #[inline]
    pub fn version(&self) -> Result<u32> {
        self.version.current_version()
    }

    /// Counts an in-place change. An error for inference tensors outside inference mode.
    #[inline]
    pub fn bump_version(&self) -> Result<()> {
        self.version.bump()
    }

    /// A share of the version counter, for views and saved tensors.
    pub fn version_counter(&self) -> VariableVersion {
        self.version.share()
    }

    /// Makes the tensor count with another's counter.
    ///
    /// # Safety
    ///
    /// No other thread uses the tensor during the call.
    pub unsafe fn set_version_counter(&self, counter: VariableVersion) {
        // SAFETY: passed on to the caller.
        unsafe { self.version.set(counter) };
    }

    #[inline]
    fn autograd_meta_cell(&self) -> &OnceLock<Box<dyn AutogradMetaInterface>> {
        // SAFETY: the cell is emptied only when the last strong pointer goes; whoever calls this has one.
        unsafe { &*self.autograd_meta.get() }
    }

    /// The gradient state.
    #[inline]
    pub fn autograd_meta(&self) -> Option<&dyn AutogradMetaInterface> {
        self.autograd_meta_cell().get().map(Box::as_ref)
    }

    /// The gradient state, if it is the autograd crate's type `T`.
    #[inline]
    pub fn autograd_meta_as<T: Any>(&self) -> Option<&T> {
        self.autograd_meta()?.as_any().downcast_ref()
    }

    /// Attaches a gradient state. If another thread was first, its state stays and ours is dropped; the one that counts
    /// is returned.
    pub fn set_autograd_meta(&self, meta: Box<dyn AutogradMetaInterface>) -> &dyn AutogradMetaInterface {
        self.autograd_meta_cell().get_or_init(|| meta).as_ref()
    }

    /// The gradient state, made if there is none yet.
    pub fn materialize_autograd_meta(&self) -> Result<&dyn AutogradMetaInterface> {
        match self.autograd_meta() {
            Some(meta) => Ok(meta),
            None => Ok(self.set_autograd_meta(make_autograd_meta()?)),
        }
    }

    /// Whether the tensor takes part in differentiation.
    #[inline]
    pub fn requires_grad(&self) -> bool {
        self.autograd_meta().is_some_and(|meta| meta.requires_grad())
    }

    /// Sets `requires_grad` of a leaf.
    pub fn set_requires_grad(&self, requires_grad: bool) -> Result<()> {
        if requires_grad && self.is_inference() && !crate::InferenceMode::is_enabled() {
            bail!(
                Runtime,
                "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed."
            );
        }
        match self.autograd_meta() {
            None if !requires_grad => Ok(()),
            None => self.materialize_autograd_meta()?.set_requires_grad(true, self),
            Some(meta) => meta.set_requires_grad(requires_grad, self),
        }
    }
}
