"""Schemas of functions, from their annotations."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, Union, get_type_hints

from ptr import _C

__all__ = ["infer_schema"]

_TYPES: dict[Any, str] = {
    _C.Tensor: "Tensor",
    int: "SymInt",
    float: "float",
    bool: "bool",
    str: "str",
    complex: "complex",
    _C.dtype: "ScalarType",
    _C.device: "Device",
    _C.layout: "Layout",
    Union[int, float, bool]: "Scalar",  # noqa: UP007
}


def _schema_type(annotation: Any, where: str) -> str:
    if annotation in _TYPES:
        return _TYPES[annotation]
    origin = getattr(annotation, "__origin__", None)
    arguments = getattr(annotation, "__args__", ())
    if origin in (list, Sequence):
        return f"{_schema_type(arguments[0], where)}[]"
    is_union = origin is Union or type(annotation).__name__ == "UnionType"
    if is_union:
        rest = [a for a in arguments if a is not type(None)]
        if len(rest) < len(arguments):
            inner = _schema_type(rest[0] if len(rest) == 1 else Union[tuple(rest)], where)  # noqa: UP007
            return f"{inner}?"
        if set(arguments) <= {int, float, bool}:
            return "Scalar"
    raise ValueError(
        f"infer_schema(func): {where} has unsupported type {annotation}. The valid types are: "
        f"{sorted(set(_TYPES.values()))}, lists and optionals of them."
    )


def _default_text(value: Any) -> str:
    if isinstance(value, str):
        return '"' + value + '"'
    if isinstance(value, (_C.dtype, _C.layout)):
        return str(value).rsplit(".", 1)[-1]
    if isinstance(value, _C.device):
        return f'"{value}"'
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_default_text, value)) + "]"
    return repr(value)


def infer_schema(prototype_function: Callable[..., Any], /, *, mutates_args: Any, op_name: str | None = None) -> str:
    """Return the schema of an operator with the signature of a function.

    Args:
        prototype_function: a function whose parameters and result are annotated with types.
        mutates_args: the names of the parameters that it writes to; ``"unknown"`` for all tensors.
        op_name: the name to begin the schema with. Default: none.

    Example::

        >>> def f(x: torch.Tensor, n: int = 1) -> torch.Tensor: ...
        >>> torch.library.infer_schema(f, mutates_args=())
        '(Tensor x, SymInt n=1) -> Tensor'
    """
    signature = inspect.signature(prototype_function)
    hints = get_type_hints(prototype_function)
    parameters: list[str] = []
    seen_keyword_only = False
    known = set(signature.parameters)
    if mutates_args != "unknown" and not set(mutates_args) <= known:
        raise ValueError(
            "infer_schema(func): mutates_args should be the names of parameters, got "
            f"{sorted(set(mutates_args) - known)}"
        )
    sets = iter("abcdefghijklmnopqrstuvwxyz")
    for name, parameter in signature.parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise ValueError("infer_schema(func): we do not support positional-only args, varargs, or varkwargs.")
        if name not in hints:
            raise ValueError(f"infer_schema(func): Parameter {name} must have a type annotation.")
        if parameter.kind is parameter.KEYWORD_ONLY and not seen_keyword_only:
            parameters.append("*")
            seen_keyword_only = True
        text = _schema_type(hints[name], f"Parameter {name}")
        is_written = text.startswith("Tensor") if mutates_args == "unknown" else name in mutates_args
        if is_written:
            if not text.startswith("Tensor"):
                raise ValueError(
                    f"infer_schema(func): Parameter {name} is in mutable_args but only Tensors or collections of "
                    f"Tensors can "
                    "be mutated"
                )
            text = f"Tensor({next(sets)}!)" + text[len("Tensor") :]
        if parameter.default is parameter.empty:
            parameters.append(f"{text} {name}")
        else:
            parameters.append(f"{text} {name}={_default_text(parameter.default)}")
    if "return" not in hints:
        raise ValueError("infer_schema(func): the return value must have a type annotation.")
    return f"{op_name or ''}({', '.join(parameters)}) -> {_return_text(hints['return'])}"


def _return_text(annotation: Any) -> str:
    if annotation is None or annotation is type(None):
        return "()"
    if getattr(annotation, "__origin__", None) is tuple:
        items = [_schema_type(item, "Return") for item in annotation.__args__]
        return items[0] if len(items) == 1 else f"({', '.join(items)})"
    return _schema_type(annotation, "Return")
