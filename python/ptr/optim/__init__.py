"""Optimizers."""

from ptr.optim.optimizer import Optimizer
from ptr.optim.sgd import SGD

__all__ = ["SGD", "Optimizer"]
