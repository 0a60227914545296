//! Resizing by factors: the `vec` overloads, which take a size or factors.

use c10::{check, Result, SymDimVector, SymInt, Tensor};

use crate::at;

/// The output's size, and the factor of each dimension if factors were given.
fn target(
    input: &Tensor,
    output_size: Option<&[SymInt]>,
    scale_factors: Option<&[f64]>,
    spatial: usize,
) -> Result<(SymDimVector, [Option<f64>; 3])> {
    let sizes = input.sym_sizes();
    check!(
        sizes.len() == spatial + 2,
        "It is expected input_size equals to {}, but got size {}",
        spatial + 2,
        sizes.len()
    );
    match (output_size, scale_factors) {
        (Some(size), None) => {
            check!(size.len() == spatial, "expected {spatial} sizes, got {size:?}");
            Ok((SymDimVector::from(size), [None; 3]))
        }
        (None, Some(factors)) => {
            check!(factors.len() == spatial, "expected {spatial} scale factors, got {factors:?}");
            let mut size = SymDimVector::new();
            let mut scales = [None; 3];
            for (d, &factor) in factors.iter().enumerate() {
                scales[d] = Some(factor);
                size.push(SymInt::from((sizes[d + 2].guard_int()? as f64 * factor) as i64));
            }
            Ok((size, scales))
        }
        _ => c10::bail!(Runtime, "Must specify exactly one of output_size and scale_factors"),
    }
}

macro_rules! vec_overloads {
    ($($(#[$doc:meta])* $name:ident $call:ident $spatial:literal [$($align:ident)?] [$($index:literal)*];)*) => {$(
        $(#[$doc])*
        pub fn $name(
            input: &Tensor,
            output_size: Option<&[SymInt]>,
            $($align: bool,)?
            scale_factors: Option<&[f64]>,
        ) -> Result<Tensor> {
            let (size, scales) = target(input, output_size, scale_factors, $spatial)?;
            at::$call(input, &size, $($align,)? $(scales[$index]),*)
        }
    )*};
}

vec_overloads! {
    /// `aten::upsample_nearest1d.vec`
    upsample_nearest1d_vec upsample_nearest1d 1 [] [0];
    /// `aten::upsample_nearest2d.vec`
    upsample_nearest2d_vec upsample_nearest2d 2 [] [0 1];
    /// `aten::upsample_nearest3d.vec`
    upsample_nearest3d_vec upsample_nearest3d 3 [] [0 1 2];
    /// `aten::_upsample_nearest_exact1d.vec`
    _upsample_nearest_exact1d_vec _upsample_nearest_exact1d 1 [] [0];
    /// `aten::_upsample_nearest_exact2d.vec`
    _upsample_nearest_exact2d_vec _upsample_nearest_exact2d 2 [] [0 1];
    /// `aten::_upsample_nearest_exact3d.vec`
    _upsample_nearest_exact3d_vec _upsample_nearest_exact3d 3 [] [0 1 2];
    /// `aten::upsample_linear1d.vec`
    upsample_linear1d_vec upsample_linear1d 1 [align_corners] [0];
    /// `aten::upsample_bilinear2d.vec`
    upsample_bilinear2d_vec upsample_bilinear2d 2 [align_corners] [0 1];
    /// `aten::upsample_trilinear3d.vec`
    upsample_trilinear3d_vec upsample_trilinear3d 3 [align_corners] [0 1 2];
    /// `aten::upsample_bicubic2d.vec`
    upsample_bicubic2d_vec upsample_bicubic2d 2 [align_corners] [0 1];
    /// `aten::_upsample_bilinear2d_aa.vec`
    _upsample_bilinear2d_aa_vec _upsample_bilinear2d_aa 2 [align_corners] [0 1];
    /// `aten::_upsample_bicubic2d_aa.vec`
    _upsample_bicubic2d_aa_vec _upsample_bicubic2d_aa 2 [align_corners] [0 1];
}
