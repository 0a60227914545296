//! Keeping a tensor's metadata as it is while somebody computes with it.
//!
//! # Note [Pinned tensors]
//!
//! Metadata is read without locks (Note [Exclusive logical access]), and Python programs are ordered by the interpreter's
//! lock. Large operators and the backward pass run without that lock. They hold a [`TensorPin`] for each tensor that
//! Python code can reach, which also pins its storage (Note [Pinned storages]). Whoever changes metadata does it through
//! [`TensorImpl::with_exclusive_metadata`]:
//!
//! * a tensor that has a PyObject changes under the interpreter's lock, because who holds the lock reads without a pin;
//! * it changes when no other thread has it pinned. The caller waits, without the interpreter's lock. A thread that has
//!   pins itself could wait for one that waits for it: it gets an error instead. Its own pins of this tensor do not count:
//!   an operator may give new sizes to its own output.
//!
//! A pin never waits for another pin, and waits for a change without the interpreter's lock, so nothing here can lock up.
//!
//! A forked child has none of the parent's other threads, whose pins will never end. The word therefore says in
//! which generation of processes it was written; of an earlier one nothing counts.

use std::borrow::Borrow;
use std::cell::RefCell;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use crate::core::os;
use crate::core::tensor_impl::TensorImpl;
use crate::{bail, py_interpreter, Error, Result, Storage, StoragePin, Tensor};

/// Somebody changes the metadata.
const CHANGING: u32 = 1 << 25;
/// The pins that there are.
const COUNT: u32 = CHANGING - 1;
const GENERATION_SHIFT: u32 = 26;

/// The current generation, in the bits of the word where it stands.
static GENERATION: AtomicU32 = AtomicU32::new(0);
static FORK_HANDLED: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// What this thread has pinned, latest last.
    static PINNED: RefCell<Vec<*const TensorImpl>> = const { RefCell::new(Vec::new()) };
}

unsafe extern "C" fn nothing() {}

unsafe extern "C" fn next_generation() {
    GENERATION.fetch_add(1 << GENERATION_SHIFT, Ordering::Relaxed);
}

#[inline]
fn generation() -> u32 {
    if !FORK_HANDLED.load(Ordering::Relaxed) {
        handle_fork();
    }
    GENERATION.load(Ordering::Relaxed)
}

#[cold]
fn handle_fork() {
    if !FORK_HANDLED.swap(true, Ordering::Relaxed) {
        // Without memory for the handler a child may wait for a pin of its parent: no worse than any lock.
        let _ = os::at_fork(nothing, nothing, next_generation);
    }
}

/// Sleeps, without the interpreter's lock, until `ready`.
#[cold]
fn wait_until(ready: &dyn Fn() -> bool) {
    let mut wait = || {
        let mut pause = Duration::from_micros(10);
        while !ready() {
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(1));
        }
    };
    match py_interpreter() {
        Some(interpreter) => interpreter.without_lock(&mut wait),
        None => wait(),
    }
}

/// The pins of one tensor, and whether its metadata is being changed.
#[derive(Default)]
pub(super) struct PinCount(AtomicU32);

impl PinCount {
    /// What counts of a word: nothing if it is of an earlier generation.
    #[inline]
    fn current(word: u32, generation: u32) -> u32 {
        if (word ^ generation) >> GENERATION_SHIFT == 0 {
            word
        } else {
            generation
        }
    }

    /// Counts a pin, and returns its generation; `None` if there are more than can be counted.
    #[inline]
    fn add(&self) -> Option<u32> {
        let generation = generation();
        let mut word = self.0.load(Ordering::Relaxed);
        loop {
            let current = Self::current(word, generation);
            if current & CHANGING != 0 {
                wait_until(&|| self.0.load(Ordering::Relaxed) & CHANGING == 0);
                word = self.0.load(Ordering::Relaxed);
                continue;
            }
            if current & COUNT == COUNT {
                return None;
            }
            // Acquire: what the last change has written is seen.
            match self.0.compare_exchange_weak(word, current + 1, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return Some(generation),
                Err(now) => word = now,
            }
        }
    }

    #[inline]
    fn remove(&self, generation: u32) {
        if generation == GENERATION.load(Ordering::Relaxed) {
            // Release: a change comes after everything that was read.
            self.0.fetch_sub(1, Ordering::Release);
        }
    }

    /// Claims the right to change, if no more than `own` pins are there.
    fn try_claim(&self, own: u32) -> bool {
        let generation = generation();
        let word = self.0.load(Ordering::Relaxed);
        let current = Self::current(word, generation);
        current & CHANGING == 0
            && current & COUNT <= own
            && self.0.compare_exchange(word, current | CHANGING, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    fn release_claim(&self) {
        self.0.fetch_and(!CHANGING, Ordering::Release);
    }
}

/// Gives a claim back, also when the change panics.
struct Claim<'a>(&'a PinCount);

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        self.0.release_claim();
    }
}

/// Keeps a tensor's metadata and the bytes of its storage as they are: see Note [Pinned tensors].
///
/// It ends on the thread where it began; the latest pin of a thread should end first.
#[must_use = "the tensor is pinned only while the pin lives"]
pub struct TensorPin<T: Borrow<Tensor> = Tensor> {
    tensor: T,
    /// `None`: the pin could not be counted.
    generation: Option<u32>,
    storage: Option<StoragePin>,
    not_send: PhantomData<*const ()>,
}

impl<T: Borrow<Tensor>> TensorPin<T> {
    /// Pins a tensor, waiting for a change that is under way.
    #[inline]
    pub fn new(tensor: T) -> Self {
        let pinned: &Tensor = tensor.borrow();
        let generation = pinned.pins.add();
        let address = pinned.as_ptr();
        // A thread that ends has no operators to run: nothing asks for its pins.
        let _ = PINNED.try_with(|pinned| pinned.borrow_mut().push(address));
        // The storage is read only now that nobody replaces it. Tensors without memory have none to keep.
        let storage = pinned.storage().ok().map(Storage::pin);
        Self { tensor, generation, storage, not_send: PhantomData }
    }
}

impl<T: Borrow<Tensor>> Drop for TensorPin<T> {
    #[inline]
    fn drop(&mut self) {
        self.storage = None;
        let tensor: &Tensor = self.tensor.borrow();
        let address = tensor.as_ptr();
        let _ = PINNED.try_with(|pinned| {
            let mut pinned = pinned.borrow_mut();
            if let Some(at) = pinned.iter().rposition(|&other| other == address) {
                pinned.remove(at);
            }
        });
        if let Some(generation) = self.generation {
            tensor.pins.remove(generation);
        }
    }
}

/// Many pins, which end in the order that is cheap: the latest first.
#[derive(Default)]
pub struct TensorPins(smallvec::SmallVec<[TensorPin; 4]>);

impl TensorPins {
    /// Pins one more tensor.
    #[inline]
    pub fn add(&mut self, tensor: &Tensor) {
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

impl TensorImpl {
    /// Runs `change` while no other thread uses the metadata: see Note [Pinned tensors]. `change` replaces metadata and
    /// does nothing else; what it takes out is returned, to be dropped by the caller. `op` begins the message of an error.
    ///
    /// # Errors
    ///
    /// Another thread has pinned the tensor, and this thread, which has pins as well, cannot wait for it.
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
        let (all, own) = PINNED
            .try_with(|pinned| {
                let pinned = pinned.borrow();
                let this: *const TensorImpl = self;
                (pinned.len(), pinned.iter().filter(|&&other| std::ptr::eq(other, this)).count())
            })
            .unwrap_or((0, 0));
        let own = u32::try_from(own).unwrap_or(COUNT);
        if !self.pins.try_claim(own) {
            if all != 0 {
                bail!(
                    Runtime,
                    "{op}: cannot change the sizes, strides or storage of a tensor with which another thread is \
                     computing; expected it to be used by one thread at a time"
                );
            }
            // Claimed in the wait, so that no pin comes between.
            wait_until(&|| self.pins.try_claim(own));
        }
        let _claim = Claim(&self.pins);
        change()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::thread;

    use super::*;
    use crate::{Device, DispatchKey, DispatchKeySet, ScalarType};

    fn tensor() -> Tensor {
        let keys = DispatchKeySet::from_key(DispatchKey::CPU);
        Tensor::from(TensorImpl::new(None, keys, ScalarType::Float, Device::CPU))
    }

    fn change(tensor: &Tensor) -> Result<()> {
        tensor.with_exclusive_metadata("resize_()", || Ok(()))
    }

    #[test]
    fn own_pins_do_not_keep_from_changing() {
        let (x, y) = (tensor(), tensor());
        let mut pins = TensorPins::default();
        [&x, &y, &x].into_iter().for_each(|t| pins.add(t));
        change(&x).unwrap();
        drop(pins);
        assert_eq!(x.pins.0.load(Ordering::Relaxed) & (COUNT | CHANGING), 0);
        PINNED.with(|pinned| assert!(pinned.borrow().is_empty()));
    }

    #[test]
    fn a_change_waits_for_the_pins_of_others() {
        let x = tensor();
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            let pin = TensorPin::new(&x);
            let changer = scope.spawn(|| {
                change(&x).unwrap();
                assert!(done.load(Ordering::Acquire));
            });
            thread::sleep(Duration::from_millis(5));
            done.store(true, Ordering::Release);
            drop(pin);
            changer.join().unwrap();
        });
    }

    #[test]
    fn who_has_pins_does_not_wait() {
        let (x, y) = (tensor(), tensor());
        thread::scope(|scope| {
            let pin = TensorPin::new(&x);
            let changer = scope.spawn(|| {
                let _other = TensorPin::new(&y);
                change(&x).unwrap_err().to_string()
            });
            let error = changer.join().unwrap();
            assert!(error.contains("another thread is computing"), "{error}");
            drop(pin);
        });
    }

    #[test]
    fn changes_and_pins_never_overlap() {
        let x = tensor();
        let (pinned, changing) = (AtomicUsize::new(0), AtomicUsize::new(0));
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for _ in 0..500 {
                        let _pin = TensorPin::new(&x);
                        pinned.fetch_add(1, Ordering::SeqCst);
                        assert_eq!(changing.load(Ordering::SeqCst), 0);
                        pinned.fetch_sub(1, Ordering::SeqCst);
                    }
                });
                scope.spawn(|| {
                    for _ in 0..500 {
                        x.with_exclusive_metadata("set_()", || {
                            assert_eq!(changing.fetch_add(1, Ordering::SeqCst), 0);
                            assert_eq!(pinned.load(Ordering::SeqCst), 0);
                            changing.fetch_sub(1, Ordering::SeqCst);
                            Ok(())
                        })
                        .unwrap();
                    }
                });
            }
        });
    }

    #[test]
    fn pins_of_an_earlier_process_do_not_count() {
        let pins = PinCount::default();
        pins.0.store((3 << GENERATION_SHIFT) + 5, Ordering::Relaxed);
        assert!(pins.try_claim(0));
        pins.release_claim();
        let generation = pins.add().unwrap();
        assert_eq!(pins.0.load(Ordering::Relaxed) & COUNT, 1);
        pins.remove(generation);
        assert!(pins.try_claim(0));
    }
}
