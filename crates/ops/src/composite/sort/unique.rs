//! Different elements, and how often they occur.

use c10::{check, wrap_dim, Result, Scalar, ScalarType, SizeInt, SymInt, Tensor};

use crate::terms::part;
use crate::{at, sym};

const ONE: Scalar = Scalar::Int(1);

/// Elements or slices, as the rows of a matrix or the elements of a vector, of which equal ones are neighbours.
struct Runs {
    /// Whether a row differs from the one before it.
    starts: Tensor,
    rows: Tensor,
}

impl Runs {
    fn new(rows: Tensor) -> Result<Runs> {
        let differs = at::ne_tensor(&part(&rows, 0, 1, 0)?, &part(&rows, 0, 0, 1)?)?;
        let differs = if rows.dim() > 1 {
            at::any_dim(&at::flatten_using_ints(&differs, 1, -1)?, 1, false)?
        } else {
            differs
        };
        let first = at::ones(&[SymInt::ONE], Some(ScalarType::Bool), None, Some(rows.device()), None)?;
        Ok(Runs { starts: at::cat(&[first, differs], 0)?, rows })
    }

    /// The first of each run.
    fn firsts(&self) -> Result<Tensor> {
        at::index_tensor(&self.rows, &[Some(self.starts.clone())])
    }

    /// The number of each row's run. `order` says where the rows come from, if they were sorted.
    fn inverse(&self, order: Option<&Tensor>) -> Result<Tensor> {
        let runs = at::sub_scalar(&at::cumsum(&self.starts, 0, Some(ScalarType::Long))?, &ONE, &ONE)?;
        match order {
            Some(order) => {
                at::scatter_src(&at::empty_like(&runs, None, None, None, None, None)?, 0, order, &runs)
            }
            None => Ok(runs),
        }
    }

    fn counts(&self) -> Result<Tensor> {
        let starts = at::select_int(&at::nonzero(&self.starts)?, 1, &SymInt::ZERO)?;
        let end = at::full(
            &[SymInt::ONE],
            &sym::scalar(&self.starts.sym_numel()),
            Some(ScalarType::Long),
            None,
            Some(starts.device()),
            None,
        )?;
        at::diff(&starts, 1, 0, None, Some(&end))
    }
}

fn nothing(self_: &Tensor) -> Result<Tensor> {
    at::empty_memory_format(&[SymInt::ZERO], Some(ScalarType::Long), None, Some(self_.device()), None, None)
}

/// Elements, sorted first unless only neighbours count.
fn elements(
    self_: &Tensor,
    sorted: bool,
    return_inverse: bool,
    return_counts: bool,
) -> Result<(Tensor, Tensor, Tensor)> {
    let flat = at::reshape(self_, &[SymInt::from(-1)])?;
    if sym::is_empty(&flat)? {
        let inverse =
            if return_inverse { at::reshape(&nothing(self_)?, &self_.sym_sizes())? } else { nothing(self_)? };
        return Ok((at::clone(&flat, None)?, inverse, nothing(self_)?));
    }
    let (rows, order) = if sorted {
        let (rows, order) = at::sort_stable(&flat, Some(true), 0, false)?;
        (rows, Some(order))
    } else {
        (flat, None)
    };
    let runs = Runs::new(rows)?;
    let inverse = if return_inverse {
        at::reshape(&runs.inverse(order.as_ref())?, &self_.sym_sizes())?
    } else {
        nothing(self_)?
    };
    let counts = if return_counts { runs.counts()? } else { nothing(self_)? };
    Ok((runs.firsts()?, inverse, counts))
}

/// Slices along a dimension, sorted first unless only neighbours count.
fn slices(
    self_: &Tensor,
    dim: i64,
    sorted: bool,
    return_inverse: bool,
    return_counts: bool,
) -> Result<(Tensor, Tensor, Tensor)> {
    let dim = wrap_dim(dim, self_.dim(), true)?;
    let moved = if self_.dim() == 0 { at::unsqueeze(self_, 0)? } else { at::movedim_int(self_, dim, 0)? };
    let sizes = moved.sym_sizes();
    let back = |rows: &Tensor| -> Result<Tensor> {
        let mut shape = sizes.clone();
        shape[0] = rows.sym_size(0)?;
        let moved = at::reshape(rows, &shape)?;
        let result = if self_.dim() == 0 { moved } else { at::movedim_int(&moved, 0, dim)? };
        at::contiguous(&result, c10::MemoryFormat::Contiguous)
    };
    if sym::is_empty(&moved)? {
        let mut others_empty = false;
        for size in &sizes[1..] {
            others_empty = others_empty || size.is_zero()?;
        }
        check!(
            !others_empty,
            "There are 0 sized dimensions, and they aren't selected, so unique cannot be applied"
        );
        return Ok((at::clone(self_, None)?, nothing(self_)?, nothing(self_)?));
    }
    let rows = at::reshape(&moved, &[sizes[0].clone(), SymInt::from(-1)])?;
    let (rows, order) = if sorted {
        // From the last column to the first, each sort keeping the order of the ones before.
        let mut order =
            at::arange(&sym::scalar(&sizes[0]), Some(ScalarType::Long), None, Some(self_.device()), None)?;
        for column in at::unbind_int(&rows, 1)?.iter().rev() {
            let sorted = at::argsort_stable(&at::index_select(column, 0, &order)?, true, 0, false)?;
            order = at::index_select(&order, 0, &sorted)?;
        }
        (at::index_select(&rows, 0, &order)?, Some(order))
    } else {
        (rows, None)
    };
    let runs = Runs::new(rows)?;
    let inverse = if return_inverse { runs.inverse(order.as_ref())? } else { nothing(self_)? };
    let counts = if return_counts { runs.counts()? } else { nothing(self_)? };
    Ok((back(&runs.firsts()?)?, inverse, counts))
}

/// `aten::_unique`
pub fn _unique(self_: &Tensor, _sorted: bool, return_inverse: bool) -> Result<(Tensor, Tensor)> {
    let (values, inverse, _) = elements(self_, true, return_inverse, false)?;
    Ok((values, inverse))
}

/// `aten::_unique2`
pub fn _unique2(
    self_: &Tensor,
    _sorted: bool,
    return_inverse: bool,
    return_counts: bool,
) -> Result<(Tensor, Tensor, Tensor)> {
    elements(self_, true, return_inverse, return_counts)
}

/// `aten::unique_dim`
pub fn unique_dim(
    self_: &Tensor,
    dim: i64,
    _sorted: bool,
    return_inverse: bool,
    return_counts: bool,
) -> Result<(Tensor, Tensor, Tensor)> {
    slices(self_, dim, true, return_inverse, return_counts)
}

/// `aten::unique_consecutive`
pub fn unique_consecutive(
    self_: &Tensor,
    return_inverse: bool,
    return_counts: bool,
    dim: Option<i64>,
) -> Result<(Tensor, Tensor, Tensor)> {
    match dim {
        Some(dim) => slices(self_, dim, false, return_inverse, return_counts),
        None => elements(self_, false, return_inverse, return_counts),
    }
}

/// `aten::unique_dim_consecutive`
pub fn unique_dim_consecutive(
    self_: &Tensor,
    dim: i64,
    return_inverse: bool,
    return_counts: bool,
) -> Result<(Tensor, Tensor, Tensor)> {
    slices(self_, dim, false, return_inverse, return_counts)
}

/// `aten::bincount`
pub fn bincount(self_: &Tensor, weights: Option<&Tensor>, minlength: &SymInt) -> Result<Tensor> {
    check!(minlength.expect_nonnegative()?, "minlength should be >= 0");
    check!(
        self_.dtype().is_integral(false),
        "bincount only supports 1-d non-negative integral inputs: \"bincount_cpu\" not implemented for '{}'",
        self_.dtype()
    );
    check!(self_.dim() == 1, "bincount only supports 1-d non-negative integral inputs.");
    if let Some(weights) = weights {
        check!(
            weights.dim() == 1 && weights.sym_numel().expect_eq(&self_.sym_numel())?,
            "weights should be 1-d and have the same length as input"
        );
    }
    let dtype = match weights {
        None => ScalarType::Long,
        Some(weights) if weights.dtype() == ScalarType::Float => ScalarType::Float,
        Some(_) => ScalarType::Double,
    };
    let zeros =
        |size: &SymInt| at::zeros(std::slice::from_ref(size), Some(dtype), None, Some(self_.device()), None);
    if sym::is_empty(self_)? {
        return at::zeros(
            std::slice::from_ref(minlength),
            Some(ScalarType::Long),
            None,
            Some(self_.device()),
            None,
        );
    }
    let index = at::to_dtype(self_, ScalarType::Long, false, false, None)?;
    let least = at::item(&at::min(&index)?)?.to_i64()?;
    check!(least >= 0, "bincount only supports 1-d non-negative integral inputs.");
    let greatest = at::item(&at::max(&index)?)?.to_i64()?;
    let length = SymInt::from(greatest).sym_add(&SymInt::ONE)?.sym_max(minlength)?;
    let values = match weights {
        Some(weights) => at::to_dtype(weights, dtype, false, false, None)?,
        None => at::ones_like(&index, None, None, None, None, None)?,
    };
    at::index_add(&zeros(&length)?, 0, &index, &values, &ONE)
}

/// `aten::histc`
pub fn histc(self_: &Tensor, bins: i64, min: &Scalar, max: &Scalar) -> Result<Tensor> {
    check!(bins > 0, "torch.histc(): bins must be > 0, but got {bins}");
    c10::check_not_implemented!(
        self_.is_floating_point(),
        "\"histogram_cpu\" not implemented for '{}'",
        self_.dtype()
    );
    let (mut low, mut high) = (min.to_f64()?, max.to_f64()?);
    let flat = at::reshape(self_, &[SymInt::from(-1)])?;
    if low == high && !sym::is_empty(self_)? && !self_.is_meta() {
        low = at::item(&at::min(&flat)?)?.to_f64()?;
        high = at::item(&at::max(&flat)?)?.to_f64()?;
    }
    if low == high {
        low -= 1.0;
        high += 1.0;
    }
    check!(low.is_finite() && high.is_finite(), "torch.histc(): range of [{low}, {high}] is not finite");
    check!(low < high, "torch.histc(): max must be larger than min");
    let inside = at::logical_and(
        &at::ge_scalar(&flat, &Scalar::Float(low))?,
        &at::le_scalar(&flat, &Scalar::Float(high))?,
    )?;
    let values = at::where_scalarother(&inside, &flat, &Scalar::Float(low))?;
    let scaled =
        at::mul_scalar(&at::sub_scalar(&values, &Scalar::Float(low), &ONE)?, &Scalar::Float(bins as f64))?;
    let places = at::to_dtype(
        &at::div_scalar(&scaled, &Scalar::Float(high - low))?,
        ScalarType::Long,
        false,
        false,
        None,
    )?;
    let places = at::clamp_max(&places, &Scalar::Int(bins - 1))?;
    let counts = at::new_zeros(&flat, &[SymInt::from(bins)], None, None, None, None)?;
    at::index_add(&counts, 0, &places, &at::to_dtype(&inside, flat.dtype(), false, false, None)?, &ONE)
}
