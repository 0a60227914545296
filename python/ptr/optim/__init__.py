"""Optimizers."""

from ptr.optim.optimizer import Optimizer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ptr.optim._adafactor import Adafactor as Adafactor
    from ptr.optim._muon import Muon as Muon
    from ptr.optim.adadelta import Adadelta as Adadelta
    from ptr.optim.adagrad import Adagrad as Adagrad
    from ptr.optim.adam import Adam as Adam
    from ptr.optim.adamax import Adamax as Adamax
    from ptr.optim.adamw import AdamW as AdamW
    from ptr.optim.asgd import ASGD as ASGD
    from ptr.optim.lbfgs import LBFGS as LBFGS
    from ptr.optim.nadam import NAdam as NAdam
    from ptr.optim.radam import RAdam as RAdam
    from ptr.optim.rmsprop import RMSprop as RMSprop
    from ptr.optim.rprop import Rprop as Rprop
    from ptr.optim.sgd import SGD as SGD
    from ptr.optim.sparse_adam import SparseAdam as SparseAdam

# What not every program needs is imported when it is first touched.
_OPTIMIZERS = {
    "ASGD": "asgd",
    "Adadelta": "adadelta",
    "Adafactor": "_adafactor",
    "Adagrad": "adagrad",
    "Adam": "adam",
    "AdamW": "adamw",
    "Adamax": "adamax",
    "LBFGS": "lbfgs",
    "Muon": "_muon",
    "NAdam": "nadam",
    "RAdam": "radam",
    "RMSprop": "rmsprop",
    "Rprop": "rprop",
    "SGD": "sgd",
    "SparseAdam": "sparse_adam",
}
_MODULES = {"lr_scheduler", "swa_utils", *_OPTIMIZERS.values()}

__all__ = ["Optimizer", "lr_scheduler", "swa_utils", *_OPTIMIZERS]


def __getattr__(name: str) -> object:
    if name not in _OPTIMIZERS and name not in _MODULES:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    from importlib import import_module

    module = import_module(f"ptr.optim.{_OPTIMIZERS.get(name, name)}")
    if name in _MODULES:
        return module
    value = globals()[name] = getattr(module, name)
    return value
