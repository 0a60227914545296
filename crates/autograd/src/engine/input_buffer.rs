//! [`InputBuffer`]: the gradients that have arrived for a node, summed.

use c10::{GradMode, Layout, Result, Stream, StreamGuard, Tensor, TensorPin};
use smallvec::SmallVec;

use super::stream_sync;
use crate::edge::VariableList;
use crate::tensor_ops;

/// One place per input of the node.
#[derive(Default)]
pub(super) struct InputBuffer {
    buffer: VariableList,
}

impl InputBuffer {
    pub(super) fn new(num_inputs: usize) -> Self {
        Self { buffer: SmallVec::from_elem(None, num_inputs) }
    }

    pub(super) fn into_variables(self) -> VariableList {
        self.buffer
    }

    /// Adds what has arrived in another buffer for the same node.
    pub(super) fn merge(&mut self, other: Self, consumer: Option<Stream>) -> Result<()> {
        for (pos, grad) in other.buffer.into_iter().enumerate() {
            let producer = grad.as_ref().and_then(stream_sync::stream_of);
            self.add(pos, grad, producer, consumer)?;
        }
        Ok(())
    }

    /// Adds a gradient made on stream `producer` for a node that runs on stream `consumer`.
    #[inline]
    pub(super) fn add(
        &mut self,
        pos: usize,
        grad: Option<Tensor>,
        producer: Option<Stream>,
        consumer: Option<Stream>,
    ) -> Result<()> {
        let Some(grad) = grad else { return Ok(()) };
        if pos >= self.buffer.len() {
            self.buffer.resize(pos + 1, None);
        }
        let slot = &mut self.buffer[pos];
        if consumer.is_none() && producer.is_none() {
            return accumulate(slot, grad);
        }
        add_on_stream(slot, grad, producer, consumer)
    }
}

/// Sums on the stream of the gradient's device that the consumer uses, after the producer is done.
fn add_on_stream(
    slot: &mut Option<Tensor>,
    grad: Tensor,
    producer: Option<Stream>,
    consumer: Option<Stream>,
) -> Result<()> {
    let Some(own) = stream_sync::stream_of(&grad) else { return accumulate(slot, grad) };
    let on_device = |stream: &Stream| stream.device() == own.device();
    let producer = producer.filter(on_device).unwrap_or(own);
    // A consumer elsewhere reads by a copy, which orders itself after the producer's stream.
    let summing = consumer.filter(on_device).unwrap_or(producer);
    stream_sync::wait_stream(summing, producer)?;
    let _guard = StreamGuard::new(summing)?;
    accumulate(slot, grad)
}

#[inline]
fn accumulate(slot: &mut Option<Tensor>, grad: Tensor) -> Result<()> {
    let Some(sum) = slot.take() else {
        *slot = Some(grad);
        return Ok(());
    };
    let _grad_pin = TensorPin::new(&grad);
    if can_accumulate_inplace(&sum) {
        tensor_ops::add_(&sum, &grad)?;
        *slot = Some(sum);
    } else {
        let _sum_pin = TensorPin::new(&sum);
        *slot = Some(tensor_ops::add(&sum, &grad)?);
    }
    Ok(())
}

/// Whether a partial sum belongs to the buffer alone, and in-place addition gives the same tensor as addition.
fn can_accumulate_inplace(sum: &Tensor) -> bool {
    !GradMode::is_enabled()
        && sum.use_count() == 1
        && sum.layout() == Layout::Strided
        && sum.is_non_overlapping_and_dense()
        && !sum.is_zerotensor()
        && !sum.key_set().has(c10::DispatchKey::Python)
        && sum.storage().is_ok_and(|storage| storage.use_count() == 1)
}
