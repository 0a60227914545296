//! The engine's warnings as Python warnings.
//!
//! A kernel may warn from any thread, without the interpreter's lock, and cannot raise. So warnings are kept until the
//! operator call that caused them is back in Python: there a warning that the user turned into an error can be raised.

use std::ffi::CString;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use pyo3::ffi;

use crate::raw::{Raised, Res};

static HAS_PENDING: AtomicBool = AtomicBool::new(false);
static PENDING: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Keeps a warning for [`emit_pending`]. This is the handler given to the crates below.
pub(crate) fn handler(message: &str) {
    PENDING.lock().push(message.to_owned());
    HAS_PENDING.store(true, Ordering::Release);
}

/// Issues what has been kept. Called at the end of operator calls.
#[inline]
pub(crate) fn emit_pending() -> Res<()> {
    if HAS_PENDING.load(Ordering::Relaxed) {
        emit_all()
    } else {
        Ok(())
    }
}

#[cold]
fn emit_all() -> Res<()> {
    HAS_PENDING.store(false, Ordering::Release);
    let messages = std::mem::take(&mut *PENDING.lock());
    messages.iter().try_for_each(|message| warn(message))
}

/// Issues a `UserWarning` at the line of Python that runs.
#[cold]
pub(crate) fn warn(message: &str) -> Res<()> {
    let text = CString::new(message.replace('\0', " ")).unwrap_or_default();
    // SAFETY: the callers hold the interpreter's lock; the text is a C string.
    if unsafe { ffi::PyErr_WarnEx(ffi::PyExc_UserWarning, text.as_ptr(), 1) } < 0 {
        // SAFETY: the warning was turned into an exception, which is set.
        return Err(unsafe { Raised::already_set() });
    }
    Ok(())
}
