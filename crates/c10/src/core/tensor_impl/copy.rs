//! Copying a tensor without its elements: what `detach()`, `x.data` and `x.data = y` are made of.

use crate::core::dispatch_key_set::python_ks;
use crate::core::local_dispatch_key_set::tls_is_dispatch_key_excluded;
use crate::core::tensor_impl::{TensorImpl, VariableVersion, WRAPPED_NUMBER};
use crate::{bail, py_interpreter, DispatchKey, DispatchKeySet, Result, Storage, Tensor};

impl TensorImpl {
    /// A tensor over the same storage, with metadata, gradient state and identity of its own.
    ///
    /// It counts in-place changes with `version_counter`: the same counter for `detach()`, a new one for `.data`.
    pub fn shallow_copy_and_detach(&self, version_counter: VariableVersion) -> Result<Tensor> {
        if self.key_set().has_all(const { DispatchKeySet::from_key(DispatchKey::Python) })
            && !tls_is_dispatch_key_excluded(DispatchKey::Python)
        {
            if let Some(interpreter) = py_interpreter() {
                let copy = interpreter.detach(self)?;
                if !copy.is_inference() {
                    // SAFETY: the copy is fresh.
                    unsafe { copy.set_version_counter(version_counter) };
                }
                return Ok(copy);
            }
        }
        if let Some(copy) = self.vtable.shallow_copy_and_detach {
            return copy(self, version_counter);
        }
        if self.extra.is_some() {
            bail!(NotImplemented, "{} does not implement shallow_copy_and_detach", self.vtable.name);
        }
        let from = self.metadata();
        let mut copy = TensorImpl::with_keys(
            self.vtable,
            from.storage.clone(),
            self.key_set() - python_ks,
            from.dtype,
            from.device,
            None,
        );
        let to = copy.metadata.get_mut();
        to.copy_geometry(from);
        copy.set_flag(WRAPPED_NUMBER, self.is_wrapped_number());
        if !copy.is_inference() {
            // SAFETY: the copy is not shared yet.
            unsafe { copy.version.set(version_counter) };
        }
        Tensor::new(copy)
    }

    /// Whether this tensor can become the same as `from` by [`shallow_copy_from`](Self::shallow_copy_from): the kinds agree.
    pub fn has_compatible_shallow_copy_type(&self, from: &TensorImpl) -> bool {
        std::ptr::eq(self.vtable, from.vtable)
    }

    /// Makes this tensor the same as `from`: storage, sizes, dtype, keys. Its gradient state, version counter and
    /// PyObject stay. The storage that it had is returned.
    ///
    /// # Safety
    ///
    /// Exclusive logical access to `self`; `from` is not changed meanwhile.
    pub unsafe fn shallow_copy_from(&self, from: &TensorImpl) -> Result<Option<Storage>> {
        if std::ptr::eq(self, from) {
            return Ok(None);
        }
        if !self.has_compatible_shallow_copy_type(from) {
            bail!(
                Runtime,
                "cannot copy the metadata of a {} into a {}: incompatible tensor type",
                from.vtable.name,
                self.vtable.name
            );
        }
        if let Some(copy) = self.vtable.shallow_copy_from {
            return copy(self, from).map(|()| None);
        }
        if self.extra.is_some() || from.extra.is_some() {
            bail!(NotImplemented, "{} does not implement shallow_copy_from", self.vtable.name);
        }
        let source = from.metadata();
        // SAFETY: the caller has exclusive access to `self`, and `from` is another tensor.
        let target = unsafe { &mut *self.metadata.get() };
        target.copy_geometry(source);
        target.dtype = source.dtype;
        target.device = source.device;
        let old_storage = std::mem::replace(&mut target.storage, source.storage.clone());
        // A subclass stays one, and a plain tensor does not become one.
        self.set_key_set((from.key_set() - python_ks) | (self.key_set() & python_ks));
        self.set_flag(WRAPPED_NUMBER, from.is_wrapped_number());
        Ok(old_storage)
    }
}
