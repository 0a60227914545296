"""Operators defined in Python: ``Library``, ``custom_op`` and what registers kernels for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ptr._library.autograd import _autograd_kernel, _check_functional
from ptr._library.custom_ops import CustomOpDef, _definitions, custom_op
from ptr._library.fake import _fake_kernel, get_ctx
from ptr._library.infer_schema import infer_schema
from ptr._library.library import Library, _library_for, fallthrough_kernel
from ptr._library.opcheck import OpCheckError, opcheck
from ptr._library.utils import _dot, _key_of, _overload, _parse_qualname

__all__ = [
    "CustomOpDef",
    "Library",
    "OpCheckError",
    "custom_op",
    "define",
    "fallthrough_kernel",
    "get_ctx",
    "impl",
    "impl_abstract",
    "infer_schema",
    "opcheck",
    "register_autograd",
    "register_fake",
    "register_kernel",
    "register_torch_dispatch",
]


def define(qualname: str, schema: Any = None, *, lib: Library | None = None, tags: Any = ()) -> Any:
    """Define an operator.

    Args:
        qualname: ``"namespace::name"``.
        schema: ``"(Tensor x) -> Tensor"``.
        lib: the library that owns the definition. Default: one that lives as long as the process.
        tags: names of properties.
    """
    if isinstance(qualname, Library):
        # The older form: ``define(lib, schema, alias_analysis)``.
        library = qualname
        name = library.define(schema, lib or "", tags=tags)  # type: ignore[arg-type]

        def wrap(f: Callable[..., Any]) -> Callable[..., Any]:
            library.impl(name, f)
            return f

        return wrap
    namespace, name = _parse_qualname(qualname, "define(qualname, schema)")
    if not isinstance(schema, str):
        raise ValueError(f"define(qualname, schema): expected schema to be an instance of string, got {type(schema)}")
    _library_for(namespace, lib).define(name + schema, tags=tags)
    return None


def impl(qualname: Any, types: Any, func: Callable[..., Any] | None = None, *, lib: Library | None = None) -> Any:
    """Register a kernel for device types. A decorator without ``func``.

    Args:
        qualname: ``"namespace::name"``.
        types: a device type (``"cpu"``), several, or ``"default"`` for all.
        func: the kernel.
        lib: the library that owns the registration. Default: one that lives as long as the process.
    """
    if isinstance(qualname, Library):
        # The older form: ``impl(lib, name, dispatch_key)``.
        library, name, key = qualname, types, func or ""

        def wrap(f: Callable[..., Any]) -> Callable[..., Any]:
            library.impl(name, f, key)  # type: ignore[arg-type]
            return f

        return wrap
    types = (types,) if isinstance(types, str) else tuple(types)
    keys = [_key_of(type_) for type_ in types]

    def register(f: Callable[..., Any]) -> Callable[..., Any]:
        namespace, name = _parse_qualname(qualname, "impl()")
        library = _library_for(namespace, lib)
        for key in keys:
            library.impl(name, f, key)
        return f

    if func is None:
        return register
    register(func)
    return None


def register_kernel(
    op: Any, device_types: Any, func: Callable[..., Any] | None = None, /, *, lib: Library | None = None
) -> Any:
    """Register a kernel for device types. A decorator without ``func``.

    Args:
        op: a name, an operator of ``torch.ops``, or what :func:`custom_op` returned.
        device_types: a device type, several, or ``None`` for all.
        func: the kernel.
        lib: the library that owns the registration. Default: one that lives as long as the process.
    """
    definition = _definitions.get(_qualname(op))
    if definition is not None:
        return definition.register_kernel(device_types, func)
    return impl(_qualname(op), "default" if device_types is None else device_types, func, lib=lib)


def _qualname(op: Any) -> str:
    if isinstance(op, str):
        return op
    if isinstance(op, CustomOpDef):
        return op._qualname
    if hasattr(op, "_schema"):
        return op._schema.name + _dot(op._schema.overload_name)
    if hasattr(op, "_qualified_op_name"):
        return op._qualified_op_name
    raise ValueError(f"expected a name, an operator of torch.ops or a custom operator, got {type(op)}")


def register_fake(
    op: Any,
    func: Callable[..., Any] | None = None,
    /,
    *,
    lib: Library | None = None,
    _stacklevel: int = 1,
    allow_override: bool = False,
) -> Any:
    """Register what an operator returns on tensors without data: the right shapes, dtypes and devices. A decorator
    without ``func``.

    Args:
        op: a name, an operator of ``torch.ops``, or what :func:`custom_op` returned.
        func: the fake kernel.
        lib: the library that owns the registration. Default: one that lives as long as the process.
        allow_override: whether it may replace a kernel.
    """
    qualname = _qualname(op)
    definition = _definitions.get(qualname)

    def register(fake: Callable[..., Any]) -> Callable[..., Any]:
        namespace, name = _parse_qualname(qualname, "register_fake()")
        library = definition._lib if definition is not None and lib is None else _library_for(namespace, lib)
        library.impl(name, _fake_kernel(fake), "Meta", allow_override=allow_override)
        if definition is not None:
            definition._fake = fake
        return fake

    return register if func is None else register(func)


def impl_abstract(
    qualname: Any, func: Callable[..., Any] | None = None, *, lib: Library | None = None, _stacklevel: int = 1
) -> Any:
    """The older name of :func:`register_fake`."""
    return register_fake(qualname, func, lib=lib)


def register_torch_dispatch(
    op: Any, torch_dispatch_class: Any, func: Any = None, /, *, lib: Library | None = None
) -> Any:
    """Raise an error: rules per class and operator are not available; use ``__torch_dispatch__``."""
    raise NotImplementedError(
        "register_torch_dispatch: not available; handle the operator in the class's __torch_dispatch__"
    )


def register_autograd(
    op: Any,
    backward: Callable[..., Any],
    /,
    *,
    setup_context: Callable[..., Any] | None = None,
    lib: Library | None = None,
) -> None:
    """Register the derivative of an operator.

    Args:
        op: a name, an operator of ``torch.ops``, or what :func:`custom_op` returned.
        backward: ``backward(ctx, *grads)`` returns one gradient per argument.
        setup_context: ``setup_context(ctx, inputs, output)`` saves what ``backward`` needs.
        lib: the library that owns the registration. Default: one that lives as long as the process.

    Example::

        >>> def setup_context(ctx, inputs, output):
        ...     (x,) = inputs
        ...     ctx.save_for_backward(x)
        >>> def backward(ctx, grad):
        ...     (x,) = ctx.saved_tensors
        ...     return grad * x.cos()
        >>> torch.library.register_autograd("mylib::sin", backward, setup_context=setup_context)
    """
    qualname = _qualname(op)
    definition = _definitions.get(qualname)
    if definition is not None:
        definition.register_autograd(backward, setup_context=setup_context)
        return
    overload = _overload(qualname)
    _check_functional(overload._schema)
    namespace, name = _parse_qualname(qualname, "register_autograd()")
    _library_for(namespace, lib).impl(
        name, _autograd_kernel(overload, backward, setup_context), "Autograd", with_keyset=True
    )
