//! Composites of the `rnn` family: [cells], [layers] of them over a sequence, stacks of layers, and [packing](packed).

mod cells;
mod layers;
mod packed;

use c10::{bail, check, Result, SizeInt, SymInt, Tensor};

pub use cells::{gru_cell, lstm_cell, rnn_relu_cell, rnn_tanh_cell};
pub use layers::layer_by_steps;
pub use packed::{_pack_padded_sequence, _pad_packed_sequence};

use crate::at;
use cells::{Mode, State, Weights};
use layers::{run_layer, Sequence};

/// What a stack of layers is made of, besides its weights.
struct Stack {
    mode: Mode,
    has_biases: bool,
    num_layers: i64,
    dropout: f64,
    train: bool,
    bidirectional: bool,
}

/// The outputs of the last layer, and the states that each layer and direction ends in.
struct Outputs {
    sequence: Sequence,
    hy: Tensor,
    cy: Option<Tensor>,
}

/// The weights of each layer and direction, in the order in which PyTorch flattens them.
fn gather_weights(params: &[Tensor], has_biases: bool, has_projections: bool) -> Result<Vec<Weights<'_>>> {
    let each = 2 + 2 * usize::from(has_biases) + usize::from(has_projections);
    check!(params.len().is_multiple_of(each), "got an incorrect number of RNN parameters");
    params
        .chunks_exact(each)
        .map(|chunk| match (has_biases, has_projections, chunk) {
            (true, true, [ih, hh, bias_ih, bias_hh, hr]) => {
                Ok(Weights { ih, hh, bias_ih: Some(bias_ih), bias_hh: Some(bias_hh), hr: Some(hr) })
            }
            (true, false, [ih, hh, bias_ih, bias_hh]) => {
                Ok(Weights { ih, hh, bias_ih: Some(bias_ih), bias_hh: Some(bias_hh), hr: None })
            }
            (false, true, [ih, hh, hr]) => Ok(Weights { ih, hh, bias_ih: None, bias_hh: None, hr: Some(hr) }),
            (false, false, [ih, hh]) => Ok(Weights { ih, hh, bias_ih: None, bias_hh: None, hr: None }),
            _ => bail!(Internal, "got an incorrect number of RNN parameters"),
        })
        .collect()
}

fn check_attributes(input: &Tensor, params: &[Tensor], hidden: &[Tensor]) -> Result<()> {
    for (name, tensors) in [("hidden", hidden), ("parameter", params)] {
        for tensor in tensors {
            check!(
                input.device() == tensor.device(),
                "Input and {name} tensors are not at the same device, found input tensor at {} and {name} tensor at {}",
                input.device(),
                tensor.device()
            );
            check!(
                input.dtype() == tensor.dtype(),
                "Input and {name} tensors are not the same dtype, found input tensor with {} and {name} tensor with {}",
                input.dtype().short_name(),
                tensor.dtype().short_name()
            );
        }
    }
    Ok(())
}

impl Stack {
    /// Runs the layers one after the other; those of two directions have their outputs side by side.
    fn run(
        &self,
        mut sequence: Sequence,
        hx: &Tensor,
        cx: Option<&Tensor>,
        params: &[Tensor],
    ) -> Result<Outputs> {
        let has_projections = match cx {
            Some(cx) => !hx.sym_size(-1)?.expect_eq(&cx.sym_size(-1)?)?,
            None => false,
        };
        let weights = gather_weights(params, self.has_biases, has_projections)?;
        let directions = if self.bidirectional { 2 } else { 1 };
        let count = usize::try_from(self.num_layers).unwrap_or(0) * directions;
        check!(
            count > 0 && weights.len() == count && hx.dim() == 3 && cx.is_none_or(|cx| cx.dim() == 3),
            "RNN: expected hidden states of 3 dimensions and the parameters of {} layers with {directions} direction(s), got \
             {} dimensions and parameters of {}",
            self.num_layers,
            hx.dim(),
            weights.len() / directions
        );
        for state in std::iter::once(hx).chain(cx) {
            let states = state.sym_size(0)?;
            check!(
                states.expect_eq(&SymInt::from(count as i64))?,
                "RNN: expected a hidden state for each of {count} layers and directions, got {states}"
            );
        }
        let mut ends: Vec<State> = Vec::with_capacity(count);
        for layer in 0..count / directions {
            let mut outputs = Vec::with_capacity(directions);
            for direction in 0..directions {
                let index = layer * directions + direction;
                let at = SymInt::from(index as i64);
                let start = State {
                    h: at::select_int(hx, 0, &at)?,
                    c: cx.map(|cx| at::select_int(cx, 0, &at)).transpose()?,
                };
                let (output, end) = run_layer(self.mode, &sequence, start, &weights[index], direction == 1)?;
                outputs.push(output);
                ends.push(end);
            }
            let joined = match &outputs[..] {
                [one] => one.clone(),
                several => at::cat(several, -1)?,
            };
            let last = (layer + 1) * directions == count;
            let dropped = if self.dropout != 0.0 && self.train && !last {
                at::dropout(&joined, self.dropout, true)?
            } else {
                joined
            };
            sequence = sequence.with_values(dropped);
        }
        let stacked = |states: Vec<Tensor>| at::stack(&states, 0);
        let cy = match cx {
            Some(_) => Some(stacked(ends.iter().filter_map(|end| end.c.clone()).collect())?),
            None => None,
        };
        Ok(Outputs { sequence, hy: stacked(ends.into_iter().map(|end| end.h).collect())?, cy })
    }

    fn run_padded(
        &self,
        input: &Tensor,
        hx: &Tensor,
        cx: Option<&Tensor>,
        params: &[Tensor],
        batch_first: bool,
    ) -> Result<(Tensor, Tensor, Option<Tensor>)> {
        check!(input.dim() == 3, "RNN: expected an input of 3 dimensions, got {}", input.dim());
        let time_first = if batch_first { at::transpose_int(input, 0, 1)? } else { input.clone() };
        let result = self.run(Sequence::Padded(time_first), hx, cx, params)?;
        let output = result.sequence.into_values();
        let output = if batch_first { at::transpose_int(&output, 0, 1)? } else { output };
        Ok((output, result.hy, result.cy))
    }

    fn run_packed(
        &self,
        data: &Tensor,
        batch_sizes: &Tensor,
        hx: &Tensor,
        cx: Option<&Tensor>,
        params: &[Tensor],
    ) -> Result<(Tensor, Tensor, Option<Tensor>)> {
        let result = self.run(Sequence::packed(data, batch_sizes, hx)?, hx, cx, params)?;
        Ok((result.sequence.into_values(), result.hy, result.cy))
    }
}

/// The operators on whole sequences whose state is one tensor.
macro_rules! one_state {
    ($($input:ident, $data:ident: $mode:ident, $name:literal);* $(;)?) => {$(
        #[doc = concat!("`aten::", $name, ".input`")]
        #[allow(clippy::too_many_arguments)]
        pub fn $input(
            input: &Tensor,
            hx: &Tensor,
            params: &[Tensor],
            has_biases: bool,
            num_layers: i64,
            dropout: f64,
            train: bool,
            bidirectional: bool,
            batch_first: bool,
        ) -> Result<(Tensor, Tensor)> {
            check_attributes(input, params, std::slice::from_ref(hx))?;
            let stack = Stack { mode: Mode::$mode, has_biases, num_layers, dropout, train, bidirectional };
            let (output, hy, _) = stack.run_padded(input, hx, None, params, batch_first)?;
            Ok((output, hy))
        }

        #[doc = concat!("`aten::", $name, ".data`")]
        #[allow(clippy::too_many_arguments)]
        pub fn $data(
            data: &Tensor,
            batch_sizes: &Tensor,
            hx: &Tensor,
            params: &[Tensor],
            has_biases: bool,
            num_layers: i64,
            dropout: f64,
            train: bool,
            bidirectional: bool,
        ) -> Result<(Tensor, Tensor)> {
            check_attributes(data, params, std::slice::from_ref(hx))?;
            let stack = Stack { mode: Mode::$mode, has_biases, num_layers, dropout, train, bidirectional };
            let (output, hy, _) = stack.run_packed(data, batch_sizes, hx, None, params)?;
            Ok((output, hy))
        }
    )*};
}

one_state! {
    rnn_tanh_input, rnn_tanh_data: Tanh, "rnn_tanh";
    rnn_relu_input, rnn_relu_data: Relu, "rnn_relu";
    gru_input, gru_data: Gru, "gru";
}

fn two_states(hx: &[Tensor]) -> Result<(&Tensor, &Tensor)> {
    match hx {
        [h, c] => Ok((h, c)),
        _ => bail!(Runtime, "lstm expects two hidden states"),
    }
}

fn with_cell_state(result: (Tensor, Tensor, Option<Tensor>)) -> Result<(Tensor, Tensor, Tensor)> {
    match result {
        (output, hy, Some(cy)) => Ok((output, hy, cy)),
        _ => bail!(Internal, "lstm: no cell state"),
    }
}

/// `aten::lstm.input`
#[allow(clippy::too_many_arguments)]
pub fn lstm_input(
    input: &Tensor,
    hx: &[Tensor],
    params: &[Tensor],
    has_biases: bool,
    num_layers: i64,
    dropout: f64,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> Result<(Tensor, Tensor, Tensor)> {
    let (h, c) = two_states(hx)?;
    check_attributes(input, params, hx)?;
    let stack = Stack { mode: Mode::Lstm, has_biases, num_layers, dropout, train, bidirectional };
    with_cell_state(stack.run_padded(input, h, Some(c), params, batch_first)?)
}

/// `aten::lstm.data`
#[allow(clippy::too_many_arguments)]
pub fn lstm_data(
    data: &Tensor,
    batch_sizes: &Tensor,
    hx: &[Tensor],
    params: &[Tensor],
    has_biases: bool,
    num_layers: i64,
    dropout: f64,
    train: bool,
    bidirectional: bool,
) -> Result<(Tensor, Tensor, Tensor)> {
    let (h, c) = two_states(hx)?;
    check_attributes(data, params, hx)?;
    let stack = Stack { mode: Mode::Lstm, has_biases, num_layers, dropout, train, bidirectional };
    with_cell_state(stack.run_packed(data, batch_sizes, h, Some(c), params)?)
}
