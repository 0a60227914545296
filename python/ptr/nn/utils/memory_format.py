"""Changing the layout in memory of the weights of convolutions."""

from __future__ import annotations

import ptr as torch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format"]


def _convert(module: Any, classes: tuple[type, ...], memory_format: Any) -> Any:
    for child in module.modules():
        if isinstance(child, classes):
            child.weight.data = child.weight.detach().clone(memory_format=memory_format)
    return module


def convert_conv2d_weight_memory_format(module: Any, memory_format: Any) -> Any:
    """Lay out the weights of all ``Conv2d`` and ``ConvTranspose2d`` within ``module`` in ``memory_format``.

    Inputs in other formats are then converted once, by the first of several convolutions in a row.

    Args:
        module: the module; changed in place and returned.
        memory_format: such as ``torch.channels_last``.
    """
    return _convert(module, (torch.nn.Conv2d, torch.nn.ConvTranspose2d), memory_format)


def convert_conv3d_weight_memory_format(module: Any, memory_format: Any) -> Any:
    """Lay out the weights of all ``Conv3d`` and ``ConvTranspose3d`` within ``module`` in ``memory_format``.

    Args:
        module: the module; changed in place and returned.
        memory_format: such as ``torch.channels_last_3d``.
    """
    return _convert(module, (torch.nn.Conv3d, torch.nn.ConvTranspose3d), memory_format)
