//! `Stream`: a queue of work on a device, as a value.

use std::fmt;

use crate::core::device_guard::get_device_guard_impl;
use crate::{Device, DeviceType, Error, Result};

/// Number of a stream; what it means is the backend's business. 0 is the default stream.
pub type StreamId = i64;

/// A queue of work on a device. Backends without queues have one stream, the default.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Stream {
    device: Device,
    id: StreamId,
}

/// A stream as three integers, for languages that cannot hold a `Stream`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StreamData3 {
    /// The stream's number.
    pub stream_id: StreamId,
    /// The device's index.
    pub device_index: i64,
    /// The device's type, by number.
    pub device_type: i64,
}

impl Stream {
    /// The default stream of a device.
    pub const fn default_stream(device: Device) -> Stream {
        Stream { device, id: 0 }
    }

    /// The stream with a backend's number. The number is not checked.
    pub const fn from_id(device: Device, id: StreamId) -> Stream {
        Stream { device, id }
    }

    /// Its device.
    pub const fn device(self) -> Device {
        self.device
    }

    /// Its device's type.
    pub const fn device_type(self) -> DeviceType {
        self.device.type_
    }

    /// Its number.
    pub const fn id(self) -> StreamId {
        self.id
    }

    /// True if all work submitted so far is done.
    pub fn query(self) -> Result<bool> {
        get_device_guard_impl(self.device.type_)?.query_stream(self)
    }

    /// Waits for all work submitted so far.
    pub fn synchronize(self) -> Result<()> {
        get_device_guard_impl(self.device.type_)?.synchronize_stream(self)
    }

    /// The stream as integers.
    pub fn pack3(self) -> StreamData3 {
        StreamData3 {
            stream_id: self.id,
            device_index: i64::from(self.device.index),
            device_type: i64::from(self.device.type_ as i8),
        }
    }

    /// The stream of three integers.
    pub fn unpack3(data: StreamData3) -> Result<Stream> {
        let invalid = || Error::value(format!("Stream: {data:?} is not a stream"));
        let type_ = i8::try_from(data.device_type).map_err(|_| invalid())?;
        let index = i8::try_from(data.device_index).map_err(|_| invalid())?;
        let device = Device::new(DeviceType::try_from(type_)?, index);
        Ok(Stream { device, id: data.stream_id })
    }
}

impl fmt::Display for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "stream {} on device {}", self.id, self.device)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packs_and_prints() {
        let stream = Stream::from_id(Device::new(DeviceType::CUDA, 1), 7);
        assert_eq!(Stream::unpack3(stream.pack3()).unwrap(), stream);
        assert_eq!(stream.to_string(), "stream 7 on device cuda:1");
        let bad = StreamData3 { stream_id: 0, device_index: 0, device_type: 99 };
        assert!(Stream::unpack3(bad).is_err());
    }

    #[test]
    fn the_hosts_stream_is_always_done() {
        let stream = Stream::default_stream(Device::CPU);
        assert!(stream.query().unwrap());
        stream.synchronize().unwrap();
    }
}
