//! Meta functions of the `rnn` operators.

use c10::{check, Result, SizeInt, SizeVector, Tensor, TensorOptions};
use iter::StructuredOutputs;

/// The gates of each mode, numbered as cuDNN does: relu, tanh, LSTM, GRU.
fn gates_of(name: &str, mode: i64) -> Result<i64> {
    check!((0..=3).contains(&mode), "{name}: expected a mode of 0 to 3, got {mode}");
    Ok([1, 1, 4, 3][mode as usize])
}

const LSTM: i64 = 2;

fn check_sizes<I: SizeInt>(
    name: &str,
    argument: &str,
    tensor: &Tensor,
    like: &Tensor,
    expected: &[I],
) -> Result<()> {
    let sizes = I::sizes_of(tensor)?;
    check!(
        I::expect_same(&sizes, expected)?,
        "{name}: expected {argument} of sizes {expected:?}, got {:?}",
        &sizes[..]
    );
    check!(
        tensor.dtype() == like.dtype(),
        "{name}: expected {argument} of dtype {}, got {}",
        like.dtype(),
        tensor.dtype()
    );
    Ok(())
}

/// `_rnn_layer`: all hidden states, all cells of an LSTM, and four values of each gate of an LSTM or GRU.
#[allow(clippy::too_many_arguments)] // The operator has that many.
pub fn rnn_layer_meta<I: SizeInt>(
    outs: &mut StructuredOutputs,
    gates: &Tensor,
    hx: &Tensor,
    cx: Option<&Tensor>,
    w_hh: &Tensor,
    b_hh: Option<&Tensor>,
    mode: i64,
    _reverse: bool,
) -> Result<()> {
    let name = "_rnn_layer";
    let count = gates_of(name, mode)?;
    let (sizes, state) = (I::sizes_of(gates)?, I::sizes_of(hx)?);
    check!(
        sizes.len() == 3 && state.len() == 2,
        "{name}: expected gates of 3 and a state of 2 dimensions, got sizes {:?} and {:?}",
        &sizes[..],
        &state[..]
    );
    let (steps, batch, hidden) = (&sizes[0], &sizes[1], &state[1]);
    let width = I::from_sym(&hidden.to_sym().sym_mul(&c10::SymInt::from(count))?)?;
    check_sizes::<I>(name, "gates", gates, gates, &[steps.clone(), batch.clone(), width.clone()])?;
    check_sizes::<I>(name, "hx", hx, gates, &[batch.clone(), hidden.clone()])?;
    check_sizes::<I>(name, "w_hh", w_hh, gates, &[width.clone(), hidden.clone()])?;
    if let Some(bias) = b_hh {
        check_sizes::<I>(name, "b_hh", bias, gates, &[width])?;
    }
    check!(cx.is_some() == (mode == LSTM), "{name}: a cell state is what an LSTM has, and nothing else");
    if let Some(cx) = cx {
        check_sizes::<I>(name, "cx", cx, gates, &[batch.clone(), hidden.clone()])?;
    }
    let options = TensorOptions::new().device(gates.device()).dtype(gates.dtype());
    let all = [steps.clone(), batch.clone(), hidden.clone()];
    let none: SizeVector<I> = I::to_vector(&[I::ZERO]);
    let four = I::from_sym(&hidden.to_sym().sym_mul(&c10::SymInt::from(4))?)?;
    outs.set_output_contiguous(0, &all, options)?;
    outs.set_output_contiguous(1, if mode == LSTM { &all } else { &none }, options)?;
    let kept = [steps.clone(), batch.clone(), four];
    outs.set_output_contiguous(2, if mode >= LSTM { &kept } else { &none }, options)
}

/// `_rnn_layer_backward`: gradients of the gates, of the hidden state's part of a GRU's gates, and of the first states.
#[allow(clippy::too_many_arguments)] // The operator has that many.
pub fn rnn_layer_backward_meta<I: SizeInt>(
    outs: &mut StructuredOutputs,
    grad_output: Option<&Tensor>,
    grad_cells: Option<&Tensor>,
    hx: &Tensor,
    cx: Option<&Tensor>,
    w_hh: &Tensor,
    output: &Tensor,
    cells: &Tensor,
    kept: &Tensor,
    mode: i64,
    _reverse: bool,
) -> Result<()> {
    let name = "_rnn_layer_backward";
    let count = gates_of(name, mode)?;
    let all = I::sizes_of(output)?;
    check!(all.len() == 3, "{name}: expected an output of 3 dimensions, got sizes {:?}", &all[..]);
    let (steps, batch, hidden) = (&all[0], &all[1], &all[2]);
    let times = |count: i64| I::from_sym(&hidden.to_sym().sym_mul(&c10::SymInt::from(count))?);
    let width = times(count)?;
    let state = [batch.clone(), hidden.clone()];
    check_sizes::<I>(name, "hx", hx, output, &state)?;
    check_sizes::<I>(name, "w_hh", w_hh, output, &[width.clone(), hidden.clone()])?;
    for (argument, grad) in [("grad_output", grad_output), ("grad_cells", grad_cells)] {
        if let Some(grad) = grad {
            check_sizes::<I>(name, argument, grad, output, &all)?;
        }
    }
    let lstm = mode == LSTM;
    check!(
        cx.is_some() == lstm && (lstm || grad_cells.is_none()),
        "{name}: a cell state is what an LSTM has, and nothing else"
    );
    if let Some(cx) = cx {
        check_sizes::<I>(name, "cx", cx, output, &state)?;
        check_sizes::<I>(name, "cells", cells, output, &all)?;
    }
    if mode >= LSTM {
        check_sizes::<I>(name, "kept", kept, output, &[steps.clone(), batch.clone(), times(4)?])?;
    }
    let options = TensorOptions::new().device(output.device()).dtype(output.dtype());
    let none: SizeVector<I> = I::to_vector(&[I::ZERO]);
    let gates = [steps.clone(), batch.clone(), width];
    outs.set_output_contiguous(0, &gates, options)?;
    outs.set_output_contiguous(1, if mode > LSTM { &gates } else { &none }, options)?;
    outs.set_output_contiguous(2, &state, options)?;
    outs.set_output_contiguous(3, if lstm { &state } else { &none }, options)
}
