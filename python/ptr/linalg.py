"""Linear algebra: products and norms."""

from __future__ import annotations

from ptr import _C

__all__ = ["cross", "diagonal", "matmul", "matrix_norm", "multi_dot", "norm", "vander", "vecdot", "vector_norm"]

Tensor = _C.Tensor

cross = _C._linalg.linalg_cross
diagonal = _C._linalg.linalg_diagonal
matmul = _C._linalg.linalg_matmul
matrix_norm = _C._linalg.linalg_matrix_norm
multi_dot = _C._linalg.linalg_multi_dot
norm = _C._linalg.linalg_norm
vander = _C._linalg.linalg_vander
vecdot = _C._linalg.linalg_vecdot
vector_norm = _C._linalg.linalg_vector_norm
