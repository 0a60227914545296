"""Weight normalization by a hook that runs before ``forward``: the older form of
:func:`ptr.nn.utils.parametrizations.weight_norm`."""

from __future__ import annotations

import warnings

from ptr.nn.parameter import Parameter
from ptr.nn.utils.parametrizations import _norm_except_dim

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["WeightNorm", "remove_weight_norm", "weight_norm"]


class WeightNorm:
    """The hook: computes a weight from its length and direction.

    Args:
        name: the name of the weight.
        dim: the dimension along which each slice has a length; -1 for one length.
    """

    def __init__(self, name: str, dim: int) -> None:
        self.name = name
        self.dim = dim

    def compute_weight(self, module: Any) -> Any:
        """Return the weight of ``module``."""
        g, v = getattr(module, self.name + "_g"), getattr(module, self.name + "_v")
        return v * (g / _norm_except_dim(v, self.dim))

    @staticmethod
    def apply(module: Any, name: str, dim: int | None) -> WeightNorm:
        """Split the weight ``name`` of ``module`` and register the hook."""
        for hook in module._forward_pre_hooks.values():
            if isinstance(hook, WeightNorm) and hook.name == name:
                raise RuntimeError(f"Cannot register two weight_norm hooks on the same parameter {name}")
        norm = WeightNorm(name, -1 if dim is None else dim)
        weight = getattr(module, name)
        del module._parameters[name]
        module.register_parameter(name + "_g", Parameter(_norm_except_dim(weight, norm.dim).data))
        module.register_parameter(name + "_v", Parameter(weight.data))
        setattr(module, name, norm.compute_weight(module))
        module.register_forward_pre_hook(norm)
        return norm

    def remove(self, module: Any) -> None:
        """Make the weight of ``module`` a parameter again."""
        weight = self.compute_weight(module)
        delattr(module, self.name)
        del module._parameters[self.name + "_g"]
        del module._parameters[self.name + "_v"]
        setattr(module, self.name, Parameter(weight.data))

    def __call__(self, module: Any, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module))


def weight_norm(module: Any, name: str = "weight", dim: int | None = 0) -> Any:
    """Learn the length of a weight (``<name>_g``) and its direction (``<name>_v``) separately.

    Deprecated in favour of :func:`ptr.nn.utils.parametrizations.weight_norm`.

    Args:
        module: the module; changed in place and returned.
        name: the name of the weight.
        dim: the dimension along which each slice has a length of its own; ``None`` for one length. Default: 0.

    Raises:
        RuntimeError: the weight is normalized already.
    """
    warnings.warn(
        "`torch.nn.utils.weight_norm` is deprecated in favor of `torch.nn.utils.parametrizations.weight_norm`.",
        FutureWarning,
        stacklevel=2,
    )
    WeightNorm.apply(module, name, dim)
    return module


def remove_weight_norm(module: Any, name: str = "weight") -> Any:
    """Undo :func:`weight_norm`.

    Args:
        module: the module; changed in place and returned.
        name: the name of the weight.

    Raises:
        ValueError: the weight is not normalized that way.
    """
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, WeightNorm) and hook.name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(f"weight_norm of '{name}' not found in {module}")
