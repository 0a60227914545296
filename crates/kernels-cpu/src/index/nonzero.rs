//! `nonzero`: counts first, so that the result is allocated once, then writes.

use c10::{Result, ScalarType, Tensor, TensorOptions};
use iter::{empty, empty_strided, parallel};

use crate::address::Address;
use crate::reduce::Bits;
use crate::registration::register;
use crate::vec::tiered;

pub(super) fn register() {
    register! {
        nonzero_kernel: fn(&Tensor) -> Tensor;
    }
}

/// Elements of a piece. Each piece counts for itself.
const PIECE: usize = parallel::GRAIN_SIZE;

tiered! { memory_bound:
    fn count<W, F>(elements: &[W], is_nonzero: F) -> usize where { W: Copy, F: Fn(W) -> bool } => A {
        let _ = std::marker::PhantomData::<A>;
        // Short sums stay in narrow lanes.
        elements
            .chunks(8192)
            .map(|chunk| chunk.iter().map(|&element| u32::from(is_nonzero(element))).sum::<u32>() as usize)
            .sum()
    }
}

fn nonzero_kernel(self_: &Tensor) -> Result<Tensor> {
    use ScalarType::*;
    match self_.dtype() {
        Bool | Byte | Char => nonzero::<u8, false>(self_),
        Short | UInt16 => nonzero::<u16, false>(self_),
        Int | UInt32 => nonzero::<u32, false>(self_),
        Long | UInt64 => nonzero::<u64, false>(self_),
        Half | BFloat16 => nonzero::<u16, true>(self_),
        Float => nonzero::<u32, true>(self_),
        Double => nonzero::<u64, true>(self_),
        ComplexHalf => nonzero::<[u16; 2], true>(self_),
        ComplexFloat => nonzero::<[u32; 2], true>(self_),
        ComplexDouble => nonzero::<[u64; 2], true>(self_),
        other => Err(c10::dtype_not_implemented("nonzero_kernel", other)),
    }
}

fn nonzero<W: Bits, const FLOAT: bool>(self_: &Tensor) -> Result<Tensor> {
    let numel = self_.numel()? as usize;
    let input = if self_.is_contiguous() {
        self_.clone()
    } else {
        let copy = empty(self_.sizes()?, &self_.options())?;
        iter::copy_into(&copy, self_, false)?;
        copy
    };
    let from = Address(input.const_data_ptr().cast_mut());
    let piece = |begin: usize, end: usize| {
        // SAFETY: the input is dense, of this element size.
        unsafe { from.offset((begin * std::mem::size_of::<W>()) as i64).slice::<W>(end - begin) }
    };
    let is_nonzero = |element: W| element.significant::<FLOAT>() != W::NONE;

    let mut starts = c10::try_filled(0_usize, numel.div_ceil(PIECE) + 1)?;
    let places = Address(starts.as_mut_ptr().cast());
    parallel::parallel_for(0, numel, PIECE, &|begin, end| {
        let place = places.offset(((begin / PIECE + 1) * std::mem::size_of::<usize>()) as i64);
        // SAFETY: each piece has a place of its own, after the first.
        unsafe { place.write(count(piece(begin, end), is_nonzero)) };
    })?;
    let mut total = 0;
    for start in &mut starts {
        total += *start;
        *start = total;
    }

    let ndim = self_.dim() as usize;
    let options = TensorOptions::new().dtype(ScalarType::Long).device(self_.device());
    // One dimension's indices lie together, as in PyTorch.
    let result = empty_strided(&[total as i64, ndim as i64], &[1, (total as i64).max(1)], &options)?;
    if total == 0 || ndim == 0 {
        return Ok(result);
    }
    let to = Address(result.data_ptr());
    let sizes = input.sizes()?;
    let starts = &starts;
    parallel::parallel_for(0, numel, PIECE, &|begin, end| {
        let first = starts[begin / PIECE];
        let n = starts[begin / PIECE + 1] - first;
        // SAFETY: the places of this piece's elements in each dimension's indices: `first..first + n` of `total`.
        let column = |dim: usize| unsafe {
            to.offset(((dim * total + first) * size_of::<i64>()) as i64).slice_mut::<i64>(n)
        };
        let last = column(ndim - 1);
        let mut at = 0;
        for (i, &element) in piece(begin, end).iter().enumerate() {
            if at == n {
                break;
            }
            // Written always, kept if nonzero: no branch to mispredict.
            last[at] = (begin + i) as i64;
            at += usize::from(is_nonzero(element));
        }
        // Linear indices become those of each dimension, the last one first.
        for dim in (1..ndim).rev() {
            let size = sizes[dim];
            let (linear, rest) = (column(dim), column(dim - 1));
            for (linear, rest) in linear.iter_mut().zip(rest) {
                *rest = *linear / size;
                *linear %= size;
            }
        }
    })?;
    Ok(result)
}
