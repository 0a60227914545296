use std::sync::Mutex;

use super::*;

fn float() -> TensorOptions {
    TensorOptions::new().dtype(ScalarType::Float).device(Device::from(DeviceType::CPU))
}

#[test]
fn functional_outputs_are_made_once() {
    let mut outs = StructuredOutputs::functional(2);
    assert!(outs.is_functional() && outs.maybe_get_output(0).is_none() && outs.output(0).is_err());
    outs.set_output_contiguous(0, &[2, 3], float()).unwrap();
    outs.set_output_strided(1, &[2, 3], &[1, 2], float()).unwrap();
    assert!(outs.set_output_contiguous(0, &[2, 3], float()).is_err());
    assert!(outs.set_output_contiguous(2, &[2, 3], float()).is_err());
    assert_eq!(outs.outputs().unwrap().len(), 2);
    assert_eq!(strides(&outs.take(1).unwrap()), [1, 2]);
    assert!(outs.take(1).is_err());
}

#[test]
fn given_outputs_are_checked_and_resized() {
    static WARNED: Mutex<Vec<String>> = Mutex::new(Vec::new());
    set_warning_handler(|message| WARNED.lock().unwrap().push(message.to_owned()));
    let set =
        |out: &Tensor, sizes: &[i64]| StructuredOutputs::out(&[out]).set_output_contiguous(0, sizes, float());
    assert_eq!(
        error_of(set(&zeros(&[2, 2], ScalarType::Long), &[2, 2])),
        "Expected out tensor to have dtype float, but got long int instead"
    );
    assert_eq!(
        error_of(set(&meta(&[2], ScalarType::Float), &[2])),
        "Expected out tensor to have device cpu, but got meta instead"
    );
    let empty = zeros(&[0], ScalarType::Float);
    set(&empty, &[2, 3]).unwrap();
    assert_eq!((empty.sizes().unwrap(), strides(&empty)), (&[2_i64, 3][..], vec![3, 1]));
    assert!(empty.storage().unwrap().nbytes() >= 24);
    let full = arange(&[4]);
    set(&full, &[6, 1]).unwrap();
    let warned = WARNED.lock().unwrap().join("\n");
    assert!(warned
        .contains("resized since it had shape [4], which does not match the required output shape [6, 1]"));
    assert!(!warned.contains("shape [0]"), "resizing nothing loses nothing");
    assert_eq!(values::<f32>(&full)[..4], [0.0, 1.0, 2.0, 3.0]);
}

#[test]
fn a_resized_output_takes_the_inputs_order() {
    let a = permuted(&[2, 3], &[1, 0]);
    let out = zeros(&[0], ScalarType::Float);
    let mut outs = StructuredOutputs::out(&[&out]);
    add_f32(&TensorIterator::binary_op(&mut outs, "add", &a, &wrapped(1.0_f64)).unwrap()).unwrap();
    assert_eq!((strides(&out), values::<f32>(&out)), (vec![1, 3], vec![1.0, 4.0, 2.0, 5.0, 3.0, 6.0]));
    // A given output of the right size keeps its own strides.
    let out = zeros(&[3, 2], ScalarType::Float);
    let mut outs = StructuredOutputs::out(&[&out]);
    add_f32(&TensorIterator::binary_op(&mut outs, "add", &a, &wrapped(1.0_f64)).unwrap()).unwrap();
    assert_eq!((strides(&out), values::<f32>(&out)), (vec![2, 1], vec![1.0, 4.0, 2.0, 5.0, 3.0, 6.0]));
}

#[test]
fn proxies_stand_for_outputs_of_other_strides() {
    init();
    let out = permuted(&[2, 3], &[1, 0]);
    let mut outs = StructuredOutputs::out(&[&out]);
    outs.set_output_contiguous(0, &[3, 2], float()).unwrap();
    let proxy = outs.output(0).unwrap().clone();
    assert!(!proxy.is_same(&out) && proxy.is_contiguous());
    fill(&proxy, |i| 10.0 * i as f32);
    outs.finish().unwrap();
    assert_eq!(values::<f32>(&out), [0.0, 10.0, 20.0, 30.0, 40.0, 50.0]);
    assert_eq!(strides(&outs.take(0).unwrap()), [1, 3]);
}

#[test]
fn in_place_calls_are_checked() {
    let a = arange(&[3, 3]);
    let set = |sizes: &[i64], options| {
        StructuredOutputs::inplace(&a).set_output_raw_strided(0, sizes, &[], options)
    };
    assert!(set(&[3, 3], float()).is_ok());
    assert_eq!(
        error_of(set(&[2, 2], float())),
        "Bad in-place call: input tensor size [3, 3] and output tensor size [2, 2] should match"
    );
    assert_eq!(
        error_of(set(&[3, 3], float().dtype(ScalarType::Double))),
        "Bad in-place call: input tensor dtype float and output tensor dtype double should match"
    );
    let mut outs = StructuredOutputs::inplace(&a);
    let iter = TensorIterator::binary_op(&mut outs, "add_", &a, &wrapped(1_i64)).unwrap();
    add_f32(&iter).unwrap();
    assert!(outs.take(0).unwrap().is_same(&a));
    assert_eq!(values::<f32>(&a)[..3], [1.0, 2.0, 3.0]);
}
