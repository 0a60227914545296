"""Names of operators, and tensors among arguments."""

from __future__ import annotations

from ptr import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

_DEVICE_KEYS = {"cpu": "CPU", "cuda": "CUDA", "meta": "Meta", "privateuseone": "PrivateUse1"}


def _key_of(device_type: str) -> str:
    if device_type == "default":
        return "CompositeExplicitAutograd"
    key = _DEVICE_KEYS.get(_C.device(device_type).type)
    if key is None:
        raise ValueError(f"impl(): no kernels can be registered for the device type '{device_type}'")
    return key


def _packet(qualname: str) -> Any:
    from ptr._ops import ops

    namespace, name = qualname.split("::")
    return getattr(getattr(ops, namespace), name.split(".")[0])


def _overload(qualname: str) -> Any:
    overload = qualname.split(".", 1)[1] if "." in qualname else "default"
    return getattr(_packet(qualname), overload)


def _parse_qualname(qualname: Any, function: str) -> tuple[str, str]:
    if not isinstance(qualname, str):
        raise ValueError(
            f"{function}: expected qualname (name of operator) to be an instance of string, got {type(qualname)}"
        )
    namespace, separator, name = qualname.partition("::")
    if not separator or not namespace or not name or "::" in name:
        raise ValueError(
            f"{function}: expected the operator name to be of the form '{{namespace}}::{{name}}', got '{qualname}'"
        )
    return namespace, name


def _dot(overload: str) -> str:
    return f".{overload}" if overload else ""


def _tensors(values: Iterable[Any]) -> Iterator[Any]:
    for value in values:
        if isinstance(value, _C.Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from _tensors(value)


def _storage_id(tensor: Any) -> int | None:
    if tensor.is_meta or not tensor.numel():
        return None
    try:
        return tensor.untyped_storage()._cdata
    except (RuntimeError, NotImplementedError):
        return None
