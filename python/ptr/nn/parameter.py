"""Parameters and buffers: tensors that a module knows by name."""

from __future__ import annotations

import ptr as torch
from ptr._utils import _get_obj_state, _no_hooks, _rebuild_parameter, _rebuild_parameter_with_state

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["Buffer", "Parameter"]

_no_torch_function = torch._C._disabled_torch_function_impl


class _ParameterMeta(type(torch.Tensor)):  # type: ignore[misc]
    # Tensor subclasses keep their own class when they become parameters; the flag makes isinstance see them.
    def __instancecheck__(cls, instance: Any) -> bool:
        return super().__instancecheck__(instance) or (
            cls is Parameter and isinstance(instance, torch.Tensor) and getattr(instance, "_is_param", False)
        )


class Parameter(torch.Tensor, metaclass=_ParameterMeta):
    """A tensor that is a parameter of a module.

    Assigned as an attribute of a :class:`~ptr.nn.Module` it joins the module's parameters and appears in
    :meth:`~ptr.nn.Module.parameters`; a plain tensor does not. It is a leaf whatever grad mode it is made in.

    Args:
        data: the values; an empty tensor if not given. The parameter shares their memory.
        requires_grad: whether gradients are accumulated. Default: ``True``.

    Raises:
        RuntimeError: ``data`` is of a tensor subclass whose ``detach()`` returns another class.

    Example::

        >>> nn.Parameter(torch.zeros(2))
        Parameter containing:
        tensor([0., 0.], requires_grad=True)
    """

    def __new__(cls, data: Any = None, requires_grad: bool = True) -> Any:
        if data is None:
            data = torch.empty(0)
        if type(data) is torch.Tensor or type(data) is Parameter:
            return torch.Tensor._make_subclass(cls, data, requires_grad)
        param = data.detach().requires_grad_(requires_grad)
        if type(param) is not type(data):
            raise RuntimeError(
                f"Creating a Parameter from an instance of type {type(data).__name__} requires that detach() returns "
                f"an instance of the same type, but return type {type(param).__name__} was found instead."
            )
        param._is_param = True
        return param

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.data.clone(memory_format=torch.preserve_format), self.requires_grad)
        return memo[id(self)]

    def __repr__(self, *, tensor_contents: str | None = None) -> str:
        return "Parameter containing:\n" + super().__repr__()

    def __reduce_ex__(self, proto: Any) -> tuple[Any, ...]:
        state = _get_obj_state(self)
        if state:
            return (_rebuild_parameter_with_state, (self.data, self.requires_grad, _no_hooks(), state))
        return (_rebuild_parameter, (self.data, self.requires_grad, _no_hooks()))

    __torch_function__ = _no_torch_function


class _BufferMeta(type(torch.Tensor)):  # type: ignore[misc]
    def __instancecheck__(cls, instance: Any) -> bool:
        return super().__instancecheck__(instance) or (
            cls is Buffer and isinstance(instance, torch.Tensor) and getattr(instance, "_is_buffer", False)
        )


class Buffer(torch.Tensor, metaclass=_BufferMeta):
    """A tensor that becomes a buffer of the module it is assigned to.

    Buffers move with the module (``to``, ``half``, …) and are saved with it, but they are not parameters. The object
    made here is a plain tensor that carries the wish to be one.

    Args:
        data: the values; an empty tensor if not given.
        persistent: whether the buffer is part of the module's ``state_dict``. Default: ``True``.

    Example::

        >>> module.running_mean = nn.Buffer(torch.zeros(3))
    """

    persistent: bool

    def __new__(cls, data: Any = None, *, persistent: bool = True) -> Any:
        if data is None:
            data = torch.empty(0)
        buffer = data.detach().requires_grad_(data.requires_grad)
        buffer.persistent = persistent
        buffer._is_buffer = True
        return buffer

    __torch_function__ = _no_torch_function
