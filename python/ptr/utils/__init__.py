"""Utilities: hook handles (:mod:`ptr.utils.hooks`), data loading (:mod:`ptr.utils.data`), exchange of tensors
(:mod:`ptr.utils.dlpack`), and modes that see operators (:mod:`ptr.utils._python_dispatch`).

Submodules are imported when they are first touched, so that ``import ptr`` does not pay for data loading.
"""

from __future__ import annotations

__all__ = ["data", "dlpack", "hooks"]

_SUBMODULES = (*__all__, "_python_dispatch")


def __getattr__(name: str) -> object:
    if name in _SUBMODULES:
        from importlib import import_module

        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *_SUBMODULES})
