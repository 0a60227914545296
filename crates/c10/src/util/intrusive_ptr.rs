//! Reference counting with the count inside the object.
//!
//! # Note [Combined reference count]
//!
//! One 64-bit atomic holds everything, so that a clone or a drop is one instruction and both counts are read
//! together:
//!
//! ```text
//! bit 63: has a PyObject | bits 32..=62: weak count | bits 0..=31: strong count
//! ```
//!
//! All strong pointers together hold one weak count. When the strong count falls to zero the target releases its
//! resources; when the weak count does, its memory is freed.
//!
//! # Note [The PyObject owns the target]
//!
//! A target (a tensor, a storage) and the Python object that stands for it must live equally long: the Python
//! object keeps attributes and identity for as long as anything in the core holds the tensor, and a tensor must stay
//! for as long as Python has the object. Two owning pointers would be a cycle. Instead:
//!
//! * the PyObject always holds one strong count of the target;
//! * the target holds one reference of the PyObject exactly while its strong count is above one, that is while somebody
//!   besides the PyObject holds the target.
//!
//! So the step of the strong count from 1 to 2 increfs the PyObject and the step from 2 to 1 decrefs it. When only
//! Python is left (strong count 1), the PyObject's own count decides, and its deallocation drops the last
//! strong count. Nothing is ever resurrected.
//!
//! Why the races are harmless:
//!
//! * *1→2 by a strong pointer.* The clone is made from a strong pointer. With a count of 1 that pointer is the PyObject's, so
//!   whoever clones holds the PyObject alive while it increfs.
//! * *2→1 against 1→2.* The dropping thread still owns the reference that it is about to give back until its decref
//!   is done, so the PyObject lives, and incref and decref commute.
//! * *1→2 by a weak pointer.* Nobody holds the PyObject; it may be dying. The upgrade asks first
//!   ([`IntrusivePtrTarget::try_incref_pyobject`]), which fails when deallocation has begun. If the count rose meanwhile,
//!   the reference so taken is surplus and is given back.
//! * *Attaching a PyObject* ([`RefCount::attach_pyobject`]) sets the bit in the same atomic, so the strong
//!   count seen at that moment says whether the target owes the PyObject a reference.

use std::fmt;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::ptr::NonNull;

#[cfg(loom)]
use loom::sync::atomic::{fence, AtomicU64, Ordering};
#[cfg(not(loom))]
use std::sync::atomic::{fence, AtomicU64, Ordering};

const STRONG_ONE: u64 = 1;
const STRONG_MASK: u64 = u32::MAX as u64;
const WEAK_ONE: u64 = 1 << 32;
const HAS_PYOBJECT: u64 = 1 << 63;
const WEAK_MASK: u64 = !(HAS_PYOBJECT | STRONG_MASK);
/// One strong pointer, no weak ones beyond the count that the strong pointers share.
const UNIQUE: u64 = STRONG_ONE + WEAK_ONE;
/// Clones beyond this abort the process: only a leak in a loop gets there.
const MAX_COUNT: u64 = (u32::MAX / 2) as u64;

/// The counts of one target: see Note [Combined reference count].
pub struct RefCount(AtomicU64);

impl RefCount {
    /// One strong pointer: the one that will be made with the target.
    #[cfg(not(loom))]
    pub const fn new() -> Self {
        Self(AtomicU64::new(UNIQUE))
    }

    /// One strong pointer: the one that will be made with the target.
    #[cfg(loom)]
    pub fn new() -> Self {
        Self(AtomicU64::new(UNIQUE))
    }

    /// The strong count.
    #[inline]
    pub fn strong_count(&self) -> u32 {
        (self.0.load(Ordering::Relaxed) & STRONG_MASK) as u32
    }

    /// The weak count, including the one that all strong pointers share.
    #[inline]
    pub fn weak_count(&self) -> u32 {
        ((self.0.load(Ordering::Relaxed) & WEAK_MASK) >> 32) as u32
    }

    /// Whether a PyObject is attached.
    #[inline]
    pub fn has_pyobject(&self) -> bool {
        self.0.load(Ordering::Relaxed) & HAS_PYOBJECT != 0
    }

    /// Marks that a PyObject, which holds one of the strong counts, has been attached.
    ///
    /// If others hold the target too, `incref` is called for the reference that the target now owns. The
    /// caller holds a reference of its own to the PyObject throughout, and has published the pointer before.
    pub fn attach_pyobject(&self, incref: impl Fn(), decref: impl Fn()) {
        let mut counts = self.0.load(Ordering::Relaxed);
        let mut increfed = false;
        loop {
            let shared = counts & STRONG_MASK > 1;
            if shared && !increfed {
                incref();
                increfed = true;
            }
            let attached = counts | HAS_PYOBJECT;
            match self.0.compare_exchange_weak(counts, attached, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => {
                    if increfed && !shared {
                        // Taken for a share that has gone meanwhile.
                        decref();
                    }
                    return;
                }
                Err(seen) => counts = seen,
            }
        }
    }
}

impl Default for RefCount {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for RefCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RefCount {{ strong: {}, weak: {} }}", self.strong_count(), self.weak_count())
    }
}

/// An object that carries its own reference count.
///
/// # Safety
///
/// `refcount` returns the same [`RefCount`] for the life of the object, it is touched by nothing but the pointers of this
/// module, and the object is only ever shared through them.
pub unsafe trait IntrusivePtrTarget: Sized {
    /// The counts.
    fn refcount(&self) -> &RefCount;

    /// Lets go of what the object owns, when the last strong pointer is gone and weak ones remain. Otherwise the
    /// object is simply dropped.
    ///
    /// # Safety
    ///
    /// Called once, with no strong pointer left; weak pointers never reach the object's contents again.
    unsafe fn release_resources(&self) {}

    /// Increfs the attached PyObject. Called only while it is attached and known to be alive.
    fn incref_pyobject(&self) {}

    /// Decrefs the attached PyObject. Called only while the target owns a reference to it.
    fn decref_pyobject(&self) {}

    /// Increfs the attached PyObject unless its deallocation has begun.
    fn try_incref_pyobject(&self) -> bool {
        false
    }
}

/// A strong pointer.
#[repr(transparent)]
pub struct IntrusivePtr<T: IntrusivePtrTarget> {
    target: NonNull<T>,
    _owns: PhantomData<T>,
}

// SAFETY: the count is atomic, and whoever holds a pointer may reach and destroy the target from any thread.
unsafe impl<T: IntrusivePtrTarget + Send + Sync> Send for IntrusivePtr<T> {}
// SAFETY: as above.
unsafe impl<T: IntrusivePtrTarget + Send + Sync> Sync for IntrusivePtr<T> {}

impl<T: IntrusivePtrTarget> IntrusivePtr<T> {
    /// Moves a fresh target to the heap.
    #[inline]
    pub fn new(target: T) -> Self {
        debug_assert_eq!(target.refcount().strong_count(), 1, "a target starts with its own count");
        Self::from_box(Box::new(target))
    }

    /// Takes a fresh target that is on the heap already.
    #[inline]
    pub fn from_box(target: Box<T>) -> Self {
        // SAFETY: a box is never null.
        let target = unsafe { NonNull::new_unchecked(Box::into_raw(target)) };
        Self { target, _owns: PhantomData }
    }

    /// The strong count.
    #[inline]
    pub fn strong_count(&self) -> u32 {
        self.refcount().strong_count()
    }

    /// The weak count, including the one that all strong pointers share.
    #[inline]
    pub fn weak_count(&self) -> u32 {
        self.refcount().weak_count()
    }

    /// Whether both point to the same target.
    #[inline]
    pub fn ptr_eq(&self, other: &Self) -> bool {
        self.target == other.target
    }

    /// The address of the target.
    #[inline]
    pub fn as_ptr(&self) -> *const T {
        self.target.as_ptr()
    }

    /// Gives the strong count to the caller.
    #[inline]
    #[must_use = "the strong count leaks unless it is taken back"]
    pub fn into_raw(self) -> *const T {
        ManuallyDrop::new(self).target.as_ptr()
    }

    /// Takes a strong count back.
    ///
    /// # Safety
    ///
    /// `target` comes from [`into_raw`](Self::into_raw), and its strong count passes to the result.
    #[inline]
    pub unsafe fn from_raw(target: *const T) -> Self {
        // SAFETY: pointers given out by `into_raw` are not null.
        let target = unsafe { NonNull::new_unchecked(target.cast_mut()) };
        Self { target, _owns: PhantomData }
    }

    /// Makes another strong pointer to a target known by address.
    ///
    /// # Safety
    ///
    /// Somebody holds a strong pointer to `target` during the call.
    #[inline]
    pub unsafe fn clone_from_raw(target: *const T) -> Self {
        // SAFETY: the caller keeps the target alive; the borrowed pointer is not dropped.
        let borrowed = ManuallyDrop::new(unsafe { Self::from_raw(target) });
        (*borrowed).clone()
    }

    /// The target, when this is the only pointer of either kind.
    #[inline]
    pub fn get_mut(this: &mut Self) -> Option<&mut T> {
        let counts = this.refcount().0.load(Ordering::Acquire);
        if counts & !HAS_PYOBJECT != UNIQUE {
            return None;
        }
        // SAFETY: no other pointer exists, and none can appear while this one is borrowed mutably.
        Some(unsafe { this.target.as_mut() })
    }

    /// A weak pointer.
    #[inline]
    pub fn downgrade(&self) -> WeakIntrusivePtr<T> {
        let old = self.refcount().0.fetch_add(WEAK_ONE, Ordering::Relaxed);
        abort_on_overflow((old & WEAK_MASK) >> 32);
        WeakIntrusivePtr { target: self.target, _owns: PhantomData }
    }

    #[inline]
    fn refcount(&self) -> &RefCount {
        (**self).refcount()
    }

    #[cold]
    #[inline(never)]
    fn incref_pyobject(&self) {
        // Pairs with the release in `attach_pyobject`: the PyObject's address is visible.
        fence(Ordering::Acquire);
        (**self).incref_pyobject();
    }
}

#[cold]
#[inline(never)]
fn count_overflow() -> ! {
    // Unwinding could drop pointers whose count is already wrong.
    eprintln!("ptr: reference count overflow");
    std::process::abort()
}

#[inline]
fn abort_on_overflow(count: u64) {
    if count > MAX_COUNT {
        count_overflow();
    }
}

impl<T: IntrusivePtrTarget> Clone for IntrusivePtr<T> {
    #[inline]
    fn clone(&self) -> Self {
        let old = self.refcount().0.fetch_add(STRONG_ONE, Ordering::Relaxed);
        abort_on_overflow(old & STRONG_MASK);
        if old & (HAS_PYOBJECT | STRONG_MASK) == HAS_PYOBJECT | STRONG_ONE {
            self.incref_pyobject();
        }
        Self { target: self.target, _owns: PhantomData }
    }
}

impl<T: IntrusivePtrTarget> Deref for IntrusivePtr<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: a strong pointer keeps the target alive.
        unsafe { self.target.as_ref() }
    }
}

impl<T: IntrusivePtrTarget> Drop for IntrusivePtr<T> {
    #[inline]
    fn drop(&mut self) {
        let count = &self.refcount().0;
        // Alone, no other thread can change the count: skip the atomic subtraction.
        if count.load(Ordering::Acquire) & !HAS_PYOBJECT == UNIQUE {
            // SAFETY: this is the last pointer of either kind.
            unsafe { free(self.target) };
            return;
        }
        let old = count.fetch_sub(STRONG_ONE, Ordering::Release);
        match old & STRONG_MASK {
            // SAFETY: this was the last strong pointer.
            1 => unsafe { drop_last_strong(self.target) },
            // SAFETY: the PyObject holds the remaining strong count, and we still hold a reference to it.
            2 if old & HAS_PYOBJECT != 0 => unsafe { give_back_pyobject(self.target) },
            _ => {}
        }
    }
}

/// # Safety
///
/// No pointer of either kind is left.
#[inline(never)]
unsafe fn free<T>(target: NonNull<T>) {
    // SAFETY: the target was made by `Box::new`, and nothing refers to it.
    drop(unsafe { Box::from_raw(target.as_ptr()) });
}

/// # Safety
///
/// The strong count has just become zero, and the strong pointers' weak count is still held.
#[cold]
#[inline(never)]
unsafe fn drop_last_strong<T: IntrusivePtrTarget>(target: NonNull<T>) {
    // What other threads did through their pointers happens before the release of resources.
    fence(Ordering::Acquire);
    // SAFETY: the shared weak count keeps the memory; no strong pointer is left.
    unsafe { target.as_ref().release_resources() };
    // SAFETY: gives back the shared weak count.
    unsafe { drop_weak(target) };
}

/// # Safety
///
/// The strong count has just fallen from 2 to 1, with a PyObject attached that holds the remaining one.
#[cold]
#[inline(never)]
unsafe fn give_back_pyobject<T: IntrusivePtrTarget>(target: NonNull<T>) {
    fence(Ordering::Acquire);
    // SAFETY: the PyObject lives by the reference that is given back here, and keeps the target.
    unsafe { target.as_ref().decref_pyobject() };
}

/// # Safety
///
/// The caller owns one weak count and gives it up.
unsafe fn drop_weak<T: IntrusivePtrTarget>(target: NonNull<T>) {
    // SAFETY: the weak count keeps the memory until the subtraction.
    let old = unsafe { target.as_ref() }.refcount().0.fetch_sub(WEAK_ONE, Ordering::Release);
    if old & WEAK_MASK == WEAK_ONE {
        fence(Ordering::Acquire);
        // SAFETY: that was the last weak count, so there is no strong one either.
        unsafe { free(target) };
    }
}

impl<T: IntrusivePtrTarget + fmt::Debug> fmt::Debug for IntrusivePtr<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

/// A pointer that does not keep its target alive.
pub struct WeakIntrusivePtr<T: IntrusivePtrTarget> {
    target: NonNull<T>,
    _owns: PhantomData<T>,
}

// SAFETY: as for `IntrusivePtr`.
unsafe impl<T: IntrusivePtrTarget + Send + Sync> Send for WeakIntrusivePtr<T> {}
// SAFETY: as for `IntrusivePtr`.
unsafe impl<T: IntrusivePtrTarget + Send + Sync> Sync for WeakIntrusivePtr<T> {}

impl<T: IntrusivePtrTarget> WeakIntrusivePtr<T> {
    #[inline]
    fn counts(&self) -> &AtomicU64 {
        // SAFETY: the weak count keeps the memory, and the counts stay valid in it.
        unsafe { &self.target.as_ref().refcount().0 }
    }

    /// A strong pointer, unless the target is gone or going.
    pub fn upgrade(&self) -> Option<IntrusivePtr<T>> {
        let mut counts = self.counts().load(Ordering::Relaxed);
        let mut increfed = false;
        let result = loop {
            let strong = counts & STRONG_MASK;
            if strong == 0 {
                break None;
            }
            if strong == 1 && counts & HAS_PYOBJECT != 0 && !increfed {
                fence(Ordering::Acquire);
                // SAFETY: the weak count keeps the memory; the hook copes with a dying PyObject.
                if !unsafe { self.target.as_ref() }.try_incref_pyobject() {
                    break None;
                }
                increfed = true;
            }
            let raised = counts + STRONG_ONE;
            match self.counts().compare_exchange_weak(counts, raised, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => {
                    abort_on_overflow(strong);
                    // The reference belongs to the target only if this was the step from 1 to 2 with a PyObject.
                    if increfed && strong == 1 && counts & HAS_PYOBJECT != 0 {
                        increfed = false;
                    }
                    break Some(IntrusivePtr { target: self.target, _owns: PhantomData });
                }
                Err(seen) => counts = seen,
            }
        };
        if increfed {
            // SAFETY: our own surplus reference keeps the PyObject, which keeps the target.
            unsafe { self.target.as_ref() }.decref_pyobject();
        }
        result
    }

    /// The strong count; 0 when the target is gone.
    #[inline]
    pub fn strong_count(&self) -> u32 {
        (self.counts().load(Ordering::Relaxed) & STRONG_MASK) as u32
    }

    /// Whether the target is gone.
    #[inline]
    pub fn expired(&self) -> bool {
        self.strong_count() == 0
    }

    /// The address of the target, which may be gone.
    #[inline]
    pub fn as_ptr(&self) -> *const T {
        self.target.as_ptr()
    }

    /// Whether both point to the same target.
    #[inline]
    pub fn ptr_eq(&self, other: &Self) -> bool {
        self.target == other.target
    }
}

impl<T: IntrusivePtrTarget> Clone for WeakIntrusivePtr<T> {
    #[inline]
    fn clone(&self) -> Self {
        let old = self.counts().fetch_add(WEAK_ONE, Ordering::Relaxed);
        abort_on_overflow((old & WEAK_MASK) >> 32);
        Self { target: self.target, _owns: PhantomData }
    }
}

impl<T: IntrusivePtrTarget> Drop for WeakIntrusivePtr<T> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: gives up the weak count of this pointer.
        unsafe { drop_weak(self.target) };
    }
}

#[cfg(all(test, not(loom)))]
mod tests;

#[cfg(all(test, loom))]
mod loom_tests;
