//! Operators across the interface.

use abi::{AbiError, AbiOp, AbiStack, AbiStr};
use c10::{
    set_tls_local_dispatch_key_set, tls_local_dispatch_key_set, DispatchKey, DispatchKeySet,
    LocalDispatchKeySet,
};

use super::errors::catch;
use super::stacks::stack_from_raw;
use crate::dispatcher::{Dispatcher, OperatorHandle};

/// An operator handle is the address of its entry, which is never freed.
pub(super) fn into_raw(op: OperatorHandle) -> *const AbiOp {
    std::ptr::from_ref(op.entry).cast()
}

/// The operator behind a handle.
///
/// # Safety
/// `raw` must be an operator of this process.
pub unsafe fn op_from_raw(raw: *const AbiOp) -> OperatorHandle {
    // SAFETY: the caller's promise.
    unsafe { from_raw(raw) }
}

/// # Safety
/// As for [`op_from_raw`].
unsafe fn from_raw(raw: *const AbiOp) -> OperatorHandle {
    // SAFETY: the caller's promise; entries are leaked.
    OperatorHandle::new(unsafe { &*raw.cast() })
}

/// The key of a name.
pub(super) fn key_from_name(name: AbiStr) -> Option<DispatchKey> {
    // SAFETY: the extension's string lives through the call.
    unsafe { name.get() }.parse().ok()
}

pub(super) unsafe extern "C" fn op_find(name: AbiStr, overload: AbiStr) -> *const AbiOp {
    // SAFETY: the extension's strings live through the call.
    let (name, overload) = unsafe { (name.get(), overload.get()) };
    Dispatcher::find_schema(name, overload).map_or(std::ptr::null(), into_raw)
}

pub(super) unsafe extern "C" fn op_name(op: *const AbiOp) -> AbiStr {
    // SAFETY: an operator of this process.
    AbiStr::new(unsafe { from_raw(op) }.entry.full_name())
}

pub(super) unsafe extern "C" fn op_arity(
    op: *const AbiOp,
    arguments: *mut usize,
    returns: *mut usize,
) -> *mut AbiError {
    catch(|| {
        // SAFETY: an operator of this process, and writable numbers.
        unsafe {
            let schema = from_raw(op).schema()?;
            *arguments = schema.arguments.len();
            *returns = schema.returns.len();
        }
        Ok(())
    })
}

pub(super) unsafe extern "C" fn op_call(op: *const AbiOp, stack: *mut AbiStack) -> *mut AbiError {
    // SAFETY: an operator of this process, and a stack that the caller lends for the call.
    catch(|| unsafe { from_raw(op).call_boxed(stack_from_raw(stack)) })
}

pub(super) unsafe extern "C" fn op_redispatch(
    op: *const AbiOp,
    keyset: u64,
    stack: *mut AbiStack,
) -> *mut AbiError {
    // SAFETY: as in `op_call`.
    catch(|| unsafe {
        from_raw(op).redispatch_boxed(DispatchKeySet::from_raw_repr(keyset), stack_from_raw(stack))
    })
}

pub(super) unsafe extern "C" fn keyset_below(key: AbiStr) -> u64 {
    key_from_name(key).map_or(0, |key| DispatchKeySet::full_after(key).raw_repr())
}

pub(super) unsafe extern "C" fn keyset_of(key: AbiStr) -> u64 {
    key_from_name(key).map_or(0, |key| DispatchKeySet::from_key(key).raw_repr())
}

pub(super) unsafe extern "C" fn keys_change(include: u64, exclude: u64, before: *mut [u64; 2]) {
    let local = tls_local_dispatch_key_set();
    // SAFETY: `before` is writable.
    unsafe { *before = [local.included.raw_repr(), local.excluded.raw_repr()] };
    set_tls_local_dispatch_key_set(LocalDispatchKeySet {
        included: local.included | DispatchKeySet::from_raw_repr(include),
        excluded: local.excluded | DispatchKeySet::from_raw_repr(exclude),
    });
}

pub(super) unsafe extern "C" fn keys_restore(before: *const [u64; 2]) {
    // SAFETY: written by `keys_change`.
    let [included, excluded] = unsafe { *before };
    set_tls_local_dispatch_key_set(LocalDispatchKeySet {
        included: DispatchKeySet::from_raw_repr(included),
        excluded: DispatchKeySet::from_raw_repr(excluded),
    });
}
