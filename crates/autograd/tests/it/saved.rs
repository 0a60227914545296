use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

use autograd::{saved_tensor_hooks, variable, PackedTensor, SavedTensorHooks};
use c10::{InferenceModeGuard, NoGradGuard, Result, Tensor};
use ops::at;

use crate::backend::{grad_values, leaf, tensor, values};

fn backward(t: &Tensor) -> Result<()> {
    autograd::backward(std::slice::from_ref(t), &[], None, false, None)
}

#[test]
fn modified_inputs_are_found() {
    let x = leaf(&[2], &[1.0, 2.0]);
    let c = tensor(&[2], &[3.0, 4.0]);
    let y = at::sum(&at::mul_tensor(&x, &c).unwrap(), None).unwrap();
    at::mul__tensor(&c, &tensor(&[], &[2.0])).unwrap();
    assert_eq!(
        backward(&y).unwrap_err().message(),
        "one of the variables needed for gradient computation has been modified by an inplace operation: \
         [torch.FloatTensor [2]] is at version 1; expected version 0 instead. Hint: enable anomaly detection to find the \
         operation that failed to compute its gradient, with torch.autograd.set_detect_anomaly(True)."
    );
}

#[test]
fn modified_outputs_are_found() {
    let x = leaf(&[2], &[1.0, 2.0]);
    let y = at::exp(&x).unwrap();
    let z = at::sum(&y, None).unwrap();
    at::mul__tensor(&y, &tensor(&[], &[2.0])).unwrap();
    let error = backward(&z).unwrap_err();
    assert!(
        error
            .message()
            .contains("[torch.FloatTensor [2]], which is output 0 of ExpBackward0, is at version 1;"),
        "{error}"
    );
}

#[test]
fn saved_outputs_make_no_cycle() {
    let x = leaf(&[2], &[1.0, 2.0]);
    let y = at::exp(&x).unwrap();
    let node = variable::grad_fn(&y).unwrap().unwrap().downgrade();
    drop(y);
    assert!(node.upgrade().is_none());
}

#[test]
fn unpacked_outputs_have_their_history() {
    let x = leaf(&[2], &[1.0, 2.0]);
    let y = at::exp(&x).unwrap();
    let node = variable::grad_fn(&y).unwrap().unwrap();
    match node.saved_attribute("result").unwrap() {
        autograd::SavedValue::Tensor(t) => {
            assert!(!t.is_same(&y));
            assert!(variable::grad_fn(&t).unwrap().unwrap().ptr_eq(&node));
        }
        _ => panic!("the result is saved"),
    }
    node.release_variables();
    let error = node.saved_attribute("result").err().unwrap();
    assert_eq!(error.message(), autograd::ERR_BACKWARD_TWICE);
}

#[test]
fn inference_tensors_cannot_be_saved() {
    let x = leaf(&[2], &[1.0, 2.0]);
    let inference = {
        let _mode = InferenceModeGuard::new(true);
        tensor(&[2], &[1.0, 2.0])
    };
    let error = at::mul_tensor(&x, &inference).unwrap_err();
    assert!(error.message().starts_with("Inference tensors cannot be saved for backward."), "{error}");
}

struct Count {
    packed: Arc<AtomicUsize>,
    unpacked: Arc<AtomicUsize>,
}

struct Doubled(Vec<i64>, Vec<f32>, Arc<AtomicUsize>);

impl SavedTensorHooks for Count {
    fn pack(&self, tensor: &Tensor) -> Result<Arc<dyn PackedTensor>> {
        self.packed.fetch_add(1, Ordering::Relaxed);
        let doubled = values(tensor).iter().map(|v| v * 2.0).collect();
        Ok(Arc::new(Doubled(tensor.sizes()?.to_vec(), doubled, self.unpacked.clone())))
    }
}

impl PackedTensor for Doubled {
    fn unpack(&self) -> Result<Tensor> {
        self.2.fetch_add(1, Ordering::Relaxed);
        Ok(tensor(&self.0, &self.1))
    }
}

#[test]
fn hooks_decide_what_is_kept() {
    let (packed, unpacked) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let x = leaf(&[2], &[1.0, 2.0]);
    saved_tensor_hooks::push(Arc::new(Count { packed: packed.clone(), unpacked: unpacked.clone() })).unwrap();
    let y = at::exp(&at::mul_tensor(&x, &x).unwrap()).unwrap();
    assert!(saved_tensor_hooks::pop().is_some());
    assert_eq!(packed.load(Ordering::Relaxed), 3);
    backward(&at::sum(&y, None).unwrap()).unwrap();
    assert_eq!(unpacked.load(Ordering::Relaxed), 3);
    // exp's saved result and mul's saved inputs were doubled on the way: 2e * 2x * 2.
    assert!((grad_values(&x)[0] - 8.0 * 1.0f32.exp()).abs() < 1e-3);
}

#[test]
fn hooks_on_one_saved_tensor() {
    let counters = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let hooks = Count { packed: counters.0, unpacked: counters.1.clone() };
    let x = leaf(&[1], &[3.0]);
    let c = tensor(&[1], &[5.0]);
    let y = at::mul_tensor(&x, &c).unwrap();
    let raw = variable::grad_fn(&y).unwrap().unwrap().raw_saved("other").unwrap();
    raw[0].register_hooks(&hooks).unwrap();
    assert!(raw[0].register_hooks(&hooks).unwrap_err().message().contains("have already been set"));
    // The original may change now.
    {
        let _no_grad = NoGradGuard::new();
        at::mul__tensor(&c, &tensor(&[], &[0.0])).unwrap();
    }
    backward(&at::sum(&y, None).unwrap()).unwrap();
    assert_eq!(grad_values(&x), [10.0]);
    assert_eq!(counters.1.load(Ordering::Relaxed), 1);
}

#[test]
fn hooks_can_be_disabled() {
    saved_tensor_hooks::disable("not here").unwrap();
    let count = || Arc::new(AtomicUsize::new(0));
    let error = saved_tensor_hooks::push(Arc::new(Count { packed: count(), unpacked: count() })).unwrap_err();
    saved_tensor_hooks::enable();
    assert_eq!(error.message(), "not here");
}
