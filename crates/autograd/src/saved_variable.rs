//! [`SavedVariable`]: a tensor kept by a node from forward to backward.
//!
//! # Note [SavedVariable and in-place]
//!
//! A saved tensor must not have been modified when backward reads it, so its version is remembered and compared.
//!
//! # Note [SavedVariable and cycles]
//!
//! A node that saved one of its own outputs as it is would own itself through the output's `grad_fn`. So an output is
//! saved as a detached alias, and `unpack` is told the node (`saved_for`) to attach again. Leaves and inputs are
//! saved as they are.

use std::sync::Arc;

use c10::{bail, check, NoGradGuard, Result, SymInt, Tensor};
use dispatch::IValue;
use parking_lot::Mutex;

use crate::anomaly_mode;
use crate::edge::Edge;
use crate::input_metadata::format_sizes;
use crate::node::{Node, WeakNode};
use crate::saved_tensor_hooks::{self, PackedTensor, SavedTensorHooks};
use crate::variable;

/// What backward says when what it needs has been freed.
pub const ERR_BACKWARD_TWICE: &str = "Trying to backward through the graph a second time (or directly access saved \
tensors after they have already been freed). Saved intermediate values of the graph are freed when you call .backward() \
or autograd.grad(). Specify retain_graph=True if you need to backward through the graph a second time or if you need to \
access saved tensors after calling backward.";

const ERR_INFERENCE: &str = "Inference tensors cannot be saved for backward. Please do not use Tensors created in \
inference mode in computation tracked by autograd. To work around this, you can make a clone to get a normal tensor and \
use it in autograd, or use `torch.no_grad()` instead of `torch.inference_mode()`.";

/// What few saved variables have.
#[derive(Clone, Default)]
struct Rare {
    /// The history of an input that was not saved as it is.
    grad_fn: Option<Node>,
    /// For an output that is an in-place modified view: its grad_fn isn't the node that saves it.
    weak_grad_fn: Option<WeakNode>,
    /// The accumulator of a leaf that was not saved as it is.
    grad_accumulator: Option<WeakNode>,
    /// What the pack hook kept.
    packed: Option<Arc<dyn PackedTensor>>,
}

/// A tensor kept for backward. `SavedVariable::default()` keeps an undefined tensor.
#[derive(Clone, Default)]
pub struct SavedVariable {
    data: Option<Tensor>,
    rare: Option<Box<Rare>>,
    saved_version: u32,
    output_nr: u32,
    is_defined: bool,
    is_inplace_on_view: bool,
    saved_original: bool,
    is_leaf: bool,
    requires_grad: bool,
}

impl SavedVariable {
    /// Saves a tensor. `is_output` says that the node that saves it is (or will be) its `grad_fn`.
    pub fn new(variable: Option<&Tensor>, is_output: bool) -> Result<Self> {
        Self::new_inner(variable, is_output, false)
    }

    /// Saves an output that is a view which the operator has modified in place.
    pub fn new_inplace_on_view(variable: &Tensor) -> Result<Self> {
        Self::new_inner(Some(variable), true, true)
    }

    fn new_inner(variable: Option<&Tensor>, is_output: bool, is_inplace_on_view: bool) -> Result<Self> {
        let Some(tensor) = variable else { return Ok(Self::default()) };
        check!(!tensor.is_inference(), "{ERR_INFERENCE}");
        let is_leaf = variable::is_leaf_as_known(tensor);
        let mut saved = Self {
            saved_version: variable::version(tensor),
            is_defined: true,
            is_leaf,
            is_inplace_on_view,
            ..Self::default()
        };
        if is_inplace_on_view {
            saved.rare_mut().weak_grad_fn = variable::grad_fn(tensor)?.map(|node| node.downgrade());
        }
        // Wrapped numbers are the system's own and are kept from users' hooks.
        if let Some(hooks) = saved_tensor_hooks::top().filter(|_| !tensor.is_wrapped_number()) {
            saved.save_metadata(tensor, is_output)?;
            let data = if is_output && !is_leaf { variable::tensor_data(tensor)? } else { tensor.clone() };
            saved.set_hooks_and_pack(&*hooks, &data)?;
            return Ok(saved);
        }
        if !is_output || is_leaf {
            saved.saved_original = true;
            saved.data = Some(tensor.clone());
            return Ok(saved);
        }
        saved.save_metadata(tensor, is_output)?;
        saved.data = Some(variable::tensor_data(tensor)?);
        Ok(saved)
    }

    fn rare_mut(&mut self) -> &mut Rare {
        self.rare.get_or_insert_with(Box::default)
    }

    fn packed(&self) -> Option<&Arc<dyn PackedTensor>> {
        self.rare.as_ref()?.packed.as_ref()
    }

    fn save_metadata(&mut self, tensor: &Tensor, is_output: bool) -> Result<()> {
        self.output_nr = variable::output_nr(tensor);
        if self.is_leaf {
            self.requires_grad = variable::requires_grad(tensor);
            if self.requires_grad {
                self.rare_mut().grad_accumulator = Some(variable::grad_accumulator(tensor)?.downgrade());
            }
        } else if !is_output {
            self.rare_mut().grad_fn = variable::grad_fn(tensor)?;
        }
        Ok(())
    }

    fn set_hooks_and_pack(&mut self, hooks: &dyn SavedTensorHooks, data: &Tensor) -> Result<()> {
        let _no_grad = NoGradGuard::new();
        let version = variable::version(data);
        let packed = hooks.pack(data)?;
        check!(
            version == variable::version(data),
            "A saved tensor pack hook is modifying its input in place. Tensors provided as input to pack hook can not \
             be modified by in-place operations as this can lead to unexpected side-effects. Please open an issue if \
             you need to perform in-place operations on the input to a pack hook."
        );
        self.rare_mut().packed = Some(packed);
        self.data = None;
        Ok(())
    }

    /// Replaces the kept tensor by what `hooks` make of it.
    pub fn register_hooks(&mut self, hooks: &dyn SavedTensorHooks) -> Result<()> {
        check!(
            self.packed().is_none(),
            "Calling register_hooks on a saved tensor whose hooks have already been set. Hint: only one pair of hooks \
             is allowed at a time."
        );
        let Some(data) = self.data.clone() else {
            check!(self.is_defined, "Calling register_hooks on a saved tensor with value None is forbidden");
            bail!(
                Runtime,
                "Calling register_hooks on a saved tensor after it has been freed. Saved intermediate values of the \
                 graph are freed when you call .backward() or autograd.grad(). Specify retain_graph=True if you need \
                 to backward through the graph a second time or if you need to access saved variables after calling \
                 backward."
            );
        };
        if self.saved_original {
            self.save_metadata(&data, false)?;
            self.saved_original = false;
            return self.set_hooks_and_pack(hooks, &variable::detach(&data)?);
        }
        self.set_hooks_and_pack(hooks, &data)
    }

    /// The tensor held right now, for a garbage collector's visit.
    pub fn peek(&self) -> Option<&Tensor> {
        self.data.as_ref()
    }

    /// Forgets the tensor.
    pub fn reset_data(&mut self) {
        self.data = None;
        self.rare = None;
    }

    /// The tensor as a variable with its history. `saved_for` is the node that saved it.
    pub fn unpack(&self, saved_for: Option<&Node>) -> Result<Option<Tensor>> {
        if !self.is_defined {
            return Ok(None);
        }
        if let (Some(data), true) = (&self.data, self.saved_original) {
            self.check_version(data, saved_for)?;
            return Ok(Some(data.clone()));
        }
        let grad_fn = self.grad_fn(saved_for)?;
        let data = self.data(saved_for)?;
        let variable = match grad_fn {
            Some(node) => variable::make_variable_with_edge(&data, Edge::new(node, self.output_nr))?,
            None => variable::make_variable(&data, self.requires_grad)?,
        };
        if let Some(accumulator) = self.rare.as_ref().and_then(|rare| rare.grad_accumulator.as_ref()) {
            variable::set_grad_accumulator(&variable, accumulator.clone());
        }
        Ok(Some(variable))
    }

    /// The tensor for a reader that records no graph: its history may be missing.
    pub(crate) fn unpack_data(&self, saved_for: Option<&Node>) -> Result<Option<Tensor>> {
        if !self.is_defined {
            return Ok(None);
        }
        self.data(saved_for).map(Some)
    }

    fn data(&self, saved_for: Option<&Node>) -> Result<Tensor> {
        if let Some(packed) = self.packed() {
            return packed.unpack();
        }
        match &self.data {
            Some(data) => {
                self.check_version(data, saved_for)?;
                Ok(data.clone())
            }
            None => bail!(Runtime, "{ERR_BACKWARD_TWICE}"),
        }
    }

    fn grad_fn(&self, saved_for: Option<&Node>) -> Result<Option<Node>> {
        if self.is_leaf {
            return Ok(None);
        }
        if self.saved_original {
            return match &self.data {
                Some(data) => variable::grad_fn(data),
                None => Ok(None),
            };
        }
        let rare = self.rare.as_ref();
        let own = if self.is_inplace_on_view {
            rare.and_then(|r| r.weak_grad_fn.as_ref()).and_then(WeakNode::upgrade)
        } else {
            rare.and_then(|r| r.grad_fn.clone())
        };
        Ok(own.or_else(|| saved_for.cloned()))
    }

    #[inline]
    fn check_version(&self, data: &Tensor, saved_for: Option<&Node>) -> Result<()> {
        let current = variable::version(data);
        if current == self.saved_version {
            return Ok(());
        }
        self.version_error(data, current, saved_for)
    }

    #[cold]
    fn version_error(&self, data: &Tensor, current: u32, saved_for: Option<&Node>) -> Result<()> {
        let mut message = format!(
            "one of the variables needed for gradient computation has been modified by an inplace operation: [{} {}]",
            type_string(data),
            format_sizes(&data.sym_sizes())
        );
        if let Some(node) = self.grad_fn(saved_for)? {
            let output_nr = if self.saved_original { variable::output_nr(data) } else { self.output_nr };
            message.push_str(&format!(", which is output {output_nr} of {},", node.name()));
        }
        message
            .push_str(&format!(" is at version {current}; expected version {} instead.", self.saved_version));
        message.push_str(if anomaly_mode::is_enabled() {
            " Hint: the backtrace further above shows the operation that failed to compute its gradient. The variable in \
             question was changed in there or anywhere later. Good luck!"
        } else {
            " Hint: enable anomaly detection to find the operation that failed to compute its gradient, with \
             torch.autograd.set_detect_anomaly(True)."
        });
        bail!(Runtime, "{message}")
    }
}

/// The legacy type name that PyTorch's messages show: `torch.FloatTensor`, `torch.cuda.HalfTensor`.
pub(crate) fn type_string(tensor: &Tensor) -> String {
    let device = tensor.device();
    let backend = if device.is_cpu() { String::new() } else { format!("{}.", device.type_) };
    format!("torch.{backend}{}Tensor", tensor.scalar_type().short_name())
}

/// What `grad_fn._saved_*` shows.
pub enum SavedValue {
    /// The value wasn't saved, or is an undefined tensor.
    None,
    /// A saved tensor, unpacked.
    Tensor(Tensor),
    /// A saved list, unpacked.
    TensorList(Vec<Option<Tensor>>),
    /// An argument that isn't a tensor.
    Value(IValue),
    /// Sizes of an input.
    SymSizes(Vec<SymInt>),
    /// Another fact about an input.
    Meta(crate::saved_meta::SavedMeta),
}

/// A saved variable in its node: `grad_fn._raw_saved_*`.
pub struct SavedVariableRef {
    node: Node,
    slot: usize,
    index: usize,
}

impl SavedVariableRef {
    pub(crate) fn new(node: Node, slot: usize, index: usize) -> Self {
        Self { node, slot, index }
    }

    fn cell(&self) -> Result<&Mutex<SavedVariable>> {
        let cell = self.node.as_generated().and_then(|g| g.saved_cell(self.slot, self.index));
        cell.ok_or_else(|| c10::Error::internal("a saved variable reference outlived its slot"))
    }

    /// Replaces the kept tensor by what `hooks` make of it.
    pub fn register_hooks(&self, hooks: &dyn SavedTensorHooks) -> Result<()> {
        // Packed outside the lock: the hook is foreign code.
        let mut saved = self.cell()?.lock().clone();
        saved.register_hooks(hooks)?;
        *self.cell()?.lock() = saved;
        Ok(())
    }

    /// The tensor.
    pub fn unpack(&self) -> Result<Option<Tensor>> {
        let saved = self.cell()?.lock().clone();
        saved.unpack(Some(&self.node))
    }
}
