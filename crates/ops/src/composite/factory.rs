//! Composites of the `factory` family: here tensors made from nothing, beside it [copies and casts](copies),
//! [stated orders and triangles](patterns), and [changes of a tensor's storage](storage).

mod copies;
mod patterns;
mod storage;

use c10::{
    bail, check, compute_strides_for_memory_format, infer_dense_strides, Device, Layout, MemoryFormat,
    Result, Scalar, ScalarType, SizeInt, SymDimVector, SymInt, Tensor, TensorOptions,
};
pub use copies::*;
pub use patterns::*;
pub use storage::*;

use crate::at;
use crate::meta::factory::arange_length;
use crate::sym::with_sizes;

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
