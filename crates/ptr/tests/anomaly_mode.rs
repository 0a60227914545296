//! Anomaly mode is one for the process, so its test has a process of its own.

// A test states its case; what fails is named by the assertion.
#![allow(clippy::unwrap_used)]

use ptr::autograd::anomaly_mode;
use ptr::{at, Config, RequiresGrad, Result};

#[test]
fn nan_is_an_error_in_every_thread() -> Result<()> {
    ptr::init(Config::new())?;
    let gradient = || {
        let x = ptr::tensor(&[0.0_f32], &[1])?.set_requires_grad(true)?;
        let zero = ptr::tensor(&[0.0_f32], &[1])?;
        let y = at::sum(&at::mul_tensor(&at::sqrt(&x)?, &zero)?, None)?;
        ptr::backward(&y).map(|()| ptr::grad(&x).unwrap())
    };
    let in_a_thread = || std::thread::spawn(gradient).join().unwrap();
    anomaly_mode::set_enabled(true, true);
    let error = in_a_thread().unwrap_err();
    assert_eq!(error.message(), "Function 'SqrtBackward0' returned nan values in its 0th output.");
    anomaly_mode::set_enabled(true, false);
    assert!(ptr::to_vec::<f32>(&in_a_thread()?)?[0].is_nan());
    anomaly_mode::set_enabled(false, true);
    assert!(ptr::to_vec::<f32>(&in_a_thread()?)?[0].is_nan());
    Ok(())
}
