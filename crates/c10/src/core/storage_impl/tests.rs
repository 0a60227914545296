use std::sync::atomic::AtomicUsize;

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
