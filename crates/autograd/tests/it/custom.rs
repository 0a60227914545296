use autograd::custom_function::wrap_outputs;
use autograd::{variable, Node, NodeFunction, VariableList};
use c10::{Result, Tensor};
use ops::at;
use std::any::Any;
use std::borrow::Cow;

use crate::backend::{grad_values, leaf, tensor};

struct Times(f64);

impl NodeFunction for Times {
    fn name(&self) -> Cow<'_, str> {
        Cow::Borrowed("TimesBackward")
    }
    fn apply(&self, _: &Node, grads: VariableList) -> Result<VariableList> {
        let times = |g: Tensor| at::mul_scalar(&g, &c10::Scalar::Float(self.0));
        grads.into_iter().map(|g| g.map(times).transpose()).collect()
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

fn node_for(x: &Tensor, factor: f64) -> Node {
    let node = Node::new(Box::new(Times(factor)));
    // SAFETY: nobody else has the node yet.
    unsafe { node.set_next_edges(variable::collect_next_edges([Some(x)]).unwrap()) };
    node
}

fn view_as_self(t: &Tensor) -> Result<Tensor> {
    at::view(t, &t.sym_sizes())
}

fn wrap(x: &Tensor, dirty: &[Tensor], outputs: Vec<Tensor>, node: &Node) -> Result<Vec<Option<Tensor>>> {
    let outputs = outputs.into_iter().map(Some).collect();
    wrap_outputs(&[Some(x.clone())], &[], dirty, outputs, Some(node), &[], &view_as_self)
}

#[test]
fn outputs_get_the_node() {
    let x = leaf(&[2], &[1.0, 2.0]);
    let out = wrap(&x, &[], vec![tensor(&[2], &[5.0, 6.0])], &node_for(&x, 7.0)).unwrap();
    let y = out[0].clone().unwrap();
    autograd::backward(&[at::sum(&y, None).unwrap()], &[], None, false, None).unwrap();
    assert_eq!(grad_values(&x), [7.0, 7.0]);
}

#[test]
fn an_input_returned_as_it_is_becomes_a_view() {
    let x = leaf(&[2], &[1.0, 2.0]);
    let out = wrap(&x, &[], vec![x.clone()], &node_for(&x, 7.0)).unwrap();
    let y = out[0].clone().unwrap();
    assert!(!y.is_same(&x) && variable::is_view(&y) && variable::is_leaf(&x).unwrap());
    let error = at::mul__tensor(&y, &tensor(&[], &[2.0])).unwrap_err();
    assert!(
        error.message().contains("no_grad mode") || error.message().contains("custom Function"),
        "{error}"
    );
}

#[test]
fn dirty_inputs_are_rebased() {
    let x = leaf(&[2], &[1.0, 2.0]);
    let y = at::mul_tensor(&x, &tensor(&[], &[1.0])).unwrap();
    let node = node_for(&y, 3.0);
    let out = wrap(&y, std::slice::from_ref(&y), vec![y.clone()], &node).unwrap();
    assert!(out[0].as_ref().unwrap().is_same(&y));
    assert!(variable::grad_fn(&y).unwrap().unwrap().ptr_eq(&node));
    let error = wrap(&x, std::slice::from_ref(&x), vec![x.clone()], &node_for(&x, 3.0)).unwrap_err();
    assert_eq!(error.message(), "a leaf Variable that requires grad has been used in an in-place operation.");
    let unreturned =
        wrap(&y, std::slice::from_ref(&y), vec![tensor(&[2], &[1.0, 2.0])], &node_for(&y, 3.0)).unwrap_err();
    assert!(unreturned.message().starts_with("Some elements marked as dirty"));
}

#[test]
fn non_differentiable_outputs() {
    let x = leaf(&[2], &[1.0, 2.0]);
    let plain = tensor(&[2], &[5.0, 6.0]);
    let node = node_for(&x, 1.0);
    let outputs = vec![Some(plain.clone()), None];
    let out = wrap_outputs(&[Some(x)], &[plain], &[], outputs, Some(&node), &[], &view_as_self).unwrap();
    assert!(!variable::requires_grad(out[0].as_ref().unwrap()) && out[1].is_none());
    assert_eq!(node.num_inputs(), 2);
}
