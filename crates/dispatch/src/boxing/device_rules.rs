//! What holds around a backend's kernel, whatever it computes: its tensors are on one device, and that one is current.

use c10::{Device, DeviceGuard, DispatchKeySet, Error, Result};

use super::arg_tuple::ArgTuple;
use crate::dispatcher::OperatorHandle;

/// What is done before a kernel of a backend with several devices runs. Kernels need not do it themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceRules {
    /// All tensors must be on one device.
    pub check: bool,
    /// The device of the first tensor, or the one that a factory asks for, is current while the kernel runs.
    pub guard: bool,
}

impl DeviceRules {
    /// Checks the devices of the arguments and makes the common one current until the guard is dropped.
    pub(crate) fn enter<A: ArgTuple>(
        self,
        op: OperatorHandle,
        keyset: DispatchKeySet,
        args: A::Refs<'_>,
    ) -> Result<Option<DeviceGuard>> {
        let mut common: Option<Device> = None;
        // Numbers and indices may be on the host: it is no device to make current.
        let mut current: Option<Device> = None;
        let mut stray: Option<(usize, Device)> = None;
        A::for_each_device(args, &mut |position, device| {
            if current.is_none() && !device.is_cpu() {
                current = Some(device);
            }
            match common {
                None => common = Some(device),
                Some(first) if first != device && stray.is_none() => stray = Some((position, device)),
                Some(_) => {}
            }
        });
        if let (true, Some((position, device)), Some(first)) = (self.check, stray, common) {
            return Err(different_devices(op, keyset, position, device, first));
        }
        let device = current.or_else(|| A::wanted_device(args)).filter(|_| self.guard);
        device.map(DeviceGuard::new).transpose()
    }
}

#[cold]
fn different_devices(
    op: OperatorHandle,
    keyset: DispatchKeySet,
    position: usize,
    device: Device,
    first: Device,
) -> Error {
    let argument = op.schema().ok().and_then(|schema| schema.arguments.get(position));
    let name = argument.map_or("argument", |argument| &argument.name);
    let key = keyset.highest_priority_type_id();
    Error::runtime(format!(
        "Expected all tensors to be on the same device, but got {name} is on {device}, different from other tensors on \
         {first} (when checking argument in method wrapper_{key}_{})",
        op.name().base_name()
    ))
}
