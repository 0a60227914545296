"""Special functions of mathematics, elementwise: ``ptr.special.erf(x)``.

The functions are the engine's own, under their names without the prefix ``special_``.
"""

from __future__ import annotations

from ptr._C import _special

_PREFIX = "special_"

globals().update(
    {name.removeprefix(_PREFIX): value for name, value in vars(_special).items() if name.startswith(_PREFIX)}
)

__all__ = sorted(name.removeprefix(_PREFIX) for name in vars(_special) if name.startswith(_PREFIX))
