//! Keeping a tensor's metadata as it is while somebody computes with it.
//!
//! # Note [Pinned tensors]
//!
//! Metadata is read without locks (Note [Exclusive logical access]), and Python programs are ordered by the interpreter's
//! lock. Large operators and the backward pass run without that lock, so there are two ways to hold a tensor:
//!
//! * a *pin* ([`TensorPin`]) keeps metadata and bytes as they are (Note [Pinned storages]). What runs without the
//!   interpreter's lock pins each tensor that Python code can reach. Many threads may pin a tensor.
//! * a *claim* is the right to change metadata, for one thread, while no other thread has a pin.
//!
//! Who calls an operator from Python acquires both ([`OperatorHold`]) before anything of the arguments is read, and waits
//! for them without the interpreter's lock, holding none: all of them or nothing. Below that, an operator changes metadata
//! through [`TensorImpl::with_exclusive_metadata`], which never waits: waiting would give up the interpreter's lock in
//! the middle of an operator that has read its arguments without pins. A tensor that has a PyObject changes under that
//! lock, because who has it reads without a pin.
//!
//! While Python code runs (a hook, a custom function, `__torch_dispatch__`), the thread's holds are lifted
//! ([`WithoutHolds`]): that code may wait for anything. Afterwards the pins are taken anew, and the operator reads metadata
//! as it is then.
//!
//! So nothing here locks up: a thread that waits for a claim has no hold, a thread with a claim waits for nothing, and a
//! pin waits for claims only. Nobody waits for ever either: an operator that begins lets a thread go first that waits for
//! a claim.

mod count;

use std::borrow::Borrow;
use std::cell::{Cell, RefCell};
use std::marker::PhantomData;

use smallvec::SmallVec;

pub(crate) use self::count::wait_until;
pub(super) use self::count::PinCount;
use self::count::{Pinned, COUNT};
use crate::core::tensor_impl::TensorImpl;
use crate::{bail, py_interpreter, Error, Result, Storage, StoragePin, Tensor};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Pin,
    Claim,
}

/// What a thread holds.
struct Held {
    tensor: *const TensorImpl,
    kind: Kind,
    /// That of a counted pin.
    generation: Option<u32>,
    /// A pin also keeps the storage that the tensor has.
    _storage: Option<StoragePin>,
}

thread_local! {
    /// What this thread holds, latest last.
    static HELD: RefCell<Vec<Held>> = const { RefCell::new(Vec::new()) };
    /// How many: most threads hold nothing most of the time, and need not touch the list, whose destructor the first
    /// touch registers with the C library.
    static COUNT_HELD: Cell<usize> = const { Cell::new(0) };
}

fn remember(tensor: &Tensor, kind: Kind, generation: Option<u32>) {
    // The storage is read only now that nobody replaces it. Tensors without memory have none to keep.
    let storage = (kind == Kind::Pin).then(|| tensor.storage().ok().map(Storage::pin)).flatten();
    let entry = Held { tensor: tensor.as_ptr(), kind, generation, _storage: storage };
    // A thread that is being torn down runs no operators: nobody asks what it holds.
    let _ = HELD.try_with(|held| {
        let mut held = held.borrow_mut();
        held.push(entry);
        COUNT_HELD.set(held.len());
    });
}

/// Forgets the latest hold of a kind; `None` if it has been lifted.
fn forget(tensor: &Tensor, kind: Kind) -> Option<Held> {
    HELD.try_with(|held| {
        let mut held = held.borrow_mut();
        let at =
            held.iter().rposition(|held| held.kind == kind && std::ptr::eq(held.tensor, tensor.as_ptr()))?;
        let entry = held.remove(at);
        COUNT_HELD.set(held.len());
        Some(entry)
    })
    .ok()
    .flatten()
}

/// How often this thread holds a tensor in a way.
fn holds(tensor: &TensorImpl, kind: Kind) -> u32 {
    if COUNT_HELD.get() == 0 {
        return 0;
    }
    let count = HELD.try_with(|held| {
        held.borrow().iter().filter(|held| held.kind == kind && std::ptr::eq(held.tensor, tensor)).count()
    });
    u32::try_from(count.unwrap_or(0)).unwrap_or(COUNT)
}

fn try_pin(tensor: &Tensor, polite: bool) -> bool {
    // Its own claim is looked for only where there is one.
    let own_claim = !tensor.pins.is_pinnable(false) && holds(tensor, Kind::Claim) != 0;
    match tensor.pins.try_add(own_claim, polite) {
        Pinned::Counted(generation) => remember(tensor, Kind::Pin, Some(generation)),
        Pinned::Uncounted => remember(tensor, Kind::Pin, None),
        Pinned::Claimed => return false,
    }
    true
}

/// Keeps a tensor's metadata and the bytes of its storage as they are: see Note [Pinned tensors].
///
/// It ends on the thread where it began; the latest pin of a thread should end first.
#[must_use = "the tensor is pinned only while the pin lives"]
pub struct TensorPin<T: Borrow<Tensor> = Tensor> {
    tensor: T,
    not_send: PhantomData<*const ()>,
}

impl<T: Borrow<Tensor>> TensorPin<T> {
    /// Pins a tensor, waiting for a change that is under way. A thread without other holds also lets those go first that wait
    /// for a claim.
    #[inline]
    pub fn new(tensor: T) -> Self {
        let polite = COUNT_HELD.get() == 0;
        while !try_pin(tensor.borrow(), polite) {
            wait_until(&|| tensor.borrow().pins.is_pinnable(polite));
        }
        Self::of_pinned(tensor)
    }

    const fn of_pinned(tensor: T) -> Self {
        Self { tensor, not_send: PhantomData }
    }
}

impl<T: Borrow<Tensor>> Drop for TensorPin<T> {
    #[inline]
    fn drop(&mut self) {
        let tensor = self.tensor.borrow();
        let held = forget(tensor, Kind::Pin);
        if let Some(generation) = held.as_ref().and_then(|held| held.generation) {
            tensor.pins.remove(generation);
        }
    }
}

/// Many pins, which end in the order that is cheap: the latest first.
#[derive(Default)]
pub struct TensorPins(SmallVec<[TensorPin; 4]>);

impl TensorPins {
    /// Pins one more tensor. If another thread waits to change it, this thread lifts what it holds and lets the other go first:
    /// nothing that was read of pinned tensors before is to be used afterwards.
    #[inline]
    pub fn add(&mut self, tensor: &Tensor) {
        if !tensor.pins.is_pinnable(true) && holds(tensor, Kind::Pin) == 0 {
            let _lifted = WithoutHolds::new();
            wait_until(&|| tensor.pins.is_pinnable(true));
        }
        self.0.push(TensorPin::new(tensor.clone()));
    }
}

impl Drop for TensorPins {
    fn drop(&mut self) {
        while let Some(pin) = self.0.pop() {
            drop(pin);
        }
    }
}

/// The right to change a tensor's metadata.
struct TensorClaim {
    tensor: Tensor,
    not_send: PhantomData<*const ()>,
}

impl TensorClaim {
    /// `None` while others hold the tensor.
    fn try_new(tensor: &Tensor, polite: bool) -> Option<Self> {
        if !tensor.pins.try_claim(holds(tensor, Kind::Pin), polite) {
            return None;
        }
        remember(tensor, Kind::Claim, None);
        Some(Self { tensor: tensor.clone(), not_send: PhantomData })
    }
}

impl Drop for TensorClaim {
    fn drop(&mut self) {
        if forget(&self.tensor, Kind::Claim).is_some() {
            self.tensor.pins.release_claim();
        }
    }
}

/// What a call of an operator holds of its arguments: see Note [Pinned tensors].
#[derive(Default)]
pub struct OperatorHold {
    pins: TensorPins,
    claims: SmallVec<[TensorClaim; 1]>,
}

impl OperatorHold {
    /// Pins some tensors and claims others, waiting until all of them are free. A tensor may be in both.
    pub fn acquire(pinned: &[Tensor], claimed: &[Tensor]) -> Self {
        // The tensor for which this thread has waited; newcomers let it go first.
        let mut wanted: Option<&Tensor> = None;
        loop {
            let busy = match Self::try_acquire(pinned, claimed, wanted) {
                Ok(hold) => return hold,
                Err(busy) => busy,
            };
            if let Some(tensor) = wanted.take() {
                // Others who wait for it will say so again.
                tensor.pins.unwant();
            }
            let tensor = busy.tensor;
            if busy.kind == Kind::Pin {
                wait_until(&|| tensor.pins.is_pinnable(true));
            } else {
                let own = holds(tensor, Kind::Pin);
                wait_until(&|| tensor.pins.want_claim(own));
                wanted = Some(tensor);
            }
        }
    }

    fn try_acquire<'a>(
        pinned: &'a [Tensor],
        claimed: &'a [Tensor],
        wanted: Option<&Tensor>,
    ) -> Result<Self, Busy<'a>> {
        let mut hold = Self::default();
        for tensor in claimed {
            // Once is enough for a tensor that is given twice.
            if holds(tensor, Kind::Claim) == 0 {
                let polite = !wanted.is_some_and(|wanted| wanted.is_same(tensor));
                let claim = TensorClaim::try_new(tensor, polite).ok_or(Busy { tensor, kind: Kind::Claim })?;
                hold.claims.push(claim);
            }
        }
        for tensor in pinned {
            if !try_pin(tensor, true) {
                return Err(Busy { tensor, kind: Kind::Pin });
            }
            hold.pins.0.push(TensorPin::of_pinned(tensor.clone()));
        }
        Ok(hold)
    }
}

/// A tensor that others hold, and how it was wanted.
struct Busy<'a> {
    tensor: &'a Tensor,
    kind: Kind,
}

/// While it lives, this thread holds no tensor: see Note [Pinned tensors]. Pins are taken anew in the end, claims are not.
pub struct WithoutHolds {
    lifted: Vec<Held>,
    not_send: PhantomData<*const ()>,
}

impl WithoutHolds {
    /// Lifts what this thread holds.
    #[inline]
    pub fn new() -> Self {
        let lifted = match COUNT_HELD.replace(0) {
            0 => Vec::new(),
            _ => HELD.try_with(RefCell::take).unwrap_or_default(),
        };
        for held in &lifted {
            // SAFETY: who holds a tensor keeps it alive until the hold ends, which is after this guard: the thread's
            // holds are those of calls further up its stack.
            let tensor = unsafe { &*held.tensor };
            match (held.kind, held.generation) {
                (Kind::Claim, _) => tensor.pins.release_claim(),
                (Kind::Pin, Some(generation)) => tensor.pins.remove(generation),
                (Kind::Pin, None) => {}
            }
        }
        Self { lifted, not_send: PhantomData }
    }
}

impl Default for WithoutHolds {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for WithoutHolds {
    #[inline]
    fn drop(&mut self) {
        // The storages that the tensors had are let go of: they may have been given others.
        for held in self.lifted.drain(..).filter(|held| held.kind == Kind::Pin) {
            // SAFETY: as above.
            let tensor = std::mem::ManuallyDrop::new(unsafe { Tensor::from_raw(held.tensor) });
            while !try_pin(&tensor, false) {
                wait_until(&|| tensor.pins.is_pinnable(false));
            }
        }
    }
}

impl TensorImpl {
    /// Runs `change` while no other thread uses the metadata: see Note [Pinned tensors]. `change` replaces metadata and
    /// does nothing else; what it takes out is returned, to be dropped by the caller. `op` begins the message of an error.
    ///
    /// # Errors
    ///
    /// Another thread has pinned the tensor.
    pub fn with_exclusive_metadata<R>(&self, op: &str, change: impl FnOnce() -> Result<R>) -> Result<R> {
        let interpreter = match py_interpreter() {
            Some(interpreter) if !self.pyobj.get().is_null() => interpreter,
            _ => return self.claim_and(op, change),
        };
        let (mut change, mut result) = (Some(change), None);
        interpreter.with_lock(&mut || {
            result = change.take().map(|change| self.claim_and(op, change));
        });
        result.unwrap_or_else(|| Err(Error::runtime(format!("{op}: the interpreter is shutting down"))))
    }

    fn claim_and<R>(&self, op: &str, change: impl FnOnce() -> Result<R>) -> Result<R> {
        if holds(self, Kind::Claim) != 0 {
            return change();
        }
        if !self.pins.try_claim(holds(self, Kind::Pin), false) {
            bail!(
                Runtime,
                "{op}: cannot change the sizes, strides or storage of a tensor with which another thread is computing; \
                 expected it to be used by one thread at a time"
            );
        }
        /// Gives the claim back, also when the change panics.
        struct Release<'a>(&'a PinCount);
        impl Drop for Release<'_> {
            fn drop(&mut self) {
                self.0.release_claim();
            }
        }
        let _release = Release(&self.pins);
        change()
    }
}

#[cfg(test)]
mod tests;
