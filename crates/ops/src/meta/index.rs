//! Meta functions of the `index` operators.

use c10::{
    bail, check, check_index, infer_broadcast_size, infer_expand_geometry, is_expandable_to, wrap_dim,
    DimVector, Result, Scalar, ScalarType, SizeInt, SizeVector, Tensor,
};
use iter::{to_dtype, type_meta_name, IndexPlan, StructuredOutputs, TensorIterator, TensorIteratorConfig};

use crate::view::alias_with_sizes_and_strides;
use crate::{at, sym};

/// Index tensors matched to the dimensions of the tensor they index.
struct AdvancedIndex<I: SizeInt> {
    /// `self` over the result's dimensions: stride 0 along those that the indices span.
    self_: Tensor,
    /// The index tensors, shaped to broadcast to the result.
    indices: Vec<Tensor>,
    indexed_sizes: SizeVector<I>,
    /// In bytes.
    indexed_strides: SizeVector<I>,
}

fn is_zero_dim_mask(index: &Tensor) -> bool {
    index.dim() == 0 && matches!(index.dtype(), ScalarType::Bool | ScalarType::Byte)
}

/// Masks become the positions of their true elements; other index tensors become int64.
fn expand_masks<I: SizeInt>(self_: &Tensor, indices: &[Option<Tensor>]) -> Result<Vec<Option<Tensor>>> {
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
                let (mask, sizes) = (I::sizes_of(index)?, I::sizes_of(self_)?);
                for (d, size) in mask.iter().enumerate() {
                    let dim = result.len() + d;
                    check_index!(
                        sizes.get(dim).map_or(Ok(false), |own| own.expect_eq(size))?,
                        "The shape of the mask {:?} at index {d} does not match the shape of the indexed tensor {:?} at \
                         index {dim}",
                        &mask[..],
                        &sizes[..]
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

fn advanced_index<I: SizeInt>(self_: &Tensor, indices: &[Option<Tensor>]) -> Result<AdvancedIndex<I>> {
    check_index!(
        // A 0-d mask indexes no dimension.
        indices.iter().filter(|i| !i.as_ref().is_some_and(is_zero_dim_mask)).count() as i64 <= self_.dim(),
        "too many indices for tensor of dimension {} (got {})",
        self_.dim(),
        indices.len()
    );
    let mut indices = expand_masks::<I>(self_, indices)?;
    check_index!(
        indices.len() as i64 <= self_.dim(),
        "too many indices for tensor of dimension {} (got {})",
        self_.dim(),
        indices.len()
    );
    indices.resize(self_.dim() as usize, None);
    let spanned: SizeVector<I> = broadcast_indices(&mut indices)?;
    let self_ = if indexed_dims_are_adjacent(&indices) {
        self_.clone()
    } else {
        bring_indexed_to_front(self_, &mut indices)?
    };
    restride(&self_, &indices, &spanned)
}

/// Gives all index tensors one shape, and returns it.
fn broadcast_indices<I: SizeInt>(indices: &mut [Option<Tensor>]) -> Result<SizeVector<I>> {
    let mut spanned = SizeVector::<I>::new();
    for index in indices.iter().flatten() {
        spanned = match infer_broadcast_size(&spanned, &I::sizes_of(index)?) {
            Ok(sizes) => sizes,
            Err(_) => {
                let shapes: Vec<String> =
                    indices.iter().flatten().map(|i| format!("{:?}", i.sym_sizes())).collect();
                bail!(
                    Index,
                    "shape mismatch: indexing tensors could not be broadcast together with shapes {}",
                    shapes.join(", ")
                )
            }
        };
    }
    for index in indices.iter_mut().flatten() {
        if I::sizes_of(index)?[..] != spanned[..] {
            *index = at::expand(index, &I::to_sym_slice(&spanned), false)?;
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

fn restride<I: SizeInt>(
    self_: &Tensor,
    indices: &[Option<Tensor>],
    spanned: &[I],
) -> Result<AdvancedIndex<I>> {
    let (sizes, strides) = (I::sizes_of(self_)?, I::strides_of(self_)?);
    let item_size = I::from(self_.item_size() as i64);
    let (mut shape, mut new_strides) = (SizeVector::new(), SizeVector::new());
    let (mut indexed_sizes, mut indexed_strides) = (SizeVector::new(), SizeVector::new());
    let mut before = 0;
    let mut after = 0;
    let mut placed = false;
    for (dim, index) in indices.iter().enumerate() {
        if index.is_some() {
            indexed_sizes.push(sizes[dim].clone());
            indexed_strides.push(strides[dim].stride_mul(&item_size)?);
            if !placed {
                placed = true;
                shape.extend(spanned.iter().cloned());
                new_strides.extend(spanned.iter().map(|_| I::ZERO));
            }
            continue;
        }
        shape.push(sizes[dim].clone());
        new_strides.push(strides[dim].clone());
        if placed {
            after += 1;
        } else {
            before += 1;
        }
    }
    check_index!(
        !(placed && contains_zero(&indexed_sizes)? && !contains_zero(spanned)?),
        "index is out of bounds for dimension with size 0"
    );
    let mut index_shape: SizeVector<I> = SizeVector::from_elem(I::ONE, before);
    index_shape.extend(spanned.iter().cloned());
    index_shape.extend(std::iter::repeat_n(I::ONE, after));
    let index_shape = I::to_sym_slice(&index_shape);
    let indices = indices
        .iter()
        .flatten()
        .map(|index| at::reshape(index, &index_shape))
        .collect::<Result<Vec<Tensor>>>()?;
    // The restrided tensor is a description for the iterator alone: along the spanned dimensions it repeats an element.
    let self_ = alias_with_sizes_and_strides(self_, &shape, &new_strides, &I::storage_offset_of(self_)?)?;
    Ok(AdvancedIndex { self_, indices, indexed_sizes, indexed_strides })
}

fn contains_zero<I: SizeInt>(sizes: &[I]) -> Result<bool> {
    for size in sizes {
        if size.is_zero()? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Of symbolic sizes nothing is left to a kernel.
fn plan<I: SizeInt>(info: &AdvancedIndex<I>, iter: TensorIterator) -> IndexPlan {
    let plain = |values: &[I]| I::as_ints(values).map(DimVector::from_slice).unwrap_or_default();
    IndexPlan {
        iter,
        indexed_sizes: plain(&info.indexed_sizes),
        indexed_strides: plain(&info.indexed_strides),
    }
}

/// `index`
pub fn index_meta<I: SizeInt>(
    outs: &mut StructuredOutputs,
    self_: &Tensor,
    indices: &[Option<Tensor>],
) -> Result<IndexPlan> {
    let info = advanced_index::<I>(self_, indices)?;
    if let Some(out) = outs.maybe_get_output(0) {
        check!(
            out.dtype() == self_.dtype(),
            "index_out: self ({}) and result ({}) must have the same scalar type",
            self_.dtype().short_name(),
            out.dtype().short_name()
        );
    }
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
pub fn index_put_meta<I: SizeInt>(
    _outs: &mut StructuredOutputs,
    self_: &Tensor,
    indices: &[Option<Tensor>],
    values: &Tensor,
    _accumulate: bool,
    _unsafe: bool,
) -> Result<IndexPlan> {
    // Before the values are looked at, as in PyTorch: a mask that does not fit is an IndexError.
    let info = advanced_index::<I>(self_, indices)?;
    check!(
        self_.dtype() == values.dtype(),
        "Index put requires the source and destination dtypes match, got {} for the destination and {} for the source.",
        self_.dtype().short_name(),
        values.dtype().short_name()
    );
    check!(
        self_.device() == values.device() || self_.is_meta(),
        "Expected all tensors to be on the same device, but got values on {} and self on {} (index_put_)",
        values.device(),
        self_.device()
    );
    let (target, own) = (I::sizes_of(&info.self_)?, I::sizes_of(values)?);
    check!(
        is_expandable_to(&own, &target)?,
        "shape mismatch: value tensor of shape {:?} cannot be broadcast to indexing result of shape {:?}",
        &own[..],
        &target[..]
    );
    let (sizes, strides) = infer_expand_geometry(&own, &I::strides_of(values)?, &target)?;
    let values = alias_with_sizes_and_strides(values, &sizes, &strides, &I::storage_offset_of(values)?)?;
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
pub fn index_select_meta<I: SizeInt>(
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
    let mut sizes = I::to_vector(&I::sizes_of(self_)?);
    let count = I::numel_of(index)?;
    if sizes.is_empty() {
        check!(
            count.expect_eq(&I::ONE)?,
            "index_select(): Index to scalar can have only 1 value, got {count} value(s)"
        );
    } else {
        sizes[dim] = count;
    }
    outs.set_output_contiguous(0, &sizes, self_.options())
}

/// `index_add`
pub fn index_add_meta<I: SizeInt>(
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
        index.sym_sizes()
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
    let (own, other) = (I::sizes_of(self_)?, I::sizes_of(source)?);
    let (count, expected) = (I::numel_of(index)?, size_at::<I>(source, dim)?);
    check!(
        count.expect_eq(&expected)?,
        "index_add_(): Number of indices ({count}) should be equal to source.size(dim): ({expected}), for dim: {dim}"
    );
    let mut matches = own.len() == other.len();
    for (d, (a, b)) in own.iter().zip(other.iter()).enumerate() {
        matches = matches && (d == dim || a.expect_eq(b)?);
    }
    check!(
        matches,
        "source tensor shape must match self tensor shape, excluding the specified dimension. Got self.shape = {:?} \
         source.shape = {:?}",
        &own[..],
        &other[..]
    );
    outs.set_output_raw_strided(0, &own, &[], self_.options())
}

fn check_index_dtype(name: &str, index: &Tensor) -> Result<()> {
    check!(
        matches!(index.dtype(), ScalarType::Long | ScalarType::Int) || sym::is_empty(index)?,
        "{name}(): Expected dtype int32/int64 for index"
    );
    Ok(())
}

fn ndim_of(tensor: &Tensor) -> i64 {
    tensor.dim().max(1)
}

/// The size of a dimension; a tensor without dimensions has one of size 1.
fn size_at<I: SizeInt>(tensor: &Tensor, dim: usize) -> Result<I> {
    Ok(I::sizes_of(tensor)?.get(dim).cloned().unwrap_or(I::ONE))
}

/// Whether `index` is expected to be no larger than `other` along a dimension.
fn fits<I: SizeInt>(index: &Tensor, other: &Tensor, dim: usize) -> Result<bool> {
    size_at::<I>(index, dim)?.expect_le(&size_at(other, dim)?)
}

/// `gather`
pub fn gather_meta<I: SizeInt>(
    outs: &mut StructuredOutputs,
    self_: &Tensor,
    dim: i64,
    index: &Tensor,
    _sparse_grad: bool,
) -> Result<()> {
    let wrapped = wrap_dim(dim, self_.dim(), true)? as usize;
    check_index_dtype("gather", index)?;
    if !sym::is_empty(index)? {
        check!(
            ndim_of(self_) == ndim_of(index),
            "Index tensor must have the same number of dimensions as input tensor"
        );
        for d in 0..ndim_of(self_) as usize {
            check!(
                d == wrapped || fits::<I>(index, self_, d)?,
                "Size does not match at dimension {d} expected index {:?} to be no larger than self {:?} apart from \
                 dimension {wrapped}",
                index.sym_sizes(),
                self_.sym_sizes()
            );
        }
    }
    outs.set_output_raw_strided(0, &I::sizes_of(index)?, &[], self_.options())
}

fn scatter_checks<I: SizeInt>(
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
    if !sym::is_empty(index)? {
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
            let fits_self = d == dim || fits::<I>(index, self_, d)?;
            let fits_src = src.map_or(Ok(true), |src| fits::<I>(index, src, d))?;
            let or_src = || match src {
                Some(src) => format!(" and to be no larger size than src {:?}", src.sym_sizes()),
                None => String::new(),
            };
            check!(
                fits_self && fits_src,
                "Expected index {:?} to be no larger than self {:?} apart from dimension {dim}{}",
                index.sym_sizes(),
                self_.sym_sizes(),
                or_src()
            );
        }
    }
    outs.set_output_raw_strided(0, &I::sizes_of(self_)?, &[], self_.options())
}

/// `scatter` of a tensor.
pub fn scatter_meta<I: SizeInt>(
    outs: &mut StructuredOutputs,
    self_: &Tensor,
    dim: i64,
    index: &Tensor,
    src: &Tensor,
) -> Result<()> {
    scatter_checks::<I>("scatter", outs, self_, dim, index, Some(src))
}

/// `scatter` of a number.
pub fn scatter_value_meta<I: SizeInt>(
    outs: &mut StructuredOutputs,
    self_: &Tensor,
    dim: i64,
    index: &Tensor,
    _value: &Scalar,
) -> Result<()> {
    scatter_checks::<I>("scatter", outs, self_, dim, index, None)
}

/// `scatter` of a tensor that is combined with what is there.
pub fn scatter_reduced_meta<I: SizeInt>(
    outs: &mut StructuredOutputs,
    self_: &Tensor,
    dim: i64,
    index: &Tensor,
    src: &Tensor,
    reduce: &str,
) -> Result<()> {
    check_scatter_reduce(reduce)?;
    scatter_checks::<I>("scatter", outs, self_, dim, index, Some(src))
}

/// `scatter` of a number that is combined with what is there.
pub fn scatter_value_reduced_meta<I: SizeInt>(
    outs: &mut StructuredOutputs,
    self_: &Tensor,
    dim: i64,
    index: &Tensor,
    _value: &Scalar,
    reduce: &str,
) -> Result<()> {
    check_scatter_reduce(reduce)?;
    scatter_checks::<I>("scatter", outs, self_, dim, index, None)
}

fn check_scatter_reduce(reduce: &str) -> Result<()> {
    check!(matches!(reduce, "add" | "multiply"), "reduce argument must be either add or multiply.");
    Ok(())
}

/// `scatter_add`
pub fn scatter_add_meta<I: SizeInt>(
    outs: &mut StructuredOutputs,
    self_: &Tensor,
    dim: i64,
    index: &Tensor,
    src: &Tensor,
) -> Result<()> {
    scatter_checks::<I>("scatter_add", outs, self_, dim, index, Some(src))
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
        .check_all_same_device(!self_.is_meta())
        .resize_outputs(false)
        .check_mem_overlap(false)
        .add_output(self_)
        .add_input(mask)
        .build_standalone()
}

/// `scatter_reduce`
pub fn scatter_reduce_meta<I: SizeInt>(
    outs: &mut StructuredOutputs,
    self_: &Tensor,
    dim: i64,
    index: &Tensor,
    src: &Tensor,
    reduce: &str,
    _include_self: bool,
) -> Result<()> {
    check!(
        matches!(reduce, "sum" | "prod" | "mean" | "amax" | "amin"),
        "reduce argument must be either sum, prod, mean, amax or amin, got {reduce}"
    );
    scatter_checks::<I>("scatter", outs, self_, dim, index, Some(src))
}

/// `_embedding_bag`: the bags' vectors, the bag of each entry, the size of each bag, and the rows of the maxima.
#[allow(clippy::too_many_arguments)] // The operator has that many.
pub fn embedding_bag_meta<I: SizeInt>(
    outs: &mut StructuredOutputs,
    weight: &Tensor,
    indices: &Tensor,
    offsets: &Tensor,
    _scale_grad_by_freq: bool,
    mode: i64,
    _sparse: bool,
    per_sample_weights: Option<&Tensor>,
    include_last_offset: bool,
    _padding_idx: i64,
) -> Result<()> {
    const MAX: i64 = 2;
    for (place, argument, tensor) in [(1, "indices", indices), (2, "offsets", offsets)] {
        check!(
            matches!(tensor.dtype(), ScalarType::Int | ScalarType::Long),
            "Expected tensor for argument #{place} '{argument}' to have one of the following scalar types: Long, Int; but got \
             {} instead (while checking arguments for embedding_bag)",
            tensor.dtype().short_name()
        );
        check!(
            tensor.dim() == 1,
            "embedding_bag: {argument} has to be a 1D Tensor, but got {} dimensions",
            tensor.dim()
        );
    }
    check!(weight.dim() == 2, "weight has to be a 2D Tensor, but got Tensor of dimension {}", weight.dim());
    check!(
        matches!(weight.dtype(), ScalarType::Half | ScalarType::BFloat16 | ScalarType::Float | ScalarType::Double),
        "Expected tensor for argument #1 'weight' to have one of the following scalar types: Half, BFloat16, Float, Double; \
         but got {} instead (while checking arguments for embedding_bag)",
        weight.dtype().short_name()
    );
    check!((0..=MAX).contains(&mode), "`mode` must be sum, mean, or max.");
    let (entries, width) = (size_at::<I>(indices, 0)?, size_at::<I>(weight, 1)?);
    if let Some(factors) = per_sample_weights {
        check!(mode == 0, "embedding_bag: per_sample_weights only supported with mode='sum'");
        check!(
            factors.dtype() == weight.dtype(),
            "Expected tensor for argument #1 'weight' to have the same type as tensor for argument #1 'per_sample_weights'; \
             but type {} does not equal {} (while checking arguments for embedding_bag)",
            weight.dtype().short_name(),
            factors.dtype().short_name()
        );
        let sizes = I::sizes_of(factors)?;
        check!(
            I::expect_same(&sizes, std::slice::from_ref(&entries))?,
            "embedding_bag: expected per_sample_weights of the size of indices ({entries}), got sizes {:?}",
            &sizes[..]
        );
    }
    let mut bags = size_at::<I>(offsets, 0)?;
    if include_last_offset {
        check!(!bags.expect_eq(&I::ZERO)?, "include_last_offset: number of offset should be at least 1");
        bags = I::from_sym(&bags.to_sym().sym_sub(&c10::SymInt::ONE)?)?;
    }
    let options = weight.options();
    let integers = options.dtype(c10::promote_types(indices.dtype(), offsets.dtype())?);
    outs.set_output_contiguous(0, &[bags.clone(), width.clone()], options)?;
    outs.set_output_contiguous(1, &[entries], integers)?;
    outs.set_output_contiguous(2, &[bags.clone()], integers)?;
    let of_maxima = [bags, width];
    outs.set_output_contiguous(3, if mode == MAX { &of_maxima } else { &of_maxima[..1] }, integers)
}
