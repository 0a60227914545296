"""Which ways of computing attention may be used."""

from __future__ import annotations

import contextlib
import enum

import ptr as torch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["SDPBackend", "sdpa_kernel"]


class SDPBackend(enum.IntEnum):
    """Ways of computing :func:`~ptr.nn.functional.scaled_dot_product_attention`.

    On the CPU there are two: ``FLASH_ATTENTION``, a kernel in blocks, and ``MATH``, the formula operator by operator.
    """

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


_CHOICES = [backend for backend in SDPBackend if backend >= 0]


@contextlib.contextmanager
def sdpa_kernel(backends: list[SDPBackend] | SDPBackend, set_priority: bool = False) -> Iterator[dict]:
    """Allow only some ways of computing attention, inside of a ``with`` block.

    Args:
        backends: one of them, or a list.
        set_priority: accepted; on the CPU the kernel in blocks comes first wherever it is allowed.

    Example::

        >>> with sdpa_kernel(SDPBackend.MATH):
        ...     F.scaled_dot_product_attention(query, key, value)
    """
    if isinstance(backends, SDPBackend):
        backends = [backends]
    if not isinstance(backends, list):
        raise AssertionError("Backend must be an instance of SDPBackend or a list of SDPBackend instances")
    before = {backend: torch._C._get_sdp_enabled(int(backend)) for backend in _CHOICES}
    try:
        for backend in _CHOICES:
            torch._C._set_sdp_enabled(int(backend), backend in backends)
        yield {}
    finally:
        for backend, enabled in before.items():
            torch._C._set_sdp_enabled(int(backend), enabled)
