//! Meta functions of resizing.

use c10::{check, compute_strides_for_memory_format, Result, SizeInt, SymInt, Tensor};
use iter::StructuredOutputs;

/// The sizes of a resized batch of images.
fn resized<I: SizeInt>(input: &[I], output_size: &[SymInt]) -> Result<Vec<I>> {
    let spatial = output_size.len();
    let wanted = I::from_sym_slice(output_size)?;
    check!(
        input.len() == spatial + 2,
        "It is expected input_size equals to {}, but got size {}",
        spatial + 2,
        input.len()
    );
    let mut positive = true;
    for size in input[2..].iter().chain(&wanted) {
        positive = positive && I::ONE.expect_le(size)?;
    }
    check!(
        positive,
        "Input and output sizes should be greater than 0, but got input {:?} and output {:?}",
        &input[2..],
        &wanted[..]
    );
    Ok(input[..2].iter().chain(&wanted).cloned().collect())
}

fn forward<I: SizeInt>(outs: &mut StructuredOutputs, self_: &Tensor, output_size: &[SymInt]) -> Result<()> {
    let input = I::sizes_of(self_)?;
    let sizes = resized(&input, output_size)?;
    check!(
        !input[1].is_zero()?,
        "Non-empty {}D data tensor expected but got a tensor with sizes {:?}",
        input.len(),
        &input[..]
    );
    let strides = compute_strides_for_memory_format(&sizes, self_.suggest_memory_format())?;
    outs.set_output_strided(0, &sizes, &strides, self_.options())
}

fn backward<I: SizeInt>(
    outs: &mut StructuredOutputs,
    grad_output: &Tensor,
    output_size: &[SymInt],
    input_size: &[SymInt],
) -> Result<()> {
    let input = I::from_sym_slice(input_size)?;
    let expected = resized(&input, output_size)?;
    let found = I::sizes_of(grad_output)?;
    check!(
        found.len() == expected.len() && I::expect_same(&found, &expected)?,
        "Expected grad_output to have the same shape as output; output.size = {expected:?} but got grad_output.size = {:?}",
        &found[..]
    );
    let strides = compute_strides_for_memory_format(&input, grad_output.suggest_memory_format())?;
    outs.set_output_strided(0, &input, &strides, grad_output.options())
}

macro_rules! resizing {
    ($($forward:ident $backward:ident [$($align:ident)?] [$($scale:ident)*];)*) => {$(
        /// Resizing; the scales matter to the kernel alone.
        pub fn $forward<I: SizeInt>(
            outs: &mut StructuredOutputs,
            self_: &Tensor,
            output_size: &[SymInt],
            $($align: bool,)?
            $($scale: Option<f64>,)*
        ) -> Result<()> {
            forward::<I>(outs, self_, output_size)
        }
        /// Its gradient.
        #[allow(clippy::too_many_arguments)]
        pub fn $backward<I: SizeInt>(
            outs: &mut StructuredOutputs,
            grad_output: &Tensor,
            output_size: &[SymInt],
            input_size: &[SymInt],
            $($align: bool,)?
            $($scale: Option<f64>,)*
        ) -> Result<()> {
            backward::<I>(outs, grad_output, output_size, input_size)
        }
    )*};
}

resizing! {
    upsample1d_meta upsample1d_backward_meta [] [_w];
    upsample2d_meta upsample2d_backward_meta [] [_h _w];
    upsample3d_meta upsample3d_backward_meta [] [_d _h _w];
    upsample_align1d_meta upsample_align1d_backward_meta [_align_corners] [_w];
    upsample_align2d_meta upsample_align2d_backward_meta [_align_corners] [_h _w];
    upsample_align3d_meta upsample_align3d_backward_meta [_align_corners] [_d _h _w];
}
