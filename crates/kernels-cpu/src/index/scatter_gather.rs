//! `gather`, `scatter` and `scatter_add`.

use c10::{wrap_dim, Complex, ErrorKind, Result, Scalar, ScalarType, SmallVec, Tensor};
use iter::to_dtype;

use super::bounds::OutOfBounds;
use super::lines::{for_each_line, Operand};
use crate::address::{byte_stride, check_same_dtype, Address};
use crate::dispatch::dispatch;
use crate::factory::element_bytes;
use crate::map::Stored;
use crate::registration::register;

pub(super) fn register() {
    register! {
        gather_kernel: fn(&Tensor, i64, &Tensor, &[Tensor]);
        scatter_kernel: fn(i64, &Tensor, &Tensor, &[Tensor]);
        scatter_value_kernel: fn(i64, &Tensor, &Scalar, &[Tensor]);
        scatter_add_kernel: fn(i64, &Tensor, &Tensor, &[Tensor]);
        scatter_reduced_kernel: fn(i64, &Tensor, &Tensor, &str, &[Tensor]);
        scatter_value_reduced_kernel: fn(i64, &Tensor, &Scalar, &str, &[Tensor]);
    }
}

/// A type that adds up: integers wrap, and bool is "or".
pub(super) trait Summand: Stored {
    fn plus(self, other: Self) -> Self;
    fn times(self, other: Self) -> Self;
}

macro_rules! summand {
    ($($($T:ty),* => |$a:ident, $b:ident| $plus:expr, $times:expr);* $(;)?) => {$($(
        impl Summand for $T {
            #[inline(always)]
            fn plus(self, $b: $T) -> $T {
                let $a = self;
                $plus
            }
            #[inline(always)]
            fn times(self, $b: $T) -> $T {
                let $a = self;
                $times
            }
        }
    )*)*};
}

summand! {
    u8, i8, u16, i16, u32, i32, u64, i64 => |a, b| a.wrapping_add(b), a.wrapping_mul(b);
    f32, f64, Complex<f32>, Complex<f64> => |a, b| a + b, a * b;
    c10::Half => |a, b| c10::Half::from_f32(a.to_f32() + b.to_f32()), c10::Half::from_f32(a.to_f32() * b.to_f32());
    c10::BFloat16 => |a, b| c10::BFloat16::from_f32(a.to_f32() + b.to_f32()),
        c10::BFloat16::from_f32(a.to_f32() * b.to_f32());
    bool => |a, b| a | b, a & b;
    Complex<c10::Half> => |a, b| half_complex(single(a) + single(b)), half_complex(single(a) * single(b));
}

fn single(value: Complex<c10::Half>) -> Complex<f32> {
    Complex::new(value.re.to_f32(), value.im.to_f32())
}

fn half_complex(value: Complex<f32>) -> Complex<c10::Half> {
    Complex::new(c10::Half::from_f32(value.re), c10::Half::from_f32(value.im))
}

/// The byte strides of a tensor over `ndim` dimensions, with 0 in dimension `still`.
fn strides_of(tensor: &Tensor, ndim: usize, still: Option<usize>) -> Result<SmallVec<[i64; 6]>> {
    let item_size = tensor.item_size();
    let strides = tensor.strides()?;
    let stride = |d: usize| byte_stride(strides.get(d).copied().unwrap_or(0), item_size);
    Ok((0..ndim).map(|d| if still == Some(d) { 0 } else { stride(d) }).collect())
}

/// How a tensor is indexed along a dimension.
#[derive(Clone, Copy)]
pub(super) struct Indexed {
    dim: usize,
    size: i64,
    /// Bytes per index.
    stride: i64,
    /// Whether the tensor is written to.
    address: Address,
}

impl Indexed {
    pub(super) fn new(tensor: &Tensor, dim: i64, written: bool) -> Result<Indexed> {
        let dim = wrap_dim(dim, tensor.dim(), true)? as usize;
        let (size, stride) = match tensor.sizes()?.get(dim) {
            Some(&size) => (size, byte_stride(tensor.strides()?[dim], tensor.item_size())),
            None => (1, 0),
        };
        let address = if written { tensor.data_ptr() } else { tensor.const_data_ptr().cast_mut() };
        Ok(Indexed { dim, size, stride, address: Address(address) })
    }
}

/// Walks the index tensor's positions; `f(place, other)` gets the place that the index names and the other operand's
/// element.
pub(super) fn walk(
    tensor: &Tensor,
    indexed: Indexed,
    index: &Tensor,
    other: (Address, SmallVec<[i64; 6]>),
    f: impl Fn(Address, Address) + Sync,
) -> Result<()> {
    if index.numel()? == 0 {
        return Ok(());
    }
    let index = to_dtype(index, ScalarType::Long)?;
    let shape = index.sizes()?;
    let operands = [
        Operand { base: indexed.address, strides: strides_of(tensor, shape.len(), Some(indexed.dim))? },
        Operand { base: other.0, strides: other.1 },
        Operand {
            base: Address(index.const_data_ptr().cast_mut()),
            strides: strides_of(&index, shape.len(), None)?,
        },
    ];
    let wrong = OutOfBounds::default();
    for_each_line(shape, indexed.dim, &operands, &|at, strides, n| {
        if wrong.seen() {
            return;
        }
        for i in 0..n as i64 {
            // SAFETY: an element of the index tensor, which is int64.
            let index = unsafe { at[2].offset(i * strides[2]).read::<i64>() };
            if !(0..indexed.size).contains(&index) {
                wrong.note(index, indexed.dim, indexed.size);
                return;
            }
            f(at[0].offset(i * strides[0] + index * indexed.stride), at[1].offset(i * strides[1]));
        }
    })?;
    wrong.check(ErrorKind::Runtime)
}

/// Runs `$body` with `$W` an integer, or pair of integers, of the element size.
macro_rules! by_size {
    ($size:expr, |$W:ident| $body:expr) => {
        match $size {
            1 => {
                type $W = u8;
                $body
            }
            2 => {
                type $W = u16;
                $body
            }
            4 => {
                type $W = u32;
                $body
            }
            8 => {
                type $W = u64;
                $body
            }
            _ => {
                type $W = [u64; 2];
                $body
            }
        }
    };
}

pub(crate) use by_size;

fn output<'a>(outs: &'a [Tensor], name: &str) -> Result<&'a Tensor> {
    match outs.first() {
        Some(out) => Ok(out),
        None => c10::bail!(Internal, "{name}: no output"),
    }
}

fn gather_kernel(self_: &Tensor, dim: i64, index: &Tensor, outs: &[Tensor]) -> Result<()> {
    let out = output(outs, "gather")?;
    check_same_dtype("gather", self_, out)?;
    let indexed = Indexed::new(self_, dim, false)?;
    let other = (Address(out.data_ptr()), strides_of(out, index.sizes()?.len(), None)?);
    by_size!(out.item_size(), |W| walk(self_, indexed, index, other, |place, out| {
        // SAFETY: elements of `self` (the index was checked) and of the output; each of these is written once.
        unsafe { out.write(place.read::<W>()) };
    }))
}

fn scatter_kernel(dim: i64, index: &Tensor, src: &Tensor, outs: &[Tensor]) -> Result<()> {
    let out = output(outs, "scatter")?;
    check_same_dtype("scatter", src, out)?;
    let indexed = Indexed::new(out, dim, true)?;
    let other = (Address(src.const_data_ptr().cast_mut()), strides_of(src, index.sizes()?.len(), None)?);
    by_size!(out.item_size(), |W| walk(out, indexed, index, other, |place, src| {
        // SAFETY: elements of the output (the index was checked) and of `src`; what may be the same place is written
        // by one thread.
        unsafe { place.write(src.read::<W>()) };
    }))
}

fn scatter_value_kernel(dim: i64, index: &Tensor, value: &Scalar, outs: &[Tensor]) -> Result<()> {
    let out = output(outs, "scatter")?;
    let bytes = element_bytes(value, out.dtype(), "scatter_value_kernel")?;
    let indexed = Indexed::new(out, dim, true)?;
    let nothing = (Address(std::ptr::null_mut()), SmallVec::new());
    by_size!(out.item_size(), |W| {
        let value = bytes.as_word::<W>();
        walk(out, indexed, index, nothing, |place, _| {
            // SAFETY: an element of the output: the index was checked.
            unsafe { place.write(value) };
        })
    })
}

/// Adds the elements of `src` to those of the output that the index names, or multiplies them.
fn combine_into<T: Summand>(
    out: &Tensor,
    dim: i64,
    index: &Tensor,
    src: (Address, SmallVec<[i64; 6]>),
    multiply: bool,
) -> Result<()> {
    let indexed = Indexed::new(out, dim, true)?;
    walk(out, indexed, index, src, |place, src| {
        // SAFETY: elements of the output (the index was checked) and of `src`, of this dtype; what may be the same
        // place is combined with by one thread.
        unsafe {
            let (old, new) = (<T as Stored>::load(place.read()), <T as Stored>::load(src.read()));
            place.write(if multiply { old.times(new) } else { old.plus(new) }.store());
        }
    })
}

/// `src` as [`walk`] takes it.
pub(super) fn source(src: &Tensor, index: &Tensor) -> Result<(Address, SmallVec<[i64; 6]>)> {
    Ok((Address(src.const_data_ptr().cast_mut()), strides_of(src, index.sizes()?.len(), None)?))
}

fn scatter_add_kernel(dim: i64, index: &Tensor, src: &Tensor, outs: &[Tensor]) -> Result<()> {
    let out = output(outs, "scatter_add")?;
    check_same_dtype("scatter_add", src, out)?;
    dispatch!(out.dtype(), "scatter_add_kernel", EVERY, |T| {
        combine_into::<T>(out, dim, index, source(src, index)?, false)
    })
}

fn scatter_reduced_kernel(
    dim: i64,
    index: &Tensor,
    src: &Tensor,
    reduce: &str,
    outs: &[Tensor],
) -> Result<()> {
    let out = output(outs, "scatter")?;
    check_same_dtype("scatter", src, out)?;
    dispatch!(out.dtype(), "scatter_gather_tensor_cpu", ALL_AND_COMPLEX_AND_HALF_AND_BOOL, |T| {
        combine_into::<T>(out, dim, index, source(src, index)?, reduce == "multiply")
    })
}

fn scatter_value_reduced_kernel(
    dim: i64,
    index: &Tensor,
    value: &Scalar,
    reduce: &str,
    outs: &[Tensor],
) -> Result<()> {
    let out = output(outs, "scatter")?;
    dispatch!(out.dtype(), "scatter_gather_scalar_cpu", ALL_AND_COMPLEX_AND_HALF_AND_BOOL, |T| {
        let value = value.to::<T>()?.store();
        // One element that every position of the index reads.
        let element = Address(std::ptr::from_ref(&value).cast_mut().cast());
        let still = index.sizes()?.iter().map(|_| 0).collect();
        combine_into::<T>(out, dim, index, (element, still), reduce == "multiply")
    })
}
