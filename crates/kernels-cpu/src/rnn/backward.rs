//! `_rnn_layer_backward`: from the last step to the first.

use c10::{bail, Element, Result, Tensor};
use iter::parallel::{parallel_for_result, GRAIN_SIZE};

use super::steps::{gru_step_backward, lstm_step_backward, relu_step_backward, tanh_step_backward};
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
        rnn_layer_backward_kernel: fn(
            Option<&Tensor>,
            Option<&Tensor>,
            &Tensor,
            Option<&Tensor>,
            &Tensor,
            &Tensor,
            &Tensor,
            &Tensor,
            i64,
            bool,
            &[Tensor]
        );
    }
}

/// `outs`: the gradients of the input's part of the gates, of the hidden state's part where that is another one, and of the
/// first states.
#[allow(clippy::too_many_arguments)] // The operator has that many.
fn rnn_layer_backward_kernel(
    grad_output: Option<&Tensor>,
    grad_cells: Option<&Tensor>,
    hx: &Tensor,
    cx: Option<&Tensor>,
    w_hh: &Tensor,
    output: &Tensor,
    cells: &Tensor,
    kept: &Tensor,
    mode: i64,
    reverse: bool,
    outs: &[Tensor],
) -> Result<()> {
    let mode = Mode::of(mode)?;
    let layer = Layer::of(&outs[0], hx, reverse)?;
    let given = |tensor: Option<&Tensor>| tensor.map(dense).transpose();
    let (grad_output, grad_cells, cx) = (given(grad_output)?, given(grad_cells)?, given(cx)?);
    let [hx, w_hh, output, cells, kept] = [hx, w_hh, output, cells, kept].map(dense);
    let (hx, w_hh, output, cells, kept) = (hx?, w_hh?, output?, cells?, kept?);
    let results = outs.iter().map(|out| writable(out, hx.dtype())).collect::<Result<Vec<_>>>()?;
    let [dx, dg, dh, dc] = &results[..] else {
        bail!(Internal, "_rnn_layer_backward: {} outputs", outs.len())
    };
    let operands = Operands {
        grad_output: grad_output.as_ref(),
        grad_cells: grad_cells.as_ref(),
        hx: &hx,
        cx: cx.as_ref(),
        w_hh: &w_hh,
        output: &output,
        cells: &cells,
        kept: &kept,
    };
    dispatch!(hx.dtype(), "rnn_layer_backward", FLOATING, |T| {
        run::<T>(mode, layer, &operands, [dx, dg, dh, dc])
    })?;
    deliver(outs, &[dx, dg, dh, dc])
}

struct Operands<'a> {
    grad_output: Option<&'a Tensor>,
    grad_cells: Option<&'a Tensor>,
    hx: &'a Tensor,
    cx: Option<&'a Tensor>,
    w_hh: &'a Tensor,
    output: &'a Tensor,
    cells: &'a Tensor,
    kept: &'a Tensor,
}

fn run<T: LinalgElement + Real + Tables>(
    mode: Mode,
    layer: Layer,
    operands: &Operands<'_>,
    [dx, dg, dh, dc]: [&Tensor; 4],
) -> Result<()> {
    let Layer { steps, batch, hidden, width, .. } = layer;
    let carry = iter::empty(&[batch as i64, hidden as i64], &operands.hx.options())?;
    let weight = Matrix::<T>::of(operands.w_hh)?;
    let one = <<T as LinalgElement>::Sum as Element>::ONE;
    let rows = |tensor: &Tensor| Rows::of(tensor, hidden);
    let (h, c, k) = (rows(operands.output), rows(operands.cells), Rows::of(operands.kept, 4 * hidden));
    let (h0, c0) = (rows(operands.hx), operands.cx.map(rows));
    let (grad_h, grad_c) = (operands.grad_output.map(rows), operands.grad_cells.map(rows));
    let (dx, dg, dh, dc, total) =
        (Rows::of(dx, width), Rows::of(dg, width), rows(dh), rows(dc), rows(&carry));
    for row in 0..batch {
        // SAFETY: buffers and outputs of `batch` rows.
        unsafe {
            dh.get_mut::<T>(row).fill(T::of(0.0));
            if mode == Mode::Lstm {
                dc.get_mut::<T>(row).fill(T::of(0.0));
            }
        }
    }
    for step in (0..steps).rev() {
        let (time, before) = layer.time(step);
        parallel_for_result(0, batch, (GRAIN_SIZE / 8 / width.max(1)).max(1), &|begin, end| {
            for row in begin..end {
                let at = time * batch + row;
                // SAFETY: rows of contiguous tensors of the sizes that the meta function checked or gave; each row of this
                // time, and of the gradients that are carried on, belongs to one piece.
                unsafe {
                    let grad = total.get_mut::<T>(row);
                    add(grad, dh.get(row), grad_h.map(|rows| rows.get(at)));
                    let state = before.map_or_else(|| h0.get(row), |time| h.get(time * batch + row));
                    match mode {
                        Mode::Tanh => tanh_step_backward(grad, h.get(at), dx.get_mut(at)),
                        Mode::Relu => relu_step_backward(grad, h.get(at), dx.get_mut(at)),
                        Mode::Gru => gru_step_backward(
                            grad,
                            k.get(at),
                            state,
                            dx.get_mut(at),
                            dg.get_mut(at),
                            dh.get_mut(row),
                        ),
                        Mode::Lstm => {
                            let Some(c0) = c0 else {
                                bail!(Internal, "_rnn_layer_backward: an LSTM without cell state")
                            };
                            let cell = before.map_or_else(|| c0.get(row), |time| c.get(time * batch + row));
                            let carried = dc.get_mut::<T>(row);
                            if let Some(grad_c) = grad_c {
                                for (carried, &grad) in carried.iter_mut().zip(grad_c.get::<T>(at)) {
                                    *carried = *carried + grad;
                                }
                            }
                            lstm_step_backward(grad, k.get(at), c.get(at), cell, carried, dx.get_mut(at));
                        }
                    }
                }
            }
            Ok(())
        })?;
        // The state before: through the gates, and of a GRU the part that is there already.
        let (of_gates, beta) = if mode == Mode::Gru { (dg, Some(one)) } else { (dx, None) };
        let matrix = |data: *mut u8, cols: usize| Matrix::<T> {
            data: data.cast(),
            rows: batch,
            cols,
            row_stride: cols as isize,
            col_stride: 1,
        };
        gemm::<T>(
            one,
            matrix(of_gates.at::<T>(time * batch).0, width),
            weight,
            beta,
            matrix(dh.at::<T>(0).0, hidden),
        )?;
    }
    Ok(())
}

/// `sum = a + b`, where there is a `b`.
fn add<T: Real>(sum: &mut [T], a: &[T], b: Option<&[T]>) {
    match b {
        Some(b) => {
            for ((sum, &a), &b) in sum.iter_mut().zip(a).zip(b) {
                *sum = a + b;
            }
        }
        None => sum.copy_from_slice(a),
    }
}
