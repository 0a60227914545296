"""Optimizers."""

from ptr.optim.optimizer import Optimizer
from ptr.optim.sgd import SGD

__all__ = ["SGD", "Optimizer", "lr_scheduler", "swa_utils"]


def __getattr__(name: str) -> object:
    # What not every program needs is imported when it is first touched.
    if name in ("lr_scheduler", "swa_utils"):
        from importlib import import_module

        return import_module(f"ptr.optim.{name}")
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
