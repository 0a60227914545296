"""Seeds and states of the default random generator."""

from __future__ import annotations

from ptr import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

__all__ = ["fork_rng", "get_rng_state", "initial_seed", "manual_seed", "seed", "set_rng_state"]

default_generator = _C.default_generator


def set_rng_state(new_state: Any) -> None:
    """Set the state of the default generator of the host.

    Args:
        new_state: what :func:`get_rng_state` returned.
    """
    default_generator.set_state(new_state)


def get_rng_state() -> Any:
    """Return the state of the default generator of the host, a tensor of bytes."""
    return default_generator.get_state()


def manual_seed(seed: Any) -> Any:
    """Set the seed of random numbers on all devices, and return the generator of the host.

    Args:
        seed: a number in [-2**63, 2**64); negative ones count from 2**64 downwards.

    Example::

        >>> _ = torch.manual_seed(0)
        >>> torch.rand(2)
        tensor([0.4963, 0.7682])
    """
    return default_generator.manual_seed(int(seed))


def seed() -> int:
    """Set a seed that cannot be guessed, and return it."""
    return default_generator.seed()


def initial_seed() -> int:
    """Return the seed that was set last."""
    return default_generator.initial_seed()


class fork_rng:
    """Context at whose end the state of the default generator is what it was at its start.

    Args:
        devices: accelerators whose generators are kept too.
        enabled: whether to do anything.
        device_type: the type of the accelerators.

    Example::

        >>> with torch.random.fork_rng():
        ...     torch.manual_seed(0)
    """

    def __init__(
        self,
        devices: Iterable[Any] | None = None,
        enabled: bool = True,
        _caller: str = "fork_rng",
        _devices_kw: str = "devices",
        device_type: str = "cuda",
    ) -> None:
        self.enabled = enabled
        self.state: Any = None

    def __enter__(self) -> None:
        if self.enabled:
            self.state = get_rng_state()

    def __exit__(self, *exc: object) -> None:
        if self.enabled:
            set_rng_state(self.state)


def _rebuild_generator(device: Any, state: Any) -> Any:
    """Make a generator in a state; the function named by pickled generators."""
    generator = _C.Generator(device)
    generator.set_state(state)
    return generator
