"""Ready-made parametrizations: weight and spectral normalization."""

from __future__ import annotations

import ptr as torch
from ptr.nn.modules.module import Module
from ptr.nn.utils import parametrize

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["spectral_norm", "weight_norm"]


def _norm_except_dim(weight: torch.Tensor, dim: int | None) -> torch.Tensor:
    """The 2-norms of the slices of ``weight`` along ``dim``, which keeps its size; one norm if there is no ``dim``."""
    if dim is None or dim == -1:
        return torch.norm(weight)
    others = [d for d in range(weight.dim()) if d != dim % weight.dim()]
    return torch.norm(weight, 2, others, keepdim=True) if others else weight.abs()


class _WeightNorm(Module):
    """A weight by its length (``original0``) and its direction (``original1``).

    Args:
        dim: the dimension along which there is a length for each slice.
    """

    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: torch.Tensor, weight_v: torch.Tensor) -> torch.Tensor:
        """Return the weight."""
        return weight_v * (weight_g / _norm_except_dim(weight_v, self.dim))

    def right_inverse(self, weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return length and direction."""
        return _norm_except_dim(weight, self.dim), weight


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Learn the length of a weight and its direction separately.

    The weight is then ``g * v / ||v||``, with ``g`` (``parametrizations.weight.original0``) and ``v``
    (``original1``) as parameters.

    Args:
        module: the module; changed in place and returned.
        name: the name of the weight.
        dim: the dimension along which each slice has a length of its own; ``None`` for one length. Default: 0.

    Example::

        >>> layer = nn.utils.parametrizations.weight_norm(nn.Linear(20, 40))
        >>> layer.parametrizations.weight.original0.size()
        torch.Size([40, 1])
    """
    parametrize.register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def convert_old_keys(
        state_dict: dict[str, Any], prefix: str, local_metadata: Any, strict: bool, *rest: Any
    ) -> None:
        # Checkpoints of the older implementation call the two otherwise.
        old_keys = (f"{prefix}{name}_g", f"{prefix}{name}_v")
        if all(key in state_dict for key in old_keys):
            for i, key in enumerate(old_keys):
                state_dict[f"{prefix}parametrizations.{name}.original{i}"] = state_dict.pop(key)

    module._register_load_state_dict_pre_hook(convert_old_keys)
    return module


class _SpectralNorm(Module):
    """Divides a weight by its largest singular value, which is tracked by power iteration.

    Args:
        weight: the weight.
        n_power_iterations: iterations per use in training mode.
        dim: the dimension that is the rows of the matrix; the others are its columns.
        eps: the least length to divide by.
    """

    def __init__(self, weight: torch.Tensor, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        super().__init__()
        ndim = weight.ndim
        if dim >= ndim or dim < -ndim:
            raise IndexError(f"Dimension out of range (expected to be in range of [-{ndim}, {ndim - 1}] but got {dim})")
        if n_power_iterations <= 0:
            raise ValueError(
                f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}"
            )
        self.dim = dim if dim >= 0 else dim + ndim
        self.eps = eps
        # A vector has one singular value, its length: nothing to iterate for.
        if ndim > 1:
            self.n_power_iterations = n_power_iterations
            matrix = self._as_matrix(weight)
            rows, columns = matrix.size()
            u, v = matrix.new_empty(rows).normal_(0, 1), matrix.new_empty(columns).normal_(0, 1)
            self.register_buffer("_u", torch.nn.functional.normalize(u, dim=0, eps=eps))
            self.register_buffer("_v", torch.nn.functional.normalize(v, dim=0, eps=eps))
            self._iterate(matrix, 15)

    def _as_matrix(self, weight: torch.Tensor) -> torch.Tensor:
        if self.dim:
            weight = weight.permute(self.dim, *(d for d in range(weight.dim()) if d != self.dim))
        return weight.flatten(1)

    def _iterate(self, matrix: torch.Tensor, count: int) -> None:
        """Bring the two vectors nearer to the singular vectors, in place: replicas of a module share them."""
        normalize = torch.nn.functional.normalize
        with torch.no_grad():
            for _ in range(count):
                self._u.copy_(normalize(torch.mv(matrix, self._v), dim=0, eps=self.eps))
                self._v.copy_(normalize(torch.mv(matrix.H, self._u), dim=0, eps=self.eps))

    def forward(self, weight: torch.Tensor) -> torch.Tensor:
        """Return the weight divided by its norm."""
        if weight.ndim == 1:
            return torch.nn.functional.normalize(weight, dim=0, eps=self.eps)
        matrix = self._as_matrix(weight)
        if self.training:
            self._iterate(matrix, self.n_power_iterations)
        # Copies: the next use changes the buffers, and the backward pass needs these values.
        u = self._u.clone(memory_format=torch.contiguous_format)
        v = self._v.clone(memory_format=torch.contiguous_format)
        sigma = torch.vdot(u, torch.mv(matrix, v))
        return weight / sigma

    def right_inverse(self, value: torch.Tensor) -> torch.Tensor:
        """Return ``value``: what is assigned may well be normalized already."""
        return value


def spectral_norm(
    module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Module:
    """Keep the largest singular value of a weight at 1.

    The value is estimated by power iteration, ``n_power_iterations`` steps with each use of the weight in training
    mode.

    Args:
        module: the module; changed in place and returned.
        name: the name of the weight.
        n_power_iterations: steps per use. Default: 1.
        eps: the least length to divide by. Default: 1e-12.
        dim: the dimension of the outputs. Default: 1 for transposed convolutions, else 0.

    Raises:
        ValueError: there is no such weight, or ``n_power_iterations`` is not positive.

    Example::

        >>> layer = nn.utils.parametrizations.spectral_norm(nn.Linear(20, 40))
        >>> torch.linalg.matrix_norm(layer.weight, 2)
        tensor(1.0081, grad_fn=<AmaxBackward0>)
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, torch.Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if dim is None:
        transposed = (torch.nn.ConvTranspose1d, torch.nn.ConvTranspose2d, torch.nn.ConvTranspose3d)
        dim = 1 if isinstance(module, transposed) else 0
    return parametrize.register_parametrization(module, name, _SpectralNorm(weight, n_power_iterations, dim, eps))
