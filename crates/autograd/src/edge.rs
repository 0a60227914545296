//! A reference to one input of a [`Node`](crate::Node): where a gradient is sent.

use c10::Tensor;
use smallvec::SmallVec;

use crate::node::Node;

/// Where the gradient with respect to one tensor goes. An edge without a node leads nowhere: nothing upstream
/// needs that gradient.
#[derive(Clone, Default)]
pub struct Edge {
    /// The node that receives the gradient.
    pub function: Option<Node>,
    /// Which of the node's inputs it is.
    pub input_nr: u32,
}

impl Edge {
    /// An edge to an input of a node.
    #[inline]
    pub fn new(function: Node, input_nr: u32) -> Self {
        Self { function: Some(function), input_nr }
    }

    /// Whether the edge leads to a node.
    #[inline]
    pub fn is_valid(&self) -> bool {
        self.function.is_some()
    }
}

/// The edges out of a node. Most operators have one or two differentiable inputs.
pub type EdgeList = SmallVec<[Edge; 2]>;

/// The gradients that go into or come out of a node; `None` stands for a gradient of zeros that nobody made.
pub type VariableList = SmallVec<[Option<Tensor>; 2]>;
