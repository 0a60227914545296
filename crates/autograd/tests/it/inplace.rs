use autograd::{variable, CreationMeta};
use c10::{NoGradGuard, Scalar, SymInt, Tensor};
use ops::at;

use crate::backend::{grad_values, leaf, tensor, values};

fn backward(t: &Tensor) {
    autograd::backward(std::slice::from_ref(t), &[], None, false, None).unwrap();
}

fn select(t: &Tensor, index: i64) -> Tensor {
    at::select_int(t, 0, &SymInt::from(index)).unwrap()
}

#[test]
fn leaves_are_protected() {
    let x = leaf(&[2], &[1.0, 2.0]);
    let two = tensor(&[], &[2.0]);
    assert_eq!(
        at::mul__tensor(&x, &two).unwrap_err().message(),
        "a leaf Variable that requires grad is being used in an in-place operation."
    );
    assert_eq!(
        at::mul__tensor(&select(&x, 0), &two).unwrap_err().message(),
        "a view of a leaf Variable that requires grad is being used in an in-place operation."
    );
    let _no_grad = NoGradGuard::new();
    at::mul__tensor(&x, &two).unwrap();
    assert_eq!((values(&x), variable::version(&x)), (vec![2.0, 4.0], 1));
}

#[test]
fn in_place_operators_are_recorded() {
    let x = leaf(&[2], &[1.0, 2.0]);
    let y = at::mul_tensor(&x, &x).unwrap();
    at::exp_(&y).unwrap();
    assert_eq!(variable::grad_fn(&y).unwrap().unwrap().name(), "ExpBackward0");
    backward(&at::sum(&y, None).unwrap());
    assert!((grad_values(&x)[0] - 2.0 * 1.0f32.exp()).abs() < 1e-4);
}

#[test]
fn what_is_overwritten_is_saved_first() {
    let (x, w) = (leaf(&[2], &[1.0, 2.0]), leaf(&[2], &[3.0, 4.0]));
    let y = at::mul_tensor(&x, &tensor(&[], &[1.0])).unwrap();
    at::mul__tensor(&y, &w).unwrap();
    backward(&at::sum(&y, None).unwrap());
    assert_eq!(grad_values(&x), [3.0, 4.0]);
    assert_eq!(grad_values(&w), [1.0, 2.0]);
}

#[test]
fn modifying_a_view_changes_the_base() {
    let x = leaf(&[2, 2], &[1.0, 2.0, 3.0, 4.0]);
    let base = at::mul_tensor(&x, &tensor(&[], &[1.0])).unwrap();
    let view = select(&base, 1);
    assert!(variable::is_view(&view) && variable::base(&view).unwrap().is_same(&base));
    at::mul__tensor(&view, &tensor(&[], &[10.0])).unwrap();
    assert_eq!(variable::grad_fn(&base).unwrap().unwrap().name(), "CopySlices");
    assert_eq!(variable::grad_fn(&view).unwrap().unwrap().name(), "AsStridedBackward0");
    backward(&at::sum(&at::mul_tensor(&base, &base).unwrap(), None).unwrap());
    assert_eq!(grad_values(&x), [2.0, 4.0, 600.0, 800.0]);
}

#[test]
fn modifying_the_base_changes_views() {
    let x = leaf(&[2, 2], &[1.0, 2.0, 3.0, 4.0]);
    let base = at::mul_tensor(&x, &tensor(&[], &[1.0])).unwrap();
    let view = select(&base, 0);
    at::mul__tensor(&base, &tensor(&[], &[3.0])).unwrap();
    let out = at::sum(&at::mul_tensor(&view, &view).unwrap(), None).unwrap();
    backward(&out);
    assert_eq!(grad_values(&x), [18.0, 36.0, 0.0, 0.0]);
}

#[test]
fn writing_a_graph_into_a_buffer() {
    let x = leaf(&[2], &[1.0, 2.0]);
    let buffer = tensor(&[2, 2], &[0.0; 4]);
    at::copy_(&select(&buffer, 1), &x, false).unwrap();
    assert!(variable::requires_grad(&buffer));
    backward(&at::sum(&at::mul_tensor(&buffer, &buffer).unwrap(), None).unwrap());
    assert_eq!(grad_values(&x), [2.0, 4.0]);
}

#[test]
fn replayed_views_give_the_same_gradients() {
    let before = c10::AutogradState::get();
    before.with_view_replay_enabled(true).set();
    let x = leaf(&[2, 2], &[1.0, 2.0, 3.0, 4.0]);
    let base = at::mul_tensor(&x, &tensor(&[], &[1.0])).unwrap();
    let flat = at::view(&base, &[SymInt::from(4)]).unwrap();
    let element = select(&flat, 2);
    at::mul__tensor(&element, &tensor(&[], &[10.0])).unwrap();
    assert_eq!(variable::grad_fn(&element).unwrap().unwrap().name(), "SelectBackward0");
    backward(&at::sum(&base, None).unwrap());
    before.set();
    assert_eq!(grad_values(&x), [1.0, 1.0, 10.0, 1.0]);
}

#[test]
fn views_made_without_grad_are_refused() {
    let x = leaf(&[2], &[1.0, 2.0]);
    let base = at::mul_tensor(&x, &x).unwrap();
    let view = {
        let _no_grad = NoGradGuard::new();
        select(&base, 0)
    };
    let error = at::mul__tensor(&view, &tensor(&[], &[2.0])).unwrap_err();
    assert!(
        error.message().starts_with(
            "A view was created in no_grad mode and is being modified inplace with grad mode enabled."
        ),
        "{error}"
    );
}

#[test]
fn one_of_several_views_is_refused() {
    let x = leaf(&[2, 2], &[1.0, 2.0, 3.0, 4.0]);
    let base = at::mul_tensor(&x, &x).unwrap();
    let parts = at::unbind_int(&base, 0).unwrap();
    let error = at::mul__tensor(&parts[1], &tensor(&[], &[2.0])).unwrap_err();
    assert!(
        error.message().starts_with("Output 1 of UnbindBackward0 is a view and is being modified inplace."),
        "{error}"
    );
    variable::set_creation_meta(&parts[1], CreationMeta::InCustomFunction);
    let error = at::mul__tensor(&parts[1], &tensor(&[], &[2.0])).unwrap_err();
    assert!(error.message().contains("inside a custom Function"));
}

#[test]
fn versions_count_over_views() {
    let base = tensor(&[2, 2], &[0.0; 4]);
    let (a, b) = (select(&base, 0), select(&base, 1));
    at::add__tensor(&a, &tensor(&[], &[1.0]), &Scalar::Int(1)).unwrap();
    assert_eq!([variable::version(&base), variable::version(&a), variable::version(&b)], [1, 1, 1]);
}
