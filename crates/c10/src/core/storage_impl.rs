//! The memory under tensors. Views share one storage.
//!
//! # Note [Copy-on-write storages]
//!
//! `lazy_clone` gives a second storage over the same bytes; the first of the two that is written to copies them
//! ([`StorageImpl::materialize`]). The shared bytes are held by an `Arc`: a storage that copies keeps its share until it
//! has finished reading, so the other one, if it is written to meanwhile, sees that it is not alone and copies too.
//! The last holder takes the bytes without a copy. Reads go through [`StorageImpl::const_data`] and change nothing.

use std::ffi::c_void;
use std::fmt;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::util::intrusive_ptr::{IntrusivePtr, IntrusivePtrTarget, RefCount, WeakIntrusivePtr};
use crate::{bail, get_allocator, Allocator, DataPtr, Device, PyObjectSlot, Result, SymInt};

/// Who owns the bytes.
enum Owner {
    Unique(DataPtr),
    /// See Note [Copy-on-write storages].
    CopyOnWrite(Arc<DataPtr>),
}

/// What changes rarely and together.
struct Guarded {
    owner: Owner,
    /// Set when the size is symbolic; `nbytes` is then a hint or 0.
    sym_nbytes: Option<SymInt>,
}

/// A block of memory and how to grow it.
pub struct StorageImpl {
    refcount: RefCount,
    /// The address of the bytes: a copy of the owner's, so that the hot path takes no lock.
    data: AtomicPtr<u8>,
    nbytes: AtomicUsize,
    guarded: Mutex<Guarded>,
    /// Immutable after construction.
    allocator: Option<&'static dyn Allocator>,
    /// Immutable after construction.
    device: Device,
    resizable: AtomicBool,
    /// Whether `owner` is shared: a copy, as `data`.
    is_cow: AtomicBool,
    pyobj: PyObjectSlot,
}

impl StorageImpl {
    fn with_owner(
        owner: Owner,
        nbytes: usize,
        allocator: Option<&'static dyn Allocator>,
        resizable: bool,
    ) -> Self {
        let (data, device, is_cow) = match &owner {
            Owner::Unique(data) => (data.get(), data.device(), false),
            Owner::CopyOnWrite(data) => (data.get(), data.device(), true),
        };
        Self {
            refcount: RefCount::new(),
            data: AtomicPtr::new(data),
            nbytes: AtomicUsize::new(nbytes),
            guarded: Mutex::new(Guarded { owner, sym_nbytes: None }),
            allocator,
            device,
            resizable: AtomicBool::new(resizable),
            is_cow: AtomicBool::new(is_cow),
            pyobj: PyObjectSlot::new(),
        }
    }

    /// The size in bytes.
    #[inline]
    pub fn nbytes(&self) -> usize {
        self.nbytes.load(Ordering::Relaxed)
    }

    /// The size in bytes, symbolic where it is.
    pub fn sym_nbytes(&self) -> SymInt {
        match &self.guarded.lock().sym_nbytes {
            Some(nbytes) => nbytes.clone(),
            None => SymInt::from(i64::try_from(self.nbytes()).unwrap_or(i64::MAX)),
        }
    }

    /// Sets a size that is only known symbolically.
    pub fn set_sym_nbytes(&self, nbytes: SymInt) {
        match nbytes.maybe_as_int().and_then(|nbytes| usize::try_from(nbytes).ok()) {
            Some(nbytes) => self.set_nbytes(nbytes),
            None => self.guarded.lock().sym_nbytes = Some(nbytes),
        }
    }

    /// Sets the size without touching the memory: for those who have replaced it, and for storages without bytes.
    pub fn set_nbytes(&self, nbytes: usize) {
        self.nbytes.store(nbytes, Ordering::Relaxed);
        self.guarded.lock().sym_nbytes = None;
    }

    /// The address of the bytes, to be written. A copy-on-write storage is copied first; should that fail for want of
    /// memory the process ends, so callers that can report an error call [`materialize`](Self::materialize) before.
    #[inline]
    pub fn data_ptr(&self) -> *mut u8 {
        if self.is_cow.load(Ordering::Acquire) {
            self.materialize_or_abort();
        }
        self.data.load(Ordering::Acquire)
    }

    #[cold]
    fn materialize_or_abort(&self) {
        if let Err(error) = self.materialize() {
            eprintln!("ptr: cannot copy a copy-on-write storage: {error}");
            std::process::abort();
        }
    }

    /// The address of the bytes, to be read only.
    #[inline]
    pub fn const_data(&self) -> *const u8 {
        self.data.load(Ordering::Acquire)
    }

    /// The device of the bytes.
    #[inline]
    pub const fn device(&self) -> Device {
        self.device
    }

    /// The allocator with which the storage grows.
    pub const fn allocator(&self) -> Option<&'static dyn Allocator> {
        self.allocator
    }

    /// Whether `resize` is allowed.
    pub fn is_resizable(&self) -> bool {
        self.resizable.load(Ordering::Relaxed)
    }

    /// Allows or forbids `resize`.
    pub fn set_resizable(&self, resizable: bool) {
        self.resizable.store(resizable, Ordering::Relaxed);
    }

    /// Whether the bytes are shared until the first write.
    #[inline]
    pub fn is_cow(&self) -> bool {
        self.is_cow.load(Ordering::Acquire)
    }

    fn allocator_or_default(&self) -> Result<&'static dyn Allocator> {
        match self.allocator {
            Some(allocator) => Ok(allocator),
            None => get_allocator(self.device.type_),
        }
    }

    /// Makes `new` the owner, and returns the old one so that it is freed outside the lock.
    fn replace_owner(&self, guarded: &mut Guarded, new: DataPtr) -> Owner {
        self.data.store(new.get(), Ordering::Release);
        self.is_cow.store(false, Ordering::Release);
        std::mem::replace(&mut guarded.owner, Owner::Unique(new))
    }

    /// Copies shared bytes, so that they may be written.
    pub fn materialize(&self) -> Result<()> {
        let mut guarded = self.guarded.lock();
        let Owner::CopyOnWrite(shared) = &mut guarded.owner else {
            return Ok(());
        };
        let own = if Arc::get_mut(shared).is_some() {
            None
        } else {
            // SAFETY: the share keeps `nbytes` readable bytes alive during the copy.
            Some(unsafe { self.allocator_or_default()?.clone_data(shared.get(), self.nbytes())? })
        };
        let old = match own {
            Some(copy) => self.replace_owner(&mut guarded, copy),
            None => {
                let placeholder = Owner::Unique(DataPtr::null(self.device));
                match std::mem::replace(&mut guarded.owner, placeholder) {
                    // Alone: `get_mut` has just said so, and only the lock's holder clones this share.
                    Owner::CopyOnWrite(shared) => match Arc::try_unwrap(shared) {
                        Ok(data) => self.replace_owner(&mut guarded, data),
                        Err(shared) => {
                            guarded.owner = Owner::CopyOnWrite(shared);
                            bail!(Internal, "materialize(): a share that was the last one is not");
                        }
                    },
                    other => std::mem::replace(&mut guarded.owner, other),
                }
            }
        };
        drop(guarded);
        drop(old);
        Ok(())
    }

    /// A storage over the same bytes; whichever of the two is written first copies them.
    pub fn lazy_clone(&self) -> Storage {
        let mut guarded = self.guarded.lock();
        let shared = match &mut guarded.owner {
            Owner::CopyOnWrite(shared) => Arc::clone(shared),
            Owner::Unique(data) => {
                let shared = Arc::new(std::mem::replace(data, DataPtr::null(self.device)));
                guarded.owner = Owner::CopyOnWrite(Arc::clone(&shared));
                self.is_cow.store(true, Ordering::Release);
                shared
            }
        };
        let mut clone =
            Self::with_owner(Owner::CopyOnWrite(shared), self.nbytes(), self.allocator, self.is_resizable());
        clone.guarded.get_mut().sym_nbytes = guarded.sym_nbytes.clone();
        Storage(IntrusivePtr::new(clone))
    }

    /// Replaces the bytes, and returns the old ones unless they are shared.
    ///
    /// # Safety
    ///
    /// `data` has `nbytes` bytes; no kernel uses the old ones, and no tensor over this storage reaches further.
    pub unsafe fn set_data_ptr(&self, data: DataPtr, nbytes: usize) -> Result<Option<DataPtr>> {
        if data.device() != self.device {
            bail!(
                Runtime,
                "set_data_ptr(): expected memory on {}, the storage's device, got {}",
                self.device,
                data.device()
            );
        }
        let mut guarded = self.guarded.lock();
        let old = self.replace_owner(&mut guarded, data);
        guarded.sym_nbytes = None;
        self.nbytes.store(nbytes, Ordering::Relaxed);
        Ok(match old {
            Owner::Unique(old) => Some(old),
            Owner::CopyOnWrite(_) => None,
        })
    }

    /// Changes the size and keeps the content up to the smaller of the two sizes. Only a storage made resizable can.
    ///
    /// The caller has exclusive logical access, as for every write: addresses handed out before are stale.
    pub fn resize(&self, nbytes: usize) -> Result<()> {
        if !self.is_resizable() {
            bail!(Runtime, "Trying to resize storage that is not resizable");
        }
        let allocator = self.allocator_or_default()?;
        let new = allocator.allocate(nbytes)?;
        let mut guarded = self.guarded.lock();
        let copied = self.nbytes().min(nbytes);
        let from = self.const_data();
        if copied != 0 && !from.is_null() && !new.is_null() {
            // SAFETY: both blocks have at least `copied` bytes, and the new one is fresh.
            unsafe { allocator.copy_data(new.get(), from, copied)? };
        }
        let old = self.replace_owner(&mut guarded, new);
        guarded.sym_nbytes = None;
        self.nbytes.store(nbytes, Ordering::Relaxed);
        drop(guarded);
        drop(old);
        Ok(())
    }

    /// The PyObject that owns this storage, or null.
    pub fn pyobj(&self) -> *mut c_void {
        self.pyobj.get()
    }

    /// The slot of the PyObject.
    pub const fn pyobj_slot(&self) -> &PyObjectSlot {
        &self.pyobj
    }

    /// Attaches a PyObject: see [`PyObjectSlot::init`].
    ///
    /// # Safety
    ///
    /// `pyobj` holds one strong count of this storage, and the caller owns a reference to it.
    pub unsafe fn init_pyobj(&self, pyobj: *mut c_void) -> Result<(), *mut c_void> {
        // SAFETY: passed on to the caller.
        unsafe { self.pyobj.init(&self.refcount, pyobj) }
    }
}

// SAFETY: the count is a private field that only the pointers touch.
unsafe impl IntrusivePtrTarget for StorageImpl {
    #[inline]
    fn refcount(&self) -> &RefCount {
        &self.refcount
    }

    unsafe fn release_resources(&self) {
        let mut guarded = self.guarded.lock();
        let old = self.replace_owner(&mut guarded, DataPtr::null(self.device));
        drop(guarded);
        drop(old);
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

/// A shared storage.
#[derive(Clone)]
#[repr(transparent)]
pub struct Storage(IntrusivePtr<StorageImpl>);

/// A storage that is not kept alive.
#[derive(Clone)]
pub struct WeakStorage(WeakIntrusivePtr<StorageImpl>);

impl Storage {
    /// Allocates `nbytes`.
    pub fn new(nbytes: usize, allocator: &'static dyn Allocator, resizable: bool) -> Result<Self> {
        let data = allocator.allocate(nbytes)?;
        Ok(Self::from_data_ptr(data, nbytes, Some(allocator), resizable))
    }

    /// Takes memory that exists. It grows with `allocator`, or else with its device's own.
    pub fn from_data_ptr(
        data: DataPtr,
        nbytes: usize,
        allocator: Option<&'static dyn Allocator>,
        resizable: bool,
    ) -> Self {
        Self(IntrusivePtr::new(StorageImpl::with_owner(Owner::Unique(data), nbytes, allocator, resizable)))
    }

    /// How many hold this storage.
    pub fn use_count(&self) -> u32 {
        self.0.strong_count()
    }

    /// Whether nobody else holds this storage.
    pub fn is_unique(&self) -> bool {
        self.use_count() == 1
    }

    /// Whether both are the same storage.
    #[inline]
    pub fn is_same(&self, other: &Self) -> bool {
        self.0.ptr_eq(&other.0)
    }

    /// Whether both reach the same bytes: the same storage, or copy-on-write clones of each other.
    pub fn is_alias_of(&self, other: &Self) -> bool {
        self.is_same(other) || (!self.const_data().is_null() && self.const_data() == other.const_data())
    }

    /// A weak pointer.
    pub fn weak(&self) -> WeakStorage {
        WeakStorage(self.0.downgrade())
    }

    /// The pointer itself.
    pub const fn as_intrusive_ptr(&self) -> &IntrusivePtr<StorageImpl> {
        &self.0
    }

    /// The pointer itself.
    pub fn into_intrusive_ptr(self) -> IntrusivePtr<StorageImpl> {
        self.0
    }
}

impl From<IntrusivePtr<StorageImpl>> for Storage {
    fn from(storage: IntrusivePtr<StorageImpl>) -> Self {
        Self(storage)
    }
}

impl WeakStorage {
    /// The storage, unless it is gone.
    pub fn upgrade(&self) -> Option<Storage> {
        self.0.upgrade().map(Storage)
    }

    /// Whether the storage is gone.
    pub fn expired(&self) -> bool {
        self.0.expired()
    }
}

impl Deref for Storage {
    type Target = StorageImpl;

    #[inline]
    fn deref(&self) -> &StorageImpl {
        &self.0
    }
}

impl fmt::Debug for Storage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Storage")
            .field("data", &self.const_data())
            .field("nbytes", &self.nbytes())
            .field("device", &self.device())
            .finish()
    }
}

#[cfg(test)]
mod tests;
