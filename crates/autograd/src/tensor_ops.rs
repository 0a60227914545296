//! The few operators that the machinery itself calls, by name: it must work with whatever backend defines them.

use std::sync::atomic::{AtomicBool, Ordering};

use c10::{Device, Layout, MemoryFormat, Result, Scalar, ScalarType, SizeInt, SymInt, Tensor};
use dispatch::{Dispatcher, TypedOp};

type Factory = (Vec<SymInt>, Option<ScalarType>, Option<Layout>, Option<Device>, Option<bool>);
type StridedFactory =
    (Tensor, Vec<SymInt>, Vec<SymInt>, Option<ScalarType>, Option<Layout>, Option<Device>, Option<bool>);
type ToCopy =
    (Tensor, Option<ScalarType>, Option<Layout>, Option<Device>, Option<bool>, bool, Option<MemoryFormat>);
type LikeFactory =
    (Tensor, Option<ScalarType>, Option<Layout>, Option<Device>, Option<bool>, Option<MemoryFormat>);

type AsStrided = (Tensor, Vec<SymInt>, Vec<SymInt>, Option<SymInt>);
type Sum = (Tensor, Option<Vec<i64>>, bool, Option<ScalarType>);

static ADD: TypedOp<(Tensor, Tensor, Scalar), Tensor> = TypedOp::new("aten::add", "Tensor");
static ADD_: TypedOp<(Tensor, Tensor, Scalar), Tensor> = TypedOp::new("aten::add_", "Tensor");
static CLONE: TypedOp<(Tensor, Option<MemoryFormat>), Tensor> = TypedOp::new("aten::clone", "");
static COPY_: TypedOp<(Tensor, Tensor, bool), Tensor> = TypedOp::new("aten::copy_", "");
static ZEROS: TypedOp<Factory, Tensor> = TypedOp::new("aten::zeros", "");
static ONES_LIKE: TypedOp<LikeFactory, Tensor> = TypedOp::new("aten::ones_like", "");
static ZEROS_LIKE: TypedOp<LikeFactory, Tensor> = TypedOp::new("aten::zeros_like", "");
static NEW_EMPTY_STRIDED: TypedOp<StridedFactory, Tensor> = TypedOp::new("aten::new_empty_strided", "");
static AS_STRIDED: TypedOp<AsStrided, Tensor> = TypedOp::new("aten::as_strided", "");
static SUM: TypedOp<Sum, Tensor> = TypedOp::new("aten::sum", "dim_IntList");
static VIEW: TypedOp<(Tensor, Vec<SymInt>), Tensor> = TypedOp::new("aten::view", "");
static TO_COPY: TypedOp<ToCopy, Tensor> = TypedOp::new("aten::_to_copy", "");
static NE: TypedOp<(Tensor, Tensor), Tensor> = TypedOp::new("aten::ne", "Tensor");
static ANY: TypedOp<(Tensor,), Tensor> = TypedOp::new("aten::any", "");
static ITEM: TypedOp<(Tensor,), Scalar> = TypedOp::new("aten::_local_scalar_dense", "");

/// `a + b`
pub(crate) fn add(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    ADD.call((a, b, &Scalar::Int(1)))
}

/// `a += b`
pub(crate) fn add_(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    ADD_.call((a, b, &Scalar::Int(1)))
}

/// `tensor.clone()`
pub(crate) fn clone(tensor: &Tensor) -> Result<Tensor> {
    CLONE.call((tensor, None))
}

/// `tensor.clone(memory_format=contiguous)`
pub(crate) fn clone_contiguous(tensor: &Tensor) -> Result<Tensor> {
    CLONE.call((tensor, Some(MemoryFormat::Contiguous)))
}

/// `dst.copy_(src)`
pub(crate) fn copy_(dst: &Tensor, src: &Tensor) -> Result<Tensor> {
    COPY_.call((dst, src, false))
}

/// `zeros(sizes, ...)`
pub(crate) fn zeros(sizes: &[SymInt], dtype: ScalarType, layout: Layout, device: Device) -> Result<Tensor> {
    ZEROS.call((sizes, Some(dtype), Some(layout), Some(device), None))
}

/// `ones_like(tensor, memory_format=preserve)`
pub(crate) fn ones_like(tensor: &Tensor) -> Result<Tensor> {
    ONES_LIKE.call((tensor, None, None, None, None, Some(MemoryFormat::Preserve)))
}

/// `zeros_like(tensor)`
pub(crate) fn zeros_like(tensor: &Tensor) -> Result<Tensor> {
    ZEROS_LIKE.call((tensor, None, None, None, None, None))
}

/// `tensor.new_empty_strided(sizes, strides)`
pub(crate) fn new_empty_strided(tensor: &Tensor, sizes: &[SymInt], strides: &[SymInt]) -> Result<Tensor> {
    NEW_EMPTY_STRIDED.call((tensor, sizes, strides, None, None, None, None))
}

/// `base.as_strided(sizes, strides, offset)`
pub(crate) fn as_strided(
    base: &Tensor,
    sizes: &[SymInt],
    strides: &[SymInt],
    offset: &SymInt,
) -> Result<Tensor> {
    AS_STRIDED.call((base, sizes, strides, Some(offset)))
}

/// The view of `base` that `view` is.
pub(crate) fn as_strided_like(base: &Tensor, view: &Tensor) -> Result<Tensor> {
    as_strided(base, &view.sym_sizes(), &view.sym_strides(), &view.sym_storage_offset())
}

/// Whether `as_strided` is defined, so that plain views need no replay function.
pub(crate) fn has_as_strided() -> bool {
    static DEFINED: AtomicBool = AtomicBool::new(false);
    if DEFINED.load(Ordering::Relaxed) {
        return true;
    }
    let defined = Dispatcher::find_schema("aten::as_strided", "").is_some();
    if defined {
        DEFINED.store(true, Ordering::Relaxed);
    }
    defined
}

/// Sums over the dimensions that broadcasting added or stretched, so that the result has the given shape.
pub(crate) fn sum_to(tensor: &Tensor, shape: &[SymInt]) -> Result<Tensor> {
    let sizes = tensor.sym_sizes();
    let lead = sizes.len() - shape.len();
    let mut dims: Vec<i64> = (0..lead as i64).collect();
    for (i, want) in shape.iter().enumerate() {
        let size = &sizes[lead + i];
        if want != size && want.is_one()? && !size.is_one()? {
            dims.push((lead + i) as i64);
        }
    }
    let summed = if dims.is_empty() { tensor.clone() } else { SUM.call((tensor, Some(&dims), true, None))? };
    if lead == 0 {
        return Ok(summed);
    }
    VIEW.call((&summed, shape))
}

/// `tensor.to(dtype)`
pub(crate) fn to_dtype(tensor: &Tensor, dtype: ScalarType) -> Result<Tensor> {
    TO_COPY.call((tensor, Some(dtype), None, None, None, false, None))
}

/// `tensor.to(device)`
pub(crate) fn to_device(tensor: &Tensor, device: Device) -> Result<Tensor> {
    TO_COPY.call((tensor, None, None, Some(device), None, false, None))
}

/// Whether any element is NaN.
pub(crate) fn has_nan(tensor: &Tensor) -> Result<bool> {
    let is_nan = NE.call((tensor, tensor))?;
    ITEM.call((&ANY.call((&is_nan,))?,))?.to_bool()
}
