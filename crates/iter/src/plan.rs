//! Plans that are more than an iterator: what a meta function has worked out for its kernel.

use c10::DimVector;

use crate::iterator::TensorIterator;

/// The plan of `index` and `index_put_`: an iterator over the result's elements, and how the index tensors move
/// through the indexed dimensions.
///
/// Operands are the output, the other data tensor, then the index tensors (int64, broadcast together). The tensor
/// that is indexed (`self`: operand 1 of `index`, operand 0 of `index_put_`) has stride 0 along the indexed
/// dimensions; the address of its element is its pointer plus the sum of `index[k] * indexed_strides[k]`.
pub struct IndexPlan {
    /// Walks the result, the values and the index tensors together.
    pub iter: TensorIterator,
    /// The size of each indexed dimension: the bound of index tensor `k`.
    pub indexed_sizes: DimVector,
    /// The stride of each indexed dimension, in bytes.
    pub indexed_strides: DimVector,
}
