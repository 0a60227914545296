"""Neural networks: modules (:mod:`ptr.nn.modules`), their functions (:mod:`ptr.nn.functional`), initialization and
utilities."""

from __future__ import annotations

from ptr.nn import functional, init, modules
from ptr.nn.modules import Module
from ptr.nn.modules import __all__ as _modules
from ptr.nn.parameter import Buffer, Parameter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ptr.nn.modules import *  # noqa: F403

__all__ = ["Buffer", "Parameter", "functional", "init", "modules", *_modules]


def __getattr__(name: str) -> object:
    # Utilities and modules are imported when they are first touched.
    if name in ("attention", "utils"):
        from importlib import import_module

        return import_module(f"ptr.nn.{name}")
    if name in _modules:
        found = globals()[name] = getattr(modules, name)
        return found
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *_modules, "attention", "utils"})
