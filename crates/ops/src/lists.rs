//! What the generated bodies of operators on lists share: `foreach:` in the YAML.

use c10::{check, Result, Scalar, Tensor};

use crate::at;

/// The lists are as long as the first, and not empty.
pub fn check_lists(lists: &[&[Tensor]]) -> Result<()> {
    let first = lists[0].len();
    for list in lists {
        check!(!list.is_empty() && first > 0, "Tensor list must have at least one tensor.");
        check!(
            list.len() == first,
            "Tensor lists must have the same number of tensors, got {first} and {}",
            list.len()
        );
    }
    Ok(())
}

/// There is a number for each tensor.
pub fn check_scalars(tensors: &[Tensor], scalars: &[Scalar]) -> Result<()> {
    check!(
        tensors.len() == scalars.len(),
        "Tensor list must have same number of elements as scalar list, got {} and {}",
        tensors.len(),
        scalars.len()
    );
    Ok(())
}

/// A tensor in a number's place is a number.
pub fn check_scalar_tensor(scalar: &Tensor) -> Result<()> {
    check!(
        scalar.dim() == 0 && scalar.numel()? == 1,
        "scalar tensor expected to be 0 dim but it has {} dimensions and {} elements.",
        scalar.dim(),
        scalar.numel()?
    );
    Ok(())
}

/// The numbers that a tensor holds, one for each of `count` tensors.
pub fn unpack(packed: &Tensor, count: usize) -> Result<Vec<Scalar>> {
    check!(
        packed.dim() == 1,
        "Expected packed scalar Tensor to be of dimension 1. Got {} instead.",
        packed.dim()
    );
    check!(
        packed.numel()? == count as i64,
        "Expected length of scalars to match input of length {count} but got {} instead.",
        packed.numel()?
    );
    check!(packed.device().is_cpu(), "Expected scalars to be on CPU, got {} instead.", packed.device());
    check!(packed.is_contiguous(), "Expected scalars to be contiguous.");
    (0..count as i64).map(|i| at::item(&at::select_int(packed, 0, &i.into())?)).collect()
}
