//! Every call the core makes to the operating system.

use std::io;
use std::ptr;
use std::sync::atomic::AtomicU32;

use crate::{bail, Result};

/// Maps `nbytes` of zeroed private memory at a multiple of `align` (a power of two). Both are multiples of the page size.
///
/// `None` if the system refuses.
pub(crate) fn map(nbytes: usize, align: usize) -> Option<*mut u8> {
    let page = page_size();
    if align <= page {
        return map_pages(nbytes);
    }
    // Map enough to hold an aligned range, then give the ends back.
    let padded = nbytes.checked_add(align - page)?;
    let base = map_pages(padded)?;
    let head = base.align_offset(align);
    let tail = padded - head - nbytes;
    // SAFETY: head + nbytes + tail == padded, so every range is inside the mapping just made.
    unsafe {
        let data = base.add(head);
        if head != 0 {
            unmap(base, head);
        }
        if tail != 0 {
            unmap(data.add(nbytes), tail);
        }
        Some(data)
    }
}

fn map_pages(nbytes: usize) -> Option<*mut u8> {
    // SAFETY: an anonymous mapping at an address of the kernel's choice touches no existing memory.
    let data = unsafe {
        libc::mmap(
            ptr::null_mut(),
            nbytes,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    (data != libc::MAP_FAILED).then_some(data.cast())
}

/// Gives mapped memory back.
///
/// # Safety
/// The range must be part of a mapping made by `map` and no longer be used.
pub(crate) unsafe fn unmap(data: *mut u8, nbytes: usize) {
    // SAFETY: promised by the caller. Failure leaves the range mapped: a leak, nothing worse.
    unsafe { libc::munmap(data.cast(), nbytes) };
}

/// Gives the pages of a range back but keeps its addresses; reading it afterwards gives zeros.
///
/// # Safety
/// The range must be part of a mapping made by `map`, whole pages, and its contents no longer be used.
pub(crate) unsafe fn decommit(data: *mut u8, nbytes: usize) {
    // SAFETY: promised by the caller.
    unsafe { libc::madvise(data.cast(), nbytes, libc::MADV_DONTNEED) };
}

/// Asks for huge pages in a mapped range. Only advice: failure changes nothing.
///
/// # Safety
/// The range must be part of a mapping made by `map`.
pub(crate) unsafe fn advise_huge_pages(data: *mut u8, nbytes: usize) {
    #[cfg(target_os = "linux")]
    // SAFETY: promised by the caller.
    unsafe {
        libc::madvise(data.cast(), nbytes, libc::MADV_HUGEPAGE);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (data, nbytes);
}

/// Gives back to the system what the C library keeps of freed memory.
pub(crate) fn trim_heap() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: always allowed.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Bytes per page.
pub(crate) fn page_size() -> usize {
    static PAGE_SIZE: std::sync::OnceLock<usize> = std::sync::OnceLock::new();
    *PAGE_SIZE.get_or_init(|| sysconf(libc::_SC_PAGESIZE).unwrap_or(4096))
}

/// Bytes of memory in the machine, if the system says.
pub(crate) fn total_memory() -> Option<usize> {
    sysconf(libc::_SC_PHYS_PAGES)?.checked_mul(page_size())
}

fn sysconf(name: libc::c_int) -> Option<usize> {
    // SAFETY: sysconf only reads system parameters; unknown names give -1.
    let value = unsafe { libc::sysconf(name) };
    usize::try_from(value).ok().filter(|v| *v > 0)
}

/// Fills a buffer with entropy.
pub(crate) fn random_bytes(buffer: &mut [u8]) -> io::Result<()> {
    use std::io::Read;
    std::fs::File::open("/dev/urandom")?.read_exact(buffer)
}

/// Sleeps while a word has a value; may return early.
pub(crate) fn futex_wait(word: &AtomicU32, value: u32) {
    #[cfg(target_os = "linux")]
    // SAFETY: the word outlives the call; the kernel compares it and sleeps, without a timeout.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG,
            value,
            ptr::null::<libc::timespec>(),
        );
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (word, value);
        std::thread::yield_now();
    }
}

/// Wakes one thread that sleeps on a word.
pub(crate) fn futex_wake_one(word: &AtomicU32) {
    #[cfg(target_os = "linux")]
    // SAFETY: the kernel only uses the word's address, which may even be stale.
    unsafe {
        libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG, 1);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = word;
}

/// Has `prepare` called before every `fork`, on the thread that forks, and then `parent` or `child` on that same thread.
///
/// What `prepare` locks, the other two unlock: the child then finds every value whole and every lock open, whatever
/// other threads were doing. Handlers of the same process may run in any order, so their locks must not nest.
pub fn at_fork(
    prepare: unsafe extern "C" fn(),
    parent: unsafe extern "C" fn(),
    child: unsafe extern "C" fn(),
) -> Result<()> {
    // SAFETY: plain functions, which live as long as the process.
    let status = unsafe { libc::pthread_atfork(Some(prepare), Some(parent), Some(child)) };
    if status != 0 {
        let error = io::Error::from_raw_os_error(status);
        bail!(Runtime, "at_fork(): the system cannot register the handlers: {error}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_are_aligned_zeroed_and_writable() {
        let (nbytes, align) = (5 * page_size(), 2 << 20);
        let data = map(nbytes, align).unwrap();
        assert_eq!(data.addr() % align, 0);
        // SAFETY: data is a mapping of nbytes, used by nobody else.
        unsafe {
            assert_eq!(*data, 0);
            data.write_bytes(7, nbytes);
            decommit(data, nbytes);
            assert_eq!(*data.add(nbytes - 1), 0);
            unmap(data, nbytes);
        }
    }

    #[test]
    fn impossible_sizes_are_refused() {
        assert!(map(1 << 60, page_size()).is_none());
        assert!(map(usize::MAX & !(page_size() - 1), 2 << 20).is_none());
    }

    #[test]
    fn entropy_differs() {
        let (mut a, mut b) = ([0; 16], [0; 16]);
        random_bytes(&mut a).unwrap();
        random_bytes(&mut b).unwrap();
        assert_ne!(a, b);
        assert!(total_memory().unwrap() > 1 << 20);
    }
}
