"""The tensor types of older versions: ``torch.FloatTensor`` and its kin, for ``isinstance`` and as constructors."""

from __future__ import annotations

import ptr as torch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_DTYPES = {
    "Float": torch.float32,
    "Double": torch.float64,
    "Half": torch.float16,
    "BFloat16": torch.bfloat16,
    "Byte": torch.uint8,
    "Char": torch.int8,
    "Short": torch.int16,
    "Int": torch.int32,
    "Long": torch.int64,
    "Bool": torch.bool,
}


class _TensorType(type):
    """The class of such types: instances are tensors of one dtype on the host."""

    dtype: Any

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, torch.Tensor) and instance.dtype == cls.dtype and instance.device.type == "cpu"

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        return torch.empty(0, dtype=cls.dtype, device="cpu").new(*args, **kwargs)


def make_type(name: str) -> Any:
    """Return the type of that name, ``"FloatTensor"``."""
    return _TensorType(name, (), {"dtype": _DTYPES[name.removesuffix("Tensor")], "__module__": "ptr"})
