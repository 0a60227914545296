//! `DeviceGuardImplInterface`: how a backend's devices, streams and events are switched and waited for; and the guards.

use std::ffi::c_void;
use std::marker::PhantomData;

use crate::core::data_ptr::DataPtr;
use crate::core::event::EventFlag;
use crate::core::registry::DeviceTypeTable;
use crate::core::stream::Stream;
use crate::{Device, DeviceIndex, DeviceType, Error, Result};

/// What a backend's device type can do. Devices without queues use the defaults.
///
/// Event handles are the backend's own pointers: made by `record` when null, destroyed by `destroy_event`.
pub trait DeviceGuardImplInterface: Send + Sync {
    /// The device type.
    fn type_(&self) -> DeviceType;
    /// Makes a device current on this thread; returns the one that was.
    fn exchange_device(&self, device: Device) -> Result<Device>;
    /// The thread's current device.
    fn get_device(&self) -> Result<Device>;
    /// Makes a device current on this thread.
    fn set_device(&self, device: Device) -> Result<()>;
    /// As `set_device`, where errors cannot be reported: guards use it when they end.
    fn unchecked_set_device(&self, device: Device);
    /// The thread's current stream on a device.
    fn get_stream(&self, device: Device) -> Result<Stream>;
    /// Makes a stream current on this thread; returns the one that was. The current device stays.
    fn exchange_stream(&self, stream: Stream) -> Result<Stream>;
    /// How many devices there are; 0 if none can be used. Never fails.
    fn device_count(&self) -> usize;

    /// A device's default stream.
    fn get_default_stream(&self, _device: Device) -> Result<Stream> {
        Err(Error::runtime("Backend doesn't support acquiring a default stream."))
    }
    /// A stream from the backend's pool.
    fn get_stream_from_global_pool(&self, _device: Device, _high_priority: bool) -> Result<Stream> {
        Err(Error::runtime("Backend doesn't support acquiring a stream from pool."))
    }
    /// A new stream.
    fn get_new_stream(&self, _device: Device, _priority: i32) -> Result<Stream> {
        Err(Error::runtime("Backend doesn't support create a new Stream."))
    }
    /// Marks a stream's work so far with an event, which is made if the handle is null.
    fn record(
        &self,
        _event: &mut *mut c_void,
        _stream: Stream,
        _device_index: DeviceIndex,
        _flag: EventFlag,
    ) -> Result<()> {
        Err(self.no_events())
    }
    /// Makes a stream's later work wait for an event.
    fn block(&self, _event: *mut c_void, _stream: Stream) -> Result<()> {
        Err(self.no_events())
    }
    /// True if an event's work is done.
    fn query_event(&self, _event: *mut c_void) -> Result<bool> {
        Err(self.no_events())
    }
    /// Waits on the host for an event.
    fn synchronize_event(&self, _event: *mut c_void) -> Result<()> {
        Err(self.no_events())
    }
    /// Destroys an event. Must not fail.
    fn destroy_event(&self, _event: *mut c_void, _device_index: DeviceIndex) {}
    /// Milliseconds between two events.
    fn elapsed_time(
        &self,
        _start: *mut c_void,
        _end: *mut c_void,
        _device_index: DeviceIndex,
    ) -> Result<f64> {
        Err(Error::runtime("Backend doesn't support elapsedTime."))
    }
    /// True if a stream's work so far is done.
    fn query_stream(&self, _stream: Stream) -> Result<bool> {
        Err(Error::runtime("Backend doesn't support querying streams."))
    }
    /// Waits on the host for a stream.
    fn synchronize_stream(&self, _stream: Stream) -> Result<()> {
        Err(Error::runtime("Backend doesn't support synchronizing streams."))
    }
    /// Waits on the host for all streams of a device.
    fn synchronize_device(&self, _device_index: DeviceIndex) -> Result<()> {
        Err(Error::runtime("Backend doesn't support synchronizing all streams on device."))
    }
    /// True while a graph is being captured on a stream.
    fn is_stream_capturing(&self, _stream: Stream) -> Result<bool> {
        Ok(false)
    }
    /// Tells the allocator that a stream uses a block, so that it is not reused too early.
    fn record_data_ptr_on_stream(&self, _data: &DataPtr, _stream: Stream) -> Result<()> {
        Ok(())
    }

    /// The error of a backend without events.
    #[doc(hidden)]
    fn no_events(&self) -> Error {
        Error::runtime(format!("{} backend doesn't support events.", self.type_()))
    }
}

/// The implementation for device types with one device and no queues: the host and the meta device.
#[derive(Debug)]
pub struct NoOpDeviceGuardImpl(pub DeviceType);

impl DeviceGuardImplInterface for NoOpDeviceGuardImpl {
    fn type_(&self) -> DeviceType {
        self.0
    }
    fn exchange_device(&self, _device: Device) -> Result<Device> {
        Ok(Device::current(self.0))
    }
    fn get_device(&self) -> Result<Device> {
        Ok(Device::current(self.0))
    }
    fn set_device(&self, _device: Device) -> Result<()> {
        Ok(())
    }
    fn unchecked_set_device(&self, _device: Device) {}
    fn get_stream(&self, _device: Device) -> Result<Stream> {
        Ok(Stream::default_stream(Device::current(self.0)))
    }
    fn get_default_stream(&self, device: Device) -> Result<Stream> {
        self.get_stream(device)
    }
    fn get_new_stream(&self, device: Device, _priority: i32) -> Result<Stream> {
        self.get_stream(device)
    }
    fn exchange_stream(&self, _stream: Stream) -> Result<Stream> {
        Ok(Stream::default_stream(Device::current(self.0)))
    }
    fn device_count(&self) -> usize {
        1
    }
    fn query_stream(&self, _stream: Stream) -> Result<bool> {
        Ok(true)
    }
    fn synchronize_stream(&self, _stream: Stream) -> Result<()> {
        Ok(())
    }
    fn synchronize_device(&self, _device_index: DeviceIndex) -> Result<()> {
        Ok(())
    }
}

/// A backend's implementation, registered for the life of the process.
pub type GuardImpl = &'static dyn DeviceGuardImplInterface;

static CPU_GUARD_IMPL: GuardImpl = &NoOpDeviceGuardImpl(DeviceType::CPU);
static META_GUARD_IMPL: GuardImpl = &NoOpDeviceGuardImpl(DeviceType::Meta);

static DEVICE_GUARD_IMPLS: DeviceTypeTable<GuardImpl> =
    DeviceTypeTable::new().with(DeviceType::CPU, &CPU_GUARD_IMPL).with(DeviceType::Meta, &META_GUARD_IMPL);

/// Makes `guard_impl` the one of a device type.
pub fn register_device_guard(type_: DeviceType, guard_impl: GuardImpl) {
    DEVICE_GUARD_IMPLS.set(type_, guard_impl);
}

/// The implementation of a device type.
pub fn get_device_guard_impl(type_: DeviceType) -> Result<GuardImpl> {
    match DEVICE_GUARD_IMPLS.get(type_) {
        Some(guard_impl) => Ok(*guard_impl),
        None => Err(Error::runtime(format!("ptr is not linked with support for {type_} devices"))),
    }
}

/// True if a device type has an implementation.
pub fn has_device_guard_impl(type_: DeviceType) -> bool {
    DEVICE_GUARD_IMPLS.get(type_).is_some()
}

/// Makes a device current until dropped, on the thread that made the guard.
///
/// ```compile_fail,E0277
/// let guard = c10::DeviceGuard::new(c10::Device::CPU).unwrap();
/// std::thread::spawn(move || drop(guard));
/// ```
#[must_use = "the device is current only while the guard lives"]
pub struct DeviceGuard {
    /// None on the host and on the meta device, where there is nothing to switch.
    guard_impl: Option<GuardImpl>,
    original: Device,
    current: Device,
    /// The current device is a thread's own, to be restored there.
    _not_send: PhantomData<*const ()>,
}

impl DeviceGuard {
    /// Makes a device current; an index of -1 means the one that is.
    pub fn new(device: Device) -> Result<DeviceGuard> {
        if device.is_cpu() || device.is_meta() {
            return Ok(DeviceGuard {
                guard_impl: None,
                original: device,
                current: device,
                _not_send: PhantomData,
            });
        }
        let guard_impl = get_device_guard_impl(device.type_)?;
        if !device.has_index() {
            let current = guard_impl.get_device()?;
            return Ok(DeviceGuard {
                guard_impl: Some(guard_impl),
                original: current,
                current,
                _not_send: PhantomData,
            });
        }
        let original = guard_impl.exchange_device(device)?;
        Ok(DeviceGuard { guard_impl: Some(guard_impl), original, current: device, _not_send: PhantomData })
    }

    /// The device that was current before.
    pub fn original_device(&self) -> Device {
        self.original
    }

    /// The device the guard made current.
    pub fn current_device(&self) -> Device {
        self.current
    }
}

impl Drop for DeviceGuard {
    fn drop(&mut self) {
        if let Some(guard_impl) = self.guard_impl {
            guard_impl.unchecked_set_device(self.original);
        }
    }
}

/// Makes a stream and its device current until dropped, on the thread that made the guard.
///
/// ```compile_fail,E0277
/// let guard = c10::StreamGuard::new(c10::Stream::default_stream(c10::Device::CPU)).unwrap();
/// std::thread::spawn(move || drop(guard));
/// ```
#[must_use = "the stream is current only while the guard lives"]
pub struct StreamGuard {
    /// Restored after the stream.
    _device: DeviceGuard,
    guard_impl: GuardImpl,
    original: Stream,
    current: Stream,
}

impl StreamGuard {
    /// Makes a stream and its device current.
    pub fn new(stream: Stream) -> Result<StreamGuard> {
        let guard_impl = get_device_guard_impl(stream.device_type())?;
        let device = DeviceGuard::new(stream.device())?;
        let original = guard_impl.exchange_stream(stream)?;
        Ok(StreamGuard { _device: device, guard_impl, original, current: stream })
    }

    /// The stream that was current on the device before.
    pub fn original_stream(&self) -> Stream {
        self.original
    }

    /// The stream the guard made current.
    pub fn current_stream(&self) -> Stream {
        self.current
    }
}

impl Drop for StreamGuard {
    fn drop(&mut self) {
        // The stream was current before and so is valid; a failure could not be reported here.
        let _ = self.guard_impl.exchange_stream(self.original);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicI64, AtomicI8, Ordering};

    /// Two devices with streams, current ones kept in atomics (one test thread uses them).
    struct Fake {
        device: AtomicI8,
        stream: AtomicI64,
    }

    impl DeviceGuardImplInterface for Fake {
        fn type_(&self) -> DeviceType {
            DeviceType::MAIA
        }
        fn exchange_device(&self, device: Device) -> Result<Device> {
            crate::check!(device.index < 2, "no such device: {device}");
            Ok(Device::new(DeviceType::MAIA, self.device.swap(device.index, Ordering::Relaxed)))
        }
        fn get_device(&self) -> Result<Device> {
            Ok(Device::new(DeviceType::MAIA, self.device.load(Ordering::Relaxed)))
        }
        fn set_device(&self, device: Device) -> Result<()> {
            self.exchange_device(device).map(|_| ())
        }
        fn unchecked_set_device(&self, device: Device) {
            self.device.store(device.index, Ordering::Relaxed);
        }
        fn get_stream(&self, device: Device) -> Result<Stream> {
            Ok(Stream::from_id(device, self.stream.load(Ordering::Relaxed)))
        }
        fn exchange_stream(&self, stream: Stream) -> Result<Stream> {
            Ok(Stream::from_id(stream.device(), self.stream.swap(stream.id(), Ordering::Relaxed)))
        }
        fn device_count(&self) -> usize {
            2
        }
    }

    static FAKE: Fake = Fake { device: AtomicI8::new(0), stream: AtomicI64::new(0) };

    #[test]
    fn guards_restore_what_was_current() {
        assert!(get_device_guard_impl(DeviceType::MAIA).is_err());
        assert!(!has_device_guard_impl(DeviceType::MAIA));
        register_device_guard(DeviceType::MAIA, &FAKE);
        let maia = |index| Device::new(DeviceType::MAIA, index);
        {
            let outer = DeviceGuard::new(maia(1)).unwrap();
            assert_eq!(outer.original_device(), maia(0));
            assert_eq!(FAKE.get_device().unwrap(), maia(1));
            {
                let guard = StreamGuard::new(Stream::from_id(maia(0), 5)).unwrap();
                assert_eq!(guard.original_stream().id(), 0);
                assert_eq!(FAKE.get_stream(maia(0)).unwrap().id(), 5);
                assert_eq!(FAKE.get_device().unwrap(), maia(0));
            }
            assert_eq!(FAKE.get_device().unwrap(), maia(1));
            assert_eq!(FAKE.get_stream(maia(1)).unwrap().id(), 0);
            let unchanged = DeviceGuard::new(maia(-1)).unwrap();
            assert_eq!(unchanged.current_device(), maia(1));
            assert!(DeviceGuard::new(maia(2)).is_err());
        }
        assert_eq!(FAKE.get_device().unwrap(), maia(0));
    }

    #[test]
    fn host_guards_do_nothing() {
        let _guard = DeviceGuard::new(Device::CPU).unwrap();
        let guard = StreamGuard::new(Stream::default_stream(Device::CPU)).unwrap();
        assert_eq!(guard.current_stream(), guard.original_stream());
        assert_eq!(get_device_guard_impl(DeviceType::CPU).unwrap().device_count(), 1);
    }
}
