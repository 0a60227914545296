//! What the CPU can do, asked once.

use std::sync::atomic::{AtomicU8, Ordering};

/// A set of instructions that kernels are compiled for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum CpuCapability {
    /// What every CPU of the target has.
    Default = 1,
    /// AVX2, FMA and F16C (x86-64-v3).
    Avx2 = 2,
    /// AVX-512 F, BW, DQ and VL (x86-64-v4).
    Avx512 = 3,
}

impl CpuCapability {
    /// The name that `PTR_CPU_CAPABILITY` and `ptr.backends.cpu.get_cpu_capability` use.
    pub fn name(self) -> &'static str {
        match self {
            CpuCapability::Default => "DEFAULT",
            CpuCapability::Avx2 => "AVX2",
            CpuCapability::Avx512 => "AVX512",
        }
    }
}

/// The best tier of this machine, or the lower one that `PTR_CPU_CAPABILITY` (`default`, `avx2`, `avx512`) asks for.
///
/// A tier that the machine lacks, or an unknown name, is passed over: it must never crash a program.
#[inline]
pub fn capability() -> CpuCapability {
    static CHOSEN: AtomicU8 = AtomicU8::new(0);
    match CHOSEN.load(Ordering::Relaxed) {
        0 => {
            let chosen = choose(std::env::var("PTR_CPU_CAPABILITY").ok().as_deref(), detect());
            CHOSEN.store(chosen as u8, Ordering::Relaxed);
            chosen
        }
        1 => CpuCapability::Default,
        2 => CpuCapability::Avx2,
        _ => CpuCapability::Avx512,
    }
}

fn choose(wanted: Option<&str>, machine: CpuCapability) -> CpuCapability {
    let wanted = match wanted.map(str::to_ascii_lowercase).as_deref() {
        Some("default") => CpuCapability::Default,
        Some("avx2") => CpuCapability::Avx2,
        _ => machine,
    };
    wanted.min(machine)
}

#[cfg(target_arch = "x86_64")]
fn detect() -> CpuCapability {
    let avx2 = is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("fma")
        && is_x86_feature_detected!("f16c")
        && is_x86_feature_detected!("bmi2");
    let avx512 = avx2
        && is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl");
    match (avx2, avx512) {
        (_, true) => CpuCapability::Avx512,
        (true, false) => CpuCapability::Avx2,
        _ => CpuCapability::Default,
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn detect() -> CpuCapability {
    CpuCapability::Default
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forced_tier_is_never_above_the_machine() {
        use CpuCapability::*;
        assert_eq!(choose(Some("avx512"), Avx2), Avx2);
        assert_eq!(choose(Some("AVX2"), Avx512), Avx2);
        assert_eq!(choose(Some("default"), Avx512), Default);
        assert_eq!(choose(Some("neon?"), Avx2), Avx2);
        assert_eq!(choose(None, Avx512), Avx512);
    }
}
