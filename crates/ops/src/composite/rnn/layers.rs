//! A layer of cells over a sequence, in one direction.
//!
//! The input's part of all gates is one product. What is left for each step is the hidden state's part.

use std::sync::Arc;

use c10::{bail, check, Result, ScalarType, SizeInt, SymInt, Tensor};

use super::cells::{step, Mode, State, Weights};
use super::packed::lengths_of;
use crate::at;

/// The values of a sequence at every time.
pub(super) enum Sequence {
    /// `(time, batch, feature)`
    Padded(Tensor),
    /// `(all elements, feature)`: at each time those of the sequences that are not over yet, the longest first.
    Packed { data: Tensor, batch_sizes: Arc<[i64]> },
}

impl Sequence {
    /// A packed sequence; its sizes are checked.
    pub(super) fn packed(data: &Tensor, batch_sizes: &Tensor, hx: &Tensor) -> Result<Sequence> {
        let sizes = lengths_of(batch_sizes, "batch_sizes")?;
        let total = sizes.iter().try_fold(0i64, |sum, &size| sum.checked_add(size));
        check!(
            !sizes.is_empty() && sizes.iter().all(|&size| size > 0) && sizes.is_sorted_by(|a, b| a >= b),
            "RNN: batch_sizes must be positive and never increase, got {sizes:?}"
        );
        check!(data.dim() == 2, "RNN: expected packed data of 2 dimensions, got {}", data.dim());
        let (rows, batch) = (data.sym_size(0)?, hx.sym_size(1)?);
        check!(
            total.is_some_and(|total| rows.maybe_as_int() == Some(total)),
            "RNN: expected batch_sizes whose sum is the number of rows of the data, {rows}, got {sizes:?}"
        );
        check!(
            batch.maybe_as_int() == Some(sizes[0]),
            "RNN: expected hidden states of {} sequences, got {batch}",
            sizes[0]
        );
        Ok(Sequence::Packed { data: data.clone(), batch_sizes: sizes.into() })
    }

    /// The same sequence with other values.
    pub(super) fn with_values(&self, values: Tensor) -> Sequence {
        match self {
            Sequence::Padded(_) => Sequence::Padded(values),
            Sequence::Packed { batch_sizes, .. } => {
                Sequence::Packed { data: values, batch_sizes: batch_sizes.clone() }
            }
        }
    }

    /// The values.
    pub(super) fn into_values(self) -> Tensor {
        match self {
            Sequence::Padded(values) | Sequence::Packed { data: values, .. } => values,
        }
    }
}

/// The outputs at every time, and the state after the last step.
pub(super) fn run_layer(
    mode: Mode,
    sequence: &Sequence,
    start: State,
    weights: &Weights<'_>,
    reverse: bool,
) -> Result<(Tensor, State)> {
    match sequence {
        Sequence::Padded(input) => {
            let gates = input_gates(mode, input, weights)?;
            padded(mode, &gates, start, weights, reverse)
        }
        Sequence::Packed { data, batch_sizes } => {
            let gates = input_gates(mode, data, weights)?;
            let steps = at::split_with_sizes(
                &gates,
                &batch_sizes.iter().map(|&size| SymInt::from(size)).collect::<Vec<_>>(),
                0,
            )?;
            if reverse {
                packed_backwards(mode, &steps, batch_sizes, start, weights)
            } else {
                packed(mode, &steps, batch_sizes, start, weights)
            }
        }
    }
}

fn input_gates(mode: Mode, input: &Tensor, weights: &Weights<'_>) -> Result<Tensor> {
    check!(
        weights.ih.dim() == 2 && weights.hh.dim() == 2,
        "RNN: expected weights of 2 dimensions, got {} and {}",
        weights.ih.dim(),
        weights.hh.dim()
    );
    let (expected, got) = (weights.ih.sym_size(1)?, input.sym_size(-1)?);
    check!(
        got.expect_eq(&expected)?,
        "input.size(-1) must be equal to input_size. Expected {expected}, got {got}"
    );
    let (rows, hidden_rows) = (weights.ih.sym_size(0)?, weights.hh.sym_size(0)?);
    check!(
        rows.expect_eq(&hidden_rows)?
            && rows.sym_mod(&SymInt::from(mode.gates()))?.expect_eq(&SymInt::ZERO)?,
        "RNN: expected both weights to have {} rows for each hidden element, got {rows} and {hidden_rows}",
        mode.gates()
    );
    at::linear(input, weights.ih, weights.bias_ih)
}

/// The states at every time, in the order of time.
fn states_of(
    mode: Mode,
    gates: &Tensor,
    start: State,
    weights: &Weights<'_>,
    reverse: bool,
) -> Result<Vec<State>> {
    let steps = at::unbind_int(gates, 0)?;
    check!(!steps.is_empty(), "Expected sequence length to be larger than 0 in RNN");
    let mut states = Vec::with_capacity(steps.len());
    let mut state = start;
    let mut advance = |gates: &Tensor| -> Result<()> {
        state = step(mode, gates, &state, weights)?;
        states.push(state.clone());
        Ok(())
    };
    if reverse {
        steps.iter().rev().try_for_each(&mut advance)?;
        states.reverse();
    } else {
        steps.iter().try_for_each(&mut advance)?;
    }
    Ok(states)
}

fn stacked(states: &[State]) -> Result<(Tensor, Option<Tensor>)> {
    let hs: Vec<Tensor> = states.iter().map(|state| state.h.clone()).collect();
    let cs: Vec<Tensor> = states.iter().filter_map(|state| state.c.clone()).collect();
    Ok((at::stack(&hs, 0)?, if cs.is_empty() { None } else { Some(at::stack(&cs, 0)?) }))
}

fn padded(
    mode: Mode,
    gates: &Tensor,
    start: State,
    weights: &Weights<'_>,
    reverse: bool,
) -> Result<(Tensor, State)> {
    if has_kernel(gates, weights)? {
        let (mode, cx) = (mode.number(), start.c.as_ref());
        let (output, cells, _) =
            at::_rnn_layer(gates, &start.h, cx, weights.hh, weights.bias_hh, mode, reverse)?;
        let last = SymInt::from(if reverse { 0 } else { -1 });
        let end = |all: &Tensor| at::select_int(all, 0, &last);
        let state = State { h: end(&output)?, c: cx.map(|_| end(&cells)).transpose()? };
        return Ok((output, state));
    }
    let states = states_of(mode, gates, start, weights, reverse)?;
    let end = if reverse { states.first() } else { states.last() };
    let Some(end) = end else { bail!(Internal, "RNN: no step") };
    let hs: Vec<Tensor> = states.iter().map(|state| state.h.clone()).collect();
    Ok((at::stack(&hs, 0)?, end.clone()))
}

/// Whether `_rnn_layer` takes the layer: on the CPU, in the dtypes that it has, with something to do.
fn has_kernel(gates: &Tensor, weights: &Weights<'_>) -> Result<bool> {
    let has = gates.is_cpu()
        && matches!(gates.dtype(), ScalarType::Float | ScalarType::Double)
        && weights.hr.is_none()
        && !gates.has_symbolic_sizes_strides();
    Ok(has && gates.numel()? > 0)
}

/// `_rnn_layer` in differentiable steps: all hidden states, and all cells of an LSTM.
#[allow(clippy::too_many_arguments)] // The operator has that many.
pub fn layer_by_steps(
    gates: &Tensor,
    hx: &Tensor,
    cx: Option<&Tensor>,
    w_hh: &Tensor,
    b_hh: Option<&Tensor>,
    mode: i64,
    reverse: bool,
) -> Result<(Tensor, Option<Tensor>)> {
    let weights = Weights { ih: w_hh, hh: w_hh, bias_ih: None, bias_hh: b_hh, hr: None };
    let start = State { h: hx.clone(), c: cx.cloned() };
    stacked(&states_of(Mode::of_number(mode)?, gates, start, &weights, reverse)?)
}

fn rows(tensor: &Tensor, from: i64, to: i64) -> Result<Tensor> {
    at::narrow(tensor, 0, &SymInt::from(from), &SymInt::from(to - from))
}

impl State {
    fn rows(&self, from: i64, to: i64) -> Result<State> {
        Ok(State { h: rows(&self.h, from, to)?, c: self.c.as_ref().map(|c| rows(c, from, to)).transpose()? })
    }

    /// The states of several groups of sequences, one below the other.
    fn joined(parts: &[State]) -> Result<State> {
        let hs: Vec<Tensor> = parts.iter().map(|part| part.h.clone()).collect();
        let cs: Vec<Tensor> = parts.iter().filter_map(|part| part.c.clone()).collect();
        Ok(State { h: at::cat(&hs, 0)?, c: if cs.is_empty() { None } else { Some(at::cat(&cs, 0)?) } })
    }
}

/// Sequences that end leave the batch, from its lower end on.
fn packed(
    mode: Mode,
    steps: &[Tensor],
    batch_sizes: &[i64],
    start: State,
    weights: &Weights<'_>,
) -> Result<(Tensor, State)> {
    let mut outputs = Vec::with_capacity(steps.len());
    let mut ended: Vec<State> = Vec::new();
    let (mut state, mut last) = (start, batch_sizes[0]);
    for (gates, &size) in steps.iter().zip(batch_sizes) {
        if size < last {
            ended.push(state.rows(size, last)?);
            state = state.rows(0, size)?;
            last = size;
        }
        state = step(mode, gates, &state, weights)?;
        outputs.push(state.h.clone());
    }
    ended.push(state);
    ended.reverse();
    Ok((at::cat(&outputs, 0)?, State::joined(&ended)?))
}

/// From the last time on, sequences enter the batch where they end.
fn packed_backwards(
    mode: Mode,
    steps: &[Tensor],
    batch_sizes: &[i64],
    start: State,
    weights: &Weights<'_>,
) -> Result<(Tensor, State)> {
    let mut outputs = Vec::with_capacity(steps.len());
    let mut last = batch_sizes[batch_sizes.len() - 1];
    let mut state = start.rows(0, last)?;
    for (gates, &size) in steps.iter().zip(batch_sizes).rev() {
        if size > last {
            state = State::joined(&[state, start.rows(last, size)?])?;
            last = size;
        }
        state = step(mode, gates, &state, weights)?;
        outputs.push(state.h.clone());
    }
    outputs.reverse();
    Ok((at::cat(&outputs, 0)?, state))
}
