"""Values of pointwise operators that a formula in the tensor's own dtype would miss."""

import math
import random
from fractions import Fraction

import ptr
import pytest
from ptr.autograd.gradcheck import gradcheck, gradgradcheck


@pytest.mark.parametrize("dtype", [ptr.bfloat16, ptr.float16])
@pytest.mark.parametrize("number", [0.37, ptr.tensor(0.37)])
def test_products_and_quotients_of_halves_take_a_number_unrounded(dtype, number):
    x = ptr.linspace(-8, 8, 1001).to(dtype)
    exact = x.float()
    assert ptr.equal(x * number, (exact * 0.37).to(dtype))
    assert ptr.equal(x / number, (exact / 0.37).to(dtype))
    for mode in ("floor", "trunc"):
        expected = ptr.div(exact, 0.37, rounding_mode=mode).to(dtype)
        assert ptr.equal(ptr.div(x, number, rounding_mode=mode), expected)


def test_a_quotient_of_halves_is_rounded_before_it_is_truncated():
    # 14.97 is 15 in bfloat16.
    a, b = ptr.tensor([40.0] * 2, dtype=ptr.bfloat16), ptr.tensor([2.671875] * 2, dtype=ptr.bfloat16)
    assert (a.double() / b.double()).max() < 15
    assert ptr.div(a, b, rounding_mode="trunc").tolist() == [15, 15]


def test_a_sum_of_halves_takes_a_number_rounded():
    x = ptr.tensor([1.0], dtype=ptr.bfloat16)
    assert (x + 0.37).item() == (x.float() + ptr.tensor(0.37).to(ptr.bfloat16).float()).to(ptr.bfloat16).item()


DTYPES = [ptr.float16, ptr.bfloat16, ptr.float32, ptr.float64]


def signs(x):
    """1 and -1; zeros and NaN have a sign as well."""
    return [math.copysign(1, value) for value in x.tolist()]


@pytest.mark.parametrize("dtype", DTYPES)
def test_copysign_takes_the_sign_of_zeros_infinities_and_nan(dtype):
    magnitudes = ptr.tensor([0.0, -0.0, 2.0, -2.0, math.inf, math.nan], dtype=dtype)
    for sign in (0.0, -0.0, math.inf, -math.inf, math.nan, -math.nan):
        result = ptr.copysign(magnitudes, ptr.tensor(sign, dtype=dtype).expand(6))
        assert result.dtype == dtype
        assert result.abs().tolist()[:5] == magnitudes.abs().tolist()[:5] and result[5].isnan()
        assert signs(result) == [math.copysign(1, sign)] * 6
        assert signs(ptr.copysign(magnitudes, sign)) == signs(result)


def test_copysign_promotes():
    integers, half = ptr.arange(3), ptr.ones(3, dtype=ptr.float16)
    assert ptr.copysign(integers, -integers).dtype == ptr.float32
    assert ptr.copysign(integers, True).tolist() == [0, 1, 2]
    assert ptr.copysign(half, -2.5).dtype == ptr.float16
    assert ptr.copysign(half, ptr.tensor([-1.0])).dtype == ptr.float32
    assert ptr.copysign(half, ptr.tensor(-1.0)).dtype == ptr.float16
    assert ptr.copysign(integers, -1, out=ptr.empty(3, dtype=ptr.float64)).dtype == ptr.float64
    for call in (
        lambda: integers.copysign_(-1),
        lambda: ptr.copysign(integers, -half, out=ptr.empty(3, dtype=ptr.int64)),
    ):
        with pytest.raises(RuntimeError, match="result type .* can't be cast to the desired output type Long"):
            call()
    with pytest.raises(NotImplementedError, match="not implemented for 'ComplexFloat'"):
        ptr.copysign(ptr.ones(3), 1j)


def test_copysign_in_place_and_out():
    x = ptr.tensor([1.0, -2.0, 3.0])
    out = ptr.empty(3)
    assert ptr.copysign(x, ptr.tensor([-1.0]), out=out) is out and out.tolist() == [-1, -2, -3]
    assert x.copysign_(ptr.tensor([1.0, 1.0, -1.0])) is x and x.tolist() == [1, 2, -3]
    assert x.copysign_(-0.0).tolist() == [-1, -2, -3]


def test_the_slope_of_copysign_is_whether_the_sign_was_kept():
    x = ptr.tensor([[1.0, -2.0, 0.0]], dtype=ptr.float64, requires_grad=True)
    y = ptr.tensor([[-1.0], [1.0]], dtype=ptr.float64, requires_grad=True)
    ptr.copysign(x, y).backward(ptr.tensor([[1.0, 10.0, 100.0], [2.0, 20.0, 200.0]]))
    assert x.grad.tolist() == [[-1 + 2, 10 - 20, 0]]
    assert y.grad.tolist() == [[0], [0]]
    x, y = ptr.randn(3, 4, dtype=ptr.float64).requires_grad_(), ptr.randn(4, dtype=ptr.float64).requires_grad_()
    assert gradcheck(ptr.copysign, (x, y)) and gradgradcheck(ptr.copysign, (x, y))
    assert gradcheck(lambda x: ptr.copysign(x, -2), x)
    assert gradcheck(lambda x, y: x.clone().copysign_(y), (x, y))


def test_adding_a_multiple_rounds_once():
    generator = random.Random(0)
    a, b = ([generator.uniform(-3, 3) for _ in range(37)] for _ in range(2))
    for alpha in (0.1, -0.7):
        x, y = ptr.tensor(a, dtype=ptr.float64), ptr.tensor(b, dtype=ptr.float64)
        for compute, factor in ((ptr.add, Fraction(alpha)), (ptr.sub, -Fraction(alpha))):
            exact = [float(Fraction(p) + factor * Fraction(q)) for p, q in zip(a, b, strict=True)]
            assert compute(x, y, alpha=alpha).tolist() == exact
            # Vectors and single elements take the same way.
            assert compute(x[::5], y[::5], alpha=alpha).tolist() == exact[::5]
            assert compute(x[3], y[3], alpha=alpha).item() == exact[3]


def test_powers_of_bool():
    x = ptr.tensor([True, False])
    assert (x**True).tolist() == [True, False] and (x**True).dtype == ptr.bool
    assert (x**False).tolist() == [True, True]
