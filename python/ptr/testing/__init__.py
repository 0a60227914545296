"""Helpers for tests: comparison of values and random tensors."""

from ptr.testing._comparison import assert_close
from ptr.testing._creation import make_tensor

__all__ = ["assert_close", "make_tensor"]
