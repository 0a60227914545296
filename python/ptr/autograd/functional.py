"""Derivatives of functions: Jacobians, Hessians, and their products with vectors."""

from __future__ import annotations

import ptr as torch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]


def _as_tuple(value: Any, what: str, function: str) -> tuple[bool, tuple[Any, ...]]:
    is_tuple = isinstance(value, (tuple, list))
    values = tuple(value) if is_tuple else (value,)
    for i, item in enumerate(values):
        if not isinstance(item, torch.Tensor):
            where = f" at index {i}" if is_tuple else ""
            raise TypeError(
                f"The {what} given to {function} must be either a Tensor or a tuple of Tensors but the value{where} "
                f"has type {type(item)}."
            )
    return is_tuple, values


def _prepare(inputs: tuple[Any, ...], create_graph: bool) -> tuple[Any, ...]:
    """Inputs that are leaves of a graph of their own; of the caller's graph too with ``create_graph``."""
    if create_graph:
        return tuple(t.view_as(t) if t.requires_grad else t.detach().requires_grad_() for t in inputs)
    return tuple(t.detach().requires_grad_() for t in inputs)


def _finish(values: Any, create_graph: bool, is_tuple: bool) -> Any:
    values = tuple(values)
    if not create_graph:
        values = tuple(v.detach() for v in values)
    return values if is_tuple else values[0]


def _grad(outputs: Any, inputs: Any, grads: Any, create_graph: bool, strict: bool, what: str) -> tuple[Any, ...]:
    """Gradients, with zeros for inputs that the outputs do not depend on (an error if ``strict``)."""
    pairs = [(o, g) for o, g in zip(outputs, grads, strict=False) if o.requires_grad]
    if pairs:
        found = torch.autograd.grad(
            [o for o, _ in pairs],
            inputs,
            [g for _, g in pairs],
            allow_unused=True,
            create_graph=create_graph,
            retain_graph=True,
        )
    else:
        found = (None,) * len(inputs)
    results = []
    for i, (gradient, value) in enumerate(zip(found, inputs, strict=False)):
        if gradient is None:
            if strict:
                raise RuntimeError(
                    f"The {what} of the function with respect to input {i} is independent of it. This is not "
                    f"allowed in strict mode."
                )
            gradient = torch.zeros_like(value)
        results.append(gradient)
    return tuple(results)


def _vectors(v: Any, like: tuple[Any, ...], function: str) -> tuple[Any, ...]:
    if v is None:
        if len(like) != 1 or like[0].numel() != 1:
            raise RuntimeError(
                f"The vector v given to {function} can only be None if the user-provided function returns a single "
                f"Tensor with a "
                "single element."
            )
        return tuple(torch.ones_like(t) for t in like)
    _, vectors = _as_tuple(v, "v", function)
    if len(vectors) != len(like):
        raise RuntimeError(f"v is a tuple of invalid length: should be {len(like)} but got {len(vectors)}.")
    for i, (vector, t) in enumerate(zip(vectors, like, strict=False)):
        if vector.size() != t.size():
            raise RuntimeError(f"Entry {i} in v has invalid size: should be {t.size()} but got {vector.size()}.")
    return vectors


def vjp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """Return the outputs of ``func`` and the product of ``v`` with its Jacobian.

    Args:
        func: a function of tensors that returns a tensor or a tuple of them.
        inputs: its arguments.
        v: a vector of the size of the outputs; ``None`` will do for one element.
        create_graph: whether the results can be differentiated.
        strict: whether outputs that do not depend on an input are an error rather than zeros.
    """
    with torch.enable_grad():
        is_inputs_tuple, args = _as_tuple(inputs, "inputs", "vjp")
        args = _prepare(args, create_graph)
        is_outputs_tuple, outputs = _as_tuple(func(*args), "outputs of the user-provided function", "vjp")
        products = _grad(outputs, args, _vectors(v, outputs, "vjp"), create_graph, strict, "output")
    return _finish(outputs, create_graph, is_outputs_tuple), _finish(products, create_graph, is_inputs_tuple)


def jvp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """Return the outputs of ``func`` and the product of its Jacobian with ``v``.

    The product is found by differentiating backward twice.

    Args:
        func: a function of tensors that returns a tensor or a tuple of them.
        inputs: its arguments.
        v: a vector of the size of the inputs; ``None`` will do for one element.
        create_graph: whether the results can be differentiated.
        strict: whether outputs that do not depend on an input are an error rather than zeros.
    """
    with torch.enable_grad():
        _, args = _as_tuple(inputs, "inputs", "jvp")
        args = _prepare(args, create_graph)
        vectors = _vectors(v, args, "jvp")
        is_outputs_tuple, outputs = _as_tuple(func(*args), "outputs of the user-provided function", "jvp")
        dummies = tuple(torch.zeros_like(o).requires_grad_() for o in outputs)
        # Linear in the dummies, so that its derivative by them is the product.
        gradients = _grad(outputs, args, dummies, True, strict, "output")
        products = _grad(gradients, dummies, vectors, create_graph, strict, "derivative")
    return _finish(outputs, create_graph, is_outputs_tuple), _finish(products, create_graph, is_outputs_tuple)


def jacobian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """Return the Jacobian of ``func``: for each output and input a tensor of the output's size followed by the input's.

    Args:
        func: a function of tensors that returns a tensor or a tuple of them.
        inputs: its arguments.
        create_graph: whether the result can be differentiated.
        strict: whether outputs that do not depend on an input are an error rather than zeros.
        vectorize: accepted; rows are computed one by one.
        strategy: ``"reverse-mode"`` or ``"forward-mode"``; the result is the same.
    """
    if strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode"')
    with torch.enable_grad():
        is_inputs_tuple, args = _as_tuple(inputs, "inputs", "jacobian")
        args = _prepare(args, create_graph)
        is_outputs_tuple, outputs = _as_tuple(func(*args), "outputs of the user-provided function", "jacobian")
        jacobians = []
        for output in outputs:
            flat = output.reshape(-1)
            rows = [
                _grad((flat[j],), args, (torch.ones_like(flat[j]),), create_graph, strict, "output")
                for j in range(flat.numel())
            ]
            blocks = [
                torch.stack([row[i] for row in rows]).reshape(tuple(output.size()) + tuple(arg.size()))
                if rows
                else arg.new_zeros(tuple(output.size()) + tuple(arg.size()))
                for i, arg in enumerate(args)
            ]
            jacobians.append(_finish(blocks, create_graph, is_inputs_tuple))
    return tuple(jacobians) if is_outputs_tuple else jacobians[0]


def _check_scalar(outputs: tuple[Any, ...], is_tuple: bool, function: str) -> Any:
    if is_tuple or outputs[0].numel() != 1:
        raise RuntimeError(f"The function given to {function} should return a single Tensor with a single element")
    return outputs[0].reshape(())


def hessian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """Return the Hessian of a function with one output element: for each pair of inputs a tensor of both sizes.

    Args:
        func: a function of tensors that returns a tensor with one element.
        inputs: its arguments.
        create_graph: whether the result can be differentiated.
        strict: whether derivatives that do not depend on an input are an error rather than zeros.
        vectorize: accepted; rows are computed one by one.
        outer_jacobian_strategy: accepted; the result is the same.
    """
    is_inputs_tuple, _ = _as_tuple(inputs, "inputs", "hessian")

    def gradient(*args: Any) -> Any:
        is_tuple, outputs = _as_tuple(func(*args), "outputs of the user-provided function", "hessian")
        value = _check_scalar(outputs, is_tuple, "hessian")
        return _grad((value,), args, (torch.ones_like(value),), True, strict, "output")

    result = jacobian(gradient, inputs, create_graph=create_graph, strict=strict)
    return result if is_inputs_tuple else result[0]


def vhp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """Return the output of a function with one output element, and the product of ``v`` with its Hessian.

    Args:
        func: a function of tensors that returns a tensor with one element.
        inputs: its arguments.
        v: a vector of the size of the inputs; ``None`` will do for one element.
        create_graph: whether the results can be differentiated.
        strict: whether derivatives that do not depend on an input are an error rather than zeros.
    """
    with torch.enable_grad():
        is_inputs_tuple, args = _as_tuple(inputs, "inputs", "vhp")
        args = _prepare(args, create_graph)
        vectors = _vectors(v, args, "vhp")
        is_tuple, outputs = _as_tuple(func(*args), "outputs of the user-provided function", "vhp")
        value = _check_scalar(outputs, is_tuple, "vhp")
        gradients = _grad((value,), args, (torch.ones_like(value),), True, strict, "output")
        products = _grad(gradients, args, vectors, create_graph, strict, "derivative")
    return _finish(outputs, create_graph, False), _finish(products, create_graph, is_inputs_tuple)


def hvp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """Return the output of a function with one output element, and the product of its Hessian with ``v``.

    The Hessian is symmetric, so that this is :func:`vhp`.

    Args:
        func: a function of tensors that returns a tensor with one element.
        inputs: its arguments.
        v: a vector of the size of the inputs; ``None`` will do for one element.
        create_graph: whether the results can be differentiated.
        strict: whether derivatives that do not depend on an input are an error rather than zeros.
    """
    return vhp(func, inputs, v, create_graph, strict)
