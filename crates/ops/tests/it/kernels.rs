//! Declarations and the CPU's kernels agree.

use c10::{DispatchKey, Result};

#[test]
fn every_declared_kernel_is_registered_under_its_type() -> Result<()> {
    let _guard = crate::start()?;
    let missing: Vec<String> =
        ops::missing_kernels(DispatchKey::CPU).iter().map(ToString::to_string).collect();
    assert!(missing.is_empty(), "{missing:#?}");
    Ok(())
}
