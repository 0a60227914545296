//! `max_pool2d_with_indices_backward`.

use c10::{check, check_index, try_filled, Element, Result, Tensor};
use iter::parallel::{parallel_for_result, GRAIN_SIZE};

use super::element::{pointer, Compared, Planes, Pooled};
use super::is_trivial;
use crate::address::{const_data_ptr, mutable_data_ptr, Address};
use crate::dispatch::dispatch;
use crate::registration::register;

pub(super) fn register() {
    register! {
        max_pool2d_backward_kernel: fn(&Tensor, &Tensor, &[Tensor]);
    }
}

/// Every output's gradient goes to the input that was its maximum; an input may be that of several.
fn max_pool2d_backward_kernel(grad_output: &Tensor, indices: &Tensor, outs: &[Tensor]) -> Result<()> {
    let grad_input = &outs[0];
    if is_trivial(grad_output, grad_input, true)? {
        return Ok(());
    }
    dispatch!(grad_output.dtype(), "max_pool2d_backward", ALL_AND_HALF, |T| {
        let planes = [Planes::of(grad_output)?, Planes::of(indices)?, Planes::of(grad_input)?];
        let data = [
            Address(const_data_ptr::<T>(grad_output)?.cast_mut().cast()),
            Address(const_data_ptr::<i64>(indices)?.cast_mut().cast()),
            Address(mutable_data_ptr::<T>(grad_input)?.cast()),
        ];
        backward::<T>(data, planes)
    })
}

pub(super) fn backward<T: Pooled>(
    [grad_output, indices, grad_input]: [Address; 3],
    [from, index_planes, to]: [Planes; 3],
) -> Result<()> {
    let area = to.height * to.width;
    let zero = <T::Compute as Element>::ZERO;
    check!(
        from.images == to.images && from.channels == to.channels,
        "max_pool2d_with_indices_backward: expected as many planes in grad_output as in the input"
    );
    let grain = (GRAIN_SIZE / area.max(1)).max(1);
    parallel_for_result(0, to.images * to.channels, grain, &|begin, end| {
        // Sums of halves are kept wide.
        let mut sums = try_filled(zero, area)?;
        let mut row = try_filled(T::default(), to.width)?;
        for plane in begin..end {
            let (image, channel) = (plane / to.channels, plane % to.channels);
            sums.fill(zero);
            for y in 0..from.height {
                for x in 0..from.width {
                    let index = pointer::<i64>(indices, index_planes.offset(image, channel, y, x));
                    let grad = pointer::<T>(grad_output, from.offset(image, channel, y, x));
                    // SAFETY: elements of the inputs, whose shapes agree.
                    let (index, grad) = unsafe { (*index, *grad) };
                    check_index!(
                        index >= 0 && (index as usize) < area,
                        "max_pool2d_with_indices_backward: index {index} is out of bounds for an input plane of {area} elements"
                    );
                    let sum = &mut sums[index as usize];
                    *sum = sum.plus(T::Compute::cast_from(grad));
                }
            }
            for (y, sums) in sums.chunks_exact(to.width.max(1)).enumerate() {
                T::narrow(sums, &mut row);
                for (x, &value) in row.iter().enumerate() {
                    let to = pointer::<T>(grad_input, to.offset(image, channel, y, x));
                    // SAFETY: an element of the output; each plane belongs to one piece.
                    unsafe { *to = value };
                }
            }
        }
        Ok(())
    })
}
