//! Tensors made from nothing, copies and casts.

use c10::{MemoryFormat, Result, Scalar, ScalarType};
use ops::{at, sym};

use crate::{assert_close, floats, start, tensor, values};

#[test]
fn ranges() -> Result<()> {
    let _guard = start()?;
    let ints = at::arange(&Scalar::Int(4), None, None, None, None)?;
    assert_eq!(ints.dtype(), ScalarType::Long);
    assert_close(&ints, &[0.0, 1.0, 2.0, 3.0])?;
    let down = at::arange_start_step(
        &Scalar::Float(1.0),
        &Scalar::Int(0),
        &Scalar::Float(-0.25),
        None,
        None,
        None,
        None,
    )?;
    assert_eq!(down.dtype(), ScalarType::Float);
    assert_close(&down, &[1.0, 0.75, 0.5, 0.25])?;
    assert!(at::arange_start(&Scalar::Int(1), &Scalar::Int(0), None, None, None, None).is_err());
    assert!(at::arange(&Scalar::Float(f64::NAN), None, None, None, None).is_err());
    assert_close(
        &at::linspace(&Scalar::Int(0), &Scalar::Int(1), 5, None, None, None, None)?,
        &[0.0, 0.25, 0.5, 0.75, 1.0],
    )?;
    assert_close(
        &at::eye_m(&2_i64.into(), &3_i64.into(), None, None, None, None)?,
        &[1.0, 0.0, 0.0, 0.0, 1.0, 0.0],
    )
}

#[test]
fn sizes_are_checked() -> Result<()> {
    let _guard = start()?;
    let make = |sizes: &[i64]| at::zeros(&sym::sym_ints(sizes), None, None, None, None);
    assert!(make(&[-1]).is_err());
    assert!(make(&[i64::MAX, i64::MAX]).is_err());
    assert!(make(&[1 << 60]).is_err());
    assert_eq!(make(&[0, 1 << 60])?.numel()?, 0);
    assert!(make(&[0, i64::MAX]).is_err());
    Ok(())
}

#[test]
fn copies_keep_strides() -> Result<()> {
    let _guard = start()?;
    let a = tensor(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3], ScalarType::Float)?;
    let transposed = at::t(&a)?;
    let copy = at::clone(&transposed, None)?;
    assert_eq!(copy.strides()?, [1, 3]);
    let row_major = at::contiguous(&transposed, MemoryFormat::Contiguous)?;
    assert_eq!(row_major.strides()?, [2, 1]);
    assert_eq!(values(&row_major)?, [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
    let expanded = at::expand(&floats(&[1.0])?, &sym::sym_ints(&[3]), false)?;
    assert_eq!(at::clone(&expanded, None)?.strides()?, [1]);
    Ok(())
}

#[test]
fn casts() -> Result<()> {
    let _guard = start()?;
    let a = floats(&[1.9, -1.9, 0.0])?;
    assert_close(&at::to_dtype(&a, ScalarType::Long, false, false, None)?, &[1.0, -1.0, 0.0])?;
    assert_close(&at::to_dtype(&a, ScalarType::Bool, false, false, None)?, &[1.0, 1.0, 0.0])?;
    assert!(at::to_dtype(&a, ScalarType::Float, false, false, None)?.is_same(&a));
    assert!(!at::to_dtype(&a, ScalarType::Float, false, true, None)?.is_same(&a));
    Ok(())
}
