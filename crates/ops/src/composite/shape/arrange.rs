//! Elements in another order, or repeated.

use c10::{
    check, check_index, wrap_dim, DimVector, MemoryFormat, Result, Scalar, ScalarType, SizeInt, SymDimVector,
    SymInt, Tensor,
};

use crate::{at, sym};

fn all() -> [SymInt; 1] {
    [SymInt::from(-1)]
}

/// `aten::repeat`
pub fn repeat(self_: &Tensor, repeats: &[SymInt]) -> Result<Tensor> {
    let ndim = self_.dim() as usize;
    check!(
        repeats.len() >= ndim,
        "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor"
    );
    let mut sizes = SymDimVector::from_elem(SymInt::ONE, repeats.len() - ndim);
    sizes.extend(self_.sym_sizes());
    // Each dimension becomes two: the copies, and the elements of one.
    let (mut apart, mut copies, mut target) = (SymDimVector::new(), SymDimVector::new(), SymDimVector::new());
    for (size, count) in sizes.iter().zip(repeats) {
        check!(
            count.expect_nonnegative()?,
            "Trying to create tensor with negative dimension {count}: {repeats:?}"
        );
        apart.extend([SymInt::ONE, size.clone()]);
        copies.extend([count.clone(), size.clone()]);
        target.push(size.sym_mul(count)?);
    }
    let expanded = at::expand(&at::reshape(self_, &apart)?, &copies, false)?;
    at::view(&at::clone(&expanded, Some(MemoryFormat::Contiguous))?, &target)
}

/// `aten::tile`: `repeat`, with ones for the dimensions that `dims` leaves out.
pub fn tile(self_: &Tensor, dims: &[SymInt]) -> Result<Tensor> {
    let missing = (self_.dim() as usize).saturating_sub(dims.len());
    let mut repeats = SymDimVector::from_elem(SymInt::ONE, missing);
    repeats.extend(dims.iter().cloned());
    at::repeat(self_, &repeats)
}

/// `aten::roll`
pub fn roll(self_: &Tensor, shifts: &[SymInt], dims: &[i64]) -> Result<Tensor> {
    check!(!shifts.is_empty(), "`shifts` required");
    if dims.is_empty() && shifts.len() == 1 {
        let rolled = at::roll(&at::reshape(self_, &all())?, shifts, &[0])?;
        return at::view(&rolled, &self_.sym_sizes());
    }
    check!(
        shifts.len() == dims.len(),
        "shifts and dimensions must align. shifts: {}, dims:{}",
        shifts.len(),
        dims.len()
    );
    let mut result: Option<Tensor> = None;
    for (shift, &dim) in shifts.iter().zip(dims) {
        result = Some(rolled(result.as_ref().unwrap_or(self_), shift, dim)?);
    }
    match result {
        Some(result) => Ok(result),
        None => at::clone(self_, Some(MemoryFormat::Contiguous)),
    }
}

fn rolled(self_: &Tensor, shift: &SymInt, dim: i64) -> Result<Tensor> {
    if sym::is_empty(self_)? {
        return at::clone(self_, Some(MemoryFormat::Contiguous));
    }
    check_index!(self_.dim() > 0, "Dimension specified as {dim} but tensor has no dimensions");
    let size = self_.sym_size(dim)?;
    let start = size.sym_sub(shift)?.sym_mod(&size)?;
    if start.is_zero()? {
        return at::clone(self_, Some(MemoryFormat::Contiguous));
    }
    let head = at::narrow(self_, dim, &start, &size.sym_sub(&start)?)?;
    at::cat(&[head, at::narrow(self_, dim, &SymInt::ZERO, &start)?], dim)
}

/// `aten::flip`
pub fn flip(self_: &Tensor, dims: &[i64]) -> Result<Tensor> {
    let mut wrapped = DimVector::new();
    for &dim in dims {
        let dim = wrap_dim(dim, self_.dim(), true)?;
        check!(!wrapped.contains(&dim), "dim {dim} appears multiple times in the list of dims");
        wrapped.push(dim);
    }
    let mut result: Option<Tensor> = None;
    if self_.dim() > 0 {
        for &dim in &wrapped {
            let from = result.as_ref().unwrap_or(self_);
            let last = sym::scalar(&from.sym_size(dim)?.sym_sub(&SymInt::ONE)?);
            let minus = Scalar::Int(-1);
            let order = at::arange_start_step(
                &last,
                &minus,
                &minus,
                Some(ScalarType::Long),
                None,
                Some(self_.device()),
                None,
            )?;
            result = Some(at::index_select(from, dim, &order)?);
        }
    }
    let Some(result) = result else { return at::clone(self_, None) };
    if result.sym_strides() == self_.sym_strides() {
        return Ok(result);
    }
    at::copy_(&at::empty_like(self_, None, None, None, None, None)?, &result, false)
}

/// `aten::fliplr`
pub fn fliplr(self_: &Tensor) -> Result<Tensor> {
    check!(self_.dim() >= 2, "Input must be >= 2-d.");
    at::flip(self_, &[1])
}

/// `aten::flipud`
pub fn flipud(self_: &Tensor) -> Result<Tensor> {
    check!(self_.dim() >= 1, "Input must be >= 1-d.");
    at::flip(self_, &[0])
}

/// `aten::rot90`
pub fn rot90(self_: &Tensor, k: i64, dims: &[i64]) -> Result<Tensor> {
    check!(dims.len() == 2, "expected total rotation dims == 2, but got dims = {}", dims.len());
    let ndim = self_.dim();
    check!(ndim >= 2, "expected total dims >= 2, but got total dims = {ndim}");
    check!(
        dims[0] != dims[1] && (dims[0] - dims[1]).abs() != ndim,
        "expected rotation dims to be different, but got dim0 = {} and dim1 = {}",
        dims[0],
        dims[1]
    );
    for (i, &dim) in dims.iter().enumerate() {
        check!((-ndim..ndim).contains(&dim), "Rotation dim{i} out of range, dim{i} = {dim}");
    }
    match k.rem_euclid(4) {
        1 => at::transpose_int(&at::flip(self_, &dims[1..])?, dims[0], dims[1]),
        2 => at::flip(self_, dims),
        3 => at::transpose_int(&at::flip(self_, &dims[..1])?, dims[0], dims[1]),
        _ => at::clone(self_, Some(MemoryFormat::Contiguous)),
    }
}

/// `aten::broadcast_to`
pub fn broadcast_to(self_: &Tensor, size: &[SymInt]) -> Result<Tensor> {
    at::expand(self_, size, false)
}

/// `aten::ravel`
pub fn ravel(self_: &Tensor) -> Result<Tensor> {
    at::view(&at::contiguous(self_, MemoryFormat::Contiguous)?, &all())
}

/// `aten::combinations`
pub fn combinations(self_: &Tensor, r: i64, with_replacement: bool) -> Result<Tensor> {
    check!(self_.dim() == 1, "Expect a 1D vector, but got shape {:?}", self_.sym_sizes());
    check!(r >= 0, "Expect a non-negative number, but got {r}");
    if r == 0 {
        return at::new_empty(self_, &[SymInt::ZERO], None, None, None, None);
    }
    let n = self_.sym_numel();
    let r = usize::try_from(r).unwrap_or(usize::MAX);
    check!(r <= 64, "combinations: at most 64 elements can be chosen, got {r}");
    let shape = SymDimVector::from_elem(n.clone(), r);
    let along = |tensor: &Tensor, dim: usize| -> Result<Tensor> {
        let mut view = SymDimVector::from_elem(SymInt::ONE, r);
        view[dim] = n.clone();
        at::expand(&at::reshape(tensor, &view)?, &shape, false)
    };
    let positions = at::arange(&sym::scalar(&n), Some(ScalarType::Long), None, Some(self_.device()), None)?;
    let options = (Some(ScalarType::Bool), Some(self_.device()));
    let mut chosen = at::full(&shape, &Scalar::Bool(true), options.0, None, options.1, None)?;
    for dim in 1..r {
        let (a, b) = (along(&positions, dim - 1)?, along(&positions, dim)?);
        let ordered = if with_replacement { at::le_tensor(&a, &b)? } else { at::lt_tensor(&a, &b)? };
        chosen = at::logical_and(&chosen, &ordered)?;
    }
    let columns =
        (0..r).map(|dim| at::masked_select(&along(self_, dim)?, &chosen)).collect::<Result<Vec<_>>>()?;
    at::stack(&columns, 1)
}
