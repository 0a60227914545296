"""In-place operators whose result does not depend on what they overwrite."""

import ptr
import pytest

OVERWRITING = [
    lambda x: x.eq_(1),
    lambda x: x.lt_(ptr.ones(3)),
    lambda x: x.logical_not_(),
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
