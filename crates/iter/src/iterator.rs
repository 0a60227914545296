//! `TensorIterator`: the plan of an element-wise operator or reduction.

use c10::{internal_assert, Device, DeviceType, DimVector, Element, Result, ScalarType, SmallVec, Tensor};

use crate::cast::{cast_single_element, copy_into};
use crate::loops::Pointers;
use crate::operand::OperandInfo;

/// How a kernel walks its operands: outputs first, then inputs, all with one shape.
///
/// Dimensions are in the order of the iterator, fastest first, and merged where they can be, so they are not those
/// of the tensors. Strides are in bytes. A clone walks the same operands, for kernels that treat parts of them apart
/// ([`narrow`](Self::narrow)).
#[derive(Clone)]
pub struct TensorIterator {
    pub(crate) shape: DimVector,
    pub(crate) operands: SmallVec<[OperandInfo; 4]>,
    pub(crate) noutputs: usize,
    pub(crate) numel: usize,
    pub(crate) common_dtype: Option<ScalarType>,
    pub(crate) common_device: Device,
    pub(crate) op_name: &'static str,
    pub(crate) is_reduction: bool,
    pub(crate) is_meta: bool,
    pub(crate) all_ops_same_shape: bool,
    pub(crate) all_ops_are_scalars: bool,
    pub(crate) has_static_shape: bool,
}

impl TensorIterator {
    /// Number of operands.
    pub fn ntensors(&self) -> usize {
        self.operands.len()
    }

    /// Number of outputs.
    pub fn noutputs(&self) -> usize {
        self.noutputs
    }

    /// Number of inputs.
    pub fn ninputs(&self) -> usize {
        self.operands.len() - self.noutputs
    }

    /// Number of elements walked.
    pub fn numel(&self) -> usize {
        self.numel
    }

    /// Number of dimensions after merging.
    pub fn ndim(&self) -> usize {
        self.shape.len()
    }

    /// Sizes, fastest dimension first.
    pub fn shape(&self) -> &[i64] {
        &self.shape
    }

    /// An operand's byte strides, fastest dimension first.
    pub fn strides(&self, arg: usize) -> &[i64] {
        &self.operands[arg].stride_bytes
    }

    /// Address of an operand's first element. Valid while the iterator lives and is not moved.
    pub fn data_ptr(&self, arg: usize) -> *mut u8 {
        self.operands[arg].data_ptr()
    }

    /// The dtype of the elements behind [`data_ptr`](Self::data_ptr).
    pub fn dtype(&self, arg: usize) -> ScalarType {
        self.operands[arg].dtype()
    }

    /// The dtype of input `i`.
    pub fn input_dtype(&self, i: usize) -> ScalarType {
        self.dtype(self.noutputs + i)
    }

    /// Bytes per element of an operand.
    pub fn element_size(&self, arg: usize) -> usize {
        self.dtype(arg).item_size()
    }

    /// The dtype of the computation; the first operand's when none was computed.
    pub fn common_dtype(&self) -> ScalarType {
        self.common_dtype
            .unwrap_or_else(|| self.operands.first().map_or(ScalarType::Float, OperandInfo::dtype))
    }

    /// The device of the computation.
    pub fn device(&self) -> Device {
        self.common_device
    }

    /// The type of the device of the computation.
    pub fn device_type(&self) -> DeviceType {
        self.common_device.type_
    }

    /// The operator's name.
    pub fn op_name(&self) -> &'static str {
        self.op_name
    }

    /// Whether operands have no data, so that no kernel is to run.
    pub fn is_meta(&self) -> bool {
        self.is_meta
    }

    /// Whether this walks a reduction.
    pub fn is_reduction(&self) -> bool {
        self.is_reduction
    }

    /// An operand's tensor.
    ///
    /// For inputs, use it for metadata: a single element that was cast lives inside the iterator, so the tensor's
    /// own dtype and data can differ from [`dtype`](Self::dtype) and [`data_ptr`](Self::data_ptr).
    pub fn tensor(&self, arg: usize) -> &Tensor {
        match &self.operands[arg].tensor {
            Some(tensor) => tensor,
            None => unreachable!("building an iterator allocates every undefined output"),
        }
    }

    /// Output `i`.
    pub fn output(&self, i: usize) -> &Tensor {
        assert!(i < self.noutputs, "{}: output {i} of {}", self.op_name, self.noutputs);
        self.tensor(i)
    }

    /// Input `i`; see [`tensor`](Self::tensor).
    pub fn input(&self, i: usize) -> &Tensor {
        self.tensor(self.noutputs + i)
    }

    /// Whether an operand is a single element.
    pub fn is_scalar(&self, arg: usize) -> bool {
        self.tensor(arg).numel().is_ok_and(|numel| numel == 1)
    }

    /// Whether an operand is a single element in the CPU's memory.
    pub fn is_cpu_scalar(&self, arg: usize) -> bool {
        self.operands[arg].device.is_some_and(Device::is_cpu) && self.is_scalar(arg)
    }

    /// The element of an operand for which [`is_cpu_scalar`](Self::is_cpu_scalar) holds. `T` must be the type of
    /// [`dtype`](Self::dtype).
    pub fn scalar_value<T: Element>(&self, arg: usize) -> T {
        assert!(
            self.is_cpu_scalar(arg) && T::SCALAR_TYPE == self.dtype(arg),
            "{}: operand {arg} is not a single {} on the CPU",
            self.op_name,
            T::SCALAR_TYPE
        );
        // SAFETY: one element of type `T` at this address by the assertion and `check_in_storage`.
        unsafe { self.data_ptr(arg).cast::<T>().read_unaligned() }
    }

    /// The same element as the caller gave it, in the type `T`: not rounded to the common dtype first. `None` unless
    /// the operand is one element on the CPU, be it expanded to many.
    pub fn original_scalar_value<T: Element>(&self, arg: usize) -> Option<T> {
        let operand = &self.operands[arg];
        let is_expanded = || self.numel > 0 && operand.stride_bytes.iter().all(|&stride| stride == 0);
        if !operand.device.is_some_and(Device::is_cpu) || !(self.is_scalar(arg) || is_expanded()) {
            return None;
        }
        let tensor = operand.original.as_ref().or(operand.tensor.as_ref())?;
        // SAFETY: it has an element, as the operand made from it has one; inside its storage, by the check that every operand
        // passes before it is walked, or read to make another.
        let element = unsafe { cast_single_element(tensor, T::SCALAR_TYPE) }?;
        // SAFETY: `cast_single_element` wrote one element of type `T`.
        Some(unsafe { element.0.as_ptr().cast::<T>().read_unaligned() })
    }

    /// Drops an operand, for kernels that take a scalar's value out of the walk.
    pub fn remove_operand(&mut self, arg: usize) {
        self.operands.remove(arg);
        if arg < self.noutputs {
            self.noutputs -= 1;
        }
    }

    /// Whether this is one row, dense in every operand.
    pub fn is_contiguous(&self) -> bool {
        self.numel == 1
            || (self.ndim() == 1 && (0..self.ntensors()).all(|arg| self.has_contiguous_first_dim_of(arg)))
    }

    /// Whether this is at most one row.
    pub fn is_trivial_1d(&self) -> bool {
        self.ndim() <= 1
    }

    /// Whether every operand is dense in the fastest dimension.
    pub fn has_contiguous_first_dim(&self) -> bool {
        self.ndim() == 0 || (0..self.ntensors()).all(|arg| self.has_contiguous_first_dim_of(arg))
    }

    fn has_contiguous_first_dim_of(&self, arg: usize) -> bool {
        self.strides(arg).first().is_none_or(|&stride| stride == self.element_size(arg) as i64)
    }

    /// Whether all offsets in bytes fit 32 bits, as GPU kernels like.
    pub fn can_use_32bit_indexing(&self) -> bool {
        let max = i64::from(i32::MAX);
        let extent = |arg: usize| {
            self.shape
                .iter()
                .zip(self.strides(arg))
                .fold(1_i64, |sum, (&size, &stride)| sum.saturating_add((size - 1).saturating_mul(stride)))
        };
        self.numel as i64 <= max && (0..self.ntensors()).all(|arg| extent(arg) <= max)
    }

    /// Whether output elements are shared along a dimension.
    pub fn is_dim_reduced(&self, dim: usize) -> bool {
        self.operands[..self.noutputs].iter().any(|op| op.stride_bytes[dim] == 0 && self.shape[dim] > 1)
    }

    /// How many dimensions are reduced. They come first.
    pub fn num_reduce_dims(&self) -> usize {
        (0..self.ndim()).filter(|&dim| self.strides(0)[dim] == 0).count()
    }

    /// How many elements the first output has.
    pub fn num_output_elements(&self) -> usize {
        self.shape
            .iter()
            .zip(self.strides(0))
            .filter(|&(&size, &stride)| stride != 0 || size == 0)
            .map(|(&size, _)| size as usize)
            .product()
    }

    /// Restricts a dimension to `len` indices from `start`.
    pub fn narrow(&mut self, dim: usize, start: i64, len: i64) -> Result<()> {
        internal_assert!(
            dim < self.ndim() && start >= 0 && len >= 0 && start <= self.shape[dim] - len,
            "narrow({dim}, {start}, {len}) of {:?}",
            self.shape
        );
        self.shape[dim] = len;
        for op in &mut self.operands {
            op.data = op.data.wrapping_offset((op.stride_bytes[dim] * start) as isize);
        }
        self.update_numel();
        Ok(())
    }

    /// Restricts the dimensions from `start_dim` on to one index each, keeping them with size 1.
    pub fn select_all_keeping_dim(&mut self, start_dim: usize, indices: &[i64]) -> Result<()> {
        for (dim, &index) in (start_dim..self.ndim()).zip(indices) {
            self.narrow(dim, index, 1)?;
        }
        Ok(())
    }

    /// Removes a dimension, leaving the walk at its index 0, for kernels that loop over it themselves.
    pub fn remove_dimension(&mut self, dim: usize) -> Result<()> {
        internal_assert!(dim < self.ndim(), "remove_dimension({dim}) of {:?}", self.shape);
        self.shape.remove(dim);
        for op in &mut self.operands {
            op.stride_bytes.remove(dim);
        }
        self.update_numel();
        Ok(())
    }

    /// Copies outputs that were computed in the common dtype into the tensors given, for iterators built with
    /// [`build_standalone`](crate::TensorIteratorConfig::build_standalone). (`StructuredOutputs::finish` does it for
    /// the others.)
    pub fn cast_outputs(&self) -> Result<()> {
        for op in &self.operands[..self.noutputs] {
            if let (Some(original), Some(temporary)) = (&op.original, &op.tensor) {
                copy_into(original, temporary, false)?;
            }
        }
        Ok(())
    }

    pub(crate) fn update_numel(&mut self) {
        self.numel = self.shape.iter().product::<i64>() as usize;
    }

    pub(crate) fn base_pointers(&self) -> Pointers {
        self.operands.iter().map(OperandInfo::data_ptr).collect()
    }
}
