//! Derivatives of convolution.

use c10::{Result, SymDimVector, SymInt, Tensor};
use ops::at;

use super::plus;

/// `convolution_backward` with respect to the gradient, the input and the weight.
///
/// Convolution is bilinear in input and weight, so each term is a convolution or one of its two adjoints. `grads` belong to
/// the gradients of input, weight and bias.
#[allow(clippy::too_many_arguments)] // The operator has that many.
pub fn convolution_double_backward(
    grads: &[Option<Tensor>],
    grad_output: &Tensor,
    weight: &Tensor,
    input: &Tensor,
    stride: &[SymInt],
    padding: &[SymInt],
    dilation: &[SymInt],
    transposed: bool,
    output_padding: &[SymInt],
    groups: &SymInt,
    mask: [bool; 3],
) -> Result<(Option<Tensor>, Option<Tensor>, Option<Tensor>)> {
    let term = |i: usize| grads.get(i).and_then(Option::as_ref);
    let (for_input, for_weight, for_bias) = (term(0), term(1), term(2));
    let forward = |input: &Tensor, weight: &Tensor| {
        at::convolution(input, weight, None, stride, padding, dilation, transposed, output_padding, groups)
    };
    let adjoint = |input: &Tensor, weight: &Tensor, which: [bool; 3]| {
        at::convolution_backward(
            grad_output,
            input,
            weight,
            None,
            stride,
            padding,
            dilation,
            transposed,
            output_padding,
            groups,
            &which,
        )
    };

    let mut to_grad_output = None;
    if mask[0] {
        if let Some(g) = for_input {
            to_grad_output = Some(forward(g, weight)?);
        }
        if let Some(g) = for_weight {
            to_grad_output = Some(plus(to_grad_output, forward(input, g)?)?);
        }
        if let Some(g) = for_bias {
            // One value per channel, the second dimension.
            let mut shape = SymDimVector::from_elem(SymInt::from(1), grad_output.dim() as usize);
            if let Some(channels) = shape.get_mut(1) {
                *channels = SymInt::from(-1);
            }
            let spread = at::expand(&at::reshape(g, &shape)?, &grad_output.sym_sizes(), false)?;
            to_grad_output = Some(plus(to_grad_output, spread)?);
        }
    }
    let to_input = match for_weight.filter(|_| mask[1]) {
        Some(g) => adjoint(input, g, [true, false, false])?.0,
        None => None,
    };
    let to_weight = match for_input.filter(|_| mask[2]) {
        Some(g) => adjoint(g, weight, [false, true, false])?.1,
        None => None,
    };
    Ok((to_grad_output, to_input, to_weight))
}

/// The sizes of an image.
pub fn last_two(sizes: &[SymInt]) -> Result<SymDimVector> {
    ops::composite::conv::last_two(sizes)
}
