//! Running an operator on the CPU for a device that has no kernel of its own.

use std::ffi::c_void;

use abi::{AbiError, AbiOp, AbiStack};
use c10::{Device, DeviceType, Layout, MemoryFormat, Result, ScalarType, Tensor};
use dispatch::abi_table::{catch, stack_from_raw};
use dispatch::{Dispatcher, IValue, OperatorHandle, Stack, TypedOp};

type ToArgs = (Tensor, Option<ScalarType>, Option<Layout>, Option<Device>, Option<bool>, bool, bool, Option<MemoryFormat>);
static TO: TypedOp<ToArgs, Tensor> = TypedOp::new("aten::to", "dtype_layout");
static COPY_: TypedOp<(Tensor, Tensor, bool), Tensor> = TypedOp::new("aten::copy_", "");

fn to_device(tensor: &Tensor, device: Device) -> Result<Tensor> {
    TO.call((tensor, None, None, Some(device), None, false, false, None))
}

/// Applies `f` to every tensor of a value.
fn map_tensors(value: &IValue, f: &mut dyn FnMut(&Tensor) -> Result<Tensor>) -> Result<IValue> {
    Ok(match value {
        IValue::Tensor(t) => f(t)?.into(),
        IValue::TensorList(list) => IValue::TensorList(list.iter().map(f).collect::<Result<_>>()?),
        IValue::OptionalTensorList(list) => IValue::OptionalTensorList(
            list.iter().map(|t| t.as_ref().map(&mut *f).transpose()).collect::<Result<_>>()?,
        ),
        other => other.clone(),
    })
}

/// Copies the arguments to the CPU, runs the operator there, and copies results and modified arguments back.
fn run(op: OperatorHandle, stack: &mut Stack) -> Result<()> {
    let cpu = Device::new(DeviceType::CPU, -1);
    let schema = op.schema()?;
    let first = stack.len() - schema.arguments.len().min(stack.len());
    let arguments: Stack = stack.drain(first..).collect();
    let mut home = None;
    let mut on_cpu = arguments
        .iter()
        .map(|value| {
            map_tensors(value, &mut |tensor| {
                home.get_or_insert(tensor.device());
                to_device(tensor, cpu)
            })
        })
        .collect::<Result<Stack>>()?;
    for value in &mut on_cpu {
        if let IValue::Device(device) = value {
            home.get_or_insert(*device);
            *device = cpu;
        }
    }
    let moved = on_cpu.clone();
    op.call_boxed(&mut on_cpu)?;
    for ((argument, original), copy) in schema.arguments.iter().zip(&arguments).zip(&moved) {
        if let (true, IValue::Tensor(original), IValue::Tensor(copy)) = (argument.is_write(), original, copy) {
            COPY_.call((original, copy, false))?;
        }
    }
    let home = home.unwrap_or(cpu);
    for (i, result) in on_cpu.iter().enumerate() {
        let modified = schema.alias_of_return(i).filter(|&a| schema.arguments[a].is_write());
        stack.push(match modified {
            Some(argument) => arguments[argument].clone(),
            None => map_tensors(result, &mut |tensor| to_device(tensor, home))?,
        });
    }
    Ok(())
}

/// The kernel, as extensions register it.
///
/// # Safety
///
/// `op` is an operator of this process and `stack` is lent for the call.
pub(crate) unsafe extern "C" fn cpu_fallback(
    _context: *mut c_void,
    op: *const AbiOp,
    _keyset: u64,
    stack: *mut AbiStack,
) -> *mut AbiError {
    catch(|| {
        // SAFETY: as the caller promises.
        let (name, stack) = unsafe { ((crate::abi_capsule::table().op_name)(op).get().to_owned(), stack_from_raw(stack)) };
        let (base, overload) = name.split_once('.').unwrap_or((&name, ""));
        run(Dispatcher::find_schema_or_err(base, overload)?, stack)
    })
}
