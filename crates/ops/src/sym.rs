//! Symbolic integers where concrete ones are needed.
//!
//! Signatures carry `SymInt`; what finally computes a shape or walks memory asks for plain integers here, which for a
//! symbolic value installs a guard.

use c10::{DimVector, Result, SymDimVector, SymInt, Tensor};

/// Concrete sizes.
pub fn ints(values: &[SymInt]) -> Result<DimVector> {
    values.iter().map(SymInt::guard_int).collect()
}

/// Concrete sizes that may be missing.
pub fn optional_ints(values: Option<&[SymInt]>) -> Result<Option<DimVector>> {
    values.map(ints).transpose()
}

/// A concrete integer that may be missing.
pub fn optional_int(value: Option<&SymInt>) -> Result<Option<i64>> {
    value.map(SymInt::guard_int).transpose()
}

/// Plain integers as symbolic ones.
pub fn sym_ints(values: &[i64]) -> SymDimVector {
    values.iter().map(|&v| SymInt::from(v)).collect()
}

/// A tensor's sizes, concrete.
pub fn sizes_of(tensor: &Tensor) -> Result<DimVector> {
    if tensor.has_symbolic_sizes_strides() {
        return ints(&tensor.sym_sizes());
    }
    Ok(DimVector::from_slice(tensor.sizes()?))
}

/// A tensor's strides, concrete.
pub fn strides_of(tensor: &Tensor) -> Result<DimVector> {
    if tensor.has_symbolic_sizes_strides() {
        return ints(&tensor.sym_strides());
    }
    Ok(DimVector::from_slice(tensor.strides()?))
}
