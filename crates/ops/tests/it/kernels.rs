//! Declarations and the CPU's kernels agree.

use c10::{DeviceType, Result};

#[test]
fn every_declared_kernel_is_registered_under_its_type() -> Result<()> {
    let _guard = crate::start()?;
    let missing: Vec<String> =
        ops::missing_kernels(DeviceType::CPU).iter().map(ToString::to_string).collect();
    assert!(missing.is_empty(), "{missing:#?}");
    Ok(())
}
