//! `_embedding_bag`: rows of a table, summed, averaged or compared bag by bag.

use c10::{check, Element, Result, ScalarType, Tensor};
use iter::parallel::{parallel_for_result, GRAIN_SIZE};
use iter::to_dtype;

use crate::address::{byte_stride, const_data_ptr, mutable_data_ptr, Address};
use crate::dense::{deliver, dense, writable};
use crate::dispatch::dispatch;
use crate::linalg::{Accumulator, LinalgElement};
use crate::registration::register;
use crate::vec::tiered;

pub(super) fn register() {
    register! {
        embedding_bag_kernel: fn(&Tensor, &Tensor, &Tensor, i64, Option<&Tensor>, bool, i64, &[Tensor]);
    }
}

const MEAN: i64 = 1;
const MAX: i64 = 2;

/// Which entries belong to which bag: checked, so that every range is inside the entries and every entry inside the
/// table.
struct Bags {
    entries: Vec<i64>,
    /// Bag `b` has the entries from `starts[b]` to `starts[b + 1]`.
    starts: Vec<i64>,
    padding: i64,
}

fn integers(tensor: &Tensor, room: usize) -> Result<Vec<i64>> {
    let tensor = dense(&to_dtype(tensor, ScalarType::Long)?)?;
    let n = tensor.numel()? as usize;
    let from = const_data_ptr::<i64>(&tensor)?;
    let mut integers = c10::try_with_capacity(n + room)?;
    // SAFETY: a dense tensor of `n` int64.
    integers.extend((0..n).map(|i| unsafe { from.add(i).read_unaligned() }));
    Ok(integers)
}

impl Bags {
    fn new(indices: &Tensor, offsets: &Tensor, last_is_end: bool, rows: i64, padding: i64) -> Result<Bags> {
        let entries = integers(indices, 0)?;
        let count = entries.len() as i64;
        for &entry in &entries {
            check!(
                (0..rows).contains(&entry),
                "embedding_bag: index {entry} is out of bounds for a table of {rows} rows"
            );
        }
        let mut starts = integers(offsets, 1)?;
        if !last_is_end && !starts.is_empty() {
            starts.push(count);
        }
        check!(
            starts.first().is_none_or(|&first| first == 0),
            "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0. However, got {}",
            starts.first().copied().unwrap_or(0)
        );
        let named = if last_is_end { &starts[..] } else { &starts[..starts.len().saturating_sub(1)] };
        if let Some(&last) = named.last() {
            check!(
                last <= count,
                "offsets[-1] can not be greater than input's length {count} but got offsets[-1] of {last}"
            );
        }
        check!(
            starts.windows(2).all(|pair| pair[0] <= pair[1]),
            "embedding_bag: offsets must not decrease, got {}",
            starts.windows(2).find(|pair| pair[0] > pair[1]).map_or(0, |pair| pair[1])
        );
        Ok(Bags { entries, starts, padding })
    }

    fn len(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    /// The entries of a bag that count, each with its number.
    fn of(&self, bag: usize) -> impl Iterator<Item = (usize, i64)> + '_ {
        let (begin, end) = (self.starts[bag] as usize, self.starts[bag + 1] as usize);
        (begin..end).map(|i| (i, self.entries[i])).filter(|&(_, entry)| entry != self.padding)
    }
}

tiered! {
    /// Adds a row, scaled.
    ///
    /// `row` has as many elements as `total`.
    fn add_row<T>(total: &mut [T::Sum], row: Address, factor: T::Sum) where { T: LinalgElement } => A {
        for (j, total) in total.iter_mut().enumerate() {
            // SAFETY: the row has an element for each total.
            let x = unsafe { row.offset((j * size_of::<T>()) as i64).read::<T>() };
            *total = x.widen().mul_add::<A>(factor, *total);
        }
    }
}

/// The table, whose rows have adjacent elements.
struct Table {
    data: Address,
    row_stride: i64,
}

impl Table {
    fn row(&self, i: i64) -> Address {
        self.data.offset(i * self.row_stride)
    }
}

/// `outs`: the bags' vectors, the bag of each entry (-1: none), the number of entries of each bag, and for the maximum
/// the rows that it comes from.
#[allow(clippy::too_many_arguments)] // The operator has that many.
fn embedding_bag_kernel(
    weight: &Tensor,
    indices: &Tensor,
    offsets: &Tensor,
    mode: i64,
    per_sample_weights: Option<&Tensor>,
    include_last_offset: bool,
    padding_idx: i64,
    outs: &[Tensor],
) -> Result<()> {
    let rows = weight.size(0)?;
    let bags = Bags::new(indices, offsets, include_last_offset, rows, padding_idx)?;
    let numbers = outs[1..].iter().map(|out| writable(out, ScalarType::Long)).collect::<Result<Vec<_>>>()?;
    describe(&bags, &numbers[0], &numbers[1])?;
    let result = writable(&outs[0], weight.dtype())?;
    let weight = if weight.stride(1)? == 1 { weight.clone() } else { dense(weight)? };
    let table = Table {
        data: Address(weight.const_data_ptr().cast_mut()),
        row_stride: byte_stride(weight.stride(0)?, weight.item_size()),
    };
    let width = weight.size(1)? as usize;
    dispatch!(weight.dtype(), "embedding_bag", FLOATING_AND_HALF, |T| {
        let out = Address(mutable_data_ptr::<T>(&result)?.cast());
        if mode == MAX {
            let places = Address(mutable_data_ptr::<i64>(&numbers[2])?.cast());
            greatest::<T>(&bags, &table, width, out, places)
        } else {
            let factors = per_sample_weights.map(dense).transpose()?;
            let factors = factors.as_ref().map(const_data_ptr::<T>).transpose()?;
            let factors = factors.map(|data| Address(data.cast_mut().cast()));
            sums::<T>(&bags, &table, width, factors, mode == MEAN, out)
        }
    })?;
    let results: Vec<&Tensor> = std::iter::once(&result).chain(&numbers).collect();
    deliver(outs, &results)
}

/// The bag of each entry, and the number of entries of each bag.
fn describe(bags: &Bags, of_entries: &Tensor, sizes: &Tensor) -> Result<()> {
    let of_entries = Address(mutable_data_ptr::<i64>(of_entries)?.cast());
    let sizes = Address(mutable_data_ptr::<i64>(sizes)?.cast());
    // SAFETY: one element per entry, and one per bag; nobody else has the outputs.
    let (of_entries, sizes) =
        unsafe { (of_entries.slice_mut::<i64>(bags.entries.len()), sizes.slice_mut::<i64>(bags.len())) };
    of_entries.fill(-1);
    for (bag, size) in sizes.iter_mut().enumerate() {
        of_entries[bags.starts[bag] as usize..bags.starts[bag + 1] as usize].fill(bag as i64);
        *size = bags.of(bag).count() as i64;
    }
    Ok(())
}

/// Bags per piece of a parallel loop.
fn piece(bags: &Bags, width: usize) -> usize {
    let work = bags.entries.len() * width / bags.len().max(1);
    (GRAIN_SIZE / 4 / work.max(1)).max(1)
}

fn sums<T: LinalgElement>(
    bags: &Bags,
    table: &Table,
    width: usize,
    factors: Option<Address>,
    mean: bool,
    out: Address,
) -> Result<()> {
    parallel_for_result(0, bags.len(), piece(bags, width), &|begin, end| {
        let mut total = c10::try_from_fn(width, || <T::Sum as Element>::ZERO)?;
        for bag in begin..end {
            total.fill(<T::Sum as Element>::ZERO);
            let mut count = 0;
            for (i, entry) in bags.of(bag) {
                // SAFETY: one factor per entry.
                let factor = factors.map_or(<T::Sum as Element>::ONE, |factors| unsafe {
                    factors.offset((i * size_of::<T>()) as i64).read::<T>().widen()
                });
                add_row::<T>(&mut total, table.row(entry), factor);
                count += 1;
            }
            if mean && count > 1 {
                for total in &mut total {
                    *total = T::Sum::from_f64(total.to_f64() / f64::from(count));
                }
            }
            // SAFETY: this bag's row of the dense output.
            let row = unsafe { out.offset((bag * width * size_of::<T>()) as i64).slice_mut::<T>(width) };
            T::narrow_slice(&total, row);
        }
        Ok(())
    })
}

/// The first of equal elements; a NaN stays only as the first element.
fn greatest<T: LinalgElement<Sum: PartialOrd>>(
    bags: &Bags,
    table: &Table,
    width: usize,
    out: Address,
    places: Address,
) -> Result<()> {
    parallel_for_result(0, bags.len(), piece(bags, width), &|begin, end| {
        for bag in begin..end {
            // SAFETY: this bag's rows of the dense outputs.
            let (best, places) = unsafe {
                (
                    out.offset((bag * width * size_of::<T>()) as i64).slice_mut::<T>(width),
                    places.offset((bag * width * size_of::<i64>()) as i64).slice_mut::<i64>(width),
                )
            };
            best.fill(<T as Element>::ZERO);
            places.fill(0);
            for (n, (_, entry)) in bags.of(bag).enumerate() {
                let row = table.row(entry);
                for (j, (best, place)) in best.iter_mut().zip(&mut *places).enumerate() {
                    // SAFETY: an element of a row of the table.
                    let x = unsafe { row.offset((j * size_of::<T>()) as i64).read::<T>() };
                    if n == 0 || x.widen() > best.widen() {
                        (*best, *place) = (x, entry);
                    }
                }
            }
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_tensor::{elements, kernel, layouts, set_elements, tensor, with_threads, zeros};

    type Kernel = fn(&Tensor, &Tensor, &Tensor, i64, Option<&Tensor>, bool, i64, &[Tensor]) -> Result<()>;

    fn outputs(dtype: ScalarType, bags: i64, entries: i64, width: i64, mode: i64) -> Vec<Tensor> {
        let places: &[i64] = if mode == MAX { &[bags, width] } else { &[bags] };
        vec![
            zeros(&[bags, width], dtype),
            zeros(&[entries], ScalarType::Long),
            zeros(&[bags], ScalarType::Long),
            zeros(places, ScalarType::Long),
        ]
    }

    #[test]
    fn bags_are_sums_means_and_maxima_of_their_rows() {
        let run: Kernel = kernel("embedding_bag_kernel");
        let entries = [4_i64, 1, 2, 2, 0, 3, 1];
        let offsets = [0_i64, 3, 3, 6];
        let bounds = [0..3, 3..3, 3..6, 6..7];
        for dtype in [ScalarType::Float, ScalarType::Double] {
            for (layout, weight) in layouts(&[5, 17], dtype) {
                let value = |i: i64| ((i * 37 % 23) - 11) as f64;
                match dtype {
                    ScalarType::Float => set_elements::<f32>(&weight, |i| value(i) as f32),
                    _ => set_elements::<f64>(&weight, value),
                }
                let rows: Vec<f64> = match dtype {
                    ScalarType::Float => elements::<f32>(&weight).into_iter().map(f64::from).collect(),
                    _ => elements::<f64>(&weight),
                };
                for (mode, padding) in [(0, -1), (0, 2), (MEAN, -1), (MEAN, 2), (MAX, -1), (MAX, 2)] {
                    let outs = outputs(dtype, 4, 7, 17, mode);
                    let (indices, offsets) = (tensor(&[7], &entries), tensor(&[4], &offsets));
                    run(&weight, &indices, &offsets, mode, None, false, padding, &outs).unwrap();
                    let got: Vec<f64> = match dtype {
                        ScalarType::Float => elements::<f32>(&outs[0]).into_iter().map(f64::from).collect(),
                        _ => elements::<f64>(&outs[0]),
                    };
                    for (bag, bounds) in bounds.iter().enumerate() {
                        let used: Vec<i64> =
                            entries[bounds.clone()].iter().copied().filter(|&e| e != padding).collect();
                        for j in 0..17 {
                            let column = used.iter().map(|&e| rows[e as usize * 17 + j]);
                            let expected = match mode {
                                _ if used.is_empty() => 0.0,
                                MAX => column.fold(f64::NEG_INFINITY, f64::max),
                                MEAN => column.sum::<f64>() / used.len() as f64,
                                _ => column.sum(),
                            };
                            let got = got[bag * 17 + j];
                            assert!((got - expected).abs() < 1e-5, "{layout} {mode} {padding} {bag} {j}");
                        }
                        assert_eq!(elements::<i64>(&outs[2])[bag], used.len() as i64);
                    }
                    assert_eq!(elements::<i64>(&outs[1]), [0, 0, 0, 2, 2, 2, 3]);
                }
            }
        }
    }

    #[test]
    fn any_number_of_threads_gives_the_same_bits() {
        let run: Kernel = kernel("embedding_bag_kernel");
        let weight = zeros(&[50, 300], ScalarType::Float);
        set_elements::<f32>(&weight, |i| (i as f32 * 0.7).sin());
        let entries: Vec<i64> = (0..3000).map(|i| i * 17 % 50).collect();
        let offsets: Vec<i64> = (0..100).map(|i| i * 30).collect();
        let results = [1, 4].map(|threads| {
            let outs = outputs(ScalarType::Float, 100, 3000, 300, 0);
            with_threads(threads, || {
                let (indices, offsets) = (tensor(&[3000], &entries), tensor(&[100], &offsets));
                run(&weight, &indices, &offsets, 0, None, false, -1, &outs).unwrap();
            });
            elements::<f32>(&outs[0]).into_iter().map(f32::to_bits).collect::<Vec<_>>()
        });
        assert_eq!(results[0], results[1]);
    }

    #[test]
    fn entries_and_offsets_out_of_bounds_are_errors() {
        let run: Kernel = kernel("embedding_bag_kernel");
        let weight = zeros(&[3, 2], ScalarType::Float);
        for (entries, offsets) in [
            ([0_i64, 3], [0_i64, 1]),
            ([0, -1], [0, 1]),
            ([0, 1], [1, 1]),
            ([0, 1], [0, 3]),
            ([0, 1], [0, -1]),
            ([0, 1], [0, i64::MAX]),
        ] {
            let outs = outputs(ScalarType::Float, 2, 2, 2, 0);
            let (indices, offsets) = (tensor(&[2], &entries), tensor(&[2], &offsets));
            assert!(run(&weight, &indices, &offsets, 0, None, false, -1, &outs).is_err());
        }
    }
}
