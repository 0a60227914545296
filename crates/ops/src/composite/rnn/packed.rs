//! Packed sequences: the elements of sequences of several lengths without their padding, time by time.

use c10::{check, Result, Scalar, ScalarType, SymInt, Tensor};

use crate::{at, ints_of, tensor_of_ints};

/// The numbers in a vector of lengths or sizes.
pub(super) fn lengths_of(lengths: &Tensor, name: &str) -> Result<Vec<i64>> {
    check!(
        lengths.dim() == 1 && lengths.device().is_cpu() && lengths.dtype() == ScalarType::Long,
        "'{name}' argument should be a 1D CPU int64 tensor, but got {}D {} {} tensor",
        lengths.dim(),
        lengths.device(),
        lengths.dtype().short_name()
    );
    ints_of(lengths)
}

/// How many of the sequences, the longest first, reach each time.
fn batch_sizes_of(lengths: &[i64]) -> Result<Vec<i64>> {
    let longest = lengths.first().copied().unwrap_or(0);
    let mut sizes = c10::try_with_capacity(longest.max(0) as usize)?;
    let mut reached = lengths.len();
    for time in 0..longest {
        while reached > 0 && lengths[reached - 1] <= time {
            reached -= 1;
        }
        sizes.push(reached as i64);
    }
    Ok(sizes)
}

/// `aten::_pack_padded_sequence`: the elements, and how many there are at each time.
pub fn _pack_padded_sequence(
    input: &Tensor,
    lengths: &Tensor,
    batch_first: bool,
) -> Result<(Tensor, Tensor)> {
    check!(input.sym_numel().guard_int()? > 0, "Cannot pack empty tensors.");
    check!(
        input.dim() >= 2,
        "_pack_padded_sequence: expected an input of 2 or more dimensions, got {}",
        input.dim()
    );
    let lengths = lengths_of(lengths, "lengths")?;
    let input = if batch_first { at::transpose_int(input, 0, 1)? } else { input.clone() };
    let mut sizes = input.sym_sizes();
    let (steps, batch) = (sizes[0].guard_int()?, sizes[1].guard_int()?);
    check!(
        lengths.len() as i64 == batch,
        "Expected `len(lengths)` to be equal to batch_size, but got {} (batch_size={batch})",
        lengths.len()
    );
    check!(
        lengths.iter().all(|&length| length > 0),
        "Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0"
    );
    check!(
        lengths.is_sorted_by(|a, b| a >= b),
        "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can pass \
         `enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to sidestep this requirement if you do not \
         need ONNX exportability."
    );
    check!(
        lengths[0] <= steps,
        "_pack_padded_sequence: expected lengths of at most {steps}, the input's, got {}",
        lengths[0]
    );
    let batch_sizes = batch_sizes_of(&lengths)?;
    let mut places = c10::try_with_capacity(batch_sizes.iter().sum::<i64>() as usize)?;
    for (time, &size) in (0i64..).zip(&batch_sizes) {
        places.extend((0..size).map(|row| time * batch + row));
    }
    // The element of each time and sequence is a row.
    sizes.drain(..2);
    sizes.insert(0, SymInt::from(steps * batch));
    let elements = at::reshape(&input, &sizes)?;
    let places =
        at::to_device(&tensor_of_ints(&places)?, input.device(), ScalarType::Long, false, false, None)?;
    Ok((at::index_select(&elements, 0, &places)?, tensor_of_ints(&batch_sizes)?))
}

/// `aten::_pad_packed_sequence`: the sequences, padded to one length, and the lengths that they had.
pub fn _pad_packed_sequence(
    data: &Tensor,
    batch_sizes: &Tensor,
    batch_first: bool,
    padding_value: &Scalar,
    total_length: i64,
) -> Result<(Tensor, Tensor)> {
    let batch_sizes = lengths_of(batch_sizes, "batch_sizes")?;
    check!(
        batch_sizes.iter().all(|&size| size > 0)
            && !batch_sizes.is_empty()
            && batch_sizes.is_sorted_by(|a, b| a >= b),
        "_pad_packed_sequence: batch_sizes must be positive and never increase, got {batch_sizes:?}"
    );
    let longest = batch_sizes.len() as i64;
    check!(
        total_length <= 0 || total_length >= longest,
        "Expected total_length to be at least the length of the longest sequence in input, but got \
         total_length={total_length} and max sequence length being {longest}"
    );
    let (steps, batch) = (longest.max(total_length), batch_sizes[0]);
    let mut sizes = data.sym_sizes();
    check!(
        sizes.first().and_then(SymInt::maybe_as_int) == Some(batch_sizes.iter().sum()),
        "_pad_packed_sequence: batch_sizes say that there are {} elements, but the data has sizes {sizes:?}",
        batch_sizes.iter().sum::<i64>()
    );
    let count = steps.saturating_mul(batch) as usize;
    let (mut places, mut padding) = (c10::try_with_capacity(count)?, c10::try_with_capacity(count)?);
    let mut next = 0;
    for time in 0..steps as usize {
        let size = batch_sizes.get(time).copied().unwrap_or(0);
        places.extend((0..batch).map(|row| if row < size { next + row } else { 0 }));
        padding.extend((0..batch).map(|row| i64::from(row >= size)));
        next += size;
    }
    let device = data.device();
    let places = at::to_device(&tensor_of_ints(&places)?, device, ScalarType::Long, false, false, None)?;
    let padding = at::to_device(&tensor_of_ints(&padding)?, device, ScalarType::Bool, false, false, None)?;
    let mut shape = vec![SymInt::ONE; sizes.len()];
    shape[0] = SymInt::from(-1);
    let gathered = at::index_select(data, 0, &places)?;
    let padded = at::masked_fill_scalar(&gathered, &at::reshape(&padding, &shape)?, padding_value)?;
    sizes.remove(0);
    sizes.insert(0, SymInt::from(batch));
    sizes.insert(0, SymInt::from(steps));
    let padded = at::reshape(&padded, &sizes)?;
    let padded = if batch_first { at::transpose_int(&padded, 0, 1)? } else { padded };
    let lengths: Vec<i64> =
        (0..batch).map(|row| batch_sizes.iter().filter(|&&size| size > row).count() as i64).collect();
    Ok((padded, tensor_of_ints(&lengths)?))
}
