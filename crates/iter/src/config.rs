//! `TensorIteratorConfig`: which operands, and under which rules.

use c10::{Device, DimVector, Result, ScalarType, SmallVec, Tensor};

use crate::iterator::TensorIterator;
use crate::structured_outputs::StructuredOutputs;

/// Describes an iterator. Outputs are added before inputs.
///
/// ```ignore
/// let iter = TensorIteratorConfig::new()
///     .op_name("add")
///     .promote_inputs_to_common_dtype(true)
///     .add_input(self_)
///     .add_input(other)
///     .build(outs)?;
/// ```
pub struct TensorIteratorConfig<'a> {
    pub(crate) op_name: &'static str,
    pub(crate) outputs: SmallVec<[Option<&'a Tensor>; 2]>,
    pub(crate) inputs: SmallVec<[&'a Tensor; 4]>,
    pub(crate) static_shape: Option<DimVector>,
    /// Dimensions of the input that are reduced, and whether outputs keep them with size 1.
    pub(crate) reduced_dims: Option<(u64, bool)>,
    pub(crate) static_dtype: Option<ScalarType>,
    pub(crate) static_device: Option<Device>,
    pub(crate) check_mem_overlap: bool,
    pub(crate) allow_cpu_scalars: bool,
    pub(crate) is_reduction: bool,
    pub(crate) resize_outputs: bool,
    pub(crate) check_all_same_dtype: bool,
    pub(crate) check_all_same_device: bool,
    pub(crate) enforce_safe_casting_to_output: bool,
    pub(crate) enforce_linear_iteration: bool,
    pub(crate) promote_inputs_to_common_dtype: bool,
    pub(crate) promote_integer_inputs_to_float: bool,
    pub(crate) cast_common_dtype_to_outputs: bool,
}

macro_rules! switches {
    ($($(#[$doc:meta])* $name:ident;)*) => {
        $($(#[$doc])*
        #[must_use]
        #[inline]
        pub fn $name(mut self, on: bool) -> Self {
            self.$name = on;
            self
        })*
    };
}

impl<'a> TensorIteratorConfig<'a> {
    /// PyTorch's defaults: operands must share dtype and device, overlapping outputs are refused, and outputs of a
    /// wrong size are resized.
    pub fn new() -> Self {
        Self {
            op_name: "",
            outputs: SmallVec::new(),
            inputs: SmallVec::new(),
            static_shape: None,
            reduced_dims: None,
            static_dtype: None,
            static_device: None,
            check_mem_overlap: true,
            allow_cpu_scalars: false,
            is_reduction: false,
            resize_outputs: true,
            check_all_same_dtype: true,
            check_all_same_device: true,
            enforce_safe_casting_to_output: false,
            enforce_linear_iteration: false,
            promote_inputs_to_common_dtype: false,
            promote_integer_inputs_to_float: false,
            cast_common_dtype_to_outputs: false,
        }
    }

    /// The operator's name, for messages.
    #[must_use]
    #[inline]
    pub fn op_name(mut self, name: &'static str) -> Self {
        self.op_name = name;
        self
    }

    /// Adds an output to write to.
    #[must_use]
    #[inline]
    pub fn add_output(mut self, tensor: &'a Tensor) -> Self {
        self.outputs.push(Some(tensor));
        self
    }

    /// Adds an output that the iterator allocates.
    #[must_use]
    #[inline]
    pub fn add_undefined_output(mut self) -> Self {
        self.outputs.push(None);
        self
    }

    /// Adds an input.
    #[must_use]
    #[inline]
    pub fn add_input(mut self, tensor: &'a Tensor) -> Self {
        self.inputs.push(tensor);
        self
    }

    switches! {
        /// Whether outputs that overlap themselves, or an input partially, are refused.
        check_mem_overlap;
        /// Whether a zero-dimensional CPU input may be mixed with operands on another device.
        allow_cpu_scalars;
        /// Whether outputs have stride 0 in the dimensions that are reduced. See
        /// [`reduce_dims`](Self::reduce_dims), which arranges that.
        is_reduction;
        /// Whether given outputs of another shape are resized (they then do not take part in broadcasting).
        resize_outputs;
        /// Whether all operands must have one dtype.
        check_all_same_dtype;
        /// Whether all operands must be on one device.
        check_all_same_device;
        /// Whether the common dtype must be castable to each given output's dtype.
        enforce_safe_casting_to_output;
        /// Whether elements are visited in row-major order of the shape, whatever the strides.
        enforce_linear_iteration;
        /// Whether outputs of another dtype get a temporary of the common dtype.
        cast_common_dtype_to_outputs;
    }

    /// Whether inputs are cast to the dtype they promote to. Replaces the check for equal dtypes.
    #[must_use]
    #[inline]
    pub fn promote_inputs_to_common_dtype(mut self, on: bool) -> Self {
        self.promote_inputs_to_common_dtype = on;
        if on {
            self.check_all_same_dtype = false;
        }
        self
    }

    /// Whether an integral common dtype becomes the default dtype. Implies promotion.
    #[must_use]
    #[inline]
    pub fn promote_integer_inputs_to_float(mut self, on: bool) -> Self {
        self.promote_integer_inputs_to_float = on;
        if on {
            self.promote_inputs_to_common_dtype(true)
        } else {
            self
        }
    }

    /// The dtype of undefined outputs.
    #[must_use]
    #[inline]
    pub fn declare_static_dtype(mut self, dtype: ScalarType) -> Self {
        self.static_dtype = Some(dtype);
        self
    }

    /// The device of undefined outputs.
    #[must_use]
    #[inline]
    pub fn declare_static_device(mut self, device: Device) -> Self {
        self.static_device = Some(device);
        self
    }

    /// The shape to walk, in place of the broadcast one. Every operand must have as many dimensions; its strides
    /// are used with this shape. Outputs are not resized.
    #[must_use]
    #[inline]
    pub fn declare_static_shape(mut self, shape: &[i64]) -> Self {
        self.static_shape = Some(DimVector::from_slice(shape));
        self.resize_outputs = false;
        self
    }

    /// [`declare_static_shape`](Self::declare_static_shape) with one dimension walked only at index 0 (kernels that
    /// handle that dimension themselves). An empty dimension stays empty.
    #[must_use]
    #[inline]
    pub fn declare_static_shape_squashing(self, shape: &[i64], squash_dim: usize) -> Self {
        let mut config = self.declare_static_shape(shape);
        if let Some(size) = config.static_shape.as_mut().and_then(|shape| shape.get_mut(squash_dim)) {
            *size = (*size).min(1);
        }
        config
    }

    /// Reduces the input's dimensions in `mask`. The outputs have the shape of
    /// [`shape_from_dim_mask`](crate::shape_from_dim_mask) and stand still along these dimensions.
    #[must_use]
    #[inline]
    pub fn reduce_dims(mut self, mask: u64, keepdim: bool) -> Self {
        self.reduced_dims = Some((mask, keepdim));
        self.is_reduction = true;
        self.resize_outputs = false;
        self.check_all_same_dtype = false;
        self.check_mem_overlap = false;
        self
    }

    /// Builds the iterator over the outputs of a structured operator, in order, and the inputs added here.
    pub fn build(self, outs: &mut StructuredOutputs) -> Result<TensorIterator> {
        TensorIterator::build(self, Some(outs))
    }

    /// Builds the iterator over the outputs and inputs added here. After the kernel, call
    /// [`TensorIterator::cast_outputs`].
    pub fn build_standalone(self) -> Result<TensorIterator> {
        TensorIterator::build(self, None)
    }
}

impl Default for TensorIteratorConfig<'_> {
    fn default() -> Self {
        Self::new()
    }
}
