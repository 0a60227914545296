"""Linear algebra: products and norms."""

from __future__ import annotations

from ptr import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["cross", "diagonal", "matmul", "matrix_norm", "multi_dot", "norm", "vander", "vecdot", "vector_norm"]

Tensor = _C.Tensor


def __getattr__(name: str) -> Any:
    # The functions are operators whose names begin with that of this module.
    if name in __all__:
        value = globals()[name] = getattr(_C._linalg, f"linalg_{name}")
        return value
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted(__all__)
