//! What autograd does with tensors: histories, leaves, views, versions, hooks.

use std::sync::Arc;

use c10::{
    bail, check, internal_assert, AutoGradMode, AutogradMetaInterface, AutogradState,
    ExcludeDispatchKeyGuard, GradMode, Result, ScalarType, Tensor, TensorPin,
};

use crate::accumulate_grad::AccumulateGrad;
use crate::autograd_meta::AutogradMeta;
use crate::copy_slices::CopySlices;
use crate::edge::{Edge, EdgeList};
use crate::hooks::{HookHandle, PostAccumulateGradHook, TensorHook, TensorHookFn};
use crate::input_metadata::InputMetadata;
use crate::node::{Node, WeakNode};
use crate::tensor_ops;
use crate::view_meta::{CreationMeta, DifferentiableViewMeta, ViewFunc};

/// Whether tensors of a dtype can carry gradients.
#[inline]
pub fn is_differentiable_type(dtype: ScalarType) -> bool {
    dtype.is_floating_point() || dtype.is_complex()
}

/// Whether a tensor needs a gradient, for itself or for what it was made of.
#[inline]
pub fn requires_grad(tensor: &Tensor) -> bool {
    tensor.autograd_meta().is_some_and(|meta| meta.requires_grad())
}

/// Whether a tensor has no history. A view's is brought up to date first, which fails where [`grad_fn`] does.
#[inline]
pub fn is_leaf(tensor: &Tensor) -> Result<bool> {
    match AutogradMeta::of(tensor) {
        None => Ok(true),
        Some(meta) if meta.view().is_some() => Ok(grad_fn(tensor)?.is_none()),
        Some(meta) => Ok(!meta.has_grad_fn()),
    }
}

/// As [`is_leaf`], for questions that are not about the history itself: a view whose history can't be made anew has the
/// one that it had.
pub fn is_leaf_as_known(tensor: &Tensor) -> bool {
    is_leaf(tensor).unwrap_or_else(|_| AutogradMeta::of(tensor).is_none_or(|meta| !meta.has_grad_fn()))
}

/// Which output of its `grad_fn` a tensor is.
pub fn output_nr(tensor: &Tensor) -> u32 {
    AutogradMeta::of(tensor).map_or(0, |meta| meta.state.lock().output_nr)
}

/// How often a tensor's memory has been modified in place; 0 for inference tensors, which don't count.
pub fn version(tensor: &Tensor) -> u32 {
    tensor.version().unwrap_or(0)
}

/// Whether a tensor is a differentiable view.
pub fn is_view(tensor: &Tensor) -> bool {
    AutogradMeta::of(tensor).is_some_and(|meta| meta.view().is_some())
}

/// The tensor that a differentiable view looks at.
pub fn base(tensor: &Tensor) -> Option<Tensor> {
    AutogradMeta::of(tensor)?.view().map(|view| view.base().clone())
}

/// Changes how a view is said to have come to be; nothing for tensors that aren't views.
pub fn set_creation_meta(tensor: &Tensor, creation_meta: CreationMeta) {
    if let Some(view) = AutogradMeta::of(tensor).and_then(AutogradMeta::view) {
        view.set_creation_meta(creation_meta);
    }
}

/// The node that a tensor came out of; `None` for leaves. A view's is made anew when its base has been modified
/// (Note [View + in-place detection]).
pub fn grad_fn(tensor: &Tensor) -> Result<Option<Node>> {
    let Some(meta) = AutogradMeta::of(tensor) else { return Ok(None) };
    match meta.view() {
        None => Ok(meta.raw_edge().function),
        Some(view) => view_grad_fn(tensor, meta, view),
    }
}

fn view_grad_fn(tensor: &Tensor, meta: &AutogradMeta, view: &DifferentiableViewMeta) -> Result<Option<Node>> {
    if !meta.has_grad_fn() && !requires_grad(view.base()) {
        return Ok(None);
    }
    let (current, known) = (version(tensor), view.attr_version());
    if known != current {
        check_creation_meta(meta, view, true)?;
        // Without a lock: this may run Python code. Of two threads that do it, the first one's node stays.
        let regenerated = regenerate_view(tensor, view)?;
        let node = AutogradMeta::of(&regenerated).and_then(|m| m.raw_edge().function);
        meta.set_view_edge(view, Edge { function: node, input_nr: 0 }, known, current);
    }
    Ok(meta.raw_edge().function)
}

/// The view, made once more from its base, for the node that this records.
fn regenerate_view(tensor: &Tensor, view: &DifferentiableViewMeta) -> Result<Tensor> {
    // The request may come from a place where recording is off.
    let _grad_mode = AutoGradMode::new(true);
    match view.view_fn() {
        Some(view_fn) => view_fn.apply(view.base()),
        None => {
            // Bookkeeping, which no mode is to see.
            let _below_python = ExcludeDispatchKeyGuard::new(c10::python_ks);
            tensor_ops::as_strided_like(view.base(), tensor)
        }
    }
}

/// Where the gradient of a tensor goes: its `grad_fn`, or for a leaf that requires gradients its accumulator.
#[inline]
pub fn gradient_edge(tensor: &Tensor) -> Result<Edge> {
    let Some(meta) = AutogradMeta::of(tensor) else { return Ok(Edge::default()) };
    let edge = match meta.view() {
        None => meta.raw_edge(),
        Some(view) => {
            let function = view_grad_fn(tensor, meta, view)?;
            Edge { input_nr: meta.state.lock().output_nr, function }
        }
    };
    if edge.is_valid() {
        return Ok(edge);
    }
    if meta.requires_grad_flag() {
        return Ok(Edge::new(grad_accumulator(tensor)?, 0));
    }
    Ok(Edge::default())
}

/// The node that sums gradients into a leaf's `.grad`. There is one at a time; the graph keeps it alive.
pub fn grad_accumulator(tensor: &Tensor) -> Result<Node> {
    let meta = AutogradMeta::materialize(tensor)?;
    loop {
        let known = {
            let state = meta.state.lock();
            internal_assert!(
                state.grad_fn.is_none(),
                "a gradient accumulator was asked of a tensor with a history"
            );
            state.grad_accumulator.clone()
        };
        // Outside of the lock: a node that only its Python object holds is revived under the interpreter's lock, and
        // whoever has that may be waiting for this one.
        if let Some(node) = known.as_ref().and_then(WeakNode::upgrade) {
            return Ok(node);
        }
        let node = AccumulateGrad::new_node(tensor);
        let mut state = meta.state.lock();
        let is_unchanged =
            state.grad_accumulator.as_ref().map(WeakNode::as_ptr) == known.as_ref().map(WeakNode::as_ptr);
        if is_unchanged {
            let old = state.grad_accumulator.replace(node.downgrade());
            drop(state);
            drop(old);
            return Ok(node);
        }
    }
}

/// The accumulator of a leaf if it is alive.
pub fn try_get_grad_accumulator(tensor: &Tensor) -> Option<Node> {
    let known = AutogradMeta::of(tensor)?.state.lock().grad_accumulator.clone();
    known?.upgrade()
}

/// Makes a leaf share another variable's accumulator.
pub(crate) fn set_grad_accumulator(tensor: &Tensor, accumulator: WeakNode) {
    if let Ok(meta) = AutogradMeta::materialize(tensor) {
        meta.state.lock().grad_accumulator = Some(accumulator);
    }
}

/// The edges for a function's tensor arguments; invalid ones for arguments that need no gradient.
pub fn collect_next_edges<'a>(tensors: impl IntoIterator<Item = Option<&'a Tensor>>) -> Result<EdgeList> {
    tensors.into_iter().map(|tensor| tensor.map_or_else(|| Ok(Edge::default()), gradient_edge)).collect()
}

/// Whether recording is on and one of the tensors needs a gradient.
pub fn compute_requires_grad<'a>(tensors: impl IntoIterator<Item = Option<&'a Tensor>>) -> bool {
    GradMode::is_enabled() && tensors.into_iter().flatten().any(requires_grad)
}

/// Makes a tensor an output of a node.
pub fn set_gradient_edge(tensor: &Tensor, edge: Edge) -> Result<()> {
    match AutogradMeta::of(tensor) {
        Some(meta) => {
            meta.set_edge(edge);
            if let Some(view) = meta.view() {
                // This history is right for the version that the tensor has now.
                view.set_attr_version(version(tensor));
            }
        }
        None => {
            tensor.set_autograd_meta(Box::new(AutogradMeta::with_edge(edge)));
        }
    }
    Ok(())
}

/// Adds fresh tensors as outputs of a node that only this thread has yet.
pub fn set_history(tensors: &[Option<Tensor>], node: &Node) -> Result<()> {
    for tensor in tensors {
        let metadata = tensor.as_ref().map_or_else(InputMetadata::undefined, InputMetadata::new);
        // SAFETY: the caller has just made the node.
        let output_nr = unsafe { node.add_input_metadata(metadata) };
        if let Some(tensor) = tensor {
            set_gradient_edge(tensor, Edge::new(node.clone(), output_nr))?;
        }
    }
    Ok(())
}

/// Gives a tensor that was modified in place its new history. For a view, the base gets it: see [`CopySlices`].
pub fn rebase_history(tensor: &Tensor, edge: Edge) -> Result<()> {
    let Some(node) = edge.function.clone() else { return Ok(()) };
    let had_history = requires_grad(tensor);
    if let Some((meta, view)) = AutogradMeta::of(tensor).and_then(|meta| Some((meta, meta.view()?))) {
        internal_assert!(
            view.creation_meta() == CreationMeta::Default,
            "check_inplace should have refused this view"
        );
        internal_assert!(edge.input_nr == 0);
        check!(node.num_inputs() == 1, "Functions which modify views in-place must return a single Variable");
        let base = view.base();
        meta.state.lock().output_nr = edge.input_nr;
        let copy_slices = CopySlices::new_node(base, tensor, view.view_fn().cloned(), node)?;
        if had_history {
            move_retains_grad_hook(base, grad_fn(base)?, &copy_slices);
        }
        set_gradient_edge(base, Edge::new(copy_slices, 0))?;
        // The version has changed, so this brings the view's history up to date.
        grad_fn(tensor)?;
        return Ok(());
    }
    if had_history {
        move_retains_grad_hook(tensor, grad_fn(tensor)?, &node);
    }
    set_gradient_edge(tensor, edge)
}

/// A retained gradient is that of the tensor's newest value: the hook moves to the node that made it.
fn move_retains_grad_hook(tensor: &Tensor, old: Option<Node>, new: &Node) {
    let Some(meta) = AutogradMeta::of(tensor) else { return };
    let Some(output_nr) = meta.state.lock().retains_grad else { return };
    if let Some(hook) = old.and_then(|node| node.pop_retains_grad_hook(output_nr)) {
        new.add_retains_grad_hook(0, hook);
        meta.state.lock().retains_grad = Some(0);
    }
}

/// Refuses in-place modifications that would make gradients wrong. `requires_grad` says whether the operator
/// will be recorded.
pub fn check_inplace(tensor: &Tensor, any_requires_grad: bool) -> Result<()> {
    if !any_requires_grad || !GradMode::is_enabled() {
        return Ok(());
    }
    if let Some((meta, view)) = AutogradMeta::of(tensor).and_then(|meta| Some((meta, meta.view()?))) {
        check_view_inplace(tensor, meta, view)?;
    }
    check!(
        !(requires_grad(tensor) && is_leaf(tensor)?),
        "a leaf Variable that requires grad is being used in an in-place operation."
    );
    Ok(())
}

/// Refuses in-place modifications of views whose base can't get a new history.
fn check_view_inplace(tensor: &Tensor, meta: &AutogradMeta, view: &DifferentiableViewMeta) -> Result<()> {
    check_creation_meta(meta, view, false)?;
    check!(
        !(requires_grad(tensor) && is_leaf(view.base())?),
        "a view of a leaf Variable that requires grad is being used in an in-place operation."
    );
    Ok(())
}

/// As [`check_inplace`], for a tensor that a custom function has modified already, before its history is replaced.
pub(crate) fn check_modified(tensor: &Tensor) -> Result<()> {
    let Some(meta) = AutogradMeta::of(tensor) else { return Ok(()) };
    // The history as it was when the function was called: collecting its edges brought it up to date, and what the
    // function did has only raised the version.
    check!(
        meta.has_grad_fn() || !requires_grad(tensor),
        "a leaf Variable that requires grad has been used in an in-place operation."
    );
    match meta.view() {
        Some(view) => check_view_inplace(tensor, meta, view),
        None => Ok(()),
    }
}

/// Refuses to rebase views that no rebase can be right for. `indirect`: the base or a sister was modified.
fn check_creation_meta(meta: &AutogradMeta, view: &DifferentiableViewMeta, indirect: bool) -> Result<()> {
    let creation_meta = view.creation_meta();
    if creation_meta == CreationMeta::Default {
        return Ok(());
    }
    let multiple = "This view is the output of a function that returns multiple views. Such functions do not allow the output \
                    views to be modified inplace. You should replace the inplace operation by an out-of-place one.";
    let edge = meta.raw_edge();
    let modified = if indirect { "its base or another view of its base has been" } else { "is being" };
    let no_history = edge.function.is_none();
    if no_history || matches!(creation_meta, CreationMeta::InferenceMode | CreationMeta::NoGradMode) {
        let prefix = match &edge.function {
            Some(node) => {
                format!(
                    "Output {} of {} is a view of a view which was created in",
                    edge.input_nr,
                    node.name()
                )
            }
            None => "A view was created in".to_owned(),
        };
        if creation_meta == CreationMeta::MultiOutputNode {
            bail!(
                Runtime,
                "A view was created in no_grad mode and {modified} modified inplace with grad mode enabled. {multiple}"
            );
        }
        let (mode, now) = if creation_meta == CreationMeta::InferenceMode {
            ("inference", "in normal mode.")
        } else {
            ("no_grad", "with grad mode enabled.")
        };
        bail!(
            Runtime,
            "{prefix} {mode} mode and {modified} modified inplace {now} Given that this use case is ambiguous and \
             error-prone, it is forbidden. You can clarify your code by moving both the view and the inplace either \
             both inside the {mode} block (if you don't want the inplace to be tracked) or both outside (if you want \
             the inplace to be tracked)."
        );
    }
    let name = edge.function.map_or_else(String::new, |node| node.name());
    let reason = if creation_meta == CreationMeta::MultiOutputNode {
        multiple
    } else {
        "This view was created inside a custom Function (or because an input was returned as-is) and the autograd \
         logic to handle view+inplace would override the custom backward associated with the custom Function, leading \
         to incorrect gradients. This behavior is forbidden. You can fix this by cloning the output of the custom \
         Function."
    };
    bail!(Runtime, "Output {} of {name} is a view and {modified} modified inplace. {reason}", edge.input_nr)
}

/// Makes `view`, fresh from a view operator, a differentiable view of `base` (or of what `base` is a view of).
pub fn as_view(
    base: &Tensor,
    view: &Tensor,
    view_fn: Option<ViewFunc>,
    creation_meta: CreationMeta,
) -> Result<()> {
    if base.is_inference() {
        return Ok(());
    }
    let (root, view_fn, creation_meta) = match AutogradMeta::of(base).and_then(AutogradMeta::view) {
        Some(parent) => {
            let chained = match (parent.view_fn(), view_fn) {
                (Some(parent), Some(own)) => Some(own.after(parent.clone())),
                (None, Some(own)) => Some(own.after(as_strided_step(base))),
                // A strided view of a replayed one: its place in the base is not known by strides alone.
                (Some(parent), None) => Some(as_strided_step(view).after(parent.clone())),
                (None, None) => None,
            };
            (parent.base().clone(), chained, CreationMeta::propagate(parent.creation_meta(), creation_meta))
        }
        None => (base.clone(), view_fn, creation_meta),
    };
    // SAFETY: the view is fresh from its operator; no other thread has it.
    unsafe { view.set_version_counter(base.version_counter()) };
    let meta = DifferentiableViewMeta::new(root, view_fn, creation_meta, version(view));
    view.set_autograd_meta(Box::new(AutogradMeta::with_view(meta)));
    // A view may be one of very many.
    c10::check_memory()
}

fn as_strided_step(like: &Tensor) -> ViewFunc {
    let (sizes, strides, offset) = (like.sym_sizes(), like.sym_strides(), like.sym_storage_offset());
    ViewFunc::new(move |base| tensor_ops::as_strided(base, &sizes, &strides, &offset))
}

/// Whether views of a tensor must be replayed operator by operator because `as_strided` can't make them.
pub(crate) fn requires_view_fn(base: &Tensor) -> bool {
    base.layout() != c10::Layout::Strided
        || base.key_set().has(c10::DispatchKey::Python)
        || AutogradState::get().view_replay_enabled()
        || AutogradMeta::of(base).and_then(AutogradMeta::view).is_some_and(|view| view.view_fn().is_some())
        || !tensor_ops::has_as_strided()
}

/// A leaf that shares `data`'s memory and version counter.
pub fn make_variable(data: &Tensor, requires_grad: bool) -> Result<Tensor> {
    let tensor = tensor_data(data)?;
    if requires_grad {
        tensor.set_autograd_meta(Box::new(AutogradMeta::leaf(true)));
    }
    Ok(tensor)
}

/// An output of a node that shares `data`'s memory and version counter.
pub fn make_variable_with_edge(data: &Tensor, edge: Edge) -> Result<Tensor> {
    let tensor = tensor_data(data)?;
    tensor.set_autograd_meta(Box::new(AutogradMeta::with_edge(edge)));
    Ok(tensor)
}

/// A tensor without history that shares memory and version counter (`tensor_data`).
pub fn tensor_data(tensor: &Tensor) -> Result<Tensor> {
    tensor.shallow_copy_and_detach(tensor.version_counter())
}

/// A tensor without history that shares memory only (`.data`): in-place changes through it go unnoticed.
pub fn variable_data(tensor: &Tensor) -> Result<Tensor> {
    tensor.shallow_copy_and_detach(c10::VariableVersion::new(0))
}

/// `tensor.detach()`, below the dispatcher: no history, shared memory and version counter.
pub fn detach(tensor: &Tensor) -> Result<Tensor> {
    tensor.shallow_copy_and_detach(tensor.version_counter())
}

/// `tensor.detach_()`: makes the tensor itself a leaf that needs no gradient.
pub fn detach_(tensor: &Tensor) -> Result<()> {
    check!(
        !is_view(tensor),
        "Can't detach views in-place. Use detach() instead. If you are using DistributedDataParallel (DDP) for \
         training, and gradient_as_bucket_view is set as True, gradients are views of DDP buckets, and hence detach_() \
         cannot be called on these gradients. To fix this error, please refer to the Optimizer.zero_grad() function in \
         torch/optim/optimizer.py as a solution."
    );
    if let Some(meta) = AutogradMeta::of(tensor) {
        meta.set_requires_grad_flag(false);
        meta.set_edge(Edge::default());
    }
    Ok(())
}

/// `tensor.requires_grad_(value)` and `tensor.requires_grad = value`.
pub fn set_requires_grad(tensor: &Tensor, value: bool) -> Result<()> {
    check!(
        value || is_leaf_as_known(tensor),
        "you can only change requires_grad flags of leaf variables. If you want to use a computed variable in a \
         subgraph that doesn't require differentiation use var_no_grad = var.detach()."
    );
    check!(
        !value || is_differentiable_type(tensor.scalar_type()),
        "only Tensors of floating point and complex dtype can require gradients"
    );
    check!(
        !(value && tensor.is_inference() && !c10::InferenceMode::is_enabled()),
        "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed."
    );
    if !value && AutogradMeta::of(tensor).is_none() {
        return Ok(());
    }
    AutogradMeta::materialize(tensor)?.set_requires_grad_flag(value);
    Ok(())
}

/// `tensor.grad`.
pub fn grad(tensor: &Tensor) -> Option<Tensor> {
    tensor.autograd_meta().and_then(|meta| meta.grad())
}

/// `tensor.grad = grad`, with the checks that make later accumulation possible.
pub fn set_grad(tensor: &Tensor, grad: Option<Tensor>) -> Result<()> {
    if let Some(grad) = &grad {
        check!(!tensor.is_same(grad), "can't assign Variable as its own grad");
        let (want, got) = (tensor.scalar_type(), grad.scalar_type());
        if want != got {
            bail!(
                Runtime,
                "assigned grad has data of a different type: expected {}, got {}",
                want.name(),
                got.name()
            );
        }
        let (want, got) = (tensor.device(), grad.device());
        check!(
            want.type_ == got.type_ && (want.index == got.index || want.is_cpu()),
            "assigned grad has data located on a different device: expected {want}, got {got}"
        );
        let same = InputMetadata::new(tensor).is_same_shape(grad)?;
        check!(
            same,
            "assigned grad has data of a different size: expected {}, got {}",
            crate::input_metadata::format_sizes(&tensor.sym_sizes()),
            crate::input_metadata::format_sizes(&grad.sym_sizes())
        );
    } else if AutogradMeta::of(tensor).is_none() {
        return Ok(());
    }
    AutogradMeta::materialize(tensor)?.set_grad(grad);
    Ok(())
}

/// Replaces a tensor's data in place (`tensor.data = new_data`), keeping its autograd identity.
pub fn set_data(tensor: &Tensor, new_data: &Tensor) -> Result<()> {
    check!(
        tensor.key_set().highest_backend_key() == new_data.key_set().highest_backend_key()
            || (tensor.layout() == new_data.layout() && !tensor.is_meta() && !new_data.is_meta()),
        "Attempted to call `variable.set_data(tensor)`, but `variable` and `tensor` have incompatible tensor type."
    );
    check!(
        !requires_grad(tensor) || is_differentiable_type(new_data.scalar_type()),
        "data set to a tensor that requires gradients must be floating point or complex dtype"
    );
    // An accumulator whose metadata no longer fits must not receive gradients of the old kind.
    if let Some(meta) = AutogradMeta::of(tensor) {
        let fits = tensor.scalar_type() == new_data.scalar_type() && tensor.device() == new_data.device();
        if !fits {
            let old = meta.state.lock().grad_accumulator.take();
            drop(old);
        }
    }
    let old_storage = tensor.with_exclusive_metadata("set_data()", || {
        // SAFETY: no other thread uses the metadata here, and nothing borrowed from it is used afterwards.
        unsafe { tensor.shallow_copy_from(new_data) }
    })?;
    drop(old_storage);
    Ok(())
}

/// Asks backward to fill `.grad` of a tensor that isn't a leaf.
pub fn retain_grad(tensor: &Tensor) -> Result<()> {
    check!(requires_grad(tensor), "can't retain_grad on Tensor that has requires_grad=False");
    if is_leaf_as_known(tensor) {
        return Ok(());
    }
    let meta = AutogradMeta::materialize(tensor)?;
    if meta.state.lock().retains_grad.is_some() {
        return Ok(());
    }
    let Some(node) = grad_fn(tensor)? else { return Ok(()) };
    let weak = tensor.weak();
    let hook = TensorHookFn(move |grad: &Tensor| {
        if let Some(tensor) = weak.upgrade() {
            let _pin = TensorPin::new(grad);
            let sum = match self::grad(&tensor) {
                Some(present) => {
                    let _pin = TensorPin::new(&present);
                    tensor_ops::add(&present, grad)?
                }
                None => tensor_ops::clone_contiguous(grad)?,
            };
            AutogradMeta::materialize(&tensor)?.set_grad(Some(sum));
        }
        Ok(None)
    });
    let output_nr = output_nr(tensor);
    node.add_retains_grad_hook(output_nr, Arc::new(hook));
    meta.state.lock().retains_grad = Some(output_nr);
    Ok(())
}

/// Whether backward fills `.grad` of a tensor that isn't a leaf.
pub fn retains_grad(tensor: &Tensor) -> bool {
    AutogradMeta::of(tensor)
        .is_some_and(|meta| meta.has_grad_fn() && meta.state.lock().retains_grad.is_some())
}

/// `tensor.register_hook(hook)`.
pub fn register_hook(tensor: &Tensor, hook: Arc<dyn TensorHook>) -> Result<HookHandle> {
    check!(requires_grad(tensor), "cannot register a hook on a tensor that doesn't require gradient");
    match grad_fn(tensor)? {
        Some(node) => Ok(node.add_tensor_pre_hook(output_nr(tensor), hook)),
        None => {
            let hooks = AutogradMeta::materialize(tensor)?.leaf_hooks_or_init();
            let id = hooks.lock().add_tensor(hook);
            Ok(HookHandle::on_leaf(Arc::downgrade(hooks), id))
        }
    }
}

/// `tensor.register_post_accumulate_grad_hook(hook)`.
pub fn register_post_accumulate_grad_hook(
    tensor: &Tensor,
    hook: Arc<dyn PostAccumulateGradHook>,
) -> Result<HookHandle> {
    check!(requires_grad(tensor), "cannot register a hook on a tensor that doesn't require gradient");
    check!(is_leaf(tensor)?, "post accumulate grad hooks cannot be registered on non-leaf tensors");
    let hooks = AutogradMeta::materialize(tensor)?.leaf_hooks_or_init();
    let id = hooks.lock().add_post_accumulate(hook);
    Ok(HookHandle::on_leaf(Arc::downgrade(hooks), id))
}
