use super::*;

/// Sum over `dims` by the block loop and by the element-wise walk; both must agree.
fn sum(input: &Tensor, dims: Option<&[i64]>, keepdim: bool) -> Tensor {
    let make = || {
        let mut outs = StructuredOutputs::functional(1);
        let float = ScalarType::Float;
        let iter = make_reduction("sum", &mut outs, input, dims, keepdim, float, &[float]).unwrap();
        (iter, outs.take(0).unwrap())
    };
    let (iter, by_blocks) = make();
    fill(&by_blocks, |_| 0.0_f32);
    iter.parallel_reduce(&|data, strides, size0, size1| {
        for j in 0..size1 as i64 {
            for i in 0..size0 as i64 {
                let at = |a: usize| data[a].wrapping_offset((i * strides[a] + j * strides[2 + a]) as isize);
                // SAFETY: elements of the walk, f32 by `make_reduction`.
                unsafe { *at(0).cast::<f32>() += *at(1).cast::<f32>() };
            }
        }
    })
    .unwrap();
    let (iter, by_elements) = make();
    iter.foreach_reduced_elt(&|elements| {
        let total = elements.fold_chunks(
            parallel::GRAIN_SIZE,
            &|chunk| {
                let mut total = 0.0_f32;
                let mut next = chunk.begin();
                chunk.for_each_run(&mut |pointer, stride, n, index| {
                    assert_eq!(index, next, "rows follow each other");
                    next += n;
                    for i in 0..n as isize {
                        // SAFETY: elements of the walk.
                        total += unsafe { pointer.wrapping_offset(i * stride as isize).cast::<f32>().read() };
                    }
                });
                total
            },
            |a, b| a + b,
        )?;
        // SAFETY: the output element, written by this call alone.
        unsafe { elements.output(0).cast::<f32>().write(total.unwrap_or(0.0)) };
        Ok(())
    })
    .unwrap();
    assert_eq!(values::<f32>(&by_blocks), values::<f32>(&by_elements));
    by_blocks
}

/// The same by definition.
fn naive_sum(input: &Tensor, mask: u64) -> Vec<f32> {
    let sizes = input.sizes().unwrap();
    let out_sizes = shape_from_dim_mask(sizes, mask, true);
    let (logical, out_logical) = (compute_contiguous_strides(sizes), compute_contiguous_strides(&out_sizes));
    let mut out = vec![0.0; out_sizes.iter().product::<i64>() as usize];
    for (i, value) in values::<f32>(input).into_iter().enumerate() {
        let at: i64 = (0..sizes.len())
            .map(|d| if mask >> d & 1 == 1 { 0 } else { i as i64 / logical[d] % sizes[d] * out_logical[d] })
            .sum();
        out[at as usize] += value;
    }
    out
}

#[test]
fn every_set_of_dimensions() {
    let inputs = [
        arange(&[2, 3, 4, 5]),
        permuted(&[2, 3, 4, 5], &[3, 1, 0, 2]),
        as_strided(&arange(&[200]), &[2, 3, 1, 4], &[60, 9, 5, 2], 3),
        as_strided(&arange(&[5]), &[4, 1, 5, 3], &[0, 0, 1, 0], 0),
    ];
    for input in &inputs {
        for mask in 1..16_u64 {
            let dims: Vec<i64> = (0..4).filter(|d| mask >> d & 1 == 1).collect();
            for keepdim in [false, true] {
                let out = sum(input, Some(&dims), keepdim);
                let shape = shape_from_dim_mask(input.sizes().unwrap(), mask, keepdim);
                assert_eq!(out.sizes().unwrap(), &shape[..]);
                assert_eq!(values::<f32>(&out), naive_sum(input, mask), "{:?} {dims:?}", input.sizes());
            }
        }
    }
}

#[test]
fn all_dimensions_and_none() {
    let a = arange(&[2, 3]);
    assert_eq!(values::<f32>(&sum(&a, None, false)), [15.0]);
    assert_eq!(sum(&a, Some(&[]), true).sizes().unwrap(), [1, 1]);
    assert_eq!(values::<f32>(&sum(&wrapped(3.0_f32), None, false)), [3.0]);
    assert_eq!(values::<f32>(&sum(&wrapped(3.0_f32), Some(&[-1]), true)), [3.0]);
}

#[test]
fn no_elements() {
    assert_eq!(values::<f32>(&sum(&arange(&[0]), None, false)), [0.0]);
    assert_eq!(values::<f32>(&sum(&arange(&[0, 3]), Some(&[0]), false)), [0.0, 0.0, 0.0]);
    assert_eq!(values::<f32>(&sum(&arange(&[2, 0, 2]), Some(&[1]), true)), [0.0; 4]);
    assert_eq!(sum(&arange(&[0, 3]), Some(&[1]), false).sizes().unwrap(), [0]);
    assert_eq!(sum(&arange(&[3, 0]), Some(&[0]), false).sizes().unwrap(), [0]);
}

#[test]
fn bad_dimensions() {
    let mask = |dims: &[i64], ndim| make_dim_mask(Some(dims), ndim, false);
    assert_eq!(error_of(mask(&[0, -2], 2)), "dim 0 appears multiple times in the list of dims");
    assert!(error_of(mask(&[2], 2))
        .contains("Dimension out of range (expected to be in range of [-2, 1], but got 2)"));
    assert_eq!(error_of(mask(&[0], 65)), "only tensors with up to 64 dims are supported");
    assert_eq!(mask(&[], 65).unwrap(), ALL_DIMS);
    assert_eq!(*shape_from_dim_mask(&[2_i64; 70], ALL_DIMS, false), []);
    assert_eq!(*shape_from_dim_mask(&[2_i64; 70], ALL_DIMS, true), [1; 70]);
    assert_eq!(mask(&[], 2).unwrap(), ALL_DIMS);
    assert_eq!(make_dim_mask(Some(&[]), 2, true).unwrap(), 0);
    assert_eq!(mask(&[-1], 64).unwrap(), 1 << 63);
}

#[test]
fn a_given_output_of_another_dtype_and_two_outputs() {
    init();
    let a = arange(&[4, 3]);
    let mut outs = StructuredOutputs::functional(2);
    let iter = make_reduction(
        "max",
        &mut outs,
        &a,
        Some(&[0]),
        false,
        ScalarType::Double,
        &[ScalarType::Double, ScalarType::Long],
    )
    .unwrap();
    assert_eq!(
        (iter.noutputs(), iter.dtype(1), iter.input_dtype(0)),
        (2, ScalarType::Long, ScalarType::Double)
    );
    iter.foreach_reduced_elt(&|elements| {
        let (mut best, mut at) = (f64::NEG_INFINITY, 0);
        elements.for_each_run(&mut |pointer, stride, n, index| {
            for i in 0..n {
                // SAFETY: elements of the walk, cast to f64 by `make_reduction`.
                let value =
                    unsafe { pointer.wrapping_offset(i as isize * stride as isize).cast::<f64>().read() };
                if value > best {
                    (best, at) = (value, index + i);
                }
            }
        });
        // SAFETY: output elements of these dtypes, written by this call alone.
        unsafe {
            elements.output(0).cast::<f64>().write(best);
            elements.output(1).cast::<i64>().write(at as i64);
        }
        Ok(())
    })
    .unwrap();
    assert_eq!(values::<f64>(&outs.take(0).unwrap()), [9.0, 10.0, 11.0]);
    assert_eq!(values::<i64>(&outs.take(1).unwrap()), [3, 3, 3]);
}

#[test]
fn bits_do_not_depend_on_the_number_of_threads() {
    let _lock = parallel::tests_support::thread_count_lock();
    let before = parallel::num_threads();
    for (sizes, dims) in [
        (&[400_000][..], &[0][..]),
        (&[3, 200_000], &[1]),
        (&[200_000, 3], &[0]),
        (&[700, 700], &[0]),
        (&[700, 700], &[1]),
        (&[50, 80, 90], &[0, 2]),
    ] {
        let input = arange(sizes);
        fill(&input, |i| (i as f32 * 0.7).sin());
        let mut results = Vec::new();
        for threads in [1, 2, 3, 8] {
            parallel::set_num_threads(threads).unwrap();
            let mut outs = StructuredOutputs::functional(1);
            let float = ScalarType::Float;
            let iter = make_reduction("sum", &mut outs, &input, Some(dims), false, float, &[float]).unwrap();
            let out = outs.take(0).unwrap();
            fill(&out, |_| 0.0_f32);
            iter.parallel_reduce(&|data, strides, size0, size1| {
                for j in 0..size1 as i64 {
                    for i in 0..size0 as i64 {
                        let at = |a: usize| {
                            data[a].wrapping_offset((i * strides[a] + j * strides[2 + a]) as isize)
                        };
                        // SAFETY: elements of the walk.
                        unsafe { *at(0).cast::<f32>() += *at(1).cast::<f32>() };
                    }
                }
            })
            .unwrap();
            results.push(values::<f32>(&out).iter().map(|x| x.to_bits()).collect::<Vec<_>>());
        }
        assert!(results.windows(2).all(|w| w[0] == w[1]), "{sizes:?} {dims:?}");
    }
    parallel::set_num_threads(before).unwrap();
}
