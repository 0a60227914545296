//! Padding: around a tensor's last dimensions, last dimension first, before and after. Negative amounts cut.

use c10::{check, check_not_implemented, Result, Scalar, SizeInt, SymInt, Tensor};

use crate::at;

/// The dimensions that a list of paddings names, with the amounts before and after.
fn amounts<'a>(self_: &Tensor, pad: &'a [SymInt]) -> Result<Vec<(i64, &'a SymInt, &'a SymInt)>> {
    check!(pad.len().is_multiple_of(2), "Length of pad must be even but instead it equals {}", pad.len());
    check!(
        pad.len() / 2 <= self_.dim() as usize,
        "Length of pad should be no more than twice the number of dimensions of the input. Pad length is {} while the input \
         has {} dimensions.",
        pad.len(),
        self_.dim()
    );
    Ok(pad
        .chunks_exact(2)
        .enumerate()
        .map(|(i, two)| (self_.dim() - 1 - i as i64, &two[0], &two[1]))
        .collect())
}

/// What is left of a dimension after cutting what negative paddings say.
fn cut(tensor: &Tensor, dim: i64, before: &SymInt, after: &SymInt) -> Result<Tensor> {
    let size = tensor.sym_size(dim)?;
    let start = SymInt::ZERO.sym_sub(before)?.sym_max(&SymInt::ZERO)?;
    let end = SymInt::ZERO.sym_sub(after)?.sym_max(&SymInt::ZERO)?;
    if start == 0 && end == 0 {
        return Ok(tensor.clone());
    }
    at::narrow(tensor, dim, &start, &size.sym_sub(&start)?.sym_sub(&end)?)
}

/// `aten::constant_pad_nd`
pub fn constant_pad_nd(self_: &Tensor, pad: &[SymInt], value: &Scalar) -> Result<Tensor> {
    let amounts = amounts(self_, pad)?;
    let mut sizes = self_.sym_sizes();
    let mut kept = self_.clone();
    for &(dim, before, after) in &amounts {
        let size = sizes[dim as usize].clone();
        let padded = size.sym_add(before)?.sym_add(after)?;
        check!(
            padded.expect_nonnegative()?,
            "The input size {size}, plus negative padding {before} and {after} resulted in a negative output size, which is \
             invalid. Check dimension {dim} of your input."
        );
        // Cut together, so that one side may cut into what the other side adds.
        let inside = before.sym_min(&SymInt::ZERO)?.sym_add(&after.sym_min(&SymInt::ZERO)?)?;
        check!(
            size.sym_add(&inside)?.expect_nonnegative()?,
            "constant_pad_nd(): the paddings {before} and {after} cut more than the {size} elements of dimension {dim}"
        );
        kept = cut(&kept, dim, before, after)?;
        sizes[dim as usize] = padded;
    }
    if amounts.iter().all(|&(_, before, after)| *before == 0 && *after == 0) {
        return at::clone(self_, None);
    }
    let options = (Some(self_.dtype()), Some(self_.layout()), Some(self_.device()));
    let out = at::empty_memory_format(
        &sizes,
        options.0,
        options.1,
        options.2,
        None,
        Some(self_.suggest_memory_format()),
    )?;
    at::fill__scalar(&out, value)?;
    let mut inside = out.clone();
    for &(dim, before, _) in &amounts {
        let start = before.sym_max(&SymInt::ZERO)?;
        inside = at::narrow(&inside, dim, &start, &kept.sym_size(dim)?)?;
    }
    at::copy_(&inside, &kept, false)?;
    Ok(out)
}

/// `aten::_pad_circular`: each side continues with what the other side ends with.
pub fn _pad_circular(self_: &Tensor, pad: &[SymInt]) -> Result<Tensor> {
    let amounts = amounts(self_, pad)?;
    let mut out = self_.clone();
    for &(dim, before, after) in &amounts {
        let size = self_.sym_size(dim)?;
        check!(
            before.expect_le(&size)? && after.expect_le(&size)?,
            "Padding value causes wrapping around more than once."
        );
        check!(
            size.sym_add(before)?.sym_add(after)?.expect_nonnegative()?,
            "Negative padding value is resulting in an empty dimension"
        );
        let mut parts = Vec::new();
        // What is cut off does not come back on the other side.
        let kept = cut(&out, dim, before, after)?;
        if SymInt::ONE.guard_le(before)? {
            parts.push(at::narrow(&kept, dim, &kept.sym_size(dim)?.sym_sub(before)?, before)?);
        }
        parts.push(kept.clone());
        if SymInt::ONE.guard_le(after)? {
            parts.push(at::narrow(&kept, dim, &SymInt::ZERO, after)?);
        }
        out = at::cat(&parts, dim)?;
    }
    Ok(out)
}

const CONSTANT: i64 = 0;
const REFLECT: i64 = 1;
const REPLICATE: i64 = 2;
const CIRCULAR: i64 = 3;
const MODES: [&str; 4] = ["constant", "reflect", "replicate", "circular"];

/// `aten::_pad_enum`
pub fn _pad_enum(self_: &Tensor, pad: &[SymInt], mode: i64, value: Option<f64>) -> Result<Tensor> {
    check!(pad.len().is_multiple_of(2), "Padding length must be divisible by 2");
    check!(pad.len() as i64 <= self_.dim() * 2, "Padding length should be less than or equal to two times the input dimension but got padding length {} and input of dimension {}", pad.len(), self_.dim());
    if mode == CONSTANT {
        return at::constant_pad_nd(self_, pad, &Scalar::Float(value.unwrap_or(0.0)));
    }
    check!(
        value.unwrap_or(0.0) == 0.0,
        "Padding mode \"{}\" doesn't take in value argument",
        MODES.get(mode as usize).unwrap_or(&"unknown")
    );
    let (spatial, ndim) = (pad.len() as i64 / 2, self_.dim());
    let fits = (1..=3).contains(&spatial) && (ndim == spatial + 1 || ndim == spatial + 2);
    if fits {
        match (mode, spatial) {
            (REFLECT, 1) => return at::reflection_pad1d(self_, pad),
            (REFLECT, 2) => return at::reflection_pad2d(self_, pad),
            (REFLECT, _) => return at::reflection_pad3d(self_, pad),
            (REPLICATE, 1) => return at::replication_pad1d(self_, pad),
            (REPLICATE, 2) => return at::replication_pad2d(self_, pad),
            (REPLICATE, _) => return at::replication_pad3d(self_, pad),
            (CIRCULAR, _) => return at::_pad_circular(self_, pad),
            _ => {}
        }
    }
    check_not_implemented!(
        false,
        "Only 2D, 3D, 4D, 5D padding with non-constant padding are supported for now"
    );
    Ok(self_.clone())
}

/// `aten::pad`
pub fn pad(self_: &Tensor, pad: &[SymInt], mode: &str, value: Option<f64>) -> Result<Tensor> {
    let number = MODES.iter().position(|&known| known == mode);
    let Some(number) = number else { c10::bail!(NotImplemented, "Unrecognised padding mode {mode}") };
    at::_pad_enum(self_, pad, number as i64, value)
}
