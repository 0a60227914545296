use super::*;

const RESULT_TYPES: &str = include_str!("result_type.txt");

fn tensor(rank: &str, dtype: ScalarType) -> Tensor {
    let sizes: &[i64] = if rank == "dim" { &[2] } else { &[] };
    let tensor = empty_cpu(sizes, dtype).unwrap();
    tensor.set_wrapped_number(rank == "wrapped");
    tensor
}

#[test]
fn result_types_are_pytorchs() {
    let mut rows = 0;
    for row in RESULT_TYPES.lines().filter(|row| !row.starts_with('#')) {
        let [rank_a, a, rank_b, b, expected] = row.split(' ').collect::<Vec<_>>()[..] else {
            panic!("{row}")
        };
        let dtype = |name: &str| ScalarType::from_name(name).unwrap();
        let (a, b) = (tensor(rank_a, dtype(a)), tensor(rank_b, dtype(b)));
        assert_eq!(result_type(&[&a, &b]).unwrap().name(), expected, "{row}");
        assert_eq!(result_type(&[&b, &a]).unwrap().name(), expected, "swapped: {row}");
        rows += 1;
    }
    assert_eq!(rows, 24 * 28);
}

#[test]
fn scalars_rank_as_wrapped_numbers() {
    let mut state = ResultTypeState::default();
    assert_eq!(state.result().unwrap(), None);
    state.update(&tensor("dim", ScalarType::Int)).unwrap();
    state.update_scalar(&c10::Scalar::from(2_i64)).unwrap();
    assert_eq!(state.result().unwrap(), Some(ScalarType::Int));
    state.update_scalar(&c10::Scalar::from(2.5)).unwrap();
    assert_eq!(state.result().unwrap(), Some(ScalarType::Float));
}

#[test]
fn single_elements_are_cast_inside_the_iterator() {
    init();
    let a = arange(&[3]);
    assert_eq!(values::<f32>(&add(&a, &wrapped(2_i64)).unwrap()), [2.0, 3.0, 4.0]);
    assert_eq!(values::<f32>(&add(&wrapped(0.5_f64), &a).unwrap()), [0.5, 1.5, 2.5]);
    let double = zeros(&[1, 1], ScalarType::Long);
    assert_eq!(add(&a, &double).unwrap().sizes().unwrap(), [1, 3]);

    let mut outs = StructuredOutputs::functional(1);
    let (two, three) = (wrapped(2_i64), wrapped(3.5_f64));
    let iter = TensorIterator::binary_op(&mut outs, "add", &two, &three).unwrap();
    assert_eq!(iter.common_dtype(), ScalarType::Float);
    assert!(iter.is_cpu_scalar(1));
    assert_eq!((iter.scalar_value::<f32>(1), iter.scalar_value::<f32>(2)), (2.0, 3.5));
}

#[test]
fn inputs_and_outputs_are_cast_through_the_copy_kernel() {
    init();
    let a = arange(&[2, 3]);
    let b = zeros(&[3], ScalarType::Int);
    fill(&b, |i| 10 * i as i32);
    let sum = add(&permute(&a, &[0, 1]), &b).unwrap();
    assert_eq!(values::<f32>(&sum), [0.0, 11.0, 22.0, 3.0, 14.0, 25.0]);

    // f32 + f32 into a double output, of the right size and of none.
    for sizes in [&[2, 3][..], &[0]] {
        let out = zeros(sizes, ScalarType::Double);
        let mut outs = StructuredOutputs::out(&[&out]);
        let iter = TensorIterator::binary_op(&mut outs, "add", &a, &b).unwrap();
        assert_eq!((iter.dtype(0), iter.common_dtype()), (ScalarType::Float, ScalarType::Float));
        add_f32(&iter).unwrap();
        outs.finish().unwrap();
        assert_eq!(values::<f64>(&out), [0.0, 11.0, 22.0, 3.0, 14.0, 25.0]);
        assert!(outs.take(0).unwrap().is_same(&out));
    }

    let out = zeros(&[0], ScalarType::Double);
    let iter = TensorIteratorConfig::new()
        .promote_inputs_to_common_dtype(true)
        .cast_common_dtype_to_outputs(true)
        .add_output(&out)
        .add_input(&a)
        .add_input(&b)
        .build_standalone()
        .unwrap();
    add_f32(&iter).unwrap();
    iter.cast_outputs().unwrap();
    assert_eq!(values::<f64>(&out), [0.0, 11.0, 22.0, 3.0, 14.0, 25.0]);
}

#[test]
fn unsafe_casts_are_refused() {
    let long = zeros(&[3], ScalarType::Long);
    let mut outs = StructuredOutputs::inplace(&long);
    let error = error_of(TensorIterator::binary_op(&mut outs, "add_", &long, &wrapped(1.5_f64)));
    assert_eq!(error, "result type Float can't be cast to the desired output type Long");
}

#[test]
fn dtypes_must_agree_without_promotion() {
    let mut outs = StructuredOutputs::out(&[]);
    let (a, out) = (arange(&[3]), zeros(&[3], ScalarType::Double));
    let mut out = StructuredOutputs::out(&[&out]);
    let error = error_of(TensorIterator::unary_op(&mut out, "neg", &a));
    assert!(error.contains("Found dtype Double but expected Float"), "{error}");
    assert!(outs.take(0).is_err());
}

#[test]
fn float_ops_and_comparisons() {
    let a = zeros(&[3], ScalarType::Long);
    let mut outs = StructuredOutputs::functional(1);
    init();
    let iter = TensorIterator::binary_float_op(&mut outs, "div", &a, &a).unwrap();
    assert_eq!((iter.common_dtype(), iter.input_dtype(0)), (ScalarType::Float, ScalarType::Float));
    assert_eq!(outs.take(0).unwrap().dtype(), ScalarType::Float);

    let mut outs = StructuredOutputs::functional(1);
    let iter = TensorIterator::comparison_op(&mut outs, "eq", &a, &a).unwrap();
    assert_eq!((iter.dtype(0), iter.common_dtype()), (ScalarType::Bool, ScalarType::Long));

    let mut outs = StructuredOutputs::functional(1);
    let iter = TensorIterator::unary_force_boolean_op(&mut outs, "isnan", &a).unwrap();
    assert_eq!((iter.dtype(0), iter.dtype(1)), (ScalarType::Bool, ScalarType::Long));
}

#[test]
fn devices_must_agree() {
    let (cpu, meta_) = (arange(&[3]), meta(&[3], ScalarType::Float));
    assert!(error_of(add(&cpu, &meta_)).contains("Expected all tensors to be on the same device"));
    let sum = add(&meta_, &wrapped(1.5_f64)).unwrap();
    assert!(sum.is_meta());
    let (a, b) = (wrapped(1_i64), wrapped(2_i64));
    // What is not computed may take any number of them.
    let mut outs = StructuredOutputs::functional(1);
    TensorIterator::ternary_op(&mut outs, "addcmul", &meta_, &a, &b).unwrap();
    assert!(outs.output(0).unwrap().is_meta());
    assert_eq!(Device::from(DeviceType::Meta), sum.device());
}
