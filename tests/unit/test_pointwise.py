"""Values of pointwise operators that a formula in the tensor's own dtype would miss."""

import ptr
import pytest


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
