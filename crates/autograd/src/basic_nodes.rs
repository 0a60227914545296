//! Small nodes without an operator of their own.

use std::any::Any;
use std::borrow::Cow;

use c10::{bail, Result};
use smallvec::SmallVec;

use crate::edge::VariableList;
use crate::node::{Node, NodeFunction};

/// Refuses to be run.
pub struct ErrorNode {
    message: String,
}

impl ErrorNode {
    /// Running the node gives `message`.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into() }
    }
}

impl NodeFunction for ErrorNode {
    fn name(&self) -> Cow<'_, str> {
        Cow::Borrowed("Error")
    }
    fn apply(&self, _: &Node, _: VariableList) -> Result<VariableList> {
        bail!(Runtime, "{}", self.message)
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// The history of an operator that has no derivative: fails when a gradient is asked of it.
pub struct NotImplemented {
    message: String,
}

impl NotImplemented {
    /// For the operator `name`: `aten::cummax`.
    pub fn new(name: &str) -> Self {
        Self { message: format!("derivative for {name} is not implemented") }
    }
}

impl NodeFunction for NotImplemented {
    fn name(&self) -> Cow<'_, str> {
        Cow::Borrowed("NotImplemented")
    }
    fn apply(&self, _: &Node, _: VariableList) -> Result<VariableList> {
        bail!(Runtime, "{}", self.message)
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Fails in the second backward: the node of a gradient that can't be differentiated again (`once_differentiable`).
pub struct DelayedError {
    message: String,
}

impl DelayedError {
    /// Running the node gives `message`.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into() }
    }
}

impl NodeFunction for DelayedError {
    fn name(&self) -> Cow<'_, str> {
        Cow::Borrowed("DelayedError")
    }
    fn apply(&self, _: &Node, _: VariableList) -> Result<VariableList> {
        bail!(Runtime, "{}", self.message)
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Gives no gradient.
pub struct UndefinedGrad;

impl NodeFunction for UndefinedGrad {
    fn name(&self) -> Cow<'_, str> {
        Cow::Borrowed("UndefinedGrad")
    }
    fn apply(&self, node: &Node, _: VariableList) -> Result<VariableList> {
        Ok(SmallVec::from_elem(None, node.num_outputs()))
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Passes gradients on.
pub struct Identity;

impl NodeFunction for Identity {
    fn name(&self) -> Cow<'_, str> {
        Cow::Borrowed("Identity")
    }
    fn apply(&self, _: &Node, grads: VariableList) -> Result<VariableList> {
        Ok(grads)
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Starts a backward pass with several roots: gives each its gradient.
pub struct GraphRoot {
    outputs: VariableList,
}

impl GraphRoot {
    /// `outputs` go along the node's edges.
    pub fn new(outputs: VariableList) -> Self {
        Self { outputs }
    }
}

impl NodeFunction for GraphRoot {
    fn name(&self) -> Cow<'_, str> {
        Cow::Borrowed("GraphRoot")
    }
    fn apply(&self, _: &Node, _: VariableList) -> Result<VariableList> {
        Ok(self.outputs.clone())
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}
