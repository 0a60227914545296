//! Applies a table of taps per dimension (see [`super::taps`]) to the planes of a tensor.
//!
//! An output row is made in two steps, each a loop over dense rows that vectorizes: the rows that the outer dimensions'
//! taps name are summed, and the sum is read through the last dimension's taps. Channels that come last, and the parts of
//! complex numbers, are `inner` elements that go together.

use c10::{check, try_collect, try_filled, Element, MemoryFormat, Result, ScalarType, Tensor};
use iter::parallel::{parallel_for_result, GRAIN_SIZE};

use super::element::{Compared, Pooled};
use super::taps::{check_tables, Taps};
use crate::address::Address;
use crate::dispatch::dispatch;
use crate::vec::tiered;

/// Arithmetic of sums with weights.
pub(super) trait Summed: Compared {
    fn times(self, b: Self) -> Self;
    fn over(self, b: Self) -> Self;
}

macro_rules! summed {
    ($($T:ty, $times:expr, $over:expr;)*) => {$(
        impl Summed for $T {
            #[inline(always)]
            fn times(self, b: $T) -> $T { $times(self, b) }
            #[inline(always)]
            fn over(self, b: $T) -> $T { $over(self, b) }
        }
    )*};
}

summed! {
    f32, |a: f32, b| a * b, |a: f32, b| a / b;
    f64, |a: f64, b| a * b, |a: f64, b| a / b;
    i64, i64::wrapping_mul, |a: i64, b: i64| a.checked_div(b).unwrap_or(0);
}

/// Where the table's divisors apply.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Divide {
    /// To what is read, as in a backward pass.
    Inputs,
    /// To what comes out.
    Outputs,
}

tiered! {
    /// `sum += weight * row`
    fn add_row<S>(sum: &mut [S], row: &[S], weight: S) where { S: Summed } => A {
        let _ = std::marker::PhantomData::<A>;
        for (sum, &x) in sum.iter_mut().zip(row) {
            *sum = sum.plus(x.times(weight));
        }
    }
    /// `row = row / divisors`, the divisor of each place times `common`.
    fn divide_row<S>(row: &mut [S], divisors: &[S], common: S, inner: usize) where { S: Summed } => A {
        let _ = std::marker::PhantomData::<A>;
        for (places, &divisor) in row.chunks_exact_mut(inner).zip(divisors) {
            let divisor = divisor.times(common);
            for x in places {
                *x = x.over(divisor);
            }
        }
    }
    /// One row through the taps of the last dimension.
    fn through_taps<S>(out: &mut [S], row: &[S], starts: &[usize], taps: &[(usize, S)], inner: usize)
    where { S: Summed } => A {
        let _ = std::marker::PhantomData::<A>;
        if inner == 1 {
            for (out, range) in out.iter_mut().zip(starts.windows(2)) {
                let mut sum = <S as Element>::ZERO;
                for &(place, weight) in &taps[range[0]..range[1]] {
                    sum = sum.plus(row[place].times(weight));
                }
                *out = sum;
            }
        } else {
            for (out, range) in out.chunks_exact_mut(inner).zip(starts.windows(2)) {
                out.fill(<S as Element>::ZERO);
                for &(place, weight) in &taps[range[0]..range[1]] {
                    for (out, &x) in out.iter_mut().zip(&row[place * inner..(place + 1) * inner]) {
                        *out = out.plus(x.times(weight));
                    }
                }
            }
        }
    }
}

/// How both tensors lie in memory.
struct Planes {
    outer: usize,
    inner: usize,
    channels_last: bool,
}

/// Channels come last where they do in both tensors; else both are row by row, if need be by way of a copy.
fn planes(input: &Tensor, out: &Tensor, spatial: usize) -> Result<Planes> {
    let sizes = input.sizes()?;
    let lead = sizes.len() - spatial;
    let format = match sizes.len() {
        4 => MemoryFormat::ChannelsLast,
        _ => MemoryFormat::ChannelsLast3d,
    };
    let channels_last = lead == 2
        && spatial >= 2
        && !input.is_contiguous()
        && input.is_contiguous_in(format)
        && out.is_contiguous_in(format);
    if channels_last {
        return Ok(Planes { outer: sizes[0] as usize, inner: sizes[1] as usize, channels_last });
    }
    Ok(Planes { outer: sizes[..lead].iter().product::<i64>() as usize, inner: 1, channels_last })
}

fn dense(tensor: &Tensor) -> Result<Tensor> {
    if tensor.is_contiguous() {
        return Ok(tensor.clone());
    }
    let copy = iter::empty(tensor.sizes()?, &tensor.options())?;
    iter::copy_into(&copy, tensor, false)?;
    Ok(copy)
}

/// Maps the planes of `input`, its last `tables.len()` dimensions, into those of `out`.
pub(super) fn map_planes(
    name: &'static str,
    input: &Tensor,
    out: &Tensor,
    tables: Vec<Taps>,
    divide: Divide,
) -> Result<()> {
    let spatial = tables.len();
    let (from, to) = (input.sizes()?, out.sizes()?);
    check!(
        from.len() >= spatial
            && from.len() == to.len()
            && from[..from.len() - spatial] == to[..to.len() - spatial],
        "{name}(): expected input and output to differ in {spatial} dimensions only, got {from:?} and {to:?}"
    );
    check!(
        input.dtype() == out.dtype(),
        "{name}(): expected tensors of one dtype, got {} and {}",
        input.dtype().short_name(),
        out.dtype().short_name()
    );
    check_tables(name, &tables, &from[from.len() - spatial..], &to[to.len() - spatial..])?;
    let mut layout = planes(input, out, spatial)?;
    let (source, target);
    if layout.channels_last {
        (source, target) = (input.clone(), out.clone());
    } else {
        source = dense(input)?;
        target = if out.is_contiguous() { out.clone() } else { iter::empty(out.sizes()?, &out.options())? };
    }
    let dtype = match input.dtype() {
        ScalarType::ComplexFloat => ScalarType::Float,
        ScalarType::ComplexDouble => ScalarType::Double,
        dtype => dtype,
    };
    if dtype != input.dtype() {
        layout.inner *= 2;
    }
    // One dimension too many costs nothing: rows, planes and volumes are all volumes.
    let mut tables = tables;
    while tables.len() < 3 {
        tables.insert(0, Taps::identity());
    }
    dispatch!(dtype, name, FLOATING_AND_HALF + Long, |T| {
        apply::<T>(
            Address(source.const_data_ptr().cast_mut()),
            Address(target.data_ptr()),
            &layout,
            &tables,
            divide,
        )
    })?;
    if !target.is_same(out) {
        iter::copy_into(out, &target, false)?;
    }
    Ok(())
}

fn converted<S: Element>(values: Option<&Vec<f64>>, n: usize) -> Result<Vec<S>> {
    match values {
        Some(values) => try_collect(values.iter().map(|&v| S::from_f64(v))),
        None => try_filled(S::from_f64(1.0), n),
    }
}

fn apply<T: Pooled>(
    input: Address,
    out: Address,
    layout: &Planes,
    tables: &[Taps],
    divide: Divide,
) -> Result<()>
where
    T::Compute: Summed,
{
    let [deep, down, across] = tables else { c10::bail!(Internal, "expected three tables") };
    let inner = layout.inner;
    let (in_depth, in_height, in_width) = (deep.input, down.input, across.input);
    let (out_depth, out_height, out_width) = (deep.outputs(), down.outputs(), across.outputs());
    let (row, out_row) = (in_width * inner, out_width * inner);
    let one = T::Compute::from_f64(1.0);
    let taps: Vec<(usize, T::Compute)> =
        try_collect(across.taps.iter().map(|&(place, weight)| (place, T::Compute::from_f64(weight))))?;
    let divides = tables.iter().any(|table| table.divisors.is_some());
    let n = if divide == Divide::Outputs {
        [out_depth, out_height, out_width]
    } else {
        [in_depth, in_height, in_width]
    };
    let divisors = [
        converted::<T::Compute>(deep.divisors.as_ref(), n[0])?,
        converted::<T::Compute>(down.divisors.as_ref(), n[1])?,
        converted::<T::Compute>(across.divisors.as_ref(), n[2])?,
    ];
    let size = std::mem::size_of::<T>() as i64;
    let per_plane =
        (deep.taps.len() / out_depth.max(1)).max(1) * (down.taps.len() / out_height.max(1)).max(1);
    let cost = per_plane * row + taps.len() * inner + out_row;
    let rows = layout.outer * out_depth * out_height;
    parallel_for_result(0, rows, (GRAIN_SIZE / cost.max(1)).max(1), &|begin, end| {
        let zero = <T::Compute as Element>::ZERO;
        let mut sum = try_filled(zero, row)?;
        let mut wide = try_filled(zero, row)?;
        let mut result = try_filled(zero, out_row)?;
        for index in begin..end {
            let (plane, y) = (index / out_height, index % out_height);
            let (outer, z) = (plane / out_depth, plane % out_depth);
            sum.fill(zero);
            let mut first = true;
            for &(in_z, weight_z) in deep.of(z) {
                for &(in_y, weight_y) in down.of(y) {
                    let at = ((outer * in_depth + in_z) * in_height + in_y) * row;
                    // SAFETY: a row of the dense input; its places were checked against the tables.
                    let source = unsafe { input.offset(at as i64 * size).slice::<T>(row) };
                    let weight = T::Compute::from_f64(weight_z * weight_y);
                    if divides && divide == Divide::Inputs {
                        T::widen(source, &mut wide);
                        divide_row(
                            &mut wide,
                            &divisors[2],
                            divisors[0][in_z].times(divisors[1][in_y]),
                            inner,
                        );
                        add_row(&mut sum, &wide, weight);
                    } else if first && weight == one {
                        T::widen(source, &mut sum);
                    } else {
                        T::widen(source, &mut wide);
                        add_row(&mut sum, &wide, weight);
                    }
                    first = false;
                }
            }
            through_taps(&mut result, &sum, &across.starts, &taps, inner);
            if divides && divide == Divide::Outputs {
                divide_row(&mut result, &divisors[2], divisors[0][z].times(divisors[1][y]), inner);
            }
            let at = ((outer * out_depth + z) * out_height + y) * out_row;
            // SAFETY: a row of the dense output, which belongs to one piece.
            T::narrow(&result, unsafe { out.offset(at as i64 * size).slice_mut::<T>(out_row) });
        }
        Ok(())
    })
}

/// Copies elements as their bytes: for tables of one tap of weight one per output, and elements that have no arithmetic
/// here.
pub(super) fn select_planes(name: &'static str, input: &Tensor, out: &Tensor, tables: &[Taps]) -> Result<()> {
    let spatial = tables.len();
    let (from, to) = (input.sizes()?, out.sizes()?);
    check!(
        from.len() >= spatial
            && from.len() == to.len()
            && from[..from.len() - spatial] == to[..to.len() - spatial],
        "{name}(): expected input and output to differ in {spatial} dimensions only, got {from:?} and {to:?}"
    );
    crate::address::check_same_dtype(name, input, out)?;
    check_tables(name, tables, &from[from.len() - spatial..], &to[to.len() - spatial..])?;
    let source = dense(input)?;
    let target = if out.is_contiguous() { out.clone() } else { iter::empty(out.sizes()?, &out.options())? };
    let outer = from[..from.len() - spatial].iter().product::<i64>() as usize;
    let ones = [Taps::identity(), Taps::identity()];
    let three: Vec<&Taps> = ones.iter().take(3 - spatial).chain(tables).collect();
    let (in_sizes, out_sizes) =
        ([three[1].input, three[2].input], [three[0].outputs(), three[1].outputs(), three[2].outputs()]);
    let in_depth = three[0].input;
    let size = input.item_size();
    let (data, result) = (Address(source.const_data_ptr().cast_mut()), Address(target.data_ptr()));
    let rows = outer * out_sizes[0] * out_sizes[1];
    iter::parallel::parallel_for(0, rows, (GRAIN_SIZE / out_sizes[2].max(1)).max(1), &|begin, end| {
        for index in begin..end {
            let (plane, y) = (index / out_sizes[1], index % out_sizes[1]);
            let (outer, z) = (plane / out_sizes[0], plane % out_sizes[0]);
            let (in_z, in_y) = (three[0].of(z)[0].0, three[1].of(y)[0].0);
            let row = ((outer * in_depth + in_z) * in_sizes[0] + in_y) * in_sizes[1];
            for x in 0..out_sizes[2] {
                let from = data.offset(((row + three[2].of(x)[0].0) * size) as i64);
                let to = result.offset(((index * out_sizes[2] + x) * size) as i64);
                // SAFETY: an element of the dense input and one of the dense output, which belongs to one piece.
                unsafe { std::ptr::copy_nonoverlapping(from.0, to.0, size) };
            }
        }
    })?;
    if !target.is_same(out) {
        iter::copy_into(out, &target, false)?;
    }
    Ok(())
}
