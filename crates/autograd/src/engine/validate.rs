//! Checks and repairs of gradients on their way along edges.

use c10::{bail, Result, Tensor, TensorPin};

use crate::edge::{Edge, VariableList};
use crate::formulas::sum_to;
use crate::input_metadata::{format_sizes, InputMetadata};
use crate::tensor_ops;

/// Makes each gradient fit the input that its edge leads to: sums broadcast dimensions, casts the dtype, moves scalars.
/// `what` begins the message of a failure: "Function MulBackward0 returned an ".
pub(super) fn validate_outputs(
    edges: &[Edge],
    grads: &mut VariableList,
    what: &dyn Fn() -> String,
) -> Result<()> {
    if grads.len() != edges.len() {
        bail!(
            Runtime,
            "{}invalid number of gradients - expected {}, but got {}",
            what(),
            edges.len(),
            grads.len()
        );
    }
    for (i, (edge, slot)) in edges.iter().zip(grads.iter_mut()).enumerate() {
        let (Some(next), Some(grad)) = (&edge.function, slot.as_ref()) else { continue };
        let Some(metadata) = next.input_metadata(edge.input_nr as usize) else { continue };
        let pin = TensorPin::new(grad);
        let repaired = validate_grad(i, grad, metadata, what)?;
        drop(pin);
        if let Some(repaired) = repaired {
            *slot = Some(repaired);
        }
    }
    Ok(())
}

/// `None` when the gradient is right as it is.
#[inline]
fn validate_grad(
    i: usize,
    grad: &Tensor,
    metadata: &InputMetadata,
    what: &dyn Fn() -> String,
) -> Result<Option<Tensor>> {
    let fits = metadata.is_same_shape(grad)?
        && metadata.dtype() == grad.scalar_type()
        && metadata.device() == grad.device()
        && metadata.layout() == grad.layout();
    if fits {
        return Ok(None);
    }
    repair(i, grad, metadata, what).map(Some)
}

#[cold]
fn repair(i: usize, grad: &Tensor, metadata: &InputMetadata, what: &dyn Fn() -> String) -> Result<Tensor> {
    let mut grad = grad.clone();
    if !metadata.is_same_shape(&grad)? {
        if !metadata.is_expandable_to_shape(&grad)? {
            bail!(
                Runtime,
                "{}invalid gradient at index {i} - got {} but expected shape compatible with {}",
                what(),
                format_sizes(&grad.sym_sizes()),
                metadata.shape_as_string()
            );
        }
        grad = sum_to(&grad, &metadata.sym_sizes())?;
    }
    let (want, got) = (metadata.dtype(), grad.scalar_type());
    if want != got {
        // A complex gradient of a real input, or an integral one of a complex input, is a mistake of the formula.
        if !got.is_floating_point() && want.is_complex() != got.is_complex() {
            bail!(
                Runtime,
                "{}invalid gradient at index {i} - expected dtype {} but got {}",
                what(),
                want.name(),
                got.name()
            );
        }
        grad = tensor_ops::to_dtype(&grad, want)?;
    }
    let (want, got) = (metadata.layout(), grad.layout());
    // A strided leaf may have a sparse gradient.
    if want != got && !grad.is_sparse() {
        bail!(Runtime, "{}invalid gradient at index {i} - expected layout {want} but got {got}", what());
    }
    let (want, got) = (metadata.device(), grad.device());
    if want != got && !metadata.is_tensor_subclass() && !grad.key_set().has(c10::DispatchKey::Python) {
        if grad.dim() != 0 {
            bail!(Runtime, "{}invalid gradient at index {i} - expected device {want} but got {got}", what());
        }
        grad = tensor_ops::to_device(&grad, want)?;
    }
    Ok(grad)
}
