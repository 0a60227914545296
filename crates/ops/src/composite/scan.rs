//! Composites of the `scan` family: differences along a dimension, and integrals.

use c10::{check, wrap_dim, Result, Scalar, ScalarType, SizeInt, SymDimVector, SymInt, Tensor};

use crate::at;
use crate::terms::part;

const ONE: Scalar = Scalar::Int(1);
const TWO: Scalar = Scalar::Int(2);

/// `aten::diff`
pub fn diff(
    self_: &Tensor,
    n: i64,
    dim: i64,
    prepend: Option<&Tensor>,
    append: Option<&Tensor>,
) -> Result<Tensor> {
    check!(self_.dim() >= 1, "diff expects input to be at least one-dimensional");
    check!(n >= 0, "order must be non-negative but got {n}");
    let wrapped = wrap_dim(dim, self_.dim(), false)?;
    for (name, given) in [("prepend", prepend), ("append", append)] {
        let Some(given) = given else { continue };
        check!(
            given.dim() == self_.dim(),
            "diff expects prepend or append to be the same dimension as input"
        );
        for d in (0..self_.dim()).filter(|&d| d != wrapped) {
            check!(
                given.sym_size(d)?.expect_eq(&self_.sym_size(d)?)?,
                "diff expects the shape of tensor to prepend or append to match that of input except along the \
                 differencing dimension; input.size({d}) = {}, but got {name}.size({d}) = {}",
                self_.sym_size(d)?,
                given.sym_size(d)?
            );
        }
    }
    if n == 0 {
        return at::clone(self_, None);
    }
    let mut result = self_.clone();
    if prepend.is_some() || append.is_some() {
        let parts: Vec<Tensor> = prepend.into_iter().chain([self_]).chain(append).cloned().collect();
        result = at::cat(&parts, wrapped)?;
    }
    for _ in 0..n {
        if result.sym_size(wrapped)?.is_zero()? {
            break;
        }
        let (later, earlier) = (part(&result, wrapped, 1, 0)?, part(&result, wrapped, 0, 1)?);
        result = if result.dtype() == ScalarType::Bool {
            at::logical_xor(&later, &earlier)?
        } else {
            at::sub_tensor(&later, &earlier, &ONE)?
        };
    }
    Ok(result)
}

/// The sum of each two neighbours.
fn neighbours(y: &Tensor, dim: i64) -> Result<Tensor> {
    at::add_tensor(&part(y, dim, 1, 0)?, &part(y, dim, 0, 1)?, &ONE)
}

fn check_not_bool(name: &str, x: Option<&Tensor>, y: &Tensor) -> Result<()> {
    let bad = |t: &Tensor| t.dtype() == ScalarType::Bool;
    let what = if x.is_some() { "`x` or `y`" } else { "`y`" };
    check!(
        !bad(y) && !x.is_some_and(bad),
        "{name}: received a bool input for {what}, but bool is not supported"
    );
    Ok(())
}

/// The distances between places `x`, shaped to go with `y`.
fn distances(name: &str, y: &Tensor, x: &Tensor, dim: i64) -> Result<Tensor> {
    if x.dim() == 1 {
        check!(
            x.sym_size(0)?.expect_eq(&y.sym_size(dim)?)?,
            "{name}: There must be one `x` value for each sample point"
        );
        let mut shape = SymDimVector::from_elem(SymInt::ONE, y.dim() as usize);
        shape[wrap_dim(dim, y.dim(), true)? as usize] = SymInt::from(-1);
        return at::reshape(&at::sub_tensor(&part(x, 0, 1, 0)?, &part(x, 0, 0, 1)?, &ONE)?, &shape);
    }
    let mut shape = SymDimVector::from_elem(SymInt::ONE, (y.dim() - x.dim()).max(0) as usize);
    shape.extend(x.sym_sizes());
    let x = at::view(x, &shape)?;
    at::sub_tensor(&part(&x, dim, 1, 0)?, &part(&x, dim, 0, 1)?, &ONE)
}

/// Zeros of the shape without a dimension.
fn zeros_without(y: &Tensor, dim: i64) -> Result<Tensor> {
    let mut sizes = y.sym_sizes();
    sizes.remove(wrap_dim(dim, y.dim(), false)? as usize);
    at::new_zeros(y, &sizes, None, None, None, None)
}

/// `aten::trapezoid.x`
pub fn trapezoid_x(y: &Tensor, x: &Tensor, dim: i64) -> Result<Tensor> {
    if y.sym_size(dim)?.is_zero()? {
        return zeros_without(y, dim);
    }
    check_not_bool("trapezoid", Some(x), y)?;
    let weighted = at::mul_tensor(&distances("trapezoid", y, x, dim)?, &neighbours(y, dim)?)?;
    at::div_scalar(&at::sum_dim_intlist(&weighted, Some(&[dim]), false, None)?, &TWO)
}

/// `aten::trapezoid.dx`
pub fn trapezoid_dx(y: &Tensor, dx: &Scalar, dim: i64) -> Result<Tensor> {
    if y.sym_size(dim)?.is_zero()? {
        return zeros_without(y, dim);
    }
    check_not_bool("trapezoid", None, y)?;
    check!(!dx.is_boolean(), "trapezoid: Currently, we only support dx as a real number.");
    let total = at::sum_dim_intlist(&neighbours(y, dim)?, Some(&[dim]), false, None)?;
    at::div_scalar(&at::mul_scalar(&total, dx)?, &TWO)
}

/// `aten::trapz.dx`
pub fn trapz_dx(y: &Tensor, dx: f64, dim: i64) -> Result<Tensor> {
    at::trapezoid_dx(y, &Scalar::Float(dx), dim)
}

/// `aten::cumulative_trapezoid.x`
pub fn cumulative_trapezoid_x(y: &Tensor, x: &Tensor, dim: i64) -> Result<Tensor> {
    check_not_bool("cumulative_trapezoid", Some(x), y)?;
    let weighted = at::mul_tensor(&distances("cumulative_trapezoid", y, x, dim)?, &neighbours(y, dim)?)?;
    at::div_scalar(&at::cumsum(&weighted, dim, None)?, &TWO)
}

/// `aten::cumulative_trapezoid.dx`
pub fn cumulative_trapezoid_dx(y: &Tensor, dx: &Scalar, dim: i64) -> Result<Tensor> {
    check_not_bool("cumulative_trapezoid", None, y)?;
    let sums = at::cumsum(&neighbours(y, dim)?, dim, None)?;
    at::mul_scalar(&sums, &Scalar::Float(dx.to_f64()? / 2.0))
}

/// How far apart the samples of a gradient are.
enum Spacing {
    Even(Scalar),
    At(Tensor),
}

fn gradient(
    self_: &Tensor,
    spacing: impl Fn(usize) -> Spacing,
    given: usize,
    dim: Option<&[i64]>,
    edge_order: i64,
) -> Result<Vec<Tensor>> {
    check!(self_.dtype() != ScalarType::Byte, "torch.gradient does not support uint8 input.");
    check!(matches!(edge_order, 1 | 2), "torch.gradient only supports edge_order=1 and edge_order=2.");
    let ndim = self_.dim();
    let mut dims: Vec<i64> = Vec::new();
    match dim {
        Some(stated) => {
            check!(
                given == 0 || given == stated.len(),
                "torch.gradient expected spacing to be unspecified, a scalar or it's spacing and dim arguments to have the \
                 same length, but got a spacing argument of length {given} and a dim argument of length {}.",
                stated.len()
            );
            for &dim in stated {
                let dim = wrap_dim(dim, ndim, true)?;
                check!(!dims.contains(&dim), "dim {dim} appears multiple times in the list of dims");
                dims.push(dim);
            }
        }
        None => {
            check!(
                given == 0 || given as i64 == ndim,
                "torch.gradient expected spacing to be unspecified, a scalar, or a list of length equal to 'self.dim() = \
                 {ndim}', since dim argument was not given, but got a list of length {given}"
            );
            dims.extend(0..ndim);
        }
    }
    for &dim in &dims {
        check!(
            SymInt::from(edge_order + 1).expect_le(&self_.sym_size(dim)?)?,
            "torch.gradient expected each dimension size to be at least edge_order+1"
        );
    }
    dims.iter()
        .enumerate()
        .map(|(i, &dim)| match spacing(i) {
            Spacing::Even(dx) => even_gradient(self_, &dx, dim, edge_order),
            Spacing::At(places) => uneven_gradient(self_, &places, dim, edge_order),
        })
        .collect()
}

/// One sample, counted from the end if negative.
fn sample(self_: &Tensor, dim: i64, index: i64) -> Result<Tensor> {
    let start =
        if index < 0 { self_.sym_size(dim)?.sym_add(&SymInt::from(index))? } else { SymInt::from(index) };
    at::narrow(self_, dim, &start, &SymInt::ONE)
}

fn even_gradient(self_: &Tensor, dx: &Scalar, dim: i64, edge_order: i64) -> Result<Tensor> {
    let at_ = |index| sample(self_, dim, index);
    let minus = |a: &Tensor, b: &Tensor| at::sub_tensor(a, b, &ONE);
    let (first, last) = if edge_order == 1 {
        (minus(&at_(1)?, &at_(0)?)?, minus(&at_(-1)?, &at_(-2)?)?)
    } else {
        let weighted = |a: i64, b: i64, c: i64, sign: f64| -> Result<Tensor> {
            let sum = at::mul_scalar(&at_(a)?, &Scalar::Float(-1.5 * sign))?;
            let sum = at::add_tensor(&sum, &at_(b)?, &Scalar::Float(2.0 * sign))?;
            at::sub_tensor(&sum, &at_(c)?, &Scalar::Float(0.5 * sign))
        };
        (weighted(0, 1, 2, 1.0)?, weighted(-1, -2, -3, -1.0)?)
    };
    let middle = minus(&part(self_, dim, 2, 0)?, &part(self_, dim, 0, 2)?)?;
    let middle = at::div_scalar(&at::div_scalar(&middle, dx)?, &TWO)?;
    at::cat(&[at::div_scalar(&first, dx)?, middle, at::div_scalar(&last, dx)?], dim)
}

fn uneven_gradient(self_: &Tensor, places: &Tensor, dim: i64, edge_order: i64) -> Result<Tensor> {
    check!(
        places.dim() == 1,
        "torch.gradient expected each element of spacing to have one dimension, but got an element with {} dimensions!",
        places.dim()
    );
    check!(
        places.sym_size(0)?.expect_eq(&self_.sym_size(dim)?)?,
        "torch.gradient expected each element of spacing to be as long as the dimension, got {} and {}",
        places.sym_size(0)?,
        self_.sym_size(dim)?
    );
    let mut shape = SymDimVector::from_elem(SymInt::ONE, self_.dim() as usize);
    shape[dim as usize] = SymInt::from(-1);
    let steps = at::reshape(&at::diff(places, 1, 0, None, None)?, &shape)?;
    let mul = |a: &Tensor, b: &Tensor| at::mul_tensor(a, b);
    let add = |a: &Tensor, b: &Tensor| at::add_tensor(a, b, &ONE);
    let div = |a: &Tensor, b: &Tensor| at::div_tensor(a, b);
    // The slope of a parabola through three samples, at the middle one.
    let (before, after) = (part(&steps, dim, 0, 1)?, part(&steps, dim, 1, 0)?);
    let both = add(&before, &after)?;
    let a = at::neg(&div(&after, &mul(&before, &both)?)?)?;
    let b = div(&at::sub_tensor(&after, &before, &ONE)?, &mul(&before, &after)?)?;
    let c = div(&before, &mul(&after, &both)?)?;
    let middle = add(
        &add(&mul(&a, &part(self_, dim, 0, 2)?)?, &mul(&b, &part(self_, dim, 1, 1)?)?)?,
        &mul(&c, &part(self_, dim, 2, 0)?)?,
    )?;
    let edge = |sign: i64| -> Result<Tensor> {
        // Counted from the edge inwards.
        let at_ = |i: i64| sample(self_, dim, if sign > 0 { i } else { -1 - i });
        let step = |i: i64| sample(&steps, dim, if sign > 0 { i } else { -1 - i });
        let slope = if edge_order == 1 {
            div(&at::sub_tensor(&at_(1)?, &at_(0)?, &ONE)?, &step(0)?)?
        } else {
            let (near, far) = (step(0)?, step(1)?);
            let both = add(&near, &far)?;
            let a = at::neg(&div(&add(&near, &both)?, &mul(&near, &both)?)?)?;
            let b = div(&both, &mul(&near, &far)?)?;
            let c = at::neg(&div(&near, &mul(&far, &both)?)?)?;
            add(&add(&mul(&a, &at_(0)?)?, &mul(&b, &at_(1)?)?)?, &mul(&c, &at_(2)?)?)?
        };
        if sign > 0 {
            Ok(slope)
        } else {
            at::neg(&slope)
        }
    };
    at::cat(&[edge(1)?, middle, edge(-1)?], dim)
}

/// `aten::gradient.scalarint`
pub fn gradient_scalarint(
    self_: &Tensor,
    spacing: Option<&Scalar>,
    dim: Option<i64>,
    edge_order: i64,
) -> Result<Vec<Tensor>> {
    let dx = spacing.cloned().unwrap_or(ONE);
    gradient(self_, |_| Spacing::Even(dx.clone()), 0, dim.as_ref().map(std::slice::from_ref), edge_order)
}

/// `aten::gradient.scalararray`
pub fn gradient_scalararray(
    self_: &Tensor,
    spacing: &Scalar,
    dim: &[i64],
    edge_order: i64,
) -> Result<Vec<Tensor>> {
    gradient(self_, |_| Spacing::Even(spacing.clone()), 0, Some(dim), edge_order)
}

/// `aten::gradient.array`
pub fn gradient_array(self_: &Tensor, dim: &[i64], edge_order: i64) -> Result<Vec<Tensor>> {
    gradient(self_, |_| Spacing::Even(ONE), 0, Some(dim), edge_order)
}

/// `aten::gradient.scalarrayint`
pub fn gradient_scalarrayint(
    self_: &Tensor,
    spacing: &[Scalar],
    dim: Option<i64>,
    edge_order: i64,
) -> Result<Vec<Tensor>> {
    let at_ = |i: usize| Spacing::Even(spacing.get(i).cloned().unwrap_or(ONE));
    gradient(self_, at_, spacing.len(), dim.as_ref().map(std::slice::from_ref), edge_order)
}

/// `aten::gradient.scalarrayarray`
pub fn gradient_scalarrayarray(
    self_: &Tensor,
    spacing: &[Scalar],
    dim: &[i64],
    edge_order: i64,
) -> Result<Vec<Tensor>> {
    let at_ = |i: usize| Spacing::Even(spacing.get(i).cloned().unwrap_or(ONE));
    gradient(self_, at_, spacing.len(), Some(dim), edge_order)
}

fn places(spacing: &[Tensor], i: usize) -> Spacing {
    spacing.get(i).map_or(Spacing::Even(ONE), |places| Spacing::At(places.clone()))
}

/// `aten::gradient.tensorarrayint`
pub fn gradient_tensorarrayint(
    self_: &Tensor,
    spacing: &[Tensor],
    dim: Option<i64>,
    edge_order: i64,
) -> Result<Vec<Tensor>> {
    let dim = dim.as_ref().map(std::slice::from_ref);
    gradient(self_, |i| places(spacing, i), spacing.len(), dim, edge_order)
}

/// `aten::gradient.tensorarray`
pub fn gradient_tensorarray(
    self_: &Tensor,
    spacing: &[Tensor],
    dim: &[i64],
    edge_order: i64,
) -> Result<Vec<Tensor>> {
    gradient(self_, |i| places(spacing, i), spacing.len(), Some(dim), edge_order)
}
