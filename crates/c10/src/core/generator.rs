//! `Generator`: a shared source of random numbers. The algorithms are the backends'.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use crate::core::fork_safe_mutex::{ForkSafeMutex, ForkSafeMutexGuard};
use crate::core::registry::DeviceTypeTable;
use crate::{Device, DeviceType, DispatchKeySet, Error, Result};

/// The seed of a generator that nobody seeded.
pub const DEFAULT_RNG_SEED: u64 = 67280421310721;

/// A source of random numbers: its state and what can be done with it.
///
/// Every method is called with the generator's lock held (through `Generator::lock`), hence `&mut self`.
pub trait GeneratorImpl: Send {
    /// Restarts from a seed.
    fn set_current_seed(&mut self, seed: u64);
    /// The seed it started from.
    fn current_seed(&self) -> u64;
    /// Restarts from a seed that cannot be predicted; returns it.
    fn seed(&mut self) -> Result<u64> {
        let seed = get_non_deterministic_random()?;
        self.set_current_seed(seed);
        Ok(seed)
    }
    /// Everything that determines the numbers to come, as bytes.
    fn get_state(&self) -> Result<Vec<u8>>;
    /// Continues from a state.
    fn set_state(&mut self, state: &[u8]) -> Result<()>;
    /// Jumps to a position in the sequence; counter-based generators only.
    fn set_offset(&mut self, _offset: u64) -> Result<()> {
        Err(Error::runtime(format!("{} Generator does not use offset", self.device().type_)))
    }
    /// The position in the sequence; counter-based generators only.
    fn get_offset(&self) -> Result<u64> {
        Err(Error::runtime(format!("{} Generator does not use offset", self.device().type_)))
    }
    /// An independent generator in the same state.
    fn clone_impl(&self) -> Box<dyn GeneratorImpl>;
    /// The device whose numbers it makes.
    fn device(&self) -> Device;
    /// The key set that calls with this generator dispatch by.
    fn key_set(&self) -> DispatchKeySet;
    /// For backends to recognise their own.
    fn as_any(&self) -> &dyn Any;
    /// For backends to recognise their own.
    fn as_any_mut(&mut self) -> &mut dyn Any;
}

struct Shared {
    /// Immutable after construction, readable without the lock.
    device: Device,
    key_set: DispatchKeySet,
    state: ForkSafeMutex<Box<dyn GeneratorImpl>>,
}

/// A shared handle to a generator. Clones share the state; `clone_generator` makes an independent one.
#[derive(Clone)]
pub struct Generator(Arc<Shared>);

impl Generator {
    /// A handle to a generator.
    pub fn new(generator: Box<dyn GeneratorImpl>) -> Generator {
        Generator(Arc::new(Shared {
            device: generator.device(),
            key_set: generator.key_set(),
            state: ForkSafeMutex::new(generator),
        }))
    }

    /// The generator, for as long as the lock is held. A kernel takes it once for all of its numbers.
    ///
    /// Waits without the interpreter's lock: a large fill may have the generator for seconds.
    pub fn lock(&self) -> ForkSafeMutexGuard<'_, Box<dyn GeneratorImpl>> {
        loop {
            if let Some(guard) = self.0.state.try_lock() {
                return guard;
            }
            crate::core::tensor_impl::wait_until(&|| self.0.state.try_lock().is_some());
        }
    }

    /// Runs code with the generator as the backend's own type.
    pub fn with<T: 'static, R>(&self, f: impl FnOnce(&mut T) -> R) -> Result<R> {
        let mut guard = self.lock();
        match guard.as_any_mut().downcast_mut::<T>() {
            Some(generator) => Ok(f(generator)),
            None => Err(Error::runtime(format!(
                "generator: expected one of type {}, got one for device {}",
                std::any::type_name::<T>(),
                self.0.device
            ))),
        }
    }

    /// The device whose numbers it makes.
    pub fn device(&self) -> Device {
        self.0.device
    }

    /// The key set that calls with this generator dispatch by.
    pub fn key_set(&self) -> DispatchKeySet {
        self.0.key_set
    }

    /// Restarts from a seed.
    pub fn set_current_seed(&self, seed: u64) {
        self.lock().set_current_seed(seed);
    }

    /// The seed it started from.
    pub fn current_seed(&self) -> u64 {
        self.lock().current_seed()
    }

    /// Restarts from a seed that cannot be predicted; returns it.
    pub fn seed(&self) -> Result<u64> {
        self.lock().seed()
    }

    /// Everything that determines the numbers to come, as bytes.
    pub fn get_state(&self) -> Result<Vec<u8>> {
        self.lock().get_state()
    }

    /// Continues from a state.
    pub fn set_state(&self, state: &[u8]) -> Result<()> {
        self.lock().set_state(state)
    }

    /// Jumps to a position in the sequence; counter-based generators only.
    pub fn set_offset(&self, offset: u64) -> Result<()> {
        self.lock().set_offset(offset)
    }

    /// The position in the sequence; counter-based generators only.
    pub fn get_offset(&self) -> Result<u64> {
        self.lock().get_offset()
    }

    /// An independent generator in the same state.
    pub fn clone_generator(&self) -> Generator {
        Generator::new(self.lock().clone_impl())
    }

    /// True if both handles share one state.
    pub fn is_same(&self, other: &Generator) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// In a child after `fork`, where only the calling thread exists: if a thread of the parent held the lock,
    /// nobody will release it, so it is released here. The state may be one number short of consistent, which
    /// for random numbers is no fault.
    ///
    /// # Safety
    /// Only in a forked child, before it starts threads, and not while the calling thread holds the lock.
    pub unsafe fn after_fork_in_child(&self) {
        // SAFETY: passed on.
        unsafe { self.0.state.unlock_after_fork() };
    }
}

impl PartialEq for Generator {
    fn eq(&self, other: &Generator) -> bool {
        self.is_same(other)
    }
}

impl Eq for Generator {}

impl fmt::Debug for Generator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Generator(device={})", self.0.device)
    }
}

/// A number from the system's entropy, 53 bits so that every language can hold it.
pub fn get_non_deterministic_random() -> Result<u64> {
    let mut bytes = [0u8; 8];
    crate::core::os::random_bytes(&mut bytes)
        .map_err(|e| Error::runtime(format!("Generator.seed(): no entropy from the system: {e}")))?;
    Ok(u64::from_ne_bytes(bytes) & ((1 << 53) - 1))
}

/// Makes or finds the default generator of a device (an index of -1: of the current one).
pub type DefaultGeneratorFn = fn(Device) -> Result<Generator>;

static DEFAULT_GENERATORS: DeviceTypeTable<DefaultGeneratorFn> = DeviceTypeTable::new();

/// Says how to get at the default generators of a device type.
pub fn register_default_generator(type_: DeviceType, get: DefaultGeneratorFn) {
    DEFAULT_GENERATORS.set(type_, get);
}

/// The default generator of a device.
pub fn get_default_generator(device: Device) -> Result<Generator> {
    match DEFAULT_GENERATORS.get(device.type_) {
        Some(get) => get(device),
        None => Err(Error::runtime(format!("{} device type has no default generator", device.type_))),
    }
}

/// The generator given, if it is for the right device type, else the device's default.
pub fn get_generator_or_default(generator: Option<&Generator>, device: Device) -> Result<Generator> {
    match generator {
        None => get_default_generator(device),
        Some(generator) if generator.device().type_ == device.type_ => Ok(generator.clone()),
        Some(generator) => Err(Error::runtime(format!(
            "Expected a '{}' device type for generator but found '{}'",
            device.type_,
            generator.device().type_
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts up from its seed.
    #[derive(Clone)]
    struct Counter {
        seed: u64,
        next: u64,
    }

    impl GeneratorImpl for Counter {
        fn set_current_seed(&mut self, seed: u64) {
            *self = Counter { seed, next: seed };
        }
        fn current_seed(&self) -> u64 {
            self.seed
        }
        fn get_state(&self) -> Result<Vec<u8>> {
            Ok(self.next.to_le_bytes().to_vec())
        }
        fn set_state(&mut self, state: &[u8]) -> Result<()> {
            let bytes: [u8; 8] = state
                .try_into()
                .map_err(|_| Error::type_(format!("set_state(): expected 8 bytes, got {}", state.len())))?;
            self.next = u64::from_le_bytes(bytes);
            Ok(())
        }
        fn clone_impl(&self) -> Box<dyn GeneratorImpl> {
            Box::new(self.clone())
        }
        fn device(&self) -> Device {
            Device::CPU
        }
        fn key_set(&self) -> DispatchKeySet {
            DispatchKeySet::from_key(crate::DispatchKey::CPU)
        }
        fn as_any(&self) -> &dyn Any {
            self
        }
        fn as_any_mut(&mut self) -> &mut dyn Any {
            self
        }
    }

    fn next(generator: &Generator) -> u64 {
        generator
            .with(|c: &mut Counter| {
                c.next += 1;
                c.next - 1
            })
            .unwrap()
    }

    #[test]
    fn handles_share_and_clones_do_not() {
        let a = Generator::new(Box::new(Counter { seed: 5, next: 5 }));
        let shared = a.clone();
        assert_eq!(next(&a), 5);
        assert_eq!(next(&shared), 6);
        let independent = a.clone_generator();
        assert_ne!(independent, a);
        assert_eq!(next(&a), 7);
        assert_eq!(next(&independent), 7);
        let state = a.get_state().unwrap();
        next(&a);
        a.set_state(&state).unwrap();
        assert_eq!(next(&a), 8);
        assert!(a.set_state(&[1]).is_err());
        a.set_current_seed(0);
        assert_eq!((next(&a), a.current_seed()), (0, 0));
        assert!(a.get_offset().is_err());
        assert!(a.with(|_: &mut u8| ()).is_err());
        let seed = a.seed().unwrap();
        assert!(seed < 1 << 53 && a.current_seed() == seed);
    }

    #[test]
    fn defaults_are_registered_per_device_type() {
        assert!(get_default_generator(Device::current(DeviceType::VE)).is_err());
        register_default_generator(DeviceType::VE, |_| {
            Ok(Generator::new(Box::new(Counter { seed: 1, next: 1 })))
        });
        assert_eq!(get_default_generator(Device::current(DeviceType::VE)).unwrap().current_seed(), 1);
        let cpu = Generator::new(Box::new(Counter { seed: 5, next: 5 }));
        assert_eq!(get_generator_or_default(Some(&cpu), Device::CPU).unwrap(), cpu);
        let error = get_generator_or_default(Some(&cpu), Device::META).unwrap_err();
        assert!(error.to_string().contains("Expected a 'meta' device type for generator but found 'cpu'"));
    }

    #[test]
    fn a_lock_held_across_fork_is_released_in_the_child() {
        let generator = Generator::new(Box::new(Counter { seed: 5, next: 5 }));
        std::mem::forget(generator.lock());
        // SAFETY: the guard was forgotten, so nobody will release the lock, as after a fork.
        unsafe { generator.after_fork_in_child() };
        assert_eq!(next(&generator), 5);
    }
}
