//! `_rnn_layer`.

use c10::{bail, Element, Result, Tensor};
use iter::parallel::{parallel_for_result, GRAIN_SIZE};

use super::steps::{gru_step, lstm_step, relu_step, tanh_step};
use super::{Layer, Mode, Rows};
use crate::dense::{deliver, dense, writable};
use crate::dispatch::dispatch;
use crate::linalg::gemm::gemm;
use crate::linalg::matrix::Matrix;
use crate::linalg::LinalgElement;
use crate::registration::register;
use crate::vec::math::{Real, Tables};

pub(super) fn register() {
    register! {
        rnn_layer_kernel: fn(&Tensor, &Tensor, Option<&Tensor>, &Tensor, Option<&Tensor>, i64, bool, &[Tensor]);
    }
}

/// `outs`: the hidden states, the cells of an LSTM, and what the gradients need of the gates of an LSTM or GRU.
#[allow(clippy::too_many_arguments)] // The operator has that many.
fn rnn_layer_kernel(
    gates: &Tensor,
    hx: &Tensor,
    cx: Option<&Tensor>,
    w_hh: &Tensor,
    b_hh: Option<&Tensor>,
    mode: i64,
    reverse: bool,
    outs: &[Tensor],
) -> Result<()> {
    let (mode, layer) = (Mode::of(mode)?, Layer::of(gates, hx, reverse)?);
    let (gates, hx, w_hh) = (dense(gates)?, dense(hx)?, dense(w_hh)?);
    let (cx, b_hh) = (cx.map(dense).transpose()?, b_hh.map(dense).transpose()?);
    let results = outs.iter().map(|out| writable(out, gates.dtype())).collect::<Result<Vec<_>>>()?;
    let [output, cells, kept] = &results[..] else { bail!(Internal, "_rnn_layer: {} outputs", outs.len()) };
    let operands = Operands { gates: &gates, hx: &hx, cx: cx.as_ref(), w_hh: &w_hh, b_hh: b_hh.as_ref() };
    dispatch!(gates.dtype(), "rnn_layer", FLOATING, |T| {
        run::<T>(mode, layer, &operands, [output, cells, kept])
    })?;
    deliver(outs, &[output, cells, kept])
}

struct Operands<'a> {
    gates: &'a Tensor,
    hx: &'a Tensor,
    cx: Option<&'a Tensor>,
    w_hh: &'a Tensor,
    b_hh: Option<&'a Tensor>,
}

fn run<T: LinalgElement + Real + Tables>(
    mode: Mode,
    layer: Layer,
    operands: &Operands<'_>,
    [output, cells, kept]: [&Tensor; 3],
) -> Result<()> {
    let Layer { steps, batch, hidden, width, .. } = layer;
    let hidden_gates = iter::empty(&[batch as i64, width as i64], &operands.gates.options())?;
    let product = Matrix::<T>::of(&hidden_gates)?;
    let weight = Matrix::<T>::of(operands.w_hh)?.transposed();
    let one = <<T as LinalgElement>::Sum as Element>::ONE;
    let (x, g) = (Rows::of(operands.gates, width), Rows::of(&hidden_gates, width));
    let (h, c, k) = (Rows::of(output, hidden), Rows::of(cells, hidden), Rows::of(kept, 4 * hidden));
    let h0 = Rows::of(operands.hx, hidden);
    let c0 = operands.cx.map(|cx| Rows::of(cx, hidden));
    for step in 0..steps {
        let (time, before) = layer.time(step);
        if let Some(bias) = operands.b_hh {
            for row in 0..batch {
                // SAFETY: the bias has `width` elements, and the buffer `batch` rows of as many.
                unsafe { g.get_mut::<T>(row).copy_from_slice(Rows::of(bias, width).get(0)) };
            }
        }
        let (states, first) = before.map_or((h0, 0), |time| (h, time * batch));
        let state = Matrix {
            data: states.at::<T>(first).0.cast(),
            rows: batch,
            cols: hidden,
            row_stride: hidden as isize,
            col_stride: 1,
        };
        gemm::<T>(one, state, weight, operands.b_hh.map(|_| one), product)?;
        parallel_for_result(0, batch, (GRAIN_SIZE / 8 / width.max(1)).max(1), &|begin, end| {
            for row in begin..end {
                let at = time * batch + row;
                // SAFETY: rows of contiguous tensors of the sizes that the meta function checked or gave; each row of
                // this time belongs to one piece, and those of the time before are finished.
                unsafe {
                    let (x, g) = (x.get::<T>(at), g.get::<T>(row));
                    match mode {
                        Mode::Tanh => tanh_step(x, g, h.get_mut(at)),
                        Mode::Relu => relu_step(x, g, h.get_mut(at)),
                        Mode::Gru => {
                            gru_step(x, g, states.get(first + row), k.get_mut(at), h.get_mut(at));
                        }
                        Mode::Lstm => {
                            let Some(c0) = c0 else {
                                bail!(Internal, "_rnn_layer: an LSTM without cell state")
                            };
                            let cell = if before.is_some() { c.get(first + row) } else { c0.get(row) };
                            lstm_step(x, g, cell, k.get_mut(at), c.get_mut(at), h.get_mut(at));
                        }
                    }
                }
            }
            Ok(())
        })?;
    }
    Ok(())
}
