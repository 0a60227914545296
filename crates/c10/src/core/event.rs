//! `Event`: a mark in a stream's work that others can wait for.

use std::ffi::c_void;
use std::ptr;

use crate::core::device_guard::get_device_guard_impl;
use crate::core::stream::Stream;
use crate::{check, Device, DeviceIndex, DeviceType, Result};

/// What an event is for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum EventFlag {
    /// Order only; cheapest.
    #[default]
    PyTorchDefault,
    /// With timing.
    BackendDefault,
}

/// A mark in a stream's work. The backend's event is made at the first `record`.
#[derive(Debug)]
pub struct Event {
    event: *mut c_void,
    device_type: DeviceType,
    device_index: DeviceIndex,
    flag: EventFlag,
    was_marked_for_recording: bool,
}

// SAFETY: the handle is used through the backend's interface, which is Sync, and `record` takes `&mut self`.
unsafe impl Send for Event {}

impl Event {
    /// An event that has not been recorded, for a type of device that has a backend.
    pub fn new(device_type: DeviceType, flag: EventFlag) -> Result<Event> {
        get_device_guard_impl(device_type)?;
        Ok(Event {
            event: ptr::null_mut(),
            device_type,
            device_index: -1,
            flag,
            was_marked_for_recording: false,
        })
    }

    /// The device of the last recording.
    pub fn device(&self) -> Device {
        Device::new(self.device_type, self.device_index)
    }

    /// What it is for.
    pub fn flag(&self) -> EventFlag {
        self.flag
    }

    /// True once `record` was called.
    pub fn was_marked_for_recording(&self) -> bool {
        self.was_marked_for_recording
    }

    /// The backend's handle; null before the first `record`.
    pub fn event_id(&self) -> *mut c_void {
        self.event
    }

    /// Marks the work submitted to a stream so far.
    pub fn record(&mut self, stream: Stream) -> Result<()> {
        check!(
            stream.device_type() == self.device_type,
            "Event.record(): event device type {} does not match recording stream's device type {}",
            self.device_type,
            stream.device_type()
        );
        get_device_guard_impl(self.device_type)?.record(
            &mut self.event,
            stream,
            stream.device().index,
            self.flag,
        )?;
        self.was_marked_for_recording = true;
        self.device_index = stream.device().index;
        Ok(())
    }

    /// As `record`, once.
    pub fn record_once(&mut self, stream: Stream) -> Result<()> {
        if self.was_marked_for_recording {
            return Ok(());
        }
        self.record(stream)
    }

    /// Makes later work of a stream wait for the marked work. An event that was never recorded waits for nothing.
    pub fn block(&self, stream: Stream) -> Result<()> {
        if !self.was_marked_for_recording {
            return Ok(());
        }
        check!(
            stream.device_type() == self.device_type,
            "Event.block(): event device type {} does not match blocking stream's device type {}",
            self.device_type,
            stream.device_type()
        );
        get_device_guard_impl(self.device_type)?.block(self.event, stream)
    }

    /// True if the marked work is done (or nothing was marked).
    pub fn query(&self) -> Result<bool> {
        if !self.was_marked_for_recording {
            return Ok(true);
        }
        get_device_guard_impl(self.device_type)?.query_event(self.event)
    }

    /// Waits on the host for the marked work.
    pub fn synchronize(&self) -> Result<()> {
        if !self.was_marked_for_recording {
            return Ok(());
        }
        get_device_guard_impl(self.device_type)?.synchronize_event(self.event)
    }

    /// Milliseconds from this event to a later one.
    pub fn elapsed_time(&self, end: &Event) -> Result<f64> {
        check!(
            end.device_type == self.device_type,
            "Event.elapsed_time(): event device type {} does not match other's device type {}",
            self.device_type,
            end.device_type
        );
        check!(
            self.flag == EventFlag::BackendDefault && end.flag == EventFlag::BackendDefault,
            "Both events must be created with argument 'enable_timing=True'."
        );
        check!(
            self.was_marked_for_recording && end.was_marked_for_recording,
            "Both events must be recorded before calculating elapsed time."
        );
        get_device_guard_impl(self.device_type)?.elapsed_time(self.event, end.event, self.device_index)
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        if !self.event.is_null() {
            if let Ok(backend) = get_device_guard_impl(self.device_type) {
                backend.destroy_event(self.event, self.device_index);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_events_cannot_be_recorded_and_wait_for_nothing() {
        let mut event = Event::new(DeviceType::CPU, EventFlag::default()).unwrap();
        let stream = Stream::default_stream(Device::CPU);
        let message = event.record(stream).unwrap_err().to_string();
        assert!(message.contains("cpu backend doesn't support events."), "{message}");
        assert!(event.query().unwrap());
        event.block(stream).unwrap();
        event.synchronize().unwrap();
        let other = Stream::default_stream(Device::META);
        assert!(event.record(other).unwrap_err().to_string().contains("does not match"));
    }

    #[test]
    fn a_backend_is_needed() {
        assert!(Event::new(DeviceType::IDEEP, EventFlag::default()).is_err());
    }
}
