//! Meta functions of the `index` operators.

use c10::{
    bail, check, check_index, infer_broadcast_size, infer_expand_geometry, is_expandable_to, wrap_dim,
    DimVector, Result, Scalar, ScalarType, Tensor,
};
use iter::{to_dtype, type_meta_name, IndexPlan, StructuredOutputs, TensorIterator, TensorIteratorConfig};

use crate::view::alias_with_sizes_and_strides;
use crate::{at, sym};

/// Index tensors matched to the dimensions of the tensor they index.
struct AdvancedIndex {
    /// `self` over the result's dimensions: stride 0 along those that the indices span.
    self_: Tensor,
    /// The index tensors, shaped to broadcast to the result.
    indices: Vec<Tensor>,
    indexed_sizes: DimVector,
    indexed_strides: DimVector,
}

fn is_zero_dim_mask(index: &Tensor) -> bool {
    index.dim() == 0 && matches!(index.dtype(), ScalarType::Bool | ScalarType::Byte)
}

/// Masks become the positions of their true elements; other index tensors become int64.
fn expand_masks(self_: &Tensor, indices: &[Option<Tensor>]) -> Result<Vec<Option<Tensor>>> {
    let mut result: Vec<Option<Tensor>> = Vec::with_capacity(indices.len());
    for index in indices {
        let Some(index) = index else {
            result.push(None);
            continue;
        };
        match index.dtype() {
            ScalarType::Long => result.push(Some(index.clone())),
            ScalarType::Int => result.push(Some(to_dtype(index, ScalarType::Long)?)),
            ScalarType::Bool | ScalarType::Byte => {
                let (mask, sizes) = (index.sizes()?, self_.sizes()?);
                for (d, &size) in mask.iter().enumerate() {
                    let dim = result.len() + d;
                    check_index!(
                        sizes.get(dim) == Some(&size),
                        "The shape of the mask {mask:?} at index {d} does not match the shape of the indexed tensor \
                         {sizes:?} at index {dim}"
                    );
                }
                let positions = at::nonzero(index)?;
                result.extend(at::unbind_int(&positions, 1)?.into_iter().map(Some));
            }
            _ => bail!(Index, "tensors used as indices must be long, int, byte or bool tensors"),
        }
    }
    Ok(result)
}

fn advanced_index(self_: &Tensor, indices: &[Option<Tensor>]) -> Result<AdvancedIndex> {
    check_index!(
        // A 0-d mask indexes no dimension.
        indices.iter().filter(|i| !i.as_ref().is_some_and(is_zero_dim_mask)).count() as i64 <= self_.dim(),
        "too many indices for tensor of dimension {} (got {})",
        self_.dim(),
        indices.len()
    );
    let mut indices = expand_masks(self_, indices)?;
    check_index!(
        indices.len() as i64 <= self_.dim(),
        "too many indices for tensor of dimension {} (got {})",
        self_.dim(),
        indices.len()
    );
    indices.resize(self_.dim() as usize, None);
    let spanned = broadcast_indices(&mut indices)?;
    let self_ = if indexed_dims_are_adjacent(&indices) {
        self_.clone()
    } else {
        bring_indexed_to_front(self_, &mut indices)?
    };
    restride(&self_, &indices, &spanned)
}

/// Gives all index tensors one shape, and returns it.
fn broadcast_indices(indices: &mut [Option<Tensor>]) -> Result<DimVector> {
    let mut spanned = DimVector::new();
    for index in indices.iter().flatten() {
        spanned = match infer_broadcast_size(&spanned, index.sizes()?) {
            Ok(sizes) => sizes,
            Err(_) => {
                let shapes: Vec<String> = indices
                    .iter()
                    .flatten()
                    .map(|i| i.sizes().map(|s| format!("{s:?}")))
                    .collect::<Result<_>>()?;
                bail!(
                    Index,
                    "shape mismatch: indexing tensors could not be broadcast together with shapes {}",
                    shapes.join(", ")
                )
            }
        };
    }
    for index in indices.iter_mut().flatten() {
        if index.sizes()? != &*spanned {
            *index = at::expand(index, &sym::sym_ints(&spanned), false)?;
        }
    }
    Ok(spanned)
}

fn indexed_dims_are_adjacent(indices: &[Option<Tensor>]) -> bool {
    let first = indices.iter().position(Option::is_some).unwrap_or(0);
    let last = indices.iter().rposition(Option::is_some).unwrap_or(0);
    let adjacent =
        |range: &[Option<Tensor>]| range.iter().all(Option::is_some) || range.iter().all(Option::is_none);
    indices.get(first..=last).is_none_or(adjacent)
}

/// Indexed dimensions that are not adjacent come first in the result.
fn bring_indexed_to_front(self_: &Tensor, indices: &mut Vec<Option<Tensor>>) -> Result<Tensor> {
    let ndim = indices.len();
    let mut order: Vec<usize> = (0..ndim).filter(|&d| indices[d].is_some()).collect();
    order.extend((0..ndim).filter(|&d| indices[d].is_none()));
    *indices = order.iter().map(|&d| indices[d].clone()).collect();
    let dims: Vec<i64> = order.iter().map(|&d| d as i64).collect();
    at::permute(self_, &dims)
}

fn restride(self_: &Tensor, indices: &[Option<Tensor>], spanned: &[i64]) -> Result<AdvancedIndex> {
    let (sizes, strides) = (self_.sizes()?, self_.strides()?);
    let item_size = self_.item_size() as i64;
    let (mut shape, mut new_strides) = (DimVector::new(), DimVector::new());
    let (mut indexed_sizes, mut indexed_strides) = (DimVector::new(), DimVector::new());
    let mut before = 0;
    let mut after = 0;
    let mut placed = false;
    for (dim, index) in indices.iter().enumerate() {
        if index.is_some() {
            indexed_sizes.push(sizes[dim]);
            indexed_strides.push(strides[dim].saturating_mul(item_size));
            if !placed {
                placed = true;
                shape.extend_from_slice(spanned);
                new_strides.extend(spanned.iter().map(|_| 0));
            }
            continue;
        }
        shape.push(sizes[dim]);
        new_strides.push(strides[dim]);
        if placed {
            after += 1;
        } else {
            before += 1;
        }
    }
    let needs_elements = !spanned.contains(&0);
    check_index!(
        !(indexed_sizes.contains(&0) && needs_elements && placed),
        "index is out of bounds for dimension with size 0"
    );
    let mut index_shape = DimVector::from_elem(1, before);
    index_shape.extend_from_slice(spanned);
    index_shape.extend(std::iter::repeat_n(1, after));
    let index_shape = sym::sym_ints(&index_shape);
    let indices = indices
        .iter()
        .flatten()
        .map(|index| at::reshape(index, &index_shape))
        .collect::<Result<Vec<Tensor>>>()?;
    // The restrided tensor is a description for the iterator alone: along the spanned dimensions it repeats an element.
    let self_ = alias_with_sizes_and_strides(self_, &shape, &new_strides, self_.storage_offset()?)?;
    Ok(AdvancedIndex { self_, indices, indexed_sizes, indexed_strides })
}

fn plan(info: &AdvancedIndex, iter: TensorIterator) -> IndexPlan {
    IndexPlan {
        iter,
        indexed_sizes: info.indexed_sizes.clone(),
        indexed_strides: info.indexed_strides.clone(),
    }
}

/// `index`
pub fn index_meta(
    outs: &mut StructuredOutputs,
    self_: &Tensor,
    indices: &[Option<Tensor>],
) -> Result<IndexPlan> {
    let info = advanced_index(self_, indices)?;
    let mut config = TensorIteratorConfig::new()
        .op_name("index")
        .check_all_same_dtype(false)
        .check_all_same_device(false)
        .declare_static_dtype(self_.dtype())
        .declare_static_device(self_.device())
        .add_input(&info.self_);
    for index in &info.indices {
        config = config.add_input(index);
    }
    let iter = config.build(outs)?;
    Ok(plan(&info, iter))
}

/// `_index_put_impl_`
pub fn index_put_meta(
    _outs: &mut StructuredOutputs,
    self_: &Tensor,
    indices: &[Option<Tensor>],
    values: &Tensor,
    _accumulate: bool,
    _unsafe: bool,
) -> Result<IndexPlan> {
    check_index!(
        self_.dtype() == values.dtype(),
        "Index put requires the source and destination dtypes match, got {} for the destination and {} for the source.",
        self_.dtype().short_name(),
        values.dtype().short_name()
    );
    let info = advanced_index(self_, indices)?;
    let target = info.self_.sizes()?;
    check!(
        is_expandable_to(values.sizes()?, target),
        "shape mismatch: value tensor of shape {:?} cannot be broadcast to indexing result of shape {target:?}",
        values.sizes()?
    );
    let (sizes, strides) = infer_expand_geometry(values.sizes()?, values.strides()?, target)?;
    let values = alias_with_sizes_and_strides(values, &sizes, &strides, values.storage_offset()?)?;
    let mut config = TensorIteratorConfig::new()
        .op_name("index_put_")
        .check_mem_overlap(false)
        .resize_outputs(false)
        .check_all_same_dtype(false)
        .check_all_same_device(false)
        .add_output(&info.self_)
        .add_input(&values);
    for index in &info.indices {
        config = config.add_input(index);
    }
    let iter = config.build_standalone()?;
    Ok(plan(&info, iter))
}

/// `index_select`
pub fn index_select_meta(
    outs: &mut StructuredOutputs,
    self_: &Tensor,
    dim: i64,
    index: &Tensor,
) -> Result<()> {
    check_index!(index.dim() <= 1, "index_select(): Index is supposed to be a vector");
    check!(
        matches!(index.dtype(), ScalarType::Int | ScalarType::Long),
        "index_select(): Expected dtype int32 or int64 for index"
    );
    let dim = wrap_dim(dim, self_.dim(), true)? as usize;
    let mut sizes = DimVector::from_slice(self_.sizes()?);
    if sizes.is_empty() {
        check!(
            index.numel()? == 1,
            "index_select(): Index to scalar can have only 1 value, got {} value(s)",
            index.numel()?
        );
    } else {
        sizes[dim] = index.numel()?;
    }
    outs.set_output_contiguous(0, &sizes, self_.options())
}

/// `index_add`
pub fn index_add_meta(
    outs: &mut StructuredOutputs,
    self_: &Tensor,
    dim: i64,
    index: &Tensor,
    source: &Tensor,
    _alpha: &Scalar,
) -> Result<()> {
    let dim = wrap_dim(dim, self_.dim(), true)? as usize;
    check_index!(
        index.dim() <= 1,
        "index_add_(): Index is supposed to be a vector, but got dim: {} with size: {:?}",
        index.dim(),
        index.sizes()?
    );
    check!(
        matches!(index.dtype(), ScalarType::Int | ScalarType::Long),
        "index_add_(): Expected dtype int32/int64 for index but got: {}",
        index.dtype().short_name()
    );
    check!(
        self_.dtype() == source.dtype(),
        "index_add_(): self ({}) and source ({}) must have the same scalar type",
        self_.dtype().short_name(),
        source.dtype().short_name()
    );
    let expected = source.sizes()?.get(dim).copied().unwrap_or(1);
    check!(
        index.numel()? == expected,
        "index_add_(): Number of indices ({}) should be equal to source.size(dim): ({expected}), for dim: {dim}",
        index.numel()?
    );
    let (own, other) = (self_.sizes()?, source.sizes()?);
    let matches =
        own.len() == other.len() && own.iter().zip(other).enumerate().all(|(d, (a, b))| d == dim || a == b);
    check!(
        matches,
        "source tensor shape must match self tensor shape, excluding the specified dimension. Got self.shape = {own:?} \
         source.shape = {other:?}"
    );
    outs.set_output_raw_strided(0, own, &[], self_.options())
}

fn check_index_dtype(name: &str, index: &Tensor) -> Result<()> {
    check!(
        matches!(index.dtype(), ScalarType::Long | ScalarType::Int) || index.numel()? == 0,
        "{name}(): Expected dtype int32/int64 for index"
    );
    Ok(())
}

fn ndim_of(tensor: &Tensor) -> i64 {
    tensor.dim().max(1)
}

fn size_at(tensor: &Tensor, dim: usize) -> Result<i64> {
    Ok(tensor.sizes()?.get(dim).copied().unwrap_or(1))
}

/// `gather`
pub fn gather_meta(
    outs: &mut StructuredOutputs,
    self_: &Tensor,
    dim: i64,
    index: &Tensor,
    _sparse_grad: bool,
) -> Result<()> {
    let wrapped = wrap_dim(dim, self_.dim(), true)? as usize;
    check_index_dtype("gather", index)?;
    if index.numel()? != 0 {
        check!(
            ndim_of(self_) == ndim_of(index),
            "Index tensor must have the same number of dimensions as input tensor"
        );
        for d in 0..ndim_of(self_) as usize {
            check!(
                d == wrapped || size_at(index, d)? <= size_at(self_, d)?,
                "Size does not match at dimension {d} expected index {:?} to be no larger than self {:?} apart from \
                 dimension {wrapped}",
                index.sizes()?,
                self_.sizes()?
            );
        }
    }
    outs.set_output_raw_strided(0, index.sizes()?, &[], self_.options())
}

fn scatter_checks(
    name: &str,
    outs: &mut StructuredOutputs,
    self_: &Tensor,
    dim: i64,
    index: &Tensor,
    src: Option<&Tensor>,
) -> Result<()> {
    let dim = wrap_dim(dim, self_.dim(), true)? as usize;
    check_index_dtype(name, index)?;
    if let Some(src) = src {
        check!(self_.dtype() == src.dtype(), "{name}(): Expected self.dtype to be equal to src.dtype");
    }
    if index.numel()? != 0 {
        check!(
            ndim_of(self_) == ndim_of(index),
            "Index tensor must have the same number of dimensions as self tensor"
        );
        if let Some(src) = src {
            check!(
                ndim_of(index) == ndim_of(src),
                "Index tensor must have the same number of dimensions as src tensor"
            );
        }
        for d in 0..ndim_of(self_) as usize {
            let size = size_at(index, d)?;
            let fits_self = d == dim || size <= size_at(self_, d)?;
            let fits_src = src.map_or(Ok(true), |src| size_at(src, d).map(|s| size <= s))?;
            let or_src = match src {
                Some(src) => format!(" and to be no larger size than src {:?}", src.sizes()?),
                None => String::new(),
            };
            check!(
                fits_self && fits_src,
                "Expected index {:?} to be no larger than self {:?} apart from dimension {dim}{or_src}",
                index.sizes()?,
                self_.sizes()?
            );
        }
    }
    outs.set_output_raw_strided(0, self_.sizes()?, &[], self_.options())
}

/// `scatter` of a tensor.
pub fn scatter_meta(
    outs: &mut StructuredOutputs,
    self_: &Tensor,
    dim: i64,
    index: &Tensor,
    src: &Tensor,
) -> Result<()> {
    scatter_checks("scatter", outs, self_, dim, index, Some(src))
}

/// `scatter` of a number.
pub fn scatter_value_meta(
    outs: &mut StructuredOutputs,
    self_: &Tensor,
    dim: i64,
    index: &Tensor,
    _value: &Scalar,
) -> Result<()> {
    scatter_checks("scatter", outs, self_, dim, index, None)
}

/// `scatter_add`
pub fn scatter_add_meta(
    outs: &mut StructuredOutputs,
    self_: &Tensor,
    dim: i64,
    index: &Tensor,
    src: &Tensor,
) -> Result<()> {
    scatter_checks("scatter_add", outs, self_, dim, index, Some(src))
}

/// `masked_fill_`
pub fn masked_fill_meta(
    _outs: &mut StructuredOutputs,
    self_: &Tensor,
    mask: &Tensor,
    _value: &Scalar,
) -> Result<TensorIterator> {
    check!(
        mask.dtype() == ScalarType::Bool,
        "masked_fill_ only supports boolean masks, but got mask with dtype {}",
        type_meta_name(mask.dtype())
    );
    TensorIteratorConfig::new()
        .op_name("masked_fill_")
        .check_all_same_dtype(false)
        .resize_outputs(false)
        .check_mem_overlap(false)
        .add_output(self_)
        .add_input(mask)
        .build_standalone()
}
