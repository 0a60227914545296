"""Nodes, hooks, edges, saved tensors and what can be asked of a running backward pass."""

import gc
import threading
import weakref
from collections import OrderedDict

import ptr as torch
import pytest
from ptr.autograd import graph


def leaf(*values):
    return torch.tensor(list(values), requires_grad=True)


def test_node_objects():
    x = leaf(1.0, 2.0)
    y = x * x
    node = y.grad_fn
    assert node is y.grad_fn
    assert isinstance(node, graph.Node)
    assert type(node).__name__ == node.name() == "MulBackward0"
    assert repr(node).startswith("<MulBackward0 object at 0x")
    assert type((x * 2).grad_fn) is type(node)
    (accumulate, number), _ = node.next_functions
    assert number == 0 and accumulate.name() == "torch::autograd::AccumulateGrad" and accumulate.variable is x
    assert (x * 2).grad_fn.next_functions[1] == (None, 0)
    assert node._saved_self is x and node._saved_other is x
    assert "_saved_self" in dir(node)
    assert not hasattr(node, "_saved_nothing")
    with pytest.raises(AttributeError, match="'MulBackward0' object has no attribute 'foo'"):
        node.foo
    assert node.metadata == {}
    node.metadata["note"] = 1
    assert y.grad_fn.metadata == {"note": 1}
    assert (y * 2).grad_fn._sequence_nr() > node._sequence_nr()
    info = node._input_metadata[0]
    assert (info.dtype, tuple(info.shape), info.device.type) == (torch.float32, (2,), "cpu")
    with pytest.raises(TypeError):
        type(node)()


def test_a_node_outlives_its_tensors():
    node = (leaf(1.0) * 2).grad_fn
    gc.collect()
    assert node.next_functions[0][0].variable.tolist() == [1.0]


def test_nodes_can_be_called():
    x = leaf(3.0)
    grads = (x * x).grad_fn(torch.tensor([1.0]))
    assert [g.item() for g in grads] == [3.0, 3.0]


def test_tensor_hooks():
    x = leaf(1.0, 2.0)
    seen = []
    y = x * 2
    y.register_hook(lambda g: seen.append(g.tolist()))
    replace = y.register_hook(lambda g: g * 10)
    x.register_hook(lambda g: seen.append(g.tolist()))
    y.sum().backward(retain_graph=True)
    assert seen == [[1.0, 1.0], [20.0, 20.0]]
    assert x.grad.tolist() == [20.0, 20.0]
    replace.remove()
    x.grad = None
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_tensor_hooks_errors():
    def run(hook):
        z = leaf(1.0, 2.0) * 2
        z.register_hook(hook)
        z.sum().backward()

    with pytest.raises(TypeError, match="expected Variable, but hook returned 'int'"):
        run(lambda g: 3)
    with pytest.raises(RuntimeError, match=r"hook '<lambda>' has changed the type of value"):
        run(lambda g: g.double())
    with pytest.raises(RuntimeError, match=r"hook '<lambda>' has changed the size of value"):
        run(lambda g: g[:1])
    with pytest.raises(RuntimeError, match="cannot register a hook on a tensor that doesn't require gradient"):
        torch.ones(1).register_hook(print)
    with pytest.raises(ZeroDivisionError):
        run(lambda g: 1 / 0)


def test_hooks_before_and_after_a_modification():
    x = leaf(1.0)
    y = x * 2
    before, after = [], []
    y.register_hook(lambda g: before.append(g.item()))
    y.mul_(3)
    y.register_hook(lambda g: after.append(g.item()))
    y.backward()
    assert (before, after) == ([3.0], [1.0])


def test_node_hooks():
    x = leaf(1.0, 2.0)
    y = x * 2
    seen = []
    y.grad_fn.register_prehook(lambda grads: (grads[0] * 5,))
    handle = y.grad_fn.register_hook(lambda outputs, inputs: seen.append((outputs[0].tolist(), inputs[0].tolist())))
    y.sum().backward(retain_graph=True)
    assert seen == [([10.0, 10.0], [5.0, 5.0])]
    handle.remove()
    y.sum().backward()
    assert len(seen) == 1
    z = x * 2
    z.grad_fn.register_hook(lambda outputs, inputs: 3)
    with pytest.raises(TypeError, match="expected tuple, but hook returned 'int'"):
        z.sum().backward()
    z = x * 2
    z.grad_fn.register_hook(lambda outputs, inputs: (outputs[0],) * 3)
    with pytest.raises(RuntimeError, match=r"has returned an incorrect number of values \(got 3, but expected 2\)"):
        z.sum().backward()


def test_post_accumulate_grad_hook():
    x = leaf(1.0)
    seen = []
    handle = x.register_post_accumulate_grad_hook(lambda p: seen.append((p is x, p.grad.item())))
    (x * 3).backward()
    assert seen == [(True, 3.0)]
    handle.remove()
    (x * 3).backward()
    assert len(seen) == 1
    with pytest.raises(RuntimeError, match="cannot be registered on non-leaf tensors"):
        (x * 2).register_post_accumulate_grad_hook(print)


def test_retain_grad():
    x = leaf(1.0)
    y = x * 2
    y.retain_grad()
    assert y.retains_grad
    (y * 3).backward()
    assert y.grad.item() == 3.0


def test_multi_grad_hook():
    x, y, unused = leaf(1.0), leaf(2.0), leaf(3.0)
    seen = []
    handle = graph.register_multi_grad_hook((x, y, unused), lambda grads: seen.append(grads))
    (x * y).backward()
    ((a, b, c),) = seen
    assert (a.item(), b.item(), c) == (2.0, 1.0, None)
    handle.remove()
    first = []
    graph.register_multi_grad_hook((x, y), lambda grad: first.append(grad.item()), mode="any")
    (x * y).backward()
    assert len(first) == 1
    with pytest.raises(ValueError, match="mode"):
        graph.register_multi_grad_hook((x,), print, mode="some")


def test_gradient_edges():
    x = leaf(2.0)
    y = x**2
    edge = graph.get_gradient_edge(y)
    assert edge.node is y.grad_fn and edge.output_nr == 0
    (grad,) = torch.autograd.grad(y * 3, edge)
    assert grad.item() == 3.0
    (grad,) = torch.autograd.grad(graph.get_gradient_edge(x**2), x, torch.tensor([1.0]))
    assert grad.item() == 4.0
    with pytest.raises(RuntimeError, match="not possible to get the gradient edge"):
        graph.get_gradient_edge(torch.ones(1))


def test_grad_and_backward_arguments():
    x, y = leaf(1.0), leaf(2.0)
    assert torch.autograd.grad((x * y).sum(), (x, y))[0].item() == 2.0
    with pytest.raises(RuntimeError, match="appears to not have been used in the graph"):
        torch.autograd.grad(x.sum(), y)
    assert torch.autograd.grad(x.sum(), y, allow_unused=True) == (None,)
    assert torch.autograd.grad(x.sum(), y, materialize_grads=True)[0].item() == 0.0
    with pytest.raises(RuntimeError, match="grad can be implicitly created only for scalar outputs"):
        (leaf(1.0, 2.0) * 2).backward()
    with pytest.raises(RuntimeError, match="element 0 of tensors does not require grad"):
        torch.ones(1).backward()
    with pytest.raises(RuntimeError, match="cannot be empty"):
        x.sum().backward(inputs=[])
    with pytest.raises(TypeError, match="not iterable"):
        torch.autograd.backward(3)
    with pytest.raises(NotImplementedError):
        torch.autograd.grad(x.sum(), x, torch.ones(3), is_grads_batched=True)
    (x * y).backward(inputs=x)
    assert x.grad.item() == 2.0 and y.grad is None
    torch.autograd.backward([x * 2, x * 3], [None, torch.tensor([10.0])])
    assert x.grad.item() == 34.0


def test_queue_callback():
    x = leaf(1.0)
    order = []
    engine = torch.autograd.Variable._execution_engine

    def hook(grad):
        engine.queue_callback(lambda: order.append("callback"))
        order.append("hook")

    x.register_hook(hook)
    (x * 2).backward()
    assert order == ["hook", "callback"]
    with pytest.raises(RuntimeError, match="Final callbacks can only be installed during backward pass"):
        engine.queue_callback(lambda: None)

    def failing(grad):
        engine.queue_callback(lambda: 1 / 0)

    y = leaf(1.0)
    y.register_hook(failing)
    with pytest.raises(ZeroDivisionError):
        (y * 2).backward()


def test_saved_tensors_hooks():
    packed, unpacked = [], []

    def pack(t):
        packed.append(t.tolist())
        return ("box", t)

    def unpack(box):
        unpacked.append(box[0])
        return box[1]

    x = leaf(3.0)
    with graph.saved_tensors_hooks(pack, unpack):
        y = x * x
    assert packed == [[3.0], [3.0]]
    y.backward()
    assert unpacked == ["box", "box"] and x.grad.item() == 6.0
    with graph.saved_tensors_hooks(lambda t: t, lambda box: 3):
        y = x * x
    with pytest.raises(
        TypeError, match="Output of saved tensor unpack_hook expected to be a Tensor but got result of type int"
    ):
        y.backward()
    with pytest.raises(TypeError):
        with graph.saved_tensors_hooks(1, 2):
            pass
    with graph.disable_saved_tensors_hooks("not now"):
        with pytest.raises(RuntimeError, match="not now"):
            with graph.saved_tensors_hooks(pack, unpack):
                pass


def test_save_on_cpu():
    x = leaf(3.0)
    with graph.save_on_cpu():
        y = x.exp() * x
    y.backward()
    assert x.grad.item() == pytest.approx(4 * 2.718281828**3, rel=1e-5)


def test_raw_saved_tensors():
    x = leaf(3.0)
    y = x * x
    raw = y.grad_fn._raw_saved_self
    assert raw.data is x
    raw.register_hooks(lambda t: 2, lambda n: torch.tensor([5.0]))
    y.backward()
    assert x.grad.item() == 8.0
    with pytest.raises(RuntimeError, match="after it has been freed|already been freed|second time"):
        raw.register_hooks(lambda t: t, lambda t: t)


def test_a_cycle_through_hooks_is_collected():
    class Marker:
        pass

    y = leaf(1.0) * 2
    marker = Marker()
    gone = weakref.ref(marker)
    y.register_hook(lambda g, y=y, marker=marker: None)
    z = leaf(1.0) * 3
    other = Marker()
    other_gone = weakref.ref(other)
    z.other = other
    z.grad_fn.register_hook(lambda *_, z=z: None)
    del marker, other
    gc.collect()
    assert gone() is not None and other_gone() is not None
    del y, z
    gc.collect()
    assert gone() is None and other_gone() is None


def test_a_plain_tensor_in_a_cycle_with_its_node_is_collected():
    z = leaf(1.0) * 3
    gone = weakref.ref(z)
    z.grad_fn.register_hook(lambda *_, z=z: None)
    del z
    gc.collect()
    assert gone() is None


def test_leaf_hooks_in_a_cycle_are_collected():
    class Marker:
        pass

    x = leaf(1.0)
    x.marker = marker = Marker()
    gone = weakref.ref(marker)
    x.register_hook(lambda g, x=x: None)
    x.register_post_accumulate_grad_hook(lambda p, x=x: None)
    (x * 2).backward()
    del marker, x
    gc.collect()
    assert gone() is None


def test_anomaly_mode_names_the_forward():
    class MyError(Exception):
        pass

    class Raises(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            raise MyError

    def the_place_of_the_call(x):
        return Raises.apply(x)

    with pytest.warns(UserWarning, match="Anomaly Detection has been enabled"):
        context = torch.autograd.detect_anomaly()
    with context:
        y = the_place_of_the_call(leaf(1.0))
        assert any("the_place_of_the_call" in line for line in y.grad_fn.metadata["traceback_"])
        with pytest.warns(UserWarning, match="Error detected in RaisesBackward"):
            with pytest.raises(MyError):
                y.backward()


def test_anomaly_mode_finds_nan():
    with torch.autograd.set_detect_anomaly(True):
        x = leaf(-1.0)
        y = x.sqrt()
        with pytest.warns(UserWarning, match="Error detected in SqrtBackward0"):
            with pytest.raises(RuntimeError, match="Function 'SqrtBackward0' returned nan values in its 0th output"):
                y.backward()


def test_backward_in_threads():
    results = []

    def work(n):
        x = leaf(float(n))
        for _ in range(50):
            y = x * x
            y.register_hook(lambda g: g * 1)
            y.backward()
        results.append((n, x.grad.item()))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == [(n, 100.0 * n) for n in range(4)]


def test_a_long_graph_is_deleted_without_recursion():
    x = leaf(1.0)
    y = x
    for _ in range(20_000):
        y = y + 1
    y.grad_fn  # gives a node in the middle of the chain an object
    z = y * 2
    del y
    z.backward()
    del z
    assert x.grad.item() == 2.0


def test_a_leaf_may_get_data_of_another_size_before_backward():
    x = torch.ones(2, requires_grad=True)
    y = (x * 2).sum()
    x.data = torch.ones(3)
    y.backward()
    assert x.grad.tolist() == [2, 2]


def test_a_gradient_that_is_an_expanded_element_is_copied():
    # PyTorch keeps none whose stride is 0, be it of size 1.
    x = torch.ones(1, 2, requires_grad=True)
    torch.autograd.backward(x, torch.ones(2).as_strided((1, 2), (0, 1)))
    assert x.grad.stride() == (2, 1)


def test_assigned_hooks_of_a_tensor_run():
    x = torch.ones(1, requires_grad=True)
    seen = []
    x.register_hook(seen.append)
    x._backward_hooks = OrderedDict({0: lambda g: g * 5})
    (x * 2).sum().backward()
    assert x.grad.item() == 10.0
    assert not seen, "hooks that were there before ran"
    x._backward_hooks = None
    x.grad = None
    (x * 2).sum().backward()
    assert x.grad.item() == 2.0

    # A tensor that does not require gradients yet.
    y = torch.ones(1)
    y._backward_hooks = OrderedDict({0: lambda g: g * 5})
    y.requires_grad_()
    y.sum().backward()
    assert y.grad.item() == 5.0

    # Hooks on the way.
    z = torch.ones(1, requires_grad=True)
    middle = z * 2
    middle._backward_hooks = OrderedDict({0: lambda g: g * 3})
    middle.sum().backward()
    assert z.grad.item() == 6.0
    with pytest.raises(TypeError, match="expected to be a dict"):
        z._backward_hooks = 3


def test_assigned_hooks_after_accumulation_run():
    x = torch.ones(1, requires_grad=True)
    seen = []
    x._post_accumulate_grad_hooks = OrderedDict({0: lambda p: seen.append(p.grad.item())})
    (x * 4).sum().backward()
    assert seen == [4.0]
    for name in ("_backward_hooks", "_post_accumulate_grad_hooks"):
        with pytest.raises(RuntimeError, match=f"Deletion of {name} not allowed"):
            delattr(x, name)
    x._post_accumulate_grad_hooks = None
    (x * 4).sum().backward()
    assert seen == [4.0]


def test_assigned_hooks_leave_those_of_sibling_outputs_alone():
    a, b = torch.ones(2, requires_grad=True).unbind(0)
    seen = []
    b.register_hook(lambda g: seen.append(g.item()))
    a._backward_hooks = None
    (a + 3 * b).backward()
    assert seen == [3.0]
