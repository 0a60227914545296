//! [`CopySlices`]: the backward of an in-place operator on a view, as a node of the base.
//!
//! # Note [In-place on views]
//!
//! `v = base[1]; v.mul_(2)` changes the base. So the base gets the new history: a node that takes the gradient of the whole
//! base, hands the part that belongs to the view to the operator's own backward, and puts what comes out in its
//! place. The rest passes unchanged. The view's own history is then made anew from the base (Note [View + in-place
//! detection]).

use std::any::Any;
use std::borrow::Cow;

use c10::{bail, check, Result, SymDimVector, SymInt, Tensor, TensorPin};
use parking_lot::Mutex;
use smallvec::SmallVec;

use crate::edge::{EdgeList, VariableList};
use crate::engine;
use crate::input_metadata::InputMetadata;
use crate::node::{Node, NodeFunction};
use crate::saved_variable::ERR_BACKWARD_TWICE;
use crate::tensor_ops;
use crate::variable;
use crate::view_meta::ViewFunc;

struct Geometry {
    sizes: SymDimVector,
    strides: SymDimVector,
    storage_offset: SymInt,
}

impl Geometry {
    fn of(tensor: &Tensor) -> Self {
        Self {
            sizes: tensor.sym_sizes(),
            strides: tensor.sym_strides(),
            storage_offset: tensor.sym_storage_offset(),
        }
    }
}

/// See Note [In-place on views].
pub struct CopySlices {
    base: Geometry,
    view: Geometry,
    view_fn: Option<ViewFunc>,
    /// The backward of the operator; gone after the only run.
    function: Mutex<Option<Node>>,
}

impl CopySlices {
    /// Wraps `function`, the backward of an operator that modified `view` of `base`.
    pub(crate) fn new_node(
        base: &Tensor,
        view: &Tensor,
        view_fn: Option<ViewFunc>,
        function: Node,
    ) -> Result<Node> {
        // The edges are the operator's, but the first leads to the base instead of the view.
        let mut edges = EdgeList::with_capacity(function.num_outputs());
        edges.push(variable::gradient_edge(base)?);
        edges.extend(function.next_edges().iter().skip(1).cloned());
        let this = Self {
            base: Geometry::of(base),
            view: Geometry::of(view),
            view_fn,
            function: Mutex::new(Some(function)),
        };
        Ok(Node::with_edges(Box::new(this), edges, &[InputMetadata::new(base)]))
    }

    fn slice(&self, of: &Tensor) -> Result<Tensor> {
        match &self.view_fn {
            Some(view_fn) => view_fn.apply(of),
            None => {
                let offset = self.view.storage_offset.sym_sub(&self.base.storage_offset)?;
                tensor_ops::as_strided(of, &self.view.sizes, &self.view.strides, &offset)
            }
        }
    }
}

impl NodeFunction for CopySlices {
    fn name(&self) -> Cow<'_, str> {
        Cow::Borrowed("CopySlices")
    }

    fn apply(&self, node: &Node, grads: VariableList) -> Result<VariableList> {
        let mut results: VariableList = SmallVec::from_elem(None, node.num_outputs());
        let Some(grad) = grads.into_iter().next().flatten() else { return Ok(results) };
        let function = self.function.lock().clone();
        let Some(function) = function else { bail!(Runtime, "{ERR_BACKWARD_TWICE}") };

        let _pin = TensorPin::new(&grad);
        let result = tensor_ops::new_empty_strided(&grad, &self.base.sizes, &self.base.strides)?;
        tensor_ops::copy_(&result, &grad)?;
        let grad_slice = self.slice(&result)?;

        // The operator's node isn't part of the graph: tell the running task which of its gradients are wanted.
        engine::add_successors_to_current_exec_info(&function);
        // A copy, because the slice is overwritten below while the operator's backward may keep its input.
        let slice_grads = function.apply(smallvec::smallvec![Some(tensor_ops::clone(&grad_slice)?)])?;
        check!(
            slice_grads.len() == results.len(),
            "Function {} returned an invalid number of gradients: expected {}, got {}",
            function.name(),
            results.len(),
            slice_grads.len()
        );
        for (i, slice_grad) in slice_grads.into_iter().enumerate() {
            if !node.task_should_compute_output(i) {
                continue;
            }
            if i == 0 {
                match slice_grad {
                    Some(slice_grad) => tensor_ops::copy_(&grad_slice, &slice_grad)?,
                    None => tensor_ops::copy_(&grad_slice, &tensor_ops::zeros_like(&grad_slice)?)?,
                };
                results[0] = Some(result.clone());
            } else {
                results[i] = slice_grad;
            }
        }
        Ok(results)
    }

    fn release_variables(&self) {
        let function = self.function.lock().take();
        drop(function);
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
