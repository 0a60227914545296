"""Automatic differentiation: backward passes, custom functions, and the modes that steer recording."""

from __future__ import annotations

import sys
import types
import warnings

from ptr import _C
from ptr.autograd import anomaly_mode, function, grad_mode, graph
from ptr.autograd._engine import ImperativeEngine, set_multithreading_enabled
from ptr.autograd.anomaly_mode import detect_anomaly, set_detect_anomaly
from ptr.autograd.function import Function, NestedIOFunction
from ptr.autograd.grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled
from ptr.autograd.graph import GradientEdge

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "Function",
    "GradcheckError",
    "NestedIOFunction",
    "Variable",
    "anomaly_mode",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "function",
    "functional",
    "grad",
    "grad_mode",
    "gradcheck",
    "gradgradcheck",
    "graph",
    "inference_mode",
    "no_grad",
    "set_detect_anomaly",
    "set_grad_enabled",
    "set_multithreading_enabled",
]

_Tensor = _C.Tensor
_backward = _C._autograd._backward
_grad = _C._autograd._grad
_has_torch_function = _C._has_torch_function

# Imported when first touched: these need the whole package.
_LAZY = {
    "GradcheckError": "gradcheck",
    "gradcheck": "gradcheck",
    "gradgradcheck": "gradcheck",
    "functional": "functional",
}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        from importlib import import_module

        import_module(f"ptr.autograd.{_LAZY[name]}")
        return globals()[name]
    raise AttributeError(f"module 'ptr.autograd' has no attribute '{name}'")


class _Package(types.ModuleType):
    """This module, in which ``gradcheck`` is the function although a submodule has the name, too."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "gradcheck" and isinstance(value, types.ModuleType):
            # What importing the submodule, in whatever way, does in the end.
            for function in ("GradcheckError", "gradcheck", "gradgradcheck"):
                super().__setattr__(function, getattr(value, function))
        else:
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def _as_tuple(values: Any) -> tuple[Any, ...]:
    """One tensor or edge as a tuple of one; a sequence of them as a tuple."""
    # An edge is a named tuple itself.
    return (values,) if isinstance(values, (_Tensor, GradientEdge)) else tuple(values)


def _grads_as_tuple(grads: Any, count: int) -> tuple[Any, ...]:
    if grads is None:
        return (None,) * count
    return (grads,) if isinstance(grads, _Tensor) else tuple(grads)


def backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Any = None,
    inputs: Any = None,
) -> None:
    """Compute the sum of gradients of tensors with respect to the leaves of their graphs, into the leaves' ``.grad``.

    Args:
        tensors: a tensor, or a sequence of them.
        grad_tensors: the gradient with respect to each tensor; ``None`` will do for tensors with one element.
        retain_graph: whether the graph can be used again. Default: the value of ``create_graph``.
        create_graph: whether the gradients can be differentiated themselves.
        grad_variables: the older name of ``grad_tensors``.
        inputs: the leaves to compute gradients for. Default: all.

    Example::

        >>> x = torch.ones(2, requires_grad=True)
        >>> torch.autograd.backward([(x * 2).sum(), (x * 3).sum()])
        >>> x.grad
        tensor([5., 5.])
    """
    if grad_variables is not None:
        warnings.warn("`grad_variables` is deprecated. Use `grad_tensors` instead.", FutureWarning, stacklevel=2)
        if grad_tensors is not None:
            raise RuntimeError(
                "`grad_tensors` and `grad_variables` (deprecated) arguments both passed to `backward()`. "
                "Please only use `grad_tensors`."
            )
        grad_tensors = grad_variables
    tensors = _as_tuple(tensors)
    grads = _grads_as_tuple(grad_tensors, len(tensors))
    _backward(tensors, grads, retain_graph, create_graph, None if inputs is None else _as_tuple(inputs))


def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Any, ...]:
    """Compute and return the sum of gradients of outputs with respect to the inputs.

    Args:
        outputs: a tensor, or a sequence of them.
        inputs: the tensors (or edges of the graph) to differentiate by. Their ``.grad`` is not touched.
        grad_outputs: the gradient with respect to each output; ``None`` will do for outputs with one element.
        retain_graph: whether the graph can be used again. Default: the value of ``create_graph``.
        create_graph: whether the gradients can be differentiated themselves.
        only_inputs: must be ``True``.
        allow_unused: whether inputs that the outputs do not depend on give ``None``; otherwise they are an error.
        is_grads_batched: not available.
        materialize_grads: whether inputs that the outputs do not depend on give zeros.

    Example::

        >>> x = torch.tensor(3.0, requires_grad=True)
        >>> torch.autograd.grad(x**2, x)
        (tensor(6.),)
    """
    outputs = _as_tuple(outputs)
    inputs = _as_tuple(inputs)
    involved = outputs + inputs
    if _has_torch_function(involved):
        return _C._handle_torch_function(
            grad,
            involved,
            (outputs, inputs),
            {
                "grad_outputs": grad_outputs,
                "retain_graph": retain_graph,
                "create_graph": create_graph,
                "only_inputs": only_inputs,
                "allow_unused": allow_unused,
                "is_grads_batched": is_grads_batched,
                "materialize_grads": materialize_grads,
            },
        )
    if not only_inputs:
        warnings.warn(
            "only_inputs argument is deprecated and is ignored now (defaults to True). To accumulate gradient for "
            "other parts of the graph, please use torch.autograd.backward.",
            FutureWarning,
            stacklevel=2,
        )
    if is_grads_batched:
        raise NotImplementedError("grad(): is_grads_batched=True needs vmap, which is not available yet")
    grads = _grads_as_tuple(grad_outputs, len(outputs))
    return _grad(outputs, inputs, grads, retain_graph, create_graph, allow_unused, materialize_grads)


class _VariableMeta(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, _Tensor)


class Variable(metaclass=_VariableMeta):
    """Tensors under the name that older programs use: ``Variable(tensor)`` is the tensor.

    Args:
        data: a tensor.
        requires_grad: whether its gradient is computed.
    """

    _execution_engine = ImperativeEngine()

    def __new__(cls, data: Any = None, requires_grad: bool = False, volatile: Any = None) -> Any:
        if data is None:
            data = _C._VariableFunctions.empty(0)
        return data.detach().requires_grad_(requires_grad)


def variable(*args: Any, **kwargs: Any) -> Any:
    """Raise an error that names the replacement."""
    raise RuntimeError("torch.autograd.variable(...) is deprecated, use torch.tensor(...) instead")
