"""`torch.norm`: values, gradients at zero, the range of halves, and errors."""

import math

import ptr as torch
import pytest

A = [[3.0, 4.0], [0.0, -2.0]]


def gradient(values, **options):
    x = torch.tensor(values, requires_grad=True)
    torch.norm(x, **options).sum().backward()
    return x.grad.tolist()


@pytest.mark.parametrize(
    ("p", "expected"),
    [
        ("fro", math.sqrt(29)),
        (None, math.sqrt(29)),
        (0, 3.0),
        (1, 9.0),
        (3, 99 ** (1 / 3)),
        (0.5, (math.sqrt(3) + 2 + math.sqrt(2)) ** 2),
        (-1, 0.0),
        (math.inf, 4.0),
        (-math.inf, 0.0),
    ],
)
def test_values(p, expected):
    assert torch.norm(torch.tensor(A), p=p).item() == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("p", ["fro", 0, 1, 2, 3, 0.5, 1.5, -1, -2, math.inf])
def test_the_gradient_of_zeros_is_zero(p):
    assert gradient([0.0, 0.0, 0.0], p=p) == [0.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("p", "expected"),
    [(1, [1.0, 0.0, 1.0]), (0.5, [1.7071068, 0.0, 2.4142136]), (2, [0.8944272, 0.0, 0.4472136])],
)
def test_zeros_among_others_have_gradient_zero(p, expected):
    assert gradient([2.0, 0.0, 1.0], p=p) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_halves_are_summed_in_single_precision(dtype):
    x = torch.full((4,), 300.0, dtype=dtype, requires_grad=True)
    norm = x.norm()
    assert norm.dtype is dtype and norm.item() == 600.0
    norm.backward()
    assert x.grad.tolist() == [0.5] * 4
    assert torch.norm(torch.full((4,), 300.0, dtype=torch.float16), p=3).item() == 476.25


def test_complex_numbers_and_dimensions():
    assert torch.norm(torch.tensor([3 + 4j, 0j])).item() == 5.0
    assert gradient([3 + 4j, 0j]) == pytest.approx([0.6 + 0.8j, 0j])
    assert torch.norm(torch.tensor(A), dim=1, keepdim=True).tolist() == [[5.0], [2.0]]
    assert torch.norm(torch.tensor(A), dtype=torch.float64).dtype is torch.float64


def test_the_second_derivative():
    x = torch.tensor([0.5, -2.0, 1.5], dtype=torch.float64, requires_grad=True)
    for p in (2, 3, 1.5):
        assert torch.autograd.gradgradcheck(lambda x, p=p: torch.norm(x, p=p), (x,))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: torch.norm(torch.arange(3)), "Expected a floating point or complex tensor as input. Got Long"),
        (lambda: torch.norm(torch.arange(3), dtype=torch.float32), "Expected a floating point or complex"),
        (lambda: torch.norm(torch.tensor(A), dtype=torch.int64), "dtype should be floating point or complex"),
        (lambda: torch.norm(torch.tensor(A), dtype=torch.complex64), "should be real for real inputs, but got Complex"),
        (lambda: torch.norm(torch.tensor(A), p="x"), "Order x not supported"),
        (lambda: torch.norm(torch.tensor(A), p="nuc", dim=(0,)), "dim must be a 2-tuple. Got 0"),
        (lambda: torch.norm(torch.tensor(A), dim=(0, 1, 2)), "dim must be a 2-tuple. Got 0 1 2"),
        (lambda: torch.norm(torch.zeros(0), p=math.inf), "cannot compute the inf norm on an empty tensor"),
        (lambda: torch.norm(torch.zeros(2, 0), p=-1, dim=1), "cannot compute the -1 norm on the dimension 1"),
        (lambda: torch.norm(torch.tensor(A), p="nuc"), "singular value"),
    ],
)
def test_errors(call, message):
    with pytest.raises(RuntimeError, match=message):
        call()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_the_statistics_of_halves_are_halves_unless_the_parameters_are_float32(dtype):
    def dtypes(device, weight, bias=None):
        x = torch.ones(2, 4, dtype=dtype, device=device)
        weight, bias = (None if p is None else torch.ones(4, dtype=p, device=device) for p in (weight, bias))
        return [result.dtype for result in torch.native_layer_norm(x, [4], weight, bias, 1e-5)]

    assert dtypes("cpu", None) == dtypes("cpu", dtype) == [dtype] * 3
    assert dtypes("cpu", torch.float32) == [dtype, torch.float32, torch.float32]
    assert dtypes("meta", None) == [dtype, torch.float32, torch.float32]
    with pytest.raises(RuntimeError, match="expect parameter to have scalar type of Float"):
        dtypes("cpu", torch.float64)
    with pytest.raises(RuntimeError, match="expected scalar type .* but found Float"):
        dtypes("cpu", dtype, torch.float32)
    with pytest.raises(RuntimeError, match="all inputs must share same datatype"):
        torch.native_layer_norm(torch.ones(2, 4, dtype=torch.float64), [4], torch.ones(4), None, 1e-5)
