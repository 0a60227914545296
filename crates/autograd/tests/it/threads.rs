use std::sync::Arc;

use autograd::variable;
use ops::at;

use crate::backend::{grad_values, leaf, tensor};

#[test]
fn many_threads_share_a_leaf() {
    const THREADS: usize = 8;
    const ROUNDS: usize = 200;
    let x = leaf(&[2], &[1.0, 2.0]);
    let threads: Vec<_> = (0..THREADS)
        .map(|_| {
            let x = x.clone();
            std::thread::spawn(move || {
                for _ in 0..ROUNDS {
                    let y = at::sum(&at::mul_tensor(&x, &tensor(&[], &[1.0])).unwrap(), None).unwrap();
                    autograd::backward(&[y], &[], None, false, None).unwrap();
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|t| t.join().unwrap());
    assert_eq!(grad_values(&x), [(THREADS * ROUNDS) as f32; 2]);
}

#[test]
fn many_threads_run_one_graph() {
    let x = leaf(&[], &[2.0]);
    let mut y = x.clone();
    for _ in 0..50 {
        y = at::mul_tensor(&y, &tensor(&[], &[1.0])).unwrap();
    }
    let y = Arc::new(y);
    let threads: Vec<_> = (0..8)
        .map(|_| {
            let (x, y) = (x.clone(), y.clone());
            std::thread::spawn(move || {
                for _ in 0..50 {
                    let grads = autograd::grad(
                        &[(*y).clone()],
                        std::slice::from_ref(&x),
                        &[],
                        Some(true),
                        false,
                        None,
                        false,
                    );
                    assert_eq!(crate::backend::values(grads.unwrap()[0].as_ref().unwrap()), [1.0]);
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|t| t.join().unwrap());
}

#[test]
fn graphs_may_be_freed_elsewhere() {
    let x = leaf(&[], &[2.0]);
    let mut y = x.clone();
    for _ in 0..10_000 {
        y = at::exp(&at::mul_tensor(&y, &tensor(&[], &[0.0])).unwrap()).unwrap();
    }
    let weak = variable::grad_fn(&y).unwrap().unwrap().downgrade();
    std::thread::spawn(move || drop(y)).join().unwrap();
    assert!(weak.upgrade().is_none());
}
