//! A layer of recurrent cells over a padded sequence: [forward](forward) and [backward](backward).
//!
//! The caller gives the input's part of the gates for all times. A step is then one product with the hidden state and one
//! pass over the gates ([`steps`]), which the rows of the batch take apart.

mod backward;
mod forward;
mod steps;

use c10::{bail, Result, Tensor};

use crate::address::Address;

/// Registers the family.
pub(crate) fn register() {
    forward::register();
    backward::register();
}

/// What kind of cells; numbered as cuDNN does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Relu,
    Tanh,
    Lstm,
    Gru,
}

impl Mode {
    fn of(mode: i64) -> Result<Mode> {
        Ok(match mode {
            0 => Mode::Relu,
            1 => Mode::Tanh,
            2 => Mode::Lstm,
            3 => Mode::Gru,
            _ => bail!(Internal, "_rnn_layer: mode {mode}"),
        })
    }
}

/// The sizes of a layer.
#[derive(Clone, Copy)]
struct Layer {
    steps: usize,
    batch: usize,
    /// The hidden size.
    hidden: usize,
    /// The gates' size, as often the hidden size as the cells have gates.
    width: usize,
    reverse: bool,
}

impl Layer {
    fn of(gates: &Tensor, hx: &Tensor, reverse: bool) -> Result<Layer> {
        let (sizes, state) = (gates.sizes()?, hx.sizes()?);
        let (&[steps, batch, width], &[_, hidden]) = (sizes, state) else {
            bail!(Internal, "_rnn_layer: gates of sizes {sizes:?}, and a state of {state:?}");
        };
        let [steps, batch, width, hidden] = [steps, batch, width, hidden].map(|size| size as usize);
        Ok(Layer { steps, batch, hidden, width, reverse })
    }

    /// The time of the `k`-th step, and that of the step before.
    fn time(self, k: usize) -> (usize, Option<usize>) {
        let at = |k: usize| if self.reverse { self.steps - 1 - k } else { k };
        (at(k), k.checked_sub(1).map(at))
    }
}

/// Rows of a contiguous tensor.
#[derive(Clone, Copy)]
struct Rows {
    start: Address,
    /// In elements.
    width: usize,
}

impl Rows {
    fn of(tensor: &Tensor, width: usize) -> Rows {
        Rows { start: Address(tensor.data_ptr()), width }
    }

    /// # Safety
    ///
    /// The row exists, and nobody writes to it.
    unsafe fn get<'a, T>(self, row: usize) -> &'a [T] {
        // SAFETY: the caller's promise.
        unsafe { self.at::<T>(row).slice(self.width) }
    }

    /// # Safety
    ///
    /// The row exists, and nobody else uses it.
    unsafe fn get_mut<'a, T>(self, row: usize) -> &'a mut [T] {
        // SAFETY: the caller's promise.
        unsafe { self.at::<T>(row).slice_mut(self.width) }
    }

    fn at<T>(self, row: usize) -> Address {
        self.start.offset((row * self.width * std::mem::size_of::<T>()) as i64)
    }
}
