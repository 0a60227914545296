//! Rows of a table by number.

use c10::{check, Result, Scalar, ScalarType, SizeInt, SymDimVector, SymInt, Tensor};

use crate::composite::loss::p_norm;
use crate::terms::{cast, ONE};
use crate::{at, sym};

fn check_indices(name: &str, indices: &Tensor) -> Result<()> {
    check!(
        matches!(indices.dtype(), ScalarType::Long | ScalarType::Int),
        "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got {} instead \
         (while checking arguments for {name})",
        indices.dtype().short_name()
    );
    Ok(())
}

/// `aten::embedding`
pub fn embedding(
    weight: &Tensor,
    indices: &Tensor,
    _padding_idx: &SymInt,
    _scale_grad_by_freq: bool,
    _sparse: bool,
) -> Result<Tensor> {
    check!(weight.dim() == 2, "'weight' must be 2-D");
    check_indices("embedding", indices)?;
    let rows = at::index_select(weight, 0, &at::reshape(indices, &[SymInt::from(-1)])?)?;
    let mut sizes = indices.sym_sizes();
    sizes.push(weight.sym_size(1)?);
    at::view(&rows, &sizes)
}

/// `aten::embedding_backward`
pub fn embedding_backward(
    grad: &Tensor,
    indices: &Tensor,
    num_weights: &SymInt,
    padding_idx: &SymInt,
    scale_grad_by_freq: bool,
    sparse: bool,
) -> Result<Tensor> {
    if sparse {
        c10::bail!(NotImplemented, "embedding_backward(): sparse gradients are not supported")
    }
    at::embedding_dense_backward(grad, indices, num_weights, padding_idx, scale_grad_by_freq)
}

/// `aten::embedding_dense_backward`
pub fn embedding_dense_backward(
    grad_output: &Tensor,
    indices: &Tensor,
    num_weights: &SymInt,
    padding_idx: &SymInt,
    scale_grad_by_freq: bool,
) -> Result<Tensor> {
    check_indices("embedding_backward", indices)?;
    let ndim = grad_output.dim();
    let width = grad_output.sym_size(ndim - 1)?;
    let count = indices.sym_numel();
    let mut grad = at::reshape(grad_output, &[count, width.clone()])?;
    let flat = cast(&at::reshape(indices, &[SymInt::from(-1)])?, ScalarType::Long)?;
    let table = [num_weights.clone(), width];
    if scale_grad_by_freq {
        let ones = at::ones_like(&flat, Some(grad.dtype()), None, None, None, None)?;
        let counts = at::new_zeros(&ones, &table[..1], None, None, None, None)?;
        let counts = at::index_add(&counts, 0, &flat, &ones, &ONE)?;
        let own = at::index_select(&counts, 0, &flat)?;
        grad = at::div_tensor(&grad, &at::unsqueeze(&own, 1)?)?;
    }
    if SymInt::ZERO.guard_le(padding_idx)? {
        let padding = at::eq_scalar(&flat, &sym::scalar(padding_idx))?;
        grad = at::masked_fill_scalar(&grad, &at::unsqueeze(&padding, 1)?, &Scalar::Int(0))?;
    }
    let zeros = at::new_zeros(&grad, &table, None, None, None, None)?;
    at::index_add(&zeros, 0, &flat, &grad, &ONE)
}

/// `aten::embedding_renorm_`: rows that are used and too long are shortened.
pub fn embedding_renorm_(self_: &Tensor, indices: &Tensor, max_norm: f64, norm_type: f64) -> Result<Tensor> {
    check!(self_.dim() == 2, "self has to be two-dimensional, got {} dimensions", self_.dim());
    check_indices("embedding_renorm_", indices)?;
    let flat = cast(&at::reshape(indices, &[SymInt::from(-1)])?, ScalarType::Long)?;
    let used = at::zeros(&self_.sym_sizes()[..1], Some(ScalarType::Bool), None, Some(self_.device()), None)?;
    let used = at::index_put(
        &used,
        &[Some(flat)],
        &at::ones(&[], Some(ScalarType::Bool), None, Some(self_.device()), None)?,
        false,
    )?;
    let norms = p_norm(self_, norm_type, 1, false)?;
    let long = at::logical_and(&used, &at::gt_scalar(&norms, &Scalar::Float(max_norm))?)?;
    let factor = at::reciprocal(&at::add_scalar(&norms, &Scalar::Float(1e-7), &ONE)?)?;
    let factor = at::mul_scalar(&factor, &Scalar::Float(max_norm))?;
    let ones = at::ones_like(&factor, None, None, None, None, None)?;
    let factor = at::where_self(&long, &factor, &ones)?;
    at::mul__tensor(self_, &cast(&at::unsqueeze(&factor, 1)?, self_.dtype())?)
}

/// `aten::embedding_bag`
#[allow(clippy::too_many_arguments)] // The operator has that many.
pub fn embedding_bag(
    weight: &Tensor,
    indices: &Tensor,
    offsets: &Tensor,
    scale_grad_by_freq: bool,
    mode: i64,
    sparse: bool,
    per_sample_weights: Option<&Tensor>,
    include_last_offset: bool,
) -> Result<(Tensor, Tensor, Tensor, Tensor)> {
    embedding_bag_padding_idx(
        weight,
        indices,
        offsets,
        scale_grad_by_freq,
        mode,
        sparse,
        per_sample_weights,
        include_last_offset,
        None,
    )
}

/// `aten::embedding_bag.padding_idx`
#[allow(clippy::too_many_arguments)] // The operator has that many.
pub fn embedding_bag_padding_idx(
    weight: &Tensor,
    indices: &Tensor,
    offsets: &Tensor,
    scale_grad_by_freq: bool,
    mode: i64,
    sparse: bool,
    per_sample_weights: Option<&Tensor>,
    include_last_offset: bool,
    padding_idx: Option<i64>,
) -> Result<(Tensor, Tensor, Tensor, Tensor)> {
    let mut padding = -1;
    if let Some(index) = padding_idx {
        check!(
            weight.dim() >= 1,
            "weight has to be a 2D Tensor, but got Tensor of dimension {}",
            weight.dim()
        );
        let rows = weight.size(0)?;
        check!(
            (-rows..rows).contains(&index),
            "padding_idx must be within the number of embeddings, {} through {}, but got {index}",
            -rows,
            rows - 1
        );
        padding = if index < 0 { index + rows } else { index };
    }
    at::_embedding_bag(
        weight,
        indices,
        offsets,
        scale_grad_by_freq,
        mode,
        sparse,
        per_sample_weights,
        include_last_offset,
        padding,
    )
}

/// `aten::one_hot`
pub fn one_hot(self_: &Tensor, num_classes: i64) -> Result<Tensor> {
    check!(
        self_.dtype() == ScalarType::Long,
        "one_hot is only applicable to index tensor of type LongTensor."
    );
    let mut sizes = self_.sym_sizes();
    if sym::is_empty(self_)? {
        check!(num_classes > 0, "Can not infer total number of classes from empty tensor.");
        sizes.push(SymInt::from(num_classes));
        return at::new_empty(self_, &sizes, None, None, None, None);
    }
    let known = !self_.is_meta();
    if known {
        check!(at::item(&at::min(self_)?)?.to_i64()? >= 0, "Class values must be non-negative.");
    }
    let classes = if num_classes == -1 {
        check!(known, "one_hot(): cannot infer the number of classes of a tensor without data");
        at::item(&at::max(self_)?)?.to_i64()? + 1
    } else {
        check!(num_classes > 0, "num_classes should be positive");
        if known {
            check!(
                at::item(&at::max(self_)?)?.to_i64()? < num_classes,
                "Class values must be smaller than num_classes."
            );
        }
        num_classes
    };
    sizes.push(SymInt::from(classes));
    let zeros = at::new_zeros(self_, &sizes, None, None, None, None)?;
    at::scatter_value(&zeros, -1, &at::unsqueeze(self_, -1)?, &ONE)
}

/// `embedding_dense_backward` with respect to the gradient: its rows, without those of the padding.
pub fn embedding_rows(grad: &Tensor, indices: &Tensor, padding_idx: &SymInt) -> Result<Tensor> {
    let flat = at::reshape(indices, &[SymInt::from(-1)])?;
    let mut rows = at::index_select(grad, 0, &flat)?;
    if SymInt::ZERO.guard_le(padding_idx)? {
        let padding = at::eq_scalar(&flat, &sym::scalar(padding_idx))?;
        rows = at::masked_fill_scalar(&rows, &at::unsqueeze(&padding, 1)?, &Scalar::Int(0))?;
    }
    let mut sizes: SymDimVector = indices.sym_sizes();
    sizes.push(grad.sym_size(grad.dim() - 1)?);
    at::view(&rows, &sizes)
}
