use std::any::Any;
use std::sync::{Arc, Mutex};

use autograd::{
    variable, FunctionPostHook, FunctionPreHook, PostAccumulateGradHook, TensorHookFn, VariableList,
};
use c10::{Result, Scalar, Tensor};
use ops::at;

use crate::backend::{grad_values, leaf, tensor, values};

fn backward(t: &Tensor) {
    autograd::backward(std::slice::from_ref(t), &[], None, false, None).unwrap();
}

fn times(factor: i64) -> Arc<dyn autograd::TensorHook> {
    Arc::new(TensorHookFn(move |g: &Tensor| at::mul_scalar(g, &Scalar::Int(factor)).map(Some)))
}

#[test]
fn tensor_hooks_replace_gradients() {
    let x = leaf(&[], &[2.0]);
    let y = at::mul_tensor(&x, &x).unwrap();
    let on_y = variable::register_hook(&y, times(10)).unwrap();
    variable::register_hook(&x, times(2)).unwrap();
    autograd::backward(std::slice::from_ref(&y), &[], Some(true), false, None).unwrap();
    assert_eq!(grad_values(&x), [80.0]);
    on_y.remove();
    on_y.remove();
    variable::set_grad(&x, None).unwrap();
    backward(&y);
    assert_eq!(grad_values(&x), [8.0]);
}

#[test]
fn hooks_may_not_change_sizes() {
    let x = leaf(&[2], &[1.0, 2.0]);
    variable::register_hook(&x, Arc::new(TensorHookFn(|_: &Tensor| Ok(Some(tensor(&[1], &[1.0])))))).unwrap();
    let y = at::sum(&x, None).unwrap();
    let error = autograd::backward(&[y], &[], None, false, None).unwrap_err();
    assert_eq!(error.message(), "hook 'hook' has changed the size of value");
}

#[test]
fn hooks_see_captured_gradients() {
    let x = leaf(&[], &[2.0]);
    variable::register_hook(&x, times(3)).unwrap();
    let y = at::mul_tensor(&x, &x).unwrap();
    let grads = autograd::grad(&[y], &[x], &[], None, false, None, false).unwrap();
    assert_eq!(values(grads[0].as_ref().unwrap()), [12.0]);
}

#[test]
fn retained_gradients_follow_in_place_changes() {
    let x = leaf(&[], &[2.0]);
    let y = at::mul_tensor(&x, &x).unwrap();
    variable::retain_grad(&y).unwrap();
    assert!(variable::retains_grad(&y));
    at::mul__tensor(&y, &tensor(&[], &[5.0])).unwrap();
    backward(&y);
    assert_eq!(grad_values(&y), [1.0], "the gradient of the newest value");
    assert_eq!(grad_values(&x), [20.0]);
}

struct Log(Arc<Mutex<Vec<String>>>, &'static str);

impl FunctionPreHook for Log {
    fn call(&self, grads: VariableList) -> Result<VariableList> {
        self.0.lock().unwrap().push(format!("pre {}", self.1));
        Ok(grads)
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl FunctionPostHook for Log {
    fn call(&self, outputs: VariableList, inputs: &[Option<Tensor>]) -> Result<VariableList> {
        self.0.lock().unwrap().push(format!("post {} {}->{}", self.1, inputs.len(), outputs.len()));
        Ok(outputs)
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl PostAccumulateGradHook for Log {
    fn call(&self, tensor: &Tensor) -> Result<()> {
        self.0.lock().unwrap().push(format!("accumulated {:?}", grad_values(tensor)));
        Ok(())
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

#[test]
fn node_hooks_run_around_the_node() {
    let log = Arc::new(Mutex::new(Vec::new()));
    let x = leaf(&[], &[2.0]);
    let y = at::mul_tensor(&x, &x).unwrap();
    let node = variable::grad_fn(&y).unwrap().unwrap();
    node.register_prehook(Arc::new(Log(log.clone(), "mul")));
    node.register_hook(Arc::new(Log(log.clone(), "mul")));
    variable::register_post_accumulate_grad_hook(&x, Arc::new(Log(log.clone(), "x"))).unwrap();
    backward(&y);
    assert_eq!(*log.lock().unwrap(), ["pre mul", "post mul 1->2", "accumulated [4.0]"]);
}

#[test]
fn accumulation_reuses_what_nobody_else_has() {
    let x = leaf(&[2], &[1.0, 2.0]);
    backward(&at::sum(&at::mul_tensor(&x, &x).unwrap(), None).unwrap());
    let grad = variable::grad(&x).unwrap();
    let address = grad.data_ptr();
    backward(&at::sum(&at::mul_tensor(&x, &x).unwrap(), None).unwrap());
    assert_eq!(variable::grad(&x).unwrap().data_ptr(), address, "summed in place");
    assert_eq!(values(&grad), [4.0, 8.0], "whoever holds .grad sees the sum");
    // A gradient that the caller holds is copied.
    let mine = tensor(&[2], &[1.0, 1.0]);
    let z = leaf(&[2], &[1.0, 2.0]);
    autograd::backward(std::slice::from_ref(&z), &[Some(mine.clone())], None, false, None).unwrap();
    assert_ne!(variable::grad(&z).unwrap().data_ptr(), mine.data_ptr());
}

#[test]
fn expanded_gradients_become_dense() {
    let x = leaf(&[3], &[1.0, 2.0, 3.0]);
    backward(&at::sum(&x, None).unwrap());
    let grad = variable::grad(&x).unwrap();
    assert!(grad.is_contiguous());
    assert_eq!(values(&grad), [1.0; 3]);
}

#[test]
fn assigned_gradients_must_fit() {
    let x = leaf(&[2], &[1.0, 2.0]);
    assert!(variable::set_grad(&x, Some(x.clone())).is_err());
    let error = variable::set_grad(&x, Some(tensor(&[3], &[0.0; 3]))).unwrap_err();
    assert!(error.message().starts_with("assigned grad has data of a different size"));
    variable::set_grad(&x, Some(tensor(&[2], &[5.0, 6.0]))).unwrap();
    assert_eq!(grad_values(&x), [5.0, 6.0]);
}
