"""Reductions: dtypes, dimensions and derivatives."""

import math

import ptr
import pytest
from ptr.autograd.gradcheck import gradcheck, gradgradcheck

NAN = math.nan


def test_nansum_takes_nan_for_zero():
    x = ptr.tensor([[1.0, NAN, 2.0], [NAN, NAN, NAN]])
    assert x.nansum().item() == 3
    assert x.nansum(0).tolist() == [1, 0, 2]
    assert x.nansum((-1,), keepdim=True).tolist() == [[3], [0]]
    assert x.nansum((0, 1), keepdim=True).tolist() == [[3]]
    assert ptr.nansum(x, dim=None, keepdim=True).tolist() == [[3]]
    assert ptr.nansum(x, dim=()).item() == 3
    assert ptr.nansum(ptr.empty(0, 3), 0).tolist() == [0, 0, 0]
    assert ptr.nansum(ptr.tensor(NAN), 0).item() == 0


def test_nansum_keeps_infinities():
    assert ptr.nansum(ptr.tensor([NAN, math.inf])).item() == math.inf
    assert ptr.nansum(ptr.tensor([NAN, math.inf, -math.inf])).isnan()


@pytest.mark.parametrize("dtype", [ptr.float16, ptr.bfloat16, ptr.float32, ptr.float64])
def test_nansum_of_every_float(dtype):
    x = ptr.ones(300, 40, dtype=dtype)
    x[::3] = NAN
    for result in (x.nansum(0), x.t().nansum(1), x.t().contiguous().nansum(-1)):
        assert result.dtype == dtype and result.tolist() == [200] * 40
    assert x.nansum(dtype=ptr.float64).item() == 8000


def test_nansum_of_integers_is_their_sum():
    assert ptr.nansum(ptr.tensor([True, True])).item() == 2
    assert ptr.nansum(ptr.arange(4, dtype=ptr.int8)).dtype == ptr.int64
    assert ptr.nansum(ptr.arange(4), dtype=ptr.float32).tolist() == 6
    assert ptr.nansum(ptr.arange(4), dtype=ptr.complex64).tolist() == 6 + 0j


@pytest.mark.parametrize("dtype", [ptr.float16, ptr.float32, ptr.float64])
def test_nansum_drops_nan_before_it_converts_to_integers(dtype):
    x = ptr.tensor([NAN, 2.5, 2.5], dtype=dtype)
    assert x.nansum(dtype=ptr.int64).item() == 4
    assert x.nansum(dtype=ptr.uint8).item() == 4
    assert x[:1].nansum(dtype=ptr.bool).item() is False
    out = ptr.empty((), dtype=ptr.int32)
    assert ptr.nansum(x, 0, dtype=ptr.int32, out=out) is out and out.item() == 4


def test_nansum_out_and_errors():
    x = ptr.tensor([[1.0, NAN], [2.0, 3.0]])
    out = ptr.empty(2, dtype=ptr.float64)
    assert ptr.nansum(x, 1, out=out) is out and out.tolist() == [1, 5]
    with pytest.raises(RuntimeError):
        ptr.nansum(x, 1, dtype=ptr.float32, out=out)
    with pytest.raises(RuntimeError, match="dim 0 appears multiple times"):
        ptr.nansum(x, (0, 0))
    with pytest.raises(IndexError):
        ptr.nansum(x, 2)
    with pytest.raises(RuntimeError, match="nansum on CPU does not support complex inputs"):
        ptr.nansum(x.to(ptr.complex64))
    with pytest.raises(NotImplementedError, match="not implemented for 'ComplexFloat'"):
        ptr.nansum(x, dtype=ptr.complex64)


def test_the_gradient_of_nansum_is_zero_where_nan_was():
    x = ptr.tensor([[1.0, NAN, 2.0], [NAN, NAN, NAN]], requires_grad=True)
    x.nansum(1, dtype=ptr.float64).backward(ptr.tensor([2.0, 3.0]).double())
    assert x.grad.dtype == ptr.float32 and x.grad.tolist() == [[2, 0, 2], [0, 0, 0]]
    y = ptr.randn(2, 3, 4, dtype=ptr.float64).requires_grad_()
    for arguments in ((), (1,), ((0, -1), True)):
        assert gradcheck(lambda y, arguments=arguments: y.nansum(*arguments), y)
        assert gradgradcheck(lambda y, arguments=arguments: (y * y).nansum(*arguments), y)


def test_any_and_all_along_no_dimensions():
    x = ptr.tensor([[1, 0], [0, 0]])
    assert ptr.any(x, dim=()).tolist() == [[True, False], [False, False]]
    assert ptr.all(x, dim=[], keepdim=True).tolist() == [[True, False], [False, False]]
    assert ptr.any(x, dim=None).item() is True


def many_dimensions():
    return ptr.arange(6.0).view(*[1] * 68, 2, 3)


@pytest.mark.parametrize(
    ("reduce", "expected"),
    [
        (lambda x: x.sum(), 15),
        (lambda x: x.sum(dim=()), 15),
        (lambda x: x.mean(), 2.5),
        (lambda x: x.mean(dim=()), 2.5),
        (lambda x: x.prod(), 0),
        (lambda x: x.max(), 5),
        (lambda x: x.amin(), 0),
        (lambda x: x.argmax(), 5),
        (lambda x: x.argmin(), 0),
        (lambda x: x.nansum(), 15),
        (lambda x: x.norm(), math.sqrt(55)),
        (lambda x: ptr.equal(x, x), True),
    ],
)
def test_tensors_of_more_than_64_dimensions_are_reduced_as_a_whole(reduce, expected):
    result = reduce(many_dimensions())
    value = result if isinstance(result, bool) else result.item()
    assert getattr(result, "shape", ()) == ()
    assert value == pytest.approx(expected)


@pytest.mark.parametrize(
    "reduce", [lambda x: x.sum(dim=69), lambda x: x.amax((0, 1)), lambda x: x.argmax(0), lambda x: x.squeeze((0,))]
)
def test_dimensions_of_more_than_64_cannot_be_named(reduce):
    with pytest.raises(RuntimeError, match="only tensors with up to 64 dims are supported"):
        reduce(many_dimensions())


def test_gradients_of_more_than_64_dimensions():
    for reduce, expected in [
        (lambda x: x.sum(), [1] * 6),
        (lambda x: x.mean(), [1 / 6] * 6),
        (lambda x: x.prod(), [120, 0, 0, 0, 0, 0]),
        (lambda x: x.max(), [0, 0, 0, 0, 0, 1]),
        (lambda x: x.norm(), [i / math.sqrt(55) for i in range(6)]),
    ]:
        x = many_dimensions().requires_grad_()
        reduce(x).backward()
        assert x.grad.shape == x.shape
        assert x.grad.flatten().tolist() == pytest.approx(expected)
    x = many_dimensions().requires_grad_()
    (x + ptr.ones(1)).sum().backward()
    assert x.grad.flatten().tolist() == [1] * 6


def test_any_and_all_write_to_bytes():
    x = ptr.tensor([1.0, 0.0])
    out = ptr.empty((), dtype=ptr.uint8)
    assert ptr.any(x, out=out).item() == 1 and out.dtype == ptr.uint8
    with pytest.raises(RuntimeError, match="any only supports bool tensor for result, got: Float"):
        ptr.any(x, out=ptr.empty(()))
