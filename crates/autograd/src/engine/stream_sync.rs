//! Ordering between device streams: what one stream wrote, another may read only after an event.

use c10::{Event, EventFlag, Result, Stream, Tensor};

/// Makes work that is submitted to `consumer` from now on wait for work already submitted to `producer`.
pub(super) fn wait_stream(consumer: Stream, producer: Stream) -> Result<()> {
    if consumer == producer {
        return Ok(());
    }
    let mut event = Event::new(producer.device_type(), EventFlag::PyTorchDefault)?;
    event.record(producer)?;
    event.block(consumer)
}

/// The current stream of the device of `tensor`, if the device has streams.
pub(super) fn stream_of(tensor: &Tensor) -> Option<Stream> {
    let device = tensor.device();
    if device.is_cpu() || device.is_meta() {
        return None;
    }
    c10::get_device_guard_impl(device.type_).ok()?.get_stream(device).ok()
}
