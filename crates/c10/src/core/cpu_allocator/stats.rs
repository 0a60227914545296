//! Statistics that cost an allocation about a nanosecond.
//!
//! Note `[Allocator statistics]`: each thread counts in a record that only it writes, so counting is plain loads and stores. What
//! the heap needs as one number, the bytes in use and their peak, is brought up to date when a thread's share has
//! changed by more than `FLUSH_BYTES`, and whenever somebody asks. Between updates a thread also keeps the highest
//! value its share had, so with one thread the peak is exact; with n threads it is within n * FLUSH_BYTES above the
//! truth. The peak of the number of blocks is taken at the same moments only.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::sync::Arc;

use crate::core::allocator::Stat;
use crate::core::fork_safe_mutex::ForkSafeMutex;

/// By how much a thread's share may differ from what the heap knows.
const FLUSH_BYTES: i64 = 64 << 10;

/// One thread's counts. Only its thread writes; anybody may read.
#[derive(Default, Debug)]
pub(super) struct ThreadCounters {
    allocs: AtomicU64,
    frees: AtomicU64,
    bytes_allocated: AtomicU64,
    bytes_freed: AtomicU64,
    /// Bytes allocated minus freed, as of the last flush. Negative in threads that free what others allocated.
    flushed: AtomicI64,
    /// The highest value of bytes allocated minus freed since the last flush.
    high: AtomicI64,
    /// Allocs minus frees, as of the last flush.
    flushed_count: AtomicI64,
}

/// Adds without a locked instruction: for counters with one writer.
#[inline(always)]
fn add(counter: &AtomicU64, amount: u64) -> u64 {
    let sum = counter.load(Relaxed).wrapping_add(amount);
    counter.store(sum, Relaxed);
    sum
}

impl ThreadCounters {
    fn net_bytes(&self) -> i64 {
        self.bytes_allocated.load(Relaxed).wrapping_sub(self.bytes_freed.load(Relaxed)) as i64
    }

    fn net_count(&self) -> i64 {
        self.allocs.load(Relaxed).wrapping_sub(self.frees.load(Relaxed)) as i64
    }

    /// Counts an allocation; only on the thread that owns the record.
    #[inline(always)]
    pub(super) fn record_alloc(&self, nbytes: usize, stats: &HeapStats) {
        add(&self.allocs, 1);
        let net =
            add(&self.bytes_allocated, nbytes as u64).wrapping_sub(self.bytes_freed.load(Relaxed)) as i64;
        if net > self.high.load(Relaxed) {
            self.high.store(net, Relaxed);
        }
        if net - self.flushed.load(Relaxed) > FLUSH_BYTES {
            stats.flush(self);
        }
    }

    /// Counts a free; only on the thread that owns the record.
    #[inline(always)]
    pub(super) fn record_free(&self, nbytes: usize, stats: &HeapStats) {
        add(&self.frees, 1);
        let freed = add(&self.bytes_freed, nbytes as u64);
        let net = self.bytes_allocated.load(Relaxed).wrapping_sub(freed) as i64;
        if net - self.flushed.load(Relaxed) < -FLUSH_BYTES {
            stats.flush(self);
        }
    }
}

/// The heap's counts.
#[derive(Default, Debug)]
pub(super) struct HeapStats {
    /// The records of living threads.
    threads: ForkSafeMutex<Vec<Arc<ThreadCounters>>>,
    /// What ended threads counted, and allocations by threads that are ending.
    retired: ThreadCounters,
    /// Bytes in use, as far as threads have told.
    current_bytes: AtomicI64,
    peak_bytes: AtomicI64,
    current_count: AtomicI64,
    peak_count: AtomicI64,
}

impl HeapStats {
    pub(super) const fn new() -> HeapStats {
        HeapStats {
            threads: ForkSafeMutex::new(Vec::new()),
            retired: ThreadCounters {
                allocs: AtomicU64::new(0),
                frees: AtomicU64::new(0),
                bytes_allocated: AtomicU64::new(0),
                bytes_freed: AtomicU64::new(0),
                flushed: AtomicI64::new(0),
                high: AtomicI64::new(0),
                flushed_count: AtomicI64::new(0),
            },
            current_bytes: AtomicI64::new(0),
            peak_bytes: AtomicI64::new(0),
            current_count: AtomicI64::new(0),
            peak_count: AtomicI64::new(0),
        }
    }

    /// A record for a new thread.
    pub(super) fn register_thread(&self) -> Arc<ThreadCounters> {
        let counters = Arc::new(ThreadCounters::default());
        self.threads.lock().push(counters.clone());
        counters
    }

    /// Takes over the counts of a thread that ends.
    pub(super) fn retire_thread(&self, counters: &Arc<ThreadCounters>) {
        self.flush(counters);
        let mut threads = self.threads.lock();
        self.fold(counters);
        threads.retain(|other| !Arc::ptr_eq(other, counters));
    }

    fn fold(&self, counters: &ThreadCounters) {
        let retired = &self.retired;
        retired.allocs.fetch_add(counters.allocs.load(Relaxed), Relaxed);
        retired.frees.fetch_add(counters.frees.load(Relaxed), Relaxed);
        retired.bytes_allocated.fetch_add(counters.bytes_allocated.load(Relaxed), Relaxed);
        retired.bytes_freed.fetch_add(counters.bytes_freed.load(Relaxed), Relaxed);
    }

    /// Tells the heap a thread's share; only on that thread.
    #[cold]
    fn flush(&self, counters: &ThreadCounters) {
        let net = counters.net_bytes();
        let flushed = counters.flushed.load(Relaxed);
        let before = self.current_bytes.fetch_add(net - flushed, Relaxed);
        let high = counters.high.load(Relaxed).max(net);
        self.peak_bytes.fetch_max(before + high - flushed, Relaxed);
        counters.flushed.store(net, Relaxed);
        counters.high.store(net, Relaxed);

        let count = counters.net_count();
        let delta = count - counters.flushed_count.load(Relaxed);
        counters.flushed_count.store(count, Relaxed);
        self.peak_count.fetch_max(self.current_count.fetch_add(delta, Relaxed) + delta, Relaxed);
    }

    /// Counts an allocation of a thread that has no record any more.
    pub(super) fn record_alloc_orphan(&self, nbytes: usize) {
        self.retired.allocs.fetch_add(1, Relaxed);
        self.retired.bytes_allocated.fetch_add(nbytes as u64, Relaxed);
        let after = self.current_bytes.fetch_add(nbytes as i64, Relaxed) + nbytes as i64;
        self.peak_bytes.fetch_max(after, Relaxed);
        self.current_count.fetch_add(1, Relaxed);
    }

    /// Counts a free of a thread that has no record any more.
    pub(super) fn record_free_orphan(&self, nbytes: usize) {
        self.retired.frees.fetch_add(1, Relaxed);
        self.retired.bytes_freed.fetch_add(nbytes as u64, Relaxed);
        self.current_bytes.fetch_sub(nbytes as i64, Relaxed);
        self.current_count.fetch_sub(1, Relaxed);
    }

    /// The peak of bytes in use, as far as threads have told: what cache policy goes by.
    pub(super) fn peak_bytes_known(&self) -> usize {
        usize::try_from(self.peak_bytes.load(Relaxed)).unwrap_or(0)
    }

    /// Blocks in use and bytes in use.
    pub(super) fn snapshot(&self) -> (Stat, Stat) {
        let threads = self.threads.lock();
        let sum = |field: fn(&ThreadCounters) -> &AtomicU64| {
            threads.iter().fold(field(&self.retired).load(Relaxed), |total, counters| {
                total.wrapping_add(field(counters).load(Relaxed))
            })
        };
        let blocks = (sum(|c| &c.allocs), sum(|c| &c.frees));
        let bytes = (sum(|c| &c.bytes_allocated), sum(|c| &c.bytes_freed));
        // Each thread's highest share since its last flush, on top of what is known.
        let unflushed: i64 =
            threads.iter().map(|c| c.high.load(Relaxed).max(c.net_bytes()) - c.flushed.load(Relaxed)).sum();
        self.peak_bytes.fetch_max(self.current_bytes.load(Relaxed) + unflushed, Relaxed);
        // Reads of other threads' counters are not one instant; a free may be seen before its allocation.
        let current = |(allocated, freed): (u64, u64)| allocated.saturating_sub(freed);
        self.peak_count.fetch_max(current(blocks) as i64, Relaxed);
        let stat = |totals: (u64, u64), peak: &AtomicI64| Stat {
            current: current(totals),
            peak: u64::try_from(peak.load(Relaxed)).unwrap_or(0).max(current(totals)),
            allocated: totals.0,
            freed: totals.1,
        };
        (stat(blocks, &self.peak_count), stat(bytes, &self.peak_bytes))
    }

    /// Makes the present values the peaks.
    pub(super) fn reset_peak(&self) {
        let (blocks, bytes) = self.snapshot();
        for counters in self.threads.lock().iter() {
            // A racing thread may store its own value; that is as good.
            counters.high.store(counters.net_bytes(), Relaxed);
        }
        self.peak_count.store(blocks.current as i64, Relaxed);
        self.peak_bytes.store(bytes.current as i64, Relaxed);
    }

    /// In a forked child: no thread but `own` exists, and the lock may be held by one that does not.
    ///
    /// # Safety
    /// Only in a forked child, before it starts threads.
    pub(super) unsafe fn after_fork_in_child(&self, own: Option<&Arc<ThreadCounters>>) {
        // SAFETY: passed on.
        unsafe { self.threads.reset_after_fork() };
        let known = std::mem::take(&mut *self.threads.lock());
        for counters in known {
            if !own.is_some_and(|own| Arc::ptr_eq(own, &counters)) {
                self.flush(&counters);
                self.fold(&counters);
            }
        }
        self.threads.lock().extend(own.cloned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_threads_peak_is_exact() {
        let stats = HeapStats::new();
        let thread = stats.register_thread();
        for size in [64, 1000, 70_000, 10] {
            thread.record_alloc(size, &stats);
        }
        thread.record_free(70_000, &stats);
        thread.record_alloc(5, &stats);
        let (blocks, bytes) = stats.snapshot();
        assert_eq!(bytes, Stat { current: 1079, peak: 71_074, allocated: 71_079, freed: 70_000 });
        assert_eq!((blocks.current, blocks.allocated, blocks.freed), (4, 5, 1));
        stats.reset_peak();
        assert_eq!(stats.snapshot().1.peak, 1079);
        thread.record_alloc(1, &stats);
        thread.record_free(1, &stats);
        assert_eq!(stats.snapshot().1.peak, 1080);
    }

    #[test]
    fn ended_threads_leave_their_counts() {
        let stats = HeapStats::new();
        let producer = stats.register_thread();
        let consumer = stats.register_thread();
        producer.record_alloc(100, &stats);
        stats.retire_thread(&producer);
        consumer.record_free(100, &stats);
        stats.record_alloc_orphan(30);
        stats.record_free_orphan(30);
        stats.retire_thread(&consumer);
        let (blocks, bytes) = stats.snapshot();
        assert_eq!((bytes.current, bytes.allocated, bytes.freed), (0, 130, 130));
        assert_eq!(blocks.current, 0);
        assert_eq!(bytes.peak, 130);
        assert_eq!(stats.current_bytes.load(Relaxed), 0);
        assert_eq!(stats.current_count.load(Relaxed), 0);
    }
}
