//! Attaching gradient state.

use std::any::Any;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Barrier, Mutex};

use c10::{
    check, empty_cpu, set_autograd_meta_factory, AutogradMetaInterface, Result, ScalarType, Tensor,
    TensorImpl,
};

static ALIVE: AtomicUsize = AtomicUsize::new(0);

struct Meta {
    requires_grad: AtomicBool,
    grad: Mutex<Option<Tensor>>,
}

impl Meta {
    fn boxed() -> Box<dyn AutogradMetaInterface> {
        ALIVE.fetch_add(1, Ordering::SeqCst);
        Box::new(Self { requires_grad: AtomicBool::new(false), grad: Mutex::new(None) })
    }
}

impl Drop for Meta {
    fn drop(&mut self) {
        ALIVE.fetch_sub(1, Ordering::SeqCst);
    }
}

impl AutogradMetaInterface for Meta {
    fn grad_fn_name(&self, _tensor: &Tensor) -> Option<String> {
        None
    }

    fn fw_grad(&self, _: u64) -> Option<Tensor> {
        None
    }
    fn set_fw_grad(&self, _: Option<Tensor>, _: u64) -> Result<()> {
        Ok(())
    }

    fn requires_grad(&self) -> bool {
        self.requires_grad.load(Ordering::Relaxed)
    }

    fn set_requires_grad(&self, requires_grad: bool, tensor: &TensorImpl) -> Result<()> {
        check!(
            !requires_grad || tensor.is_floating_point() || tensor.is_complex(),
            "only Tensors of floating point and complex dtype can require gradients"
        );
        self.requires_grad.store(requires_grad, Ordering::Relaxed);
        Ok(())
    }

    fn grad(&self) -> Option<Tensor> {
        self.grad.lock().ok()?.clone()
    }

    fn set_grad(&self, grad: Option<Tensor>) {
        if let Ok(mut slot) = self.grad.lock() {
            *slot = grad;
        }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

#[test]
fn state_is_made_on_demand_and_once() -> Result<()> {
    set_autograd_meta_factory(Meta::boxed);
    let t = empty_cpu(&[2], ScalarType::Float)?;
    t.set_requires_grad(false)?;
    assert!(t.autograd_meta().is_none());
    t.set_requires_grad(true)?;
    assert!(t.requires_grad() && t.autograd_meta_as::<Meta>().is_some());
    assert!(empty_cpu(&[2], ScalarType::Long)?.set_requires_grad(true).is_err());
    let grad = empty_cpu(&[2], ScalarType::Float)?;
    t.materialize_autograd_meta()?.set_grad(Some(grad.clone()));
    assert_eq!(grad.use_count(), 2);
    // A copy starts without.
    assert!(!t.shallow_copy_and_detach(t.version_counter())?.requires_grad());
    let weak = t.weak();
    drop(t);
    assert_eq!(grad.use_count(), 1, "released though a weak pointer remains");
    drop(weak);

    for _ in 0..100 {
        let t = empty_cpu(&[1], ScalarType::Float)?;
        let barrier = Barrier::new(4);
        let addresses: Vec<usize> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn(|| {
                        barrier.wait();
                        std::ptr::from_ref(t.set_autograd_meta(Meta::boxed())).cast::<()>() as usize
                    })
                })
                .collect();
            threads.into_iter().filter_map(|thread| thread.join().ok()).collect()
        });
        assert!(addresses.len() == 4 && addresses.iter().all(|&a| a == addresses[0]));
    }
    assert_eq!(ALIVE.load(Ordering::SeqCst), 0, "the losers of a race are dropped, and so is the rest");
    Ok(())
}
