//! Elements taken from places, or put there.

use c10::{
    check, check_index, infer_broadcast_size, wrap_dim, MemoryFormat, Result, Scalar, ScalarType, SizeInt,
    SymInt, Tensor,
};

use crate::terms::at_least_1d;
use crate::{at, sym};

fn flat(tensor: &Tensor) -> Result<Tensor> {
    at::reshape(tensor, &[SymInt::from(-1)])
}

/// `aten::take`
pub fn take(self_: &Tensor, index: &Tensor) -> Result<Tensor> {
    check!(
        index.dtype() == ScalarType::Long,
        "take(): Expected a long tensor for index, but got {}",
        index.dtype()
    );
    check_index!(
        !sym::is_empty(self_)? || sym::is_empty(index)?,
        "take(): tried to take from an empty tensor"
    );
    at::index_tensor(&flat(self_)?, &[Some(index.clone())])
}

/// `aten::put_`
pub fn put_(self_: &Tensor, index: &Tensor, source: &Tensor, accumulate: bool) -> Result<Tensor> {
    check!(
        index.dtype() == ScalarType::Long,
        "put_(): Expected a long tensor for index, but got {}",
        index.dtype()
    );
    check!(
        self_.dtype() == source.dtype(),
        "put_(): self and source expected to have the same dtype, but got self.dtype = {} and source.dtype = {}",
        self_.dtype(),
        source.dtype()
    );
    check!(
        source.sym_numel().expect_eq(&index.sym_numel())?,
        "put_(): Expected source and index to have the same number of elements, but got source.numel() = {}, \
         index.numel() = {}",
        source.sym_numel(),
        index.sym_numel()
    );
    check_index!(
        !sym::is_empty(self_)? || sym::is_empty(index)?,
        "put_(): Tried to put elements into an empty tensor"
    );
    let place = |target: &Tensor| {
        at::_index_put_impl_(&flat(target)?, &[Some(flat(index)?)], &flat(source)?, accumulate, false)
    };
    if self_.is_contiguous() {
        place(self_)?;
        return Ok(self_.clone());
    }
    let copy = at::clone(self_, Some(MemoryFormat::Contiguous))?;
    place(&copy)?;
    at::copy_(self_, &copy, false)
}

/// `aten::take_along_dim`
pub fn take_along_dim(self_: &Tensor, indices: &Tensor, dim: Option<i64>) -> Result<Tensor> {
    check!(
        indices.dtype() == ScalarType::Long,
        "torch.take_along_dim(): dtype of indices should be Long but got {}",
        indices.dtype()
    );
    let Some(dim) = dim else {
        return at::gather(&flat(self_)?, 0, &flat(indices)?, false);
    };
    check!(
        self_.dim() == indices.dim(),
        "torch.take_along_dim(): input and indices should have the same number of dimensions, but got {} dimensions for \
         input, and {} dimensions for indices",
        self_.dim(),
        indices.dim()
    );
    let dim = wrap_dim(dim, self_.dim(), true)? as usize;
    // They broadcast in all dimensions but this one.
    let (mut own, mut others) = (self_.sym_sizes(), indices.sym_sizes());
    if let (Some(size), Some(count)) = (own.get_mut(dim), others.get_mut(dim)) {
        let (length, positions) = (size.clone(), count.clone());
        *size = SymInt::ONE;
        *count = SymInt::ONE;
        let mut shape = infer_broadcast_size(&own, &others)?;
        shape[dim] = length;
        let input = at::expand(self_, &shape, false)?;
        // Negative positions count from the end.
        let from_end = at::lt_scalar(indices, &Scalar::Int(0))?;
        let wrapped = at::add_scalar(indices, &sym::scalar(&shape[dim]), &Scalar::Int(1))?;
        let indices = at::where_self(&from_end, &wrapped, indices)?;
        shape[dim] = positions;
        return at::gather(&input, dim as i64, &at::expand(&indices, &shape, false)?, false);
    }
    at::gather(self_, 0, indices, false)
}

/// The indices of `index_put` that select along one dimension, and the tensor with at least one.
fn along(self_: &Tensor, dim: i64, index: &Tensor) -> Result<(Tensor, Vec<Option<Tensor>>)> {
    let dim = wrap_dim(dim, self_.dim(), true)? as usize;
    let lifted = at_least_1d(self_)?;
    let mut indices = vec![None; dim];
    indices.push(Some(at_least_1d(index)?));
    Ok((lifted, indices))
}

fn check_fill(self_: &Tensor, index: &Tensor, complex_value: bool) -> Result<()> {
    check_index!(index.dtype() == ScalarType::Long, "index_fill_(): Expected dtype int64 for index.");
    check_index!(index.dim() <= 1, "Index has to be a vector/scalar");
    check!(
        self_.is_complex() || !complex_value,
        "index_fill_(): Converting complex Scalar to non-complex type is not supported"
    );
    Ok(())
}

fn fill(self_: &Tensor, dim: i64, index: &Tensor, value: &Tensor) -> Result<Tensor> {
    let (lifted, indices) = along(self_, dim, index)?;
    at::_index_put_impl_(&lifted, &indices, value, false, false)?;
    Ok(self_.clone())
}

/// `aten::index_fill_.int_Scalar`
pub fn index_fill__int_scalar(self_: &Tensor, dim: i64, index: &Tensor, value: &Scalar) -> Result<Tensor> {
    check_fill(self_, index, value.is_complex())?;
    let value = at::scalar_tensor(value, Some(self_.dtype()), None, Some(self_.device()), None)?;
    fill(self_, dim, index, &value)
}

/// `aten::index_fill_.int_Tensor`
pub fn index_fill__int_tensor(self_: &Tensor, dim: i64, index: &Tensor, value: &Tensor) -> Result<Tensor> {
    check!(
        value.dim() == 0,
        "Only supports 0-dimensional value tensor, but got tensor with {} dimension(s).",
        value.dim()
    );
    check_fill(self_, index, value.is_complex())?;
    fill(self_, dim, index, &at::to_dtype(value, self_.dtype(), false, false, None)?)
}

/// `aten::index_copy_`
pub fn index_copy_(self_: &Tensor, dim: i64, index: &Tensor, source: &Tensor) -> Result<Tensor> {
    let wrapped = wrap_dim(dim, self_.dim(), true)?;
    check_index!(index.dim() < 2, "index_copy_(): Index should have dimension 1 or 0 (got {})", index.dim());
    let count = index.sym_numel();
    check_index!(
        source.dim() != 0 || count.expect_eq(&SymInt::ONE)?,
        "index_copy_(): When source is scalar, index should have one element (got {count})"
    );
    check_index!(
        source.dim() == self_.dim() || source.dim() == 0 || self_.dim() == 0,
        "index_copy_(): When source and destination are not scalars, their dimensionality must match. Source \
         dimensionality ({}), destination dimensionality ({})",
        source.dim(),
        self_.dim()
    );
    check_index!(
        index.dtype() == ScalarType::Long,
        "index_copy_(): Expected a long tensor for index, but got {}",
        index.dtype()
    );
    check!(
        self_.dtype() == source.dtype(),
        "index_copy_(): self and source expected to have the same dtype, but got (self) {} and (source) {}",
        self_.dtype(),
        source.dtype()
    );
    let without = |tensor: &Tensor| {
        let mut sizes = tensor.sym_sizes();
        if !sizes.is_empty() {
            sizes.remove(wrapped as usize);
        }
        sizes
    };
    let (own, other) = (without(self_), without(source));
    check!(
        SymInt::expect_same(&own, &other)?,
        "index_copy_(): Source/destination tensor must have same slice shapes. Destination slice shape: {own:?} at \
         dimension {wrapped} and source slice shape: {other:?} at dimension 0."
    );
    let length = if source.dim() == 0 { SymInt::ONE } else { source.sym_size(wrapped)? };
    check_index!(
        count.expect_eq(&length)?,
        "index_copy_(): Number of indices ({count}) should be equal to source.size(dim) ({length})"
    );
    if !sym::is_empty(index)? && !index.is_meta() {
        // `index_put_` counts negative indices from the end; this operator refuses them.
        let least = at::item(&at::min(index)?)?.to_i64()?;
        check_index!(
            least >= 0,
            "index_copy_(): index {least} is out of bounds for dimension {wrapped} with size {}",
            if self_.dim() == 0 { SymInt::ONE } else { self_.sym_size(wrapped)? }
        );
    }
    let (lifted, indices) = along(self_, wrapped, index)?;
    let source = at_least_1d(source)?;
    at::_index_put_impl_(&lifted, &indices, &source, false, false)?;
    Ok(self_.clone())
}

/// `aten::masked_scatter`
pub fn masked_scatter(self_: &Tensor, mask: &Tensor, source: &Tensor) -> Result<Tensor> {
    let sizes = infer_broadcast_size(&self_.sym_sizes(), &mask.sym_sizes())?;
    let copy = at::clone(&at::expand(self_, &sizes, false)?, Some(MemoryFormat::Contiguous))?;
    masked_scatter_(&copy, mask, source)
}

/// `aten::masked_scatter_`: the masked elements become those of `source`, in order.
pub fn masked_scatter_(self_: &Tensor, mask: &Tensor, source: &Tensor) -> Result<Tensor> {
    check!(
        self_.dtype() == source.dtype(),
        "masked_scatter_: expected self and source to have same dtypes but got {} and {}",
        self_.dtype(),
        source.dtype()
    );
    check!(
        mask.dtype() == ScalarType::Bool,
        "masked_scatter_ only supports boolean masks, but got mask with dtype {}",
        mask.dtype()
    );
    let mask = at::expand(mask, &self_.sym_sizes(), false)?;
    if self_.is_meta() {
        return Ok(self_.clone());
    }
    let positions = at::nonzero(&mask)?;
    let count = positions.sym_size(0)?;
    check!(
        count.guard_le(&source.sym_numel())?,
        "masked_scatter_: expected self and source to have same number of elements: number of elements of source < \
         number of ones in mask"
    );
    let lifted = at_least_1d(self_)?;
    let positions = if self_.dim() == 0 {
        vec![Some(at::new_zeros(&positions, &[count.clone()], None, None, None, None)?)]
    } else {
        at::unbind_int(&positions, 1)?.into_iter().map(Some).collect()
    };
    let values = at::narrow(&flat(source)?, 0, &SymInt::ZERO, &count)?;
    at::_index_put_impl_(&lifted, &positions, &values, false, false)?;
    Ok(self_.clone())
}

/// `aten::masked_scatter_backward`
pub fn masked_scatter_backward(grad_output: &Tensor, mask: &Tensor, sizes: &[SymInt]) -> Result<Tensor> {
    let used = at::masked_select(grad_output, mask)?;
    let total = c10::sym_multiply_integers(sizes)?;
    let missing = total.sym_sub(&used.sym_numel())?;
    let padded = if missing.is_zero()? {
        used
    } else {
        at::cat(&[used.clone(), at::new_zeros(&used, &[missing], None, None, None, None)?], 0)?
    };
    at::view(&padded, sizes)
}

/// `aten::nonzero_static`: as many rows as `size` says, filled up or cut off.
pub fn nonzero_static(self_: &Tensor, size: &SymInt, fill_value: i64) -> Result<Tensor> {
    check!(size.expect_nonnegative()?, "nonzero_static: 'size' must be an non-negative integer");
    let shape = [size.clone(), SymInt::from(self_.dim())];
    let result =
        at::full(&shape, &Scalar::Int(fill_value), Some(ScalarType::Long), None, Some(self_.device()), None)?;
    if self_.is_meta() {
        return Ok(result);
    }
    let found = at::nonzero(self_)?;
    let rows = found.sym_size(0)?.sym_min(size)?;
    let part = |t: &Tensor| at::narrow(t, 0, &SymInt::ZERO, &rows);
    at::copy_(&part(&result)?, &part(&found)?, false)?;
    Ok(result)
}

/// `aten::index_reduce`: slices of `source` are combined with those that the index names.
pub fn index_reduce(
    self_: &Tensor,
    dim: i64,
    index: &Tensor,
    source: &Tensor,
    reduce: &str,
    include_self: bool,
) -> Result<Tensor> {
    check!(
        matches!(reduce, "prod" | "mean" | "amax" | "amin"),
        "index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got {reduce}."
    );
    let wrapped = wrap_dim(dim, self_.dim(), true)?;
    check_index!(
        index.dim() <= 1,
        "index_reduce_(): Index is supposed to be a vector, but got dim: {}",
        index.dim()
    );
    check!(
        matches!(index.dtype(), ScalarType::Int | ScalarType::Long),
        "index_reduce_(): Expected dtype int32/int64 for index"
    );
    check!(
        self_.dtype() == source.dtype(),
        "index_reduce_(): self ({}) and source ({}) must have the same scalar type",
        self_.dtype().short_name(),
        source.dtype().short_name()
    );
    let (target, source, index) = (at_least_1d(self_)?, at_least_1d(source)?, at_least_1d(index)?);
    check!(
        target.dim() == source.dim(),
        "index_reduce_(): source tensor shape must match self tensor shape, excluding the specified dimension. Got \
         self.shape = {:?} source.shape = {:?}",
        target.sym_sizes(),
        source.sym_sizes()
    );
    let (count, length) = (index.sym_numel(), source.sym_size(wrapped)?);
    check!(
        count.expect_eq(&length)?,
        "index_reduce_(): Number of indices ({count}) should be equal to source.size(dim) ({length})"
    );
    for d in (0..target.dim()).filter(|&d| d != wrapped) {
        check!(
            target.sym_size(d)?.expect_eq(&source.sym_size(d)?)?,
            "index_reduce_(): source tensor shape must match self tensor shape, excluding the specified dimension. Got \
             self.shape = {:?} source.shape = {:?}",
            target.sym_sizes(),
            source.sym_sizes()
        );
    }
    let mut shape = c10::SymDimVector::from_elem(SymInt::ONE, target.dim() as usize);
    shape[wrapped as usize] = count;
    let places = at::expand(&at::reshape(&index, &shape)?, &source.sym_sizes(), false)?;
    let result = at::scatter_reduce_two(&target, wrapped, &places, &source, reduce, include_self)?;
    at::reshape(&result, &self_.sym_sizes())
}
