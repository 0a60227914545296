"""Checks that an operator keeps what its registrations promise."""

from __future__ import annotations

from typing import Any

from ptr import _C
from ptr._library.custom_ops import CustomOpDef
from ptr._library.utils import _DEVICE_KEYS, _storage_id, _tensors

__all__ = ["OpCheckError", "opcheck"]


_CHECKS = ("test_schema", "test_autograd_registration", "test_faketensor")


def opcheck(
    op: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    *,
    test_utils: Any = _CHECKS,
    raise_exception: bool = True,
    atol: float | None = None,
    rtol: float | None = None,
) -> dict[str, str]:
    """Check with sample arguments that an operator keeps what its registrations promise.

    Args:
        op: the operator.
        args: its arguments.
        kwargs: its arguments by name.
        test_utils: which checks: that the schema tells what is written to (``test_schema``), that derivatives are
            registered where autograd looks for them (``test_autograd_registration``), that the fake kernel
            gives shapes and dtypes as the real one does (``test_faketensor``).
        raise_exception: whether a failed check raises.
        atol: absolute tolerance. Default: by dtype.
        rtol: relative tolerance. Default: by dtype.

    Returns:
        ``"SUCCESS"`` or the exception, by check.
    """
    overload = op._opoverload if isinstance(op, CustomOpDef) else getattr(op, "default", op)
    names = (test_utils,) if isinstance(test_utils, str) else tuple(test_utils)
    checks = {
        "test_schema": _check_schema,
        "test_autograd_registration": _check_autograd_registration,
        "test_faketensor": _check_fake,
    }
    results: dict[str, Any] = {}
    for name in names:
        if name not in checks:
            raise ValueError(f"opcheck(op, ...): expected test_utils to be a subset of {_CHECKS}, got {name}")
        try:
            checks[name](overload, args, kwargs or {})
            results[name] = "SUCCESS"
        except Exception as error:
            if raise_exception:
                raise OpCheckError(
                    f"opcheck(op, ...): {name} failed with {error} (scroll up for stack trace)"
                ) from error
            results[name] = error
    return results


class OpCheckError(Exception):
    """Raised when an operator breaks a promise of its registrations."""


def _map_tensors(function: Any, values: Any) -> Any:
    if isinstance(values, _C.Tensor):
        return function(values)
    if isinstance(values, (list, tuple)):
        return type(values)(_map_tensors(function, v) for v in values)
    if isinstance(values, dict):
        return {k: _map_tensors(function, v) for k, v in values.items()}
    return values


def _copy_arguments(values: Any) -> Any:
    return _map_tensors(lambda t: t.detach().clone().requires_grad_(t.requires_grad), values)


def _check_schema(overload: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    schema = overload._schema
    args, kwargs = _copy_arguments(args), _copy_arguments(kwargs)
    given = dict(zip([a.name for a in schema.arguments], args, strict=False)) | kwargs
    before = {name: [t.detach().clone() for t in _tensors((value,))] for name, value in given.items()}
    with _no_grad():
        result = overload(*args, **kwargs)
    for argument in schema.arguments:
        for old, new in zip(before.get(argument.name, ()), _tensors((given.get(argument.name),)), strict=False):
            same = old.shape == new.shape and bool(((old == new) | ((old != old) & (new != new))).all())
            if not same and not argument.is_write:
                raise RuntimeError(f"Argument {argument.name} is not defined as mutable but was mutated")
    aliased = {_storage_id(t): name for name, value in given.items() for t in _tensors((value,))}
    for ret, value in zip(schema.returns, result if len(schema.returns) > 1 else (result,), strict=False):
        for tensor in _tensors((value,)):
            storage = _storage_id(tensor)
            if storage is not None and storage in aliased and not ret.alias_set:
                raise RuntimeError(f"Argument {aliased[storage]} is not defined to alias output but was aliasing")


def _no_grad() -> Any:
    from ptr.autograd.grad_mode import no_grad

    return no_grad()


def _check_autograd_registration(overload: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    name = overload.name()
    tensors = list(_tensors((*args, *kwargs.values())))
    if not any(t.requires_grad for t in tensors):
        return
    for key in ("Autograd", "CompositeImplicitAutograd"):
        if _C._dispatch_has_kernel_for_dispatch_key(name, key):
            return
    device = tensors[0].device.type
    key = "Autograd" + _DEVICE_KEYS.get(device, "Other")
    if _C._dispatch_has_kernel_for_dispatch_key(name, key):
        return
    raise AssertionError(
        f"Operator {name} does not have an autograd kernel registered at Autograd, {key} or "
        f"CompositeImplicitAutograd, so a "
        "derivative registered below is not seen. Use torch.library.register_autograd."
    )


def _to_meta(values: Any) -> Any:
    return _map_tensors(lambda t: t.detach().to("meta"), values)


def _check_fake(overload: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    with _no_grad():
        real = overload(*_copy_arguments(args), **_copy_arguments(kwargs))
        fake = overload(*_to_meta(args), **_to_meta(kwargs))
    for i, (a, b) in enumerate(zip(_tensors((real,)), _tensors((fake,)), strict=True)):
        if a.shape != b.shape or a.dtype != b.dtype or a.stride() != b.stride():
            raise AssertionError(
                f"the fake kernel of {overload} gives output {i} as {b.dtype} of shape {tuple(b.shape)} and strides "
                f"{b.stride()}, the real one as {a.dtype} of shape {tuple(a.shape)} and strides {a.stride()}"
            )
