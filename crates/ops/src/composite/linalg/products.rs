//! Products of vectors and matrices that a matrix product serves.

use c10::{check, wrap_dim, Result, Scalar, ScalarType, SizeInt, SymDimVector, SymInt, Tensor};

use crate::terms::at_least_1d;
use crate::{at, sym};

const ONE: Scalar = Scalar::Int(1);

/// `aten::vdot`
pub fn vdot(self_: &Tensor, other: &Tensor) -> Result<Tensor> {
    at::dot(&at::conj(self_)?, other)
}

/// `aten::inner`
pub fn inner(self_: &Tensor, other: &Tensor) -> Result<Tensor> {
    if self_.dim() == 0 || other.dim() == 0 {
        return at::mul_tensor(self_, other);
    }
    check!(
        self_.sym_size(-1)?.expect_eq(&other.sym_size(-1)?)?,
        "inner() the last dimension must match on both input tensors but got shapes {:?} and {:?}",
        self_.sym_sizes(),
        other.sym_sizes()
    );
    at::tensordot(self_, other, &[-1], &[-1])
}

/// `aten::tensordot`
pub fn tensordot(self_: &Tensor, other: &Tensor, dims_self: &[i64], dims_other: &[i64]) -> Result<Tensor> {
    check!(
        dims_self.len() == dims_other.len(),
        "both dimension lists should have same length, got {} and {}",
        dims_self.len(),
        dims_other.len()
    );
    check!(
        self_.dtype() == other.dtype(),
        "tensordot: both inputs should have same dtype, got {} and {}",
        self_.dtype().short_name(),
        other.dtype().short_name()
    );
    let (mut left, mut right) = (self_.clone(), other.clone());
    let (mut from_left, mut from_right) = (Vec::new(), Vec::new());
    let mut contracted = SymInt::ONE;
    for (&a, &b) in dims_self.iter().zip(dims_other) {
        let (a, b) = (wrap_dim(a, left.dim(), true)?, wrap_dim(b, right.dim(), true)?);
        check!(!from_left.contains(&a), "dim {a} appears multiple times in the list of dims");
        check!(!from_right.contains(&b), "dim {b} appears multiple times in the list of dims");
        let size = |t: &Tensor, dim: i64| -> Result<SymInt> {
            if t.dim() == 0 {
                Ok(SymInt::ONE)
            } else {
                t.sym_size(dim)
            }
        };
        let (size_a, size_b) = (size(&left, a)?, size(&right, b)?);
        // A dimension of one element is multiplied with the sum of the other.
        if size_b.is_one()? {
            left = at::sum_dim_intlist(&left, Some(&[a]), true, Some(left.dtype()))?;
        } else if size_a.is_one()? {
            right = at::sum_dim_intlist(&right, Some(&[b]), true, Some(right.dtype()))?;
        } else {
            check!(
                size_a.expect_eq(&size_b)?,
                "contracted dimensions need to match, but first has size {size_a} in dim {a} and second has size {size_b} \
                 in dim {b}"
            );
            contracted = contracted.sym_mul(&size_a)?;
        }
        from_left.push(a);
        from_right.push(b);
    }
    let (mut order_left, mut order_right) = (Vec::new(), from_right.clone());
    let mut result = SymDimVector::new();
    let (mut rows, mut columns) = (SymInt::ONE, SymInt::ONE);
    for dim in (0..left.dim()).filter(|dim| !from_left.contains(dim)) {
        order_left.push(dim);
        let size = left.sym_size(dim)?;
        rows = rows.sym_mul(&size)?;
        result.push(size);
    }
    order_left.extend(&from_left);
    for dim in (0..right.dim()).filter(|dim| !from_right.contains(dim)) {
        order_right.push(dim);
        let size = right.sym_size(dim)?;
        columns = columns.sym_mul(&size)?;
        result.push(size);
    }
    let matrix = |t: &Tensor, order: &[i64], shape: [SymInt; 2]| -> Result<Tensor> {
        if t.dim() == 0 {
            return at::reshape(t, &shape);
        }
        at::reshape(&at::permute(t, order)?, &shape)
    };
    let left = matrix(&left, &order_left, [rows, contracted.clone()])?;
    let right = matrix(&right, &order_right, [contracted, columns])?;
    at::reshape(&at::mm(&left, &right)?, &result)
}

/// `aten::kron`
pub fn kron(self_: &Tensor, other: &Tensor) -> Result<Tensor> {
    let ndim = self_.dim().max(other.dim()) as usize;
    let padded = |t: &Tensor| {
        let mut sizes = SymDimVector::from_elem(SymInt::ONE, ndim - t.dim() as usize);
        sizes.extend(t.sym_sizes());
        sizes
    };
    let (a, b) = (padded(self_), padded(other));
    let (mut left, mut right, mut result) = (SymDimVector::new(), SymDimVector::new(), SymDimVector::new());
    for (a, b) in a.iter().zip(&b) {
        left.extend([a.clone(), SymInt::ONE]);
        right.extend([SymInt::ONE, b.clone()]);
        result.push(a.sym_mul(b)?);
    }
    let product = at::mul_tensor(&at::reshape(self_, &left)?, &at::reshape(other, &right)?)?;
    at::reshape(&product, &result)
}

/// `aten::cross`
pub fn cross(self_: &Tensor, other: &Tensor, dim: Option<i64>) -> Result<Tensor> {
    let dim = match dim {
        Some(dim) => dim,
        None => {
            let three = |size: &SymInt| size.guard_eq(&SymInt::from(3));
            let mut found = None;
            for (dim, size) in self_.sym_sizes().iter().enumerate() {
                if three(size)? {
                    found = Some(dim as i64);
                    break;
                }
            }
            match found {
                Some(dim) => dim,
                None => c10::bail!(Runtime, "no dimension of size 3 in input"),
            }
        }
    };
    at::linalg_cross(self_, other, dim)
}

/// `aten::linalg_cross`
pub fn linalg_cross(self_: &Tensor, other: &Tensor, dim: i64) -> Result<Tensor> {
    check!(self_.dim() == other.dim(), "linalg.cross: inputs must have the same number of dimensions.");
    let wrapped = wrap_dim(dim, self_.dim(), false)?;
    let (a, b) = (self_.sym_size(wrapped)?, other.sym_size(wrapped)?);
    let three = SymInt::from(3);
    check!(
        a.expect_eq(&three)? && b.expect_eq(&three)?,
        "linalg.cross: inputs dimension {dim} must have length 3. Got {a} and {b}"
    );
    check!(
        self_.dtype() == other.dtype(),
        "linalg.cross: expected both inputs to have the same dtype, got {} and {}",
        self_.dtype().short_name(),
        other.dtype().short_name()
    );
    c10::check_not_implemented!(
        self_.dtype() != ScalarType::Bool,
        "\"cross\" not implemented for '{}'",
        self_.dtype().short_name()
    );
    let turned = |t: &Tensor, by: i64| at::roll(t, &[SymInt::from(by)], &[wrapped]);
    let plus = at::mul_tensor(&turned(self_, -1)?, &turned(other, -2)?)?;
    let minus = at::mul_tensor(&turned(self_, -2)?, &turned(other, -1)?)?;
    at::sub_tensor(&plus, &minus, &ONE)
}

/// Factors of an integer result are integers.
fn check_factors(dtype: ScalarType, beta: &Scalar, alpha: &Scalar) -> Result<()> {
    for (name, factor) in [("beta", beta), ("alpha", alpha)] {
        check!(
            !factor.is_boolean() || dtype == ScalarType::Bool,
            "Boolean {name} only supported for Boolean results."
        );
        check!(
            !dtype.is_integral(true) || factor.is_integral(true),
            "For integral input tensors, argument {name} must not be a floating point number."
        );
        check!(
            dtype.is_complex() || !factor.is_complex(),
            "For non-complex input tensors, argument {name} must not be a complex number."
        );
    }
    Ok(())
}

/// `aten::addr`
pub fn addr(self_: &Tensor, vec1: &Tensor, vec2: &Tensor, beta: &Scalar, alpha: &Scalar) -> Result<Tensor> {
    check!(
        vec1.dim() == 1 && vec2.dim() == 1,
        "addr: Expected 1-D argument vec1 and vec2, but got {}-D and {}-D",
        vec1.dim(),
        vec2.dim()
    );
    let factors = c10::promote_types(vec1.dtype(), vec2.dtype())?;
    let dtype = c10::promote_types(self_.dtype(), factors)?;
    check_factors(dtype, beta, alpha)?;
    let start = at::expand(self_, &[vec1.sym_numel(), vec2.sym_numel()], false)?;
    if dtype == ScalarType::Bool {
        let scaled = |t: &Tensor, factor: &Scalar| at::logical_and(t, &crate::wrapped_scalar_tensor(factor)?);
        return at::logical_or(&scaled(&start, beta)?, &scaled(&at::outer(vec1, vec2)?, alpha)?);
    }
    let product = if alpha.equal(ONE)? {
        at::outer(vec1, vec2)?
    } else {
        at::outer(&at::mul_scalar(vec1, alpha)?, vec2)?
    };
    if beta.equal(Scalar::Int(0))? {
        // Whatever `self` holds, NaN included, counts for nothing.
        return at::to_dtype(&product, dtype, false, false, None);
    }
    let start = if beta.equal(ONE)? { start } else { at::mul_scalar(&start, beta)? };
    at::add_tensor(&start, &product, &ONE)
}

/// `aten::addmv`
pub fn addmv(self_: &Tensor, mat: &Tensor, vec: &Tensor, beta: &Scalar, alpha: &Scalar) -> Result<Tensor> {
    check!(
        mat.dim() == 2 && vec.dim() == 1 && self_.dim() <= 1,
        "vector + matrix @ vector expected, got {}, {}, {}",
        self_.dim(),
        mat.dim(),
        vec.dim()
    );
    let (rows, columns, length) = (mat.sym_size(0)?, mat.sym_size(1)?, vec.sym_size(0)?);
    let own = self_.sym_numel();
    check!(
        columns.expect_eq(&length)? && (own.is_one()? || own.expect_eq(&rows)?),
        "size mismatch, got input ({own}), mat ({rows}x{columns}), vec ({length})"
    );
    let start = at::unsqueeze(&at::expand(self_, &[rows], false)?, 1)?;
    at::squeeze_dim(&at::addmm(&start, mat, &at::unsqueeze(vec, 1)?, beta, alpha)?, 1)
}

/// `aten::addbmm`: the batch is summed, as it were one long inner dimension.
pub fn addbmm(
    self_: &Tensor,
    batch1: &Tensor,
    batch2: &Tensor,
    beta: &Scalar,
    alpha: &Scalar,
) -> Result<Tensor> {
    check!(
        batch1.dim() == 3 && batch2.dim() == 3,
        "batch1 and batch2 must be 3D tensors, got {}D and {}D",
        batch1.dim(),
        batch2.dim()
    );
    let (a, b) = (batch1.sym_sizes(), batch2.sym_sizes());
    check!(
        a[0].expect_eq(&b[0])?,
        "batch1 and batch2 must have same number of batches, got {} and {}",
        a[0],
        b[0]
    );
    check!(
        a[2].expect_eq(&b[1])?,
        "Incompatible matrix sizes for bmm ({}x{} and {}x{})",
        a[1],
        a[2],
        b[1],
        b[2]
    );
    let inner = a[0].sym_mul(&a[2])?;
    let left = at::reshape(&at::permute(batch1, &[1, 0, 2])?, &[a[1].clone(), inner.clone()])?;
    at::addmm(self_, &left, &at::reshape(batch2, &[inner, b[2].clone()])?, beta, alpha)
}

/// `aten::addbmm_`: a tensor that was broadcast gets the result's shape.
pub fn addbmm_(
    self_: &Tensor,
    batch1: &Tensor,
    batch2: &Tensor,
    beta: &Scalar,
    alpha: &Scalar,
) -> Result<Tensor> {
    let result = addbmm(self_, batch1, batch2, beta, alpha)?;
    crate::structured::write_out("addbmm_", self_, &result)
}

/// `aten::linalg_vecdot`
pub fn linalg_vecdot(x: &Tensor, y: &Tensor, dim: i64) -> Result<Tensor> {
    check!(
        x.is_floating_point() || x.is_complex(),
        "linalg.vecdot: Expected a floating point or complex tensor as input. Got {}",
        x.dtype()
    );
    check!(
        x.dtype() == y.dtype(),
        "linalg.vecdot: Expected x and y to have the same dtype, but found x of type {} and y of type {} instead",
        x.dtype(),
        y.dtype()
    );
    if x.dim() == 1 && y.dim() == 1 {
        wrap_dim(dim, 1, true)?;
        return at::vdot(x, y);
    }
    at::sum_dim_intlist(&at::mul_tensor(&at::conj(x)?, y)?, Some(&[dim]), false, None)
}

/// `aten::linalg_diagonal`
pub fn linalg_diagonal(a: &Tensor, offset: i64, dim1: i64, dim2: i64) -> Result<Tensor> {
    at::diagonal(a, offset, dim1, dim2)
}

/// `aten::chain_matmul`
pub fn chain_matmul(matrices: &[Tensor]) -> Result<Tensor> {
    for (i, matrix) in matrices.iter().enumerate() {
        check!(
            matrix.dim() == 2,
            "Expected 2-dimensional tensor, but got {}-dimensional tensor for argument #{i} 'matrices'",
            matrix.dim()
        );
    }
    match matrices {
        [] => c10::bail!(Runtime, "chain_matmul(): Expected one or more matrices"),
        [matrix] => at::clone(matrix, None),
        _ => at::linalg_multi_dot(matrices),
    }
}

/// `aten::linalg_multi_dot`
pub fn linalg_multi_dot(tensors: &[Tensor]) -> Result<Tensor> {
    let n = tensors.len();
    check!(n >= 2, "multi_dot(): expected at least 2 tensors but got {n}");
    let (first, last) = (&tensors[0], &tensors[n - 1]);
    check!(
        matches!(first.dim(), 1 | 2),
        "multi_dot(): the first tensor must be 1D or 2D but got {}D",
        first.dim()
    );
    check!(
        matches!(last.dim(), 1 | 2),
        "multi_dot(): the last tensor must be 1D or 2D but got {}D",
        last.dim()
    );
    let mut matrices = Vec::with_capacity(n);
    let mut result = SymDimVector::new();
    for (i, tensor) in tensors.iter().enumerate() {
        if i > 0 && i < n - 1 {
            check!(tensor.dim() == 2, "multi_dot(): tensor {i} must be 2D but got {}D", tensor.dim());
        }
        check!(
            tensor.dtype() == first.dtype(),
            "multi_dot(): all tensors must have be the same dtype but tensor 0 is {} and tensor {i} {}",
            first.dtype(),
            tensor.dtype()
        );
        check!(
            tensor.device() == first.device(),
            "multi_dot(): all tensors must be on the same device but tensor 0 is on {} and tensor {i} on {}",
            first.device(),
            tensor.device()
        );
        matrices.push(match (tensor.dim(), i) {
            (1, 0) => at::unsqueeze(tensor, 0)?,
            (1, _) => at::unsqueeze(tensor, -1)?,
            _ => tensor.clone(),
        });
    }
    if first.dim() == 2 {
        result.push(first.sym_size(0)?);
    }
    if last.dim() == 2 {
        result.push(last.sym_size(1)?);
    }
    let mut sizes = vec![matrices[0].sym_size(0)?];
    for (i, pair) in matrices.windows(2).enumerate() {
        let (columns, rows) = (pair[0].sym_size(1)?, pair[1].sym_size(0)?);
        check!(
            columns.expect_eq(&rows)?,
            "multi_dot(): tensors {i} and {} with shapes {:?} and {:?} cannot be multiplied",
            i + 1,
            pair[0].sym_sizes(),
            pair[1].sym_sizes()
        );
        sizes.push(columns);
    }
    sizes.push(matrices[n - 1].sym_size(1)?);
    let product = if n == 2 {
        at::mm(&matrices[0], &matrices[1])?
    } else {
        let sizes = sizes.iter().map(SymInt::guard_int).collect::<Result<Vec<i64>>>()?;
        multiply(&matrices, &cheapest_order(&sizes), 0, n - 1)?
    };
    at::reshape(&product, &result)
}

/// For each run of matrices `i..=j` where to cut it, so that fewest multiplications are done: `order[i][j]`.
fn cheapest_order(sizes: &[i64]) -> Vec<Vec<usize>> {
    let n = sizes.len() - 1;
    let mut cost = vec![vec![0.0_f64; n]; n];
    let mut cuts = vec![vec![0; n]; n];
    for length in 1..n {
        for i in 0..n - length {
            let j = i + length;
            cost[i][j] = f64::INFINITY;
            for cut in i..j {
                let product = sizes[i] as f64 * sizes[cut + 1] as f64 * sizes[j + 1] as f64;
                let total = cost[i][cut] + cost[cut + 1][j] + product;
                if total < cost[i][j] {
                    cost[i][j] = total;
                    cuts[i][j] = cut;
                }
            }
        }
    }
    cuts
}

fn multiply(matrices: &[Tensor], cuts: &[Vec<usize>], i: usize, j: usize) -> Result<Tensor> {
    if i == j {
        return Ok(matrices[i].clone());
    }
    let cut = cuts[i][j];
    at::mm(&multiply(matrices, cuts, i, cut)?, &multiply(matrices, cuts, cut + 1, j)?)
}

/// `aten::vander`
pub fn vander(x: &Tensor, n: Option<i64>, increasing: bool) -> Result<Tensor> {
    check!(x.dim() == 1, "x must be a one-dimensional tensor.");
    let n = match n {
        Some(n) => SymInt::from(n),
        None => x.sym_numel(),
    };
    check!(n.expect_nonnegative()?, "N must be non-negative.");
    let dtype = if x.dtype().is_integral(true) { ScalarType::Long } else { x.dtype() };
    let x = at::to_dtype(x, dtype, false, false, None)?;
    if n.guard_lt(&SymInt::ONE)? {
        return at::new_empty(&x, &[x.sym_numel(), SymInt::ZERO], None, None, None, None);
    }
    let powers = powers(&x, &n)?;
    if increasing {
        Ok(powers)
    } else {
        at::flip(&powers, &[1])
    }
}

/// `aten::linalg_vander`
pub fn linalg_vander(x: &Tensor, n: Option<&SymInt>) -> Result<Tensor> {
    let n = match n {
        Some(n) => n.clone(),
        None if x.dim() == 0 => SymInt::ONE,
        None => x.sym_size(-1)?,
    };
    check!(!n.guard_lt(&SymInt::ONE)? && !n.is_one()?, "N must be greater than 1.");
    let dtype = if x.dtype().is_integral(true) { ScalarType::Long } else { x.dtype() };
    let x = at_least_1d(x)?;
    powers(&at::to_dtype(&x, dtype, false, false, None)?, &n)
}

/// The powers 0 to `n - 1`, along a new last dimension.
fn powers(x: &Tensor, n: &SymInt) -> Result<Tensor> {
    let column = at::unsqueeze(x, -1)?;
    let ones = at::ones_like(&column, None, None, None, None, None)?;
    let mut sizes = x.sym_sizes();
    sizes.push(n.sym_sub(&SymInt::ONE)?);
    let repeated = at::expand(&column, &sizes, false)?;
    at::cat(&[ones, at::cumprod(&repeated, -1, None)?], -1)
}

/// `aten::cov`
pub fn cov(
    self_: &Tensor,
    correction: i64,
    fweights: Option<&Tensor>,
    aweights: Option<&Tensor>,
) -> Result<Tensor> {
    check!(
        self_.dim() <= 2,
        "cov(): expected input to have two or fewer dimensions but got an input with {} dimensions",
        self_.dim()
    );
    check!(self_.dtype() != ScalarType::Bool, "cov(): bool dtype is not supported for input");
    let input =
        if self_.dim() < 2 { at::reshape(self_, &[SymInt::ONE, SymInt::from(-1)])? } else { self_.clone() };
    let observations = input.sym_size(1)?;
    let mut weights: Option<Tensor> = None;
    for (name, given) in [("fweights", fweights), ("aweights", aweights)] {
        let Some(given) = given else { continue };
        check!(
            given.dim() <= 1,
            "cov(): expected {name} to have one or fewer dimensions but got {name} with {} dimensions",
            given.dim()
        );
        let fits =
            if name == "fweights" { given.dtype().is_integral(false) } else { given.is_floating_point() };
        let kind = if name == "fweights" { "integral" } else { "floating point" };
        check!(
            fits,
            "cov(): expected {name} to have {kind} dtype but got {name} with {} dtype",
            given.dtype()
        );
        check!(
            given.sym_numel().expect_eq(&observations)?,
            "cov(): expected {name} to have the same numel as there are observations in the input but got {} != \
             {observations}",
            given.sym_numel()
        );
        if !sym::is_empty(given)? && !given.is_meta() {
            let least = at::item(&at::min(given)?)?.to_f64()?;
            check!(least >= 0.0, "cov(): {name} cannot be negative");
        }
        weights = Some(match weights {
            Some(weights) => at::mul_tensor(&weights, given)?,
            None => given.clone(),
        });
    }
    let total = match &weights {
        Some(weights) => at::sum(weights, None)?,
        None => at::scalar_tensor(
            &sym::scalar(&observations),
            Some(ScalarType::Long),
            None,
            Some(self_.device()),
            None,
        )?,
    };
    if weights.is_some() && !total.is_meta() {
        check!(at::item(&total)?.to_f64()? != 0.0, "cov(): weights sum to zero, can't be normalized");
    }
    let weighted = |t: &Tensor| match &weights {
        Some(weights) => at::mul_tensor(t, weights),
        None => Ok(t.clone()),
    };
    let average = at::div_tensor(&at::sum_dim_intlist(&weighted(&input)?, Some(&[1]), false, None)?, &total)?;
    let corrected = match (&weights, aweights) {
        (Some(weights), Some(aweights)) if correction != 0 => {
            let squares = at::sum(&at::mul_tensor(weights, aweights)?, None)?;
            let lost = at::div_tensor(&at::mul_scalar(&squares, &Scalar::Int(correction))?, &total)?;
            at::sub_tensor(&total, &lost, &ONE)?
        }
        _ => at::sub_scalar(&total, &Scalar::Int(correction), &ONE)?,
    };
    let factor = at::clamp_min(&corrected, &Scalar::Int(0))?;
    let centred = at::sub_tensor(&input, &at::unsqueeze(&average, 1)?, &ONE)?;
    let products = at::mm(&centred, &at::conj(&at::t(&weighted(&centred)?)?)?)?;
    at::squeeze(&at::div_tensor(&products, &factor)?)
}

/// `aten::corrcoef`
pub fn corrcoef(self_: &Tensor) -> Result<Tensor> {
    check!(
        self_.dim() <= 2,
        "corrcoef(): expected input to have two or fewer dimensions but got an input with {} dimensions",
        self_.dim()
    );
    let covariance = at::cov(self_, 1, None, None)?;
    if covariance.dim() == 0 {
        return at::div_tensor(&covariance, &covariance);
    }
    let deviations = at::sqrt(&at::real(&at::diagonal(&covariance, 0, 0, 1)?)?)?;
    let rows = at::div_tensor(&covariance, &at::unsqueeze(&deviations, 1)?)?;
    let scaled = at::div_tensor(&rows, &at::unsqueeze(&deviations, 0)?)?;
    let clipped = |t: &Tensor| at::clamp(t, Some(&Scalar::Int(-1)), Some(&ONE));
    if scaled.is_complex() {
        return at::view_as_complex(&clipped(&at::view_as_real(&scaled)?)?);
    }
    clipped(&scaled)
}
