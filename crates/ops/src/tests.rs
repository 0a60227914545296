//! Registration and the operators that need no kernel: views, shapes on the Meta device, errors.

use c10::{AutoDispatchBelowADInplaceOrView, Device, DeviceType, Result, Scalar, ScalarType, SymInt, Tensor};

use crate::{at, init, sym};

/// Autograd is another crate's, so calls start below it.
fn below_autograd() -> Result<AutoDispatchBelowADInplaceOrView> {
    init()?;
    Ok(AutoDispatchBelowADInplaceOrView::new())
}

fn meta(sizes: &[i64], dtype: ScalarType) -> Result<Tensor> {
    let device = Some(Device::new(DeviceType::Meta, -1));
    at::empty_memory_format(&sym::sym_ints(sizes), Some(dtype), None, device, None, None)
}

fn cpu(sizes: &[i64]) -> Result<Tensor> {
    at::empty_memory_format(&sym::sym_ints(sizes), Some(ScalarType::Float), None, None, None, None)
}

#[test]
fn every_operator_has_a_schema_that_parses() -> Result<()> {
    init()?;
    let operators = dispatch::list_operators();
    assert!(operators.len() > 300, "only {} operators", operators.len());
    for op in operators {
        op.schema()?;
    }
    Ok(())
}

#[test]
fn binary_operators_broadcast_and_promote() -> Result<()> {
    let _guard = below_autograd()?;
    let sum =
        at::add_tensor(&meta(&[3, 1], ScalarType::Int)?, &meta(&[4], ScalarType::Half)?, &Scalar::Int(1))?;
    assert_eq!(sum.sizes()?, [3, 4]);
    assert_eq!(sum.dtype(), ScalarType::Half);
    let compared = at::lt_tensor(&meta(&[2], ScalarType::Float)?, &meta(&[2], ScalarType::Double)?)?;
    assert_eq!(compared.dtype(), ScalarType::Bool);
    Ok(())
}

#[test]
fn out_is_resized_and_returned() -> Result<()> {
    let _guard = below_autograd()?;
    let out = meta(&[0], ScalarType::Float)?;
    let a = meta(&[2, 3], ScalarType::Float)?;
    let result = at::mm_out(&a, &meta(&[3, 5], ScalarType::Float)?, &out)?;
    assert!(result.is_same(&out));
    assert_eq!(out.sizes()?, [2, 5]);
    Ok(())
}

#[test]
fn in_place_keeps_the_shape() -> Result<()> {
    let _guard = below_autograd()?;
    let a = meta(&[3], ScalarType::Float)?;
    let error = at::add__tensor(&a, &meta(&[2, 3], ScalarType::Float)?, &Scalar::Int(1)).err();
    let message = error.map(|e| e.to_string()).unwrap_or_default();
    assert!(message.contains("doesn't match the broadcast shape [2, 3]"), "{message}");
    Ok(())
}

#[test]
fn views_share_memory() -> Result<()> {
    let _guard = below_autograd()?;
    let base = cpu(&[4, 6])?;
    let slice = at::slice_tensor(&base, 1, Some(&SymInt::from(1_i64)), None, &SymInt::from(2_i64))?;
    assert_eq!(slice.sizes()?, [4, 3]);
    assert_eq!(slice.strides()?, [6, 2]);
    assert_eq!(slice.storage_offset()?, 1);
    assert!(slice.is_alias_of(&base));
    let transposed = at::t(&base)?;
    assert_eq!(transposed.strides()?, [1, 6]);
    assert!(at::view(&transposed, &sym::sym_ints(&[24])).is_err());
    let parts = at::split_tensor(&base, &SymInt::from(3_i64), 0)?;
    assert_eq!(parts.iter().map(|p| p.sizes().map(|s| s[0])).collect::<Result<Vec<_>>>()?, [3, 1]);
    Ok(())
}

#[test]
fn restriding_stays_inside_the_storage() -> Result<()> {
    let _guard = below_autograd()?;
    let base = cpu(&[4])?;
    let wild = at::as_strided(&base, &sym::sym_ints(&[1000]), &sym::sym_ints(&[1000]), None);
    let message = wild.err().map(|e| e.to_string()).unwrap_or_default();
    assert!(message.contains("out of bounds for storage"), "{message}");
    let offset = SymInt::from(i64::MAX);
    assert!(at::as_strided(&base, &sym::sym_ints(&[1]), &sym::sym_ints(&[1]), Some(&offset)).is_err());
    Ok(())
}

#[test]
fn matmul_of_any_rank() -> Result<()> {
    let _guard = below_autograd()?;
    let shape = |a: &[i64], b: &[i64]| -> Result<Vec<i64>> {
        let product = at::matmul(&meta(a, ScalarType::Float)?, &meta(b, ScalarType::Float)?)?;
        Ok(product.sizes()?.to_vec())
    };
    assert_eq!(shape(&[3], &[3])?, []);
    assert_eq!(shape(&[2, 3], &[3])?, [2]);
    assert_eq!(shape(&[3], &[3, 5])?, [5]);
    assert_eq!(shape(&[7, 2, 3], &[3, 5])?, [7, 2, 5]);
    assert_eq!(shape(&[2, 3], &[7, 3, 5])?, [7, 2, 5]);
    assert_eq!(shape(&[3], &[7, 3, 5])?, [7, 5]);
    assert_eq!(shape(&[7, 2, 3], &[3])?, [7, 2]);
    assert_eq!(shape(&[4, 1, 2, 3], &[7, 3, 5])?, [4, 7, 2, 5]);
    assert!(shape(&[2, 3], &[4, 5]).is_err());
    Ok(())
}

#[test]
fn convolution_shapes_and_errors() -> Result<()> {
    let _guard = below_autograd()?;
    let ints = sym::sym_ints;
    let input = meta(&[2, 4, 9, 9], ScalarType::Float)?;
    let weight = meta(&[6, 2, 3, 3], ScalarType::Float)?;
    let one = SymInt::from(1_i64);
    let two = SymInt::from(2_i64);
    let out = at::conv2d(&input, &weight, None, &ints(&[2]), &ints(&[1]), &ints(&[1]), &two)?;
    assert_eq!(out.sizes()?, [2, 6, 5, 5]);
    let same = at::conv2d_padding(&input, &weight, None, &ints(&[1]), "same", &ints(&[2]), &two)?;
    assert_eq!(same.sizes()?, [2, 6, 9, 9]);
    assert!(at::conv2d(&input, &weight, None, &ints(&[1]), &ints(&[0]), &ints(&[1]), &one).is_err());
    assert!(at::conv2d(&input, &weight, None, &ints(&[0]), &ints(&[0]), &ints(&[1]), &two).is_err());
    Ok(())
}

#[test]
fn indexing_moves_separated_indices_to_the_front() -> Result<()> {
    let _guard = below_autograd()?;
    let base = meta(&[4, 5, 6], ScalarType::Float)?;
    let index = meta(&[2, 1], ScalarType::Long)?;
    let other = meta(&[3], ScalarType::Long)?;
    let adjacent = at::index_tensor(&base, &[None, Some(index.clone()), Some(other.clone())])?;
    assert_eq!(adjacent.sizes()?, [4, 2, 3]);
    let separated = at::index_tensor(&base, &[Some(index.clone()), None, Some(other)])?;
    assert_eq!(separated.sizes()?, [2, 3, 5]);
    assert!(at::index_tensor(&base, &[Some(meta(&[2], ScalarType::Float)?)]).is_err());
    let many = vec![Some(index); 4];
    assert!(at::index_tensor(&base, &many).is_err());
    Ok(())
}

#[test]
fn dynamic_outputs_have_no_meta_kernel() -> Result<()> {
    let _guard = below_autograd()?;
    let error = at::nonzero(&meta(&[3], ScalarType::Float)?).err();
    assert_eq!(error.map(|e| e.kind()), Some(c10::ErrorKind::NotImplemented));
    Ok(())
}
