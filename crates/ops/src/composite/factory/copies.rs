//! Copies and casts, and the number in a tensor of one element.

use c10::{
    bail, check, infer_expand_geometry, Device, DeviceGuard, Layout, MemoryFormat, Result, Scalar,
    ScalarType, SymInt, Tensor, TensorOptions,
};

use crate::at;

/// `aten::copy_`
pub fn copy_(self_: &Tensor, src: &Tensor, non_blocking: bool) -> Result<Tensor> {
    if self_.is_same(src) {
        return Ok(self_.clone());
    }
    if src.is_meta() && !self_.is_meta() {
        bail!(NotImplemented, "Cannot copy out of meta tensor; no data!");
    }
    if self_.is_meta() {
        // Nothing to move, but the shapes have to fit.
        infer_expand_geometry(&src.sym_sizes(), &src.sym_strides(), &self_.sym_sizes())?;
        return Ok(self_.clone());
    }
    let device = self_.device();
    if device == src.device() && (device.is_cpu() || iter::has_copy_kernel(device.device_type())) {
        let _current = DeviceGuard::new(device)?;
        iter::copy_into(self_, src, non_blocking)?;
    } else {
        copy_with_backend(self_, src, non_blocking)?;
    }
    apply_lazy_bits(self_, src)?;
    Ok(self_.clone())
}

/// Copies from a device to another, and on devices whose backend has no copy kernel: `_copy_from` moves elements as they
/// are; dtypes are converted on the host.
fn copy_with_backend(self_: &Tensor, src: &Tensor, non_blocking: bool) -> Result<()> {
    let src = at::expand(src, &self_.sym_sizes(), false)?;
    if src.dtype() == self_.dtype() {
        at::_copy_from(&src, self_, non_blocking)?;
        return Ok(());
    }
    let on_host = if src.is_cpu() {
        src
    } else {
        let host = iter::empty(src.sizes()?, &TensorOptions::new().dtype(src.dtype()).device(Device::CPU))?;
        at::_copy_from(&src, &host, non_blocking)?;
        host
    };
    let converted = iter::to_dtype(&on_host, self_.dtype())?;
    if self_.is_cpu() {
        iter::copy_into(self_, &converted, non_blocking)
    } else {
        at::_copy_from(&converted, self_, non_blocking).map(|_| ())
    }
}

/// `aten::_copy_from`, for devices that do not say how their elements are moved.
pub fn _copy_from(self_: &Tensor, dst: &Tensor, _non_blocking: bool) -> Result<Tensor> {
    bail!(
        NotImplemented,
        "_copy_from(): no kernel copies from device {} to device {}",
        self_.device(),
        dst.device()
    );
}

/// Elements were copied as they lie in memory: where the two sides read them differently, they are changed in place.
/// See Note [Lazy bits].
fn apply_lazy_bits(self_: &Tensor, src: &Tensor) -> Result<()> {
    if self_.is_conj() != src.is_conj() {
        at::conj_physical_(&without_lazy_bits(self_)?)?;
    }
    if self_.is_neg() != src.is_neg() {
        at::neg_(&without_lazy_bits(self_)?)?;
    }
    Ok(())
}

/// The same memory read as it is.
fn without_lazy_bits(tensor: &Tensor) -> Result<Tensor> {
    let plain = crate::view::alias::<i64>(tensor)?;
    plain.set_conj(false);
    plain.set_neg(false);
    Ok(plain)
}

/// `aten::clone`
pub fn clone(self_: &Tensor, memory_format: Option<MemoryFormat>) -> Result<Tensor> {
    let result =
        at::empty_like(self_, None, None, None, None, Some(memory_format.unwrap_or(MemoryFormat::Preserve)))?;
    at::copy_(&result, self_, false)
}

/// `aten::contiguous`
pub fn contiguous(self_: &Tensor, memory_format: MemoryFormat) -> Result<Tensor> {
    if self_.is_contiguous_in(memory_format) {
        return Ok(self_.clone());
    }
    check!(
        memory_format != MemoryFormat::Preserve,
        "preserve memory format is unsupported by the contiguous operator"
    );
    at::clone(self_, Some(memory_format))
}

/// `aten::_to_copy`
pub fn _to_copy(
    self_: &Tensor,
    dtype: Option<ScalarType>,
    layout: Option<Layout>,
    device: Option<Device>,
    pin_memory: Option<bool>,
    non_blocking: bool,
    memory_format: Option<MemoryFormat>,
) -> Result<Tensor> {
    check!(
        layout.is_none_or(|layout| layout == self_.layout()),
        "to(options) doesn't support converting to a different layout, but got self.layout being {} and options.layout \
         set as {}",
        self_.layout(),
        layout.unwrap_or(self_.layout())
    );
    let result = at::empty_like(self_, dtype, layout, device, pin_memory, memory_format)?;
    at::copy_(&result, self_, non_blocking)
}

/// Whether `to` has nothing to do.
fn to_is_noop(
    self_: &Tensor,
    dtype: Option<ScalarType>,
    layout: Option<Layout>,
    device: Option<Device>,
    copy: bool,
    memory_format: Option<MemoryFormat>,
) -> bool {
    !copy
        && dtype.is_none_or(|dtype| dtype == self_.dtype())
        && layout.is_none_or(|layout| layout == self_.layout())
        && device.is_none_or(|device| same_device(device, self_.device()))
        && memory_format.is_none_or(|f| f == MemoryFormat::Preserve || self_.suggest_memory_format() == f)
}

/// A device without index is the current one of its type, which for host memory is the only one.
fn same_device(wanted: Device, found: Device) -> bool {
    wanted == found
        || (wanted.device_type() == found.device_type() && !wanted.has_index() && found.index <= 0)
}

/// `aten::to.dtype_layout`
#[allow(clippy::too_many_arguments)]
pub fn to_dtype_layout(
    self_: &Tensor,
    dtype: Option<ScalarType>,
    layout: Option<Layout>,
    device: Option<Device>,
    pin_memory: Option<bool>,
    non_blocking: bool,
    copy: bool,
    memory_format: Option<MemoryFormat>,
) -> Result<Tensor> {
    if to_is_noop(self_, dtype, layout, device, copy, memory_format) {
        return Ok(self_.clone());
    }
    at::_to_copy(self_, dtype, layout, device, pin_memory, non_blocking, memory_format)
}

/// `aten::to.device`
pub fn to_device(
    self_: &Tensor,
    device: Device,
    dtype: ScalarType,
    non_blocking: bool,
    copy: bool,
    memory_format: Option<MemoryFormat>,
) -> Result<Tensor> {
    to_dtype_layout(self_, Some(dtype), None, Some(device), None, non_blocking, copy, memory_format)
}

/// `aten::to.dtype`
pub fn to_dtype(
    self_: &Tensor,
    dtype: ScalarType,
    non_blocking: bool,
    copy: bool,
    memory_format: Option<MemoryFormat>,
) -> Result<Tensor> {
    to_dtype_layout(self_, Some(dtype), None, None, None, non_blocking, copy, memory_format)
}

/// `aten::to.other`
pub fn to_other(
    self_: &Tensor,
    other: &Tensor,
    non_blocking: bool,
    copy: bool,
    memory_format: Option<MemoryFormat>,
) -> Result<Tensor> {
    let (dtype, layout, device) = (Some(other.dtype()), Some(other.layout()), Some(other.device()));
    to_dtype_layout(self_, dtype, layout, device, None, non_blocking, copy, memory_format)
}

/// `aten::type_as`
pub fn type_as(self_: &Tensor, other: &Tensor) -> Result<Tensor> {
    at::to_other(self_, other, false, false, None)
}

/// `aten::item`
pub fn item(self_: &Tensor) -> Result<Scalar> {
    let numel = self_.sym_numel();
    check!(numel.guard_eq(&SymInt::ONE)?, "a Tensor with {numel} elements cannot be converted to Scalar");
    at::_local_scalar_dense(self_)
}
