"""Tools around parameters, gradients and modules. Each file is imported when one of its names is touched."""

from __future__ import annotations

# At once: these functions have the names of their files, which an import of the file later would put in their place.
from ptr.nn.utils.spectral_norm import remove_spectral_norm, spectral_norm
from ptr.nn.utils.weight_norm import remove_weight_norm, weight_norm

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ptr.nn.utils import fusion, init, memory_format, parametrizations, parametrize, prune, rnn, stateless
    from ptr.nn.utils.clip_grad import *  # noqa: F403
    from ptr.nn.utils.convert_parameters import *  # noqa: F403
    from ptr.nn.utils.fusion import *  # noqa: F403
    from ptr.nn.utils.init import *  # noqa: F403
    from ptr.nn.utils.memory_format import *  # noqa: F403

# The functions of each file that are here, too.
_FILES = {
    "clip_grad": "clip_grad_norm clip_grad_norm_ clip_grad_value_ clip_grads_with_norm_ get_total_norm",
    "convert_parameters": "parameters_to_vector vector_to_parameters",
    "fusion": "fuse_conv_bn_eval fuse_conv_bn_weights fuse_linear_bn_eval fuse_linear_bn_weights",
    "init": "skip_init",
    "memory_format": "convert_conv2d_weight_memory_format convert_conv3d_weight_memory_format",
    "parametrizations": "",
    "parametrize": "",
    "prune": "",
    "rnn": "",
    "stateless": "",
}
_FILE_OF = {name: file for file, names in _FILES.items() for name in names.split()}

__all__ = [
    "parametrizations",
    "parametrize",
    "prune",
    "remove_spectral_norm",
    "remove_weight_norm",
    "rnn",
    "spectral_norm",
    "stateless",
    "weight_norm",
    *_FILE_OF,
]


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name in _FILE_OF:
        found = globals()[name] = getattr(import_module(f"{__name__}.{_FILE_OF[name]}"), name)
        return found
    if name in _FILES:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *_FILES, *_FILE_OF})
