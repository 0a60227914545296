"""Checks of derivatives against differences of values.

The Jacobian of a function is found twice: by moving each element of the inputs a little (numerically), and by a
backward pass for each element of the outputs (analytically). Jacobians are tensors of shape ``(numel of input, numel
of output)``.
Complex numbers follow the convention of the engine: the gradient of a real ``s`` by ``z = x + iy`` is
``ds/dx + i ds/dy``; of a complex output, real and imaginary part are checked one after the other.

Fast mode compares single numbers instead: each Jacobian multiplied by random vectors from both sides.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import ptr as torch
from ptr.autograd import Function

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]


class GradcheckError(RuntimeError):
    """Raised when a derivative is wrong."""


def _as_tuple(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def _is_differentiable(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.requires_grad


def _differentiable_outputs(value: Any) -> tuple[Any, ...]:
    return tuple(output for output in _as_tuple(value) if output.requires_grad)


class _Options:
    """The options of one check that its parts share."""

    def __init__(
        self, eps: float, atol: float, rtol: float, nondet_tol: float, check_grad_dtypes: bool, fast_mode: bool
    ) -> None:
        self.eps = eps
        self.atol = atol
        self.rtol = rtol
        self.nondet_tol = nondet_tol
        self.check_grad_dtypes = check_grad_dtypes
        self.fast_mode = fast_mode


# --- numerical derivatives --------------------------------------------------------------------------------------------


def _check_perturbed(before: Any, after: Any, eps: float, where: str) -> None:
    for name, a, b in (("shape", before.shape, after.shape), ("dtype", before.dtype, after.dtype)):
        if a != b:
            raise AssertionError(
                f"Expected `func` to return outputs with the same {name} when inputs are perturbed {where}by {eps}, "
                f"but got: {name}s {a} and {b}."
            )


def _difference_quotients(
    func: Callable[..., Any], inputs: tuple[Any, ...], values: Any, step: Any, eps: float, where: str = ""
) -> list[Any]:
    """Return ``(func(x + step) - func(x - step)) / (2 eps)``, flattened, for each output.

    Args:
        values: the part of an input that is moved: a view past the graph and its version checks, restored afterwards.
    """
    original = values.clone()
    values.copy_(original - step)
    low = [output.detach().clone() for output in _as_tuple(func(*inputs))]
    values.copy_(original + step)
    high = [output.detach().clone() for output in _as_tuple(func(*inputs))]
    values.copy_(original)
    quotients = []
    for a, b in zip(low, high, strict=True):
        _check_perturbed(a, b, eps, where)
        quotients.append(((b - a) / (2 * eps)).reshape(-1))
    return quotients


def _derivatives(
    func: Callable[..., Any],
    inputs: tuple[Any, ...],
    values: Any,
    directions: tuple[Any, Any],
    eps: float,
    where: str = "",
) -> list[Any]:
    """Return the derivatives of all outputs along a direction; for complex inputs one for each part, combined."""
    real, imag = directions
    along_real = _difference_quotients(func, inputs, values, real * eps, eps, where)
    if not values.is_complex():
        return along_real
    along_imag = _difference_quotients(func, inputs, values, imag * eps * 1j, eps, where)
    return [dx + dy * 1j for dx, dy in zip(along_real, along_imag, strict=True)]


def _numerical_jacobians(
    func: Callable[..., Any], inputs: tuple[Any, ...], position: int, outputs: tuple[Any, ...], eps: float
) -> list[Any]:
    """Return the Jacobians of all outputs by one input."""
    inp = inputs[position]
    data = inp.data
    jacobians = []
    for output in outputs:
        dtype = inp.dtype if inp.is_complex() else output.dtype
        jacobians.append(torch.zeros((inp.numel(), output.numel()), dtype=dtype, device=output.device))
    for row, index in enumerate(itertools.product(*map(range, inp.shape))):
        columns = _derivatives(func, inputs, data[index], (1, 1), eps, f"on index {index} ")
        for jacobian, column in zip(jacobians, columns, strict=True):
            jacobian[row] = column
    return jacobians


# --- analytical derivatives -------------------------------------------------------------------------------------------


def _vector_jacobian_products(output: Any, diff_inputs: list[Any], fast_vector: Any) -> Iterator[tuple[Any, ...]]:
    """Yield the gradients of the inputs for each unit vector of the output; in fast mode for the one given."""

    def backward(grad_output: Any) -> tuple[Any, ...]:
        return torch.autograd.grad(output, diff_inputs, grad_output, retain_graph=True, allow_unused=True)

    if fast_vector is not None:
        yield backward(fast_vector.reshape(output.shape))
        return
    for i in range(output.numel()):
        unit = torch.zeros(output.numel(), dtype=output.dtype, device=output.device)
        unit[i] = 1.0
        yield backward(unit.reshape(output.shape))


def _analytical_jacobians(
    inputs: tuple[Any, ...], output: Any, options: _Options, fast_vector: Any = None
) -> list[Any]:
    """Return the Jacobians of one output by all inputs, after checking that the backward is repeatable and
    well-formed."""
    diff_inputs = [inp for inp in inputs if _is_differentiable(inp)]
    columns = 1 if fast_vector is not None else output.numel()

    def compute() -> tuple[list[Any], bool, bool]:
        jacobians = [torch.zeros((inp.numel(), columns), dtype=inp.dtype, device=inp.device) for inp in diff_inputs]
        sizes_ok = types_ok = True
        for i, grads in enumerate(_vector_jacobian_products(output, diff_inputs, fast_vector)):
            for inp, jacobian, grad in zip(diff_inputs, jacobians, grads, strict=True):
                if grad is None:
                    continue
                if grad.size() != inp.size():
                    sizes_ok = False
                    continue
                types_ok = types_ok and grad.dtype == inp.dtype
                jacobian[:, i] = grad.detach().reshape(-1)
        return jacobians, sizes_ok, types_ok

    first, sizes_ok, types_ok = compute()
    if not types_ok and options.check_grad_dtypes:
        raise GradcheckError("Gradient has dtype mismatch")
    if not sizes_ok:
        raise GradcheckError("Analytical gradient has incorrect size")
    second, _, _ = compute()
    for a, b in zip(first, second, strict=True):
        if a.numel() and bool((a - b).abs().max() > options.nondet_tol):
            raise GradcheckError(
                "Backward is not reentrant, i.e., running backward with same input and grad_output multiple times "
                "gives "
                f"different values. The tolerance for nondeterminism was {options.nondet_tol}."
            )
    return first


# --- comparison -------------------------------------------------------------------------------------------------------


def _allclose(a: Any, b: Any, rtol: float, atol: float) -> bool:
    dtype = torch.promote_types(a.dtype, b.dtype)
    return bool(torch.allclose(a.to(dtype), b.to(device=a.device, dtype=dtype), rtol, atol))


def _mismatch(analytical: Any, numerical: Any, output_idx: int, input_idx: int, part: str) -> str:
    prefix = f"While considering the {part} part of complex outputs only, " if part else ""
    return (
        f"{prefix}Jacobian mismatch for output {output_idx} with respect to input {input_idx},\n"
        f"numerical:{numerical}\nanalytical:{analytical}\n"
    )


def _check_real(
    func: Callable[..., Any], inputs: tuple[Any, ...], func_out: tuple[Any, ...], options: _Options, part: str
) -> None:
    """Compare all Jacobians of a function with real outputs."""
    positions = [i for i, inp in enumerate(inputs) if _is_differentiable(inp)]
    if options.fast_mode:
        _check_fast(func, inputs, func_out, positions, options, part)
        return
    numerical = [_numerical_jacobians(func, inputs, i, func_out, options.eps) for i in positions]
    outputs = [(i, output) for i, output in enumerate(func_out) if output.requires_grad]
    if not outputs:
        for jacobian in itertools.chain(*numerical):
            if bool((jacobian != 0).any()):
                raise GradcheckError("Numerical gradient for function expected to be zero")
        return
    for o, (index, output) in enumerate(outputs):
        for i, a in enumerate(_analytical_jacobians(inputs, output, options)):
            n = numerical[i][index]
            if not _allclose(a, n, options.rtol, options.atol):
                raise GradcheckError(_mismatch(a, n, o, i, part))


def _random_unit_vector(like: Any, generator: Any, real: bool = False) -> Any:
    dtype = like.dtype
    if real and dtype.is_complex:
        dtype = torch.float64 if dtype == torch.complex128 else torch.float32
    vector = torch.rand(like.numel(), generator=generator).to(dtype=dtype, device=like.device)
    if vector.numel():
        vector /= (vector * vector).sum().sqrt()
    return vector


def _check_fast(
    func: Callable[..., Any],
    inputs: tuple[Any, ...],
    func_out: tuple[Any, ...],
    positions: list[int],
    options: _Options,
    part: str,
) -> None:
    """Compare ``v J u`` with random ``u`` over the inputs and ``v`` over the outputs."""
    generator = torch.Generator()
    us = []
    for position in positions:
        inp = inputs[position]
        real = _random_unit_vector(inp, generator, real=True)
        us.append((real, _random_unit_vector(inp, generator, real=True) if inp.is_complex() else real))
    outputs = [(i, output) for i, output in enumerate(func_out) if output.requires_grad]
    vs = [_random_unit_vector(output, generator) for _, output in outputs]

    along_u = []
    for position, (real, imag) in zip(positions, us, strict=True):
        data = inputs[position].data
        directions = real.reshape(data.shape), imag.reshape(data.shape)
        along_u.append(_fast_derivatives(func, inputs, data, directions, options.eps))
    if not outputs:
        for derivative in itertools.chain.from_iterable(itertools.chain(*along_u)):
            if derivative.numel() and bool(derivative.abs().max() > options.nondet_tol):
                raise GradcheckError("Numerical gradient for function expected to be zero")
        return

    for o, ((index, output), v) in enumerate(zip(outputs, vs, strict=True)):
        for i, column in enumerate(_analytical_jacobians(inputs, output, options, fast_vector=v)):
            real, imag = us[i]
            by_real, by_imag = along_u[i]
            vj = column.reshape(-1)
            # As numbers of the same kind: for a complex input its two directions stay apart.
            if vj.is_complex():
                a = (vj.real * real).sum() + 1j * (vj.imag * imag).sum()
                n = (v * by_real[index]).sum() + 1j * (v * by_imag[index]).sum()
            else:
                a, n = (vj * real).sum(), (v * by_real[index]).sum()
            scale = float(real.sum()) + (float(imag.sum()) if vj.is_complex() else 0.0)
            if not _allclose(a, n, options.rtol, options.atol * scale * abs(float(v.sum()))):
                detail = _slow_detail(func, inputs, func_out, positions[i], i, index, output, options)
                raise GradcheckError(_mismatch(a, n, o, i, part) + detail)


def _fast_derivatives(
    func: Callable[..., Any], inputs: tuple[Any, ...], data: Any, directions: tuple[Any, Any], eps: float
) -> tuple[list[Any], list[Any]]:
    """Return the derivatives of all outputs along the real and the imaginary direction."""
    by_real = _difference_quotients(func, inputs, data, directions[0] * eps, eps)
    if not data.is_complex():
        return by_real, []
    return by_real, _difference_quotients(func, inputs, data, directions[1] * eps * 1j, eps)


def _slow_detail(
    func: Callable[..., Any],
    inputs: tuple[Any, ...],
    func_out: tuple[Any, ...],
    position: int,
    input_idx: int,
    output_idx: int,
    output: Any,
    options: _Options,
) -> str:
    """Explain a failure of fast mode, whose numbers say little, by the whole Jacobians."""
    n = _numerical_jacobians(func, inputs, position, func_out, options.eps)[output_idx]
    relaxed = _Options(options.eps, options.atol, options.rtol, float("inf"), False, False)
    a = _analytical_jacobians(inputs, output, relaxed)[input_idx]
    text = (
        "\nThe above quantities relating the numerical and analytical jacobians are computed in fast mode. In slow "
        "mode:\n\n"
        f"Numerical:\n {n}\nAnalytical:\n{a}\n\n"
        f"The max per-element difference (slow mode) is: {(n - a).abs().max()}.\n"
    )
    if _allclose(a, n, options.rtol, options.atol):
        text += (
            "\nFast gradcheck failed but element-wise differences are small. This means that the test might've passed "
            "in slow_mode!\n"
        )
    return text


def _check_jacobians(func: Callable[..., Any], inputs: tuple[Any, ...], func_out: Any, options: _Options) -> None:
    if not any(output.is_complex() for output in _as_tuple(func_out)):
        _check_real(func, inputs, _as_tuple(func_out), options, "")
        return
    for part, take in (("imaginary", torch.imag), ("real", torch.real)):

        def part_func(*args: Any, take: Any = take) -> tuple[Any, ...]:
            return tuple(take(output) if output.is_complex() else output for output in _as_tuple(func(*args)))

        _check_real(part_func, inputs, part_func(*inputs), options, part)


# --- other demands on a backward --------------------------------------------------------------------------------------


def _check_inputs(inputs: tuple[Any, ...]) -> None:
    any_differentiable = False
    for i, inp in enumerate(inputs):
        if not _is_differentiable(inp):
            continue
        any_differentiable = True
        if inp.dtype not in (torch.float64, torch.complex128):
            warnings.warn(
                f"Input #{i} requires gradient and is not a double precision floating point or complex. This check "
                "will likely fail if all the inputs are not of double precision floating point or complex. ",
                stacklevel=4,
            )
        if any(stride == 0 and size > 1 for stride, size in zip(inp.stride(), inp.size(), strict=True)):
            raise RuntimeError(
                f"The {i}th input has a dimension with stride 0. gradcheck only supports inputs that are "
                "non-overlapping to be able to compute the numerical gradients correctly. You should call .contiguous "
                "on the input before passing it to gradcheck."
            )
    if not any_differentiable:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of them have requires_grad=True."
        )


def _check_zero_grad_output(outputs: tuple[Any, ...], diff_inputs: list[Any]) -> None:
    """Zero gradients of the outputs have to give zero gradients of the inputs, of the right kind."""
    grads = torch.autograd.grad(
        outputs, diff_inputs, [torch.zeros_like(output) for output in outputs], allow_unused=True
    )
    for grad, inp in zip(grads, diff_inputs, strict=True):
        if grad is None:
            continue
        if bool((grad != 0).any()):
            raise GradcheckError("backward not multiplied by grad_output")
        for name, a, b in (
            ("type", grad.dtype, inp.dtype),
            ("device", grad.device, inp.device),
            ("size", grad.size(), inp.size()),
        ):
            if a != b:
                raise GradcheckError(f"grad is incorrect {name}")


class _UndefinedGrad(Function):
    """Identity whose backward passes no gradient on, as happens where an output takes no part in a loss."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return None


def _check_undefined_grads(func: Callable[..., Any], inputs: tuple[Any, ...], diff_inputs: list[Any]) -> None:
    """A backward has to cope with outputs that have no gradient: all of them, and each alone."""
    count = len(_differentiable_outputs(func(*inputs)))
    cases = [set(range(count))] + ([{i} for i in range(count)] if count > 1 else [])
    for undefined in cases:
        outputs = [
            _UndefinedGrad.apply(output) if i in undefined else output
            for i, output in enumerate(_differentiable_outputs(func(*inputs)))
        ]
        zeros = [torch.zeros_like(output) for output in outputs]
        try:
            grads = torch.autograd.grad(outputs, diff_inputs, zeros, allow_unused=True)
        except RuntimeError as error:
            raise GradcheckError("Expected backward function to handle undefined output grads.") from error
        if any(grad is not None and bool((grad != 0).any()) for grad in grads):
            raise GradcheckError(
                "Expected all input grads to be undefined or zero when all output grads are undefined or zero."
            )


def _reject_missing(**checks: bool) -> None:
    for name, wanted in checks.items():
        if wanted:
            needs = "vmap" if "batched" in name else "forward-mode automatic differentiation"
            raise NotImplementedError(f"gradcheck(): {name}=True needs {needs}, which is not available yet")


def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Check gradients computed by backward passes against small differences of the function's values.

    The defaults are for inputs of double precision.

    Args:
        func: takes the inputs and returns a tensor or a tuple of them; must give the same values each time.
        inputs: a tensor or a tuple. At least one requires a gradient; they must not overlap themselves.
        eps: how far inputs are moved.
        atol, rtol: tolerances.
        raise_exception: raise if the check fails, rather than return false.
        nondet_tol: how far two runs of the backward may lie apart.
        check_undefined_grad: check that the backward copes with outputs without a gradient.
        check_grad_dtypes: demand that gradients have the dtypes of their inputs.
        check_batched_grad, check_batched_forward_grad, check_forward_ad: not available yet.
        check_backward_ad: check backward mode.
        fast_mode: compare random combinations of the derivatives instead of each.
        masked: for sparse inputs, which do not exist yet.

    Returns:
        whether the check passed.

    Raises:
        GradcheckError: it did not.
        ValueError: no input requires a gradient.
        NotImplementedError: a check that is not available is asked for.

    Example::

        >>> x = torch.randn(3, dtype=torch.double, requires_grad=True)
        >>> torch.autograd.gradcheck(torch.exp, x)
        True
    """
    if not (check_forward_ad or check_backward_ad):
        raise AssertionError("Expected at least one of check_forward_ad or check_backward_ad to be True")
    _reject_missing(
        check_batched_grad=check_batched_grad,
        check_batched_forward_grad=check_batched_forward_grad,
        check_forward_ad=check_forward_ad,
    )
    args = _as_tuple(inputs)
    options = _Options(eps, atol, rtol, nondet_tol, check_grad_dtypes, fast_mode)
    try:
        _check_inputs(args)
        func_out = func(*args)
        _check_jacobians(func, args, func_out, options)
        outputs = _differentiable_outputs(func_out)
        diff_inputs = [inp for inp in args if _is_differentiable(inp)]
        if outputs:
            _check_zero_grad_output(outputs, diff_inputs)
            if check_undefined_grad:
                _check_undefined_grads(func, args, diff_inputs)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """Check gradients of gradients: :func:`gradcheck` of the backward of ``func``, by its inputs and ``grad_outputs``.

    Args:
        func, inputs: see :func:`gradcheck`.
        grad_outputs: the gradients to start the backward from. Default: random ones in [-1, 1).
        gen_non_contig_grad_outputs: make random ``grad_outputs`` with gaps.
        check_fwd_over_rev: not available yet.
        check_rev_over_rev: check backward of backward.
        eps, atol, rtol, raise_exception, nondet_tol, check_undefined_grad: see :func:`gradcheck`.
        check_grad_dtypes, check_batched_grad, fast_mode, masked: see :func:`gradcheck`.

    Returns:
        whether the check passed.

    Raises:
        GradcheckError: it did not.
    """
    if not (check_fwd_over_rev or check_rev_over_rev):
        raise AssertionError("Expected at least one of check_fwd_over_rev or check_rev_over_rev to be True")
    args = _as_tuple(inputs)
    if grad_outputs is None:
        from ptr.testing import make_tensor

        starts = tuple(
            make_tensor(
                output.shape,
                dtype=output.dtype,
                device=output.device,
                low=-1,
                high=1,
                requires_grad=True,
                noncontiguous=gen_non_contig_grad_outputs,
            )
            for output in _differentiable_outputs(func(*args))
        )
    else:
        starts = _as_tuple(grad_outputs)
    n_inputs = len(args)
    moving = {i for i, value in enumerate((*args, *starts)) if _is_differentiable(value)}

    def backward(*values: Any) -> tuple[Any, ...]:
        values = tuple(value.requires_grad_() if i in moving else value for i, value in enumerate(values))
        outputs = _differentiable_outputs(func(*values[:n_inputs]))
        by = tuple(value for i, value in enumerate(values[:n_inputs]) if i in moving)
        grads = torch.autograd.grad(outputs, by, values[n_inputs:], create_graph=True, allow_unused=True)
        return tuple(grad for grad in grads if grad is not None)

    return gradcheck(
        backward,
        (*args, *starts),
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad,
        check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad,
        check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev,
        fast_mode=fast_mode,
        masked=masked,
    )
