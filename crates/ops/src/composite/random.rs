//! Composites of the `random` family.

use c10::{
    check, Device, Generator, Layout, MemoryFormat, Result, Scalar, ScalarType, SizeInt, SymInt, Tensor,
};

use crate::{at, sym};

/// `aten::bernoulli`
pub fn bernoulli(self_: &Tensor, generator: Option<&Generator>) -> Result<Tensor> {
    at::bernoulli__tensor(
        &at::empty_like(self_, None, None, None, None, Some(MemoryFormat::Contiguous))?,
        self_,
        generator,
    )
}

/// `aten::bernoulli.out`: draws into `out`, whatever its dtype.
pub fn bernoulli_out(self_: &Tensor, generator: Option<&Generator>, out: &Tensor) -> Result<Tensor> {
    iter::resize_output(out, &self_.sym_sizes())?;
    at::bernoulli__tensor(out, self_, generator)
}

/// `aten::bernoulli.p`
pub fn bernoulli_p(self_: &Tensor, p: f64, generator: Option<&Generator>) -> Result<Tensor> {
    at::bernoulli__float(
        &at::empty_like(self_, None, None, None, None, Some(MemoryFormat::Contiguous))?,
        p,
        generator,
    )
}

/// `aten::random_.to`
pub fn random__to(self_: &Tensor, to: i64, generator: Option<&Generator>) -> Result<Tensor> {
    at::random__from(self_, 0, Some(to), generator)
}

/// `aten::rand`
pub fn rand(
    size: &[SymInt],
    dtype: Option<ScalarType>,
    layout: Option<Layout>,
    device: Option<Device>,
    pin_memory: Option<bool>,
) -> Result<Tensor> {
    at::rand_generator(size, None, dtype, layout, device, pin_memory)
}

/// `aten::rand.generator`
pub fn rand_generator(
    size: &[SymInt],
    generator: Option<&Generator>,
    dtype: Option<ScalarType>,
    layout: Option<Layout>,
    device: Option<Device>,
    pin_memory: Option<bool>,
) -> Result<Tensor> {
    at::uniform_(
        &at::empty_memory_format(size, dtype, layout, device, pin_memory, None)?,
        0.0,
        1.0,
        generator,
    )
}

/// `aten::rand_like`
pub fn rand_like(
    self_: &Tensor,
    dtype: Option<ScalarType>,
    layout: Option<Layout>,
    device: Option<Device>,
    pin_memory: Option<bool>,
    memory_format: Option<MemoryFormat>,
) -> Result<Tensor> {
    at::rand_like_generator(self_, None, dtype, layout, device, pin_memory, memory_format)
}

/// `aten::rand_like.generator`
pub fn rand_like_generator(
    self_: &Tensor,
    generator: Option<&Generator>,
    dtype: Option<ScalarType>,
    layout: Option<Layout>,
    device: Option<Device>,
    pin_memory: Option<bool>,
    memory_format: Option<MemoryFormat>,
) -> Result<Tensor> {
    at::uniform_(
        &at::empty_like(self_, dtype, layout, device, pin_memory, memory_format)?,
        0.0,
        1.0,
        generator,
    )
}

/// `aten::randn`
pub fn randn(
    size: &[SymInt],
    dtype: Option<ScalarType>,
    layout: Option<Layout>,
    device: Option<Device>,
    pin_memory: Option<bool>,
) -> Result<Tensor> {
    at::randn_generator(size, None, dtype, layout, device, pin_memory)
}

/// `aten::randn.generator`
pub fn randn_generator(
    size: &[SymInt],
    generator: Option<&Generator>,
    dtype: Option<ScalarType>,
    layout: Option<Layout>,
    device: Option<Device>,
    pin_memory: Option<bool>,
) -> Result<Tensor> {
    at::normal_(&at::empty_memory_format(size, dtype, layout, device, pin_memory, None)?, 0.0, 1.0, generator)
}

/// `aten::randn_like`
pub fn randn_like(
    self_: &Tensor,
    dtype: Option<ScalarType>,
    layout: Option<Layout>,
    device: Option<Device>,
    pin_memory: Option<bool>,
    memory_format: Option<MemoryFormat>,
) -> Result<Tensor> {
    at::randn_like_generator(self_, None, dtype, layout, device, pin_memory, memory_format)
}

/// `aten::randn_like.generator`
pub fn randn_like_generator(
    self_: &Tensor,
    generator: Option<&Generator>,
    dtype: Option<ScalarType>,
    layout: Option<Layout>,
    device: Option<Device>,
    pin_memory: Option<bool>,
    memory_format: Option<MemoryFormat>,
) -> Result<Tensor> {
    at::normal_(
        &at::empty_like(self_, dtype, layout, device, pin_memory, memory_format)?,
        0.0,
        1.0,
        generator,
    )
}

/// `aten::randint`
pub fn randint(
    high: &SymInt,
    size: &[SymInt],
    dtype: Option<ScalarType>,
    layout: Option<Layout>,
    device: Option<Device>,
    pin_memory: Option<bool>,
) -> Result<Tensor> {
    at::randint_low_generator(&SymInt::from(0_i64), high, size, None, dtype, layout, device, pin_memory)
}

/// `aten::randint.generator`
pub fn randint_generator(
    high: &SymInt,
    size: &[SymInt],
    generator: Option<&Generator>,
    dtype: Option<ScalarType>,
    layout: Option<Layout>,
    device: Option<Device>,
    pin_memory: Option<bool>,
) -> Result<Tensor> {
    at::randint_low_generator(&SymInt::from(0_i64), high, size, generator, dtype, layout, device, pin_memory)
}

/// `aten::randint.low`
pub fn randint_low(
    low: &SymInt,
    high: &SymInt,
    size: &[SymInt],
    dtype: Option<ScalarType>,
    layout: Option<Layout>,
    device: Option<Device>,
    pin_memory: Option<bool>,
) -> Result<Tensor> {
    at::randint_low_generator(low, high, size, None, dtype, layout, device, pin_memory)
}

/// `aten::randint.low_generator`
#[allow(clippy::too_many_arguments)]
pub fn randint_low_generator(
    low: &SymInt,
    high: &SymInt,
    size: &[SymInt],
    generator: Option<&Generator>,
    dtype: Option<ScalarType>,
    layout: Option<Layout>,
    device: Option<Device>,
    pin_memory: Option<bool>,
) -> Result<Tensor> {
    let dtype = Some(dtype.unwrap_or(ScalarType::Long));
    let result = at::empty_memory_format(size, dtype, layout, device, pin_memory, None)?;
    at::random__from(&result, low.guard_int()?, Some(high.guard_int()?), generator)
}

/// `aten::randint_like`
#[allow(clippy::too_many_arguments)]
pub fn randint_like(
    self_: &Tensor,
    high: &SymInt,
    dtype: Option<ScalarType>,
    layout: Option<Layout>,
    device: Option<Device>,
    pin_memory: Option<bool>,
    memory_format: Option<MemoryFormat>,
) -> Result<Tensor> {
    at::randint_like_low_generator_dtype(
        self_,
        &SymInt::from(0_i64),
        high,
        None,
        dtype,
        layout,
        device,
        pin_memory,
        memory_format,
    )
}

/// `aten::randint_like.generator`
#[allow(clippy::too_many_arguments)]
pub fn randint_like_generator(
    self_: &Tensor,
    high: &SymInt,
    generator: Option<&Generator>,
    dtype: Option<ScalarType>,
    layout: Option<Layout>,
    device: Option<Device>,
    pin_memory: Option<bool>,
    memory_format: Option<MemoryFormat>,
) -> Result<Tensor> {
    at::randint_like_low_generator_dtype(
        self_,
        &SymInt::from(0_i64),
        high,
        generator,
        dtype,
        layout,
        device,
        pin_memory,
        memory_format,
    )
}

/// `aten::randint_like.low_dtype`
#[allow(clippy::too_many_arguments)]
pub fn randint_like_low_dtype(
    self_: &Tensor,
    low: &SymInt,
    high: &SymInt,
    dtype: Option<ScalarType>,
    layout: Option<Layout>,
    device: Option<Device>,
    pin_memory: Option<bool>,
    memory_format: Option<MemoryFormat>,
) -> Result<Tensor> {
    at::randint_like_low_generator_dtype(
        self_,
        low,
        high,
        None,
        dtype,
        layout,
        device,
        pin_memory,
        memory_format,
    )
}

/// `aten::randint_like.low_generator_dtype`
#[allow(clippy::too_many_arguments)]
pub fn randint_like_low_generator_dtype(
    self_: &Tensor,
    low: &SymInt,
    high: &SymInt,
    generator: Option<&Generator>,
    dtype: Option<ScalarType>,
    layout: Option<Layout>,
    device: Option<Device>,
    pin_memory: Option<bool>,
    memory_format: Option<MemoryFormat>,
) -> Result<Tensor> {
    let result = at::empty_like(self_, dtype, layout, device, pin_memory, memory_format)?;
    at::random__from(&result, low.guard_int()?, Some(high.guard_int()?), generator)
}

/// `aten::randperm`
pub fn randperm(
    n: &SymInt,
    dtype: Option<ScalarType>,
    layout: Option<Layout>,
    device: Option<Device>,
    pin_memory: Option<bool>,
) -> Result<Tensor> {
    at::randperm_generator(n, None, dtype, layout, device, pin_memory)
}

/// `aten::randperm.generator`
pub fn randperm_generator(
    n: &SymInt,
    generator: Option<&Generator>,
    dtype: Option<ScalarType>,
    layout: Option<Layout>,
    device: Option<Device>,
    pin_memory: Option<bool>,
) -> Result<Tensor> {
    check!(n.expect_nonnegative()?, "n must be non-negative, got{n}");
    let dtype = Some(dtype.unwrap_or(ScalarType::Long));
    let out = at::empty_memory_format(std::slice::from_ref(n), dtype, layout, device, pin_memory, None)?;
    at::randperm_generator_out(n, generator, &out)
}

fn check_std(std: &Tensor) -> Result<()> {
    check!(!std.is_complex(), "normal expects standard deviation to be non-complex");
    if !std.is_meta() && std.numel()? > 0 {
        let lowest = at::item(&at::min(std)?)?;
        check!(lowest.to_f64()? >= 0.0, "normal expects all elements of std >= 0.0");
    }
    Ok(())
}

/// Standard normal draws of a shape, in the dtype of `like`.
fn standard(like: &Tensor, sizes: &[SymInt], generator: Option<&Generator>) -> Result<Tensor> {
    let out = at::empty_memory_format(sizes, Some(like.dtype()), None, Some(like.device()), None, None)?;
    at::normal_(&out, 0.0, 1.0, generator)
}

/// `aten::normal.Tensor_float`
pub fn normal_tensor_float(mean: &Tensor, std: f64, generator: Option<&Generator>) -> Result<Tensor> {
    let draws = at::normal_(&at::empty_like(mean, None, None, None, None, None)?, 0.0, std, generator)?;
    at::add__tensor(&draws, mean, &Scalar::Int(1))
}

/// `aten::normal.Tensor_float_out`: draws into `out`, and then scales and shifts the draws, as the forms below do.
pub fn normal_tensor_float_out(
    mean: &Tensor,
    std: f64,
    generator: Option<&Generator>,
    out: &Tensor,
) -> Result<Tensor> {
    iter::resize_output(out, &mean.sym_sizes())?;
    at::add__tensor(&at::normal_(out, 0.0, std, generator)?, mean, &Scalar::Int(1))
}

/// `aten::normal.float_Tensor_out`
pub fn normal_float_tensor_out(
    mean: f64,
    std: &Tensor,
    generator: Option<&Generator>,
    out: &Tensor,
) -> Result<Tensor> {
    check_std(std)?;
    iter::resize_output(out, &std.sym_sizes())?;
    let draws = at::normal_(out, 0.0, 1.0, generator)?;
    at::add__scalar(&at::mul__tensor(&draws, std)?, &Scalar::Float(mean), &Scalar::Int(1))
}

/// `aten::normal.Tensor_Tensor_out`
pub fn normal_tensor_tensor_out(
    mean: &Tensor,
    std: &Tensor,
    generator: Option<&Generator>,
    out: &Tensor,
) -> Result<Tensor> {
    check_std(std)?;
    iter::resize_output(out, &c10::infer_broadcast_size(&mean.sym_sizes(), &std.sym_sizes())?)?;
    let draws = at::normal_(out, 0.0, 1.0, generator)?;
    at::add__tensor(&at::mul__tensor(&draws, std)?, mean, &Scalar::Int(1))
}

/// `aten::normal.float_float_out`
pub fn normal_float_float_out(
    mean: f64,
    std: f64,
    size: &[SymInt],
    generator: Option<&Generator>,
    out: &Tensor,
) -> Result<Tensor> {
    iter::resize_output(out, size)?;
    at::normal_(out, mean, std, generator)
}

/// `aten::normal.float_Tensor`
pub fn normal_float_tensor(mean: f64, std: &Tensor, generator: Option<&Generator>) -> Result<Tensor> {
    check_std(std)?;
    let draws = standard(std, &std.sym_sizes(), generator)?;
    at::add__scalar(&at::mul__tensor(&draws, std)?, &Scalar::Float(mean), &Scalar::Int(1))
}

/// `aten::normal.Tensor_Tensor`
pub fn normal_tensor_tensor(mean: &Tensor, std: &Tensor, generator: Option<&Generator>) -> Result<Tensor> {
    check_std(std)?;
    let sizes = c10::infer_broadcast_size(&mean.sym_sizes(), &std.sym_sizes())?;
    let draws = standard(mean, &sizes, generator)?;
    at::add__tensor(&at::mul__tensor(&draws, std)?, mean, &Scalar::Int(1))
}

/// `aten::normal.float_float`
#[allow(clippy::too_many_arguments)]
pub fn normal_float_float(
    mean: f64,
    std: f64,
    size: &[SymInt],
    generator: Option<&Generator>,
    dtype: Option<ScalarType>,
    layout: Option<Layout>,
    device: Option<Device>,
    pin_memory: Option<bool>,
) -> Result<Tensor> {
    at::normal_(
        &at::empty_memory_format(size, dtype, layout, device, pin_memory, None)?,
        mean,
        std,
        generator,
    )
}

fn check_probability(p: f64) -> Result<()> {
    check!((0.0..=1.0).contains(&p), "dropout probability has to be between 0 and 1, but got {p}");
    Ok(())
}

/// Zero with probability `p`, else `1 / (1 - p)`.
fn dropout_noise(input: &Tensor, p: f64) -> Result<Tensor> {
    let noise = at::bernoulli__float(&at::empty_like(input, None, None, None, None, None)?, 1.0 - p, None)?;
    at::div__scalar(&noise, &Scalar::Float(1.0 - p))
}

/// `aten::dropout`
pub fn dropout(input: &Tensor, p: f64, train: bool) -> Result<Tensor> {
    check_probability(p)?;
    if p == 0.0 || !train || sym::is_empty(input)? {
        return Ok(input.clone());
    }
    if p == 1.0 {
        return at::mul_tensor(input, &at::zeros_like(input, None, None, None, None, None)?);
    }
    at::mul_tensor(input, &dropout_noise(input, p)?)
}

/// `aten::dropout_`
pub fn dropout_(self_: &Tensor, p: f64, train: bool) -> Result<Tensor> {
    check_probability(p)?;
    if p == 0.0 || !train || sym::is_empty(self_)? {
        return Ok(self_.clone());
    }
    if p == 1.0 {
        return at::mul__tensor(self_, &at::zeros_like(self_, None, None, None, None, None)?);
    }
    at::mul__tensor(self_, &dropout_noise(self_, p)?)
}

/// What is dropped together: elements, or whole channels.
#[derive(Clone, Copy, PartialEq)]
enum Dropped {
    Elements,
    Channels,
}

/// The noise that decides per element, or per channel and sample.
fn empty_noise(input: &Tensor, dropped: Dropped) -> Result<Tensor> {
    if dropped == Dropped::Elements {
        return at::empty_like(input, None, None, None, None, None);
    }
    check!(input.dim() >= 2, "Feature dropout requires at least 2 dimensions in the input");
    let mut sizes = input.sym_sizes();
    for size in &mut sizes[2..] {
        *size = SymInt::ONE;
    }
    at::new_empty(input, &sizes, None, None, None, None)
}

/// The dropouts beside the common one. `alpha` keeps the mean and variance of what SELU gives: what is dropped becomes
/// SELU's limit, and the result is scaled and shifted.
fn drop(input: &Tensor, p: f64, train: bool, dropped: Dropped, alpha: bool, inplace: bool) -> Result<Tensor> {
    check_probability(p)?;
    if p == 0.0 || !train || sym::is_empty(input)? {
        return Ok(input.clone());
    }
    let times =
        |noise: &Tensor| if inplace { at::mul__tensor(input, noise) } else { at::mul_tensor(input, noise) };
    if p == 1.0 {
        return times(&at::new_zeros(input, &[], None, None, None, None)?);
    }
    let noise = at::bernoulli__float(&empty_noise(input, dropped)?, 1.0 - p, None)?;
    if !alpha {
        return times(&at::div__scalar(&noise, &Scalar::Float(1.0 - p))?);
    }
    const ALPHA: f64 = 1.758_099_340_847_376_6;
    let a = 1.0 / ((ALPHA * ALPHA * p + 1.0) * (1.0 - p)).sqrt();
    let one = Scalar::Int(1);
    let b = at::add_scalar(&noise, &Scalar::Int(-1), &one)?;
    let b = at::mul__scalar(&b, &Scalar::Float(ALPHA * a))?;
    let b = at::add__scalar(&b, &Scalar::Float(ALPHA * a * p), &one)?;
    at::add__tensor(&times(&at::mul__scalar(&noise, &Scalar::Float(a))?)?, &b, &one)
}

/// `aten::feature_dropout`
pub fn feature_dropout(input: &Tensor, p: f64, train: bool) -> Result<Tensor> {
    drop(input, p, train, Dropped::Channels, false, false)
}

/// `aten::feature_dropout_`
pub fn feature_dropout_(self_: &Tensor, p: f64, train: bool) -> Result<Tensor> {
    drop(self_, p, train, Dropped::Channels, false, true)
}

/// `aten::alpha_dropout`
pub fn alpha_dropout(input: &Tensor, p: f64, train: bool) -> Result<Tensor> {
    drop(input, p, train, Dropped::Elements, true, false)
}

/// `aten::alpha_dropout_`
pub fn alpha_dropout_(self_: &Tensor, p: f64, train: bool) -> Result<Tensor> {
    drop(self_, p, train, Dropped::Elements, true, true)
}

/// `aten::feature_alpha_dropout`
pub fn feature_alpha_dropout(input: &Tensor, p: f64, train: bool) -> Result<Tensor> {
    drop(input, p, train, Dropped::Channels, true, false)
}

/// `aten::feature_alpha_dropout_`
pub fn feature_alpha_dropout_(self_: &Tensor, p: f64, train: bool) -> Result<Tensor> {
    drop(self_, p, train, Dropped::Channels, true, true)
}

/// `aten::native_dropout`: the result and the mask of what was kept.
pub fn native_dropout(input: &Tensor, p: f64, train: Option<bool>) -> Result<(Tensor, Tensor)> {
    let bools = |fill: bool| {
        at::full_like(input, &Scalar::Bool(fill), Some(ScalarType::Bool), None, None, None, None)
    };
    if sym::is_empty(input)? {
        return Ok((input.clone(), at::empty_like(input, Some(ScalarType::Bool), None, None, None, None)?));
    }
    if !train.unwrap_or(true) {
        return Ok((at::clone(input, None)?, bools(true)?));
    }
    let keep = 1.0 - p;
    let scale = if keep == 0.0 { 0.0 } else { 1.0 / keep };
    let mask = at::bernoulli__float(&bools(false)?, keep, None)?;
    let kept = at::mul_tensor(input, &mask)?;
    Ok((at::mul__scalar(&kept, &Scalar::Float(scale))?, mask))
}

/// `aten::native_dropout_backward`
pub fn native_dropout_backward(grad_output: &Tensor, mask: &Tensor, scale: f64) -> Result<Tensor> {
    at::mul_scalar(&at::mul_tensor(grad_output, mask)?, &Scalar::Float(scale))
}
