"""Fake kernels: what operators return on tensors without data."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

__all__ = ["get_ctx"]


class _FakeContext:
    """What a fake kernel gets from :func:`get_ctx`."""

    def new_dynamic_size(self, *, min: int = 0, max: Any = None) -> Any:
        """Raise an error: a size that depends on data needs symbols."""
        raise NotImplementedError("get_ctx().new_dynamic_size(): symbolic sizes are not available")


_fake_contexts: list[_FakeContext] = []


def get_ctx() -> _FakeContext:
    """Return the context of the fake kernel that is running."""
    if not _fake_contexts:
        raise RuntimeError(
            "get_ctx() can only be called inside of a fake kernel, on which torch.library.register_fake was used"
        )
    return _fake_contexts[-1]


def _fake_kernel(fake: Callable[..., Any]) -> Callable[..., Any]:
    """The kernel that runs ``fake`` with a context."""

    @functools.wraps(fake)
    def kernel(*args: Any, **kwargs: Any) -> Any:
        _fake_contexts.append(_FakeContext())
        try:
            return fake(*args, **kwargs)
        finally:
            _fake_contexts.pop()

    return kernel
