"""Learning-rate schedules."""

from ptr.optim.lr_scheduler.combined import ChainedScheduler, SequentialLR
from ptr.optim.lr_scheduler.cosine import CosineAnnealingLR, CosineAnnealingWarmRestarts
from ptr.optim.lr_scheduler.cyclic import CyclicLR, OneCycleLR
from ptr.optim.lr_scheduler.decay import (
    ConstantLR,
    ExponentialLR,
    LinearLR,
    MultiStepLR,
    PolynomialLR,
    StepLR,
)
from ptr.optim.lr_scheduler.lambda_lr import LambdaLR, MultiplicativeLR
from ptr.optim.lr_scheduler.plateau import ReduceLROnPlateau
from ptr.optim.lr_scheduler.scheduler import EPOCH_DEPRECATION_WARNING, LRScheduler

__all__ = [
    "ChainedScheduler",
    "ConstantLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "CyclicLR",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "OneCycleLR",
    "PolynomialLR",
    "ReduceLROnPlateau",
    "SequentialLR",
    "StepLR",
]

_LRScheduler = LRScheduler
