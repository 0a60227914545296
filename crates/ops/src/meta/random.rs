//! Meta functions of the `random` operators: all but `randperm` change `self` in place.

use c10::{check, Generator, Result, ScalarType, SizeInt, SymInt, Tensor};
use iter::{StructuredOutputs, TensorIterator, TensorIteratorConfig};

/// A given generator has to be of the tensor's device.
fn check_generator(generator: Option<&Generator>, self_: &Tensor) -> Result<()> {
    if let Some(generator) = generator {
        let (expected, found) = (self_.device().device_type(), generator.device().device_type());
        check!(
            expected == found || self_.is_meta(),
            "Expected a '{expected}' device type for generator but found '{found}'"
        );
    }
    Ok(())
}

fn check_floating(name: &str, self_: &Tensor) -> Result<()> {
    c10::check_not_implemented!(
        self_.is_floating_point() || self_.is_complex(),
        "\"{name}\" not implemented for '{}'",
        self_.dtype().short_name()
    );
    Ok(())
}

/// The largest finite number of a dtype, or of a complex one's parts.
fn largest(dtype: ScalarType) -> f64 {
    match dtype {
        ScalarType::Half | ScalarType::ComplexHalf => 65504.0,
        ScalarType::BFloat16 => f64::from(f32::from_bits(0x7f7f_0000)),
        ScalarType::Float | ScalarType::ComplexFloat => f64::from(f32::MAX),
        _ => f64::MAX,
    }
}

/// `uniform_`
pub fn uniform_meta(
    _outs: &mut StructuredOutputs,
    self_: &Tensor,
    from: f64,
    to: f64,
    generator: Option<&Generator>,
) -> Result<TensorIterator> {
    check_generator(generator, self_)?;
    check_floating("check_uniform_bounds", self_)?;
    let (max, name) = (largest(self_.dtype()), self_.dtype().short_name());
    check!(from.abs() <= max, "from is out of bounds for {name}");
    check!(to.abs() <= max, "to is out of bounds for {name}");
    check!(from <= to, "uniform_ expects to return a [from, to) range, but found from={from} > to={to}");
    check!(
        to - from <= max,
        "uniform_ expects to-from <= std::numeric_limits<{name}>::max(), but found to={to} and from={from} which result \
         in to-from to exceed the limit"
    );
    TensorIterator::nullary_op(self_)
}

/// `normal_`
pub fn normal_meta(
    _outs: &mut StructuredOutputs,
    self_: &Tensor,
    _mean: f64,
    std: f64,
    generator: Option<&Generator>,
) -> Result<TensorIterator> {
    check_generator(generator, self_)?;
    check!(std >= 0.0, "normal expects std >= 0.0, but found std {std}");
    check_floating("normal_kernel_cpu", self_)?;
    TensorIterator::nullary_op(self_)
}

/// `exponential_`
pub fn exponential_meta(
    _outs: &mut StructuredOutputs,
    self_: &Tensor,
    lambd: f64,
    generator: Option<&Generator>,
) -> Result<TensorIterator> {
    check_generator(generator, self_)?;
    check!(lambd > 0.0, "exponential_ expects lambda > 0.0, but found lambda={lambd}");
    check_continuous("Exponential", self_)?;
    TensorIterator::nullary_op(self_)
}

fn check_continuous(name: &str, self_: &Tensor) -> Result<()> {
    c10::check_not_implemented!(
        self_.is_floating_point(),
        "{name} distribution is a continuous probability distribution. dtype must be a floating point but you specified \
         {}",
        self_.dtype().short_name()
    );
    Ok(())
}

/// `cauchy_`
pub fn cauchy_meta(
    _outs: &mut StructuredOutputs,
    self_: &Tensor,
    _median: f64,
    sigma: f64,
    generator: Option<&Generator>,
) -> Result<TensorIterator> {
    check_generator(generator, self_)?;
    check!(sigma > 0.0, "cauchy_ expects sigma > 0.0, but found sigma={sigma}");
    check_continuous("Cauchy", self_)?;
    TensorIterator::nullary_op(self_)
}

/// `log_normal_`
pub fn log_normal_meta(
    _outs: &mut StructuredOutputs,
    self_: &Tensor,
    _mean: f64,
    std: f64,
    generator: Option<&Generator>,
) -> Result<TensorIterator> {
    check_generator(generator, self_)?;
    check!(std > 0.0, "log_normal_ expects std > 0.0, but found std={std}");
    check_floating("log_normal_cpu", self_)?;
    TensorIterator::nullary_op(self_)
}

/// `geometric_`
pub fn geometric_meta(
    _outs: &mut StructuredOutputs,
    self_: &Tensor,
    p: f64,
    generator: Option<&Generator>,
) -> Result<TensorIterator> {
    check_generator(generator, self_)?;
    check!(0.0 < p && p < 1.0, "geometric_ expects p to be in (0, 1), but got p={p}");
    TensorIterator::nullary_op(self_)
}

/// `bernoulli_` with one probability.
pub fn bernoulli_scalar_meta(
    _outs: &mut StructuredOutputs,
    self_: &Tensor,
    p: f64,
    generator: Option<&Generator>,
) -> Result<TensorIterator> {
    check_generator(generator, self_)?;
    check!((0.0..=1.0).contains(&p), "bernoulli_ expects p to be in [0, 1], but got p={p}");
    TensorIterator::nullary_op(self_)
}

/// `bernoulli_` with a probability per element.
pub fn bernoulli_tensor_meta(
    _outs: &mut StructuredOutputs,
    self_: &Tensor,
    p: &Tensor,
    generator: Option<&Generator>,
) -> Result<TensorIterator> {
    check_generator(generator, self_)?;
    TensorIteratorConfig::new()
        .op_name("bernoulli_")
        .check_all_same_dtype(false)
        .resize_outputs(false)
        .add_output(self_)
        .add_input(p)
        .build_standalone()
}

/// `random_` over a dtype's whole range.
pub fn random_meta(
    _outs: &mut StructuredOutputs,
    self_: &Tensor,
    generator: Option<&Generator>,
) -> Result<TensorIterator> {
    check_generator(generator, self_)?;
    TensorIterator::nullary_op(self_)
}

/// The integers that a dtype holds exactly.
fn exact_range(dtype: ScalarType) -> (i64, i64) {
    match dtype {
        ScalarType::Bool => (0, 1),
        ScalarType::Byte => (0, i64::from(u8::MAX)),
        ScalarType::Char => (i64::from(i8::MIN), i64::from(i8::MAX)),
        ScalarType::Short => (i64::from(i16::MIN), i64::from(i16::MAX)),
        ScalarType::Int => (i64::from(i32::MIN), i64::from(i32::MAX)),
        ScalarType::UInt16 => (0, i64::from(u16::MAX)),
        ScalarType::UInt32 => (0, i64::from(u32::MAX)),
        ScalarType::UInt64 => (0, i64::MAX),
        ScalarType::Half => (-65504, 65504),
        _ => (i64::MIN, i64::MAX),
    }
}

/// `random_` between two integers.
pub fn random_from_meta(
    _outs: &mut StructuredOutputs,
    self_: &Tensor,
    from: i64,
    to: Option<i64>,
    generator: Option<&Generator>,
) -> Result<TensorIterator> {
    check_generator(generator, self_)?;
    let (low, high) = exact_range(self_.dtype());
    let name = self_.dtype().short_name();
    check!((low..=high).contains(&from), "from is out of bounds for {name}");
    if let Some(to) = to {
        check!(from < to, "random_ expects 'from' to be less than 'to', but got from={from} >= to={to}");
        check!((low..=high).contains(&(to - 1)), "to - 1 is out of bounds for {name}");
    }
    TensorIterator::nullary_op(self_)
}

/// Fails unless a dtype tells `0..n` apart.
fn check_representable<I: SizeInt>(n: &I, dtype: ScalarType) -> Result<()> {
    let mantissa = match dtype {
        ScalarType::Half => 11,
        ScalarType::BFloat16 => 8,
        ScalarType::Float => 24,
        ScalarType::Double => 53,
        _ => {
            let (_, high) = exact_range(dtype);
            check!(
                n.expect_le(&I::from(high))?,
                "value cannot be converted to type {} without overflow",
                iter::type_meta_name(dtype)
            );
            return Ok(());
        }
    };
    let most = (1_i64 << mantissa) + 1;
    check!(n.expect_le(&I::from(most))?, "n cannot be greater than {most} for {} type.", dtype.short_name());
    Ok(())
}

/// `randperm` into `out`.
pub fn randperm_meta<I: SizeInt>(
    outs: &mut StructuredOutputs,
    n: &SymInt,
    generator: Option<&Generator>,
) -> Result<()> {
    let n = I::from_sym(n)?;
    check!(n.expect_nonnegative()?, "n must be non-negative, got{n}");
    let options = outs.output(0)?.options();
    check_representable(&n, options.dtype_or_default())?;
    check_generator(generator, outs.output(0)?)?;
    outs.set_output_contiguous(0, &[n], options)
}
