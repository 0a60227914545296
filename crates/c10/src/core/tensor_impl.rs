//! A tensor: metadata over a storage.
//!
//! # Note [Exclusive logical access]
//!
//! Tensors are shared freely, and their metadata is read without locks. Changing sizes, strides, storage or dtype
//! (`resize_`, `set_`, `x.data = y`) is therefore `unsafe`: during the call no other thread uses the tensor, and no slice
//! borrowed from it before (`sizes()`, `storage()`) is used afterwards. Between Python threads
//! [`TensorImpl::with_exclusive_metadata`] sees to it (Note [Pinned tensors]); threads of a Rust program that share a tensor
//! order such calls themselves. What may change while a tensor is shared is atomic: the key set, the flags,
//! the version, the gradient state, the PyObject.
//!
//! The number of elements and the contiguity flags are cached and recomputed by every such change.

mod copy;
mod geometry;
mod gradient;
mod memory;
mod metadata;
mod pin;
mod properties;
mod symbolic;
mod version;
mod vtable;

pub(crate) use pin::wait_until;
pub use pin::{OperatorHold, TensorPin, TensorPins, WithoutHolds};
pub use version::VariableVersion;
pub use vtable::{ReadDims, ShallowCopyAndDetach, TensorImplVTable, STRIDED_VTABLE};

use std::any::Any;
use std::cell::UnsafeCell;
use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, AtomicU8, Ordering};
use std::sync::OnceLock;

use self::pin::PinCount;
use self::symbolic::SymbolicShapeMeta;
use self::version::VersionSlot;
use self::vtable::Policy;
use crate::core::dispatch_key_set::{
    autograd_dispatch_keyset_with_ADInplaceOrView, get_autocast_related_key_set_from_backend,
    get_autograd_related_key_set_from_backend, python_ks,
};
use crate::util::intrusive_ptr::{IntrusivePtrTarget, RefCount};
use crate::{
    AutogradMetaInterface, BackendComponent, ContiguityFlags, Device, DispatchKey, DispatchKeySet,
    InferenceMode, PyObjectSlot, ScalarType, SizesAndStrides, Storage,
};

/// State of a tensor kind, behind [`TensorImpl::extra`].
pub type ExtraState = Box<dyn Any + Send + Sync>;

/// What [Exclusive logical access] guards.
pub(super) struct Metadata {
    pub(super) sizes_and_strides: SizesAndStrides,
    pub(super) storage_offset: i64,
    pub(super) numel: i64,
    pub(super) storage: Option<Storage>,
    pub(super) dtype: ScalarType,
    pub(super) device: Device,
    pub(super) contiguity: ContiguityFlags,
    /// Which getters ask the vtable or `symbolic`.
    pub(super) policy: Policy,
    /// Stands in for sizes, strides, offset and what follows from them.
    pub(super) symbolic: Option<Box<SymbolicShapeMeta>>,
}

/// A tensor. Handled through [`Tensor`](crate::Tensor), which has its methods.
pub struct TensorImpl {
    refcount: RefCount,
    /// Immutable after construction.
    vtable: &'static TensorImplVTable,
    /// A [`DispatchKeySet`]; atomic.
    key_set: AtomicU64,
    /// See Note [Exclusive logical access].
    metadata: UnsafeCell<Metadata>,
    /// Atomic inside.
    version: VersionSlot,
    /// Set once; taken out when the last strong pointer goes.
    autograd_meta: UnsafeCell<OnceLock<Box<dyn AutogradMetaInterface>>>,
    /// Immutable after construction.
    extra: Option<ExtraState>,
    /// Atomic.
    pyobj: PyObjectSlot,
    /// Atomic.
    flags: AtomicU8,
    /// Atomic. See Note [Pinned tensors].
    pins: PinCount,
}

// SAFETY: the cells are written only under the rule of Note [Exclusive logical access]; all else is
// atomic or immutable, and the contents are Send and Sync.
unsafe impl Send for TensorImpl {}
// SAFETY: as above.
unsafe impl Sync for TensorImpl {}

/// A Python number or a 0-d result of one: it yields in type promotion.
const WRAPPED_NUMBER: u8 = 1;
/// The kind's release hook has run.
const RELEASED: u8 = 2;

/// The keys of a new tensor: autocast's and, outside inference mode, autograd's for its backend.
#[inline]
fn keys_of_new_tensor(key_set: DispatchKeySet) -> DispatchKeySet {
    /// Indexed by backend.
    const RELATED: [(DispatchKeySet, DispatchKeySet); 17] = {
        let mut table = [(DispatchKeySet::EMPTY, DispatchKeySet::EMPTY); 17];
        let mut i = 0;
        while i < 17 {
            let backend =
                if i == 0 { BackendComponent::InvalidBit } else { BackendComponent::from_index(i - 1) };
            table[i] = (
                get_autograd_related_key_set_from_backend(backend),
                get_autocast_related_key_set_from_backend(backend),
            );
            i += 1;
        }
        table
    };
    let (autograd, autocast) = RELATED[key_set.highest_backend_key() as usize];
    let key_set = (key_set | autocast) - python_ks;
    if InferenceMode::is_enabled() {
        return key_set - autograd_dispatch_keyset_with_ADInplaceOrView;
    }
    if key_set.has_all(const { DispatchKeySet::from_key(DispatchKey::NestedTensor) }) {
        // Nested tensors have autograd formulas of their own.
        return key_set
            | DispatchKeySet::from_keys(&[DispatchKey::ADInplaceOrView, DispatchKey::AutogradNestedTensor]);
    }
    key_set | autograd
}

impl TensorImpl {
    /// A strided tensor of sizes `[0]`. Autograd's and autocast's keys are added to `key_set` as the thread's modes want.
    ///
    /// Finish it with the setters for owned tensors, then make it a [`Tensor`](crate::Tensor).
    pub fn new(storage: Option<Storage>, key_set: DispatchKeySet, dtype: ScalarType, device: Device) -> Self {
        Self::new_with_vtable(&STRIDED_VTABLE, storage, key_set, dtype, device, None)
    }

    /// Like [`new`](Self::new), of another kind.
    pub fn new_with_vtable(
        vtable: &'static TensorImplVTable,
        storage: Option<Storage>,
        key_set: DispatchKeySet,
        dtype: ScalarType,
        device: Device,
        extra: Option<ExtraState>,
    ) -> Self {
        Self::with_keys(vtable, storage, keys_of_new_tensor(key_set), dtype, device, extra)
    }

    /// A view: its key set is that of its base, whatever mode the thread is in.
    pub fn new_view(
        storage: Option<Storage>,
        key_set: DispatchKeySet,
        dtype: ScalarType,
        device: Device,
    ) -> Self {
        Self::with_keys(&STRIDED_VTABLE, storage, key_set, dtype, device, None)
    }

    /// A tensor with exactly these keys. It counts versions if it has autograd's keys.
    pub fn with_keys(
        vtable: &'static TensorImplVTable,
        storage: Option<Storage>,
        key_set: DispatchKeySet,
        dtype: ScalarType,
        device: Device,
        extra: Option<ExtraState>,
    ) -> Self {
        Self {
            refcount: RefCount::new(),
            vtable,
            key_set: AtomicU64::new(key_set.raw_repr()),
            metadata: UnsafeCell::new(Metadata {
                sizes_and_strides: SizesAndStrides::new(),
                storage_offset: 0,
                numel: 0,
                storage,
                dtype,
                device,
                contiguity: ContiguityFlags::row_major(),
                policy: Policy::of(vtable),
                symbolic: None,
            }),
            version: VersionSlot::new(key_set.has_any(autograd_dispatch_keyset_with_ADInplaceOrView)),
            autograd_meta: UnsafeCell::new(OnceLock::new()),
            extra,
            pyobj: PyObjectSlot::new(),
            flags: AtomicU8::new(0),
            pins: PinCount::default(),
        }
    }

    #[inline]
    fn policy(&self) -> Policy {
        self.metadata().policy
    }

    #[inline]
    fn metadata(&self) -> &Metadata {
        // SAFETY: writers have exclusive logical access, so no write is concurrent with this borrow.
        unsafe { &*self.metadata.get() }
    }

    /// The table of this tensor's kind.
    #[inline]
    pub const fn vtable(&self) -> &'static TensorImplVTable {
        self.vtable
    }

    /// The kind's state, if it is of type `T`.
    #[inline]
    pub fn extra<T: Any>(&self) -> Option<&T> {
        self.extra.as_ref()?.downcast_ref()
    }

    /// The dispatch keys.
    #[inline]
    pub fn key_set(&self) -> DispatchKeySet {
        DispatchKeySet::from_raw_repr(self.key_set.load(Ordering::Relaxed))
    }

    /// Replaces the dispatch keys.
    #[inline]
    pub fn set_key_set(&self, key_set: DispatchKeySet) {
        self.key_set.store(key_set.raw_repr(), Ordering::Relaxed);
    }

    fn set_key(&self, key: DispatchKey, on: bool) {
        let bits = DispatchKeySet::from_key(key).raw_repr();
        if on {
            self.key_set.fetch_or(bits, Ordering::Relaxed);
        } else {
            self.key_set.fetch_and(!bits, Ordering::Relaxed);
        }
    }

    /// Adds or removes the keys of a class with `__torch_dispatch__`.
    pub fn set_python_dispatch(&self, on: bool) {
        self.set_key(DispatchKey::Python, on);
        self.set_key(DispatchKey::PythonTLSSnapshot, on);
    }

    /// Whether the tensor stands for its complex conjugate.
    #[inline]
    pub fn is_conj(&self) -> bool {
        self.key_set().has_all(const { DispatchKeySet::from_key(DispatchKey::Conjugate) })
    }

    /// Sets the conjugate bit. Only views of complex tensors have one.
    pub fn set_conj(&self, on: bool) {
        self.set_key(DispatchKey::Conjugate, on);
    }

    /// Whether the tensor stands for its negation.
    #[inline]
    pub fn is_neg(&self) -> bool {
        self.key_set().has_all(const { DispatchKeySet::from_key(DispatchKey::Negative) })
    }

    /// Sets the negative bit.
    pub fn set_neg(&self, on: bool) {
        self.set_key(DispatchKey::Negative, on);
    }

    /// Whether the tensor is known to be zero and has no memory.
    #[inline]
    pub fn is_zerotensor(&self) -> bool {
        self.key_set().has_all(const { DispatchKeySet::from_key(DispatchKey::ZeroTensor) })
    }

    /// Sets the zero bit.
    pub fn set_zero(&self, on: bool) {
        self.set_key(DispatchKey::ZeroTensor, on);
    }

    /// Whether the tensor was made in inference mode: it has no autograd keys.
    #[inline]
    pub fn is_inference(&self) -> bool {
        !self.key_set().has_any(autograd_dispatch_keyset_with_ADInplaceOrView)
    }

    #[inline]
    fn flag(&self, flag: u8) -> bool {
        self.flags.load(Ordering::Relaxed) & flag != 0
    }

    #[inline]
    fn set_flag(&self, flag: u8, on: bool) {
        if on {
            self.flags.fetch_or(flag, Ordering::Relaxed);
        } else {
            self.flags.fetch_and(!flag, Ordering::Relaxed);
        }
    }

    /// Whether the tensor was a number, and yields in type promotion.
    #[inline]
    pub fn is_wrapped_number(&self) -> bool {
        self.flag(WRAPPED_NUMBER)
    }

    /// Marks a 0-d tensor as having been a number.
    #[inline]
    pub fn set_wrapped_number(&self, on: bool) {
        self.set_flag(WRAPPED_NUMBER, on);
    }

    /// The PyObject that owns this tensor, or null.
    #[inline]
    pub fn pyobj(&self) -> *mut c_void {
        self.pyobj.get()
    }

    /// The slot of the PyObject.
    pub const fn pyobj_slot(&self) -> &PyObjectSlot {
        &self.pyobj
    }

    /// Attaches a PyObject; if another one was first, its address is the error. See [`PyObjectSlot::init`].
    ///
    /// # Safety
    ///
    /// `pyobj` holds one strong count of this tensor, and the caller owns a reference to it during the call.
    pub unsafe fn init_pyobj(&self, pyobj: *mut c_void) -> Result<(), *mut c_void> {
        // SAFETY: passed on to the caller.
        unsafe { self.pyobj.init(&self.refcount, pyobj) }
    }

    /// Runs the kind's release hook, once.
    fn run_release_hook(&self) {
        if let Some(release) = self.vtable.release_resources {
            if !self.flag(RELEASED) {
                self.set_flag(RELEASED, true);
                release(self);
            }
        }
    }
}

impl Drop for TensorImpl {
    #[inline]
    fn drop(&mut self) {
        self.run_release_hook();
    }
}

// SAFETY: the count is a private field that only the pointers touch.
unsafe impl IntrusivePtrTarget for TensorImpl {
    #[inline]
    fn refcount(&self) -> &RefCount {
        &self.refcount
    }

    unsafe fn release_resources(&self) {
        self.run_release_hook();
        // SAFETY: no strong pointer is left, and weak ones do not reach the contents, so access is exclusive.
        let (autograd_meta, storage, symbolic) = unsafe {
            let metadata = &mut *self.metadata.get();
            ((*self.autograd_meta.get()).take(), metadata.storage.take(), metadata.symbolic.take())
        };
        drop(autograd_meta);
        drop(storage);
        drop(symbolic);
    }

    fn incref_pyobject(&self) {
        self.pyobj.incref();
    }

    fn decref_pyobject(&self) {
        self.pyobj.decref();
    }

    fn try_incref_pyobject(&self) -> bool {
        self.pyobj.try_incref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small() {
        assert!(size_of::<TensorImpl>() <= 216, "{}", size_of::<TensorImpl>());
    }

    #[test]
    fn keys_follow_the_mode() {
        let cpu = DispatchKeySet::from_key(DispatchKey::CPU);
        let keys = keys_of_new_tensor(cpu);
        for key in [
            DispatchKey::CPU,
            DispatchKey::AutogradCPU,
            DispatchKey::ADInplaceOrView,
            DispatchKey::AutocastCPU,
        ] {
            assert!(keys.has(key), "{key}");
        }
        let nested = keys_of_new_tensor(DispatchKeySet::from_key(DispatchKey::NestedTensorCPU));
        assert!(nested.has(DispatchKey::AutogradNestedTensor));
        let _inference = crate::InferenceModeGuard::new(true);
        let keys = keys_of_new_tensor(cpu);
        assert!(keys.has(DispatchKey::CPU) && !keys.has(DispatchKey::AutogradCPU));
        assert!(!keys.has(DispatchKey::ADInplaceOrView));
        let inference = TensorImpl::new(None, cpu, ScalarType::Float, Device::CPU);
        assert!(inference.is_inference() && inference.version().is_err());
    }
}
