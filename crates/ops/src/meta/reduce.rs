//! Meta functions of the `reduce` operators.

use c10::{
    check, check_index, check_not_implemented, wrap_dim, Result, ScalarType, SizeInt, SizeVector, SymInt,
    Tensor, TensorOptions,
};
use iter::{make_dim_mask, make_reduction, shape_from_dim_mask, StructuredOutputs, TensorIterator, ALL_DIMS};

use crate::sym;

/// The dtype of `sum` and its like: stated, or that of `out=`, or int64 for integers.
fn accumulation_dtype(outs: &StructuredOutputs, self_: &Tensor, dtype: Option<ScalarType>) -> ScalarType {
    if let Some(dtype) = dtype {
        return dtype;
    }
    if let Some(out) = outs.maybe_get_output(0) {
        return out.dtype();
    }
    if self_.dtype().is_integral(true) {
        ScalarType::Long
    } else {
        self_.dtype()
    }
}

fn accumulate(
    name: &'static str,
    outs: &mut StructuredOutputs,
    self_: &Tensor,
    dim: Option<&[i64]>,
    keepdim: bool,
    dtype: Option<ScalarType>,
) -> Result<TensorIterator> {
    let dtype = accumulation_dtype(outs, self_, dtype);
    make_reduction(name, outs, self_, dim, keepdim, dtype, &[dtype])
}

/// `sum`
pub fn sum_meta(
    outs: &mut StructuredOutputs,
    self_: &Tensor,
    dim: Option<&[i64]>,
    keepdim: bool,
    dtype: Option<ScalarType>,
) -> Result<TensorIterator> {
    accumulate("sum", outs, self_, dim, keepdim, dtype)
}

/// `nansum`
pub fn nansum_meta(
    outs: &mut StructuredOutputs,
    self_: &Tensor,
    dim: Option<&[i64]>,
    keepdim: bool,
    dtype: Option<ScalarType>,
) -> Result<TensorIterator> {
    check!(!self_.is_cpu() || !self_.is_complex(), "nansum on CPU does not support complex inputs");
    let dtype = accumulation_dtype(outs, self_, dtype);
    let is_float = self_.is_floating_point();
    check_not_implemented!(
        !(self_.is_cpu() && is_float && dtype.is_complex()),
        "\"nansum_cpu\" not implemented for '{dtype}'"
    );
    // As an integer NaN would be a number like others, so the kernel drops it before it converts.
    let in_dtype = if is_float && dtype.is_integral(true) { ScalarType::Double } else { dtype };
    make_reduction("nansum", outs, self_, dim, keepdim, in_dtype, &[dtype])
}

/// `prod` of all elements.
pub fn prod_meta(
    outs: &mut StructuredOutputs,
    self_: &Tensor,
    dtype: Option<ScalarType>,
) -> Result<TensorIterator> {
    accumulate("prod", outs, self_, None, false, dtype)
}

/// `prod` along a dimension.
pub fn prod_dim_meta(
    outs: &mut StructuredOutputs,
    self_: &Tensor,
    dim: i64,
    keepdim: bool,
    dtype: Option<ScalarType>,
) -> Result<TensorIterator> {
    accumulate("prod", outs, self_, Some(&[dim]), keepdim, dtype)
}

/// A reduction without identity needs an element.
fn check_all_nonempty(name: &str, self_: &Tensor) -> Result<()> {
    check!(
        !sym::is_empty(self_)?,
        "{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the \
         'dim' argument."
    );
    Ok(())
}

/// A reduction without identity needs an element in each reduced dimension.
pub(crate) fn check_dims_nonempty(name: &str, self_: &Tensor, dims: &[i64]) -> Result<()> {
    if !sym::is_empty(self_)? {
        return Ok(());
    }
    if dims.is_empty() {
        return check_all_nonempty(name, self_);
    }
    for &dim in dims {
        let dim = wrap_dim(dim, self_.dim(), true)?;
        let size = self_.sym_sizes().get(dim as usize).cloned().unwrap_or(SymInt::ONE);
        check_index!(!size.is_zero()?, "{name}(): Expected reduction dim {dim} to have non-zero size.");
    }
    Ok(())
}

fn extremum(
    name: &'static str,
    outs: &mut StructuredOutputs,
    self_: &Tensor,
    dims: &[i64],
    keepdim: bool,
) -> Result<TensorIterator> {
    check_dims_nonempty(name, self_, dims)?;
    if let Some(out) = outs.maybe_get_output(0) {
        check!(
            out.dtype() == self_.dtype(),
            "Expected the dtype for input and out to match, but got {} for input's dtype and {} for out's dtype.",
            self_.dtype().short_name(),
            out.dtype().short_name()
        );
    }
    make_reduction(name, outs, self_, Some(dims), keepdim, self_.dtype(), &[self_.dtype()])
}

/// `amax`
pub fn amax_meta(
    outs: &mut StructuredOutputs,
    self_: &Tensor,
    dim: &[i64],
    keepdim: bool,
) -> Result<TensorIterator> {
    extremum("amax", outs, self_, dim, keepdim)
}

/// `amin`
pub fn amin_meta(
    outs: &mut StructuredOutputs,
    self_: &Tensor,
    dim: &[i64],
    keepdim: bool,
) -> Result<TensorIterator> {
    extremum("amin", outs, self_, dim, keepdim)
}

/// `max` of all elements.
pub fn max_meta(outs: &mut StructuredOutputs, self_: &Tensor) -> Result<TensorIterator> {
    // Unlike `amax`, it casts to a given output.
    outs.compute_in::<i64>(0, self_.dtype(), &[])?;
    extremum("max", outs, self_, &[], false)
}

/// `min` of all elements.
pub fn min_meta(outs: &mut StructuredOutputs, self_: &Tensor) -> Result<TensorIterator> {
    // Unlike `amin`, it casts to a given output.
    outs.compute_in::<i64>(0, self_.dtype(), &[])?;
    extremum("min", outs, self_, &[], false)
}

/// Values and their positions along a dimension.
fn with_indices<I: SizeInt>(
    name: &'static str,
    outs: &mut StructuredOutputs,
    self_: &Tensor,
    dim: i64,
    keepdim: bool,
) -> Result<()> {
    check_dims_nonempty(name, self_, &[dim])?;
    check!(!self_.is_complex(), "{name}(): does not support complex input");
    let shape: SizeVector<I> = reduced_shape(self_, dim, keepdim)?;
    set_values_and_positions(outs, self_, &shape)
}

/// Outputs of a shape, for elements of `self` and for where they were.
pub(crate) fn set_values_and_positions<I: SizeInt>(
    outs: &mut StructuredOutputs,
    self_: &Tensor,
    shape: &[I],
) -> Result<()> {
    let options = TensorOptions::new().device(self_.device());
    outs.set_output_raw_strided(0, shape, &[], options.dtype(self_.dtype()))?;
    outs.set_output_raw_strided(1, shape, &[], options.dtype(ScalarType::Long))
}

pub(crate) fn reduced_shape<I: SizeInt>(self_: &Tensor, dim: i64, keepdim: bool) -> Result<SizeVector<I>> {
    let mask = make_dim_mask(Some(&[dim]), self_.dim(), false)?;
    Ok(shape_from_dim_mask(&I::sizes_of(self_)?, mask, keepdim))
}

/// `max` along a dimension.
pub fn max_dim_meta<I: SizeInt>(
    outs: &mut StructuredOutputs,
    self_: &Tensor,
    dim: i64,
    keepdim: bool,
) -> Result<()> {
    with_indices::<I>("max", outs, self_, dim, keepdim)
}

/// `min` along a dimension.
pub fn min_dim_meta<I: SizeInt>(
    outs: &mut StructuredOutputs,
    self_: &Tensor,
    dim: i64,
    keepdim: bool,
) -> Result<()> {
    with_indices::<I>("min", outs, self_, dim, keepdim)
}

fn position<I: SizeInt>(
    name: &'static str,
    outs: &mut StructuredOutputs,
    self_: &Tensor,
    dim: Option<i64>,
    keepdim: bool,
) -> Result<()> {
    check!(!self_.is_complex(), "{name}(): does not support complex input");
    check!(self_.dtype() != ScalarType::Bool, "{name}(): does not support bool input");
    let shape: SizeVector<I> = match dim {
        Some(dim) => {
            check_dims_nonempty(name, self_, &[dim])?;
            reduced_shape(self_, dim, keepdim)?
        }
        None => {
            check_index!(
                !sym::is_empty(self_)?,
                "{name}(): Expected reduction dim to be specified for input.numel() == 0."
            );
            shape_from_dim_mask(&I::sizes_of(self_)?, ALL_DIMS, keepdim)
        }
    };
    outs.set_output_raw_strided(
        0,
        &shape,
        &[],
        TensorOptions::new().device(self_.device()).dtype(ScalarType::Long),
    )
}

/// `argmax`
pub fn argmax_meta<I: SizeInt>(
    outs: &mut StructuredOutputs,
    self_: &Tensor,
    dim: Option<i64>,
    keepdim: bool,
) -> Result<()> {
    position::<I>("argmax", outs, self_, dim, keepdim)
}

/// `argmin`
pub fn argmin_meta<I: SizeInt>(
    outs: &mut StructuredOutputs,
    self_: &Tensor,
    dim: Option<i64>,
    keepdim: bool,
) -> Result<()> {
    position::<I>("argmin", outs, self_, dim, keepdim)
}

/// Bool, except that uint8 stays uint8.
fn truth(
    name: &'static str,
    outs: &mut StructuredOutputs,
    self_: &Tensor,
    dim: Option<&[i64]>,
    keepdim: bool,
) -> Result<TensorIterator> {
    let dtype = match outs.maybe_get_output(0).map(|out| out.dtype()) {
        None if self_.dtype() == ScalarType::Byte => ScalarType::Byte,
        None => ScalarType::Bool,
        Some(given @ (ScalarType::Bool | ScalarType::Byte)) => given,
        Some(other) => {
            c10::bail!(Runtime, "{name} only supports bool tensor for result, got: {}", other.short_name())
        }
    };
    make_reduction(name, outs, self_, dim, keepdim, self_.dtype(), &[dtype])
}

/// Along no dimensions: each element by itself. It is reduced along a dimension that it is given for this.
fn each_truth(name: &'static str, outs: &mut StructuredOutputs, self_: &Tensor) -> Result<TensorIterator> {
    let (mut sizes, mut strides) = (self_.sym_sizes(), self_.sym_strides());
    sizes.insert(0, SymInt::ONE);
    strides.insert(0, SymInt::ONE);
    let lifted =
        crate::view::alias_with_sizes_and_strides(self_, &sizes, &strides, &self_.sym_storage_offset())?;
    truth(name, outs, &lifted, Some(&[0]), false)
}

macro_rules! truth {
    ($($op:literal $all:ident $dim:ident $dims:ident),*) => {$(
        #[doc = concat!("`", $op, "` of all elements.")]
        pub fn $all(outs: &mut StructuredOutputs, self_: &Tensor) -> Result<TensorIterator> {
            truth($op, outs, self_, None, false)
        }

        #[doc = concat!("`", $op, "` along a dimension.")]
        pub fn $dim(outs: &mut StructuredOutputs, self_: &Tensor, dim: i64, keepdim: bool) -> Result<TensorIterator> {
            truth($op, outs, self_, Some(&[dim]), keepdim)
        }

        #[doc = concat!("`", $op, "` along several dimensions.")]
        pub fn $dims(
            outs: &mut StructuredOutputs,
            self_: &Tensor,
            dim: Option<&[i64]>,
            keepdim: bool,
        ) -> Result<TensorIterator> {
            if dim.is_some_and(<[i64]>::is_empty) {
                return each_truth($op, outs, self_);
            }
            truth($op, outs, self_, dim, keepdim)
        }
    )*};
}

truth!("any" any_meta any_dim_meta any_dims_meta, "all" all_meta all_dim_meta all_dims_meta);

/// `_softmax` and `_log_softmax`.
pub fn softmax_meta<I: SizeInt>(
    outs: &mut StructuredOutputs,
    self_: &Tensor,
    dim: i64,
    half_to_float: bool,
) -> Result<()> {
    wrap_dim(dim, self_.dim(), true)?;
    let dtype = if half_to_float { ScalarType::Float } else { self_.dtype() };
    outs.set_output_contiguous(
        0,
        &I::sizes_of(self_)?,
        TensorOptions::new().device(self_.device()).dtype(dtype),
    )
}

/// The backward of `_softmax` and `_log_softmax`.
pub fn softmax_backward_meta<I: SizeInt>(
    outs: &mut StructuredOutputs,
    grad_output: &Tensor,
    output: &Tensor,
    dim: i64,
    input_dtype: ScalarType,
) -> Result<()> {
    wrap_dim(dim, grad_output.dim(), true)?;
    let sizes = I::sizes_of(grad_output)?;
    check!(
        I::expect_same(&sizes, &I::sizes_of(output)?)?,
        "softmax_backward(): expected grad_output and output to have the same shape, got {:?} and {:?}",
        &sizes[..],
        output.sym_sizes()
    );
    check!(
        grad_output.dtype() == output.dtype(),
        "softmax_backward(): expected grad_output and output to have the same dtype, got {} and {}",
        grad_output.dtype(),
        output.dtype()
    );
    let narrowed = grad_output.dtype() != input_dtype && grad_output.dtype() == ScalarType::Float;
    let dtype = if narrowed && input_dtype == ScalarType::Half { input_dtype } else { grad_output.dtype() };
    outs.set_output_contiguous(0, &sizes, TensorOptions::new().device(grad_output.device()).dtype(dtype))
}
