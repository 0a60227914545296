//! Building an iterator: the steps, in PyTorch's order.

use std::cmp::Ordering;

use c10::{
    check, get_channels_last_strides_2d, infer_broadcast_size, internal_assert, multiply_integers,
    order_dims, Device, DeviceType, DimOrder, DimVector, MemoryFormat, Result, SizeInt, SmallVec, Tensor,
    TensorOptions,
};

use crate::compute_types::prefix;
use crate::config::TensorIteratorConfig;
use crate::empty::{empty_like_dtype, empty_strided};
use crate::iterator::TensorIterator;
use crate::mem_overlap::{assert_no_internal_overlap, assert_no_partial_overlap};
use crate::operand::{check_in_storage, OperandInfo};
use crate::reduce::{is_reduced, shape_from_dim_mask};
use crate::resize::{resize_impl, resize_output};
use crate::structured_outputs::StructuredOutputs;

/// What all operands have in common, when nothing needs to be reordered.
enum FastSetup {
    Contiguous,
    ChannelsLast,
    /// The same strides everywhere, as those of this operand.
    NonOverlappingDense(usize),
}

impl TensorIterator {
    pub(crate) fn build(
        config: TensorIteratorConfig<'_>,
        mut outs: Option<&mut StructuredOutputs>,
    ) -> Result<Self> {
        if config.is_symbolic(outs.as_deref()) {
            return Self::build_symbolic(&config, outs);
        }
        let mut iter = Self {
            shape: DimVector::new(),
            operands: SmallVec::new(),
            noutputs: 0,
            numel: 0,
            common_dtype: None,
            common_device: Device::from(DeviceType::CPU),
            op_name: config.op_name,
            is_reduction: config.is_reduction,
            is_meta: false,
            all_ops_same_shape: true,
            all_ops_are_scalars: true,
            has_static_shape: config.static_shape.is_some(),
        };
        if let Some(outs) = outs.as_deref_mut() {
            internal_assert!(config.outputs.is_empty(), "{}: outputs given twice", config.op_name);
            if iter.set_up_uniform(&config, outs)? {
                return Ok(iter);
            }
        }
        iter.populate_operands(&config, outs.as_deref());
        iter.mark_outputs();
        if config.check_mem_overlap {
            iter.compute_mem_overlaps()?;
        }
        iter.compute_shape(&config)?;
        iter.numel = multiply_integers(&iter.shape)? as usize;
        iter.mark_resize_outputs(&config)?;
        iter.compute_types(&config)?;
        if !iter.fast_set_up(&config, outs.as_deref_mut())? {
            iter.compute_strides(config.reduced_dims)?;
            let perm = iter.reorder_dimensions(config.enforce_linear_iteration)?;
            iter.allocate_or_resize_outputs(&perm, outs)?;
            iter.coalesce_dimensions();
        }
        iter.set_data_pointers(config.static_shape.as_deref())?;
        Ok(iter)
    }

    pub(crate) fn populate_operands(
        &mut self,
        config: &TensorIteratorConfig<'_>,
        outs: Option<&StructuredOutputs>,
    ) {
        if let Some(outs) = outs {
            for i in 0..outs.len() {
                self.operands.push(OperandInfo::new(outs.maybe_get_output(i).cloned(), true));
            }
        } else {
            for output in &config.outputs {
                self.operands.push(OperandInfo::new(output.cloned(), true));
            }
        }
        self.noutputs = self.operands.len();
        for &input in &config.inputs {
            self.operands.push(OperandInfo::new(Some(input.clone()), false));
        }
        for op in &self.operands {
            self.is_meta |= op.device.is_some_and(Device::is_meta);
        }
    }

    /// Marks outputs that are inputs, too.
    pub(crate) fn mark_outputs(&mut self) {
        let (outputs, inputs) = self.operands.split_at_mut(self.noutputs);
        for output in outputs {
            if let Some(tensor) = &output.tensor {
                output.is_read_write =
                    inputs.iter().any(|input| input.tensor.as_ref().is_some_and(|t| t.is_same(tensor)));
            }
        }
    }

    pub(crate) fn compute_mem_overlaps(&self) -> Result<()> {
        let (outputs, inputs) = self.operands.split_at(self.noutputs);
        for output in outputs.iter().filter_map(|op| op.tensor.as_ref()) {
            assert_no_internal_overlap(output)?;
            for input in inputs.iter().filter_map(|op| op.tensor.as_ref()) {
                if !input.is_same(output) {
                    assert_no_partial_overlap(output, input)?;
                }
            }
        }
        Ok(())
    }

    /// Broadcasts the operands' shapes. Outputs that may be resized do not take part.
    fn compute_shape(&mut self, config: &TensorIteratorConfig<'_>) -> Result<()> {
        if let Some(shape) = &config.static_shape {
            self.shape = shape.clone();
            self.all_ops_same_shape = false;
            self.all_ops_are_scalars = shape.is_empty();
            for op in &self.operands {
                if let Some(tensor) = &op.tensor {
                    internal_assert!(
                        tensor.dim() as usize == shape.len(),
                        "{}: an operand with {} dimensions for the declared shape {shape:?}",
                        config.op_name,
                        tensor.dim()
                    );
                }
            }
            return Ok(());
        }
        let mut seen = false;
        for op in &self.operands {
            let Some(tensor) = &op.tensor else { continue };
            if op.is_output && (config.resize_outputs || config.reduced_dims.is_some()) {
                continue;
            }
            let sizes = tensor.sizes()?;
            self.all_ops_are_scalars &= sizes.is_empty();
            if !seen {
                self.shape.extend_from_slice(sizes);
                seen = true;
            } else if self.shape[..] != *sizes {
                self.all_ops_same_shape = false;
                self.shape = infer_broadcast_size(&self.shape, sizes)?;
            }
        }
        Ok(())
    }

    /// Marks given outputs of another shape, or refuses them.
    fn mark_resize_outputs(&mut self, config: &TensorIteratorConfig<'_>) -> Result<()> {
        if self.has_static_shape {
            return Ok(());
        }
        if let Some((mask, keepdim)) = config.reduced_dims {
            let expected = shape_from_dim_mask(&self.shape, mask, keepdim);
            for op in &self.operands[..self.noutputs] {
                let sizes = op.tensor.as_ref().map_or(Ok(&expected[..]), |tensor| tensor.sizes())?;
                check!(
                    *sizes == *expected,
                    "{}Expected output of shape {expected:?}, but got {sizes:?}",
                    prefix(self.op_name)
                );
            }
            return Ok(());
        }
        for op in &mut self.operands[..self.noutputs] {
            let Some(tensor) = &op.tensor else { continue };
            let sizes = tensor.sizes()?;
            if *sizes == self.shape[..] {
                continue;
            }
            if config.resize_outputs && !op.is_read_write {
                op.will_resize = true;
                continue;
            }
            // A reduction's outputs have size 1 where the inputs do not, on purpose.
            check!(
                self.is_reduction,
                "output with shape {sizes:?} doesn't match the broadcast shape {:?}",
                &self.shape[..]
            );
        }
        Ok(())
    }

    /// The layout all operands share, if one step can set up the whole iterator.
    fn fast_setup_kind(&self, config: &TensorIteratorConfig<'_>) -> Result<Option<FastSetup>> {
        if self.is_reduction || !self.all_ops_same_shape {
            return Ok(None);
        }
        let defined = || {
            self.operands
                .iter()
                .enumerate()
                .filter(|(_, op)| !op.will_resize)
                .filter_map(|(i, op)| op.tensor.as_ref().map(|tensor| (i, tensor)))
        };
        if defined().all(|(_, tensor)| tensor.is_contiguous()) {
            return Ok(Some(FastSetup::Contiguous));
        }
        // Only for the row-major layout do the orders of memory and of indices agree.
        if config.enforce_linear_iteration {
            return Ok(None);
        }
        if self.shape.len() == 4
            && defined().all(|(_, tensor)| tensor.is_contiguous_in(MemoryFormat::ChannelsLast))
        {
            return Ok(Some(FastSetup::ChannelsLast));
        }
        let mut first = None;
        for (i, tensor) in defined() {
            if !tensor.is_non_overlapping_and_dense() {
                return Ok(None);
            }
            let (_, strides) = *first.get_or_insert((i, tensor.strides()?));
            if *tensor.strides()? != *strides {
                return Ok(None);
            }
        }
        Ok(first.map(|(i, _)| FastSetup::NonOverlappingDense(i)))
    }

    /// Sets up operands that all have one dense layout as one row. False if they do not.
    fn fast_set_up(
        &mut self,
        config: &TensorIteratorConfig<'_>,
        mut outs: Option<&mut StructuredOutputs>,
    ) -> Result<bool> {
        let Some(kind) = self.fast_setup_kind(config)? else { return Ok(false) };
        let strides = match kind {
            FastSetup::Contiguous => DimVector::new(),
            FastSetup::ChannelsLast => get_channels_last_strides_2d(&self.shape)?,
            FastSetup::NonOverlappingDense(i) => DimVector::from_slice(self.tensor(i).strides()?),
        };
        let shape = std::mem::take(&mut self.shape);
        for i in 0..self.noutputs {
            self.set_output(i, &shape, &strides, outs.as_deref_mut())?;
        }
        if !shape.is_empty() {
            self.shape.push(self.numel as i64);
            for op in &mut self.operands {
                let element_size = op.dtype().item_size() as i64;
                op.stride_bytes.push(element_size);
            }
        }
        Ok(true)
    }

    /// Each operand's byte strides over the broadcast shape, in the shape's order; 0 where it repeats.
    fn compute_strides(&mut self, reduced_dims: Option<(u64, bool)>) -> Result<()> {
        let shape = &self.shape;
        for op in &mut self.operands {
            let Some(tensor) = op.tensor.as_ref().filter(|_| !op.will_resize) else { continue };
            if let (Some((mask, keepdim)), true) = (reduced_dims, op.is_output) {
                op.stride_bytes = reduced_strides(tensor, shape.len(), mask, keepdim)?;
                continue;
            }
            let sizes = if self.has_static_shape { &shape[..] } else { tensor.sizes()? };
            let strides = tensor.strides()?;
            let element_size = op.current_dtype.unwrap_or(tensor.dtype()).item_size() as i64;
            let offset = shape.len() - sizes.len();
            op.stride_bytes = DimVector::from_elem(0, shape.len());
            for (dim, (&size, &stride)) in sizes.iter().zip(strides).enumerate() {
                let repeats = size == 1 && shape[offset + dim] != 1;
                // Wrapping is harmless: a stride whose byte count does not fit belongs to a dimension that is
                // never stepped along, or `check_in_storage` refuses the tensor.
                op.stride_bytes[offset + dim] = if repeats { 0 } else { stride.wrapping_mul(element_size) };
            }
        }
        Ok(())
    }

    /// Orders the dimensions by stride, the fastest first (the reverse, for row-major tensors), and says which
    /// dimension of the broadcast shape each came from.
    fn reorder_dimensions(&mut self, enforce_linear_iteration: bool) -> Result<DimOrder> {
        let ndim = self.shape.len();
        let perm = if enforce_linear_iteration {
            (0..ndim).rev().collect()
        } else {
            order_dims(ndim, |a, b| Ok(self.compare_dims(a, b)))?
        };
        self.shape = perm.iter().map(|&dim| self.shape[dim]).collect();
        for op in self.operands.iter_mut().filter(|op| !op.stride_bytes.is_empty()) {
            op.stride_bytes = perm.iter().map(|&dim| op.stride_bytes[dim]).collect();
        }
        Ok(perm)
    }

    /// Whether `dim0` belongs before (`Less`) or after `dim1`, by the first operand that can tell.
    fn compare_dims(&self, dim0: usize, dim1: usize) -> Ordering {
        for op in self.operands.iter().filter(|op| !op.stride_bytes.is_empty() && !op.will_resize) {
            let (stride0, stride1) = (op.stride_bytes[dim0], op.stride_bytes[dim1]);
            // Reduced dimensions go to the front.
            if self.is_reduction && op.is_output && (stride0 == 0) != (stride1 == 0) {
                return if stride1 == 0 { Ordering::Greater } else { Ordering::Less };
            }
            if stride0 == 0 || stride1 == 0 {
                continue;
            }
            match stride0.cmp(&stride1) {
                // Equal strides mean that one of the two has size 1; the smaller one goes first.
                Ordering::Equal if self.shape[dim0] > self.shape[dim1] => return Ordering::Greater,
                Ordering::Equal => {}
                decided => return decided,
            }
        }
        Ordering::Equal
    }

    /// Allocates undefined outputs and resizes those marked, with the memory order of the inputs.
    fn allocate_or_resize_outputs(
        &mut self,
        perm: &[usize],
        mut outs: Option<&mut StructuredOutputs>,
    ) -> Result<()> {
        let ndim = self.shape.len();
        let row_major = perm.iter().enumerate().all(|(i, &dim)| dim == ndim - 1 - i);
        for i in 0..self.noutputs {
            let op = &self.operands[i];
            if let Some(tensor) = op.tensor.as_ref().filter(|_| !op.will_resize) {
                let sizes = DimVector::from_slice(tensor.sizes()?);
                self.set_output(i, &sizes, &[], outs.as_deref_mut())?;
                continue;
            }
            // Dense strides in the iterator's order, brought back to the order of the broadcast shape.
            let mut sizes = DimVector::from_elem(0, ndim);
            let mut strides = DimVector::from_elem(0, ndim);
            let mut stride = 1_i64;
            for (&dim, &size) in perm.iter().zip(&self.shape) {
                sizes[dim] = size;
                strides[dim] = stride;
                stride = stride.saturating_mul(size.max(1));
            }
            self.set_output(i, &sizes, if row_major { &[] } else { &strides }, outs.as_deref_mut())?;
            // Read back: whoever owns the output may have chosen its strides.
            let op = &mut self.operands[i];
            let element_size = op.dtype().item_size() as i64;
            if let Some(tensor) = &op.tensor {
                let strides = tensor.strides()?;
                op.stride_bytes = perm.iter().map(|&dim| strides[dim].wrapping_mul(element_size)).collect();
            }
        }
        Ok(())
    }

    /// Tells the owner of output `i` its shape (empty strides: row-major) and takes the tensor it gives.
    pub(crate) fn set_output<I: SizeInt>(
        &mut self,
        i: usize,
        sizes: &[I],
        strides: &[I],
        mut outs: Option<&mut StructuredOutputs>,
    ) -> Result<()> {
        let op = &mut self.operands[i];
        let given = op.original.as_ref().or(op.tensor.as_ref());
        let dtype = given.map_or(op.dtype(), |tensor| tensor.dtype());
        let options = TensorOptions::new().dtype(dtype).device(op.device.unwrap_or(self.common_device));
        if let Some(outs) = outs.as_deref_mut() {
            outs.set_output_raw_strided(i, sizes, strides, options)?;
        } else if let Some(given) = given {
            if op.will_resize && resize_output(given, sizes)? && !strides.is_empty() {
                resize_impl(given, sizes, Some(strides))?;
            }
        }
        if op.tensor.is_none() {
            let allocated = match outs.as_deref() {
                Some(outs) => outs.output(i)?.clone(),
                None => empty_strided(sizes, strides, &options)?,
            };
            op.current_dtype = Some(allocated.dtype());
            op.tensor = Some(allocated);
        }
        if op.is_cast_output {
            // An output that was to be resized gets its temporary here, when its size is right.
            if let (None, Some(tensor)) = (&op.original, &op.tensor) {
                let temporary = empty_like_dtype(tensor, op.dtype())?;
                op.original = op.tensor.replace(temporary);
            }
            if let (Some(outs), Some(temporary)) = (outs, &op.tensor) {
                outs.set_proxy(i, temporary.clone());
            }
        }
        op.will_resize = false;
        Ok(())
    }

    /// Merges neighbouring dimensions that every operand walks like one.
    fn coalesce_dimensions(&mut self) {
        let ndim = self.shape.len();
        if ndim <= 1 {
            return;
        }
        let mut last = 0;
        for dim in 1..ndim {
            if self.can_coalesce(last, dim) {
                if self.shape[last] == 1 {
                    self.replace_stride(last, dim);
                }
                // Only an empty iterator can overflow here, since `numel` did not.
                self.shape[last] = self.shape[last].wrapping_mul(self.shape[dim]);
            } else {
                last += 1;
                if last != dim {
                    self.replace_stride(last, dim);
                    self.shape[last] = self.shape[dim];
                }
            }
        }
        self.shape.truncate(last + 1);
        for op in &mut self.operands {
            op.stride_bytes.truncate(last + 1);
        }
    }

    fn can_coalesce(&self, dim0: usize, dim1: usize) -> bool {
        let (size0, size1) = (self.shape[dim0], self.shape[dim1]);
        size0 == 1
            || size1 == 1
            || self
                .operands
                .iter()
                .all(|op| size0.wrapping_mul(op.stride_bytes[dim0]) == op.stride_bytes[dim1])
    }

    fn replace_stride(&mut self, dim0: usize, dim1: usize) {
        for op in &mut self.operands {
            op.stride_bytes[dim0] = op.stride_bytes[dim1];
        }
    }

    /// Proves the accesses of every operand and takes the addresses.
    fn set_data_pointers(&mut self, static_shape: Option<&[i64]>) -> Result<()> {
        if self.is_meta {
            return Ok(());
        }
        for i in 0..self.operands.len() {
            let op = &self.operands[i];
            if let (Some(tensor), None) = (&op.tensor, &op.inline) {
                // Each for itself: a reduction of nothing still writes its outputs.
                if tensor.numel()? != 0 {
                    self.operands[i].data = self.checked_data(tensor, op.is_output, static_shape)?;
                }
            }
        }
        Ok(())
    }

    /// The address of an operand's first element, after the proof that the walk stays in its storage.
    pub(crate) fn checked_data(
        &self,
        tensor: &Tensor,
        is_output: bool,
        static_shape: Option<&[i64]>,
    ) -> Result<*mut u8> {
        check_in_storage(tensor, static_shape)?;
        // Reading leaves a copy-on-write storage shared.
        let data = if is_output { tensor.data_ptr() } else { tensor.const_data_ptr().cast_mut() };
        check!(
            !data.is_null(),
            "{}The tensor has a non-zero number of elements, but its data is not allocated yet.",
            prefix(self.op_name)
        );
        Ok(data)
    }
}

/// The byte strides of a reduction's output over the input's dimensions: 0 along the reduced ones.
fn reduced_strides(output: &Tensor, ndim: usize, mask: u64, keepdim: bool) -> Result<DimVector> {
    let element_size = output.item_size() as i64;
    let mut strides = output.strides()?.iter();
    let mut stride_bytes = DimVector::from_elem(0, ndim);
    for (dim, to) in stride_bytes.iter_mut().enumerate() {
        if is_reduced(mask, dim) {
            if keepdim {
                strides.next();
            }
        } else if let Some(&stride) = strides.next() {
            *to = stride.wrapping_mul(element_size);
        }
    }
    Ok(stride_bytes)
}
