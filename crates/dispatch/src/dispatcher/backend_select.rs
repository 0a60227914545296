//! The one kernel of every factory function at the `BackendSelect` key.

use c10::{DispatchKey, DispatchKeySet, Layout, Result, TensorOptions};

use super::operator_handle::OperatorHandle;
use crate::boxing::{IValue, Stack};

/// Adds the backend that the arguments `dtype`, `layout` and `device` ask for, and goes on.
///
/// A factory such as `empty` has no tensor argument whose key set names a backend; this kernel, registered
/// for every operator that takes tensor options, computes the key from the options instead.
pub fn backend_select_kernel(op: OperatorHandle, keyset: DispatchKeySet, stack: &mut Stack) -> Result<()> {
    let schema = op.schema()?;
    let positions = op.entry.tensor_options.get_or_init(|| {
        let at = |name: &str| schema.arguments.iter().position(|a| &*a.name == name);
        Some([at("dtype")?, at("layout")?, at("device")?, at("pin_memory")?])
    });
    let mut options = TensorOptions::default();
    if let Some([dtype, layout, device, pin_memory]) = *positions {
        let arguments = &stack[stack.len() - schema.arguments.len()..];
        options.dtype = match &arguments[dtype] {
            IValue::None => None,
            v => Some(v.to_scalar_type()?),
        };
        options.layout = match arguments[layout] {
            IValue::Layout(v) => Some(v),
            _ => Some(Layout::Strided),
        };
        options.device = match arguments[device] {
            IValue::Device(v) => Some(v),
            _ => None,
        };
        options.pinned_memory = match arguments[pin_memory] {
            IValue::Bool(v) => Some(v),
            _ => None,
        };
    }
    let selected = DispatchKeySet::from_key(options.compute_dispatch_key()?);
    let beneath = keyset & DispatchKeySet::full_after(DispatchKey::BackendSelect);
    op.redispatch_boxed(beneath | selected, stack)
}
