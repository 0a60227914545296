"""What tensors are made of and where they are put if nothing is said: default dtype and device."""

from __future__ import annotations

from ptr import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["get_default_device", "set_default_device", "set_default_dtype", "set_default_tensor_type"]

set_default_dtype = _C._set_default_dtype
_device = _C.device


def get_default_device() -> Any:
    """Return where factories put tensors: the innermost ``with device:`` block's device, or the one that was set."""
    return _C._get_default_device()


def set_default_device(device: Any) -> None:
    """Set where factories put tensors from now on, in this thread.

    Args:
        device: a device, its name, or ``None`` for the host.

    Example::

        >>> torch.set_default_device("meta")
        >>> torch.zeros(2).device
        device(type='meta')
        >>> torch.set_default_device(None)
    """
    _C._set_default_device(None if device is None else _device(device))


def set_default_tensor_type(t: Any) -> None:
    """Set the default dtype and device by an old tensor type (``torch.DoubleTensor`` or its name).

    Args:
        t: the type or its name.
    """
    name = t if isinstance(t, str) else t.__name__
    probe = _C._VariableFunctions.empty(0).type(name if "." in name else f"torch.{name}")
    set_default_dtype(probe.dtype)
    if probe.device.type != "cpu":
        set_default_device(probe.device)
