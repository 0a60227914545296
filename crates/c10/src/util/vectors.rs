//! Vectors for sizes and strides, inline up to five dimensions.

use smallvec::SmallVec;

use crate::core::SymInt;

/// Sizes, strides or dimension numbers: on the stack up to five dimensions.
pub type DimVector = SmallVec<[i64; 5]>;

/// Like [`DimVector`], with possibly symbolic entries.
pub type SymDimVector = SmallVec<[SymInt; 5]>;
