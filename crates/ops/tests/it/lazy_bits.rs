//! Lazy conjugation and negation, and the fallback that resolves them.

use c10::{Complex, Result, Scalar, ScalarType, Tensor};
use ops::{at, sym};

use crate::{start, values};

fn complex(re: f64, im: f64) -> Result<Tensor> {
    let value = Scalar::Complex(Complex::new(re, im));
    at::full(&sym::sym_ints(&[2]), &value, Some(ScalarType::ComplexFloat), None, None, None)
}

fn parts(tensor: &Tensor) -> Result<Vec<f64>> {
    values(&at::view_as_real(&at::resolve_conj(&at::resolve_neg(tensor)?)?)?)
}

#[test]
fn conj_is_a_view_until_somebody_computes() -> Result<()> {
    let _guard = start()?;
    let a = complex(1.0, 2.0)?;
    let conj = at::conj(&a)?;
    assert!(conj.is_conj() && conj.is_alias_of(&a));
    assert_eq!(parts(&conj)?, [1.0, -2.0, 1.0, -2.0]);
    let product = at::mul_tensor(&conj, &a)?;
    assert!(!product.is_conj());
    assert_eq!(parts(&product)?, [5.0, 0.0, 5.0, 0.0]);
    assert!(!at::conj(&conj)?.is_conj());
    assert!(at::view_as_real(&conj).is_err());
    Ok(())
}

#[test]
fn writing_to_a_conjugate_writes_to_its_base() -> Result<()> {
    let _guard = start()?;
    let a = complex(1.0, 2.0)?;
    let conj = at::conj(&a)?;
    let returned = at::add__scalar(&conj, &Scalar::Complex(Complex::new(0.0, 1.0)), &Scalar::Int(1))?;
    assert!(returned.is_same(&conj));
    assert_eq!(parts(&conj)?, [1.0, -1.0, 1.0, -1.0]);
    assert_eq!(parts(&a)?, [1.0, 1.0, 1.0, 1.0]);
    at::copy_(&conj, &complex(7.0, 8.0)?, false)?;
    assert_eq!(parts(&a)?, [7.0, -8.0, 7.0, -8.0]);
    Ok(())
}

#[test]
fn imag_of_a_conjugate_is_negative() -> Result<()> {
    let _guard = start()?;
    let a = complex(1.0, 2.0)?;
    let imag = at::imag(&at::conj(&a)?)?;
    assert!(imag.is_neg());
    assert_eq!(values(&at::add_scalar(&imag, &Scalar::Int(1), &Scalar::Int(1))?)?, [-1.0, -1.0]);
    assert_eq!(values(&at::neg(&imag)?)?, [2.0, 2.0]);
    Ok(())
}
