"""Making modules without initializing their parameters."""

from __future__ import annotations

import inspect

import ptr as torch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["skip_init"]


def skip_init(module_cls: type, *args: Any, **kwargs: Any) -> Any:
    """Make a module whose parameters and buffers are not initialized, for values that will be loaded.

    Args:
        module_cls: a class of modules that takes ``device``.
        args, kwargs: what its instances are made with.

    Raises:
        RuntimeError: the class is none of modules, or does not take ``device``.

    Example::

        >>> layer = nn.utils.skip_init(nn.Linear, 5, 1)
    """
    if not issubclass(module_cls, torch.nn.Module):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError("Module must support a 'device' arg to skip initialization")
    device = kwargs.pop("device", "cpu")
    return module_cls(*args, device="meta", **kwargs).to_empty(device=device)
