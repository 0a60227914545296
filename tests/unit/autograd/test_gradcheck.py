"""gradcheck and gradgradcheck tell right derivatives from wrong ones."""

import subprocess
import sys

import ptr as torch
import pytest
from ptr.autograd import Function
from ptr.autograd.gradcheck import GradcheckError, gradcheck, gradgradcheck


def real(*shape):
    torch.manual_seed(0)
    return torch.randn(shape, dtype=torch.float64).requires_grad_()


def complex_(*shape):
    torch.manual_seed(0)
    return torch.randn(shape, dtype=torch.complex128).requires_grad_()


class WrongFactor(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * 3


class IgnoresGrad(Function):
    @staticmethod
    def forward(ctx, x):
        return x.sum()

    @staticmethod
    def backward(ctx, grad):
        return torch.ones(3, dtype=torch.float64)


class Restless(Function):
    """Right within tolerance, but another value each time."""

    count = 0

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        Restless.count += 1
        return grad * (2 + 1e-7 * Restless.count)


@pytest.mark.parametrize("fast_mode", [False, True])
def test_right_derivatives(fast_mode):
    assert gradcheck(lambda x: x.exp(), real(3), fast_mode=fast_mode)
    assert gradcheck(lambda x, y: (x @ y, x.sum()), (real(2, 3), real(3, 2)), fast_mode=fast_mode)
    assert gradcheck(lambda x, k: x * k, (real(3), 2), fast_mode=fast_mode)
    assert gradgradcheck(lambda x: x * x * x, real(2), fast_mode=fast_mode)


@pytest.mark.parametrize("fast_mode", [False, True])
def test_complex_derivatives(fast_mode):
    assert gradcheck(lambda x, y: x * y, (complex_(2), complex_(2)), fast_mode=fast_mode)


@pytest.mark.parametrize("fast_mode", [False, True])
@pytest.mark.parametrize(
    ("func", "match"),
    [
        (WrongFactor.apply, "Jacobian mismatch for output 0 with respect to input 0"),
        (IgnoresGrad.apply, "backward not multiplied by grad_output|Jacobian mismatch"),
        (Restless.apply, "Backward is not reentrant"),
        (lambda x: x.detach() * 2, "expected to be zero"),
    ],
)
def test_wrong_derivatives(func, match, fast_mode):
    with pytest.raises(GradcheckError, match=match):
        gradcheck(func, real(3), fast_mode=fast_mode)
    assert not gradcheck(func, real(3), fast_mode=fast_mode, raise_exception=False)


def test_tolerated_nondeterminism():
    assert gradcheck(Restless.apply, real(3), nondet_tol=1e-3)


def test_inputs_are_left_as_they_were():
    x = real(3)
    before = x.tolist()
    gradcheck(lambda x: x.exp(), x)
    assert x.tolist() == before and x.grad is None


def test_misuse():
    with pytest.raises(ValueError, match="at least one input tensor to require gradient"):
        gradcheck(lambda x: x, torch.ones(2))
    with pytest.raises(RuntimeError, match="dimension with stride 0"):
        gradcheck(lambda x: x * 2, real(1).expand(3))
    with pytest.warns(UserWarning, match="not a double precision"):
        gradcheck(lambda x: x * 2, torch.ones(1, requires_grad=True), raise_exception=False)
    for missing in ("check_batched_grad", "check_forward_ad"):
        with pytest.raises(NotImplementedError, match=missing):
            gradcheck(lambda x: x, real(1), **{missing: True})


@pytest.mark.parametrize(
    "first",
    [
        "torch.autograd.gradgradcheck",
        "torch.autograd.GradcheckError",
        "from ptr.autograd.gradcheck import gradcheck",
        "import ptr.autograd.gradcheck",
        "from ptr.autograd import gradcheck",
    ],
)
def test_the_function_is_found_whatever_was_touched_first(first):
    program = f"""
import ptr as torch
{first}
x = torch.ones(2, dtype=torch.float64, requires_grad=True)
assert torch.autograd.gradcheck(lambda x: x * x, (x,))
assert torch.autograd.gradgradcheck(lambda x: x * x, (x,))
assert issubclass(torch.autograd.GradcheckError, RuntimeError)
from ptr.autograd.gradcheck import gradcheck
assert gradcheck is torch.autograd.gradcheck
"""
    subprocess.run([sys.executable, "-c", program], check=True)
