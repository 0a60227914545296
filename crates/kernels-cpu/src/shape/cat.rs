//! `cat`.

use c10::{internal_assert, wrap_dim, DimVector, Result, Tensor, TensorImpl};
use iter::parallel;

use crate::address::Address;
use crate::registration::register;

pub(super) fn register() {
    register! {
        cat_kernel: fn(&[Tensor], i64, &[Tensor]);
    }
}

/// Bytes that are worth a thread.
const PIECE: usize = 1 << 18;

/// A tensor's part of the output: for each index of the outer dimensions a run of bytes.
struct Part {
    from: Address,
    /// Bytes per run, and where the run begins in the output's.
    run: usize,
    begin: usize,
}

fn cat_kernel(tensors: &[Tensor], dim: i64, outs: &[Tensor]) -> Result<()> {
    let Some(out) = outs.first() else { c10::bail!(Internal, "cat: no output") };
    if out.numel()? == 0 {
        return Ok(());
    }
    let dim = wrap_dim(dim, out.dim(), true)? as usize;
    let sizes = out.sizes()?;
    let inner: i64 = sizes[dim + 1..].iter().product::<i64>() * out.item_size() as i64;
    let outer: i64 = sizes[..dim].iter().product();
    let mut parts = c10::try_with_capacity(tensors.len())?;
    let mut at = 0;
    for tensor in tensors {
        // A tensor of size [0] goes with any shape.
        if tensor.numel()? == 0 {
            continue;
        }
        let size = tensor.size(dim as i64)?;
        internal_assert!(
            tensor.dim() == out.dim() && at + size <= sizes[dim],
            "cat: a tensor of shape {:?} at {at} of {sizes:?}",
            tensor.sizes()?
        );
        if out.is_contiguous() && tensor.is_contiguous() && tensor.dtype() == out.dtype() {
            parts.push(Part {
                from: Address(tensor.const_data_ptr().cast_mut()),
                run: (size * inner) as usize,
                begin: (at * inner) as usize,
            });
        } else {
            iter::copy_into(&narrow(out, dim, at, size)?, tensor, false)?;
        }
        at += size;
    }
    // SAFETY: the tensors and the output are dense, and the output has room for all parts, side by side.
    unsafe { copy_runs(Address(out.data_ptr()), (sizes[dim] * inner) as usize, outer as usize, &parts) }
}

/// The part `begin..begin + size` of a dimension.
fn narrow(tensor: &Tensor, dim: usize, begin: i64, size: i64) -> Result<Tensor> {
    let mut sizes = DimVector::from_slice(tensor.sizes()?);
    sizes[dim] = size;
    let offset = tensor.storage_offset()? + begin * tensor.strides()?[dim];
    let storage = tensor.storage()?.clone();
    let view = TensorImpl::new_view(Some(storage), tensor.key_set(), tensor.dtype(), tensor.device());
    Tensor::new(view.with_sizes_and_strides(&sizes, tensor.strides()?, offset)?)
}

/// Copies every part's runs, of which there are `outer`, to rows of `row` bytes.
///
/// # Safety
/// `outer` runs must lie at each part, and `outer` rows, which have room for one of each, at `to`, for this call alone.
unsafe fn copy_runs(to: Address, row: usize, outer: usize, parts: &[Part]) -> Result<()> {
    if outer == 1 {
        // Few long runs: each is split.
        for part in parts {
            let to = to.offset(part.begin as i64);
            parallel::parallel_for(0, part.run, PIECE, &|begin, end| {
                let (from, to) = (part.from.offset(begin as i64), to.offset(begin as i64));
                // SAFETY: the caller's promise.
                unsafe { std::ptr::copy(from.0, to.0, end - begin) };
            })?;
        }
        return Ok(());
    }
    parallel::parallel_for(0, outer, (PIECE / row.max(1)).max(1), &|begin, end| {
        for i in begin..end {
            for part in parts {
                let from = part.from.offset((i * part.run) as i64);
                let to = to.offset((i * row + part.begin) as i64);
                // SAFETY: as above.
                unsafe { std::ptr::copy(from.0, to.0, part.run) };
            }
        }
    })
}
