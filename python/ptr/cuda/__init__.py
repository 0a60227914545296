"""Questions about CUDA devices. This build has no CUDA backend, so there are none."""

from __future__ import annotations


def is_available() -> bool:
    """Return whether CUDA can be used: ``False``.

    Example::

        >>> device = "cuda" if torch.cuda.is_available() else "cpu"
    """
    return False


def device_count() -> int:
    """Return the number of CUDA devices: 0."""
    return 0


def is_initialized() -> bool:
    """Return whether CUDA has been initialized: ``False``."""
    return False


def manual_seed(seed: int) -> None:
    """Seed the generator of the current CUDA device; without devices nothing is done, as in PyTorch."""


def manual_seed_all(seed: int) -> None:
    """Seed the generators of all CUDA devices; without devices nothing is done, as in PyTorch."""
