//! Composites of the `factory` family: tensors made from nothing, copies and casts.

use c10::{
    bail, check, compute_strides_for_memory_format, infer_dense_strides, infer_expand_geometry, Device,
    DeviceGuard, Layout, MemoryFormat, Result, Scalar, ScalarType, SizeInt, Storage, SymDimVector, SymInt,
    Tensor, TensorOptions,
};

use crate::meta::factory::arange_length;
use crate::sym::with_sizes;
use crate::{at, sym};

fn options(
    dtype: Option<ScalarType>,
    layout: Option<Layout>,
    device: Option<Device>,
    pin_memory: Option<bool>,
) -> TensorOptions {
    TensorOptions::new().dtype(dtype).layout(layout).device(device).pinned_memory(pin_memory)
}

/// `aten::empty.memory_format`
pub fn empty_memory_format(
    size: &[SymInt],
    dtype: Option<ScalarType>,
    layout: Option<Layout>,
    device: Option<Device>,
    pin_memory: Option<bool>,
    memory_format: Option<MemoryFormat>,
) -> Result<Tensor> {
    let options = options(dtype, layout, device, pin_memory);
    match memory_format {
        None | Some(MemoryFormat::Contiguous) => iter::empty(size, &options),
        Some(MemoryFormat::Preserve) => {
            bail!(
                Runtime,
                "unsupported memory format option preserve: expected contiguous or a channels-last format"
            )
        }
        Some(format) => {
            iter::empty_strided(size, &compute_strides_for_memory_format(size, format)?, &options)
        }
    }
}

/// `aten::empty.out`
pub fn empty_out(size: &[SymInt], memory_format: Option<MemoryFormat>, out: &Tensor) -> Result<Tensor> {
    match memory_format {
        None | Some(MemoryFormat::Contiguous) => iter::resize_impl(out, size, None)?,
        Some(format) => {
            iter::resize_impl(out, size, Some(&compute_strides_for_memory_format(size, format)?))?
        }
    }
    Ok(out.clone())
}

/// `aten::empty_strided`
pub fn empty_strided(
    size: &[SymInt],
    stride: &[SymInt],
    dtype: Option<ScalarType>,
    layout: Option<Layout>,
    device: Option<Device>,
    pin_memory: Option<bool>,
) -> Result<Tensor> {
    check!(
        size.len() == stride.len(),
        "mismatch in length of strides and shape: sizes {size:?}, strides {stride:?}"
    );
    for step in stride {
        check!(
            step.expect_nonnegative()?,
            "empty_strided: Negative strides are not supported at the moment, got strides: {stride:?}"
        );
    }
    iter::empty_strided(size, stride, &options(dtype, layout, device, pin_memory))
}

/// `aten::empty_like`
pub fn empty_like(
    self_: &Tensor,
    dtype: Option<ScalarType>,
    layout: Option<Layout>,
    device: Option<Device>,
    pin_memory: Option<bool>,
    memory_format: Option<MemoryFormat>,
) -> Result<Tensor> {
    let (dtype, layout) = (Some(dtype.unwrap_or(self_.dtype())), Some(layout.unwrap_or(self_.layout())));
    let device = Some(device.unwrap_or(self_.device()));
    let sizes = self_.sym_sizes();
    match memory_format.unwrap_or(MemoryFormat::Preserve) {
        MemoryFormat::Preserve => {
            // A row-major tensor may have any stride where its size is 1, and keeps it.
            if self_.is_contiguous() && !has_unit_dim(self_) {
                return at::empty_memory_format(&sizes, dtype, layout, device, pin_memory, None);
            }
            let strides = with_sizes!([self_] preserved_strides(self_))?;
            at::empty_strided(&sizes, &strides, dtype, layout, device, pin_memory)
        }
        format => at::empty_memory_format(&sizes, dtype, layout, device, pin_memory, Some(format)),
    }
}

fn has_unit_dim(tensor: &Tensor) -> bool {
    tensor.sizes().is_ok_and(|sizes| sizes.contains(&1))
}

/// The strides of a copy: the same where they are dense, else dense in the same order.
fn preserved_strides<I: SizeInt>(self_: &Tensor) -> Result<SymDimVector> {
    let strides = I::strides_of(self_)?;
    if self_.is_non_overlapping_and_dense() {
        return Ok(I::to_sym_slice(&strides));
    }
    Ok(I::to_sym_slice(&infer_dense_strides(&I::sizes_of(self_)?, &strides)?))
}

/// `aten::new_empty`
pub fn new_empty(
    self_: &Tensor,
    size: &[SymInt],
    dtype: Option<ScalarType>,
    layout: Option<Layout>,
    device: Option<Device>,
    pin_memory: Option<bool>,
) -> Result<Tensor> {
    let dtype = Some(dtype.unwrap_or(self_.dtype()));
    let layout = Some(layout.unwrap_or(self_.layout()));
    at::empty_memory_format(size, dtype, layout, Some(device.unwrap_or(self_.device())), pin_memory, None)
}

/// `aten::new_empty_strided`
pub fn new_empty_strided(
    self_: &Tensor,
    size: &[SymInt],
    stride: &[SymInt],
    dtype: Option<ScalarType>,
    layout: Option<Layout>,
    device: Option<Device>,
    pin_memory: Option<bool>,
) -> Result<Tensor> {
    let dtype = Some(dtype.unwrap_or(self_.dtype()));
    let layout = Some(layout.unwrap_or(self_.layout()));
    at::empty_strided(size, stride, dtype, layout, Some(device.unwrap_or(self_.device())), pin_memory)
}

macro_rules! filled {
    ($($name:ident $like:ident $new:ident $op:literal |$tensor:ident| $fill:expr);* $(;)?) => {$(
        #[doc = concat!("`aten::", $op, "`")]
        pub fn $name(
            size: &[SymInt],
            dtype: Option<ScalarType>,
            layout: Option<Layout>,
            device: Option<Device>,
            pin_memory: Option<bool>,
        ) -> Result<Tensor> {
            let $tensor = &at::empty_memory_format(size, dtype, layout, device, pin_memory, None)?;
            $fill
        }

        #[doc = concat!("`aten::", $op, "_like`")]
        pub fn $like(
            self_: &Tensor,
            dtype: Option<ScalarType>,
            layout: Option<Layout>,
            device: Option<Device>,
            pin_memory: Option<bool>,
            memory_format: Option<MemoryFormat>,
        ) -> Result<Tensor> {
            let $tensor = &at::empty_like(self_, dtype, layout, device, pin_memory, memory_format)?;
            $fill
        }

        #[doc = concat!("`aten::new_", $op, "`")]
        pub fn $new(
            self_: &Tensor,
            size: &[SymInt],
            dtype: Option<ScalarType>,
            layout: Option<Layout>,
            device: Option<Device>,
            pin_memory: Option<bool>,
        ) -> Result<Tensor> {
            let $tensor = &at::new_empty(self_, size, dtype, layout, device, pin_memory)?;
            $fill
        }
    )*};
}

filled! {
    zeros zeros_like new_zeros "zeros" |tensor| at::zero_(tensor);
    ones ones_like new_ones "ones" |tensor| at::fill__scalar(tensor, &Scalar::Int(1));
}

/// The dtype of `full` without one: bool, int64, or the default of the number's kind.
fn dtype_of_fill(value: &Scalar) -> Result<ScalarType> {
    Ok(if value.is_boolean() {
        ScalarType::Bool
    } else if value.is_integral(false) {
        ScalarType::Long
    } else if value.is_complex() {
        c10::get_default_dtype().to_complex()?
    } else {
        c10::get_default_dtype()
    })
}

/// `aten::full`
pub fn full(
    size: &[SymInt],
    fill_value: &Scalar,
    dtype: Option<ScalarType>,
    layout: Option<Layout>,
    device: Option<Device>,
    pin_memory: Option<bool>,
) -> Result<Tensor> {
    let dtype = match dtype {
        Some(dtype) => dtype,
        None => dtype_of_fill(fill_value)?,
    };
    let result = at::empty_memory_format(size, Some(dtype), layout, device, pin_memory, None)?;
    at::fill__scalar(&result, fill_value)
}

/// `aten::full_like`
pub fn full_like(
    self_: &Tensor,
    fill_value: &Scalar,
    dtype: Option<ScalarType>,
    layout: Option<Layout>,
    device: Option<Device>,
    pin_memory: Option<bool>,
    memory_format: Option<MemoryFormat>,
) -> Result<Tensor> {
    let result = at::empty_like(self_, dtype, layout, device, pin_memory, memory_format)?;
    at::fill__scalar(&result, fill_value)
}

/// `aten::new_full`
pub fn new_full(
    self_: &Tensor,
    size: &[SymInt],
    fill_value: &Scalar,
    dtype: Option<ScalarType>,
    layout: Option<Layout>,
    device: Option<Device>,
    pin_memory: Option<bool>,
) -> Result<Tensor> {
    at::fill__scalar(&at::new_empty(self_, size, dtype, layout, device, pin_memory)?, fill_value)
}

/// `aten::scalar_tensor`
pub fn scalar_tensor(
    s: &Scalar,
    dtype: Option<ScalarType>,
    layout: Option<Layout>,
    device: Option<Device>,
    pin_memory: Option<bool>,
) -> Result<Tensor> {
    at::fill__scalar(&at::empty_memory_format(&[], dtype, layout, device, pin_memory, None)?, s)
}

/// `aten::arange`
pub fn arange(
    end: &Scalar,
    dtype: Option<ScalarType>,
    layout: Option<Layout>,
    device: Option<Device>,
    pin_memory: Option<bool>,
) -> Result<Tensor> {
    at::arange_start(&Scalar::Int(0), end, dtype, layout, device, pin_memory)
}

/// `aten::arange.start`
pub fn arange_start(
    start: &Scalar,
    end: &Scalar,
    dtype: Option<ScalarType>,
    layout: Option<Layout>,
    device: Option<Device>,
    pin_memory: Option<bool>,
) -> Result<Tensor> {
    at::arange_start_step(start, end, &Scalar::Int(1), dtype, layout, device, pin_memory)
}

/// `aten::arange.start_step`
pub fn arange_start_step(
    start: &Scalar,
    end: &Scalar,
    step: &Scalar,
    dtype: Option<ScalarType>,
    layout: Option<Layout>,
    device: Option<Device>,
    pin_memory: Option<bool>,
) -> Result<Tensor> {
    let integral = [start, end, step].iter().all(|scalar| scalar.is_integral(true));
    let dtype = dtype.unwrap_or(if integral { ScalarType::Long } else { c10::get_default_dtype() });
    // Refused before anything is allocated.
    arange_length::<SymInt>(start, end, step)?;
    let out = at::empty_memory_format(&[SymInt::from(0_i64)], Some(dtype), layout, device, pin_memory, None)?;
    at::arange_start_out(start, end, step, &out)
}

/// `aten::linspace`
pub fn linspace(
    start: &Scalar,
    end: &Scalar,
    steps: i64,
    dtype: Option<ScalarType>,
    layout: Option<Layout>,
    device: Option<Device>,
    pin_memory: Option<bool>,
) -> Result<Tensor> {
    check!(steps >= 0, "number of steps must be non-negative");
    let complex = start.is_complex() || end.is_complex();
    let dtype = match dtype {
        Some(dtype) => {
            check!(
                !complex || dtype.is_complex(),
                "torch.linspace(): inferred dtype {} can't be safely cast to passed dtype {dtype}",
                c10::get_default_complex_dtype()
            );
            dtype
        }
        None if complex => c10::get_default_complex_dtype(),
        None => c10::get_default_dtype(),
    };
    let out = at::empty_memory_format(&[SymInt::from(steps)], Some(dtype), layout, device, pin_memory, None)?;
    at::linspace_out(start, end, steps, &out)
}

fn linspace_bound(bound: &Tensor) -> Result<Scalar> {
    check!(
        bound.dim() == 0,
        "linspace only supports 0-dimensional start and end tensors, but got a tensor with {} dimension(s).",
        bound.dim()
    );
    at::item(bound)
}

macro_rules! linspace_of_tensors {
    ($($name:ident $overload:literal ($start:ty, $end:ty) |$s:ident, $e:ident| $first:expr, $last:expr);* $(;)?) => {$(
        #[doc = concat!("`aten::linspace.", $overload, "`")]
        pub fn $name(
            $s: $start,
            $e: $end,
            steps: i64,
            dtype: Option<ScalarType>,
            layout: Option<Layout>,
            device: Option<Device>,
            pin_memory: Option<bool>,
        ) -> Result<Tensor> {
            at::linspace(&$first, &$last, steps, dtype, layout, device, pin_memory)
        }
    )*};
}

linspace_of_tensors! {
    linspace_tensor_tensor "Tensor_Tensor" (&Tensor, &Tensor) |s, e| linspace_bound(s)?, linspace_bound(e)?;
    linspace_tensor_scalar "Tensor_Scalar" (&Tensor, &Scalar) |s, e| linspace_bound(s)?, e.clone();
    linspace_scalar_tensor "Scalar_Tensor" (&Scalar, &Tensor) |s, e| s.clone(), linspace_bound(e)?;
}

/// `aten::eye`
pub fn eye(
    n: &SymInt,
    dtype: Option<ScalarType>,
    layout: Option<Layout>,
    device: Option<Device>,
    pin_memory: Option<bool>,
) -> Result<Tensor> {
    at::eye_m(n, n, dtype, layout, device, pin_memory)
}

/// `aten::eye.m`
pub fn eye_m(
    n: &SymInt,
    m: &SymInt,
    dtype: Option<ScalarType>,
    layout: Option<Layout>,
    device: Option<Device>,
    pin_memory: Option<bool>,
) -> Result<Tensor> {
    check!(n.expect_nonnegative()?, "n must be greater or equal to 0, got {n}");
    check!(m.expect_nonnegative()?, "m must be greater or equal to 0, got {m}");
    let result = at::zeros(&[n.clone(), m.clone()], dtype, layout, device, pin_memory)?;
    at::fill__scalar(&at::diagonal(&result, 0, 0, 1)?, &Scalar::Int(1))?;
    Ok(result)
}

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

/// `aten::resize_`
pub fn resize_(self_: &Tensor, size: &[SymInt], memory_format: Option<MemoryFormat>) -> Result<Tensor> {
    check!(!self_.requires_grad(), "cannot resize variables that require grad");
    let strides = match memory_format {
        None | Some(MemoryFormat::Contiguous) => None,
        Some(MemoryFormat::Preserve) => bail!(Runtime, "Unsupported memory format: preserve"),
        Some(format) => Some(compute_strides_for_memory_format(size, format)?),
    };
    iter::resize_impl(self_, size, strides.as_deref())?;
    Ok(self_.clone())
}

/// `aten::set_.source_Storage_storage_offset`
pub fn set__source_storage_storage_offset(
    self_: &Tensor,
    source: &Storage,
    storage_offset: &SymInt,
    size: &[SymInt],
    stride: &[SymInt],
) -> Result<Tensor> {
    check!(
        source.device() == self_.device(),
        "Attempted to set the storage of a tensor on device \"{}\" to a storage on different device \"{}\".  This is no \
         longer allowed; the devices must match.",
        self_.device(),
        source.device()
    );
    if self_.is_meta() {
        return set_without_memory(self_, source, storage_offset, size, stride);
    }
    let offset = storage_offset.guard_int()?;
    let size = sym::ints(size)?;
    let stride = if stride.is_empty() { c10::compute_contiguous_strides(&size) } else { sym::ints(stride)? };
    let needed = c10::compute_storage_nbytes(&size, &stride, self_.item_size(), offset)?;
    if needed > source.nbytes() && source.is_resizable() {
        source.resize(needed)?;
    }
    c10::check_in_bounds_for_storage(&size, &stride, offset, self_.dtype(), source)?;
    let old_storage = self_.with_exclusive_metadata("set_()", || {
        // SAFETY: no other thread uses the metadata here, and nothing borrowed from it is used afterwards. The view was just
        // proved to lie inside the new storage; kernels ask again (`check_in_storage`).
        unsafe {
            self_.set_sizes_and_strides(&size, &stride, Some(offset))?;
            Ok(self_.set_storage(Some(source.clone())))
        }
    })?;
    drop(old_storage);
    Ok(self_.clone())
}

/// `set_` on the Meta device, whose sizes may be symbolic.
fn set_without_memory(
    self_: &Tensor,
    source: &Storage,
    offset: &SymInt,
    size: &[SymInt],
    stride: &[SymInt],
) -> Result<Tensor> {
    let stride =
        if stride.is_empty() { c10::contiguous_strides_of(size)? } else { SymDimVector::from(stride) };
    let needed = c10::sym_compute_storage_nbytes(size, &stride, self_.item_size(), offset)?;
    if source.is_resizable() && !needed.guard_le(&source.sym_nbytes())? {
        source.set_sym_nbytes(needed)?;
    }
    c10::check_in_bounds_for_symbolic_storage(size, &stride, offset, self_.dtype(), source)?;
    let old_storage = self_.with_exclusive_metadata("set_()", || {
        // SAFETY: no other thread uses the metadata here, and there is no memory to reach.
        unsafe {
            self_.set_sym_sizes_and_strides(size, &stride, Some(offset))?;
            Ok(self_.set_storage(Some(source.clone())))
        }
    })?;
    drop(old_storage);
    Ok(self_.clone())
}

/// `aten::set_.source_Tensor`
pub fn set__source_tensor(self_: &Tensor, source: &Tensor) -> Result<Tensor> {
    if self_.is_same(source) {
        return Ok(self_.clone());
    }
    check!(
        self_.dtype() == source.dtype(),
        "Could not set tensor of type {} to a tensor of type {}",
        source.dtype(),
        self_.dtype()
    );
    set__source_storage_storage_offset(
        self_,
        source.storage()?,
        &source.sym_storage_offset(),
        &source.sym_sizes(),
        &source.sym_strides(),
    )
}

/// `aten::item`
pub fn item(self_: &Tensor) -> Result<Scalar> {
    let numel = self_.sym_numel();
    check!(numel.guard_eq(&SymInt::ONE)?, "a Tensor with {numel} elements cannot be converted to Scalar");
    at::_local_scalar_dense(self_)
}
