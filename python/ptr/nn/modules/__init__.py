"""All modules."""

from ptr.nn.modules.activation import LogSoftmax, ReLU, Softmax
from ptr.nn.modules.container import ModuleDict, ModuleList, ParameterDict, ParameterList, Sequential
from ptr.nn.modules.conv import Conv2d
from ptr.nn.modules.dropout import Dropout
from ptr.nn.modules.flatten import Flatten, Unflatten
from ptr.nn.modules.linear import Bilinear, Identity, Linear
from ptr.nn.modules.loss import CrossEntropyLoss, NLLLoss
from ptr.nn.modules.module import Module
from ptr.nn.modules.pooling import MaxPool2d

__all__ = [
    "Bilinear",
    "Conv2d",
    "CrossEntropyLoss",
    "Dropout",
    "Flatten",
    "Identity",
    "Linear",
    "LogSoftmax",
    "MaxPool2d",
    "Module",
    "ModuleDict",
    "ModuleList",
    "NLLLoss",
    "ParameterDict",
    "ParameterList",
    "ReLU",
    "Sequential",
    "Softmax",
    "Unflatten",
]
