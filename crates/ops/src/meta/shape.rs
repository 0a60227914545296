//! Meta functions of the `shape` operators that allocate.

use c10::{
    can_cast, check, check_type, check_value, wrap_dim, MemoryFormat, Result, ScalarType, SizeInt,
    SizeVector, Tensor, TensorOptions,
};
use iter::{ResultTypeState, StructuredOutputs};

/// Tensors of size `[0]` are left out, whatever the others' rank.
fn is_skipped<I: SizeInt>(tensor: &Tensor) -> Result<bool> {
    Ok(tensor.dim() == 1 && I::sizes_of(tensor)?[0].is_zero()?)
}

/// The dtype that a list of tensors promotes to.
pub fn list_dtype(tensors: &[Tensor]) -> Result<Option<ScalarType>> {
    let mut state = ResultTypeState::default();
    for tensor in tensors {
        state.update(tensor)?;
    }
    state.result()
}

/// `cat`
pub fn cat_meta<I: SizeInt>(outs: &mut StructuredOutputs, tensors: &[Tensor], dim: i64) -> Result<()> {
    check_value!(!tensors.is_empty(), "torch.cat(): expected a non-empty list of Tensors");
    for (position, tensor) in tensors.iter().enumerate() {
        check!(tensor.dim() > 0, "zero-dimensional tensor (at position {position}) cannot be concatenated");
    }
    let mut first = None;
    for tensor in tensors {
        if !is_skipped::<I>(tensor)? {
            first = Some(tensor);
            break;
        }
    }
    let promoted = list_dtype(tensors)?.unwrap_or(tensors[0].dtype());
    let dtype = outs.maybe_get_output(0).map_or(promoted, |out| out.dtype());
    check_type!(
        can_cast(promoted, dtype),
        "torch.cat(): input types can't be cast to the desired output type {}",
        dtype.short_name()
    );
    let options = TensorOptions::new().dtype(dtype).device(tensors[0].device());
    let Some(first) = first else {
        wrap_dim(dim, 1, true)?;
        return outs.set_output_raw_strided(0, &[I::ZERO], &[], options);
    };
    let dim = wrap_dim(dim, first.dim(), true)? as usize;
    let mut sizes = I::to_vector(&I::sizes_of(first)?);
    sizes[dim] = I::ZERO;
    for (position, tensor) in tensors.iter().enumerate() {
        if is_skipped::<I>(tensor)? {
            continue;
        }
        let found = I::sizes_of(tensor)?;
        check!(
            found.len() == sizes.len(),
            "Tensors must have same number of dimensions: got {} and {}",
            sizes.len(),
            found.len()
        );
        for (d, (size, expected)) in found.iter().zip(&sizes).enumerate() {
            check!(
                d == dim || size.expect_eq(expected)?,
                "Sizes of tensors must match except in dimension {dim}. Expected size {expected} but got size {size} for \
                 tensor number {position} in the list."
            );
        }
        sizes[dim] = sizes[dim].sym_add(&found[dim])?;
    }
    let strides = match common_format(tensors)? {
        Some(format) if sizes.len() == 4 || sizes.len() == 5 => {
            c10::compute_strides_for_memory_format(&sizes, format)?
        }
        _ => SizeVector::new(),
    };
    outs.set_output_raw_strided(0, &sizes, &strides, options)
}

/// The memory format all tensors share, if it is not row-major.
fn common_format(tensors: &[Tensor]) -> Result<Option<MemoryFormat>> {
    let format = tensors[0].suggest_memory_format();
    if format == MemoryFormat::Contiguous {
        return Ok(None);
    }
    let same = tensors.iter().all(|t| t.suggest_memory_format() == format);
    Ok(same.then_some(format))
}
