use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

#[test]
fn pieces_cover_every_element_once() {
    let _lock = parallel::tests_support::thread_count_lock();
    let a = permuted(&[7, 30, 11], &[1, 0, 2]);
    let b = arange(&[30, 1, 11]);
    let whole = values::<f32>(&add(&a, &b).unwrap());
    for grain in [1, 7, 100, 2310, 100_000] {
        let mut outs = StructuredOutputs::functional(1);
        let iter = TensorIterator::binary_op(&mut outs, "add", &a, &b).unwrap();
        let visited = AtomicUsize::new(0);
        iter.for_each_2d(
            &|data, strides, size0, size1| {
                visited.fetch_add(size0 * size1, Ordering::Relaxed);
                for j in 0..size1 as i64 {
                    for i in 0..size0 as i64 {
                        let at = |a: usize| {
                            data[a]
                                .wrapping_offset((i * strides[a] + j * strides[3 + a]) as isize)
                                .cast::<f32>()
                        };
                        // SAFETY: elements of the walk.
                        unsafe { at(0).write(at(1).read() + at(2).read()) };
                    }
                }
            },
            grain,
        )
        .unwrap();
        assert_eq!(visited.into_inner(), 2310);
        assert_eq!(values::<f32>(&outs.take(0).unwrap()), whole, "grain {grain}");
    }
}

#[test]
fn a_copy_between_orders() {
    init();
    let src = permuted(&[3, 4, 5], &[2, 0, 1]);
    let dst = zeros(&[5, 3, 4], ScalarType::Double);
    copy_into(&dst, &src, false).unwrap();
    assert!(values::<f64>(&dst).iter().zip(values::<f32>(&src)).all(|(&d, s)| d == f64::from(s)));
    copy_into(&dst, &arange(&[4]), false).unwrap();
    assert_eq!(values::<f64>(&dst)[4..9], [0.0, 1.0, 2.0, 3.0, 0.0]);
    assert!(copy_into(&arange(&[2]), &arange(&[3]), false).is_err());
    copy_into(&meta(&[2], ScalarType::Float), &meta(&[2], ScalarType::Long), false).unwrap();
}

#[test]
fn a_fill_has_no_inputs() {
    let out = zeros(&[2, 2], ScalarType::Float);
    let iter = TensorIterator::nullary_op(&out).unwrap();
    assert_eq!((iter.ninputs(), iter.common_dtype()), (0, ScalarType::Float));
    iter.for_each(
        &|data, strides, n| {
            for i in 0..n as isize {
                // SAFETY: elements of the walk.
                unsafe { data[0].wrapping_offset(i * strides[0] as isize).cast::<f32>().write(7.0) };
            }
        },
        1,
    )
    .unwrap();
    assert_eq!(values::<f32>(&out), [7.0; 4]);
}

/// `cargo test -p iter --release -- --ignored build_cost --nocapture`
#[test]
#[ignore = "prints a measurement"]
fn build_cost() {
    let (a, b, out) = (arange(&[4, 4]), arange(&[4, 4]), arange(&[4, 4]));
    // The best of many batches: what it costs when nothing else runs.
    let time = |name: &str, f: &dyn Fn()| {
        let batch = || {
            let begin = std::time::Instant::now();
            (0..1000).for_each(|_| f());
            begin.elapsed().as_nanos()
        };
        println!("{name}: {} ns", (0..500).map(|_| batch()).min().unwrap_or(0) / 1000);
    };
    let options = TensorOptions::new().dtype(ScalarType::Float).device(Device::from(DeviceType::CPU));
    time("allocate the output", &|| drop(empty(&[4, 4], &options).unwrap()));
    time("build with a new output", &|| {
        let mut outs = StructuredOutputs::functional(1);
        drop(TensorIterator::binary_op(&mut outs, "add", &a, &b).unwrap());
    });
    time("build with a given output", &|| {
        let mut outs = StructuredOutputs::out(&[&out]);
        drop(TensorIterator::binary_op(&mut outs, "add", &a, &b).unwrap());
    });
    let two = wrapped(2_i64);
    time("build with a number", &|| {
        let mut outs = StructuredOutputs::functional(1);
        drop(TensorIterator::binary_op(&mut outs, "add", &a, &two).unwrap());
    });
    let t = permute(&b, &[1, 0]);
    time("build with a transposed input", &|| {
        let mut outs = StructuredOutputs::functional(1);
        drop(TensorIterator::binary_op(&mut outs, "add", &a, &t).unwrap());
    });
    let mut outs = StructuredOutputs::functional(1);
    let iter = TensorIterator::binary_op(&mut outs, "add", &a, &b).unwrap();
    time("walk", &|| add_f32(&iter).unwrap());
}
