use proptest::prelude::*;

use super::*;

fn iter_of(a: &Tensor, b: &Tensor) -> TensorIterator {
    TensorIterator::binary_op(&mut StructuredOutputs::functional(1), "add", a, b).unwrap()
}

#[test]
fn coalesces_what_every_operand_walks_like_one() {
    // All contiguous: one row.
    let iter = iter_of(&arange(&[2, 3, 4]), &arange(&[2, 3, 4]));
    assert_eq!((iter.shape(), iter.strides(0)), (&[24_i64][..], &[4_i64][..]));
    assert!(iter.is_contiguous());
    // A broadcast row splits the outer dimension off.
    let iter = iter_of(&arange(&[2, 3, 4]), &arange(&[3, 4]));
    assert_eq!(iter.shape(), [12, 2]);
    assert_eq!(
        (iter.strides(0), iter.strides(1), iter.strides(2)),
        (&[4_i64, 48][..], &[4_i64, 48][..], &[4_i64, 0][..])
    );
    // A broadcast column splits the inner one off.
    let iter = iter_of(&arange(&[2, 3, 4]), &arange(&[2, 3, 1]));
    assert_eq!(iter.shape(), [4, 6]);
    assert_eq!(iter.strides(2), [0, 4]);
    assert!(!iter.is_contiguous());
    // A gap between rows.
    let iter = iter_of(&as_strided(&arange(&[40]), &[2, 3, 4], &[15, 5, 1], 0), &wrapped(1.0_f64));
    assert_eq!((iter.shape(), iter.strides(1)), (&[4_i64, 6][..], &[4_i64, 20][..]));
    // The same permutation of both: one row again.
    let iter = iter_of(&permuted(&[2, 3, 4], &[2, 0, 1]), &permuted(&[2, 3, 4], &[2, 0, 1]));
    assert_eq!(iter.shape(), [24]);
    // Two orders: nothing merges but the walk follows the first.
    let iter = iter_of(&permuted(&[2, 3, 4], &[2, 1, 0]), &arange(&[4, 3, 2]));
    assert_eq!((iter.shape(), iter.strides(1)), (&[4_i64, 3, 2][..], &[4_i64, 16, 48][..]));
}

#[test]
fn zero_dimensions_and_no_elements() {
    let iter = iter_of(&wrapped(1.0_f64), &wrapped(2.0_f64));
    assert_eq!((iter.ndim(), iter.numel()), (0, 1));
    assert!(iter.is_contiguous() && iter.is_trivial_1d());
    let iter = iter_of(&arange(&[0, 3]), &arange(&[1, 3]));
    assert_eq!(iter.numel(), 0);
    assert_eq!(add(&arange(&[2, 0]), &arange(&[1])).unwrap().sizes().unwrap(), [2, 0]);
    assert_eq!(values::<f32>(&add(&wrapped(1.5_f32), &wrapped(2.0_f32)).unwrap()), [3.5]);
}

#[test]
fn shapes_that_do_not_broadcast() {
    assert_eq!(
        error_of(add(&arange(&[2, 3]), &arange(&[2, 4]))),
        "The size of tensor a (3) must match the size of tensor b (4) at non-singleton dimension 1"
    );
    let (a, b) = (arange(&[2]), arange(&[3, 2]));
    let mut outs = StructuredOutputs::inplace(&a);
    assert_eq!(
        error_of(TensorIterator::binary_op(&mut outs, "add_", &a, &b)),
        "output with shape [2] doesn't match the broadcast shape [3, 2]"
    );
}

#[test]
fn a_broadcast_shape_with_too_many_elements_is_an_error() {
    let huge = 1_i64 << 40;
    let one = arange(&[1]);
    let (a, b) = (as_strided(&one, &[huge, 1], &[0, 0], 0), as_strided(&one, &[1, huge], &[0, 0], 0));
    assert!(add(&a, &b).is_err());
}

/// (inputs as sizes and strides, the output's strides), as recorded.
type Case = (&'static [(&'static [i64], &'static [i64])], &'static [i64]);

const STRIDES: &[Case] = &[
    (&[(&[4, 2, 3], &[1, 12, 4]), (&[], &[])], &[1, 12, 4]),
    (&[(&[4, 2, 3], &[1, 12, 4]), (&[4, 2, 3], &[6, 3, 1])], &[1, 12, 4]),
    (&[(&[4, 2, 3], &[6, 3, 1]), (&[4, 2, 3], &[1, 12, 4])], &[6, 3, 1]),
    (&[(&[3, 2, 4], &[4, 12, 1]), (&[3, 1, 4], &[4, 4, 1])], &[4, 12, 1]),
    (&[(&[1, 3, 4, 4], &[48, 1, 12, 3]), (&[1, 3, 1, 1], &[3, 1, 1, 1])], &[48, 1, 12, 3]),
    (&[(&[2, 3, 4, 4], &[48, 1, 12, 3]), (&[3, 1, 1], &[1, 1, 1])], &[48, 1, 12, 3]),
    (&[(&[2, 3, 4, 4], &[48, 1, 12, 3]), (&[2, 3, 4, 4], &[48, 16, 4, 1])], &[48, 1, 12, 3]),
    (&[(&[3, 4], &[16, 2]), (&[], &[])], &[4, 1]),
    (&[(&[3, 4], &[2, 12]), (&[], &[])], &[1, 3]),
    (&[(&[4, 5], &[1, 0]), (&[], &[])], &[5, 1]),
    (&[(&[4, 5], &[0, 1]), (&[], &[])], &[5, 1]),
    (&[(&[5, 1, 3], &[1, 5, 5]), (&[5, 2, 3], &[6, 3, 1])], &[6, 3, 1]),
    (&[(&[3, 0], &[1, 3]), (&[], &[])], &[1, 3]),
    (&[(&[4, 1], &[1, 4]), (&[4, 1], &[1, 1])], &[1, 1]),
];

#[test]
fn outputs_take_the_memory_order_of_the_inputs() {
    for (inputs, expected) in STRIDES {
        let tensors: Vec<_> =
            inputs.iter().map(|(sizes, strides)| as_strided(&arange(&[4096]), sizes, strides, 0)).collect();
        let out = add(&tensors[0], &tensors[1]).unwrap();
        assert_eq!(strides(&out), *expected, "{inputs:?}");
        // Without data, the same.
        let metas: Vec<_> = inputs
            .iter()
            .map(|(sizes, strides)| c10::empty_strided_meta(sizes, strides, ScalarType::Float).unwrap())
            .collect();
        let out = add(&metas[0], &metas[1]).unwrap();
        assert_eq!(strides(&out), *expected, "meta {inputs:?}");
    }
}

#[test]
fn linear_iteration_keeps_the_order_of_indices() {
    let a = permuted(&[2, 3], &[1, 0]);
    let iter = TensorIteratorConfig::new()
        .enforce_linear_iteration(true)
        .add_undefined_output()
        .add_input(&a)
        .build_standalone()
        .unwrap();
    let mut seen = Vec::new();
    iter.serial_for_each(
        &mut |data, strides, n| {
            for i in 0..n as isize {
                let p = data[1].wrapping_offset(i * strides[1] as isize).cast::<f32>();
                // SAFETY: an element of the walk.
                seen.push(unsafe { p.read() });
            }
        },
        0..6,
    );
    assert_eq!(seen, values::<f32>(&a));
}

#[test]
fn overlaps() {
    let once =
        "unsupported operation: more than one element of the written-to tensor refers to a single memory \
                location. Please clone() the tensor before performing the operation.";
    let some = "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single \
                memory location. Please clone() the tensor before performing the operation.";
    let x = arange(&[6]);
    let part = |offset| as_strided(&x, &[3], &[1], offset);
    let write = |out: &Tensor, a: &Tensor| {
        TensorIterator::unary_op(&mut StructuredOutputs::out(&[out]), "neg", a).map(|_| ())
    };
    assert_eq!(error_of(write(&as_strided(&x, &[3], &[0], 0), &arange(&[3]))), once);
    assert_eq!(error_of(write(&part(1), &part(0))), some);
    assert!(write(&part(0), &part(0)).is_ok(), "the same elements in the same order are fine");
    assert!(write(&part(3), &part(0)).is_ok());
    let square = arange(&[3, 3]);
    assert_eq!(error_of(write(&permute(&square, &[1, 0]), &square)), some);
    assert_eq!(get_overlap_status(&part(0), &part(0)).unwrap(), MemOverlapStatus::Full);
    assert_eq!(has_internal_overlap(&as_strided(&x, &[3, 3], &[1, 1], 0)).unwrap(), MemOverlap::TooHard);
    assert!(assert_no_overlap(&part(0), &part(0)).is_err());
}

#[test]
fn a_storage_shrunk_behind_a_tensors_back_is_noticed() {
    let a = arange(&[64]);
    let view = as_strided(&a, &[8, 2], &[8, 1], 0);
    a.storage().unwrap().resize(8).unwrap();
    assert!(add(&a, &wrapped(1.0_f64)).is_err());
    assert!(add(&view, &wrapped(1.0_f64)).is_err());
    let single = as_strided(&arange(&[4]), &[], &[], 3);
    single.storage().unwrap().resize(4).unwrap();
    single.set_wrapped_number(true);
    let ints = zeros(&[2], ScalarType::Double);
    assert!(TensorIterator::binary_op(&mut StructuredOutputs::functional(1), "add", &ints, &single).is_err());
    // Nothing is read from an empty view.
    assert!(add(&as_strided(&a, &[0], &[1], 0), &arange(&[1])).is_ok());
}

#[test]
fn declared_shapes_are_proved_too() {
    let a = arange(&[4]);
    let build = |n: i64| {
        TensorIteratorConfig::new()
            .declare_static_shape(&[n])
            .add_output(&a)
            .build_standalone()
            .map(|i| i.numel())
    };
    assert_eq!(build(3).unwrap(), 3);
    assert!(build(5).is_err());
    let iter = TensorIteratorConfig::new()
        .declare_static_shape_squashing(&[4], 0)
        .add_output(&a)
        .build_standalone()
        .unwrap();
    assert_eq!(iter.numel(), 1);
}

#[test]
fn operands_and_dimensions_can_be_removed() {
    let (a, b) = (arange(&[2, 3]), arange(&[3]));
    let mut iter = iter_of(&a, &b);
    iter.remove_operand(2);
    assert_eq!((iter.ntensors(), iter.ninputs(), iter.noutputs()), (2, 1, 1));
    iter.narrow(1, 1, 1).unwrap();
    assert_eq!(iter.data_ptr(1), a.data_ptr().wrapping_add(12));
    iter.remove_dimension(0).unwrap();
    assert_eq!((iter.shape(), iter.numel()), (&[1_i64][..], 1));
    assert!(iter.can_use_32bit_indexing());
    assert!(iter.narrow(0, 1, 1).is_err());
}

/// A view of at most seven dimensions in any order, some broadcast, some of them with gaps.
fn any_operand() -> impl Strategy<Value = (Vec<i64>, Vec<i64>)> {
    prop::collection::vec((0..4_i64, 0..3_i64, any::<u8>()), 7).prop_map(|dims| {
        let sizes: Vec<i64> = dims.iter().map(|&(size, ..)| size.max(1)).collect();
        let mut order: Vec<usize> = (0..7).collect();
        order.sort_by_key(|&d| dims[d].2);
        let mut strides = vec![0; 7];
        let mut stride = 1;
        for d in order {
            if dims[d].1 > 0 {
                strides[d] = stride;
                stride *= sizes[d] + dims[d].1 - 1;
            }
        }
        (sizes, strides)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn any_seven_dimensional_sum_is_right(a in any_operand(), b_strides in any_operand(), ones in any::<u8>()) {
        let (sizes_a, strides_a) = a;
        // The same sizes, except where `b` is broadcast.
        let sizes_b: Vec<i64> =
            sizes_a.iter().enumerate().map(|(d, &s)| if ones >> d & 1 == 1 { 1 } else { s }).collect();
        let strides_b = b_strides.1;
        let data = |sizes: &[i64], strides: &[i64]| {
            let n = compute_storage_nbytes(sizes, strides, 1, 0).unwrap() as i64;
            as_strided(&arange(&[n]), sizes, strides, 0)
        };
        let (ta, tb) = (data(&sizes_a, &strides_a), data(&sizes_b, &strides_b));
        let expanded: Vec<i64> =
            (0..7).map(|d| if sizes_b[d] == 1 { 0 } else { strides_b[d] }).collect();
        let tb_full = as_strided(&tb, &sizes_a, &expanded, 0);
        let expected: Vec<f32> =
            values::<f32>(&ta).iter().zip(values::<f32>(&tb_full)).map(|(x, y)| x + y).collect();
        let sum = add(&ta, &tb).unwrap();
        prop_assert_eq!(sum.sizes().unwrap(), &sizes_a[..]);
        prop_assert!(sum.is_non_overlapping_and_dense());
        prop_assert_eq!(values::<f32>(&sum), expected);
    }
}

/// The short way of `uniform` and the steps of `build` must give the same iterators.
#[test]
fn the_short_way_is_the_long_way() {
    init();
    let tensors = [
        arange(&[3, 4]),
        arange(&[3, 4]),
        arange(&[1, 4]),
        as_strided(&arange(&[4]), &[1, 4], &[1, 1], 0),
        as_strided(&arange(&[4]), &[4, 1], &[1, 7], 0),
        permuted(&[4, 3], &[1, 0]),
        zeros(&[3, 4], ScalarType::Long),
        zeros(&[3, 4], ScalarType::Double),
        zeros(&[], ScalarType::Double),
        zeros(&[], ScalarType::Long),
        arange(&[]),
        arange(&[0, 4]),
        wrapped(2_i64),
        wrapped(2.5_f64),
        wrapped(true),
        meta(&[3, 4], ScalarType::Float),
    ];
    let config = |a, b| {
        TensorIteratorConfig::new()
            .promote_inputs_to_common_dtype(true)
            .cast_common_dtype_to_outputs(true)
            .enforce_safe_casting_to_output(true)
            .allow_cpu_scalars(true)
            .add_input(a)
            .add_input(b)
    };
    let describe = |iter: TensorIterator| {
        let operands: Vec<_> = (0..3).map(|arg| (iter.dtype(arg), iter.strides(arg).to_vec())).collect();
        let out = iter.output(0);
        let made = (out.sizes().unwrap().to_vec(), strides(out), out.dtype());
        let inputs: Vec<_> = (1..3).map(|arg| iter.is_cpu_scalar(arg)).collect();
        (iter.shape().to_vec(), iter.numel(), iter.common_dtype(), iter.device(), operands, made, inputs)
    };
    let mut short = 0;
    for a in &tensors {
        for b in &tensors {
            let mut outs = StructuredOutputs::functional(1);
            let one = config(a, b).build(&mut outs).map(describe);
            let long = config(a, b).add_undefined_output().build_standalone().map(describe);
            short += usize::from(one.is_ok());
            match (one, long) {
                (Ok(one), Ok(long)) if one.1 == 1 => assert_eq!((one.2, one.5), (long.2, long.5)),
                (Ok(one), Ok(long)) => assert_eq!(one, long, "{:?} {:?}", a.sizes(), b.sizes()),
                (one, long) => assert_eq!(
                    one.map(drop).map_err(|e| e.to_string()),
                    long.map(drop).map_err(|e| e.to_string())
                ),
            }
        }
    }
    assert!(short > 100);
}
