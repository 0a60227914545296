"""A tensor library with PyTorch's semantics and interface on a Rust core.

What a program needs at once is imported here; everything else is imported when it is first touched.
"""

from __future__ import annotations

import builtins as _builtins
import math as _math
from math import e, inf, nan, pi

from ptr import _C
from ptr._C import (
    DisableTorchFunction,
    DisableTorchFunctionSubclass,
    Generator,
    OutOfMemoryError,
    Size,
    Tensor,
    as_tensor,
    can_cast,
    default_generator,
    device,
    dtype,
    finfo,
    frombuffer,
    from_numpy,
    get_default_dtype,
    get_num_interop_threads,
    get_num_threads,
    iinfo,
    is_anomaly_check_nan_enabled,
    is_anomaly_enabled,
    is_complex,
    is_conj,
    is_floating_point,
    is_grad_enabled,
    is_inference,
    is_inference_mode_enabled,
    is_neg,
    is_signed,
    is_tensor,
    layout,
    memory_format,
    numel,
    promote_types,
    result_type,
    set_num_interop_threads,
    set_num_threads,
    tensor,
)

__version__ = "0.1.0"

# The objects of dtype, layout and memory_format under all of their names.
globals().update({name: value for name, value in vars(_C).items() if type(value) in (dtype, layout, memory_format)})
# The operators.
globals().update({name: value for name, value in vars(_C._VariableFunctions).items() if not name.startswith("__")})

newaxis: None = None

import ptr._tensor  # noqa: E402  (gives Tensor its methods)
from ptr import _ops as _ops_module  # noqa: E402
from ptr._default import (  # noqa: E402
    get_default_device,
    set_default_device,
    set_default_dtype,
    set_default_tensor_type,
)
from ptr._ops import ops  # noqa: E402
from ptr._tensor_str import set_printoptions  # noqa: E402
from ptr._utils import typename  # noqa: E402
from ptr.autograd.grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled  # noqa: E402
from ptr.functional import *  # noqa: E402, F403
from ptr.functional import __all__ as _functional_all  # noqa: E402
from ptr.random import fork_rng, get_rng_state, initial_seed, manual_seed, seed, set_rng_state  # noqa: E402
from ptr.storage import TypedStorage, UntypedStorage, is_storage  # noqa: E402
from ptr import nn as nn, optim as optim  # noqa: E402

del _ops_module

# Imported when first touched; the value is where the name lives if it is no submodule.
_LAZY: dict[str, str | None] = {
    "Tag": "ptr._tags",
    "amp": None,
    "autocast": "ptr.amp",
    "compile": "ptr._compile",
    "cuda": None,
    "distributed": None,
    "distributions": None,
    "export": None,
    "fft": None,
    "from_dlpack": "ptr.utils.dlpack",
    "func": None,
    "fx": None,
    "hub": None,
    "library": None,
    "linalg": None,
    "load": "ptr.serialization",
    "masked": None,
    "multiprocessing": None,
    "onnx": None,
    "overrides": None,
    "profiler": None,
    "return_types": None,
    "safetensors": None,
    "save": "ptr.serialization",
    "serialization": None,
    "sparse": None,
    "special": None,
    "testing": None,
    "to_dlpack": "ptr.utils.dlpack",
    "utils": None,
    "vmap": "ptr.func",
}

# The tensor types of older versions are made when asked for.
_LEGACY_TYPES = frozenset(
    f"{kind}Tensor" for kind in ("Float", "Double", "Half", "BFloat16", "Byte", "Char", "Short", "Int", "Long", "Bool")
)


def __getattr__(name: str) -> object:
    if name in _LAZY:
        from importlib import import_module

        home = _LAZY[name]
        try:
            value = import_module(f"ptr.{name}") if home is None else getattr(import_module(home), name)
        except ModuleNotFoundError as error:
            raise AttributeError(f"module 'ptr' has no attribute '{name}'") from error
        globals()[name] = value
        return value
    if name in _LEGACY_TYPES:
        from ptr._legacy_types import make_type

        value = globals()[name] = make_type(name)
        return value
    raise AttributeError(f"module 'ptr' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY, *_LEGACY_TYPES})


@_C._overridable
def is_nonzero(input: Tensor) -> bool:
    """Return whether the one element of ``input`` is not zero.

    Raises:
        RuntimeError: ``input`` has no or several elements.
    """
    return _builtins.bool(input)


def is_warn_always_enabled() -> bool:
    """Return ``False``: warnings of the engine follow Python's warning filters."""
    return False


def get_device_module(device: object = None) -> object:
    """Return the module of a device type (``ptr.cpu`` for the host)."""
    from importlib import import_module

    name = "cpu" if device is None else _C.device(device).type
    return import_module(f"ptr.{name}")


_deterministic = False


def are_deterministic_algorithms_enabled() -> bool:
    """Return what :func:`use_deterministic_algorithms` was last called with."""
    return _deterministic


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Ask for operators that give the same bits on every run. On the host all do, for any number of threads.

    Args:
        mode: whether deterministic algorithms are asked for.
        warn_only: whether to warn where there are none.
    """
    global _deterministic
    _deterministic = mode


def sym_int(value: object) -> object:
    """Return ``value`` as an integer, rounded towards zero."""
    return _math.floor(value) if value >= 0 else _math.ceil(value)  # type: ignore[operator, arg-type]


__all__ = sorted({name for name in globals() if not name.startswith("_") and name not in ("annotations",)} | {"Tensor"})
