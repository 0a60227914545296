//! One operand of an iterator, and the proof that walking it stays inside its storage.

use c10::{check_in_bounds_for_storage, Device, DimVector, Result, ScalarType, Tensor};

/// A single element that the iterator converted itself, instead of making a tensor for it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct InlineElement(pub(crate) [u64; 2]);

/// One operand.
#[derive(Clone)]
pub(crate) struct OperandInfo {
    /// What kernels walk. `None` only for an output that is not allocated yet.
    pub(crate) tensor: Option<Tensor>,
    /// The tensor given by the caller, when `tensor` is a temporary of another dtype.
    pub(crate) original: Option<Tensor>,
    /// Address of the first element; ignored when `inline` is there.
    pub(crate) data: *mut u8,
    /// The converted single element of an input.
    pub(crate) inline: Option<InlineElement>,
    /// One per dimension of the iterator, fastest first. Empty until computed.
    pub(crate) stride_bytes: DimVector,
    /// The dtype behind `data`.
    pub(crate) current_dtype: Option<ScalarType>,
    /// The dtype an undefined output is going to have.
    pub(crate) target_dtype: Option<ScalarType>,
    pub(crate) device: Option<Device>,
    pub(crate) is_output: bool,
    pub(crate) will_resize: bool,
    /// An output that is also an input (in-place operators).
    pub(crate) is_read_write: bool,
    /// A given output that is computed in the common dtype and copied back afterwards.
    pub(crate) is_cast_output: bool,
}

// SAFETY: `data` is an address inside the storage that `tensor` (which is Send and Sync) keeps alive; nothing here
// is changed through a shared reference.
unsafe impl Send for OperandInfo {}
// SAFETY: as above.
unsafe impl Sync for OperandInfo {}

impl OperandInfo {
    /// An operand for a tensor, or for an output that is to be allocated.
    #[inline]
    pub(crate) fn new(tensor: Option<Tensor>, is_output: bool) -> Self {
        let dtype = tensor.as_ref().map(|t| t.dtype());
        let device = tensor.as_ref().map(|t| t.device());
        Self {
            tensor,
            original: None,
            data: std::ptr::null_mut(),
            inline: None,
            stride_bytes: DimVector::new(),
            current_dtype: dtype,
            target_dtype: dtype,
            device,
            is_output,
            will_resize: false,
            is_read_write: false,
            is_cast_output: false,
        }
    }

    /// Where the elements are.
    pub(crate) fn data_ptr(&self) -> *mut u8 {
        match &self.inline {
            // Inputs are only read, so the shared borrow may be handed out as a pointer.
            Some(element) => element.0.as_ptr().cast_mut().cast(),
            None => self.data,
        }
    }

    /// The dtype behind [`data_ptr`](Self::data_ptr).
    pub(crate) fn dtype(&self) -> ScalarType {
        self.current_dtype.or(self.target_dtype).unwrap_or(ScalarType::Float)
    }
}

/// Fails unless every element of `tensor` lies inside its storage.
///
/// The proof before unsafe kernels run, for every operand of every iterator. `shape` stands for the tensor's own sizes
/// where the caller of an iterator declared another one.
#[inline]
pub(crate) fn check_in_storage(tensor: &Tensor, shape: Option<&[i64]>) -> Result<()> {
    let Some(sizes) = shape else { return tensor.check_in_storage() };
    if sizes.contains(&0) {
        return Ok(());
    }
    check_in_bounds_for_storage(
        sizes,
        tensor.strides()?,
        tensor.storage_offset()?,
        tensor.dtype(),
        tensor.storage()?,
    )
}
