//! Stacks across the interface.

use abi::{AbiError, AbiStack, AbiValue};
use c10::{Error, Result};

use super::errors::catch;
use super::values;
use crate::boxing::Stack;

/// The stack behind a handle.
///
/// # Safety
/// `raw` must be a live stack that nobody else uses meanwhile.
pub unsafe fn stack_from_raw<'a>(raw: *mut AbiStack) -> &'a mut Stack {
    // SAFETY: the caller's promise.
    unsafe { &mut *raw.cast::<Stack>() }
}

fn out_of_range(index: usize, len: usize) -> Error {
    Error::index(format!("stack index {index} is out of range for a stack of {len} values"))
}

pub(super) unsafe extern "C" fn stack_new() -> *mut AbiStack {
    Box::into_raw(Box::new(Stack::new())).cast()
}

pub(super) unsafe extern "C" fn stack_free(stack: *mut AbiStack) {
    // SAFETY: made by `stack_new`, given back once.
    drop(unsafe { Box::from_raw(stack.cast::<Stack>()) });
}

pub(super) unsafe extern "C" fn stack_len(stack: *const AbiStack) -> usize {
    // SAFETY: a live stack.
    unsafe { stack_from_raw(stack.cast_mut()) }.len()
}

pub(super) unsafe extern "C" fn stack_get(
    stack: *const AbiStack,
    index: usize,
    out: *mut AbiValue,
) -> *mut AbiError {
    catch(|| {
        // SAFETY: a live stack.
        let stack = unsafe { stack_from_raw(stack.cast_mut()) };
        let value = stack.get(index).ok_or_else(|| out_of_range(index, stack.len()))?;
        // SAFETY: `out` is writable.
        unsafe { *out = values::describe(value) };
        Ok(())
    })
}

pub(super) unsafe extern "C" fn stack_set(
    stack: *mut AbiStack,
    index: usize,
    value: *const AbiValue,
) -> *mut AbiError {
    catch(|| {
        // SAFETY: a live stack and a well-formed value.
        let (stack, value) = unsafe { (stack_from_raw(stack), values::read(&*value)?) };
        let len = stack.len();
        *stack.get_mut(index).ok_or_else(|| out_of_range(index, len))? = value;
        Ok(())
    })
}

pub(super) unsafe extern "C" fn stack_push(stack: *mut AbiStack, value: *const AbiValue) -> *mut AbiError {
    catch(|| {
        // SAFETY: a live stack and a well-formed value.
        unsafe { stack_from_raw(stack).push(values::read(&*value)?) };
        Ok(())
    })
}

pub(super) unsafe extern "C" fn stack_drop(stack: *mut AbiStack, count: usize) -> *mut AbiError {
    catch(|| -> Result<()> {
        // SAFETY: a live stack.
        let stack = unsafe { stack_from_raw(stack) };
        let rest = stack.len().checked_sub(count).ok_or_else(|| out_of_range(count, stack.len()))?;
        stack.truncate(rest);
        Ok(())
    })
}
