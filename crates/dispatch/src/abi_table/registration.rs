//! Registration across the interface.

use std::ffi::c_void;

use abi::{AbiError, AbiKernel, AbiLibrary, AbiStr};
use c10::{check, DispatchKeySet, Error, Result};

use super::calls::{self, key_from_name};
use super::errors::{catch, take};
use crate::boxing::{KernelFunction, Stack};
use crate::dispatcher::{Library, LibraryKind, OperatorHandle};

/// An extension's kernel with its context.
pub struct ForeignKernel {
    kernel: AbiKernel,
    context: *mut c_void,
    drop_context: Option<unsafe extern "C" fn(*mut c_void)>,
}

// SAFETY: the interface asks that kernels may be called, and contexts used, from any thread.
unsafe impl Send for ForeignKernel {}
// SAFETY: as above.
unsafe impl Sync for ForeignKernel {}

impl Drop for ForeignKernel {
    fn drop(&mut self) {
        if let Some(drop_context) = self.drop_context {
            // SAFETY: the context is dropped once, when the kernel can no longer be called.
            unsafe { drop_context(self.context) }
        }
    }
}

impl ForeignKernel {
    /// Takes a kernel over.
    ///
    /// # Safety
    /// `kernel` must be callable with `context` from any thread until `drop_context` was called.
    pub unsafe fn new(
        kernel: AbiKernel,
        context: *mut c_void,
        drop_context: Option<unsafe extern "C" fn(*mut c_void)>,
    ) -> ForeignKernel {
        ForeignKernel { kernel, context, drop_context }
    }

    /// Calls the kernel; `op` is `None` for the backward function of a graph node.
    pub fn call(&self, op: Option<OperatorHandle>, keyset: DispatchKeySet, stack: &mut Stack) -> Result<()> {
        let op = op.map_or(std::ptr::null(), calls::into_raw);
        // SAFETY: the promise made to `new`; the stack is lent for the call.
        unsafe { take((self.kernel)(self.context, op, keyset.raw_repr(), std::ptr::from_mut(stack).cast())) }
    }

    fn into_kernel(self) -> KernelFunction {
        KernelFunction::from_boxed_closure(move |op, keyset, stack| self.call(Some(op), keyset, stack))
    }
}

/// # Safety
/// `raw` must be a live library that nobody else uses meanwhile.
unsafe fn library<'a>(raw: *mut AbiLibrary) -> &'a mut Library {
    // SAFETY: the caller's promise.
    unsafe { &mut *raw.cast() }
}

fn unknown_key(key: AbiStr) -> Error {
    // SAFETY: the extension's string lives through the call.
    Error::runtime(format!("{:?} is not the name of a dispatch key", unsafe { key.get() }))
}

pub(super) unsafe extern "C" fn library_new(
    kind: u32,
    namespace: AbiStr,
    out: *mut *mut AbiLibrary,
) -> *mut AbiError {
    catch(|| -> Result<()> {
        let kind = match kind {
            0 => LibraryKind::Def,
            1 => LibraryKind::Impl,
            2 => LibraryKind::Fragment,
            other => {
                check!(false, "library_new: {other} is not a kind of library");
                return Ok(());
            }
        };
        // SAFETY: the string lives through the call, and `out` is writable.
        unsafe {
            let library = Library::new(kind, namespace.get().to_owned());
            *out = Box::into_raw(Box::new(library)).cast();
        }
        Ok(())
    })
}

pub(super) unsafe extern "C" fn library_free(raw: *mut AbiLibrary) {
    // SAFETY: made by `library_new`, given back once.
    drop(unsafe { Box::from_raw(raw.cast::<Library>()) });
}

pub(super) unsafe extern "C" fn library_def(raw: *mut AbiLibrary, schema: AbiStr) -> *mut AbiError {
    // SAFETY: a live library, and a string that lives through the call.
    catch(|| unsafe { library(raw).def(schema.get(), &[]).map(|_| ()) })
}

pub(super) unsafe extern "C" fn library_impl(
    raw: *mut AbiLibrary,
    name: AbiStr,
    key: AbiStr,
    kernel: AbiKernel,
    context: *mut c_void,
    drop_context: Option<unsafe extern "C" fn(*mut c_void)>,
) -> *mut AbiError {
    // SAFETY: the interface's promise.
    let foreign = unsafe { ForeignKernel::new(kernel, context, drop_context) };
    catch(|| {
        let key = key_from_name(key).ok_or_else(|| unknown_key(key))?;
        // SAFETY: a live library, and a string that lives through the call.
        unsafe { library(raw).impl_(name.get(), key, foreign.into_kernel()) }
    })
}

pub(super) unsafe extern "C" fn library_fallback(
    raw: *mut AbiLibrary,
    key: AbiStr,
    kernel: AbiKernel,
    context: *mut c_void,
    drop_context: Option<unsafe extern "C" fn(*mut c_void)>,
) -> *mut AbiError {
    // SAFETY: the interface's promise.
    let foreign = unsafe { ForeignKernel::new(kernel, context, drop_context) };
    catch(|| {
        let key = key_from_name(key).ok_or_else(|| unknown_key(key))?;
        // SAFETY: a live library.
        unsafe { library(raw).fallback(key, foreign.into_kernel()) }
    })
}
