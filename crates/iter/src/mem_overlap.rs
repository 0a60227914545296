//! Whether writing a tensor can change another element of it or of an input.
//!
//! The checks are cheap and one-sided, like PyTorch's: what is too hard to decide passes. None of this guards
//! memory safety, only results.

use c10::{check, Result, SymInt, Tensor};

/// Whether two indices of one tensor refer to the same memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemOverlap {
    /// Certainly not.
    No,
    /// Certainly.
    Yes,
    /// Deciding would mean solving an integer program.
    TooHard,
}

/// How the memory of two tensors relates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemOverlapStatus {
    /// The same elements in the same order.
    Full,
    /// Some elements in common.
    Partial,
    /// None in common.
    No,
    /// Not decided.
    TooHard,
}

/// Whether more than one element of `tensor` lives at one place.
pub fn has_internal_overlap(tensor: &Tensor) -> Result<MemOverlap> {
    if tensor.is_non_overlapping_and_dense() {
        return Ok(MemOverlap::No);
    }
    if tensor.has_symbolic_sizes_strides() {
        for (size, stride) in tensor.sym_sizes().iter().zip(tensor.sym_strides()) {
            if stride == 0 && SymInt::ONE.guard_lt(size)? {
                return Ok(MemOverlap::Yes);
            }
        }
        return Ok(MemOverlap::TooHard);
    }
    let repeats = |(&size, &stride): (&i64, &i64)| size > 1 && stride == 0;
    if tensor.sizes()?.iter().zip(tensor.strides()?).any(repeats) {
        return Ok(MemOverlap::Yes);
    }
    Ok(MemOverlap::TooHard)
}

/// Fails if `tensor` certainly overlaps itself.
pub fn assert_no_internal_overlap(tensor: &Tensor) -> Result<()> {
    check!(
        has_internal_overlap(tensor)? != MemOverlap::Yes,
        "unsupported operation: more than one element of the written-to tensor refers to a single memory location. \
         Please clone() the tensor before performing the operation."
    );
    Ok(())
}

/// How `a` and `b` overlap.
pub fn get_overlap_status(a: &Tensor, b: &Tensor) -> Result<MemOverlapStatus> {
    if a.is_same(b) {
        return Ok(MemOverlapStatus::Full);
    }
    if !a.has_storage() || !b.has_storage() || !a.storage()?.is_same(b.storage()?) {
        return Ok(MemOverlapStatus::No);
    }
    if a.has_symbolic_sizes_strides() || b.has_symbolic_sizes_strides() {
        return Ok(MemOverlapStatus::TooHard);
    }
    if a.numel()? == 0 || b.numel()? == 0 {
        return Ok(MemOverlapStatus::No);
    }
    if !a.is_non_overlapping_and_dense() || !b.is_non_overlapping_and_dense() {
        return Ok(MemOverlapStatus::TooHard);
    }
    // Bytes within the common storage; dense tensors fill their range.
    let range = |t: &Tensor| -> Result<(i64, i64)> {
        let begin = t.storage_offset()?.saturating_mul(t.item_size() as i64);
        Ok((begin, begin.saturating_add(t.numel()?.saturating_mul(t.item_size() as i64))))
    };
    let ((a_begin, a_end), (b_begin, b_end)) = (range(a)?, range(b)?);
    if a_begin == b_begin && a_end == b_end {
        let same_order = a.strides()? == b.strides()?;
        return Ok(if same_order { MemOverlapStatus::Full } else { MemOverlapStatus::Partial });
    }
    if a_begin < b_end && b_begin < a_end {
        return Ok(MemOverlapStatus::Partial);
    }
    Ok(MemOverlapStatus::No)
}

/// Fails if some, but not simply all, elements of the output `a` are also elements of the input `b`.
pub fn assert_no_partial_overlap(a: &Tensor, b: &Tensor) -> Result<()> {
    check_overlap(get_overlap_status(a, b)? != MemOverlapStatus::Partial)
}

/// Fails if any element of the output `a` is certainly an element of the input `b`.
pub fn assert_no_overlap(a: &Tensor, b: &Tensor) -> Result<()> {
    let status = get_overlap_status(a, b)?;
    check_overlap(status != MemOverlapStatus::Partial && status != MemOverlapStatus::Full)
}

fn check_overlap(fine: bool) -> Result<()> {
    check!(
        fine,
        "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single \
         memory location. Please clone() the tensor before performing the operation."
    );
    Ok(())
}
