//! Gradients of tensors with symbolic sizes.

// A test states its case; what fails is named by the assertion.
#![allow(clippy::unwrap_used)]

#[allow(dead_code)] // One file for several tests.
#[path = "../../c10/tests/support/shape_env.rs"]
mod shape_env;

use ptr::{at, Config, Device, RequiresGrad, Result, Scalar, SymInt, Tensor};
use shape_env::{hints, ShapeEnv};

const ONE: Scalar = Scalar::Int(1);

fn leaf(sizes: &[SymInt]) -> Result<Tensor> {
    at::empty_memory_format(sizes, None, None, Some(Device::META), None, None)?.set_requires_grad(true)
}

fn grad_of(leaf: &Tensor) -> Tensor {
    ptr::grad(leaf).unwrap()
}

#[test]
fn a_small_graph_needs_no_guard() -> Result<()> {
    ptr::init(Config::new())?;
    let env = ShapeEnv::new();
    let (n, c, m) = (env.size("n", 4), env.size("c", 3), env.size("m", 2));
    let (x, weight, bias) =
        (leaf(&[n.clone(), c.clone()])?, leaf(&[c.clone(), m.clone()])?, leaf(&[m.clone()])?);
    let scale = leaf(&[n.clone(), SymInt::from(1)])?;

    let product = at::mm(&x, &weight)?;
    let shifted = at::add_tensor(&product, &bias, &ONE)?;
    let scaled = at::mul_tensor(&shifted, &at::expand(&scale, &[n.clone(), m.clone()], false)?)?;
    let flat = at::view(&scaled, &[SymInt::from(-1)])?;
    let rows = at::sum_dim_intlist(&at::view(&flat, &[n.clone(), m.clone()])?, Some(&[1]), false, None)?;
    ptr::backward(&at::sum(&rows, None)?)?;

    for leaf in [&x, &weight, &bias, &scale] {
        let grad = grad_of(leaf);
        assert_eq!(hints(&grad.sym_sizes()), hints(&leaf.sym_sizes()));
        assert!(grad.has_symbolic_sizes_strides());
    }
    assert!(env.guards().is_empty(), "{:?}", env.guards());
    assert!(env.expectations().is_empty(), "{:?}", env.expectations());
    Ok(())
}

#[test]
fn views_and_reductions_give_gradients_of_the_inputs_shape() -> Result<()> {
    ptr::init(Config::new())?;
    let env = ShapeEnv::new();
    let (n, c) = (env.size("n", 4), env.size("c", 6));
    type Case = fn(&Tensor) -> Result<Tensor>;
    let cases: &[(&str, Case)] = &[
        ("slice", |x| at::slice_tensor(x, 0, Some(&1.into()), None, &2.into())),
        ("select", |x| at::select_int(x, 1, &2.into())),
        ("transpose", |x| at::transpose_int(x, 0, 1)),
        ("unsqueeze", |x| at::unsqueeze(x, 0)),
        ("diagonal", |x| at::diagonal(x, 1, 0, 1)),
        ("reshape", |x| at::reshape(&at::t(x)?, &[(-1).into()])),
        ("narrow", |x| at::narrow(x, 1, &1.into(), &3.into())),
        ("mean", |x| at::mean_dim(x, Some(&[0]), true, None)),
        ("softmax", |x| at::softmax_int(x, 1, None)),
        ("cat", |x| at::cat(&[x.clone(), at::exp(x)?], 1)),
        ("split", |x| Ok(at::split_tensor(x, &2.into(), 0)?.swap_remove(1))),
        ("unfold", |x| at::unfold(x, 1, 2, 1)),
        ("amax", |x| at::amax(x, &[1], false)),
        ("layer_norm", |x| at::layer_norm(x, &[x.sym_size(1)?], None, None, 1e-5, false)),
        ("clone", |x| at::clone(x, None)),
        ("sum_to_size", |x| at::sum_to_size(x, &[x.sym_size(1)?])),
        ("broadcast", |x| at::mul_tensor(x, &at::select_int(x, 0, &0.into())?)),
        ("as_strided", |x| {
            at::as_strided(
                x,
                &[x.sym_size(1)?, x.sym_size(0)?],
                &x.sym_strides().into_iter().rev().collect::<Vec<_>>(),
                None,
            )
        }),
        ("matmul", |x| at::matmul(&at::unsqueeze(x, 0)?, &at::t(x)?)),
    ];
    for (name, case) in cases {
        let x = leaf(&[n.clone(), c.clone()])?;
        let result = case(&x).and_then(|y| ptr::backward(&at::sum(&y, None)?));
        assert!(result.is_ok(), "{name}: {:?}", result.err());
        let grad = grad_of(&x);
        assert_eq!(hints(&grad.sym_sizes()), [4, 6], "{name}");
        assert_eq!(hints(&grad.sym_strides()), [6, 1], "{name}");
    }
    Ok(())
}
