//! Composites of the `loss` family. `reduction` is 0 none, 1 mean, 2 sum.

mod ctc;
mod distance;
mod entropy;
mod margin;
mod robust;

pub use ctc::*;
pub use distance::*;
pub use entropy::*;
pub use margin::*;
pub use robust::*;

use c10::{check, check_value, Result, Scalar, SizeInt, SymDimVector, SymFloat, SymInt, Tensor};

use crate::{at, sym};

const ONE: Scalar = Scalar::Int(1);
const MEAN: i64 = 1;
const SUM: i64 = 2;

/// Reduces a loss per element.
pub fn apply_reduction(loss: Tensor, reduction: i64) -> Result<Tensor> {
    match reduction {
        MEAN => at::mean(&loss, None),
        SUM => at::sum(&loss, None),
        _ => Ok(loss),
    }
}

/// `aten::l1_loss`
pub fn l1_loss(self_: &Tensor, target: &Tensor, reduction: i64) -> Result<Tensor> {
    apply_reduction(at::abs(&at::sub_tensor(self_, target, &ONE)?)?, reduction)
}

/// `aten::nll_loss`
pub fn nll_loss(
    self_: &Tensor,
    target: &Tensor,
    weight: Option<&Tensor>,
    reduction: i64,
    ignore_index: &SymInt,
) -> Result<Tensor> {
    Ok(at::nll_loss_forward(self_, target, weight, reduction, ignore_index)?.0)
}

/// `aten::nll_loss_nd`: classes are dimension 1 (dimension 0 without a batch).
pub fn nll_loss_nd(
    self_: &Tensor,
    target: &Tensor,
    weight: Option<&Tensor>,
    reduction: i64,
    ignore_index: &SymInt,
) -> Result<Tensor> {
    check_value!(self_.dim() >= 1, "Expected 1 or more dimensions (got {})", self_.dim());
    let (sizes, target_sizes) = (self_.sym_sizes(), target.sym_sizes());
    if self_.dim() != 1 {
        check_value!(
            target_sizes.first().map_or(Ok(false), |size| size.expect_eq(&sizes[0]))?,
            "Expected input batch_size ({}) to match target batch_size ({}).",
            sizes[0],
            target_sizes.first().unwrap_or(&SymInt::ONE)
        );
    }
    if self_.dim() <= 2 {
        return at::nll_loss(self_, target, weight, reduction, ignore_index);
    }
    let mut expected = SymDimVector::from(&sizes[..1]);
    expected.extend(sizes[2..].iter().cloned());
    check!(
        SymInt::expect_same(&target_sizes, &expected)?,
        "Expected target size {expected:?}, got {target_sizes:?}"
    );
    // Every position is a row of its own, with the classes last.
    let flat = SymInt::from(-1);
    let rows = at::reshape(&at::movedim_int(self_, 1, -1)?, &[flat.clone(), sizes[1].clone()])?;
    let loss = at::nll_loss(&rows, &at::reshape(target, &[flat])?, weight, reduction, ignore_index)?;
    if reduction == 0 {
        return at::view(&loss, &expected);
    }
    Ok(loss)
}

/// `aten::cross_entropy_loss`
pub fn cross_entropy_loss(
    self_: &Tensor,
    target: &Tensor,
    weight: Option<&Tensor>,
    reduction: i64,
    ignore_index: &SymInt,
    label_smoothing: f64,
) -> Result<Tensor> {
    check!(
        (0.0..=1.0).contains(&label_smoothing),
        "label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing}"
    );
    let class_dim = if self_.dim() == 1 { 0 } else { 1 };
    if sym::same_sizes(self_, target)? {
        return with_probabilities(self_, target, weight, reduction, ignore_index, label_smoothing);
    }
    check!(
        target.dim() < self_.dim().max(1) || target.dtype().is_integral(true),
        "cross_entropy(): expected class indices of shape [N, ...] or probabilities of the input's shape {:?}, got {:?}",
        self_.sym_sizes(),
        target.sym_sizes()
    );
    let input = at::log_softmax_int(self_, class_dim, Some(self_.dtype()))?;
    if label_smoothing > 0.0 {
        return with_smoothing(&input, target, weight, reduction, ignore_index, label_smoothing, class_dim);
    }
    at::nll_loss_nd(&input, target, weight, reduction, ignore_index)
}

/// A class weight shaped to multiply a tensor whose classes are `class_dim`.
fn broadcast_weight(weight: &Tensor, ndim: i64, class_dim: i64) -> Result<Tensor> {
    let mut shape = SymDimVector::from_elem(SymInt::ONE, ndim.max(1) as usize);
    shape[class_dim as usize] = weight.sym_numel();
    at::view(weight, &shape)
}

/// The target is a probability per class.
fn with_probabilities(
    self_: &Tensor,
    target: &Tensor,
    weight: Option<&Tensor>,
    reduction: i64,
    ignore_index: &SymInt,
    label_smoothing: f64,
) -> Result<Tensor> {
    let class_dim = if self_.dim() == 1 { 0 } else { 1 };
    let n_classes = self_.sym_size(class_dim)?;
    check!(
        target.is_floating_point(),
        "Expected floating point type for target with class probabilities, got {}",
        target.dtype().short_name()
    );
    check!(ignore_index.guard_int()? < 0, "ignore_index is not supported for floating point target");
    let fits = |w: &Tensor| Ok::<bool, c10::Error>(w.dim() == 1 && w.sym_numel().expect_eq(&n_classes)?);
    check!(
        weight.map_or(Ok(true), fits)?,
        "cross_entropy: weight tensor should be defined either for all {n_classes} classes or no classes"
    );
    let input = at::log_softmax_int(self_, class_dim, Some(self_.dtype()))?;
    let target = if label_smoothing > 0.0 {
        let scaled = at::mul_scalar(target, &Scalar::Float(1.0 - label_smoothing))?;
        at::add_scalar(&scaled, &share_of_each(label_smoothing, &n_classes)?, &ONE)?
    } else {
        target.clone()
    };
    let mut products = at::mul_tensor(&input, &target)?;
    if let Some(weight) = weight {
        products = at::mul_tensor(&products, &broadcast_weight(weight, self_.dim(), class_dim)?)?;
    }
    match reduction {
        MEAN => {
            let classes = n_classes.sym_max(&SymInt::ONE)?;
            let rows =
                if self_.dim() == 1 { SymInt::ONE } else { self_.sym_numel().sym_floordiv(&classes)? };
            at::div_scalar(&at::neg(&at::sum(&products, None)?)?, &sym::scalar(&rows))
        }
        SUM => at::neg(&at::sum(&products, None)?),
        _ => at::neg(&at::sum_dim_intlist(&products, Some(&[class_dim]), false, None)?),
    }
}

/// `whole / count`, symbolic where the count is.
fn share_of_each(whole: f64, count: &SymInt) -> Result<Scalar> {
    let share = SymFloat::from(whole).sym_truediv(&count.to_sym_float()?)?;
    Ok(share.maybe_as_float().map_or(Scalar::SymFloat(share), Scalar::Float))
}

/// Part of the weight of each label is spread over all classes.
fn with_smoothing(
    input: &Tensor,
    target: &Tensor,
    weight: Option<&Tensor>,
    reduction: i64,
    ignore_index: &SymInt,
    label_smoothing: f64,
    class_dim: i64,
) -> Result<Tensor> {
    let n_classes = input.sym_size(class_dim)?;
    let hard = at::nll_loss_nd(input, target, weight, reduction, ignore_index)?;
    let spread = match weight {
        Some(weight) => at::mul_tensor(input, &broadcast_weight(weight, input.dim(), class_dim)?)?,
        None => input.clone(),
    };
    let spread = at::neg(&at::sum_dim_intlist(&spread, Some(&[class_dim]), false, None)?)?;
    let ignored = at::eq_scalar(target, &Scalar::Int(ignore_index.guard_int()?))?;
    let spread = at::masked_fill_scalar(&spread, &ignored, &Scalar::Int(0))?;
    let spread = match reduction {
        MEAN => at::div_tensor(&at::sum(&spread, None)?, &kept_weight(input, target, weight, &ignored)?)?,
        SUM => at::sum(&spread, None)?,
        _ => spread,
    };
    let hard = at::mul_scalar(&hard, &Scalar::Float(1.0 - label_smoothing))?;
    at::add_tensor(&hard, &at::mul_scalar(&spread, &share_of_each(label_smoothing, &n_classes)?)?, &ONE)
}

/// What a mean divides by: the weights, or the number, of the targets that are not ignored.
fn kept_weight(input: &Tensor, target: &Tensor, weight: Option<&Tensor>, ignored: &Tensor) -> Result<Tensor> {
    match weight {
        Some(weight) => {
            let safe = at::masked_fill_scalar(target, ignored, &Scalar::Int(0))?;
            let weights = at::index_select(weight, 0, &at::flatten_using_ints(&safe, 0, -1)?)?;
            let kept =
                at::masked_fill_scalar(&weights, &at::flatten_using_ints(ignored, 0, -1)?, &Scalar::Int(0))?;
            at::sum(&kept, None)
        }
        None => at::sum(&at::logical_not(ignored)?, Some(input.dtype())),
    }
}

/// `aten::mse_loss`
pub fn mse_loss(self_: &Tensor, target: &Tensor, reduction: i64) -> Result<Tensor> {
    let dtype = iter::result_type(&[self_, target])?;
    c10::check_not_implemented!(
        dtype.is_floating_point(),
        "\"mse_cpu\" not implemented for '{}'",
        dtype.short_name()
    );
    let difference = at::sub_tensor(self_, target, &ONE)?;
    apply_reduction(at::mul_tensor(&difference, &difference)?, reduction)
}

/// `aten::mse_loss_backward`
pub fn mse_loss_backward(
    grad_output: &Tensor,
    self_: &Tensor,
    target: &Tensor,
    reduction: i64,
) -> Result<Tensor> {
    let dtype = iter::result_type(&[self_, target])?;
    c10::check_not_implemented!(
        dtype != c10::ScalarType::Bool && !dtype.is_complex(),
        "\"mse_backward_cpu_out\" not implemented for '{}'",
        dtype.short_name()
    );
    let difference = at::sub_tensor(self_, target, &ONE)?;
    let norm = if reduction == MEAN {
        let count = difference.sym_numel().sym_max(&SymInt::ONE)?;
        share_of_each(2.0, &count)?
    } else {
        Scalar::Float(2.0)
    };
    at::mul_tensor(&at::mul_scalar(&difference, &norm)?, grad_output)
}
