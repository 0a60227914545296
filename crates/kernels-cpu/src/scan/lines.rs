//! The walk of a scan: a state per line, which every element of the line changes.

use c10::{wrap_dim, Result, SmallVec, Tensor};

use crate::address::{byte_stride, Address};
use crate::index::lines::{for_each_line, Operand};

/// Steps along `dim` of `input`. `step` makes the next state of a line from an element of type `I`; `emit` writes what
/// it shows to the elements of the outputs, whose addresses are the last of the `N` that it gets.
///
/// # Safety
/// `I` must be the input's element type in memory, and `emit` may write an element to each output's address.
pub(super) unsafe fn scan<I: Copy, S: Copy + Send + Sync, const N: usize>(
    input: &Tensor,
    dim: i64,
    outs: [&Tensor; N],
    start: S,
    step: impl Fn(S, I) -> S + Sync,
    emit: impl Fn(S, [Address; N]) + Sync,
) -> Result<()> {
    const { assert!(N == 1 || N == 2) };
    let shape = input.sizes()?;
    let dim = wrap_dim(dim, input.dim(), true)? as usize;
    let numel = input.numel()? as usize;
    if numel == 0 {
        return Ok(());
    }
    let lines = numel / shape.get(dim).map_or(1, |&size| size as usize);
    let mut states = c10::try_filled(start, lines)?;
    let mut state_strides: SmallVec<[i64; 6]> = SmallVec::from_elem(0, shape.len());
    let mut stride = std::mem::size_of::<S>() as i64;
    for d in (0..shape.len()).rev().filter(|&d| d != dim) {
        state_strides[d] = stride;
        stride *= shape[d];
    }
    let operand = |tensor: &Tensor, base: *mut u8| -> Result<Operand> {
        let strides = tensor.strides()?.iter().map(|&s| byte_stride(s, tensor.item_size())).collect();
        Ok(Operand { base: Address(base), strides })
    };
    let states = Operand { base: Address(states.as_mut_ptr().cast()), strides: state_strides };
    let from = operand(input, input.const_data_ptr().cast_mut())?;
    let first = operand(outs[0], outs[0].data_ptr())?;
    // SAFETY: of all three closures: elements of the operands, which the wrapper checked against their storages; the
    // states are as many as there are lines, and each line is visited by one thread.
    let line = |at: [Address; 2], strides: [i64; 2], n: usize, out: &dyn Fn(i64) -> [Address; N]| unsafe {
        if strides[0] == 0 {
            let mut state = at[0].read::<S>();
            for i in 0..n as i64 {
                state = step(state, at[1].offset(i * strides[1]).read::<I>());
                emit(state, out(i));
            }
            at[0].write(state);
            return;
        }
        for i in 0..n as i64 {
            let place = at[0].offset(i * strides[0]);
            let state = step(place.read::<S>(), at[1].offset(i * strides[1]).read::<I>());
            place.write(state);
            emit(state, out(i));
        }
    };
    if N == 1 {
        return for_each_line::<3>(shape, dim, &[states, from, first], &|at, strides, n| {
            line([at[0], at[1]], [strides[0], strides[1]], n, &|i| [at[2].offset(i * strides[2]); N]);
        });
    }
    let second = operand(outs[N - 1], outs[N - 1].data_ptr())?;
    for_each_line::<4>(shape, dim, &[states, from, first, second], &|at, strides, n| {
        line([at[0], at[1]], [strides[0], strides[1]], n, &|i| {
            std::array::from_fn(|out| at[2 + out].offset(i * strides[2 + out]))
        });
    })
}
