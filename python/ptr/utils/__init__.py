"""Utilities: hook handles (:mod:`ptr.utils.hooks`) and data loading (:mod:`ptr.utils.data`).

Submodules are imported when they are first touched, so that ``import ptr`` does not pay for data loading.
"""

from __future__ import annotations

__all__ = ["data", "hooks"]


def __getattr__(name: str) -> object:
    if name in __all__:
        from importlib import import_module

        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
