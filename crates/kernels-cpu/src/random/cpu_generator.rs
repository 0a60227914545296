//! The CPU's `Generator`.

use std::any::Any;
use std::sync::OnceLock;

use c10::{
    bail, check, Device, DispatchKey, DispatchKeySet, Generator, GeneratorImpl, Result, DEFAULT_RNG_SEED,
};

use super::mt19937::{Mt19937, RawState, N};

/// Bytes of a serialized state without, and with, the cached single-precision normal number.
///
/// # Note [Layout of a CPU generator's state]
/// PyTorch's, whose first part goes back to Lua Torch; in order, little-endian, with C's padding:
/// `u64 seed; i32 left; i32 seeded; u64 next; u64 state[624]; f64 normal_x, normal_y, normal_rho;
/// i32 normal_is_valid`, then `f32 next_float_normal_sample; bool is_next_float_normal_sample_valid`.
const LEGACY_STATE_SIZE: usize = 5048;
const STATE_SIZE: usize = 5056;

/// A Mersenne Twister, and the second numbers of pairs of normal ones.
#[derive(Clone)]
pub struct CpuGenerator {
    pub(super) engine: Mt19937,
    /// Kept for its place in the serialized state: no kernel leaves one.
    next_float_normal_sample: Option<f32>,
    pub(super) next_double_normal_sample: Option<f64>,
}

impl CpuGenerator {
    /// A generator that starts from a seed.
    pub fn new(seed: u64) -> CpuGenerator {
        CpuGenerator {
            engine: Mt19937::new(seed),
            next_float_normal_sample: None,
            next_double_normal_sample: None,
        }
    }
}

/// A new generator for the CPU.
pub fn create_cpu_generator(seed: u64) -> Generator {
    Generator::new(Box::new(CpuGenerator::new(seed)))
}

static DEFAULT: OnceLock<Generator> = OnceLock::new();

/// The one that kernels use when none is given.
pub(super) fn default_cpu_generator() -> Generator {
    DEFAULT.get_or_init(|| create_cpu_generator(DEFAULT_RNG_SEED)).clone()
}

/// The same, unless nobody has asked for it yet; for a forked child, where nothing may be made.
pub(crate) fn default_generator_if_made() -> Option<&'static Generator> {
    DEFAULT.get()
}

/// Reads the fields of a state in order.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    /// Callers have checked the length; past the end there are zeros.
    fn take<const SIZE: usize>(&mut self) -> [u8; SIZE] {
        let mut bytes = [0; SIZE];
        let (now, later) = self.0.split_at(SIZE.min(self.0.len()));
        bytes[..now.len()].copy_from_slice(now);
        self.0 = later;
        bytes
    }
    fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.take())
    }
    fn i32(&mut self) -> i32 {
        i32::from_le_bytes(self.take())
    }
    fn f64(&mut self) -> f64 {
        f64::from_le_bytes(self.take())
    }
}

impl GeneratorImpl for CpuGenerator {
    fn set_current_seed(&mut self, seed: u64) {
        *self = CpuGenerator::new(seed);
    }

    fn current_seed(&self) -> u64 {
        self.engine.seed()
    }

    /// See Note [Layout of a CPU generator's state].
    fn get_state(&self) -> Result<Vec<u8>> {
        let RawState { seed, left, next, state } = self.engine.to_raw();
        let mut bytes = Vec::with_capacity(STATE_SIZE);
        bytes.extend(seed.to_le_bytes());
        bytes.extend(left.to_le_bytes());
        bytes.extend(1i32.to_le_bytes());
        bytes.extend(next.to_le_bytes());
        for word in state {
            bytes.extend(u64::from(word).to_le_bytes());
        }
        bytes.extend(0f64.to_le_bytes());
        bytes.extend(self.next_double_normal_sample.unwrap_or(0.0).to_le_bytes());
        bytes.extend(0f64.to_le_bytes());
        bytes.extend(i32::from(self.next_double_normal_sample.is_some()).to_le_bytes());
        bytes.resize(LEGACY_STATE_SIZE, 0);
        bytes.extend(self.next_float_normal_sample.unwrap_or(0.0).to_le_bytes());
        bytes.push(u8::from(self.next_float_normal_sample.is_some()));
        bytes.resize(STATE_SIZE, 0);
        Ok(bytes)
    }

    fn set_state(&mut self, bytes: &[u8]) -> Result<()> {
        check!(
            bytes.len() == STATE_SIZE || bytes.len() == LEGACY_STATE_SIZE,
            "Expected either a CPUGeneratorImplStateLegacy of size {LEGACY_STATE_SIZE} or a CPUGeneratorImplState \
             of size {STATE_SIZE} but found the input RNG state size to be {}",
            bytes.len()
        );
        let mut reader = Reader(bytes);
        let (seed, left, seeded, next) = (reader.u64(), reader.i32(), reader.i32(), reader.u64());
        let mut state = [0; N];
        for word in &mut state {
            *word = reader.u64() as u32;
        }
        let Some(engine) = Mt19937::from_raw(RawState { seed, left, next, state }).filter(|_| seeded == 1)
        else {
            bail!(Runtime, "Invalid mt19937 state");
        };
        let (normal_x, normal_y, normal_rho) = (reader.f64(), reader.f64(), reader.f64());
        let is_valid = reader.i32() != 0;
        reader.i32(); // padding
        let next_double_normal_sample = is_valid.then(|| {
            if bytes.len() == LEGACY_STATE_SIZE {
                // The old form keeps the pair's radius and angle.
                normal_rho * (2.0 * std::f64::consts::PI * normal_x).sin()
            } else {
                normal_y
            }
        });
        let float_sample = f32::from_le_bytes(reader.take());
        let next_float_normal_sample = (reader.take::<1>()[0] != 0).then_some(float_sample);
        *self = CpuGenerator { engine, next_float_normal_sample, next_double_normal_sample };
        Ok(())
    }

    fn clone_impl(&self) -> Box<dyn GeneratorImpl> {
        Box::new(self.clone())
    }

    fn device(&self) -> Device {
        Device::CPU
    }

    fn key_set(&self) -> DispatchKeySet {
        DispatchKeySet::from_key(DispatchKey::CPU)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_restores() {
        let mut a = CpuGenerator::new(7);
        a.engine.random();
        a.next_double_normal_sample = Some(-0.5);
        a.next_float_normal_sample = Some(0.25);
        let state = a.get_state().unwrap();
        assert_eq!(state.len(), 5056);
        let mut b = CpuGenerator::new(8);
        b.set_state(&state).unwrap();
        assert_eq!(b.get_state().unwrap(), state);
        assert_eq!(b.current_seed(), 7);
        assert_eq!(b.next_float_normal_sample, Some(0.25));
        assert_eq!(a.engine.random(), b.engine.random());
    }

    #[test]
    fn other_bytes_are_refused() {
        let mut generator = CpuGenerator::new(7);
        let before = generator.get_state().unwrap();
        let error = generator.set_state(&[0; 10]).unwrap_err();
        assert!(error.message().contains("found the input RNG state size to be 10"), "{error}");
        assert_eq!(generator.set_state(&[0; 5056]).unwrap_err().message(), "Invalid mt19937 state");
        assert_eq!(generator.get_state().unwrap(), before);
    }

    /// Fields of `torch.get_rng_state()` after `torch.manual_seed(0); torch.randn(1)`.
    #[test]
    fn the_layout_is_pytorchs() {
        let mut generator = CpuGenerator::new(0);
        generator.engine.random64();
        generator.engine.random64();
        generator.next_double_normal_sample = Some(-0.2934289057609464);
        let state = generator.get_state().unwrap();
        assert_eq!(state[..24], [0, 0, 0, 0, 0, 0, 0, 0, 0x6d, 2, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(state[24..32], 2443250962u64.to_le_bytes());
        assert_eq!(state[5024..5032], [0xea, 0x6f, 0x7c, 0x08, 0x8a, 0xc7, 0xd2, 0xbf]);
        assert_eq!(state[5040], 1);
    }
}
