//! Margins between the scores of classes, for one class per row and for several.

use c10::{check, check_value, Result, Scalar, ScalarType, SizeInt, SymInt, Tensor};

use super::distance::rows_of;
use super::robust::share;
use super::{apply_reduction, MEAN};
use crate::terms::{cast, mul, square, sub, sum};
use crate::{at, sym};

const ZERO: Scalar = Scalar::Int(0);

/// What `multi_margin_loss` and its gradient share: rows, their targets as a column, the mask of the other classes, and how far
/// each of those comes into the margin.
struct Margins {
    rows: Tensor,
    target: Tensor,
    others: Tensor,
    excess: Tensor,
    /// The weight of each row's class, per class.
    weight: Option<Tensor>,
}

fn number(value: &Scalar) -> Result<f64> {
    value.to_f64()
}

fn margins(
    self_: &Tensor,
    target: &Tensor,
    p: &Scalar,
    margin: &Scalar,
    weight: Option<&Tensor>,
) -> Result<Margins> {
    let p = number(p)?;
    check!(p == 1.0 || p == 2.0, "only p == 1 and p == 2 supported");
    let (rows, _) = rows_of("multi_margin_loss", self_)?;
    let sizes = rows.sym_sizes();
    check!(
        target.dim() <= 1 && target.sym_numel().expect_eq(&sizes[0])?,
        "inconsistent target size, expected {} but got {:?}",
        sizes[0],
        target.sym_sizes()
    );
    check!(
        target.dtype() == ScalarType::Long,
        "expected scalar type Long but found {}",
        target.dtype().short_name()
    );
    if let Some(weight) = weight {
        check!(
            weight.dim() <= 1 && weight.sym_numel().expect_eq(&sizes[1])?,
            "inconsistent weight size, expected {} but got {:?}",
            sizes[1],
            weight.sym_sizes()
        );
    }
    if !target.is_meta() && !target.has_symbolic_sizes_strides() {
        let inside = at::logical_and(
            &at::ge_scalar(target, &ZERO)?,
            &at::lt_scalar(target, &sym::scalar(&sizes[1]))?,
        )?;
        check!(at::is_nonzero(&at::all(&inside)?)?, "target out of range");
    }
    let column = at::reshape(target, &[sizes[0].clone(), SymInt::ONE])?;
    let own = at::gather(&rows, 1, &column, false)?;
    let excess = at::clamp_min(&at::add_scalar(&sub(&rows, &own)?, margin, &Scalar::Int(1))?, &ZERO)?;
    let ones = at::ones_like(&rows, Some(ScalarType::Bool), None, None, None, None)?;
    let others = at::scatter_value(&ones, 1, &column, &Scalar::Bool(false))?;
    let share = sym::scalar(&sizes[1]);
    let weight = weight
        .map(|weight| {
            let flat = at::reshape(weight, &[SymInt::from(-1)])?;
            let own = at::index_select(&flat, 0, &at::reshape(target, &[SymInt::from(-1)])?)?;
            at::div_scalar(&at::reshape(&own, &[sizes[0].clone(), SymInt::ONE])?, &share)
        })
        .transpose()?;
    Ok(Margins { rows, target: column, others, excess, weight })
}

impl Margins {
    fn weighted(&self, t: &Tensor) -> Result<Tensor> {
        match &self.weight {
            Some(weight) => mul(t, weight),
            None => at::div_scalar(t, &sym::scalar(&self.rows.sym_size(1)?)),
        }
    }
}

/// `aten::multi_margin_loss`
pub fn multi_margin_loss(
    self_: &Tensor,
    target: &Tensor,
    p: &Scalar,
    margin: &Scalar,
    weight: Option<&Tensor>,
    reduction: i64,
) -> Result<Tensor> {
    let found = margins(self_, target, p, margin, weight)?;
    let terms = if number(p)? == 2.0 { square(&found.excess)? } else { found.excess.clone() };
    let loss = sum(&mul(&found.weighted(&terms)?, &found.others)?, &[1], false)?;
    if reduction == 0 {
        return at::reshape(&loss, &target.sym_sizes());
    }
    apply_reduction(loss, reduction)
}

/// `aten::multi_margin_loss_backward`
#[allow(clippy::too_many_arguments)]
pub fn multi_margin_loss_backward(
    grad_output: &Tensor,
    self_: &Tensor,
    target: &Tensor,
    p: &Scalar,
    margin: &Scalar,
    weight: Option<&Tensor>,
    reduction: i64,
) -> Result<Tensor> {
    let found = margins(self_, target, p, margin, weight)?;
    let slope = if number(p)? == 2.0 {
        at::mul_scalar(&found.excess, &Scalar::Int(2))?
    } else {
        cast(&at::gt_scalar(&found.excess, &ZERO)?, self_.dtype())?
    };
    let slope = mul(&found.weighted(&slope)?, &found.others)?;
    let grad = per_row(grad_output, &found.rows, reduction)?;
    let slope = mul(&slope, &grad)?;
    // The target's own score moves against all others.
    let own = at::neg(&sum(&slope, &[1], true)?)?;
    at::reshape(&at::scatter_add(&slope, 1, &found.target, &own)?, &self_.sym_sizes())
}

/// The gradient of each row's loss, as a column.
fn per_row(grad_output: &Tensor, rows: &Tensor, reduction: i64) -> Result<Tensor> {
    let batch = rows.sym_size(0)?;
    if reduction == 0 {
        return at::reshape(grad_output, &[batch, SymInt::ONE]);
    }
    if reduction == MEAN {
        return at::div_scalar(grad_output, &sym::scalar(&batch));
    }
    share(grad_output, rows, 0)
}

/// Targets of `multilabel_margin_loss`: class numbers, of which those before the first negative one count.
fn targets(self_: &Tensor, target: &Tensor) -> Result<(Tensor, c10::SymDimVector, Tensor, Tensor)> {
    let (rows, lead) = rows_of("multilabel_margin_loss", self_)?;
    check!(
        sym::expect_same_sizes(self_, target)?,
        "inconsistent target size: {:?} for input of size: {:?}",
        target.sym_sizes(),
        self_.sym_sizes()
    );
    check!(
        target.dtype() == ScalarType::Long,
        "expected scalar type Long but found {}",
        target.dtype().short_name()
    );
    let classes = sym::scalar(&rows.sym_size(1)?);
    if !target.is_meta() && !target.has_symbolic_sizes_strides() && !sym::is_empty(target)? {
        let inside =
            at::logical_and(&at::ge_scalar(target, &Scalar::Int(-1))?, &at::lt_scalar(target, &classes)?)?;
        check!(at::is_nonzero(&at::all(&inside)?)?, "target is out of range");
    }
    let target = at::reshape(target, &rows.sym_sizes())?;
    let options = (Some(ScalarType::Long), None, Some(target.device()), None);
    let places = at::arange(&classes, options.0, options.1, options.2, options.3)?;
    let negative = at::lt_scalar(&target, &ZERO)?;
    let first = at::amin(&at::where_scalarother(&negative, &places, &classes)?, &[1], true)?;
    let counts = at::lt_tensor(&places, &first)?;
    // One more column takes what does not count.
    let mut wide = rows.sym_sizes();
    wide[1] = wide[1].sym_add(&SymInt::ONE)?;
    let columns = at::where_scalarother(&counts, &target, &classes)?;
    let marks = at::new_zeros(&rows, &wide, None, None, None, None)?;
    let marks = at::scatter_value(&marks, 1, &columns, &Scalar::Int(1))?;
    let is_target = at::narrow(&marks, 1, &SymInt::ZERO, &rows.sym_size(1)?)?;
    let columns = at::where_scalarother(&counts, &target, &ZERO)?;
    let is_target = at::contiguous(&is_target, c10::MemoryFormat::Contiguous)?;
    Ok((rows, lead, is_target, at::stack(&[columns, cast(&counts, ScalarType::Long)?], 0)?))
}

/// How far each class that is no target comes within one of each target: `[N, targets, classes]`.
fn overlaps(rows: &Tensor, columns: &Tensor, counts: &Tensor, is_target: &Tensor) -> Result<Tensor> {
    let own = at::gather(rows, 1, columns, false)?;
    let z = sub(&at::unsqueeze(rows, 1)?, &at::unsqueeze(&own, 2)?)?;
    let z = at::clamp_min(&at::add_scalar(&z, &Scalar::Int(1), &Scalar::Int(1))?, &ZERO)?;
    let others = at::eq_scalar(&at::unsqueeze(is_target, 1)?, &ZERO)?;
    mul(&mul(&z, &others)?, &cast(&at::unsqueeze(counts, 2)?, rows.dtype())?)
}

/// `aten::multilabel_margin_loss_forward`
pub fn multilabel_margin_loss_forward(
    self_: &Tensor,
    target: &Tensor,
    reduction: i64,
) -> Result<(Tensor, Tensor)> {
    check_value!(self_.is_floating_point(), "multilabel_margin_loss(): expected floating scores");
    let (rows, lead, is_target, lists) = targets(self_, target)?;
    let (columns, counts) =
        (at::select_int(&lists, 0, &SymInt::ZERO)?, at::select_int(&lists, 0, &SymInt::ONE)?);
    let z = overlaps(&rows, &columns, &counts, &is_target)?;
    let loss = at::div_scalar(&sum(&z, &[1, 2], false)?, &sym::scalar(&rows.sym_size(1)?))?;
    let marks = at::reshape(&is_target, &target.sym_sizes())?;
    if reduction == 0 {
        return Ok((at::reshape(&loss, &lead)?, marks));
    }
    Ok((apply_reduction(loss, reduction)?, marks))
}

/// `aten::multilabel_margin_loss_backward`
pub fn multilabel_margin_loss_backward(
    grad_output: &Tensor,
    self_: &Tensor,
    target: &Tensor,
    reduction: i64,
    _is_target: &Tensor,
) -> Result<Tensor> {
    let (rows, _, is_target, lists) = targets(self_, target)?;
    let (columns, counts) =
        (at::select_int(&lists, 0, &SymInt::ZERO)?, at::select_int(&lists, 0, &SymInt::ONE)?);
    let z = overlaps(&rows, &columns, &counts, &is_target)?;
    let active = cast(&at::gt_scalar(&z, &ZERO)?, rows.dtype())?;
    let against = at::neg(&sum(&active, &[2], false)?)?;
    let slope = at::scatter_add(&sum(&active, &[1], false)?, 1, &columns, &against)?;
    let slope = at::div_scalar(&slope, &sym::scalar(&rows.sym_size(1)?))?;
    let grad = mul(&slope, &per_row(grad_output, &rows, reduction)?)?;
    at::reshape(&grad, &self_.sym_sizes())
}

/// `aten::multilabel_margin_loss`
pub fn multilabel_margin_loss(self_: &Tensor, target: &Tensor, reduction: i64) -> Result<Tensor> {
    Ok(at::multilabel_margin_loss_forward(self_, target, reduction)?.0)
}
