//! `backward` and `grad`, with the checks of `torch.autograd`.

use c10::{bail, check, Result, Tensor, TensorPin};

use crate::basic_nodes::Identity;
use crate::edge::{Edge, VariableList};
use crate::engine;
use crate::input_metadata::{format_sizes, InputMetadata};
use crate::node::Node;
use crate::tensor_ops;
use crate::variable;

/// A tensor, or the place in the graph where its gradient would arrive.
#[derive(Clone, Copy)]
pub enum GradientTarget<'a> {
    /// A tensor.
    Tensor(&'a Tensor),
    /// An edge (`torch.autograd.graph.GradientEdge`).
    Edge(&'a Edge),
}

impl GradientTarget<'_> {
    /// Keeps a tensor as it is while its metadata is read.
    fn pin(&self) -> Option<TensorPin<&Tensor>> {
        match self {
            Self::Tensor(tensor) => Some(TensorPin::new(*tensor)),
            Self::Edge(_) => None,
        }
    }
}

/// Sums gradients of `tensors` into the `.grad` of leaves (of `inputs` only, when given).
///
/// `grad_tensors` is empty or as long as `tensors`; `retain_graph` defaults to `create_graph`.
pub fn backward(
    tensors: &[Tensor],
    grad_tensors: &[Option<Tensor>],
    retain_graph: Option<bool>,
    create_graph: bool,
    inputs: Option<&[Tensor]>,
) -> Result<()> {
    let targets: Vec<_> = tensors.iter().map(GradientTarget::Tensor).collect();
    let inputs: Option<Vec<_>> = inputs.map(|inputs| inputs.iter().map(GradientTarget::Tensor).collect());
    backward_targets(&targets, grad_tensors, retain_graph, create_graph, inputs.as_deref())
}

/// [`backward`] for edges and tensors.
pub fn backward_targets(
    outputs: &[GradientTarget<'_>],
    grad_outputs: &[Option<Tensor>],
    retain_graph: Option<bool>,
    create_graph: bool,
    inputs: Option<&[GradientTarget<'_>]>,
) -> Result<()> {
    check!(inputs.is_none_or(|i| !i.is_empty()), "`inputs` argument to `backward()` cannot be empty.");
    let grads = make_grads(outputs, grad_outputs)?;
    let keep_graph = retain_graph.unwrap_or(create_graph);
    run_backward(outputs, grads, keep_graph, create_graph, inputs.unwrap_or(&[]), true, true)?;
    Ok(())
}

/// Gradients of `outputs` with respect to `inputs`, which are returned and not accumulated.
pub fn grad(
    outputs: &[Tensor],
    inputs: &[Tensor],
    grad_outputs: &[Option<Tensor>],
    retain_graph: Option<bool>,
    create_graph: bool,
    allow_unused: Option<bool>,
    materialize_grads: bool,
) -> Result<Vec<Option<Tensor>>> {
    let outputs: Vec<_> = outputs.iter().map(GradientTarget::Tensor).collect();
    let inputs: Vec<_> = inputs.iter().map(GradientTarget::Tensor).collect();
    grad_targets(&outputs, &inputs, grad_outputs, retain_graph, create_graph, allow_unused, materialize_grads)
}

/// [`grad`] for edges and tensors.
pub fn grad_targets(
    outputs: &[GradientTarget<'_>],
    inputs: &[GradientTarget<'_>],
    grad_outputs: &[Option<Tensor>],
    retain_graph: Option<bool>,
    create_graph: bool,
    allow_unused: Option<bool>,
    materialize_grads: bool,
) -> Result<Vec<Option<Tensor>>> {
    if materialize_grads && allow_unused == Some(false) {
        bail!(
            Value,
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False."
        );
    }
    let allow_unused = allow_unused.unwrap_or(materialize_grads);
    check!(!inputs.is_empty(), "grad requires non-empty inputs.");
    let grads = make_grads(outputs, grad_outputs)?;
    let keep_graph = retain_graph.unwrap_or(create_graph);
    let mut results = run_backward(outputs, grads, keep_graph, create_graph, inputs, allow_unused, false)?;
    if materialize_grads {
        for (result, input) in results.iter_mut().zip(inputs) {
            if result.is_none() {
                let _pin = input.pin();
                *result = Some(match input {
                    GradientTarget::Tensor(tensor) => tensor_ops::zeros_like(tensor)?,
                    GradientTarget::Edge(_) => bail!(
                        Runtime,
                        "materialize_grads cannot be used when the given input is a GradientEdge"
                    ),
                });
            }
        }
    }
    Ok(results)
}

/// The engine call of `torch.autograd`: gradients are complete, `inputs` may be empty for `backward`.
#[allow(clippy::too_many_arguments)]
pub fn run_backward(
    outputs: &[GradientTarget<'_>],
    grads: VariableList,
    keep_graph: bool,
    create_graph: bool,
    inputs: &[GradientTarget<'_>],
    allow_unreachable: bool,
    accumulate_grad: bool,
) -> Result<Vec<Option<Tensor>>> {
    let mut roots = Vec::with_capacity(outputs.len());
    for (i, output) in outputs.iter().enumerate() {
        let _pin = output.pin();
        let edge = match output {
            GradientTarget::Tensor(tensor) => variable::gradient_edge(tensor)?,
            GradientTarget::Edge(edge) => (*edge).clone(),
        };
        check!(edge.is_valid(), "element {i} of tensors does not require grad and does not have a grad_fn");
        roots.push(edge);
    }
    let mut output_edges = Vec::with_capacity(inputs.len());
    for input in inputs {
        output_edges.push(input_edge(*input, accumulate_grad)?);
    }
    let results = engine::execute(roots, grads, keep_graph, create_graph, accumulate_grad, output_edges)?;
    if !accumulate_grad && !allow_unreachable {
        check!(
            results.iter().all(Option::is_some),
            "One of the differentiated Tensors appears to not have been used in the graph. Set allow_unused=True if this \
             is the desired behavior."
        );
    }
    Ok(results)
}

fn input_edge(input: GradientTarget<'_>, accumulate_grad: bool) -> Result<Edge> {
    let _pin = input.pin();
    let tensor = match input {
        GradientTarget::Edge(edge) => return Ok(edge.clone()),
        GradientTarget::Tensor(tensor) => tensor,
    };
    check!(variable::requires_grad(tensor), "One of the differentiated Tensors does not require grad");
    if accumulate_grad {
        variable::retain_grad(tensor)?;
    }
    let node = match variable::grad_fn(tensor)? {
        Some(node) => Some(node),
        None => variable::try_get_grad_accumulator(tensor),
    };
    Ok(match node {
        Some(node) => Edge::new(node, variable::output_nr(tensor)),
        // A leaf without accumulator is in no graph. A node of its own keeps it apart from edges that lead nowhere.
        None => Edge::new(Node::new(Box::new(Identity)), 0),
    })
}

/// Fills in gradients of ones for scalars and checks those given.
fn make_grads(outputs: &[GradientTarget<'_>], grads: &[Option<Tensor>]) -> Result<VariableList> {
    if !grads.is_empty() && grads.len() != outputs.len() {
        bail!(Runtime, "got {} tensors and {} gradients", outputs.len(), grads.len());
    }
    let mut complete = VariableList::with_capacity(outputs.len());
    for (i, output) in outputs.iter().enumerate() {
        let _pin = output.pin();
        complete.push(match (grads.get(i).and_then(Option::as_ref), output) {
            (Some(grad), GradientTarget::Tensor(tensor)) => {
                check_grad(i, grad, tensor)?;
                Some(grad.clone())
            }
            (Some(grad), GradientTarget::Edge(_)) => Some(grad.clone()),
            (None, GradientTarget::Tensor(tensor)) => implicit_grad(tensor)?,
            (None, GradientTarget::Edge(_)) => {
                bail!(Runtime, "grad can be implicitly created only for scalar outputs")
            }
        });
    }
    Ok(complete)
}

fn implicit_grad(tensor: &Tensor) -> Result<Option<Tensor>> {
    if !variable::requires_grad(tensor) {
        return Ok(None);
    }
    check!(tensor.sym_numel().guard_eq(&1.into())?, "grad can be implicitly created only for scalar outputs");
    check!(
        tensor.scalar_type().is_floating_point(),
        "grad can be implicitly created only for real scalar outputs but got torch.{}",
        tensor.scalar_type().name()
    );
    // The gradient starts a graph of its own.
    tensor_ops::ones_like(tensor).map(Some)
}

fn check_grad(i: usize, grad: &Tensor, output: &Tensor) -> Result<()> {
    let _pin = TensorPin::new(grad);
    let same = InputMetadata::new(output).is_same_shape(grad)?;
    check!(
        same,
        "Mismatch in shape: grad_output[{i}] has a shape of torch.Size({}) and output[{i}] has a shape of torch.Size({}).",
        format_sizes(&grad.sym_sizes()),
        format_sizes(&output.sym_sizes())
    );
    check!(
        output.scalar_type().is_complex() == grad.scalar_type().is_complex(),
        "For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in dtype: \
         grad_output[{i}] has a dtype of torch.{} and output[{i}] has a dtype of torch.{}.",
        grad.scalar_type().name(),
        output.scalar_type().name()
    );
    Ok(())
}
