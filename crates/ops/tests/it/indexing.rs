//! Advanced indexing, gathering and scattering, joining, sorting.

use c10::{ErrorKind, Result, Scalar, ScalarType};
use ops::{at, sym};

use crate::{assert_close, floats, longs, start, tensor, values};

#[test]
fn index_with_tensors_and_masks() -> Result<()> {
    let _guard = start()?;
    let a = tensor(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0], &[2, 3], ScalarType::Float)?;
    let rows = at::index_tensor(&a, &[Some(longs(&[1, -1, 0])?)])?;
    assert_eq!(rows.sizes()?, [3, 3]);
    assert_close(&rows, &[3.0, 4.0, 5.0, 3.0, 4.0, 5.0, 0.0, 1.0, 2.0])?;
    let pairs = at::index_tensor(&a, &[Some(longs(&[0, 1])?), Some(longs(&[2, 0])?)])?;
    assert_close(&pairs, &[2.0, 3.0])?;
    let columns = at::index_tensor(&a, &[None, Some(longs(&[2])?)])?;
    assert_close(&columns, &[2.0, 5.0])?;
    let mask = at::gt_scalar(&a, &Scalar::Int(3))?;
    assert_close(&at::index_tensor(&a, &[Some(mask.clone())])?, &[4.0, 5.0])?;
    assert_close(&at::masked_select(&a, &mask)?, &[4.0, 5.0])?;
    let outside = at::index_tensor(&a, &[Some(longs(&[2])?)]).err().map(|e| e.kind());
    assert_eq!(outside, Some(ErrorKind::Index));
    Ok(())
}

#[test]
fn index_put_overwrites_and_accumulates() -> Result<()> {
    let _guard = start()?;
    let a = floats(&[0.0, 0.0, 0.0])?;
    at::index_put_(&a, &[Some(longs(&[0, 2])?)], &floats(&[5.0, 7.0])?, false)?;
    assert_close(&a, &[5.0, 0.0, 7.0])?;
    at::index_put_(&a, &[Some(longs(&[1, 1, 1])?)], &floats(&[1.0])?, true)?;
    assert_close(&a, &[5.0, 3.0, 7.0])?;
    let b = at::index_put(&a, &[Some(at::gt_scalar(&a, &Scalar::Int(4))?)], &floats(&[0.0])?, false)?;
    assert_close(&b, &[0.0, 3.0, 0.0])?;
    assert_close(&a, &[5.0, 3.0, 7.0])?;
    assert!(at::index_put_(&a, &[Some(longs(&[0])?)], &longs(&[1])?, false).is_err());
    Ok(())
}

#[test]
fn gather_and_scatter() -> Result<()> {
    let _guard = start()?;
    let a = tensor(&[1.0, 2.0, 3.0, 4.0], &[2, 2], ScalarType::Float)?;
    let index = at::view(&longs(&[1, 0, 0, 0])?, &sym::sym_ints(&[2, 2]))?;
    assert_close(&at::gather(&a, 1, &index, false)?, &[2.0, 1.0, 3.0, 3.0])?;
    let zeros = at::zeros_like(&a, None, None, None, None, None)?;
    assert_close(&at::scatter_add(&zeros, 1, &index, &a)?, &[2.0, 1.0, 7.0, 0.0])?;
    assert_close(&zeros, &[0.0; 4])?;
    at::scatter__value(&zeros, 0, &index, &Scalar::Int(9))?;
    assert_close(&zeros, &[9.0, 9.0, 9.0, 0.0])?;
    assert_close(&at::index_select(&a, 0, &longs(&[1])?)?, &[3.0, 4.0])?;
    assert_close(&at::index_add(&a, 0, &longs(&[0, 0])?, &a, &Scalar::Int(1))?, &[5.0, 8.0, 3.0, 4.0])?;
    assert!(at::gather(&a, 1, &a, false).is_err());
    assert!(at::gather(&a, 1, &at::mul_scalar(&index, &Scalar::Int(5))?, false).is_err());
    Ok(())
}

#[test]
fn masked_fill_broadcasts() -> Result<()> {
    let _guard = start()?;
    let a = floats(&[1.0, 2.0])?;
    let mask = at::view(&at::eq_scalar(&longs(&[0, 1])?, &Scalar::Int(0))?, &sym::sym_ints(&[2, 1]))?;
    let filled = at::masked_fill_scalar(&a, &mask, &Scalar::Int(-1))?;
    assert_eq!(filled.sizes()?, [2, 2]);
    assert_close(&filled, &[-1.0, -1.0, 1.0, 2.0])
}

#[test]
fn cat_stack_sort() -> Result<()> {
    let _guard = start()?;
    let (a, b) = (floats(&[3.0, 1.0])?, longs(&[2])?);
    let joined = at::cat(&[a.clone(), b], 0)?;
    assert_eq!(joined.dtype(), ScalarType::Float);
    let (sorted, order) = at::sort(&joined, -1, true)?;
    assert_close(&sorted, &[3.0, 2.0, 1.0])?;
    assert_close(&order, &[0.0, 2.0, 1.0])?;
    let stacked = at::stack(&[a.clone(), a], 1)?;
    assert_eq!(stacked.sizes()?, [2, 2]);
    assert_eq!(values(&stacked)?, [3.0, 3.0, 1.0, 1.0]);
    assert!(at::cat(&[], 0).is_err());
    Ok(())
}
