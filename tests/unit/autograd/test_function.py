"""Custom functions: contexts, what forward may return, what backward must return, errors."""

import gc
import weakref

import ptr as torch
import pytest
from ptr.autograd import Function
from ptr.autograd.function import once_differentiable


class Scale(Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.save_for_backward(x)
        ctx.factor = factor
        return x * factor

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        assert x.shape == grad.shape
        return grad * ctx.factor, None


def leaf(*values):
    return torch.tensor(list(values), requires_grad=True)


def test_forward_and_backward():
    x = leaf(1.0, 2.0)
    y = Scale.apply(x, 3.0)
    assert y.tolist() == [3.0, 6.0]
    y.sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]


def test_the_context_is_the_node():
    x = leaf(1.0)
    y = Scale.apply(x, 3.0)
    node = y.grad_fn
    assert node is y.grad_fn
    assert type(node) is Scale._backward_cls
    assert node.name() == "ScaleBackward"
    assert node.factor == 3.0
    assert node.needs_input_grad == (True, False)
    assert node.saved_tensors[0] is x
    assert type(node.next_functions[0][0]).__name__ == "AccumulateGrad"
    assert node.next_functions[0][0].variable is x
    assert repr(node).startswith("<ptr.autograd.function.ScaleBackward object at 0x")


def test_nothing_is_recorded_without_need():
    y = Scale.apply(torch.tensor([1.0]), 2.0)
    assert not y.requires_grad and y.grad_fn is None
    with torch.no_grad():
        assert Scale.apply(leaf(1.0), 2.0).grad_fn is None


def test_recording_is_off_in_forward():
    seen = []

    class Peek(Function):
        @staticmethod
        def forward(ctx, x):
            seen.append((torch.is_grad_enabled(), (x * 2).requires_grad))
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    Peek.apply(leaf(1.0))
    assert seen == [(False, False)]


def test_setup_context_style_with_defaults_and_names():
    class Power(Function):
        @staticmethod
        def forward(x, exponent=2):
            return x**exponent

        @staticmethod
        def setup_context(ctx, inputs, output):
            x, ctx.exponent = inputs
            ctx.save_for_backward(x)
            ctx.output_type = type(output)

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return grad * ctx.exponent * x ** (ctx.exponent - 1), None

    for apply, expected in (
        (lambda x: Power.apply(x), 6.0),
        (lambda x: Power.apply(x, exponent=3), 27.0),
        (lambda x: Power.apply(x=x, exponent=3), 27.0),
    ):
        x = leaf(3.0)
        apply(x).backward()
        assert x.grad.item() == expected


def test_keyword_arguments_need_setup_context():
    with pytest.raises(TypeError):
        Scale.apply(leaf(1.0), 2.0, wrong=1)


def test_outputs_that_are_no_tensors_pass_through():
    got = []

    class Mixed(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2, 5, "text"

        @staticmethod
        def backward(ctx, *grads):
            got.extend(grads)
            return grads[0]

    y, number, text = Mixed.apply(leaf(1.0))
    assert (number, text) == (5, "text")
    y.sum().backward()
    assert got[1:] == [None, None]


@pytest.mark.parametrize("materialize", [True, False])
def test_gradients_that_nobody_made(materialize):
    got = []

    class Two(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(materialize)
            return x * 1, x * 2

        @staticmethod
        def backward(ctx, a, b):
            got.append(b)
            return a

    first, _ = Two.apply(leaf(1.0, 2.0))
    first.sum().backward()
    if materialize:
        assert got[0].tolist() == [0.0, 0.0]
    else:
        assert got[0] is None


def test_mark_dirty_in_place():
    class AddOne(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.add_(1)

        @staticmethod
        def backward(ctx, grad):
            return grad

    a = leaf(1.0)
    b = a * 2
    c = AddOne.apply(b)
    assert c is b
    assert b.grad_fn.name() == "AddOneBackward"
    b.backward()
    assert a.grad.item() == 2.0
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad has been used in an in-place operation"):
        AddOne.apply(leaf(1.0))


class AddScaled(Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.mark_dirty(x)
        return x.add_(w.detach())

    @staticmethod
    def backward(ctx, grad):
        return grad, grad


def made(how, requires_grad):
    """Two elements of a tensor of four, and a leaf to add."""
    y = torch.ones(4, requires_grad=requires_grad) * 2
    if how == "view":
        return y[:2]
    if how == "split":
        return y.split(2)[0]
    if how == "no_grad":
        with torch.no_grad():
            return y[:2]
    return torch.ones(4, requires_grad=requires_grad)[:2]


@pytest.mark.parametrize(
    ("how", "requires_grad", "match"),
    [
        (
            "split",
            True,
            "Output 0 of Split.* is a view and is being modified inplace. This view is the output of a func",
        ),
        (
            "split",
            False,
            "A view was created in no_grad mode and is being modified inplace with grad mode enabled. This",
        ),
        ("no_grad", True, "a leaf Variable that requires grad has been used in an in-place operation"),
        (
            "no_grad",
            False,
            "A view was created in no_grad mode and is being modified inplace with grad mode enabled. Giv",
        ),
        ("view of a leaf", True, "a view of a leaf Variable that requires grad is being used in an in-place operation"),
    ],
)
def test_mark_dirty_refuses_views_that_cannot_get_a_history(how, requires_grad, match):
    with pytest.raises(RuntimeError, match=match):
        AddScaled.apply(made(how, requires_grad), torch.ones(2, requires_grad=True))


@pytest.mark.parametrize(("how", "requires_grad"), [("view", True), ("view", False), ("view of a leaf", False)])
def test_mark_dirty_of_views(how, requires_grad):
    w = torch.ones(2, requires_grad=True)
    y = AddScaled.apply(made(how, requires_grad), w)
    assert type(y.grad_fn).__name__ == "AsStridedBackward0"
    (y * torch.tensor([1.0, 2.0])).sum().backward()
    assert w.grad.tolist() == [1, 2]


def test_mark_dirty_of_a_view_of_a_base_that_got_a_history():
    w = torch.ones(2, requires_grad=True)
    base = torch.zeros(2)
    view = base[:]
    base.mul_(w)
    y = AddScaled.apply(view, w)
    (y * torch.tensor([1.0, 2.0])).sum().backward()
    assert w.grad.tolist() == [1, 2]


def test_returned_input_is_a_view_with_its_own_history():
    class Same(Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, grad):
            return grad * 10

    x = leaf(1.0)
    y = Same.apply(x)
    assert y is not x and x.is_leaf
    y.backward()
    assert x.grad.item() == 10.0


def test_mark_non_differentiable():
    class SortIt(Function):
        @staticmethod
        def forward(ctx, x):
            values, indices = x * 1, torch.zeros(2)
            ctx.mark_non_differentiable(indices)
            return values, indices

        @staticmethod
        def backward(ctx, grad, grad_indices):
            assert grad_indices.tolist() == [0.0, 0.0]
            return grad

    values, indices = SortIt.apply(leaf(1.0, 2.0))
    assert values.requires_grad and not indices.requires_grad
    values.sum().backward()


def _function(backward_result):
    class Bad(Function):
        @staticmethod
        def forward(ctx, x, y):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return backward_result(grad)

    return Bad


def test_wrong_results_of_backward():
    x, y = leaf(1.0), leaf(1.0)
    with pytest.raises(
        RuntimeError, match=r"function BadBackward returned an incorrect number of gradients \(expected 2, got 1\)"
    ):
        _function(lambda g: g).apply(x, y).backward()
    with pytest.raises(RuntimeError, match=r"returned an incorrect number of gradients \(expected 2, got 3\)"):
        _function(lambda g: (g, g, g)).apply(x, y).backward()
    with pytest.raises(RuntimeError, match="a gradient different than None at position 2"):
        _function(lambda g: (g, g)).apply(x, 3).backward()
    with pytest.raises(RuntimeError, match=r"expected Variable or None \(got int\)"):
        _function(lambda g: (3, None)).apply(x, y).backward()
    _function(lambda g: (g, None, None, None)).apply(x, y).backward()


def test_wrong_arguments_of_the_context():
    def with_forward(body):
        class Bad(Function):
            @staticmethod
            def forward(ctx, x):
                body(ctx)
                return x * 2

        return Bad

    with pytest.raises(TypeError, match="save_for_backward can only save variables, but argument 0 is of type int"):
        with_forward(lambda ctx: ctx.save_for_backward(3)).apply(leaf(1.0))
    with pytest.raises(RuntimeError, match="mark_dirty can only accept variables, but argument 0 is of type int"):
        with_forward(lambda ctx: ctx.mark_dirty(3)).apply(leaf(1.0))
    with pytest.raises(RuntimeError, match="mark_non_differentiable only accepts variable arguments, but got str"):
        with_forward(lambda ctx: ctx.mark_non_differentiable("a")).apply(leaf(1.0))
    with pytest.raises(RuntimeError, match="to_save attribute is expected to be a tuple"):
        with_forward(lambda ctx: setattr(ctx, "to_save", 3)).apply(leaf(1.0))
    with pytest.raises(NotImplementedError, match="either the backward or vjp method"):
        with_forward(lambda ctx: None).apply(leaf(1.0)).backward()


def test_saved_tensors_are_gone_after_backward():
    y = Scale.apply(leaf(1.0), 2.0)
    y.backward()
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        y.grad_fn.saved_tensors
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        y.backward()


def test_saved_tensors_notice_modification():
    x = leaf(1.0)
    b = x * 1
    y = Scale.apply(b, 2.0)
    b.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


def test_exceptions_keep_type_and_traceback():
    class MyError(Exception):
        pass

    class Raises(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            raise MyError("from here")

    y = Raises.apply(leaf(1.0))
    with pytest.raises(MyError, match="from here") as info:
        y.backward()
    names = []
    traceback = info.value.__traceback__
    while traceback is not None:
        names.append(traceback.tb_frame.f_code.co_name)
        traceback = traceback.tb_next
    assert names[-1] == "backward" and names.count("backward") >= 2


def test_once_differentiable():
    class Square(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @once_differentiable
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return grad * 2 * x

    x = leaf(3.0)
    (first,) = torch.autograd.grad(Square.apply(x) ** 2, x, create_graph=True)
    assert first.item() == pytest.approx(108.0)
    with pytest.raises(
        RuntimeError, match="trying to differentiate twice a function that was marked with @once_differentiable"
    ):
        first.backward()


def test_double_backward():
    class Cube(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return grad * 3 * x**2

    x = leaf(2.0)
    (first,) = torch.autograd.grad(Cube.apply(x), x, create_graph=True)
    (second,) = torch.autograd.grad(first, x)
    assert (first.item(), second.item()) == (12.0, 12.0)


def test_reentrant_backward():
    class Inner(Function):
        @staticmethod
        def forward(ctx, x):
            with torch.enable_grad():
                ctx.x = x.detach().requires_grad_()
                ctx.y = ctx.x**2
            return ctx.y.detach()

        @staticmethod
        def backward(ctx, grad):
            ctx.y.backward(grad)
            return ctx.x.grad

    x = leaf(3.0)
    Inner.apply(x).backward()
    assert x.grad.item() == 6.0


def test_vjp_and_boxed_gradients():
    class Vjp(Function):
        boxed_grads_call = True

        @staticmethod
        def forward(ctx, x):
            return x * 2, x * 3

        @staticmethod
        def vjp(ctx, grads):
            assert type(grads) is list
            return grads.pop() * 3 + grads.pop() * 2

    x = leaf(1.0)
    sum(Vjp.apply(x)).backward()
    assert x.grad.item() == 5.0

    class Both(Vjp):
        @staticmethod
        def backward(ctx, *grads):
            return grads[0]

    with pytest.raises(RuntimeError, match="Implementing both 'backward' and 'vjp'"):
        sum(Both.apply(leaf(1.0))).backward()


def test_vmap_and_jvp_are_present_and_say_no():
    with pytest.raises(NotImplementedError):
        Function.vmap(None, None)
    with pytest.raises(NotImplementedError):
        Function.jvp(None)
    with pytest.raises(RuntimeError, match="Legacy autograd function"):
        with pytest.warns(DeprecationWarning):
            Scale()(1)


class Marker:
    pass


def test_a_cycle_through_the_context_is_collected():
    class Keeps(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    y = Keeps.apply(leaf(1.0))
    marker = Marker()
    y.grad_fn.marker = marker
    y.grad_fn.itself = y
    gone = weakref.ref(marker)
    del marker
    gc.collect()
    assert gone() is not None
    del y
    gc.collect()
    assert gone() is None


def test_a_cycle_through_later_nodes_is_collected():
    y = Scale.apply(leaf(1.0), 2.0)
    z = (y * 3).exp()
    z.grad_fn  # from here on the collector sees z
    marker = Marker()
    z.marker = marker
    y.grad_fn.later = z
    gone = weakref.ref(marker)
    del marker, y, z
    gc.collect()
    assert gone() is None


def test_what_is_alive_is_not_collected():
    x = leaf(1.0)
    y = Scale.apply(x, 2.0)
    y.grad_fn.marker = marker = Marker()
    gone = weakref.ref(marker)
    z = y * 2
    del y, marker
    gc.collect()
    assert gone() is not None  # z's history holds the context
    z.backward()
    assert x.grad.item() == 4.0
    del z
    gc.collect()
    assert gone() is None


def test_attributes_of_a_context_can_be_deleted_or_refuse_it():
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            for name in ("materialize_grads",):
                with pytest.raises(TypeError, match="expects a bool"):
                    delattr(ctx, name)
            for name in ("needs_input_grad", "to_save", "saved_for_forward", "non_differentiable", "dirty_tensors"):
                delattr(ctx, name)
                assert getattr(ctx, name) is None
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    x = torch.ones(2, requires_grad=True)
    Double.apply(x).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]
