"""The methods of ``Tensor`` that are written in Python.

The type itself is made by the extension module; importing this module completes it.
"""

from __future__ import annotations

import copy as _copy
import warnings
from collections import OrderedDict

from ptr import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

Tensor = _C.Tensor
_functions = _C._VariableFunctions
_has_torch_function_unary = _C._has_torch_function_unary


def _handle(method: Any, args: tuple[Any, ...], *rest: Any, **kwargs: Any) -> Any:
    """Offer a call of ``method`` to the tensors in ``args`` that override functions."""
    return _C._handle_torch_function(method, args, (*args, *rest), kwargs)


def _method(function: Any) -> Any:
    """Put a function among the methods of the type, under its own name."""
    function.__qualname__ = f"Tensor.{function.__name__}"
    setattr(Tensor, function.__name__, _C._overridable(function))
    return function


def _plain_method(function: Any) -> Any:
    """As :func:`_method`, for what no ``__torch_function__`` sees, or what offers itself."""
    function.__qualname__ = f"Tensor.{function.__name__}"
    setattr(Tensor, function.__name__, function)
    return function


# ---- autograd


@_method
def backward(
    self: Any, gradient: Any = None, retain_graph: Any = None, create_graph: bool = False, inputs: Any = None
) -> None:
    """Compute the gradients of this tensor with respect to the leaves of its graph, and add them to their ``.grad``.

    Args:
        gradient: the gradient with respect to this tensor; may be left out for a tensor with one element.
        retain_graph: whether the graph can be used again. Default: the value of ``create_graph``.
        create_graph: whether the gradients can be differentiated themselves.
        inputs: the leaves to compute gradients for. Default: all.

    Example::

        >>> x = torch.ones(2, requires_grad=True)
        >>> (x * 3).sum().backward()
        >>> x.grad
        tensor([3., 3.])
    """
    from ptr.autograd import backward

    backward(self, gradient, retain_graph, create_graph, inputs=inputs)


@_method
def register_hook(self: Any, hook: Callable[[Any], Any]) -> Any:
    """Register ``hook(grad) -> Tensor or None``, called when the gradient of this tensor has been computed.

    Args:
        hook: must not change its argument; what it returns replaces the gradient.

    Returns:
        a handle whose ``remove()`` takes the hook out again.
    """
    if not self.requires_grad:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    return _C._autograd._register_tensor_hook(self, hook)


@_method
def register_post_accumulate_grad_hook(self: Any, hook: Callable[[Any], None]) -> Any:
    """Register ``hook(param)``, called when the gradient of this leaf has been added to its ``.grad``.

    Args:
        hook: gets this tensor.

    Returns:
        a handle whose ``remove()`` takes the hook out again.
    """
    if not self.requires_grad:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    if self.grad_fn is not None:
        raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
    return _C._autograd._register_post_accumulate_grad_hook(self, hook)


# ---- printing


@_method
def __repr__(self: Any, *, tensor_contents: str | None = None) -> str:
    from ptr._tensor_str import _str

    return _str(self, tensor_contents=tensor_contents)


@_method
def __format__(self: Any, format_spec: str) -> str:
    if self.dim() == 0 and not self.is_meta and type(self) is Tensor:
        return format(self.detach().item(), format_spec)
    return object.__format__(self, format_spec)


# ---- copies and pickles


@_method
def __deepcopy__(self: Any, memo: dict[int, Any]) -> Any:
    if not self.is_leaf:
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment.  "
            "If you were attempting to deepcopy a module, this may be because a parameter is computed from others."
        )
    if id(self) in memo:
        return memo[id(self)]
    with _no_grad():
        if self.is_meta or self.layout is not _C.strided or _is_wrapper(self):
            new = self.clone()
        else:
            # Tensors that share memory go on sharing it.
            storage = _deepcopy_storage(self.untyped_storage(), memo)
            new = _functions.empty(0, dtype=self.dtype, device=self.device)
            new.set_(storage, self.storage_offset(), self.size(), self.stride())
            if self.is_conj():
                new = new.conj()
            if self.is_neg():
                new = _functions._neg_view(new)
        if _is_wrapper(self):
            if type(new) is not type(self):
                raise RuntimeError(
                    "The default implementation of __deepcopy__() for wrapper subclasses only works for subclass types "
                    "that properly implement clone() and for which that function returns another instance of the same "
                    f"subclass, but clone() returned {type(new).__name__} for {type(self).__name__}."
                )
        elif type(self) is not Tensor:
            new = Tensor._make_subclass(type(self), new)
        if self.requires_grad:
            new.requires_grad_()
        if self.grad is not None:
            new.grad = _copy.deepcopy(self.grad, memo)
        if self.__dict__:
            new.__dict__ = _copy.deepcopy(self.__dict__, memo)
    memo[id(self)] = new
    return new


def _is_wrapper(self: Any) -> bool:
    """Whether a tensor has no memory because its class handles every operator."""
    return type(self) is not Tensor and not self.is_meta and not _C._has_storage(self)


def _deepcopy_storage(storage: Any, memo: dict[Any, Any]) -> Any:
    """Copy a storage, once per call of ``deepcopy``."""
    key = ("storage", storage._cdata)
    if key not in memo:
        memo[key] = storage.clone()
        # The memo keeps the original, so that its identity is not used again.
        memo[("kept", storage._cdata)] = storage
    return memo[key]


def _no_grad() -> Any:
    from ptr.autograd.grad_mode import no_grad

    return no_grad()


@_plain_method
def __reduce_ex__(self: Any, proto: int) -> Any:
    if type(self) is Tensor and not self.__dict__:
        return _reduce(self)
    if _has_torch_function_unary(self):
        return _handle(Tensor.__reduce_ex__, (self,), proto)
    from ptr._utils import _get_obj_state

    function, args = _reduce(self)
    return (_rebuild_from_type_v2, (function, type(self), args, _get_obj_state(self)))


def _reduce(self: Any) -> tuple[Any, tuple[Any, ...]]:
    """How pickles describe a tensor: by its storage, or by what takes the place of one."""
    from ptr import _utils
    from ptr.storage import _STORAGE_CLASSES, TypedStorage
    from ptr.utils.hooks import warn_if_has_hooks

    warn_if_has_hooks(self)
    size, stride, requires_grad = tuple(self.size()), self.stride(), self.requires_grad
    if _is_wrapper(self):
        args = (type(self), self.dtype, size, stride, self.storage_offset(), self.layout, self.device, requires_grad)
        return (_utils._rebuild_wrapper_subclass, args)
    if self.is_meta:
        return (_utils._rebuild_meta_tensor_no_storage, (self.dtype, size, stride, requires_grad))
    backward_hooks: OrderedDict[int, Any] = OrderedDict()
    plain = self.detach().resolve_conj().resolve_neg() if self.is_conj() or self.is_neg() else self
    view = (plain.storage_offset(), tuple(plain.size()), plain.stride(), requires_grad, backward_hooks)
    if self.dtype not in _STORAGE_CLASSES:
        # Files name the bytes; only the tensor knows what they are.
        return (_utils._rebuild_tensor_v3, (plain.untyped_storage(), *view, self.dtype))
    storage = TypedStorage(wrap_storage=plain.untyped_storage(), dtype=self.dtype, _internal=True)
    return (_utils._rebuild_tensor_v2, (storage, *view))


def _rebuild_from_type_v2(function: Any, type_: Any, args: Any, state: Any) -> Any:
    """Make a tensor of a subclass, or with attributes; the function named by pickles of such."""
    from ptr._utils import _set_obj_state

    result = function(*args)
    if type(result) is not type_:
        result = result.as_subclass(type_)
    setstate = getattr(type(result), "__setstate__", None)
    if setstate is not None and setstate is not getattr(Tensor, "__setstate__", None):
        result.__setstate__(state)
        return result
    return _set_obj_state(result, state)


@_plain_method
def __setstate__(self: Any, state: Any) -> None:
    if not self.is_leaf:
        raise RuntimeError("__setstate__ can be only called on leaf Tensors")
    if isinstance(state, dict):
        self.__dict__.update(state)
    elif len(state) == 4:
        self.set_(*state)
    else:
        self.data, self.requires_grad, self._backward_hooks = state[0], state[1], state[-1]


@_plain_method
def as_subclass(self: Any, cls: type) -> Any:
    """Return this tensor as an instance of the subclass ``cls``, with the same data and graph.

    Args:
        cls: a subclass of ``Tensor``.
    """
    return _C._as_subclass(self, cls)


# ---- protocols


@_method
def __contains__(self: Any, element: Any) -> bool:
    if isinstance(element, (Tensor, int, float, complex)):
        return bool((element == self).any().item())
    raise RuntimeError(f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(element)}.")


@_method
def __reversed__(self: Any) -> Any:
    return self if self.dim() == 0 else self.flip(0)


@_method
def __array__(self: Any, dtype: Any = None, copy: bool | None = None) -> Any:
    array = self.numpy()
    if dtype is not None and array.dtype != dtype:
        return array.astype(dtype, copy=False)
    return array.copy() if copy else array


@_plain_method
def __array_wrap__(self: Any, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
    if array.dtype == bool:
        # Ufuncs of comparison give bool, which older programs expect as bytes.
        array = array.astype("uint8")
    return _C.from_numpy(array) if array.ndim else _C.tensor(array)


@_method
def __dlpack__(self: Any, **kwargs: Any) -> Any:
    """Return the DLPack capsule that shares this tensor's memory."""
    from ptr.utils.dlpack import _dlpack

    return _dlpack(self, **kwargs)


@_method
def __dlpack_device__(self: Any) -> tuple[int, int]:
    """Return DLPack's numbers of the device type and the device."""
    if self.device.type == "meta":
        raise ValueError("Unknown device type meta for Dlpack")
    return _C._dlpack_device(self)


@_method
def __dir__(self: Any) -> list[str]:
    return sorted({*dir(type(self)), *self.__dict__})


def __torch_function__(cls: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """Call ``func`` and make results that are plain tensors instances of ``cls``.

    What subclasses inherit: an operation on a subclass gives the subclass.
    """
    if not all(issubclass(cls, type_) for type_ in types):
        return NotImplemented
    with _C.DisableTorchFunctionSubclass():
        result = func(*args, **(kwargs or {}))
    return result if func in _keep_types() else _convert(result, cls)


_KEPT: set[Any] = set()


def _keep_types() -> set[Any]:
    """Functions whose results are not made instances of the subclass: reads of other tensors' attributes."""
    if not _KEPT:
        for name in ("grad", "_grad_fn", "requires_grad", "grad_fn"):
            attribute = getattr(Tensor, name)
            _KEPT.update((attribute.__get__, attribute.__set__))
    return _KEPT


def _convert(result: Any, cls: Any) -> Any:
    if cls is Tensor:
        return result
    if isinstance(result, Tensor) and not isinstance(result, cls):
        return result.as_subclass(cls)
    if isinstance(result, (tuple, list)):
        items = [_convert(item, cls) for item in result]
        # Named tuples of operators take one sequence, those of Python one argument per field.
        return type(result)(*items) if hasattr(result, "_fields") else type(result)(items)
    return result


def __init_subclass__(cls: Any, **kwargs: Any) -> None:
    """Results of a class that overrides only ``__torch_dispatch__`` are what that returns, not wrapped once more."""
    super(Tensor, cls).__init_subclass__(**kwargs)
    function = getattr(cls.__torch_function__, "__func__", None)
    if function is __torch_function__ and cls.__torch_dispatch__ is not Tensor.__torch_dispatch__:
        cls.__torch_function__ = _C._disabled_torch_function_impl


Tensor.__torch_function__ = classmethod(__torch_function__)
Tensor.__torch_dispatch__ = _C._disabled_torch_dispatch_impl
Tensor.__init_subclass__ = classmethod(__init_subclass__)


# ---- methods over operators


@_method
def split(self: Any, split_size: Any, dim: int = 0) -> Any:
    """Split into pieces along a dimension; see :func:`torch.split`."""
    from ptr.functional import split

    return split(self, split_size, dim)


@_method
def unique(
    self: Any, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """Return the different elements. See :func:`ptr.unique`."""
    if _has_torch_function_unary(self):
        return _handle(Tensor.unique, (self,), sorted, return_inverse, return_counts, dim)
    from ptr import functional

    return functional.unique(self, sorted, return_inverse, return_counts, dim)


@_method
def unique_consecutive(
    self: Any, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """Return the first of each run of equal elements. See :func:`ptr.unique_consecutive`."""
    if _has_torch_function_unary(self):
        return _handle(Tensor.unique_consecutive, (self,), return_inverse, return_counts, dim)
    from ptr import functional

    return functional.unique_consecutive(self, return_inverse, return_counts, dim)


@_method
def norm(self: Any, p: Any = "fro", dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    """Return a norm; see :func:`torch.norm`."""
    from ptr.functional import norm

    return norm(self, p, dim, keepdim, dtype=dtype)


@_method
def nonzero(self: Any, *, as_tuple: bool = False) -> Any:
    """Return the indices of the elements that are not zero; see :func:`torch.nonzero`."""
    return Tensor.nonzero_numpy(self) if as_tuple else _functions.nonzero(self)


@_method
def storage(self: Any) -> Any:
    """Return the memory as elements of the tensor's dtype."""
    from ptr.storage import TypedStorage

    return TypedStorage(wrap_storage=self.untyped_storage(), dtype=self.dtype, _internal=True)


@_method
def is_shared(self: Any) -> bool:
    """Return whether other processes can see the memory, see :meth:`share_memory_`."""
    if self.device.type == "cuda":
        return True
    from ptr import _shared_memory

    return not self.is_meta and _shared_memory.is_shared(self.untyped_storage())


@_method
def share_memory_(self: Any) -> Any:
    """Move the memory, in place, to where other processes can see it; all tensors over it follow.

    Its size can not be changed from then on. Tensors sent to other processes (:mod:`ptr.multiprocessing`) are moved by
    that; those that a forked child inherits have to be before.

    Returns:
        this tensor.

    Example::

        >>> x = torch.zeros(3).share_memory_()
        >>> x.is_shared()
        True
    """
    if not self.is_meta and self.device.type != "cuda":
        from ptr import _shared_memory

        _shared_memory.share(self.untyped_storage())
    return self


@_method
def dim_order(self: Any) -> tuple[int, ...]:
    """Return the dimensions from the outermost in memory to the innermost."""
    strides = self.stride()
    return tuple(sorted(range(self.dim()), key=lambda d: (-strides[d], d)))


@_method
def is_pinned(self: Any, device: Any = None) -> bool:
    """Return whether the memory is page-locked, so that an accelerator may read it directly.

    Args:
        device: deprecated; another kind of device than the accelerator's has no page-locked memory.
    """
    if device is not None:
        warnings.warn(
            "The argument 'device' of Tensor.is_pinned() is deprecated. Please do not pass this argument.",
            DeprecationWarning,
            stacklevel=2,
        )
        if _C.device(device).type in ("cpu", "meta"):
            return False
    return self._is_pinned()


@_method
def pin_memory(self: Any, device: Any = None) -> Any:
    """Return this tensor in page-locked memory: itself if it is there already, else a copy.

    Args:
        device: deprecated, and an error if it is no accelerator.

    Raises:
        RuntimeError: if there is no accelerator that could read such memory.
    """
    if device is not None:
        warnings.warn(
            "The argument 'device' of Tensor.pin_memory() is deprecated. Please do not pass this argument.",
            DeprecationWarning,
            stacklevel=2,
        )
        kind = _C.device(device).type
        if kind in ("cpu", "meta"):
            raise RuntimeError(f"{kind.upper()} device type not an accelerator.")
    if self.is_pinned():
        return self
    return _functions.empty_like(self, pin_memory=True).copy_(self)


@_plain_method
def __rdiv__(self: Any, other: Any) -> Any:
    return self.reciprocal() * other
