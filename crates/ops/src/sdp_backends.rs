//! Which ways of computing attention may be used: a setting of the process.

use std::sync::atomic::{AtomicU32, Ordering};

/// A way of computing attention, numbered as in PyTorch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i64)]
pub enum SdpBackend {
    /// None is allowed that could do it.
    Error = -1,
    /// The formula, operator by operator.
    Math = 0,
    /// The kernel in blocks.
    Flash = 1,
    /// Of other devices.
    Efficient = 2,
    /// Of other devices.
    Cudnn = 3,
    /// Of other devices.
    Overrideable = 4,
}

/// A bit per backend that is allowed.
static ENABLED: AtomicU32 = AtomicU32::new(!0);

impl SdpBackend {
    fn bit(self) -> u32 {
        match self {
            SdpBackend::Error => 0,
            backend => 1 << backend as u32,
        }
    }

    /// Whether it may be used.
    pub fn is_enabled(self) -> bool {
        ENABLED.load(Ordering::Relaxed) & self.bit() != 0
    }

    /// Says whether it may be used.
    pub fn set_enabled(self, enabled: bool) {
        if enabled {
            ENABLED.fetch_or(self.bit(), Ordering::Relaxed);
        } else {
            ENABLED.fetch_and(!self.bit(), Ordering::Relaxed);
        }
    }
}
