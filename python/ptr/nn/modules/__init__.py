"""All modules. Each file is imported when one of its classes is touched, so that ``import ptr`` stays small."""

from __future__ import annotations

from ptr.nn.modules.module import Module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ptr.nn.modules.activation import *  # noqa: F403
    from ptr.nn.modules.attention import *  # noqa: F403
    from ptr.nn.modules.batchnorm import *  # noqa: F403
    from ptr.nn.modules.container import *  # noqa: F403
    from ptr.nn.modules.conv import *  # noqa: F403
    from ptr.nn.modules.distance import *  # noqa: F403
    from ptr.nn.modules.dropout import *  # noqa: F403
    from ptr.nn.modules.flatten import *  # noqa: F403
    from ptr.nn.modules.fold import *  # noqa: F403
    from ptr.nn.modules.linear import *  # noqa: F403
    from ptr.nn.modules.loss import *  # noqa: F403
    from ptr.nn.modules.normalization import *  # noqa: F403
    from ptr.nn.modules.padding import *  # noqa: F403
    from ptr.nn.modules.pooling import *  # noqa: F403
    from ptr.nn.modules.rnn import *  # noqa: F403
    from ptr.nn.modules.sparse import *  # noqa: F403
    from ptr.nn.modules.transformer import *  # noqa: F403

# The classes of each file.
_FILES = {
    "activation": (
        "CELU ELU GELU GLU Hardshrink Hardsigmoid Hardswish Hardtanh LeakyReLU LogSigmoid LogSoftmax Mish PReLU RReLU "
        "ReLU ReLU6 SELU SiLU Sigmoid Softmax Softmax2d Softmin Softplus Softshrink Softsign Tanh Tanhshrink Threshold"
    ),
    "attention": "MultiheadAttention",
    "batchnorm": "BatchNorm1d BatchNorm2d BatchNorm3d InstanceNorm1d InstanceNorm2d InstanceNorm3d SyncBatchNorm",
    "container": "ModuleDict ModuleList ParameterDict ParameterList Sequential",
    "conv": "Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d",
    "distance": "CosineSimilarity PairwiseDistance",
    "dropout": "AlphaDropout Dropout Dropout1d Dropout2d Dropout3d FeatureAlphaDropout",
    "flatten": "Flatten Unflatten",
    "fold": (
        "ChannelShuffle Fold PixelShuffle PixelUnshuffle Unfold Upsample UpsamplingBilinear2d UpsamplingNearest2d"
    ),
    "linear": "Bilinear Identity Linear",
    "loss": (
        "BCELoss BCEWithLogitsLoss CTCLoss CosineEmbeddingLoss CrossEntropyLoss GaussianNLLLoss HingeEmbeddingLoss "
        "HuberLoss KLDivLoss L1Loss MSELoss MarginRankingLoss MultiLabelMarginLoss MultiLabelSoftMarginLoss "
        "MultiMarginLoss NLLLoss PoissonNLLLoss SmoothL1Loss SoftMarginLoss TripletMarginLoss "
        "TripletMarginWithDistanceLoss"
    ),
    "normalization": "GroupNorm LayerNorm LocalResponseNorm RMSNorm",
    "padding": (
        "CircularPad1d CircularPad2d CircularPad3d ConstantPad1d ConstantPad2d ConstantPad3d ReflectionPad1d "
        "ReflectionPad2d ReflectionPad3d ReplicationPad1d ReplicationPad2d ReplicationPad3d ZeroPad1d "
        "ZeroPad2d ZeroPad3d"
    ),
    "pooling": (
        "AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d AdaptiveMaxPool1d AdaptiveMaxPool2d "
        "AdaptiveMaxPool3d AvgPool1d AvgPool2d AvgPool3d LPPool1d LPPool2d LPPool3d MaxPool1d MaxPool2d "
        "MaxPool3d MaxUnpool1d MaxUnpool2d MaxUnpool3d"
    ),
    "rnn": "GRU GRUCell LSTM LSTMCell RNN RNNBase RNNCell RNNCellBase",
    "sparse": "Embedding EmbeddingBag",
    "transformer": (
        "Transformer TransformerDecoder TransformerDecoderLayer TransformerEncoder TransformerEncoderLayer"
    ),
}
_FILE_OF = {name: file for file, names in _FILES.items() for name in names.split()}

__all__ = ["Module", *_FILE_OF]


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in _FILES:
        return import_module(f"ptr.nn.modules.{name}")
    if name not in _FILE_OF:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    # The next access finds the class itself.
    found = globals()[name] = getattr(import_module(f"ptr.nn.modules.{_FILE_OF[name]}"), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_FILES, *_FILE_OF})
