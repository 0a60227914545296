use super::*;

/// A small generator: shapes need variety, not quality.
struct Rng(u64);

impl Rng {
    fn below(&mut self, n: i64) -> i64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) as i64 % n
    }

    fn dims(&mut self, max_ndim: i64, max_size: i64) -> DimVector {
        (0..self.below(max_ndim + 1)).map(|_| self.below(max_size + 1)).collect()
    }
}

/// The offsets of all elements in row-major order of the sizes.
fn offsets(sizes: &[i64], strides: &[i64]) -> Vec<i64> {
    sizes.iter().zip(strides).fold(vec![0], |offsets, (&size, &stride)| {
        offsets.iter().flat_map(|&offset| (0..size).map(move |i| offset + i * stride)).collect()
    })
}

fn message<T>(result: Result<T>) -> String {
    result.err().map(|e| e.to_string()).unwrap_or_default()
}

#[test]
fn products() {
    assert_eq!(multiply_integers(&[2, 3, 4]).ok(), Some(24));
    assert_eq!(multiply_integers(&[]).ok(), Some(1));
    assert_eq!(multiply_integers(&[i64::MAX, i64::MAX, 0]).ok(), Some(0));
    assert_eq!(checked_numel(&[1 << 60, 0], 4).ok(), Some(0));
    assert!(message(checked_numel(&[1 << 62, 0], 4)).contains("integer multiplication overflow"));
    assert_eq!(checked_numel(&[1 << 62], 4).ok(), Some(1 << 62));
    assert!(message(multiply_integers(&[i64::MAX, 2])).contains("integer multiplication overflow"));
}

#[test]
fn storage_bytes() -> Result<()> {
    assert_eq!(compute_storage_nbytes(&[2, 3], &[3, 1], 4, 0)?, 24);
    assert_eq!(compute_storage_nbytes(&[2, 3], &[10, 2], 4, 5)?, (5 + 10 + 4 + 1) * 4);
    assert_eq!(compute_storage_nbytes(&[1 << 40, 1 << 40], &[0, 0], 8, 0)?, 8);
    assert_eq!(compute_storage_nbytes(&[0, i64::MAX], &[i64::MAX, 1], 8, 7)?, 0);
    assert_eq!(compute_storage_nbytes(&[], &[], 2, 3)?, 8);
    let overflow = compute_storage_nbytes(&[i64::MAX, 2], &[2, 1], 8, 0);
    assert_eq!(
        message(overflow),
        "Storage size calculation overflowed with sizes=[9223372036854775807, 2] and strides=[2, 1]"
    );
    assert!(compute_storage_nbytes_contiguous(&[1 << 62, 2], 8, 0).is_err());
    assert!(compute_storage_nbytes_contiguous(&[1 << 60], 8, 0).is_err(), "more than isize::MAX bytes");
    assert_eq!(compute_storage_nbytes_contiguous(&[4, 5], 8, 1)?, 168);
    Ok(())
}

#[test]
fn storage_bytes_are_those_reached() -> Result<()> {
    let mut rng = Rng(7);
    for _ in 0..2000 {
        let sizes = rng.dims(4, 3);
        let strides: DimVector = sizes.iter().map(|_| rng.below(6)).collect();
        let offset = rng.below(4);
        let last = offsets(&sizes, &strides).into_iter().max();
        let expected = last.map_or(0, |last| (last + offset + 1) * 2);
        assert_eq!(
            compute_storage_nbytes(&sizes, &strides, 2, offset)? as i64,
            expected,
            "{sizes:?} {strides:?}"
        );
    }
    Ok(())
}

#[test]
fn contiguity_flags_against_definitions() -> Result<()> {
    let mut rng = Rng(11);
    for _ in 0..5000 {
        let sizes = rng.dims(5, 3);
        let mut order: Vec<usize> = (0..sizes.len()).collect();
        for i in (1..order.len()).rev() {
            order.swap(i, rng.below(i as i64 + 1) as usize);
        }
        let mut strides = strides_in_order(&sizes, order.into_iter())?;
        if !strides.is_empty() && rng.below(3) == 0 {
            let dim = rng.below(strides.len() as i64) as usize;
            strides[dim] = rng.below(8);
        }
        let all = offsets(&sizes, &strides);
        let flags = ContiguityFlags::compute(&sizes, &strides, all.len() as i64);
        assert_eq!(
            flags.is_contiguous(),
            all.iter().copied().eq(0..all.len() as i64),
            "{sizes:?} {strides:?}"
        );
        let mut sorted = all.clone();
        sorted.sort_unstable();
        if !all.is_empty() {
            assert_eq!(
                flags.is_non_overlapping_and_dense(),
                sorted.into_iter().eq(0..all.len() as i64),
                "{sizes:?} {strides:?}"
            );
        }
    }
    Ok(())
}

#[test]
fn channels_last() -> Result<()> {
    let sizes = [2, 3, 4, 5];
    let strides = get_channels_last_strides_2d(&sizes)?;
    assert_eq!(strides.as_slice(), [60, 1, 15, 3]);
    let flags = ContiguityFlags::compute(&sizes, &strides, 120);
    assert!(
        flags.is_channels_last_contiguous()
            && flags.is_strides_like_channels_last()
            && !flags.is_contiguous()
    );
    // N111 is ambiguous: both formats hold it, row-major is suggested.
    let flags = ContiguityFlags::compute(&[4, 1, 1, 1], &[1, 1, 1, 1], 4);
    assert!(
        flags.is_contiguous()
            && flags.is_channels_last_contiguous()
            && !flags.is_strides_like_channels_last()
    );
    assert!(is_channels_last_strides_2d(&[2, 1, 3, 3], &[9, 1, 3, 1]));
    let strides = get_channels_last_strides_3d(&[2, 3, 4, 5, 6])?;
    assert_eq!(strides.as_slice(), [360, 1, 90, 18, 3]);
    assert!(
        message(compute_strides_for_memory_format(&[2, 3], MemoryFormat::ChannelsLast)).contains("rank 4")
    );
    Ok(())
}

#[test]
fn dense_strides_follow_the_input() -> Result<()> {
    assert_eq!(infer_dense_strides(&[2, 3, 4], &[1, 8, 2])?.as_slice(), [1, 8, 2]);
    assert_eq!(infer_dense_strides(&[2, 3], &[1, 10])?.as_slice(), [1, 2]);
    assert_eq!(infer_dense_strides(&[2, 3, 4], &[0, 4, 1])?.as_slice(), [12, 4, 1]);
    assert_eq!(infer_dense_strides::<i64>(&[], &[])?.as_slice(), [0; 0]);
    Ok(())
}

#[test]
fn inferred_view_sizes() -> Result<()> {
    assert_eq!(infer_size(&[2, -1], &8)?.as_slice(), [2, 4]);
    assert_eq!(infer_size(&[0, 5], &0)?.as_slice(), [0, 5]);
    assert_eq!(infer_size(&[-1, 5], &0)?.as_slice(), [0, 5]);
    assert_eq!(message(infer_size(&[2, -1], &7)), "shape '[2, -1]' is invalid for input of size 7");
    assert_eq!(message(infer_size(&[-1, -1], &7)), "only one dimension can be inferred");
    assert!(message(infer_size(&[-1, 0], &0)).contains("is ambiguous"));
    assert!(message(infer_size(&[-1, 0], &3)).contains("is invalid for input of size 3"));
    assert!(message(infer_size(&[-2], &2)).starts_with("invalid shape dimension -2"));
    assert!(infer_size(&[i64::MAX, i64::MAX], &1).is_err());
    Ok(())
}

#[test]
fn view_strides_reach_the_same_elements() -> Result<()> {
    let mut rng = Rng(3);
    let mut viewable = 0;
    for _ in 0..20_000 {
        let old_sizes = rng.dims(4, 4);
        let strides: DimVector = match rng.below(3) {
            0 => compute_contiguous_strides(&old_sizes),
            1 => infer_dense_strides(
                &old_sizes,
                &old_sizes.iter().map(|_| rng.below(5)).collect::<DimVector>(),
            )?,
            _ => old_sizes.iter().map(|_| rng.below(9)).collect(),
        };
        let new_sizes = rng.dims(4, 6);
        let old = offsets(&old_sizes, &strides);
        if multiply_integers(&new_sizes)? != old.len() as i64 {
            continue;
        }
        match compute_stride(&old_sizes, &strides, &(old.len() as i64), &new_sizes)? {
            Some(new_strides) => {
                viewable += 1;
                assert_eq!(
                    offsets(&new_sizes, &new_strides),
                    old,
                    "{old_sizes:?} {strides:?} -> {new_sizes:?}"
                );
            }
            None => assert!(!compute_contiguous(&old_sizes, &strides, old.len() as i64)),
        }
    }
    assert!(viewable > 100);
    // The usual transposed matrix cannot be flattened.
    assert_eq!(compute_stride(&[3, 2], &[1, 3], &6, &[6])?, None);
    assert_eq!(
        compute_stride(&[2, 3, 4], &[12, 4, 1], &24, &[6, 2, 2])?.as_deref(),
        Some([4, 2, 1].as_slice())
    );
    Ok(())
}

#[test]
fn expand() -> Result<()> {
    let (sizes, strides) = infer_expand_geometry(&[3, 1], &[1, 1], &[2, -1, 4])?;
    assert_eq!((sizes.as_slice(), strides.as_slice()), ([2, 3, 4].as_slice(), [0, 1, 0].as_slice()));
    assert_eq!(
        message(infer_expand_geometry(&[3], &[1], &[2])),
        "The expanded size of the tensor (2) must match the existing size (3) at non-singleton dimension 0.  Target \
         sizes: [2].  Tensor sizes: [3]"
    );
    assert!(
        message(infer_expand_geometry(&[3], &[1], &[-1, 3])).contains("leading, non-existing dimension 0")
    );
    assert!(infer_expand_geometry(&[3], &[1], &[]).is_err());
    assert_eq!(infer_broadcast_size(&[3, 1], &[2, 1, 4])?.as_slice(), [2, 3, 4]);
    assert_eq!(infer_broadcast_size(&[0], &[1])?.as_slice(), [0]);
    assert_eq!(
        message(infer_broadcast_size(&[3, 2], &[3, 4])),
        "The size of tensor a (2) must match the size of tensor b (4) at non-singleton dimension 1"
    );
    assert!(
        is_expandable_to(&[1, 3], &[2, 5, 3])?
            && !is_expandable_to(&[2], &[3])?
            && !is_expandable_to(&[1, 1], &[1])?
    );
    Ok(())
}
