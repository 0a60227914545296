"""Operators made of functions: ``custom_op``."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ptr import _C
from ptr._library.autograd import _autograd_kernel, _check_functional
from ptr._library.fake import _fake_kernel
from ptr._library.infer_schema import infer_schema
from ptr._library.library import Library
from ptr._library.utils import _key_of, _overload, _parse_qualname, _storage_id, _tensors

__all__ = ["CustomOpDef", "custom_op"]

_definitions: dict[str, CustomOpDef] = {}


def custom_op(
    name: str,
    fn: Callable[..., Any] | None = None,
    /,
    *,
    mutates_args: Any,
    device_types: Any = None,
    schema: str | None = None,
    tags: Any = None,
) -> Any:
    """Make an operator of a function. A decorator without ``fn``.

    Args:
        name: ``"namespace::name"``.
        fn: the function; it must not return its arguments or views of them.
        mutates_args: the names of the parameters that it writes to; ``"unknown"`` for all tensors.
        device_types: the device types that it works on. Default: all.
        schema: the schema. Default: what :func:`infer_schema` finds.
        tags: names of properties.

    Returns:
        a callable :class:`CustomOpDef`.

    Example::

        >>> @torch.library.custom_op("mylib::twice", mutates_args=())
        ... def twice(x: torch.Tensor) -> torch.Tensor:
        ...     return x * 2
        >>> @twice.register_fake
        ... def _(x):
        ...     return torch.empty_like(x)
    """

    def make(function: Callable[..., Any]) -> CustomOpDef:
        namespace, op_name = _parse_qualname(name, "custom_op()")
        text = infer_schema(function, mutates_args=mutates_args) if schema is None else schema
        return CustomOpDef(namespace, op_name, text, function, device_types, tags)

    return make if fn is None else make(fn)


class CustomOpDef:
    """An operator made by :func:`custom_op`."""

    def __init__(
        self, namespace: str, name: str, schema: str, fn: Callable[..., Any], device_types: Any = None, tags: Any = None
    ):
        self._namespace = namespace
        self._name = name
        self._qualname = f"{namespace}::{name}"
        self._schema = schema
        self._init_fn = fn
        self._fake: Callable[..., Any] | None = None
        self._backward: Callable[..., Any] | None = None
        self._setup_context: Callable[..., Any] | None = None
        previous = _definitions.pop(self._qualname, None)
        if previous is not None:
            previous._lib._destroy()
        self._lib = Library(namespace, "FRAGMENT")
        self._lib.define(name + schema, tags=tags or ())
        self._opoverload = _overload(self._qualname)
        self._lib.impl(name, self._missing_fake, "Meta")
        self._lib.impl(name, _autograd_kernel_of(self), "Autograd", with_keyset=True)
        self.register_kernel(device_types, fn)
        _definitions[self._qualname] = self

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._opoverload(*args, **kwargs)

    def _missing_fake(self, *args: Any, **kwargs: Any) -> Any:
        if self._opoverload._schema.returns:
            raise NotImplementedError(
                f"There was no fake impl registered for {self!r}. This is necessary for the operator to work on "
                f"tensors without data. Please use `{self._init_fn.__name__}.register_fake` to add a fake impl."
            )
        return None

    def register_kernel(self, device_types: Any, fn: Callable[..., Any] | None = None, /) -> Any:
        """Register a kernel for device types; ``None`` for all. A decorator without ``fn``."""

        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            types = (
                ("default",)
                if device_types is None
                else (device_types,)
                if isinstance(device_types, str)
                else device_types
            )
            checked = self._checked(function)
            for type_ in types:
                # A kernel for all devices serves those that have computations; Meta has its own.
                keys = ("CompositeExplicitAutograd",) if type_ == "default" else (_key_of(type_),)
                for key in keys:
                    self._lib.impl(self._name, checked, key, allow_override=True)
            return function

        return register if fn is None else register(fn)

    def _checked(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The kernel with the check that results are fresh memory."""

        @functools.wraps(function)
        def kernel(*args: Any, **kwargs: Any) -> Any:
            result = function(*args, **kwargs)
            storages = {_storage_id(a) for a in _tensors((*args, *kwargs.values()))} - {None}
            for tensor in _tensors(result if isinstance(result, tuple) else (result,)):
                storage = _storage_id(tensor)
                if storage in storages:
                    raise RuntimeError(
                        f"{self._qualname} (with implementation in {function.__module__}): The output of this "
                        "custom operator (1) must not also be an input to this custom operator and (2) may not alias "
                        "any inputs to this custom operator or other returns. The most common way to trigger this "
                        "error is if we have y = custom_op(x) and y and x are the same Tensor. Please instead return "
                        "a clone of the offending output tensor(s) (e.g. return x.clone()) or refactor the custom "
                        "operator to not return y."
                    )
                storages.add(storage)
            return result

        return kernel

    def register_fake(self, fn: Callable[..., Any], /) -> Callable[..., Any]:
        """Register what the operator returns on tensors without data. A decorator."""
        self._fake = fn

        self._lib.impl(self._name, _fake_kernel(fn), "Meta", allow_override=True)
        return fn

    def register_autograd(
        self, backward: Callable[..., Any], /, *, setup_context: Callable[..., Any] | None = None
    ) -> None:
        """Register the derivative; see :func:`register_autograd`."""
        _check_functional(self._opoverload._schema)
        self._backward = backward
        self._setup_context = setup_context
        kernel = _autograd_kernel(self._opoverload, backward, setup_context)
        self._lib.impl(self._name, kernel, "Autograd", with_keyset=True, allow_override=True)

    def register_vmap(self, func: Any = None) -> Any:
        """Raise an error: batching rules are not available."""
        raise NotImplementedError("CustomOpDef.register_vmap: vmap is not available")

    def register_torch_dispatch(self, torch_dispatch_class: Any, fn: Any = None, /) -> Any:
        """Raise an error; see :func:`torch.library.register_torch_dispatch`."""
        from ptr.library import register_torch_dispatch

        return register_torch_dispatch(self, torch_dispatch_class, fn)


def _autograd_kernel_of(definition: CustomOpDef) -> Callable[..., Any]:
    """What calls of an operator without a registered derivative do when a gradient is needed: fail in backward."""

    def no_derivative(ctx: Any, *grads: Any) -> Any:
        raise RuntimeError(
            f"Trying to backward through {definition._opoverload} but no autograd formula was registered. Please use "
            "register_autograd to add one."
        )

    mutable = {a.name for a in definition._opoverload._schema.arguments if a.is_write}
    if not mutable:
        return _autograd_kernel(definition._opoverload, no_derivative, None)
    overload = definition._opoverload
    names = [a.name for a in overload._schema.arguments]

    def kernel(keyset: Any, *args: Any, **kwargs: Any) -> Any:
        with _C._AutoDispatchBelowAutograd():
            result = overload.redispatch(keyset & _C._after_autograd_keyset, *args, **kwargs)
        for name, value in [*zip(names, args, strict=False), *kwargs.items()]:
            if name in mutable:
                for tensor in _tensors((value,)):
                    _C._autograd._increment_version(tensor)
        return result

    return kernel
