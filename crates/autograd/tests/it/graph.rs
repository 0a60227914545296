use autograd::variable;
use c10::{NoGradGuard, Scalar};
use ops::at;

use crate::backend::{grad_values, leaf, tensor, values};

#[test]
fn gradients_of_a_small_graph() {
    let x = leaf(&[3], &[1.0, 2.0, 3.0]);
    let y = leaf(&[3], &[4.0, 5.0, 6.0]);
    let z = at::sum(&at::mul_tensor(&at::mul_tensor(&x, &y).unwrap(), &x).unwrap(), None).unwrap();
    assert_eq!(variable::grad_fn(&z).unwrap().unwrap().name(), "SumBackward0");
    autograd::backward(&[z], &[], None, false, None).unwrap();
    assert_eq!(grad_values(&x), [8.0, 20.0, 36.0]);
    assert_eq!(grad_values(&y), [1.0, 4.0, 9.0]);
}

#[test]
fn nothing_is_recorded_without_need() {
    let (a, x) = (tensor(&[2], &[1.0, 2.0]), leaf(&[2], &[1.0, 2.0]));
    assert!(variable::grad_fn(&at::mul_tensor(&a, &a).unwrap()).unwrap().is_none());
    let _no_grad = NoGradGuard::new();
    let y = at::mul_tensor(&x, &x).unwrap();
    assert!(variable::is_leaf(&y).unwrap() && !variable::requires_grad(&y));
}

#[test]
fn next_functions_and_saved_attributes() {
    let x = leaf(&[2], &[1.0, 2.0]);
    let c = tensor(&[2], &[3.0, 4.0]);
    let y = at::mul_tensor(&x, &c).unwrap();
    let node = variable::grad_fn(&y).unwrap().unwrap();
    assert_eq!(node.name(), "MulBackward0");
    let next = node.next_edges();
    assert_eq!(next.len(), 2);
    assert_eq!(next[0].function.as_ref().unwrap().name(), "AccumulateGrad");
    assert!(!next[1].is_valid());
    assert!(node.saved_attributes().contains(&"other".to_owned()));
    // Only x needs a gradient, so x itself isn't kept.
    assert!(matches!(node.saved_attribute("self").unwrap(), autograd::SavedValue::None));
    match node.saved_attribute("other").unwrap() {
        autograd::SavedValue::Tensor(t) => assert!(t.is_same(&c)),
        _ => panic!("other is saved"),
    }
    assert!(node.saved_attribute("nonsense").is_err());
}

#[test]
fn gradients_of_gradients() {
    let x = leaf(&[], &[2.0]);
    let y = at::exp(&at::mul_tensor(&x, &x).unwrap()).unwrap();
    let first = autograd::grad(&[y], std::slice::from_ref(&x), &[], None, true, None, false).unwrap();
    let first = first[0].clone().unwrap();
    let e = 4.0f32.exp();
    assert!((values(&first)[0] - 4.0 * e).abs() < 1e-2);
    let second = autograd::grad(&[first], &[x], &[], None, false, None, false).unwrap();
    assert!((values(second[0].as_ref().unwrap())[0] - (2.0 + 16.0) * e).abs() < 1e-1);
}

#[test]
fn broadcast_gradients_are_summed() {
    let x = leaf(&[], &[2.0]);
    let y = tensor(&[3], &[1.0, 2.0, 3.0]);
    let z = at::sum(&at::mul_tensor(&x, &y).unwrap(), None).unwrap();
    autograd::backward(&[z], &[], None, false, None).unwrap();
    assert_eq!(grad_values(&x), [6.0]);
}

#[test]
fn operators_without_derivative() {
    let x = leaf(&[2], &[1.0, 2.0]);
    static OP: dispatch::TypedOp<(c10::Tensor,), c10::Tensor> =
        dispatch::TypedOp::new("aten::no_derivative", "");
    let y = at::sum(&OP.call((&x,)).unwrap(), None).unwrap();
    let error = autograd::backward(&[y], &[], None, false, None).unwrap_err();
    assert!(error.message().contains("derivative for aten::no_derivative is not implemented"), "{error}");
}

#[test]
fn out_variants_refuse_gradients() {
    let (x, out) = (leaf(&[2], &[1.0, 2.0]), tensor(&[2], &[0.0, 0.0]));
    let error = at::add_out(&x, &x, &Scalar::Int(1), &out).unwrap_err();
    assert_eq!(
        error.message(),
        "add(): functions with out=... arguments don't support automatic differentiation, but one of the arguments \
         requires grad."
    );
    let plain = tensor(&[2], &[1.0, 2.0]);
    at::add_out(&plain, &plain, &Scalar::Int(1), &out).unwrap();
    assert_eq!((values(&out), variable::version(&out)), (vec![2.0, 4.0], 1));
}

#[test]
fn detach_shares_versions_and_drops_history() {
    let x = leaf(&[2], &[1.0, 2.0]);
    let y = at::mul_tensor(&x, &x).unwrap();
    let d = at::detach(&y).unwrap();
    assert!(!variable::requires_grad(&d) && !variable::is_view(&d));
    at::add__tensor(&d, &d, &Scalar::Int(1)).unwrap();
    assert_eq!(variable::version(&y), 1);
}

#[test]
fn requires_grad_rules() {
    let x = leaf(&[1], &[1.0]);
    let y = at::mul_tensor(&x, &x).unwrap();
    assert!(variable::set_requires_grad(&y, true).is_ok());
    assert!(variable::set_requires_grad(&y, false)
        .unwrap_err()
        .message()
        .starts_with("you can only change requires_grad"));
    let int = c10::empty_cpu(&[1], c10::ScalarType::Long).unwrap();
    assert_eq!(
        variable::set_requires_grad(&int, true).unwrap_err().message(),
        "only Tensors of floating point and complex dtype can require gradients"
    );
}

#[test]
fn unbind_gives_a_gradient_per_output() {
    let x = leaf(&[2, 2], &[1.0, 2.0, 3.0, 4.0]);
    let parts = at::unbind_int(&x, 0).unwrap();
    let y = at::sum(&at::mul_tensor(&parts[0], &parts[0]).unwrap(), None).unwrap();
    autograd::backward(&[y], &[], None, false, None).unwrap();
    assert_eq!(grad_values(&x), [2.0, 4.0, 0.0, 0.0]);
}
