//! The rules by which outputs of a user's `Function.forward` become variables.

use c10::{check, Result, Tensor};

use crate::edge::Edge;
use crate::input_metadata::InputMetadata;
use crate::node::Node;
use crate::variable;
use crate::view_meta::CreationMeta;

const ERR_RETURNED_AS_IS: &str = "A input that has been returned as-is as output is being saved for backward. This is not \
supported if you override setup_context. You should return and save a view of the input instead, e.g. with x.view_as(x) \
or setup ctx inside the forward function itself.";

fn contains(tensors: &[Tensor], tensor: &Tensor) -> bool {
    tensors.iter().any(|t| t.is_same(tensor))
}

/// What decides the fate of one output.
#[derive(Clone, Copy)]
struct Traits {
    is_input: bool,
    is_modified: bool,
    is_differentiable: bool,
    is_saved_and_setup_context: bool,
}

/// Attaches the outputs of a custom function to its node.
///
/// `node` is `None` when nothing is recorded. `inputs` are the tensor arguments of forward, `non_differentiable` and
/// `dirty` what it marked so, `to_save_with_setup_context` what `setup_context` saves, and `view_as_self` makes
/// a view of an input that was returned as it is.
pub fn wrap_outputs(
    inputs: &[Option<Tensor>],
    non_differentiable: &[Tensor],
    dirty: &[Tensor],
    raw_outputs: Vec<Option<Tensor>>,
    node: Option<&Node>,
    to_save_with_setup_context: &[Tensor],
    view_as_self: &dyn Fn(&Tensor) -> Result<Tensor>,
) -> Result<Vec<Option<Tensor>>> {
    let num_outputs = raw_outputs.len();
    let mut num_differentiable = 0;
    let mut outputs = Vec::with_capacity(num_outputs);
    let raw: Vec<Option<Tensor>> = raw_outputs.clone();
    for raw_output in raw_outputs {
        let Some(tensor) = raw_output else {
            if let Some(node) = node {
                // SAFETY: the node's outputs are not attached yet, so no other thread has it.
                unsafe { node.add_input_metadata(InputMetadata::undefined()) };
            }
            outputs.push(None);
            continue;
        };
        let traits = Traits {
            is_input: inputs.iter().flatten().any(|input| input.is_same(&tensor)),
            is_modified: contains(dirty, &tensor),
            is_differentiable: node.is_some()
                && !contains(non_differentiable, &tensor)
                && variable::is_differentiable_type(tensor.scalar_type()),
            is_saved_and_setup_context: contains(to_save_with_setup_context, &tensor),
        };
        let output = wrap_output(tensor, traits, node, num_outputs, view_as_self)?;
        if !(traits.is_input && traits.is_modified) && variable::is_view(&output) {
            variable::set_creation_meta(&output, CreationMeta::InCustomFunction);
        }
        num_differentiable += usize::from(traits.is_differentiable);
        outputs.push(Some(output));
    }
    if num_differentiable > 1 {
        // An in-place modification of one would have to rewrite the history of all.
        for output in outputs.iter().flatten().filter(|output| variable::is_view(output)) {
            variable::set_creation_meta(output, CreationMeta::MultiOutputNode);
        }
    }
    check!(
        dirty.iter().all(|tensor| contains(&raw.iter().flatten().cloned().collect::<Vec<_>>(), tensor)),
        "Some elements marked as dirty during the forward method were not returned as output. The inputs that are \
         modified inplace must all be outputs of the Function."
    );
    Ok(outputs)
}

fn wrap_output(
    tensor: Tensor,
    traits: Traits,
    node: Option<&Node>,
    num_outputs: usize,
    view_as_self: &dyn Fn(&Tensor) -> Result<Tensor>,
) -> Result<Tensor> {
    // SAFETY: the node's outputs are not attached yet, so no other thread has it.
    let add_input =
        |node: &Node, tensor: &Tensor| unsafe { node.add_input_metadata(InputMetadata::new(tensor)) };

    if !traits.is_differentiable {
        if let Some(node) = node {
            add_input(node, &tensor);
        }
        if !variable::requires_grad(&tensor) {
            if traits.is_input && !traits.is_modified {
                check!(!traits.is_saved_and_setup_context, "{ERR_RETURNED_AS_IS}");
                return view_as_self(&tensor);
            }
            return Ok(tensor);
        }
        if traits.is_input {
            // The input keeps its own requires_grad.
            return variable::detach(&tensor);
        }
        if !variable::is_view(&tensor) {
            variable::detach_(&tensor)?;
        }
        return Ok(tensor);
    }
    let Some(node) = node else { return Ok(tensor) };

    if traits.is_modified {
        variable::check_modified(&tensor)?;
        if !traits.is_input {
            crate::warning::warn(
                "Only input Tensors should be given to ctx.mark_dirty(). If a Tensor is not an input, there is no need \
                 to pass it to mark_dirty().",
            );
        }
        check!(
            !(variable::is_view(&tensor) && num_outputs > 1),
            "If your Function modifies inplace an input that is a view of another Tensor, your Function cannot return \
             more than one Tensor. This is not supported by the current autograd engine. You should either make sure the \
             input is not a view (using .clone() for example) or make your Function only return one Tensor (potentially \
             splitting it into two Functions: one doing the inplace that returns a single Tensor and a second one that \
             does the other operations). You can ask on the forum https://discuss.pytorch.org/ if you need help to do \
             this change."
        );
        let output_nr = add_input(node, &tensor);
        variable::rebase_history(&tensor, Edge::new(node.clone(), output_nr))?;
        return Ok(tensor);
    }
    let output = if traits.is_input {
        // Not the input itself: it has a history of its own.
        check!(!traits.is_saved_and_setup_context, "{ERR_RETURNED_AS_IS}");
        let _no_grad = c10::NoGradGuard::new();
        view_as_self(&tensor)?
    } else {
        tensor
    };
    let output_nr = add_input(node, &output);
    variable::set_gradient_edge(&output, Edge::new(node.clone(), output_nr))?;
    Ok(output)
}
