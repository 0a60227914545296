use super::super::size_class::{class_of, MAX_SMALL};
use super::super::thread_cache::ThreadCache;
use super::*;

fn heap(text: &str) -> Heap {
    Heap::with_config(Config::parse(text).unwrap())
}

/// Allocates and frees `count` blocks of a class through a cache, returning the addresses.
fn churn(heap: &Heap, cache: &mut ThreadCache, nbytes: usize, count: usize) -> Vec<*mut u8> {
    let class = class_of(nbytes);
    let blocks: Vec<_> = (0..count).map(|_| cache.allocate(heap, class).unwrap()).collect();
    for block in &blocks {
        // SAFETY: the block was just allocated with this class and is not used.
        unsafe { cache.free(heap, class, *block) };
    }
    blocks
}

fn distinct(mut blocks: Vec<*mut u8>) -> usize {
    blocks.sort_unstable();
    blocks.dedup();
    blocks.len()
}

#[test]
fn blocks_are_disjoint_aligned_and_reused() {
    let heap = heap("");
    let mut cache = ThreadCache::new(&heap);
    for nbytes in [1, 64, 65, 1000, 16 << 10, 20 << 10, MAX_SMALL] {
        let count = (4 << 20) / nbytes.max(20_000);
        let first = churn(&heap, &mut cache, nbytes, count);
        assert!(first.iter().all(|b| b.addr() % 64 == 0));
        assert_eq!(distinct(first.clone()), count);
        let reserved = heap.memory_stats().reserved_bytes.current;
        let again = churn(&heap, &mut cache, nbytes, count);
        assert_eq!(distinct([first, again].concat()), count, "{nbytes}");
        assert_eq!(heap.memory_stats().reserved_bytes.current, reserved);
    }
}

#[test]
fn emptying_the_cache_returns_all_unused_memory() {
    let heap = heap("");
    let mut cache = ThreadCache::new(&heap);
    churn(&heap, &mut cache, 100, 5000);
    churn(&heap, &mut cache, 100 << 10, 20);
    let kept = cache.allocate(&heap, class_of(100)).unwrap();
    let large = heap.take_large(3 << 20).unwrap();
    // SAFETY: unused.
    unsafe { heap.give_large(large) };
    cache.flush(&heap);
    let before = heap.memory_stats();
    let released = heap.trim(0);
    let after = heap.memory_stats();
    assert_eq!(before.reserved_bytes.current - after.reserved_bytes.current, released as u64);
    // One span is held by the block that is still in use.
    assert_eq!(after.reserved_bytes.current, SPAN_SIZE as u64);
    assert_eq!(after.allocated_bytes.current, 128);
    assert!(after.num_device_free > 0);
    // SAFETY: the block is ours and in a span that was not released.
    unsafe {
        kept.write_bytes(1, 100);
        cache.free(&heap, class_of(100), kept);
    }
    cache.flush(&heap);
    heap.trim(0);
    assert_eq!(heap.memory_stats().reserved_bytes.current, 0);
    assert_eq!(heap.cached.load(Relaxed), 0);
    // Released spans are usable again.
    churn(&heap, &mut cache, 100, 5000);
}

#[test]
fn the_limit_holds_and_cached_memory_makes_room() {
    let heap = heap("limit:8MiB");
    let mut cache = ThreadCache::new(&heap);
    let error = heap.take_large_or_retry(9 << 20).unwrap_err();
    assert_eq!(error.kind(), crate::ErrorKind::OutOfMemory);
    assert!(error.to_string().contains("you tried to allocate 9437184 bytes"), "{error}");
    assert!(error.to_string().contains("limit of 8388608 bytes"), "{error}");
    assert_eq!(heap.memory_stats().num_ooms, 1);
    // Six megabytes of free middle blocks, partly with the thread, are in the way of six in one piece.
    churn(&heap, &mut cache, 1 << 20, 6);
    cache.flush(&heap);
    let block = heap.take_large_or_retry(6 << 20).unwrap();
    assert_eq!(heap.memory_stats().num_alloc_retries, 2);
    // SAFETY: unused.
    unsafe { heap.give_large(block) };
    // And the other way round.
    let blocks: Vec<_> = (0..6).map(|_| cache.allocate(&heap, class_of(1 << 20)).unwrap()).collect();
    assert_eq!(distinct(blocks), 6);
    heap.set_limit(None);
    heap.take_large(9 << 20).unwrap();
}

#[test]
fn the_cache_keeps_to_its_cap() {
    let heap = heap("cache_max:16MiB");
    let blocks: Vec<_> = (0..10).map(|_| heap.take_large(4 << 20).unwrap()).collect();
    for block in blocks {
        // SAFETY: unused.
        unsafe { heap.give_large(block) };
        assert!(heap.cached.load(Relaxed) <= 16 << 20);
    }
    assert!(heap.cached.load(Relaxed) >= 8 << 20);
    let stats = heap.memory_stats();
    assert_eq!(stats.reserved_bytes.peak, 40 << 20);
    assert_eq!(stats.reserved_bytes.current, heap.cached.load(Relaxed) as u64);
}

#[test]
fn large_blocks_are_aligned_and_fit_similar_requests() {
    let heap = heap("");
    let block = heap.take_large(5_000_000).unwrap();
    assert_eq!(block.data.addr() % HUGE_PAGE, 0);
    let address = block.data;
    // SAFETY: unused.
    unsafe { heap.give_large(block) };
    assert_eq!(heap.take_large(4_800_000).unwrap().data, address);
    assert_eq!(heap.memory_stats().num_device_alloc, 1);
    assert!(heap.take_large(usize::MAX - 5).is_err());
    assert!(heap.take_large(1 << 60).is_err());
}

#[test]
fn locks_held_by_vanished_threads_are_replaced() {
    let heap = heap("");
    let mut cache = ThreadCache::new(&heap);
    let class = class_of(100);
    churn(&heap, &mut cache, 100, 1000);
    mem::forget(heap.classes[class].lock());
    mem::forget(heap.large.lock());
    // SAFETY: the guards were forgotten, so nobody will unlock, as after a fork.
    unsafe {
        heap.after_fork_in_child();
        heap.stats.after_fork_in_child(Some(cache.counters()));
    }
    churn(&heap, &mut cache, 100, 1000);
    assert!(heap.take_large(3 << 20).is_ok());
    assert_eq!(heap.memory_stats().allocation.current, 0);
}

#[test]
fn a_bad_setting_is_an_error_not_a_crash() {
    let heap = Heap::new();
    heap.config.get_or_init(|| Err("PTR_CPU_ALLOC_CONF: unknown setting 'x'".to_owned()));
    let error = heap.take_large(3 << 20).unwrap_err();
    assert_eq!(error.kind(), crate::ErrorKind::Value);
    assert!(heap.take_blocks(0, &mut [std::ptr::null_mut()]).is_err());
}
