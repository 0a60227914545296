//! The one ADInplaceOrView kernel: tracks views and counts in-place modifications, whether or not gradients are recorded.
//!
//! Registered for operators whose schema says that they write or that they return views; all others fall through.

use std::sync::Arc;

use c10::{
    after_ADInplaceOrView_keyset, AutoDispatchBelowADInplaceOrView, DispatchKeySet, Error, GradMode,
    InferenceMode, Result, Tensor,
};
use dispatch::{IValue, KernelFunction, OpInfo, OperatorHandle, ReturnAlias, Stack};
use smallvec::SmallVec;

use crate::autograd_meta::AutogradMeta;
use crate::kernel::first_argument;
use crate::variable;
use crate::view_meta::{CreationMeta, ViewFunc};

/// What is tracked of the views that an operator returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViewTracking {
    /// Gradients do not pass them (`detach`).
    None,
    /// `as_strided` makes them anew.
    Strided,
    /// They change the dtype or a lazy bit (`view_as_real`, `_conj`): only the operator makes them anew.
    Replayed,
}

/// The kernel for one operator.
pub fn ad_inplace_or_view_kernel(tracking: ViewTracking) -> KernelFunction {
    KernelFunction::from_boxed(match tracking {
        ViewTracking::None => |op, ks, stack| track(ViewTracking::None, op, ks, stack),
        ViewTracking::Strided => |op, ks, stack| track(ViewTracking::Strided, op, ks, stack),
        ViewTracking::Replayed => |op, ks, stack| track(ViewTracking::Replayed, op, ks, stack),
    })
}

#[inline]
fn track(tracking: ViewTracking, op: OperatorHandle, ks: DispatchKeySet, stack: &mut Stack) -> Result<()> {
    let info = op.info()?;
    let first = first_argument(op, info, stack)?;
    if info.is_view {
        view(tracking, info, op, ks, stack, first)
    } else {
        mutate(info, op, ks, stack, first)
    }
}

fn redispatch(op: OperatorHandle, ks: DispatchKeySet, stack: &mut Stack) -> Result<()> {
    let _below = AutoDispatchBelowADInplaceOrView::new();
    op.redispatch_boxed(ks & after_ADInplaceOrView_keyset, stack)
}

fn mutate(
    info: &OpInfo,
    op: OperatorHandle,
    ks: DispatchKeySet,
    stack: &mut Stack,
    first: usize,
) -> Result<()> {
    let mut written: SmallVec<[Tensor; 2]> = SmallVec::new();
    for &arg in &info.mutated {
        stack[first + arg].for_each_tensor(&mut |tensor| written.push(tensor.clone()));
    }
    redispatch(op, ks, stack)?;
    written.iter().try_for_each(|tensor| tensor.bump_version())
}

fn view(
    tracking: ViewTracking,
    info: &OpInfo,
    op: OperatorHandle,
    ks: DispatchKeySet,
    stack: &mut Stack,
    first: usize,
) -> Result<()> {
    let viewed =
        info.returns.iter().find_map(|r| if let ReturnAlias::View(arg) = r { Some(*arg) } else { None });
    let base = match viewed.map(|arg| &stack[first + arg]) {
        Some(IValue::Tensor(base)) => base.clone(),
        // A list of bases (`chunk` of a list): each view has its own, which schemas can't say; no tracking.
        _ => return redispatch(op, ks, stack),
    };
    let differentiable = tracking != ViewTracking::None;
    // Replaying needs the arguments; most views can do without.
    let replayed = tracking == ViewTracking::Replayed;
    let replay = (replayed || differentiable && variable::requires_view_fn(&base))
        .then(|| (viewed.unwrap_or(0), stack[first..].to_vec()));

    redispatch(op, ks, stack)?;

    let replay = replay.map(|(arg, args)| Replay { op, arg, args: args.into() });
    let creation_meta = creation_meta(info);
    let mut index = 0;
    for (ret, alias) in info.returns.iter().enumerate() {
        if !matches!(alias, ReturnAlias::View(_)) {
            continue;
        }
        let track = |tensor: &Tensor, index: usize| -> Result<()> {
            if !differentiable {
                // SAFETY: the view is fresh from its operator; no other thread has it.
                unsafe { tensor.set_version_counter(base.version_counter()) };
                return Ok(());
            }
            let view_fn = replay.as_ref().map(|replay| replay.view_func(ret, index));
            variable::as_view(&base, tensor, view_fn, creation_meta)
        };
        match &mut stack[first + ret] {
            IValue::Tensor(tensor) => {
                fresh_view(tensor, &base)?;
                track(tensor, 0)?;
            }
            IValue::TensorList(list) => {
                for tensor in list.iter() {
                    track(tensor, index)?;
                    index += 1;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// A kernel may answer with its argument, or with a tensor that others know: autograd needs one of its own.
fn fresh_view(tensor: &mut Tensor, base: &Tensor) -> Result<()> {
    if tensor.is_same(base) || AutogradMeta::of(tensor).is_some() {
        *tensor = variable::tensor_data(tensor)?;
    }
    Ok(())
}

fn creation_meta(info: &OpInfo) -> CreationMeta {
    if InferenceMode::is_enabled() {
        CreationMeta::InferenceMode
    } else if !GradMode::is_enabled() {
        CreationMeta::NoGradMode
    } else if info.is_multi_output_view {
        CreationMeta::MultiOutputNode
    } else {
        CreationMeta::Default
    }
}

/// A view operator with its arguments, to be called again on another base.
struct Replay {
    op: OperatorHandle,
    arg: usize,
    args: Arc<[IValue]>,
}

impl Replay {
    fn view_func(&self, ret: usize, index: usize) -> ViewFunc {
        let (op, arg, args) = (self.op, self.arg, self.args.clone());
        // The base itself is not kept: it would be a second owner beside the view's own.
        let args: Vec<IValue> =
            args.iter().enumerate().map(|(i, v)| if i == arg { IValue::None } else { v.clone() }).collect();
        ViewFunc::new(move |base| {
            let mut stack: Stack = args.iter().cloned().collect();
            stack[arg] = IValue::Tensor(base.clone());
            op.call_boxed(&mut stack)?;
            let found = match stack.get(ret) {
                Some(IValue::Tensor(tensor)) => Some(tensor.clone()),
                Some(IValue::TensorList(tensors)) => tensors.get(index).cloned(),
                _ => None,
            };
            found.ok_or_else(|| Error::internal(format!("{}: replaying the view gave no tensor", op.name())))
        })
    }
}
