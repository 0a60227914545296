"""The named tuples that operators with several named results return."""

from __future__ import annotations

from ptr import _C


def __getattr__(name: str) -> object:
    if name.startswith("__"):
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    value = globals()[name] = _C._return_type(name)
    return value
