//! The table from which one generic kernel differentiates every operator: see [`crate::kernel`].

use c10::Result;

use crate::backward_ctx::BackwardCtx;
use crate::forward_ad::ForwardRule;
use crate::saved_meta::MetaKind;

/// The derivative of one operator overload.
pub struct DerivativeEntry {
    /// The overload: `aten::mul.Tensor`.
    pub op: &'static str,
    /// The name of the backward node: `MulBackward0`.
    pub node_name: &'static str,
    /// Where the formula was declared, for error messages: `pointwise.yaml:41`.
    pub source: &'static str,
    /// Indexes of the arguments that have a formula, in schema order.
    pub differentiable: &'static [usize],
    /// What backward needs from forward.
    pub saved: &'static [SavedArg],
    /// Which returns are differentiable; empty means all.
    pub output_differentiability: &'static [bool],
    /// How tangents pass in forward mode; `None` where that is not known.
    pub forward: Option<ForwardRule>,
    /// Computes the gradients.
    pub backward: fn(&mut BackwardCtx<'_>) -> Result<()>,
}

/// One thing that backward needs from forward. `needed_by` is a bitmask of positions in
/// [`DerivativeEntry::differentiable`]: nothing is saved for gradients that nobody wants. Zero means "always".
#[derive(Clone, Copy, Debug)]
pub enum SavedArg {
    /// A tensor argument, or a list of them.
    Input {
        /// Its index in the schema.
        arg: usize,
        /// For which gradients.
        needed_by: u64,
    },
    /// A returned tensor.
    Output {
        /// Its index among the returns.
        ret: usize,
        /// For which gradients.
        needed_by: u64,
    },
    /// An argument that isn't a tensor, as it is.
    Value {
        /// Its index in the schema.
        arg: usize,
    },
    /// A fact about a tensor argument.
    Meta {
        /// Its index in the schema.
        arg: usize,
        /// Which fact.
        what: MetaKind,
        /// For which gradients.
        needed_by: u64,
    },
}

impl SavedArg {
    /// Whether to save it when the gradients of the mask `needs` are wanted.
    pub(crate) fn is_needed(&self, needs: u64) -> bool {
        let needed_by = match *self {
            SavedArg::Input { needed_by, .. }
            | SavedArg::Output { needed_by, .. }
            | SavedArg::Meta { needed_by, .. } => needed_by,
            SavedArg::Value { .. } => 0,
        };
        needed_by == 0 || needed_by & needs != 0
    }
}
