//! Building an iterator whose operands have symbolic geometry.
//!
//! Such operands have no memory, so no kernel walks them: what is left of an iterator is the shape, dtypes and strides
//! of the outputs, by the rules of the other steps in `build`. Sizes are equal or 1 by the rules of broadcasting; the
//! order of dimensions is decided, with guards, only where operands differ in layout.

use std::cmp::Ordering;

use c10::{
    check, get_channels_last_strides_2d, infer_broadcast_size, internal_assert, order_dims, strides_in_order,
    Device, DeviceType, DimVector, MemoryFormat, Result, ScalarType, SizeInt, SmallVec, SymDimVector, SymInt,
    Tensor,
};

use crate::config::TensorIteratorConfig;
use crate::iterator::TensorIterator;
use crate::structured_outputs::StructuredOutputs;

/// The shape operands broadcast to.
struct Broadcast {
    shape: SymDimVector,
    /// Whether no operand is repeated.
    all_same: bool,
}

impl TensorIteratorConfig<'_> {
    /// Whether an operand is symbolic.
    #[inline]
    pub(crate) fn is_symbolic(&self, outs: Option<&StructuredOutputs>) -> bool {
        self.inputs.iter().any(|tensor| tensor.has_symbolic_sizes_strides())
            || self.outputs.iter().flatten().any(|tensor| tensor.has_symbolic_sizes_strides())
            || outs.is_some_and(StructuredOutputs::is_symbolic)
    }
}

impl TensorIterator {
    /// An iterator that is never walked.
    pub(crate) fn unwalked(op_name: &'static str, common_dtype: Option<ScalarType>, device: Device) -> Self {
        Self {
            shape: DimVector::new(),
            operands: SmallVec::new(),
            noutputs: 0,
            numel: 0,
            common_dtype,
            common_device: device,
            op_name,
            is_reduction: false,
            is_meta: true,
            all_ops_same_shape: false,
            all_ops_are_scalars: false,
            has_static_shape: false,
        }
    }

    /// Sets the outputs of operands of which at least one is symbolic.
    pub(crate) fn build_symbolic(
        config: &TensorIteratorConfig<'_>,
        mut outs: Option<&mut StructuredOutputs>,
    ) -> Result<Self> {
        internal_assert!(
            config.static_shape.is_none() && config.reduced_dims.is_none(),
            "{}: a declared shape for symbolic operands",
            config.op_name
        );
        let mut iter = Self::unwalked(config.op_name, None, Device::from(DeviceType::Meta));
        iter.is_reduction = config.is_reduction;
        iter.populate_operands(config, outs.as_deref());
        iter.is_meta = true;
        iter.mark_outputs();
        if config.check_mem_overlap {
            iter.compute_mem_overlaps()?;
        }
        let broadcast = iter.broadcast_symbolic(config)?;
        iter.mark_symbolic_resizes(config, &broadcast.shape)?;
        iter.compute_types(config)?;
        let strides = iter.symbolic_layout(config, &broadcast)?;
        for i in 0..iter.noutputs {
            let op = &iter.operands[i];
            let given = op.tensor.is_some() && !op.will_resize;
            iter.set_output(i, &broadcast.shape, if given { &[] } else { &strides }, outs.as_deref_mut())?;
        }
        Ok(iter)
    }

    fn broadcast_symbolic(&mut self, config: &TensorIteratorConfig<'_>) -> Result<Broadcast> {
        let mut broadcast: Option<Broadcast> = None;
        self.all_ops_are_scalars = true;
        for op in &self.operands {
            let Some(tensor) = op.tensor.as_ref().filter(|_| !(op.is_output && config.resize_outputs)) else {
                continue;
            };
            let sizes = tensor.sym_sizes();
            self.all_ops_are_scalars &= sizes.is_empty();
            broadcast = Some(match broadcast {
                None => Broadcast { shape: sizes, all_same: true },
                Some(seen) => Broadcast {
                    shape: infer_broadcast_size(&seen.shape, &sizes)?,
                    all_same: seen.all_same && !stretches(&seen.shape, &sizes)?,
                },
            });
        }
        let broadcast = broadcast.unwrap_or(Broadcast { shape: SymDimVector::new(), all_same: true });
        self.all_ops_same_shape = broadcast.all_same;
        Ok(broadcast)
    }

    /// Marks given outputs of another shape, or refuses them.
    fn mark_symbolic_resizes(&mut self, config: &TensorIteratorConfig<'_>, shape: &[SymInt]) -> Result<()> {
        for op in &mut self.operands[..self.noutputs] {
            let Some(tensor) = &op.tensor else { continue };
            let sizes = tensor.sym_sizes();
            if config.resize_outputs && !op.is_read_write {
                op.will_resize = !SymInt::guard_same(&sizes, shape)?;
                continue;
            }
            check!(
                SymInt::expect_same(&sizes, shape)?,
                "output with shape {sizes:?} doesn't match the broadcast shape {shape:?}"
            );
        }
        Ok(())
    }

    /// The strides of new outputs; empty for row-major ones.
    fn symbolic_layout(
        &self,
        config: &TensorIteratorConfig<'_>,
        broadcast: &Broadcast,
    ) -> Result<SymDimVector> {
        let shape = &broadcast.shape;
        let operands: SmallVec<[&Tensor; 4]> =
            self.operands.iter().filter(|op| !op.will_resize).filter_map(|op| op.tensor.as_ref()).collect();
        if broadcast.all_same && operands.iter().all(|tensor| tensor.is_contiguous()) {
            return Ok(SymDimVector::new());
        }
        if config.enforce_linear_iteration {
            return Ok(SymDimVector::new());
        }
        if broadcast.all_same {
            if shape.len() == 4
                && operands.iter().all(|tensor| tensor.is_contiguous_in(MemoryFormat::ChannelsLast))
            {
                return get_channels_last_strides_2d(shape);
            }
            if let Some(strides) = common_dense_strides(&operands)? {
                return Ok(strides);
            }
        }
        dense_in_order_of(shape, &operands)
    }
}

/// Whether broadcasting repeats one of two shapes.
fn stretches(a: &[SymInt], b: &[SymInt]) -> Result<bool> {
    if a.len() != b.len() {
        return Ok(true);
    }
    for (a, b) in a.iter().zip(b) {
        if a != b && (a.is_one()? || b.is_one()?) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The strides of all operands, if they are the same and leave no gaps.
fn common_dense_strides(operands: &[&Tensor]) -> Result<Option<SymDimVector>> {
    let mut common: Option<SymDimVector> = None;
    for tensor in operands {
        if !tensor.is_non_overlapping_and_dense() {
            return Ok(None);
        }
        let strides = tensor.sym_strides();
        match &common {
            None => common = Some(strides),
            Some(first) if !SymInt::guard_same(first, &strides)? => return Ok(None),
            Some(_) => {}
        }
    }
    Ok(common)
}

/// Dense strides with the dimensions in the operands' order of memory; empty if that is row-major.
fn dense_in_order_of(shape: &[SymInt], operands: &[&Tensor]) -> Result<SymDimVector> {
    let ndim = shape.len();
    let strides =
        operands.iter().map(|tensor| strides_over(shape, tensor)).collect::<Result<Vec<SymDimVector>>>()?;
    let order = order_dims(ndim, |a, b| compare_dims(shape, &strides, a, b))?;
    if order.iter().copied().eq((0..ndim).rev()) {
        return Ok(SymDimVector::new());
    }
    strides_in_order(shape, order.into_iter())
}

/// A tensor's strides over the shape it broadcasts to; 0 where it repeats.
fn strides_over(shape: &[SymInt], tensor: &Tensor) -> Result<SymDimVector> {
    let (sizes, strides) = (tensor.sym_sizes(), tensor.sym_strides());
    let leading = shape.len() - sizes.len();
    let mut over = SymDimVector::from_elem(SymInt::ZERO, shape.len());
    for (dim, (size, stride)) in sizes.iter().zip(strides).enumerate() {
        let target = &shape[leading + dim];
        let repeats = size != target && size.is_one()? && !target.is_one()?;
        if !repeats {
            over[leading + dim] = stride;
        }
    }
    Ok(over)
}

/// Whether `dim0` belongs before (`Less`) or after `dim1`, by the first operand that can tell.
fn compare_dims(shape: &[SymInt], strides: &[SymDimVector], dim0: usize, dim1: usize) -> Result<Ordering> {
    for strides in strides {
        let (stride0, stride1) = (&strides[dim0], &strides[dim1]);
        if stride0.is_zero()? || stride1.is_zero()? {
            continue;
        }
        if stride0 != stride1 {
            if stride0.guard_lt(stride1)? {
                return Ok(Ordering::Less);
            }
            if !stride0.guard_eq(stride1)? {
                return Ok(Ordering::Greater);
            }
        }
        // Equal strides mean that one of the two has size 1; the smaller one goes first.
        if shape[dim0] != shape[dim1] && shape[dim1].guard_lt(&shape[dim0])? {
            return Ok(Ordering::Greater);
        }
    }
    Ok(Ordering::Equal)
}
