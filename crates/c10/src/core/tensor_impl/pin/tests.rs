use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use super::count::CLAIMED;
use super::*;
use crate::{Device, DispatchKey, DispatchKeySet, ScalarType};

fn tensor() -> Tensor {
    let keys = DispatchKeySet::from_key(DispatchKey::CPU);
    Tensor::from(TensorImpl::new(None, keys, ScalarType::Float, Device::CPU))
}

fn change(tensor: &Tensor) -> Result<()> {
    tensor.with_exclusive_metadata("resize_()", || Ok(()))
}

fn is_free(tensor: &Tensor) -> bool {
    tensor.pins.0.load(Ordering::Relaxed) & (COUNT | CLAIMED) == 0
}

#[test]
fn own_pins_do_not_keep_from_changing() {
    let (x, y) = (tensor(), tensor());
    let mut pins = TensorPins::default();
    [&x, &y, &x].into_iter().for_each(|t| pins.add(t));
    change(&x).unwrap();
    drop(pins);
    assert!(is_free(&x) && is_free(&y));
    HELD.with(|held| assert!(held.borrow().is_empty()));
}

#[test]
fn an_operator_may_pin_what_it_claims() {
    let (x, y) = (tensor(), tensor());
    let hold = OperatorHold::acquire(&[x.clone(), y.clone(), x.clone()], &[x.clone(), x.clone()]);
    change(&x).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| assert!(change(&x).is_err() && change(&y).is_err()));
    });
    drop(hold);
    assert!(is_free(&x) && is_free(&y));
}

#[test]
fn a_claim_waits_for_the_pins_of_others() {
    let x = tensor();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let pin = TensorPin::new(&x);
        let changer = scope.spawn(|| {
            let _hold = OperatorHold::acquire(&[], std::slice::from_ref(&x));
            assert!(done.load(Ordering::Acquire));
            change(&x).unwrap();
        });
        thread::sleep(Duration::from_millis(5));
        done.store(true, Ordering::Release);
        drop(pin);
        changer.join().unwrap();
    });
}

#[test]
fn inside_an_operator_nobody_waits() {
    let x = tensor();
    thread::scope(|scope| {
        let pin = TensorPin::new(&x);
        let changer = scope.spawn(|| change(&x).unwrap_err().to_string());
        let error = changer.join().unwrap();
        assert!(error.contains("another thread is computing"), "{error}");
        drop(pin);
    });
}

#[test]
fn holds_are_lifted_and_pins_come_back() {
    let (x, y) = (tensor(), tensor());
    let hold = OperatorHold::acquire(std::slice::from_ref(&x), std::slice::from_ref(&y));
    let pin = TensorPin::new(&x);
    {
        let _lifted = WithoutHolds::new();
        assert!(is_free(&x) && is_free(&y));
        let inner = TensorPin::new(&y);
        drop(inner);
    }
    assert_eq!(x.pins.0.load(Ordering::Relaxed) & COUNT, 2);
    assert!(is_free(&y));
    drop(pin);
    drop(hold);
    assert!(is_free(&x));
}

#[test]
fn claims_in_opposite_order_do_not_lock_up() {
    let (x, y) = (tensor(), tensor());
    thread::scope(|scope| {
        for pair in [[x.clone(), y.clone()], [y.clone(), x.clone()]] {
            scope.spawn(move || {
                for turn in 0..300 {
                    let [a, b] = &pair;
                    let _hold = match turn % 3 {
                        0 => OperatorHold::acquire(&[], &pair),
                        1 => OperatorHold::acquire(std::slice::from_ref(a), std::slice::from_ref(b)),
                        _ => OperatorHold::acquire(&pair, &[]),
                    };
                }
            });
        }
    });
    assert!(is_free(&x) && is_free(&y));
}

#[test]
fn changes_and_pins_never_overlap() {
    let x = tensor();
    let (pinned, changing) = (AtomicUsize::new(0), AtomicUsize::new(0));
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..500 {
                    let _pin = TensorPin::new(&x);
                    pinned.fetch_add(1, Ordering::SeqCst);
                    assert_eq!(changing.load(Ordering::SeqCst), 0);
                    pinned.fetch_sub(1, Ordering::SeqCst);
                }
            });
            scope.spawn(|| {
                for _ in 0..500 {
                    let _hold = OperatorHold::acquire(&[], std::slice::from_ref(&x));
                    assert_eq!(changing.fetch_add(1, Ordering::SeqCst), 0);
                    assert_eq!(pinned.load(Ordering::SeqCst), 0);
                    change(&x).unwrap();
                    changing.fetch_sub(1, Ordering::SeqCst);
                }
            });
        }
    });
}
