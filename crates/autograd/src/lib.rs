//! Reverse-mode automatic differentiation.
//!
//! * The graph: [`Node`], [`Edge`], [`SavedVariable`], [`AccumulateGrad`]; what hangs on tensors: [`AutogradMeta`] and the
//!   functions of [`variable`].
//! * Recording: one boxed kernel ([`kernel`]) differentiates every operator from tables ([`DerivativeEntry`]) that
//!   `tools/opgen` makes from the operators' declarations; one ([`ad_inplace_or_view`]) tracks views and
//!   in-place modifications from schemas; one ([`fallback`]) covers operators without a derivative.
//! * Running: [`engine`], and [`backward`] and [`grad`] on top.

pub mod abi;
mod accumulate_grad;
pub mod ad_inplace_or_view;
pub mod anomaly_mode;
mod api;
mod autograd_meta;
mod backward_ctx;
pub mod basic_nodes;
mod copy_slices;
pub mod custom_function;
mod deletion;
mod derivative_entry;
mod edge;
pub mod engine;
pub mod fallback;
pub mod formulas;
pub mod forward_ad;
#[allow(non_snake_case, unused_imports)] // Operators' own names, and one header for every family.
pub mod gen;
mod generated_node;
mod hooks;
mod init;
mod input_metadata;
pub mod kernel;
mod node;
pub mod ownership;
mod saved_meta;
pub mod saved_tensor_hooks;
mod saved_variable;
mod tensor_ops;
pub mod variable;
mod view_meta;
mod warning;

pub use accumulate_grad::AccumulateGrad;
pub use api::{backward, backward_targets, grad, grad_targets, run_backward, GradientTarget};
pub use autograd_meta::AutogradMeta;
pub use backward_ctx::{ArgGrads, BackwardCtx};
pub use copy_slices::CopySlices;
pub use derivative_entry::{DerivativeEntry, SavedArg};
pub use edge::{Edge, EdgeList, VariableList};
pub use hooks::{
    FunctionPostHook, FunctionPreHook, HookHandle, PostAccumulateGradHook, TensorHook, TensorHookFn,
};
pub use init::{init, register_ad_inplace_or_view};
pub use input_metadata::InputMetadata;
pub use node::{peek_sequence_nr, Node, NodeFunction, NodeImpl, WeakNode};
pub use saved_meta::{MetaKind, SavedMeta};
pub use saved_tensor_hooks::{PackedTensor, SavedTensorHooks};
pub use saved_variable::{SavedValue, SavedVariable, SavedVariableRef, ERR_BACKWARD_TWICE};
pub use view_meta::{CreationMeta, DifferentiableViewMeta, ViewFunc};
pub use warning::set_warning_handler;
