"""``__torch_dispatch__``: modes that see every operator, and helpers for tensor subclasses that do."""

from __future__ import annotations

from contextlib import contextmanager

from ptr import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

__all__ = [
    "BaseTorchDispatchMode",
    "TorchDispatchMode",
    "is_in_torch_dispatch_mode",
    "is_traceable_wrapper_subclass",
    "is_traceable_wrapper_subclass_type",
    "return_and_correct_aliasing",
    "transform_subclass",
]


def is_in_torch_dispatch_mode(include_infra_modes: bool = True) -> bool:
    """Return whether a mode is active on this thread."""
    return _C._len_torch_dispatch_stack() > 0


class TorchDispatchMode:
    """Context in which every operator goes through ``__torch_dispatch__``, below autograd.

    Within ``__torch_dispatch__`` the mode is off: calling ``func`` there goes on with the operator.

    Example::

        >>> class Log(TorchDispatchMode):
        ...     def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        ...         print(func)
        ...         return func(*args, **(kwargs or {}))
        >>> with Log():
        ...     torch.ones(2) + 1
    """

    supports_higher_order_operators = False

    def __init__(self, _dispatch_key: Any = None) -> None:
        if _dispatch_key is not None:
            raise NotImplementedError("TorchDispatchMode: modes with a dispatch key of their own are not available")

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Handle a call of the operator ``func``; ``NotImplemented`` leaves it to the arguments' classes."""
        raise NotImplementedError

    def __enter__(self) -> TorchDispatchMode:
        _push_mode(self)
        return self

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        _pop_mode()

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> Any:
        """Return an instance; to be entered with ``with``. The older way to write ``cls(...)``."""
        return cls(*args, **kwargs)

    @classmethod
    def is_infra_mode(cls) -> bool:
        """Return ``False``: this is a user's mode."""
        return False


class BaseTorchDispatchMode(TorchDispatchMode):
    """A mode that calls every operator as it is."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


def _get_current_dispatch_mode() -> Any:
    """The innermost mode, or ``None``."""
    depth = _C._len_torch_dispatch_stack()
    return _C._get_dispatch_stack_at(depth - 1) if depth > 0 else None


def _get_current_dispatch_mode_stack() -> list[Any]:
    """The modes of this thread, outermost first."""
    return [_C._get_dispatch_stack_at(i) for i in range(_C._len_torch_dispatch_stack())]


def _push_mode(mode: Any) -> None:
    _C._push_on_torch_dispatch_stack(mode)


def _pop_mode(k: Any = None) -> Any:
    return _C._pop_torch_dispatch_stack(k)


@contextmanager
def _pop_mode_temporarily(k: Any = None) -> Iterator[Any]:
    """Context in which the innermost mode is off."""
    mode = _pop_mode(k)
    try:
        yield mode
    finally:
        _push_mode(mode)


@contextmanager
def _disable_current_modes() -> Iterator[list[Any]]:
    """Context in which all modes are off."""
    modes = [_pop_mode() for _ in range(_C._len_torch_dispatch_stack())]
    try:
        yield modes
    finally:
        for mode in reversed(modes):
            _push_mode(mode)


# ---- subclasses that wrap tensors


def is_traceable_wrapper_subclass(t: Any) -> bool:
    """Return whether ``t`` is a tensor subclass that can be taken apart and put together again.

    Such a class has ``__tensor_flatten__`` and ``__tensor_unflatten__``.

    Args:
        t: any object.
    """
    is_subclass = isinstance(t, _C.Tensor) and type(t) is not _C.Tensor
    return is_subclass and hasattr(t, "__tensor_flatten__") and hasattr(t, "__tensor_unflatten__")


def is_traceable_wrapper_subclass_type(t: type) -> bool:
    """Return whether instances of a class satisfy :func:`is_traceable_wrapper_subclass`."""
    is_subclass = issubclass(t, _C.Tensor) and t is not _C.Tensor
    return is_subclass and hasattr(t, "__tensor_flatten__") and hasattr(t, "__tensor_unflatten__")


def transform_subclass(
    t: Any, callback: Callable[[str, Any], Any], outer_size: Any = None, outer_stride: Any = None
) -> Any:
    """Return a wrapper like ``t`` around transformed inner tensors.

    Args:
        t: a traceable wrapper.
        callback: ``callback(name, inner_tensor)`` gives the new inner tensor.
        outer_size: the size of the result. Default: that of ``t``.
        outer_stride: the strides of the result. Default: those of ``t``.
    """
    outer_size = t.size() if outer_size is None else outer_size
    outer_stride = t.stride() if outer_stride is None else outer_stride
    names, context = t.__tensor_flatten__()
    inner = {name: callback(name, getattr(t, name)) for name in names}
    result = type(t).__tensor_unflatten__(inner, context, outer_size, outer_stride)
    if result.shape != outer_size:
        raise AssertionError(
            f"Expected return value from {type(t)}.__tensor_unflatten__() to have shape equal to {outer_size}, but "
            f"got: "
            f"{result.shape}"
        )
    if result.stride() != outer_stride:
        raise AssertionError(
            f"Expected return value from {type(t)}.__tensor_unflatten__() to have strides equal to {outer_stride}, "
            f"but got: "
            f"{result.stride()}"
        )
    return result


# ---- aliasing


def _as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _argument_of_set(schema: Any, alias: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The argument that a return shares its alias set with."""
    for index, argument in enumerate(schema.arguments):
        if argument.alias_set & alias:
            return args[index] if index < len(args) else kwargs.get(argument.name)
    return None


def return_and_correct_aliasing(func: Any, args: Any, kwargs: Any, out: Any) -> Any:
    """Return what an operator should return according to its schema, for wrappers.

    An operator in place returns its argument itself and not a new wrapper. Views need no correction: wrappers have no
    memory
    of their own that could be shared.

    Args:
        func: the operator.
        args: its arguments.
        kwargs: its arguments by name.
        out: what ``__torch_dispatch__`` would return.
    """
    schema = func._schema
    kwargs = kwargs or {}
    returns = schema.returns
    if not any(ret.alias_set for ret in returns):
        return out
    outs = _as_list(out) if len(returns) != 1 else [out]
    corrected = []
    for ret, value in zip(returns, outs, strict=False):
        argument = _argument_of_set(schema, ret.alias_set, args, kwargs) if ret.alias_set else None
        if ret.is_write and argument is not None:
            corrected.append(argument)
            continue
        corrected.append(value)
    return corrected[0] if len(returns) == 1 else type(out)(corrected)
