//! Promotion, in-place and `out=` forms, reductions.

use c10::{Result, Scalar, ScalarType};
use ops::at;

use crate::{assert_close, floats, longs, start, tensor, values};

const ONE: Scalar = Scalar::Int(1);

#[test]
fn numbers_promote_as_pythons_do() -> Result<()> {
    let _guard = start()?;
    let ints = longs(&[1, 2, 3])?;
    let sum = at::add_scalar(&ints, &Scalar::Int(1), &ONE)?;
    assert_eq!(sum.dtype(), ScalarType::Long);
    assert_close(&sum, &[2.0, 3.0, 4.0])?;
    assert_eq!(at::add_scalar(&ints, &Scalar::Float(0.5), &ONE)?.dtype(), ScalarType::Float);
    assert_eq!(at::div_scalar(&ints, &Scalar::Int(2))?.dtype(), ScalarType::Float);
    let half = tensor(&[1.0], &[1], ScalarType::Half)?;
    assert_eq!(at::mul_scalar(&half, &Scalar::Float(2.0))?.dtype(), ScalarType::Half);
    Ok(())
}

#[test]
fn in_place_writes_through_views() -> Result<()> {
    let _guard = start()?;
    let base = tensor(&[1.0, 2.0, 3.0, 4.0], &[2, 2], ScalarType::Float)?;
    at::mul__scalar(&at::t(&base)?, &Scalar::Int(10))?;
    at::add__tensor(&at::select_int(&base, 1, &0_i64.into())?, &floats(&[1.0, 2.0])?, &Scalar::Int(2))?;
    assert_close(&base, &[12.0, 20.0, 34.0, 40.0])?;
    assert!(at::div__scalar(&longs(&[4])?, &Scalar::Int(2)).is_err());
    Ok(())
}

#[test]
fn out_takes_other_strides_and_dtypes() -> Result<()> {
    let _guard = start()?;
    let (a, b) = (floats(&[1.0, 2.0, 3.0])?, floats(&[10.0, 20.0, 30.0])?);
    let wide = tensor(&[0.0; 6], &[3, 2], ScalarType::Double)?;
    let out = at::select_int(&wide, 1, &1_i64.into())?;
    at::add_out(&a, &b, &ONE, &out)?;
    assert_close(&wide, &[0.0, 11.0, 0.0, 22.0, 0.0, 33.0])?;
    assert!(at::add_out(&a, &b, &ONE, &longs(&[0, 0, 0])?).is_err());
    let compared = tensor(&[0.0; 3], &[3], ScalarType::Float)?;
    at::gt_tensor_out(&a, &floats(&[2.0, 2.0, 2.0])?, &compared)?;
    assert_close(&compared, &[0.0, 0.0, 1.0])
}

#[test]
fn reductions() -> Result<()> {
    let _guard = start()?;
    let a = tensor(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3], ScalarType::Float)?;
    assert_close(&at::sum(&a, None)?, &[21.0])?;
    assert_close(&at::mean(&a, None)?, &[3.5])?;
    assert_close(&at::mean_dim(&a, Some(&[0]), true, None)?, &[2.5, 3.5, 4.5])?;
    let (largest, positions) = at::max_dim(&a, 1, false)?;
    assert_close(&largest, &[3.0, 6.0])?;
    assert_close(&positions, &[2.0, 2.0])?;
    assert_close(&at::argmin(&a, None, false)?, &[0.0])?;
    assert_eq!(at::sum(&longs(&[1, 2])?, None)?.dtype(), ScalarType::Long);
    assert!(at::mean(&longs(&[1, 2])?, None).is_err());
    let empty = tensor(&[], &[0], ScalarType::Float)?;
    assert_close(&at::sum(&empty, None)?, &[0.0])?;
    assert!(at::max(&empty).is_err());
    assert!(at::equal(&a, &at::clone(&a, None)?)?);
    Ok(())
}

#[test]
fn clamp_and_where_promote() -> Result<()> {
    let _guard = start()?;
    let a = longs(&[-2, 0, 5])?;
    let clamped = at::clamp(&a, Some(&Scalar::Float(-0.5)), None)?;
    assert_eq!(clamped.dtype(), ScalarType::Float);
    assert_close(&clamped, &[-0.5, 0.0, 5.0])?;
    let chosen = at::where_scalarother(&at::gt_scalar(&a, &Scalar::Int(0))?, &a, &Scalar::Int(7))?;
    assert_eq!(chosen.dtype(), ScalarType::Long);
    assert_close(&chosen, &[7.0, 7.0, 5.0])
}

#[test]
fn closeness() -> Result<()> {
    let _guard = start()?;
    let a = floats(&[1.0, f64::NAN, f64::INFINITY, 2.0])?;
    let b = floats(&[1.0 + 1e-7, f64::NAN, f64::INFINITY, 3.0])?;
    assert_eq!(values(&at::isclose(&a, &b, 1e-5, 1e-8, false)?)?, [1.0, 0.0, 1.0, 0.0]);
    assert_eq!(values(&at::isclose(&a, &b, 1e-5, 1e-8, true)?)?, [1.0, 1.0, 1.0, 0.0]);
    assert_eq!(values(&at::isfinite(&a)?)?, [1.0, 0.0, 0.0, 1.0]);
    Ok(())
}
