use std::sync::atomic::{AtomicU8, AtomicUsize};

use super::*;
use crate::DeviceType;

fn storage(bytes: &[u8]) -> Result<Storage> {
    let storage = Storage::new(bytes.len(), get_allocator(DeviceType::CPU)?, true)?;
    // SAFETY: a fresh storage of this size.
    unsafe { storage.data_ptr().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    Ok(storage)
}

fn content(storage: &Storage) -> Vec<u8> {
    if storage.const_data().is_null() {
        return Vec::new();
    }
    // SAFETY: tests write all bytes before they read them.
    unsafe { std::slice::from_raw_parts(storage.const_data(), storage.nbytes()) }.to_vec()
}

#[test]
fn one_word() {
    assert_eq!(size_of::<Option<Storage>>(), size_of::<usize>());
}

#[test]
fn resize_keeps_content() -> Result<()> {
    let s = storage(&[1, 2, 3, 4])?;
    s.resize(2)?;
    assert_eq!(content(&s), [1, 2]);
    s.resize(1000)?;
    assert_eq!((content(&s)[..2].to_vec(), s.nbytes()), (vec![1, 2], 1000));
    s.resize(0)?;
    assert_eq!(s.nbytes(), 0);
    s.set_resizable(false);
    assert!(s.resize(8).is_err_and(|e| e.message().contains("not resizable")));
    Ok(())
}

#[test]
fn absurd_sizes_are_errors() -> Result<()> {
    let s = storage(&[1, 2])?;
    assert!(s.resize(isize::MAX as usize).is_err());
    assert_eq!(content(&s), [1, 2]);
    Ok(())
}

#[test]
fn lazy_clones_part_at_the_first_write() -> Result<()> {
    let a = storage(&[1, 2, 3])?;
    let b = a.lazy_clone();
    let c = b.lazy_clone();
    assert!(a.is_cow() && b.is_cow() && a.is_alias_of(&b) && !a.is_same(&b));
    assert_eq!(a.const_data(), c.const_data());
    // SAFETY: the storage has three bytes.
    unsafe { *b.data_ptr() = 9 };
    assert!(!b.is_cow() && !b.is_alias_of(&a));
    assert_eq!((content(&a), content(&b), content(&c)), (vec![1, 2, 3], vec![9, 2, 3], vec![1, 2, 3]));
    drop(c);
    let before = a.const_data();
    a.materialize()?;
    assert_eq!(a.const_data(), before, "the last share is taken without a copy");
    Ok(())
}

#[test]
fn lazy_clones_written_by_two_threads() -> Result<()> {
    for _ in 0..200 {
        let a = storage(&[1; 256])?;
        let b = a.lazy_clone();
        std::thread::scope(|scope| {
            for (s, value) in [(&a, 7), (&b, 8)] {
                scope.spawn(move || {
                    let data = s.data_ptr();
                    for i in 0..256 {
                        // SAFETY: the storage has 256 bytes, and after `data_ptr` they are its own.
                        unsafe { data.add(i).write(value) };
                    }
                });
            }
        });
        assert_eq!((content(&a), content(&b)), (vec![7; 256], vec![8; 256]));
    }
    Ok(())
}

#[test]
fn bytes_are_freed_with_the_last_share() {
    struct Count<'a>(&'a AtomicUsize);
    impl Drop for Count<'_> {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    static FREED: AtomicUsize = AtomicUsize::new(0);
    let mut bytes = [1_u8, 2];
    let data = DataPtr::from_owner(bytes.as_mut_ptr(), Count(&FREED), Device::CPU);
    let a = Storage::from_data_ptr(data, 2, None, false);
    let b = a.lazy_clone();
    let weak = a.weak();
    drop(a);
    assert!(weak.expired() && FREED.load(Ordering::Relaxed) == 0);
    drop(b);
    assert_eq!(FREED.load(Ordering::Relaxed), 1);
}

#[test]
fn released_when_only_weak_pointers_remain() {
    static FREED: AtomicUsize = AtomicUsize::new(0);
    struct Count;
    impl Drop for Count {
        fn drop(&mut self) {
            FREED.fetch_add(1, Ordering::Relaxed);
        }
    }
    let mut byte = 0_u8;
    let s = Storage::from_data_ptr(DataPtr::from_owner(&mut byte, Count, Device::CPU), 1, None, false);
    let weak = s.weak();
    drop(s);
    assert_eq!(FREED.load(Ordering::Relaxed), 1);
    drop(weak);
    assert_eq!(FREED.load(Ordering::Relaxed), 1);
}

/// Memory that counts in `FREED` how often such a block was freed.
fn counted(nbytes: usize, freed: &'static AtomicUsize) -> DataPtr {
    struct Block(Box<[u8]>, &'static AtomicUsize);
    impl Drop for Block {
        fn drop(&mut self) {
            self.0.fill(0xdd);
            self.1.fetch_add(1, Ordering::Relaxed);
        }
    }
    let mut block = Block(vec![1; nbytes].into(), freed);
    let data = block.0.as_mut_ptr();
    DataPtr::from_owner(data, block, Device::CPU)
}

#[test]
fn a_pin_keeps_replaced_blocks_until_the_last_one_goes() -> Result<()> {
    static FREED: AtomicUsize = AtomicUsize::new(0);
    let s = Storage::from_data_ptr(counted(16, &FREED), 16, None, true);
    let (first, second) = (s.pin(), s.pin());
    let old = s.const_data();
    s.resize(64)?;
    assert!(s.const_data() != old && s.nbytes() == 64);
    // SAFETY: pinned bytes, which nobody writes.
    assert_eq!(unsafe { std::slice::from_raw_parts(old, 16) }, [1; 16]);
    drop(first);
    assert_eq!(FREED.load(Ordering::Relaxed), 0);
    // SAFETY: the block has 16 bytes, and no tensor uses this storage.
    let replaced = unsafe { s.set_data_ptr(counted(16, &FREED), 16)? };
    assert!(replaced.is_none(), "a pinned block is not given away");
    drop(second);
    assert_eq!(FREED.load(Ordering::Relaxed), 1);
    s.resize(32)?;
    assert_eq!(FREED.load(Ordering::Relaxed), 2, "without a pin a block is freed at once");
    Ok(())
}

#[test]
fn a_pinned_block_stays_where_it_is() -> Result<()> {
    let s = storage(&[5; 4096])?;
    let pin = s.pin();
    let block = s.const_data();
    s.resize(2)?;
    assert_eq!((s.nbytes(), s.const_data()), (2, block));
    // SAFETY: a pinned block keeps its size.
    assert_eq!(unsafe { *block.add(4095) }, 5);
    drop(pin);
    assert_eq!(s.const_data(), block, "whoever drops the last pin moves nothing");
    s.resize(3)?;
    assert_ne!(s.const_data(), block);
    assert_eq!(content(&s)[..2], [5, 5]);
    Ok(())
}

#[test]
fn a_pin_keeps_its_storage() {
    static FREED: AtomicUsize = AtomicUsize::new(0);
    let s = Storage::from_data_ptr(counted(8, &FREED), 8, None, true);
    let pin = s.pin();
    drop(s);
    assert_eq!(content(pin.storage()), [1; 8]);
    drop(pin);
    assert_eq!(FREED.load(Ordering::Relaxed), 1);
}

#[test]
fn kernels_on_pinned_bytes_survive_resizes_of_other_threads() -> Result<()> {
    const ROUNDS: usize = 500;
    let s = storage(&[7; 1 << 12])?;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0..ROUNDS {
                s.resize([1 << 12, 1 << 14, 16, 1 << 13][round % 4]).unwrap();
            }
        });
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..ROUNDS {
                    let pin = s.pin();
                    // As an iterator does: the size is checked first, the address taken later.
                    let nbytes = pin.storage().nbytes();
                    std::thread::yield_now();
                    let data = pin.storage().data_ptr();
                    for i in (0..nbytes).step_by(512) {
                        // SAFETY: pinned, and inside the size that was read after pinning.
                        unsafe { AtomicU8::from_ptr(data.add(i)) }.store(7, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    s.resize(16)?;
    assert_eq!(content(&s), [7; 16]);
    Ok(())
}

#[test]
fn a_size_cannot_exceed_its_block() -> Result<()> {
    let s = storage(&[1, 2, 3, 4])?;
    s.set_nbytes(2)?;
    s.set_nbytes(4)?;
    assert!(s.set_nbytes(5).is_err_and(|e| e.message().contains("at most 4 bytes")));
    assert_eq!(s.nbytes(), 4);
    let meta = Storage::new(4, get_allocator(DeviceType::Meta)?, true)?;
    meta.set_nbytes(1 << 20)?;
    assert_eq!(meta.nbytes(), 1 << 20);
    Ok(())
}

#[test]
fn a_child_forked_while_others_hold_locks_can_use_every_storage() -> Result<()> {
    use std::sync::atomic::AtomicBool;
    let stop = AtomicBool::new(false);
    let storages: Vec<Storage> = (0..256).map(|_| storage(&[3; 8])).collect::<Result<_>>()?;
    let failed = std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    storages.iter().for_each(|s| drop(s.pin()));
                }
            });
        }
        let failed =
            (0..50).filter(|_| !child_succeeds(|| storages.iter().for_each(|s| drop(s.pin())))).count();
        stop.store(true, Ordering::Relaxed);
        failed
    });
    assert_eq!(failed, 0);
    Ok(())
}

/// Whether a forked child finishes `f`. One that hangs is killed by its alarm.
fn child_succeeds(f: impl FnOnce()) -> bool {
    // SAFETY: the child only runs `f`, which takes locks that the fork handlers have opened, and leaves without
    // running anything of the test harness.
    unsafe {
        let pid = libc::fork();
        if pid == 0 {
            libc::alarm(5);
            f();
            libc::_exit(0);
        }
        let mut status = -1;
        pid > 0 && libc::waitpid(pid, &mut status, 0) == pid && status == 0
    }
}
