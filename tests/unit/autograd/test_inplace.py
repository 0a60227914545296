"""In-place operators whose result does not depend on what they overwrite."""

import ptr
import pytest

OVERWRITING = [
    lambda x: x.eq_(1),
    lambda x: x.lt_(ptr.ones(3)),
    lambda x: x.random_(0, 5),
    lambda x: x.bernoulli_(0.5),
]


@pytest.mark.parametrize("overwrite", [*OVERWRITING, lambda x: x.set_(ptr.ones(5))])
def test_a_leaf_is_not_overwritten(overwrite):
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        overwrite(ptr.zeros(3, requires_grad=True))


@pytest.mark.parametrize("overwrite", OVERWRITING)
def test_the_gradient_of_what_was_overwritten_is_zero(overwrite):
    x = ptr.ones(3, requires_grad=True)
    y = x * 2
    overwrite(y)
    y.sum().backward()
    assert x.grad.tolist() == [0, 0, 0]


def test_a_storage_that_was_replaced_has_no_gradient():
    x = ptr.ones(3, requires_grad=True)
    y = x * 2
    y.set_(ptr.ones(5))
    with pytest.raises(RuntimeError, match="set_"):
        y.sum().backward()


def test_what_has_a_gradient_is_not_resized():
    x = ptr.ones(3, requires_grad=True)
    for tensor in (x, x * 2):
        with pytest.raises(RuntimeError, match="cannot resize variables that require grad"):
            tensor.resize_(7)


@pytest.mark.parametrize(
    "name", ["mul_", "multiply_", "true_divide_", "divide_", "clamp_min_", "clamp_max_", "subtract_"]
)
def test_composites_save_what_they_were_given(name):
    other = ptr.full((3,), 2.0, requires_grad=True)
    left = ptr.full((3,), 3.0, requires_grad=True)
    getattr(left.clone(), name)(other).sum().backward()
    expected = [t.detach().clone().requires_grad_() for t in (left, other)]
    getattr(expected[0], name.rstrip("_"))(expected[1]).sum().backward()
    assert left.grad.tolist() == expected[0].grad.tolist()
    assert other.grad.tolist() == expected[1].grad.tolist()


def test_where_with_a_mask_of_bytes():
    b = ptr.full((3,), 2.0, requires_grad=True)
    ptr.where(ptr.tensor([1, 0, 1], dtype=ptr.uint8), 1.0, b).sum().backward()
    assert b.grad.tolist() == [0, 1, 0]


@pytest.mark.parametrize("name", ["eq_", "ne_", "lt_", "le_", "gt_", "ge_"])
def test_comparisons_take_over_that_a_gradient_is_required(name):
    other = ptr.ones(2, requires_grad=True)
    x = ptr.zeros(2, 2)
    getattr(x, name)(other)
    assert x.requires_grad and x.grad_fn.name() == name[:2].capitalize() + "Backward1"
    x.sum().backward()
    assert other.grad.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("name", ["logical_and_", "logical_or_", "logical_xor_", "logical_not_"])
def test_logical_operators_leave_the_history(name):
    arguments = () if name == "logical_not_" else (ptr.ones(2, requires_grad=True),)
    x = ptr.ones(2, requires_grad=True)
    y = x * 2
    getattr(y, name)(*arguments)
    assert y.grad_fn.name() == "MulBackward0" and y._version == 1
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]
    leaf = ptr.zeros(2, requires_grad=True)
    getattr(leaf, name)(*arguments)
    assert leaf.is_leaf and leaf.requires_grad


def test_set_takes_over_that_a_gradient_is_required():
    source = ptr.ones(2, requires_grad=True)
    x = ptr.zeros(3).set_(source)
    assert x.requires_grad and not x.is_leaf
    with pytest.raises(RuntimeError, match="derivative for aten::set_.source_Tensor is not implemented"):
        x.sum().backward()
    assert not ptr.zeros(3).set_(ptr.ones(2)).requires_grad
    assert ptr.ones(2).set_().shape == (0,)


def test_floor_divide_has_no_derivative():
    x = ptr.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="derivative for aten::floor_divide is not implemented"):
        ptr.floor_divide(x, 2).sum().backward()


def test_an_integral_gradient_of_a_real_input_is_cast():
    class Double(ptr.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return ptr.full((2,), 2)

    x = ptr.ones(2, requires_grad=True)
    Double.apply(x).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0] and x.grad.dtype == ptr.float32
