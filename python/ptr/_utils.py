"""Helpers shared by the Python layers: type names for messages and the functions that pickles of tensors and
parameters name."""

from __future__ import annotations

import sys
from collections import OrderedDict

import ptr as torch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from typing import Any


def typename(obj: Any) -> str:
    """Return the qualified name used for ``obj`` in error messages.

    Args:
        obj: any object; a tensor gives its legacy type string (``"torch.FloatTensor"``), a class or function its own
            qualified name, anything else the qualified name of its class.

    Example::

        >>> torch._utils.typename(torch.zeros(1))
        'torch.FloatTensor'
        >>> torch._utils.typename(3)
        'int'
    """
    if isinstance(obj, torch.Tensor):
        return obj.type()
    named = obj if hasattr(obj, "__qualname__") or hasattr(obj, "__name__") else type(obj)
    name = getattr(named, "__qualname__", None) or named.__name__
    module = getattr(named, "__module__", None) or ""
    return name if module in ("", "builtins") else f"{module}.{name}"


class _ExtensionSubmodules:
    """Lets the modules inside the extension be imported by name, which pickles of their functions do.

    They are attributes of ``ptr._C``; an entry in ``sys.modules`` is made when somebody asks for one.
    """

    @classmethod
    def find_spec(cls, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        parent, _, child = name.rpartition(".")
        found = getattr(torch._C, child, None) if parent == "ptr._C" else None
        # The class of specs, without importing what defines it.
        return type(torch.__spec__)(name, cls) if isinstance(found, type(sys)) else None  # type: ignore[arg-type, misc]

    @staticmethod
    def create_module(spec: ModuleSpec) -> object:
        return getattr(torch._C, spec.name.rpartition(".")[2])

    @staticmethod
    def exec_module(module: object) -> None:
        """It has been executed with the extension."""


torch._C.__path__ = []
sys.meta_path.append(_ExtensionSubmodules)  # type: ignore[arg-type]


def _rebuild_tensor(storage: Any, storage_offset: int, size: Any, stride: Any) -> torch.Tensor:
    """Make a tensor over ``storage`` (a typed storage, which knows its dtype)."""
    return _over_storage(storage, storage.dtype, storage_offset, size, stride)


def _over_storage(storage: Any, dtype: Any, storage_offset: int, size: Any, stride: Any) -> torch.Tensor:
    untyped = getattr(storage, "_untyped_storage", storage)
    return torch.empty((0,), dtype=dtype, device=untyped.device).set_(untyped, storage_offset, size, stride)


def _with_autograd(tensor: torch.Tensor, requires_grad: bool, backward_hooks: Any) -> torch.Tensor:
    tensor.requires_grad = requires_grad
    tensor._backward_hooks = backward_hooks
    return tensor


def _rebuild_tensor_v2(
    storage: Any,
    storage_offset: int,
    size: Any,
    stride: Any,
    requires_grad: bool,
    backward_hooks: Any,
    metadata: Any = None,
) -> torch.Tensor:
    """Make a tensor with its autograd flag and hooks; the function named by pickled tensors."""
    tensor = _with_metadata(_rebuild_tensor(storage, storage_offset, size, stride), metadata)
    return _with_autograd(tensor, requires_grad, backward_hooks)


def _with_metadata(tensor: torch.Tensor, metadata: Any) -> torch.Tensor:
    """Return ``tensor`` with the flags that a file records beside its data."""
    if metadata and metadata.get("conj"):
        tensor = tensor.conj()
    if metadata and metadata.get("neg"):
        tensor = torch._neg_view(tensor)
    return tensor


def _rebuild_tensor_v3(
    storage: Any,
    storage_offset: int,
    size: Any,
    stride: Any,
    requires_grad: bool,
    backward_hooks: Any,
    dtype: Any,
    metadata: Any = None,
) -> torch.Tensor:
    """Make a tensor over bytes; the function named by pickled tensors of dtypes without a storage class."""
    tensor = _with_metadata(_over_storage(storage, dtype, storage_offset, size, stride), metadata)
    return _with_autograd(tensor, requires_grad, backward_hooks)


def _rebuild_meta_tensor_no_storage(dtype: Any, size: Any, stride: Any, requires_grad: bool) -> torch.Tensor:
    """Make a tensor without memory; the function named by pickles of such."""
    return torch.empty_strided(size, stride, dtype=dtype, device="meta", requires_grad=requires_grad)


def _rebuild_wrapper_subclass(
    cls: Any, dtype: Any, size: Any, stride: Any, storage_offset: int, layout: Any, device: Any, requires_grad: bool
) -> torch.Tensor:
    """Make a tensor without memory of a class that handles every operator; the function named by pickles of such."""
    return torch.Tensor._make_wrapper_subclass(
        cls,
        size,
        strides=stride,
        dtype=dtype,
        storage_offset=storage_offset,
        layout=layout,
        device=device,
        requires_grad=requires_grad,
    )


def _rebuild_parameter(data: torch.Tensor, requires_grad: bool, backward_hooks: Any) -> torch.Tensor:
    """Make a parameter; the function named by pickled parameters without attributes of their own."""
    param = torch.nn.Parameter(data, requires_grad)
    param._backward_hooks = backward_hooks
    return param


def _rebuild_parameter_with_state(
    data: torch.Tensor, requires_grad: bool, backward_hooks: Any, state: Any
) -> torch.Tensor:
    """Make a parameter and give it back the attributes that it carried when pickled."""
    return _set_obj_state(_rebuild_parameter(data, requires_grad, backward_hooks), state)


def _get_obj_state(obj: Any) -> Any:
    """Return what has to be pickled of ``obj`` beside its data: ``__dict__``, or ``(__dict__, slots)`` where slots are
    filled."""
    getstate = getattr(type(obj), "__getstate__", None)
    if getstate is not None and getstate is not getattr(object, "__getstate__", None):
        return obj.__getstate__()
    slots: dict[str, Any] = {}
    for cls in type(obj).__mro__:
        names = cls.__dict__.get("__slots__", ())
        for name in (names,) if isinstance(names, str) else names:
            if name in ("__dict__", "__weakref__"):
                continue
            if name.startswith("__") and not name.endswith("__"):
                name = f"_{cls.__name__.lstrip('_')}{name}"
            if hasattr(obj, name):
                slots[name] = getattr(obj, name)
    return (obj.__dict__, slots) if slots else obj.__dict__


def _set_obj_state(obj: Any, state: Any) -> Any:
    """Give ``obj`` the state that :func:`_get_obj_state` returned, and return it."""
    if isinstance(state, tuple):
        if len(state) != 2:
            raise RuntimeError(f"Invalid serialized state: {state}")
        attributes, slots = state
    else:
        attributes, slots = state, None
    if attributes:
        obj.__dict__.update(attributes)
    if slots:
        for name, value in slots.items():
            setattr(obj, name, value)
    return obj


def _no_hooks() -> OrderedDict[int, Any]:
    """The empty hook table that pickles of parameters carry (hooks themselves are never pickled)."""
    return OrderedDict()


class ExceptionWrapper:
    """An exception of another process or thread: its class, and all else as text.

    Made while the exception is being handled.

    Args:
        exc_info: class, value and traceback. Default: of the exception being handled.
        where: where it happened, for the message.
    """

    def __init__(self, exc_info: Any = None, where: str = "in background") -> None:
        import traceback

        if exc_info is None:
            exc_info = sys.exc_info()
        self.exc_type = exc_info[0]
        self.exc_msg = "".join(traceback.format_exception(*exc_info))
        self.where = where

    def with_type(self, exc_type: type[BaseException]) -> ExceptionWrapper:
        """Return this with another class; the message goes on naming the first one."""
        other = ExceptionWrapper.__new__(ExceptionWrapper)
        other.exc_type, other.where = exc_type, self.where
        other.exc_msg = self.exc_msg
        return other

    def reraise(self) -> None:
        """Raise an exception of the same class, whose message holds the traceback; a ``RuntimeError`` where the class
        takes more than a message."""
        message = f"Caught {self.exc_type.__name__} {self.where}.\nOriginal {self.exc_msg}"
        if self.exc_type is KeyError:
            raise KeyError(_Verbatim(message))
        try:
            if getattr(self.exc_type, "message", None):
                error = self.exc_type(message=message)
            else:
                error = self.exc_type(message)
        except Exception:
            raise RuntimeError(message) from None
        raise error


class _Verbatim(str):
    """A text that prints as it is where Python shows its ``repr``, as in the message of a ``KeyError``."""

    __slots__ = ()

    def __repr__(self) -> str:
        return self
