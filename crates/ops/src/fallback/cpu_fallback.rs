//! Running an operator on the CPU for a device that has no kernel of its own.

use std::ffi::c_void;

use abi::{AbiError, AbiOp, AbiStack};
use c10::{Device, DeviceType, Error, Result, Tensor};
use dispatch::abi_table::{catch, op_from_raw, stack_from_raw};
use dispatch::{IValue, OperatorHandle, ReturnAlias, Stack};

use crate::at;

/// Copies the arguments to the CPU, runs the operator there, and copies results and modified arguments back.
pub fn cpu_fallback(op: OperatorHandle, stack: &mut Stack) -> Result<()> {
    let cpu = Device::new(DeviceType::CPU, -1);
    let info = op.info()?;
    let first = stack.len().checked_sub(info.num_args).ok_or_else(|| {
        let (expected, found) = (info.num_args, stack.len());
        Error::runtime(format!("{}: expected {expected} arguments on the stack, got {found}", op.name()))
    })?;
    let arguments: Stack = stack.drain(first..).collect();
    let mut home = None;
    let mut on_cpu = Stack::new();
    for argument in &arguments {
        on_cpu.push(match argument {
            IValue::Device(device) => {
                home.get_or_insert(*device);
                cpu.into()
            }
            argument => argument.map_tensors(&mut |tensor| {
                home.get_or_insert(tensor.device());
                to_device(tensor, cpu)
            })?,
        });
    }
    let written: Vec<(usize, IValue)> = info.mutated.iter().map(|&i| (i, on_cpu[i].clone())).collect();
    op.call_boxed(&mut on_cpu)?;
    for (i, copy) in &written {
        copy_back(&arguments[*i], copy)?;
    }
    let home = home.unwrap_or(cpu);
    for (i, result) in on_cpu.iter().enumerate() {
        stack.push(match info.returns.get(i) {
            Some(&ReturnAlias::Mutated(argument)) => arguments[argument].clone(),
            _ => result.map_tensors(&mut |tensor| to_device(tensor, home))?,
        });
    }
    Ok(())
}

fn to_device(tensor: &Tensor, device: Device) -> Result<Tensor> {
    at::to_dtype_layout(tensor, None, None, Some(device), None, false, false, None)
}

/// Writes the tensors of `copy` to those of `original`, which has the same structure. An output that the operator has
/// resized is resized here too.
fn copy_back(original: &IValue, copy: &IValue) -> Result<()> {
    let mut copies = Vec::new();
    copy.for_each_tensor(&mut |tensor| copies.push(tensor.clone()));
    let mut copies = copies.iter();
    let mut result = Ok(());
    original.any_tensor(&mut |tensor| {
        if let Some(copy) = copies.next() {
            result = copy_tensor_back(tensor, copy);
        }
        result.is_err()
    });
    result
}

fn copy_tensor_back(original: &Tensor, copy: &Tensor) -> Result<()> {
    if original.sizes()? != copy.sizes()? {
        // Not with the operator `resize_`, which may itself have been sent here.
        iter::resize_output(original, copy.sizes()?)?;
    }
    at::copy_(original, copy, false)?;
    Ok(())
}

/// [`cpu_fallback`] as extensions register it.
///
/// # Safety
///
/// `op` is an operator of this process and `stack` is lent for the call.
pub unsafe extern "C" fn abi_cpu_fallback(
    _context: *mut c_void,
    op: *const AbiOp,
    _keyset: u64,
    stack: *mut AbiStack,
) -> *mut AbiError {
    // SAFETY: as the caller promises.
    catch(|| unsafe { cpu_fallback(op_from_raw(op), stack_from_raw(stack)) })
}
