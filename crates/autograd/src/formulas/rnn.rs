//! Helpers of the `rnn` operators' derivatives.

use c10::{GradMode, Result, Scalar, SymInt, Tensor};
use ops::at;
use ops::composite::rnn::layer_by_steps;

const GRU: i64 = 3;
const ONE: Scalar = Scalar::Int(1);

type Gradients = (Option<Tensor>, Option<Tensor>, Option<Tensor>, Option<Tensor>, Option<Tensor>);

/// `_rnn_layer`: of the gates, the first states, the weight and the bias.
#[allow(clippy::too_many_arguments)] // The operator has that many.
pub fn rnn_layer_backward(
    grads: &[Option<Tensor>],
    gates: &Tensor,
    hx: &Tensor,
    cx: Option<&Tensor>,
    w_hh: &Tensor,
    b_hh: Option<&Tensor>,
    mode: i64,
    reverse: bool,
    output: &Tensor,
    cells: &Tensor,
    kept: &Tensor,
    mask: &[bool],
) -> Result<Gradients> {
    let (grad_output, grad_cells) = (grads[0].as_ref(), grads[1].as_ref().filter(|_| cx.is_some()));
    if grad_output.is_none() && grad_cells.is_none() {
        return Ok((None, None, None, None, None));
    }
    if GradMode::is_enabled() {
        return through_steps(grad_output, grad_cells, [gates, hx, w_hh], [cx, b_hh], mode, reverse, mask);
    }
    let (d_gates, d_hidden_gates, d_hx, d_cx) =
        at::_rnn_layer_backward(grad_output, grad_cells, hx, cx, w_hh, output, cells, kept, mode, reverse)?;
    let d_hidden = if mode == GRU { &d_hidden_gates } else { &d_gates };
    let wanted = |i: usize| mask.get(i).copied().unwrap_or(false);
    let d_weight = wanted(3).then(|| weight_gradient(d_hidden, hx, output, reverse)).transpose()?;
    let d_bias = wanted(4).then(|| at::sum_dim_intlist(d_hidden, Some(&[0, 1]), false, None)).transpose()?;
    Ok((Some(d_gates), Some(d_hx), cx.map(|_| d_cx), d_weight, d_bias))
}

/// One product for all steps but the first, whose state is not among the outputs.
fn weight_gradient(d_gates: &Tensor, hx: &Tensor, output: &Tensor, reverse: bool) -> Result<Tensor> {
    let steps = d_gates.sym_size(0)?;
    let others = steps.sym_sub(&SymInt::ONE)?;
    let (first, rest, before) = if reverse {
        (others.clone(), SymInt::ZERO, SymInt::ONE)
    } else {
        (SymInt::ZERO, SymInt::ONE, SymInt::ZERO)
    };
    let d_first = at::select_int(d_gates, 0, &first)?;
    let sum = at::mm(&at::t(&d_first)?, hx)?;
    if others.guard_eq(&SymInt::ZERO)? {
        return Ok(sum);
    }
    let rows = |all: &Tensor, start: &SymInt| -> Result<Tensor> {
        let part = at::narrow(all, 0, start, &others)?;
        at::reshape(&part, &[SymInt::from(-1), part.sym_size(2)?])
    };
    at::addmm(&sum, &at::t(&rows(d_gates, &rest)?)?, &rows(output, &before)?, &ONE, &ONE)
}

/// Gradients that can be differentiated again: those of the same layer taken step by step.
fn through_steps(
    grad_output: Option<&Tensor>,
    grad_cells: Option<&Tensor>,
    [gates, hx, w_hh]: [&Tensor; 3],
    [cx, b_hh]: [Option<&Tensor>; 2],
    mode: i64,
    reverse: bool,
    mask: &[bool],
) -> Result<Gradients> {
    // Aliases: where an argument depends on another one, its gradient must not pass on to that.
    let given = [Some(gates), Some(hx), cx, Some(w_hh), b_hh];
    let mut aliases: [Option<Tensor>; 5] = Default::default();
    for (alias, tensor) in aliases.iter_mut().zip(given) {
        *alias = tensor.map(at::alias).transpose()?;
    }
    let [Some(gates), Some(hx), cx, Some(w_hh), b_hh] = &aliases else {
        c10::bail!(Internal, "_rnn_layer: an argument is gone")
    };
    let (output, cells) = layer_by_steps(gates, hx, cx.as_ref(), w_hh, b_hh.as_ref(), mode, reverse)?;
    let pairs = [(Some(output), grad_output), (cells, grad_cells)];
    let (outputs, grad_outputs): (Vec<Tensor>, Vec<Option<Tensor>>) =
        pairs.into_iter().filter_map(|(output, grad)| Some((output?, Some(grad?.clone())))).unzip();
    let wanted: Vec<usize> = (0..aliases.len())
        .filter(|&i| {
            mask.get(i) == Some(&true) && aliases[i].as_ref().is_some_and(|alias| alias.requires_grad())
        })
        .collect();
    let mut results: [Option<Tensor>; 5] = Default::default();
    if !wanted.is_empty() {
        let inputs: Vec<Tensor> = wanted.iter().filter_map(|&i| aliases[i].clone()).collect();
        let found = crate::grad(&outputs, &inputs, &grad_outputs, None, true, Some(true), false)?;
        for (&i, gradient) in wanted.iter().zip(found) {
            results[i] = gradient;
        }
    }
    let [d_gates, d_hx, d_cx, d_weight, d_bias] = results;
    Ok((d_gates, d_hx, d_cx, d_weight, d_bias))
}
