//! The memory under tensors. Views share one storage.
//!
//! # Note [Copy-on-write storages]
//!
//! `lazy_clone` gives a second storage over the same bytes; the first of the two that is written to copies them
//! ([`StorageImpl::materialize`]). The shared bytes are held by an `Arc`: a storage that copies keeps its share until it
//! has finished reading, so the other one, if it is written to meanwhile, sees that it is not alone and copies too.
//! The last holder takes the bytes without a copy. Reads go through [`StorageImpl::const_data`] and change nothing.
//!
//! # Note [Pinned storages]
//!
//! A kernel works on raw addresses. Python programs are ordered by the interpreter's lock, but large operators and
//! the backward pass run without it, and then `resize_` or `set_` on another thread would free the block under the kernel.
//! Whoever runs kernels without that order holds a [`StoragePin`] per storage. While there is one:
//!
//! * a block that is replaced goes to `retired`, and is freed with the last pin;
//! * a smaller size leaves the block as it is. Otherwise a kernel that has read the old size and then reads the new address
//!   would run over its end. (A larger block comes before its size, which is the safe order.) The end stays unused until the
//!   storage is resized again: whoever drops the last pin may not hold the interpreter's lock, and must not move the bytes.
//!
//! So what two threads do to the same bytes may be nonsense, but it stays inside memory that is alive.

mod striped_cell;

use std::ffi::c_void;
use std::fmt;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::sync::Arc;

use self::striped_cell::StripedCell;
use crate::util::intrusive_ptr::{IntrusivePtr, IntrusivePtrTarget, RefCount, WeakIntrusivePtr};
use crate::{bail, get_allocator, Allocator, DataPtr, Device, DeviceType, PyObjectSlot, Result, SymInt};

/// Who owns the bytes.
enum Owner {
    Unique(DataPtr),
    /// See Note [Copy-on-write storages].
    CopyOnWrite(Arc<DataPtr>),
}

/// What changes rarely and together.
struct Guarded {
    owner: Owner,
    /// The bytes that the owner has: `nbytes` or more.
    capacity: usize,
    /// Set when the size is symbolic; `nbytes` is then a hint or 0.
    sym_nbytes: Option<SymInt>,
    /// See Note [Pinned storages].
    pins: usize,
    retired: Vec<Owner>,
}

impl Guarded {
    /// Keeps a replaced owner for those who have pinned it; else gives it back, to be dropped outside the lock.
    fn retire(&mut self, old: Owner) -> Option<Owner> {
        if self.pins == 0 {
            return Some(old);
        }
        self.retired.push(old);
        None
    }
}

/// A block of memory and how to grow it.
pub struct StorageImpl {
    refcount: RefCount,
    /// The address of the bytes: a copy of the owner's, so that the hot path takes no lock.
    data: AtomicPtr<u8>,
    nbytes: AtomicUsize,
    guarded: StripedCell<Guarded>,
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
        let guarded = Guarded { owner, capacity: nbytes, sym_nbytes: None, pins: 0, retired: Vec::new() };
        Self {
            refcount: RefCount::new(),
            data: AtomicPtr::new(data),
            nbytes: AtomicUsize::new(nbytes),
            guarded: StripedCell::new(guarded),
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
        // Whoever sees a larger size also sees the larger block.
        self.nbytes.load(Ordering::Acquire)
    }

    /// The size in bytes, symbolic where it is.
    pub fn sym_nbytes(&self) -> SymInt {
        match &self.guarded.lock().sym_nbytes {
            Some(nbytes) => nbytes.clone(),
            None => SymInt::from(i64::try_from(self.nbytes()).unwrap_or(i64::MAX)),
        }
    }

    /// Sets a size that is only known symbolically.
    pub fn set_sym_nbytes(&self, nbytes: SymInt) -> Result<()> {
        if let Some(nbytes) = nbytes.maybe_as_int().and_then(|nbytes| usize::try_from(nbytes).ok()) {
            return self.set_nbytes(nbytes);
        }
        // Replaced under the lock, dropped outside it: a symbol belongs to somebody else.
        let old = self.guarded.lock().sym_nbytes.replace(nbytes);
        drop(old);
        Ok(())
    }

    /// Sets the size without touching the memory. It cannot exceed the block, except on the Meta device, which has none.
    pub fn set_nbytes(&self, nbytes: usize) -> Result<()> {
        let mut guarded = self.guarded.lock();
        if nbytes > guarded.capacity {
            if self.device.type_ != DeviceType::Meta {
                let capacity = guarded.capacity;
                drop(guarded);
                bail!(
                    Runtime,
                    "set_nbytes(): expected at most {capacity} bytes, the size of the block, got {nbytes}"
                );
            }
            guarded.capacity = nbytes;
        }
        let old = guarded.sym_nbytes.take();
        self.nbytes.store(nbytes, Ordering::Release);
        drop(guarded);
        drop(old);
        Ok(())
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
        let nbytes = guarded.capacity;
        let Owner::CopyOnWrite(shared) = &mut guarded.owner else {
            return Ok(());
        };
        let old = if Arc::get_mut(shared).is_some() {
            self.take_last_share(&mut guarded)?
        } else {
            // Copied without the lock, from a share of our own: the other storage sees that it is not alone.
            let share = Arc::clone(shared);
            drop(guarded);
            // SAFETY: the share keeps `nbytes` readable bytes alive during the copy.
            let copy = unsafe { self.allocator_or_default()?.clone_data(share.get(), nbytes)? };
            guarded = self.guarded.lock();
            match &guarded.owner {
                Owner::CopyOnWrite(now) if Arc::ptr_eq(now, &share) => {
                    let old = self.replace_owner(&mut guarded, copy);
                    guarded.capacity = nbytes;
                    (guarded.retire(old), Some(share))
                }
                // Another thread was faster.
                _ => {
                    drop(guarded);
                    drop((copy, share));
                    return Ok(());
                }
            }
        };
        drop(guarded);
        drop(old);
        Ok(())
    }

    /// Makes the only share of the bytes this storage's own again.
    fn take_last_share(&self, guarded: &mut Guarded) -> Result<Dropped> {
        let placeholder = Owner::Unique(DataPtr::null(self.device));
        match std::mem::replace(&mut guarded.owner, placeholder) {
            Owner::CopyOnWrite(shared) => match Arc::try_unwrap(shared) {
                Ok(data) => {
                    let placeholder = self.replace_owner(guarded, data);
                    Ok((Some(placeholder), None))
                }
                Err(shared) => {
                    guarded.owner = Owner::CopyOnWrite(shared);
                    bail!(Internal, "materialize(): a share that was the last one is not");
                }
            },
            other => {
                guarded.owner = other;
                Ok((None, None))
            }
        }
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

    /// Replaces the bytes, and returns the old ones unless they are shared or pinned.
    ///
    /// # Safety
    ///
    /// `data` has `nbytes` bytes; no kernel uses the old ones unless it has pinned them, and no tensor over this storage
    /// reaches further.
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
        let old = guarded.retire(old);
        let old_size = guarded.sym_nbytes.take();
        guarded.capacity = nbytes;
        self.nbytes.store(nbytes, Ordering::Release);
        drop(guarded);
        drop(old_size);
        Ok(match old {
            Some(Owner::Unique(old)) => Some(old),
            Some(Owner::CopyOnWrite(_)) | None => None,
        })
    }

    /// Changes the size and keeps the content up to the smaller of the two sizes. Only a storage made resizable can.
    ///
    /// The caller has exclusive logical access, as for every write: addresses handed out before are stale, except to
    /// those who have pinned the storage.
    pub fn resize(&self, nbytes: usize) -> Result<()> {
        if !self.is_resizable() {
            bail!(Runtime, "Trying to resize storage that is not resizable");
        }
        self.reallocate(nbytes)
    }

    fn reallocate(&self, nbytes: usize) -> Result<()> {
        let allocator = self.allocator_or_default()?;
        let new = allocator.allocate(nbytes)?;
        // The copy is made without the lock, from bytes that another thread's `resize` cannot free.
        let pin = BorrowedPin::new(self);
        let (from, copied) = {
            let _guarded = self.guarded.lock();
            (self.const_data(), self.nbytes().min(nbytes))
        };
        if copied != 0 && !from.is_null() && !new.is_null() {
            // SAFETY: both blocks have at least `copied` bytes, the old one is pinned, and the new one is fresh.
            unsafe { allocator.copy_data(new.get(), from, copied)? };
        }
        let mut guarded = self.guarded.lock();
        let others_pin = guarded.pins > 1;
        let unused = if others_pin && nbytes < guarded.capacity {
            Some(new)
        } else {
            let old = self.replace_owner(&mut guarded, new);
            guarded.capacity = nbytes;
            guarded.retired.push(old);
            None
        };
        let old_size = guarded.sym_nbytes.take();
        self.nbytes.store(nbytes, Ordering::Release);
        drop(guarded);
        drop((unused, old_size, pin));
        Ok(())
    }

    /// Counts a pin. See Note [Pinned storages].
    fn add_pin(&self) {
        self.guarded.lock().pins += 1;
    }

    fn remove_pin(&self) {
        let mut guarded = self.guarded.lock();
        guarded.pins -= 1;
        if guarded.pins != 0 {
            return;
        }
        let retired = std::mem::take(&mut guarded.retired);
        drop(guarded);
        drop(retired);
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

/// What has been taken out under the lock, to be dropped outside it.
type Dropped = (Option<Owner>, Option<Arc<DataPtr>>);

/// A pin for the time of a call on a storage that the caller holds.
struct BorrowedPin<'a>(&'a StorageImpl);

impl<'a> BorrowedPin<'a> {
    fn new(storage: &'a StorageImpl) -> Self {
        storage.add_pin();
        Self(storage)
    }
}

impl Drop for BorrowedPin<'_> {
    fn drop(&mut self) {
        self.0.remove_pin();
    }
}

/// Keeps a storage, and the bytes it has now, alive: see Note [Pinned storages].
#[must_use = "the bytes are pinned only while the pin lives"]
pub struct StoragePin(Storage);

impl StoragePin {
    /// The storage.
    pub const fn storage(&self) -> &Storage {
        &self.0
    }
}

impl Drop for StoragePin {
    fn drop(&mut self) {
        self.0.remove_pin();
    }
}

// SAFETY: the count is a private field that only the pointers touch.
unsafe impl IntrusivePtrTarget for StorageImpl {
    #[inline]
    fn refcount(&self) -> &RefCount {
        &self.refcount
    }

    unsafe fn release_resources(&self) {
        // No pin is left: each holds a strong count.
        let mut guarded = self.guarded.lock();
        let old = self.replace_owner(&mut guarded, DataPtr::null(self.device));
        let old_size = guarded.sym_nbytes.take();
        drop(guarded);
        drop((old, old_size));
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
        let storage = Self::from_data_ptr(data, nbytes, Some(allocator), resizable);
        crate::check_memory()?;
        Ok(storage)
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

    /// Keeps the bytes alive for a kernel that other threads are not kept from: see Note [Pinned storages].
    pub fn pin(&self) -> StoragePin {
        self.add_pin();
        StoragePin(self.clone())
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
