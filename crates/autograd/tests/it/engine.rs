use autograd::{engine, variable, Edge, Node, NodeFunction, VariableList};
use c10::{Result, Tensor};
use ops::at;
use std::any::Any;
use std::borrow::Cow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

use crate::backend::{grad_values, leaf, tensor, values};

fn backward(t: &Tensor) -> Result<()> {
    autograd::backward(std::slice::from_ref(t), &[], None, false, None)
}

#[test]
fn a_million_nodes_run_and_free_on_a_small_stack() {
    let thread = std::thread::Builder::new().stack_size(2 << 20).spawn(|| {
        let x = leaf(&[], &[1.0]);
        let one = tensor(&[], &[1.0]);
        let mut y = x.clone();
        for _ in 0..1_000_000 {
            y = at::mul_tensor(&y, &one).unwrap();
        }
        backward(&y).unwrap();
        assert_eq!(grad_values(&x), [1.0]);
        drop(y);
        // And a graph that nobody ran: saved outputs lie between the nodes.
        let mut y = x;
        for _ in 0..1_000_000 {
            y = at::mul_tensor(&y, &y).unwrap();
        }
        drop(y);
    });
    thread.unwrap().join().unwrap();
}

#[test]
fn only_scalars_start_without_a_gradient() {
    let x = leaf(&[2], &[1.0, 2.0]);
    let y = at::mul_tensor(&x, &x).unwrap();
    assert_eq!(backward(&y).unwrap_err().message(), "grad can be implicitly created only for scalar outputs");
    let wrong =
        autograd::backward(std::slice::from_ref(&y), &[Some(tensor(&[3], &[1.0; 3]))], None, false, None)
            .unwrap_err();
    assert!(wrong.message().starts_with("Mismatch in shape: grad_output[0] has a shape of torch.Size([3])"));
    autograd::backward(&[y], &[Some(tensor(&[2], &[1.0, 10.0]))], None, false, None).unwrap();
    assert_eq!(grad_values(&x), [2.0, 40.0]);
}

#[test]
fn tensors_outside_graphs() {
    let plain = tensor(&[], &[1.0]);
    assert_eq!(
        backward(&plain).unwrap_err().message(),
        "element 0 of tensors does not require grad and does not have a grad_fn"
    );
}

#[test]
fn unused_inputs() {
    let (x, unused) = (leaf(&[], &[3.0]), leaf(&[], &[1.0]));
    let run = |allow, materialize| {
        let y = at::mul_tensor(&x, &x).unwrap();
        autograd::grad(&[y], &[x.clone(), unused.clone()], &[], None, false, allow, materialize)
    };
    assert!(run(None, false)
        .unwrap_err()
        .message()
        .starts_with("One of the differentiated Tensors appears to not"));
    let grads = run(Some(true), false).unwrap();
    assert_eq!(values(grads[0].as_ref().unwrap()), [6.0]);
    assert!(grads[1].is_none());
    assert_eq!(values(run(None, true).unwrap()[1].as_ref().unwrap()), [0.0]);
    assert!(variable::grad(&x).is_none(), "grad() leaves .grad alone");
}

#[test]
fn inputs_restrict_accumulation() {
    let (x, y) = (leaf(&[], &[2.0]), leaf(&[], &[5.0]));
    let z = at::mul_tensor(&x, &y).unwrap();
    autograd::backward(&[z], &[], None, false, Some(std::slice::from_ref(&x))).unwrap();
    assert_eq!(grad_values(&x), [5.0]);
    assert!(variable::grad(&y).is_none());
}

#[test]
fn inputs_may_lie_inside_the_graph() {
    let x = leaf(&[], &[2.0]);
    let y = at::mul_tensor(&x, &x).unwrap();
    let z = at::mul_tensor(&y, &y).unwrap();
    let grads = autograd::grad(&[z], &[y, x], &[], None, false, None, false).unwrap();
    let grads: Vec<f32> = grads.iter().map(|g| values(g.as_ref().unwrap())[0]).collect();
    assert_eq!(grads, [8.0, 32.0]);
}

#[test]
fn several_roots() {
    let x = leaf(&[], &[2.0]);
    let (a, b) = (at::mul_tensor(&x, &x).unwrap(), at::exp(&x).unwrap());
    autograd::backward(&[a, b, x.clone()], &[], None, false, None).unwrap();
    assert!((grad_values(&x)[0] - (4.0 + 2.0f32.exp() + 1.0)).abs() < 1e-4);
}

#[test]
fn a_freed_graph_says_so() {
    let x = leaf(&[], &[2.0]);
    let y = at::mul_tensor(&x, &x).unwrap();
    backward(&y).unwrap();
    assert_eq!(backward(&y).unwrap_err().message(), autograd::ERR_BACKWARD_TWICE);
    let y = at::mul_tensor(&x, &x).unwrap();
    autograd::backward(std::slice::from_ref(&y), &[], Some(true), false, None).unwrap();
    backward(&y).unwrap();
    assert_eq!(grad_values(&x), [12.0]);
}

struct Probe<F>(F);

impl<F: Fn(&Node, VariableList) -> Result<VariableList> + Send + Sync + 'static> NodeFunction for Probe<F> {
    fn name(&self) -> Cow<'_, str> {
        Cow::Borrowed("Probe")
    }
    fn apply(&self, node: &Node, grads: VariableList) -> Result<VariableList> {
        (self.0)(node, grads)
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// `x` seen through a node that runs `f` in backward.
pub fn through(
    x: &Tensor,
    f: impl Fn(&Node, VariableList) -> Result<VariableList> + Send + Sync + 'static,
) -> Tensor {
    let node = Node::new(Box::new(Probe(f)));
    // SAFETY: nobody else has the node yet.
    unsafe { node.set_next_edges([variable::gradient_edge(x).unwrap()].into_iter().collect()) };
    let y = variable::detach(x).unwrap();
    variable::set_history(&[Some(y.clone())], &node).unwrap();
    y
}

#[test]
fn wrong_gradients_name_the_node() {
    let x = leaf(&[3], &[1.0; 3]);
    let y = through(&x, |_, _| Ok([Some(tensor(&[2], &[1.0, 1.0]))].into_iter().collect()));
    let error = backward(&at::sum(&y, None).unwrap()).unwrap_err();
    assert_eq!(
        error.message(),
        "Function Probe returned an invalid gradient at index 0 - got [2] but expected shape compatible with [3]"
    );
    let y = through(&x, |_, _| Ok(VariableList::new()));
    let error = backward(&at::sum(&y, None).unwrap()).unwrap_err();
    assert!(error.message().contains("invalid number of gradients - expected 1, but got 0"), "{error}");
}

#[test]
fn errors_keep_their_payload_and_end_the_pass() {
    let x = leaf(&[], &[1.0]);
    let y = through(&x, |_, _| Err(c10::Error::foreign(Box::new(42u32), "a Python exception")));
    let mut error = backward(&y).unwrap_err();
    assert_eq!(error.take_foreign().and_then(|p| p.downcast::<u32>().ok()).as_deref(), Some(&42));
    // The thread's engine state is clean.
    backward(&at::mul_tensor(&x, &x).unwrap()).unwrap();
    assert_eq!(grad_values(&x), [2.0]);
}

#[test]
fn panics_become_errors() {
    let x = leaf(&[], &[1.0]);
    let y = through(&x, |_, _| panic!("in a hook"));
    assert!(backward(&y).unwrap_err().message().contains("in a hook"));
}

fn nested(depth: usize, reached: &Arc<AtomicUsize>) -> Result<()> {
    reached.fetch_max(depth, Ordering::Relaxed);
    if depth == 0 {
        return Ok(());
    }
    let x = leaf(&[], &[2.0]);
    let reached = reached.clone();
    let y = through(&x, move |_, grads| {
        reached.fetch_add(1, Ordering::Relaxed);
        nested(depth - 1, &reached)?;
        Ok(grads)
    });
    backward(&y)?;
    assert_eq!(grad_values(&x), [1.0]);
    Ok(())
}

#[test]
fn reentrant_past_the_depth_limit() {
    let depth = 3 * engine::MAX_DEPTH as usize + 5;
    let thread = std::thread::Builder::new().stack_size(2 << 20).spawn(move || {
        let ran = Arc::new(AtomicUsize::new(0));
        nested(depth, &ran).unwrap();
        assert!(ran.load(Ordering::Relaxed) >= depth);
    });
    thread.unwrap().join().unwrap();
}

#[test]
fn reentrant_errors_come_out_whole() {
    fn fail(depth: usize) -> Result<()> {
        let x = leaf(&[], &[2.0]);
        let y = through(&x, move |_, _| match depth {
            0 => Err(c10::Error::value("at the bottom")),
            _ => fail(depth - 1).map(|()| VariableList::new()),
        });
        backward(&y)
    }
    let error = fail(engine::MAX_DEPTH as usize + 3).unwrap_err();
    assert_eq!((error.kind(), error.message()), (c10::ErrorKind::Value, "at the bottom"));
}

#[test]
fn final_callbacks() {
    let done = Arc::new(AtomicUsize::new(0));
    assert!(engine::queue_callback(Box::new(|| Ok(()))).is_err());
    let x = leaf(&[], &[2.0]);
    let counter = done.clone();
    let y = through(&x, move |_, grads| {
        let counter = counter.clone();
        engine::queue_callback(Box::new(move || {
            counter.fetch_add(1, Ordering::Relaxed);
            engine::queue_callback(Box::new(move || {
                counter.fetch_add(10, Ordering::Relaxed);
                Ok(())
            }))
        }))?;
        assert!(engine::current_graph_task_id() >= 0);
        assert_eq!(engine::current_node().unwrap().name(), "Probe");
        let order: Vec<String> =
            engine::current_graph_task_execution_order()?.iter().map(Node::name).collect();
        assert_eq!(order, ["Probe", "AccumulateGrad"]);
        Ok(grads)
    });
    backward(&y).unwrap();
    assert_eq!(done.load(Ordering::Relaxed), 11);
}

#[test]
fn edges_stand_for_tensors() {
    let x = leaf(&[], &[3.0]);
    let y = at::mul_tensor(&x, &x).unwrap();
    let (from, to) = (variable::gradient_edge(&y).unwrap(), variable::gradient_edge(&x).unwrap());
    let grads = engine::execute(
        vec![from],
        [Some(tensor(&[], &[1.0]))].into_iter().collect(),
        false,
        false,
        false,
        vec![Edge::new(to.function.unwrap(), 0)],
    );
    assert_eq!(values(grads.unwrap()[0].as_ref().unwrap()), [6.0]);
}
