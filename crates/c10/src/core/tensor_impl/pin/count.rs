//! [`PinCount`]: the word of a tensor that says who keeps its metadata as it is, and who changes it.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use crate::core::os;
use crate::py_interpreter;

/// Somebody has the right to change the metadata.
pub(super) const CLAIMED: u32 = 1 << 25;
/// Somebody waits for that right: operators that begin let it go first.
const WANTED: u32 = 1 << 24;
/// The pins that there are.
pub(super) const COUNT: u32 = WANTED - 1;
pub(super) const GENERATION_SHIFT: u32 = 26;

/// The current generation of processes, in the bits of the word where it stands. A forked child has none of its
/// parent's other threads, whose pins will never end: what is of an earlier generation does not count.
///
/// There is room for 63 forks, one inside the other. In the last generation, which its children share, nothing is
/// counted and every claim is granted: threads there order their changes themselves, as those of a Rust program do.
static GENERATION: AtomicU32 = AtomicU32::new(0);
static FORK_HANDLED: AtomicBool = AtomicBool::new(false);

unsafe extern "C" fn nothing() {}

const LAST_GENERATION: u32 = u32::MAX << GENERATION_SHIFT;

/// The generation of a child.
const fn after(generation: u32) -> u32 {
    if generation == LAST_GENERATION {
        generation
    } else {
        generation + (1 << GENERATION_SHIFT)
    }
}

unsafe extern "C" fn next_generation() {
    // The child has one thread.
    GENERATION.store(after(GENERATION.load(Ordering::Relaxed)), Ordering::Relaxed);
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
pub(crate) fn wait_until(ready: &dyn Fn() -> bool) {
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

/// What became of an attempt to pin.
pub(super) enum Pinned {
    /// Counted, in this generation.
    Counted(u32),
    /// There are more pins than can be counted, or more forks.
    Uncounted,
    /// Somebody has a claim.
    Claimed,
}

/// Pins, a claim, and the generation of processes in which they were counted.
#[derive(Default)]
pub(in super::super) struct PinCount(pub(super) AtomicU32);

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

    /// Counts a pin, unless another thread has a claim (`own_claim`: the claim is this thread's). Who is `polite`, because it
    /// has nothing that others wait for, also lets a thread go first that waits for a claim.
    #[inline]
    pub(super) fn try_add(&self, own_claim: bool, polite: bool) -> Pinned {
        self.try_add_in(generation(), own_claim, polite)
    }

    #[inline]
    fn try_add_in(&self, generation: u32, own_claim: bool, polite: bool) -> Pinned {
        if generation == LAST_GENERATION {
            return Pinned::Uncounted;
        }
        let closed = if polite { CLAIMED | WANTED } else { CLAIMED };
        let mut word = self.0.load(Ordering::Relaxed);
        loop {
            let current = Self::current(word, generation);
            if current & closed != 0 && !own_claim {
                return Pinned::Claimed;
            }
            if current & COUNT == COUNT {
                return Pinned::Uncounted;
            }
            // Acquire: what the last change has written is seen.
            match self.0.compare_exchange_weak(word, current + 1, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return Pinned::Counted(generation),
                Err(now) => word = now,
            }
        }
    }

    #[inline]
    pub(super) fn remove(&self, generation: u32) {
        if generation == GENERATION.load(Ordering::Relaxed) {
            // Release: a change comes after everything that was read.
            self.0.fetch_sub(1, Ordering::Release);
        }
    }

    /// Whether a thread with `own` pins could claim. If not, it is known from now on that one waits.
    pub(super) fn want_claim(&self, own: u32) -> bool {
        self.want_claim_in(generation(), own)
    }

    fn want_claim_in(&self, generation: u32, own: u32) -> bool {
        if generation == LAST_GENERATION {
            return true;
        }
        let word = self.0.load(Ordering::Relaxed);
        let current = Self::current(word, generation);
        if current & CLAIMED == 0 && current & COUNT <= own {
            return true;
        }
        // Lost to another change of the word, it is tried again at the next look.
        let _ = self.0.compare_exchange(word, current | WANTED, Ordering::Relaxed, Ordering::Relaxed);
        false
    }

    /// Whether a thread without a claim could pin; `polite` as for [`try_add`](Self::try_add).
    pub(super) fn is_pinnable(&self, polite: bool) -> bool {
        self.is_pinnable_in(generation(), polite)
    }

    fn is_pinnable_in(&self, generation: u32, polite: bool) -> bool {
        let closed = if polite { CLAIMED | WANTED } else { CLAIMED };
        generation == LAST_GENERATION
            || Self::current(self.0.load(Ordering::Relaxed), generation) & closed == 0
    }

    /// Claims the right to change, if there is no claim and no more than `own` pins. Who is `polite`, because it has not
    /// waited yet, lets a thread go first that has.
    pub(super) fn try_claim(&self, own: u32, polite: bool) -> bool {
        self.try_claim_in(generation(), own, polite)
    }

    fn try_claim_in(&self, generation: u32, own: u32, polite: bool) -> bool {
        if generation == LAST_GENERATION {
            return true;
        }
        let closed = if polite { CLAIMED | WANTED } else { CLAIMED };
        let mut word = self.0.load(Ordering::Relaxed);
        loop {
            let current = Self::current(word, generation);
            if current & closed != 0 || current & COUNT > own {
                return false;
            }
            // Others who wait will say so again.
            let claimed = (current | CLAIMED) & !WANTED;
            match self.0.compare_exchange_weak(word, claimed, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(now) => word = now,
            }
        }
    }

    /// Takes back that somebody waits for a claim.
    pub(super) fn unwant(&self) {
        self.0.fetch_and(!WANTED, Ordering::Relaxed);
    }

    pub(super) fn release_claim(&self) {
        self.0.fetch_and(!CLAIMED, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pins_of_an_earlier_process_do_not_count() {
        let pins = PinCount::default();
        pins.0.store((3 << GENERATION_SHIFT) + 5, Ordering::Relaxed);
        assert!(pins.want_claim(0) && pins.try_claim(0, true) && !pins.is_pinnable(false));
        pins.release_claim();
        let Pinned::Counted(generation) = pins.try_add(false, true) else { panic!("claimed") };
        assert_eq!(pins.0.load(Ordering::Relaxed) & COUNT, 1);
        pins.remove(generation);
        assert!(pins.try_claim(0, true));
    }

    #[test]
    fn forks_beyond_those_that_can_be_counted_leave_nothing_that_blocks() {
        let generations = std::iter::successors(Some(0), |&generation| Some(after(generation)));
        let generations: Vec<u32> = generations.take(200).collect();
        assert_eq!(generations[62] >> GENERATION_SHIFT, 62);
        assert!(generations[63..].iter().all(|&generation| generation == LAST_GENERATION));
        // Each process pins or claims, and its child finds neither.
        let pins = PinCount::default();
        for (depth, &generation) in generations.iter().enumerate() {
            assert!(pins.want_claim_in(generation, 0) && pins.is_pinnable_in(generation, true), "{depth}");
            if depth % 2 == 0 {
                assert!(pins.try_claim_in(generation, 0, true), "{depth}");
            } else {
                let pin = pins.try_add_in(generation, false, true);
                assert_eq!(matches!(pin, Pinned::Counted(_)), depth < 63, "{depth}");
                assert!(matches!(pin, Pinned::Counted(_) | Pinned::Uncounted));
            }
        }
        pins.release_claim();
        assert!(pins.try_claim_in(LAST_GENERATION, 0, true));
    }

    #[test]
    fn who_waits_for_a_claim_goes_first() {
        let pins = PinCount::default();
        assert!(matches!(pins.try_add(false, true), Pinned::Counted(_)));
        assert!(!pins.want_claim(0));
        assert!(matches!(pins.try_add(false, true), Pinned::Claimed));
        assert!(!pins.is_pinnable(true) && pins.is_pinnable(false));
        let Pinned::Counted(generation) = pins.try_add(false, false) else { panic!("refused") };
        pins.remove(generation);
        pins.remove(generation);
        assert!(!pins.try_claim(0, true) && pins.try_claim(0, false));
        pins.release_claim();
        assert!(matches!(pins.try_add(false, true), Pinned::Counted(_)));
    }
}
