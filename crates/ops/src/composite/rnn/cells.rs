//! One step of a recurrent layer.

use c10::{bail, check, Result, Scalar, SizeInt, Tensor};

use crate::at;

const ONE: Scalar = Scalar::Int(1);

/// What kind of step it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Mode {
    /// `tanh` of the sum of both maps.
    Tanh,
    /// The same with `relu`.
    Relu,
    /// Cho et al., "Learning Phrase Representations using RNN Encoder-Decoder", with the reset gate after the map.
    Gru,
    /// Hochreiter and Schmidhuber, "Long Short-Term Memory", with a forget gate and maybe a projection of the output.
    Lstm,
}

impl Mode {
    /// What `_rnn_layer` calls it: cuDNN's number.
    pub(super) fn number(self) -> i64 {
        match self {
            Mode::Relu => 0,
            Mode::Tanh => 1,
            Mode::Lstm => 2,
            Mode::Gru => 3,
        }
    }

    /// The inverse of [`number`](Self::number).
    pub(super) fn of_number(number: i64) -> Result<Mode> {
        Ok(match number {
            0 => Mode::Relu,
            1 => Mode::Tanh,
            2 => Mode::Lstm,
            3 => Mode::Gru,
            _ => bail!(Runtime, "_rnn_layer: expected a mode of 0 to 3, got {number}"),
        })
    }

    /// The gates: how many times the hidden size the maps have rows.
    pub(super) fn gates(self) -> i64 {
        match self {
            Mode::Tanh | Mode::Relu => 1,
            Mode::Gru => 3,
            Mode::Lstm => 4,
        }
    }
}

/// The weights of a cell: of its input, of its hidden state, and of the projection of its output.
pub(super) struct Weights<'a> {
    pub(super) ih: &'a Tensor,
    pub(super) hh: &'a Tensor,
    pub(super) bias_ih: Option<&'a Tensor>,
    pub(super) bias_hh: Option<&'a Tensor>,
    pub(super) hr: Option<&'a Tensor>,
}

/// The state between two steps; only an LSTM's has a cell.
#[derive(Clone)]
pub(super) struct State {
    pub(super) h: Tensor,
    pub(super) c: Option<Tensor>,
}

/// The next state, given the input's part of the gates.
pub(super) fn step(mode: Mode, input_gates: &Tensor, state: &State, weights: &Weights<'_>) -> Result<State> {
    let hidden_gates = at::linear(&state.h, weights.hh, weights.bias_hh)?;
    match mode {
        Mode::Tanh => Ok(State { h: at::tanh(&at::add_tensor(input_gates, &hidden_gates, &ONE)?)?, c: None }),
        Mode::Relu => Ok(State { h: at::relu(&at::add_tensor(input_gates, &hidden_gates, &ONE)?)?, c: None }),
        Mode::Gru => {
            let (from_input, from_hidden) =
                (at::chunk(input_gates, 3, -1)?, at::chunk(&hidden_gates, 3, -1)?);
            let ([xr, xz, xn], [hr, hz, hn]) = (&from_input[..], &from_hidden[..]) else {
                bail!(Runtime, "gru: the gates cannot be divided into three");
            };
            let reset = at::sigmoid(&at::add_tensor(xr, hr, &ONE)?)?;
            let update = at::sigmoid(&at::add_tensor(xz, hz, &ONE)?)?;
            let new = at::tanh(&at::addcmul(xn, &reset, hn, &ONE)?)?;
            let h = at::add_tensor(
                &at::mul_tensor(&at::sub_tensor(&state.h, &new, &ONE)?, &update)?,
                &new,
                &ONE,
            )?;
            Ok(State { h, c: None })
        }
        Mode::Lstm => {
            let Some(c) = &state.c else { bail!(Internal, "lstm: no cell state") };
            let gates = at::chunk(&at::add_tensor(input_gates, &hidden_gates, &ONE)?, 4, -1)?;
            let [input, forget, cell, output] = &gates[..] else {
                bail!(Runtime, "lstm: the gates cannot be divided into four");
            };
            let kept = at::mul_tensor(&at::sigmoid(forget)?, c)?;
            let c = at::addcmul(&kept, &at::sigmoid(input)?, &at::tanh(cell)?, &ONE)?;
            let h = at::mul_tensor(&at::sigmoid(output)?, &at::tanh(&c)?)?;
            let h = match weights.hr {
                Some(hr) => at::linear(&h, hr, None)?,
                None => h,
            };
            Ok(State { h, c: Some(c) })
        }
    }
}

/// Checks a cell's operands, and takes a step.
fn cell(mode: Mode, input: &Tensor, state: &State, weights: &Weights<'_>) -> Result<State> {
    let (expected, got) = (weights.ih.sym_size(1)?, input.sym_size(-1)?);
    check!(got.expect_eq(&expected)?, "input has inconsistent input_size: got {got} expected {expected}");
    for (index, hidden) in [(0, Some(&state.h)), (1, state.c.as_ref())] {
        let Some(hidden) = hidden else { continue };
        let (rows, batch) = (hidden.sym_size(0)?, input.sym_size(0)?);
        check!(
            input.dim() != 2 || rows.expect_eq(&batch)?,
            "Input batch size {batch} doesn't match hidden{index} batch size {rows}"
        );
        let (size, hidden_size) = (hidden.sym_size(-1)?, weights.hh.sym_size(1)?);
        check!(
            size.expect_eq(&hidden_size)?,
            "hidden{index} has inconsistent hidden_size: got {size}, expected {hidden_size}"
        );
    }
    step(mode, &at::linear(input, weights.ih, weights.bias_ih)?, state, weights)
}

/// The cells whose state is one tensor.
macro_rules! one_state {
    ($($name:ident: $mode:ident);* $(;)?) => {$(
        #[doc = concat!("`aten::", stringify!($name), "`")]
        pub fn $name(
            input: &Tensor,
            hx: &Tensor,
            w_ih: &Tensor,
            w_hh: &Tensor,
            b_ih: Option<&Tensor>,
            b_hh: Option<&Tensor>,
        ) -> Result<Tensor> {
            let weights = Weights { ih: w_ih, hh: w_hh, bias_ih: b_ih, bias_hh: b_hh, hr: None };
            Ok(cell(Mode::$mode, input, &State { h: hx.clone(), c: None }, &weights)?.h)
        }
    )*};
}

one_state! {
    rnn_tanh_cell: Tanh;
    rnn_relu_cell: Relu;
    gru_cell: Gru;
}

/// `aten::lstm_cell`
pub fn lstm_cell(
    input: &Tensor,
    hx: &[Tensor],
    w_ih: &Tensor,
    w_hh: &Tensor,
    b_ih: Option<&Tensor>,
    b_hh: Option<&Tensor>,
) -> Result<(Tensor, Tensor)> {
    let [h, c] = hx else { bail!(Runtime, "lstm_cell expects two hidden states") };
    let weights = Weights { ih: w_ih, hh: w_hh, bias_ih: b_ih, bias_hh: b_hh, hr: None };
    let next = cell(Mode::Lstm, input, &State { h: h.clone(), c: Some(c.clone()) }, &weights)?;
    match next.c {
        Some(c) => Ok((next.h, c)),
        None => bail!(Internal, "lstm_cell: no cell state"),
    }
}
