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


def test_distances_of_shifts_that_leave_nothing():
    for dtype in (ptr.uint8, ptr.int8, ptr.int16, ptr.int32, ptr.int64):
        bits = ptr.iinfo(dtype).bits
        x = ptr.tensor([1, 5, ptr.iinfo(dtype).min, 3]).to(dtype)
        sign = [0, 0, 0 if dtype == ptr.uint8 else -1, 0]
        for distance in (bits, bits + 1, -1, -5, 100):
            y = ptr.full((4,), distance).to(dtype)
            assert (x << y).tolist() == [0, 0, 0, 0]
            assert (x >> y).tolist() == sign
        assert (x << 0).tolist() == (x >> 0).tolist() == x.tolist()
    assert (ptr.tensor([1, -1, 5], dtype=ptr.int8) << 7).tolist() == [-128, -128, -128]
    assert (ptr.tensor([1, 255, 200], dtype=ptr.uint8) >> 7).tolist() == [0, 1, 1]


def test_shifts_promote_and_refuse_floats():
    x = ptr.tensor([5, 3, 1], dtype=ptr.int16)
    assert (x << 1).dtype == (1 << x).dtype == x.__rshift__(1).dtype == ptr.int16
    assert (1 << x).tolist() == [32, 8, 2] and (64 >> x).tolist() == [2, 8, 32]
    assert (ptr.tensor([True, False]) << 2).tolist() == [4, 0]
    assert ptr.bitwise_left_shift(x, x.long()).dtype == ptr.int64
    out = ptr.empty(0, dtype=ptr.int64)
    assert ptr.bitwise_right_shift(x, 1, out=out) is out and out.tolist() == [2, 1, 0]
    x <<= 2
    assert x.tolist() == [20, 12, 4]
    x >>= ptr.tensor([1, 2, 1])
    assert x.tolist() == [10, 3, 2] and x.dtype == ptr.int16
    for refused in (lambda: x << 2.5, lambda: x.float() << 1, lambda: 2.5 >> x, lambda: x.bool() << x.bool()):
        with pytest.raises(NotImplementedError, match="shift_cpu. not implemented for"):
            refused()
    with pytest.raises(RuntimeError, match="result type Float can't be cast to the desired output type Short"):
        x.bitwise_left_shift_(2.5)
    with pytest.raises(RuntimeError, match="result type Float can't be cast to the desired output type Short"):
        x.bitwise_and_(2.5)


INF, NAN = math.inf, math.nan


@pytest.mark.parametrize("dtype", [ptr.float32, ptr.float64])
def test_logarithms_of_sums_and_hypotenuses_of_what_is_not_finite(dtype):
    x = ptr.tensor([INF, INF, -INF, -INF, NAN, 0, 1e30, -0.0, 800], dtype=dtype)
    y = ptr.tensor([INF, -INF, -INF, 1, INF, 0, 1e30, -0.0, 700], dtype=dtype)
    ln2 = ptr.tensor(math.log(2), dtype=dtype).item()
    large = x[6].item()
    expected = [INF, INF, -INF, 1, NAN, ln2, large, ln2, 800]
    assert ptr.logaddexp(x, y).tolist() == pytest.approx(expected, rel=0, nan_ok=True)
    expected = [INF, INF, -INF, 1, NAN, 1, large, 1, 800]
    assert ptr.logaddexp2(x, y).tolist() == pytest.approx(expected, rel=0, nan_ok=True)
    hypotenuses = ptr.hypot(x, y)
    assert hypotenuses[:5].tolist() == [INF] * 5 and hypotenuses[5].item() == hypotenuses[7].item() == 0
    assert hypotenuses[6].item() == pytest.approx(math.sqrt(2) * 1e30)


def test_gradients_of_logarithms_of_sums_and_of_hypotenuses():
    ptr.manual_seed(0)
    x = ptr.randn(3, 4, dtype=ptr.float64, requires_grad=True)
    y = ptr.randn(4, dtype=ptr.float64, requires_grad=True)
    for f in (ptr.logaddexp, ptr.logaddexp2, ptr.hypot):
        assert gradcheck(f, (x, y)) and gradgradcheck(f, (x, y))
    z, w = (ptr.randn(3, dtype=ptr.complex128, requires_grad=True) for _ in range(2))
    assert gradcheck(ptr.logaddexp, (z, w))


@pytest.mark.parametrize("dtype", [ptr.float16, ptr.bfloat16])
def test_a_scaled_sum_of_halves_rounds_as_pytorch_does(dtype):
    # The factor is rounded to the dtype. Of a row, 32 elements at a time are rounded once; the rest, and elements that
    # are not side by side, once for the product as well.
    a, b = ptr.linspace(-3, 5, 70).to(dtype), ptr.linspace(2, -1, 70).cos().to(dtype)
    factor = ptr.tensor(0.37).to(dtype).double()
    once = (a.double() + factor * b.double()).to(dtype)
    twice = (a.double() + (factor * b.double()).to(dtype).double()).to(dtype)
    assert not ptr.equal(once, twice)
    expected = ptr.cat([once[:64], twice[64:]])
    assert ptr.equal(ptr.add(a, b, alpha=0.37), expected)
    assert ptr.equal(a.clone().add_(b, alpha=0.37), expected)
    assert ptr.equal(ptr.sub(a, b, alpha=-0.37), expected)
    assert ptr.equal(ptr.add(ptr.stack([a, a], 1)[:, 0], b, alpha=0.37), twice)
    assert ptr.equal(ptr.add(a[:31], b[:31], alpha=0.37), twice[:31])


def test_an_expanded_divisor_of_halves_is_one_number():
    a, b = ptr.tensor([53.75] * 3, dtype=ptr.bfloat16), ptr.tensor([0.37], dtype=ptr.bfloat16)
    # 145.6 is 146 in bfloat16: the quotient of a tensor is rounded before it is truncated, that of a number is not.
    assert ptr.div(a, ptr.cat([b] * 3), rounding_mode="trunc").tolist() == [146.0] * 3
    assert ptr.div(a, b.expand(3), rounding_mode="trunc").tolist() == [145.0] * 3
    assert ptr.div(a, b, rounding_mode="trunc").tolist() == [145.0] * 3


def test_sums_of_small_integers_to_a_size_are_int64():
    x = ptr.ones(2, 3, dtype=ptr.uint8)
    assert x.sum_to_size(1, 3).dtype == x.sum_to_size(()).dtype == ptr.int64
    assert x.sum_to_size(2, 3).dtype == ptr.uint8
