"""The operators of complex32, which are those of PyTorch: computed in complex64 and rounded."""

import ptr
import pytest

X = ptr.tensor([1 + 2j, -0.5j]).to(ptr.complex32)
Y = ptr.tensor([2 - 1j, -0.5j]).to(ptr.complex32)


def values(tensor):
    assert tensor.dtype == ptr.complex32
    return tensor.to(ptr.complex64).tolist()


def test_arithmetic():
    assert values(X + Y) == [3 + 1j, -1j]
    assert values(ptr.add(X, Y, alpha=2)) == [5 + 0j, -1.5j]
    assert values(X - Y) == [-1 + 3j, 0j]
    assert values(ptr.sub(X, Y, alpha=2)) == [-3 + 4j, 0.5j]
    assert values(X * Y) == [4 + 3j, -0.25 + 0j]
    assert values(ptr.ones(2, dtype=ptr.float16) * 2j) == [2j, 2j]
    # 2**-12 is lost in the halves, which hold 11 bits.
    assert values(ptr.tensor([1.0]).to(ptr.complex32) + 2.0**-12) == [1 + 0j]


def test_comparison():
    assert (X == Y).tolist() == [False, True]
    assert (X != Y).tolist() == [True, False]
    assert (ptr.ones(1, dtype=ptr.float16) == ptr.tensor(1 + 0j)).tolist() == [True]


@pytest.mark.parametrize("call", [lambda: X / Y, lambda: X**2, lambda: ptr.ones(2, dtype=ptr.float16) ** 2j])
def test_what_there_is_no_kernel_for(call):
    with pytest.raises(NotImplementedError, match="not implemented for 'ComplexHalf'"):
        call()
