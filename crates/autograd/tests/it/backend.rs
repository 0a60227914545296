//! A backend of a few float operators on the CPU, so that the tests need no other crate than the one under test.

use std::sync::Once;

use c10::{
    empty_strided_cpu, Device, DispatchKey, DispatchKeySet, Layout, MemoryFormat, Result, Scalar, ScalarType,
    SymInt, Tensor, TensorImpl,
};
use dispatch::{KernelFunction, Library, LibraryKind, TypedOp};

/// Elements in row-major order.
pub fn values(t: &Tensor) -> Vec<f32> {
    let (sizes, strides) = (t.sizes().unwrap(), t.strides().unwrap());
    let mut out = Vec::new();
    let numel: i64 = sizes.iter().product();
    for mut i in 0..numel {
        let mut offset = 0;
        for d in (0..sizes.len()).rev() {
            offset += (i % sizes[d]) * strides[d];
            i /= sizes[d];
        }
        // SAFETY: the offset is inside the tensor's storage by its sizes and strides.
        out.push(unsafe { *(t.data_ptr() as *const f32).offset(offset as isize) });
    }
    out
}

fn write(t: &Tensor, mut value: impl FnMut(usize) -> f32) {
    let (sizes, strides) = (t.sizes().unwrap(), t.strides().unwrap());
    let numel: i64 = sizes.iter().product();
    for n in 0..numel {
        let (mut i, mut offset) = (n, 0);
        for d in (0..sizes.len()).rev() {
            offset += (i % sizes[d]) * strides[d];
            i /= sizes[d];
        }
        let value = value(n as usize);
        // SAFETY: the offset is inside the tensor's storage by its sizes and strides.
        unsafe { *(t.data_ptr() as *mut f32).offset(offset as isize) = value };
    }
}

fn contiguous_strides(sizes: &[i64]) -> Vec<i64> {
    let mut strides = vec![1; sizes.len()];
    for d in (1..sizes.len()).rev() {
        strides[d - 1] = strides[d] * sizes[d].max(1);
    }
    strides
}

fn make(sizes: &[i64], value: impl FnMut(usize) -> f32) -> Tensor {
    let t = empty_strided_cpu(sizes, &contiguous_strides(sizes), ScalarType::Float).unwrap();
    write(&t, value);
    t
}

/// A tensor with the given elements.
pub fn tensor(sizes: &[i64], data: &[f32]) -> Tensor {
    init();
    make(sizes, |i| data[i])
}

/// A leaf that requires a gradient.
pub fn leaf(sizes: &[i64], data: &[f32]) -> Tensor {
    let t = tensor(sizes, data);
    autograd::variable::set_requires_grad(&t, true).unwrap();
    t
}

/// The gradient's elements.
pub fn grad_values(t: &Tensor) -> Vec<f32> {
    values(&autograd::variable::grad(t).expect("a gradient"))
}

fn view(base: &Tensor, sizes: &[i64], strides: &[i64], offset: i64) -> Result<Tensor> {
    let view =
        TensorImpl::new_view(Some(base.storage()?.clone()), base.key_set(), base.dtype(), base.device());
    Ok(view.with_sizes_and_strides(sizes, strides, offset)?.into())
}

fn ints(values: &[SymInt]) -> Vec<i64> {
    values.iter().map(|n| n.guard_int().unwrap()).collect()
}

fn binary(a: &Tensor, b: &Tensor, f: impl Fn(f32, f32) -> f32) -> Tensor {
    let (x, y) = (values(a), values(b));
    let sizes = if a.dim() >= b.dim() { a.sizes().unwrap() } else { b.sizes().unwrap() };
    // One side may be a scalar: all the broadcasting that the tests need.
    make(sizes, |i| f(x[i % x.len()], y[i % y.len()]))
}

fn scalar(s: &Scalar) -> f32 {
    s.to_f64().unwrap() as f32
}

type Ks = DispatchKeySet;

fn add(_: Ks, (a, b, alpha): (&Tensor, &Tensor, &Scalar)) -> Result<Tensor> {
    let alpha = scalar(alpha);
    Ok(binary(a, b, |x, y| x + alpha * y))
}

fn add_(_: Ks, (a, b, alpha): (&Tensor, &Tensor, &Scalar)) -> Result<Tensor> {
    let result = values(&binary(a, b, |x, y| x + scalar(alpha) * y));
    write(a, |i| result[i]);
    Ok(a.clone())
}

fn mul(_: Ks, (a, b): (&Tensor, &Tensor)) -> Result<Tensor> {
    Ok(binary(a, b, |x, y| x * y))
}

fn mul_(_: Ks, (a, b): (&Tensor, &Tensor)) -> Result<Tensor> {
    let result = values(&binary(a, b, |x, y| x * y));
    write(a, |i| result[i]);
    Ok(a.clone())
}

fn div(_: Ks, (a, b): (&Tensor, &Tensor)) -> Result<Tensor> {
    Ok(binary(a, b, |x, y| x / y))
}

fn mul_scalar(_: Ks, (a, s): (&Tensor, &Scalar)) -> Result<Tensor> {
    let (x, s) = (values(a), scalar(s));
    Ok(make(a.sizes()?, |i| x[i] * s))
}

fn neg(_: Ks, (a,): (&Tensor,)) -> Result<Tensor> {
    let x = values(a);
    Ok(make(a.sizes()?, |i| -x[i]))
}

fn exp(_: Ks, (a,): (&Tensor,)) -> Result<Tensor> {
    let x = values(a);
    Ok(make(a.sizes()?, |i| x[i].exp()))
}

fn exp_(_: Ks, (a,): (&Tensor,)) -> Result<Tensor> {
    let x = values(a);
    write(a, |i| x[i].exp());
    Ok(a.clone())
}

fn sqrt(_: Ks, (a,): (&Tensor,)) -> Result<Tensor> {
    let x = values(a);
    Ok(make(a.sizes()?, |i| x[i].sqrt()))
}

fn sum(_: Ks, (a, _dtype): (&Tensor, Option<ScalarType>)) -> Result<Tensor> {
    let total: f32 = values(a).iter().sum();
    Ok(make(&[], |_| total))
}

fn sum_dim(
    _: Ks,
    (a, dims, keepdim, _): (&Tensor, Option<&[i64]>, bool, Option<ScalarType>),
) -> Result<Tensor> {
    let sizes = a.sizes()?.to_vec();
    let reduced: Vec<usize> = dims.unwrap_or(&[]).iter().map(|&d| d as usize).collect();
    let kept: Vec<i64> = (0..sizes.len()).map(|d| if reduced.contains(&d) { 1 } else { sizes[d] }).collect();
    let strides = contiguous_strides(&kept);
    let mut totals = vec![0.0; kept.iter().product::<i64>() as usize];
    for (n, value) in values(a).into_iter().enumerate() {
        let (mut i, mut at) = (n as i64, 0);
        for d in (0..sizes.len()).rev() {
            if !reduced.contains(&d) {
                at += (i % sizes[d]) * strides[d];
            }
            i /= sizes[d];
        }
        totals[at as usize] += value;
    }
    let shape: Vec<i64> =
        (0..sizes.len()).filter(|d| keepdim || !reduced.contains(d)).map(|d| kept[d]).collect();
    Ok(make(&shape, |i| totals[i]))
}

fn clone(_: Ks, (a, _format): (&Tensor, Option<MemoryFormat>)) -> Result<Tensor> {
    let x = values(a);
    Ok(make(a.sizes()?, |i| x[i]))
}

fn copy_(_: Ks, (dst, src, _non_blocking): (&Tensor, &Tensor, bool)) -> Result<Tensor> {
    let x = values(src);
    write(dst, |i| x[i % x.len()]);
    Ok(dst.clone())
}

fn ones_like(
    _: Ks,
    (a, ..): (
        &Tensor,
        Option<ScalarType>,
        Option<Layout>,
        Option<Device>,
        Option<bool>,
        Option<MemoryFormat>,
    ),
) -> Result<Tensor> {
    Ok(make(a.sizes()?, |_| 1.0))
}

fn zeros_like(
    _: Ks,
    (a, ..): (
        &Tensor,
        Option<ScalarType>,
        Option<Layout>,
        Option<Device>,
        Option<bool>,
        Option<MemoryFormat>,
    ),
) -> Result<Tensor> {
    Ok(make(a.sizes()?, |_| 0.0))
}

fn new_empty_strided(
    _: Ks,
    args: (&Tensor, &[SymInt], &[SymInt], Option<ScalarType>, Option<Layout>, Option<Device>, Option<bool>),
) -> Result<Tensor> {
    empty_strided_cpu(&ints(args.1), &ints(args.2), ScalarType::Float)
}

fn new_zeros(
    _: Ks,
    args: (&Tensor, &[SymInt], Option<ScalarType>, Option<Layout>, Option<Device>, Option<bool>),
) -> Result<Tensor> {
    Ok(make(&ints(args.1), |_| 0.0))
}

fn zeros(
    _: Ks,
    args: (&[SymInt], Option<ScalarType>, Option<Layout>, Option<Device>, Option<bool>),
) -> Result<Tensor> {
    Ok(make(&ints(args.0), |_| 0.0))
}

fn as_strided(
    _: Ks,
    (a, sizes, strides, offset): (&Tensor, &[SymInt], &[SymInt], Option<&SymInt>),
) -> Result<Tensor> {
    let offset = offset.map_or(a.storage_offset(), SymInt::guard_int)?;
    view(a, &ints(sizes), &ints(strides), offset)
}

fn view_op(_: Ks, (a, sizes): (&Tensor, &[SymInt])) -> Result<Tensor> {
    let numel: i64 = a.sizes()?.iter().product();
    let mut sizes = ints(sizes);
    let known: i64 = sizes.iter().filter(|&&n| n >= 0).product();
    sizes.iter_mut().filter(|n| **n < 0).for_each(|n| *n = numel / known);
    view(a, &sizes, &contiguous_strides(&sizes), a.storage_offset()?)
}

fn reshape(_: Ks, (a, sizes): (&Tensor, &[SymInt])) -> Result<Tensor> {
    static VIEW: TypedOp<(Tensor, Vec<SymInt>), Tensor> = TypedOp::new("aten::view", "");
    static CLONE: TypedOp<(Tensor, Option<MemoryFormat>), Tensor> = TypedOp::new("aten::clone", "");
    if a.is_contiguous() {
        return VIEW.call((a, sizes));
    }
    VIEW.call((&CLONE.call((a, None))?, sizes))
}

fn expand(_: Ks, (a, sizes, _implicit): (&Tensor, &[SymInt], bool)) -> Result<Tensor> {
    let sizes = ints(sizes);
    let lead = sizes.len() - a.dim() as usize;
    let strides: Vec<i64> = (0..sizes.len())
        .map(|d| {
            if d < lead || a.size((d - lead) as i64).unwrap() == 1 && sizes[d] != 1 {
                0
            } else {
                a.stride((d - lead) as i64).unwrap()
            }
        })
        .collect();
    view(a, &sizes, &strides, a.storage_offset()?)
}

fn select(_: Ks, (a, dim, index): (&Tensor, i64, &SymInt)) -> Result<Tensor> {
    let (mut sizes, mut strides) = (a.sizes()?.to_vec(), a.strides()?.to_vec());
    sizes.remove(dim as usize);
    let stride = strides.remove(dim as usize);
    view(a, &sizes, &strides, a.storage_offset()? + index.guard_int()? * stride)
}

fn select_backward(_: Ks, (grad, sizes, dim, index): (&Tensor, &[SymInt], i64, &SymInt)) -> Result<Tensor> {
    let zeros = make(&ints(sizes), |_| 0.0);
    let slice = select(DispatchKeySet::default(), (&zeros, dim, index))?;
    let x = values(grad);
    write(&slice, |i| x[i]);
    Ok(zeros)
}

fn unbind(_: Ks, (a, dim): (&Tensor, i64)) -> Result<Vec<Tensor>> {
    (0..a.size(dim)?).map(|i| select(DispatchKeySet::default(), (a, dim, &SymInt::from(i)))).collect()
}

fn stack(_: Ks, (tensors, _dim): (&[Tensor], i64)) -> Result<Tensor> {
    let data: Vec<f32> = tensors.iter().flat_map(values).collect();
    let mut sizes = vec![tensors.len() as i64];
    sizes.extend(tensors[0].sizes()?);
    Ok(make(&sizes, |i| data[i]))
}

fn detach(_: Ks, (a,): (&Tensor,)) -> Result<Tensor> {
    view(a, a.sizes()?, a.strides()?, a.storage_offset()?)
}

fn ne(_: Ks, (a, b): (&Tensor, &Tensor)) -> Result<Tensor> {
    Ok(binary(a, b, |x, y| f32::from(u8::from(x != y))))
}

fn any(_: Ks, (a,): (&Tensor,)) -> Result<Tensor> {
    let any = values(a).iter().any(|&x| x != 0.0);
    Ok(make(&[], |_| f32::from(u8::from(any))))
}

fn item(_: Ks, (a,): (&Tensor,)) -> Result<Scalar> {
    let value = values(a)[0];
    Ok(Scalar::Bool(value != 0.0))
}

fn no_derivative(_: Ks, (a,): (&Tensor,)) -> Result<Tensor> {
    clone(DispatchKeySet::default(), (a, None))
}

/// Scales by statistics that it has just updated.
fn scale_by_running(_: Ks, (a, running): (&Tensor, &Tensor)) -> Result<Tensor> {
    let updated = values(running)[0] + 1.0;
    write(running, |_| updated);
    let x = values(a);
    Ok(make(a.sizes()?, |i| x[i] * updated))
}

fn add_out(_: Ks, (a, b, alpha, out): (&Tensor, &Tensor, &Scalar, &Tensor)) -> Result<Tensor> {
    let result = values(&add(DispatchKeySet::default(), (a, b, alpha))?);
    write(out, |i| result[i]);
    Ok(out.clone())
}

/// Defines the operators, once.
pub fn init() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| define().unwrap());
}

fn define() -> Result<()> {
    let mut lib = Library::new(LibraryKind::Def, "aten");
    macro_rules! op {
        ($schema:literal, $key:ident, $args:ty, $ret:ty, $f:expr) => {
            let handle = lib.def_static($schema, &[])?;
            lib.impl_(
                &handle.name().to_string(),
                DispatchKey::$key,
                KernelFunction::from_unboxed::<$args, $ret>($f),
            )?;
        };
    }
    type T1 = (Tensor,);
    type T2 = (Tensor, Tensor);
    type T2S = (Tensor, Tensor, Scalar);
    type Like =
        (Tensor, Option<ScalarType>, Option<Layout>, Option<Device>, Option<bool>, Option<MemoryFormat>);
    op!("add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", CPU, T2S, Tensor, add);
    op!(
        "add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)",
        CPU,
        T2S,
        Tensor,
        add_
    );
    op!(
        "add.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)",
        CPU,
        (Tensor, Tensor, Scalar, Tensor),
        Tensor,
        add_out
    );
    op!("mul.Tensor(Tensor self, Tensor other) -> Tensor", CPU, T2, Tensor, mul);
    op!("mul_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)", CPU, T2, Tensor, mul_);
    op!("div.Tensor(Tensor self, Tensor other) -> Tensor", CPU, T2, Tensor, div);
    op!("mul.Scalar(Tensor self, Scalar other) -> Tensor", CPU, (Tensor, Scalar), Tensor, mul_scalar);
    op!("neg(Tensor self) -> Tensor", CPU, T1, Tensor, neg);
    op!("exp(Tensor self) -> Tensor", CPU, T1, Tensor, exp);
    op!("exp_(Tensor(a!) self) -> Tensor(a!)", CPU, T1, Tensor, exp_);
    op!("sqrt(Tensor self) -> Tensor", CPU, T1, Tensor, sqrt);
    op!(
        "sum(Tensor self, *, ScalarType? dtype=None) -> Tensor",
        CPU,
        (Tensor, Option<ScalarType>),
        Tensor,
        sum
    );
    op!(
        "sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
        CPU,
        (Tensor, Option<Vec<i64>>, bool, Option<ScalarType>),
        Tensor,
        sum_dim
    );
    op!(
        "clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor",
        CPU,
        (Tensor, Option<MemoryFormat>),
        Tensor,
        clone
    );
    op!(
        "copy_(Tensor(a!) self, Tensor src, bool non_blocking=False) -> Tensor(a!)",
        CPU,
        (Tensor, Tensor, bool),
        Tensor,
        copy_
    );
    op!("ones_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor", CPU, Like, Tensor, ones_like);
    op!("zeros_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor", CPU, Like, Tensor, zeros_like);
    op!("new_empty_strided(Tensor self, SymInt[] size, SymInt[] stride, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor", CPU, (Tensor, Vec<SymInt>, Vec<SymInt>, Option<ScalarType>, Option<Layout>, Option<Device>, Option<bool>), Tensor, new_empty_strided);
    op!("new_zeros(Tensor self, SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor", CPU, (Tensor, Vec<SymInt>, Option<ScalarType>, Option<Layout>, Option<Device>, Option<bool>), Tensor, new_zeros);
    op!("zeros(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor", CompositeExplicitAutograd, (Vec<SymInt>, Option<ScalarType>, Option<Layout>, Option<Device>, Option<bool>), Tensor, zeros);
    op!("as_strided(Tensor(a) self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor(a)", CPU, (Tensor, Vec<SymInt>, Vec<SymInt>, Option<SymInt>), Tensor, as_strided);
    op!("view(Tensor(a) self, SymInt[] size) -> Tensor(a)", CPU, (Tensor, Vec<SymInt>), Tensor, view_op);
    op!(
        "reshape(Tensor(a) self, SymInt[] shape) -> Tensor(a)",
        CompositeImplicitAutograd,
        (Tensor, Vec<SymInt>),
        Tensor,
        reshape
    );
    op!(
        "expand(Tensor(a) self, SymInt[] size, *, bool implicit=False) -> Tensor(a)",
        CPU,
        (Tensor, Vec<SymInt>, bool),
        Tensor,
        expand
    );
    op!(
        "select.int(Tensor(a) self, int dim, SymInt index) -> Tensor(a)",
        CPU,
        (Tensor, i64, SymInt),
        Tensor,
        select
    );
    op!(
        "select_backward(Tensor grad_output, SymInt[] input_sizes, int dim, SymInt index) -> Tensor",
        CPU,
        (Tensor, Vec<SymInt>, i64, SymInt),
        Tensor,
        select_backward
    );
    op!("unbind.int(Tensor(a -> *) self, int dim=0) -> Tensor(a)[]", CPU, (Tensor, i64), Vec<Tensor>, unbind);
    op!("stack(Tensor[] tensors, int dim=0) -> Tensor", CPU, (Vec<Tensor>, i64), Tensor, stack);
    op!("detach(Tensor(a) self) -> Tensor(a)", CPU, T1, Tensor, detach);
    op!("ne.Tensor(Tensor self, Tensor other) -> Tensor", CPU, T2, Tensor, ne);
    op!("any(Tensor self) -> Tensor", CPU, T1, Tensor, any);
    op!("_local_scalar_dense(Tensor self) -> Scalar", CPU, T1, Scalar, item);
    op!("no_derivative(Tensor self) -> Tensor", CPU, T1, Tensor, no_derivative);
    op!("scale_by_running(Tensor self, Tensor(a!) running) -> Tensor", CPU, T2, Tensor, scale_by_running);
    lib.leak();
    autograd::init()
}
