"""Operators on lists: the operator on each tensor, in all forms, with the checks and gradients that go with lists."""

import ptr as torch
import pytest

UNARY = (
    "abs ceil cos exp expm1 floor log log1p neg reciprocal round rsqrt sigmoid sign sin sqrt tanh trunc".split()
)  # fmt: skip
# The operator for what the list's has.
AS = {"maximum": "clamp_min", "minimum": "clamp_max"}


def lists(count=1, dtype=torch.float64):
    torch.manual_seed(0)
    return [[torch.rand(shape, dtype=dtype) + 0.5 for shape in ((2, 3), (), (4,))] for _ in range(count)]


def agree(got, expected):
    assert isinstance(got, tuple) and len(got) == len(expected)
    for one, other in zip(got, expected, strict=True):
        assert one.dtype is other.dtype and torch.equal(one, other)


def check(name, xs, others, expected):
    """Functional, in place and `out=`."""
    agree(getattr(torch, f"_foreach_{name}")(xs, *others), expected)
    copies = [x.clone() for x in xs]
    assert getattr(torch, f"_foreach_{name}_")(copies, *others) is None
    agree(tuple(copies), expected)


@pytest.mark.parametrize("name", UNARY)
def test_unary(name):
    (xs,) = lists()
    check(name, xs, (), [getattr(torch, name)(x) for x in xs])
    outs = [torch.empty(0, dtype=torch.float64) for _ in xs]
    getattr(torch.ops.aten, f"_foreach_{name}").out(xs, out=outs)
    agree(tuple(outs), [getattr(torch, name)(x) for x in xs])


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "clamp_min", "clamp_max", "maximum", "minimum", "pow"])
def test_binary(name):
    xs, ys = lists(2)
    op = getattr(torch, AS.get(name, name))
    check(name, xs, (ys,), [op(x, y) for x, y in zip(xs, ys, strict=True)])
    check(name, xs, (2,), [op(x, 2) for x in xs])
    numbers = [1, 2.5, 3]
    check(name, xs, (numbers,), [op(x, y) for x, y in zip(xs, numbers, strict=True)])
    if name in ("add", "mul", "div"):
        y = torch.tensor(3.0)
        check(name, xs, (y,), [op(x, y) for x in xs])


def test_alpha_and_numbers_on_the_left():
    xs, ys = lists(2)
    agree(torch._foreach_add(xs, ys, alpha=3), [torch.add(x, y, alpha=3) for x, y in zip(xs, ys, strict=True)])
    agree(torch._foreach_sub(xs, ys, alpha=3), [torch.sub(x, y, alpha=3) for x, y in zip(xs, ys, strict=True)])
    y = torch.tensor(3.0)
    agree(torch._foreach_add(xs, y, alpha=2), [torch.add(x, y, alpha=2) for x in xs])
    agree(torch._foreach_pow(2.0, xs), [2.0**x for x in xs])


@pytest.mark.parametrize("name", ["addcmul", "addcdiv"])
def test_ternary(name):
    xs, ys, zs = lists(3)
    op = getattr(torch, name)

    def expected(numbers):
        return [op(x, y, z, value=n) for x, y, z, n in zip(xs, ys, zs, numbers, strict=True)]

    check(name, xs, (ys, zs), expected([1, 1, 1]))
    check(name, xs, (ys, zs, 2.5), expected([2.5] * 3))
    check(name, xs, (ys, zs, [1, 2.5, 3]), expected([1, 2.5, 3]))
    check(name, xs, (ys, zs, torch.tensor([1, 2.5, 3])), expected([1, 2.5, 3]))
    for packed, match in (
        (torch.ones(2), "length of scalars to match input of length 3 but got 2"),
        (torch.ones(()), "Expected packed scalar Tensor to be of dimension 1. Got 0"),
        (torch.ones(6)[::2], "Expected scalars to be contiguous"),
    ):
        with pytest.raises(RuntimeError, match=match):
            getattr(torch, f"_foreach_{name}")(xs, ys, zs, packed)


def test_lerp():
    xs, ys, zs = lists(3)
    check("lerp", xs, (ys, zs), [torch.lerp(x, y, z) for x, y, z in zip(xs, ys, zs, strict=True)])
    check("lerp", xs, (ys, 0.3), [torch.lerp(x, y, 0.3) for x, y in zip(xs, ys, strict=True)])
    weights = [0.1, 0.2, 0.9]
    check("lerp", xs, (ys, weights), [torch.lerp(x, y, w) for x, y, w in zip(xs, ys, weights, strict=True)])


def test_others():
    xs, ys = lists(2)
    agree(torch._foreach_max(xs), [x.max() for x in xs])
    agree(torch._foreach_clone(xs), xs)
    assert all(a is not b for a, b in zip(torch._foreach_clone(xs), xs, strict=True))
    matrices = [torch.rand(2, 3), torch.rand(4, 2)], [torch.rand(3, 2), torch.rand(2, 1)]
    agree(torch._foreach_mm(*matrices), [a @ b for a, b in zip(*matrices, strict=True)])
    assert torch._foreach_copy_(xs, ys) is None
    agree(tuple(xs), ys)
    torch._foreach_zero_(xs)
    assert all(not x.any() for x in xs)


def test_lists_that_do_not_fit():
    xs, ys = lists(2)
    for call, match in (
        (lambda: torch._foreach_sqrt([]), "Tensor list must have at least one tensor"),
        (lambda: torch._foreach_add(xs, ys[:2]), "must have the same number of tensors, got 3 and 2"),
        (lambda: torch._foreach_addcmul_(xs, ys, ys[:1]), "must have the same number of tensors, got 3 and 1"),
        (lambda: torch._foreach_mul(xs, [1.0, 2.0]), "same number of elements as scalar list, got 3 and 2"),
        (lambda: torch._foreach_mul_(xs, torch.ones(1)), "scalar tensor expected to be 0 dim but it has 1 dim"),
    ):
        with pytest.raises(RuntimeError, match=match):
            call()


def test_gradients_pass():
    xs = [x.requires_grad_() for x in lists()[0]]
    ys = torch._foreach_mul(torch._foreach_exp(xs), 2.0)
    torch._foreach_add_(ys, 1.0)
    sum(y.sum() for y in ys).backward()
    for x in xs:
        assert torch.allclose(x.grad, 2 * x.exp())
    with pytest.raises(RuntimeError, match="leaf"):
        torch._foreach_mul_(xs, 2.0)
