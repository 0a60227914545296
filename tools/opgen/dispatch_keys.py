"""The dispatch keys, as `crates/c10/src/core/dispatch_key.rs` numbers them: the one list of them."""

from __future__ import annotations

import enum
import functools
import re
from pathlib import Path

_SOURCE = Path(__file__).resolve().parents[2] / "crates/c10/src/core/dispatch_key.rs"
_ENTRY = re.compile(r"^    (\w+) = (\d+),$", re.MULTILINE)


class KeySort(enum.Enum):
    """What may be declared for a key."""

    DENSE = "dense"  # a backend's strided tensors: kernels of structured operators
    BACKEND = "backend"  # a backend's other tensors (sparse, quantized, …): kernels that make whole results
    META = "meta"  # shape functions
    ALIAS = "alias"  # stands for several keys: composites
    FUNCTIONALITY = "functionality"  # above the backends


@functools.cache
def dispatch_keys() -> dict[str, KeySort]:
    """Every key under which something can be registered."""
    _, _, listing = _SOURCE.read_text().partition("\ndispatch_keys! {")
    numbers = {name: int(number) for name, number in _ENTRY.findall(listing)}
    return {name: sort for name, number in numbers.items() if (sort := _sort(name, number, numbers)) is not None}


def _sort(name: str, number: int, numbers: dict[str, int]) -> KeySort | None:
    first = {"Dense": "CPU"}.get(name, f"{name.removesuffix('Functionality')}CPU")
    if name == "Undefined" or (number < numbers["CPU"] <= numbers.get(first, -1)):
        return None  # a functionality that has one key per backend: those are meant
    if name == "Meta":
        return KeySort.META
    if number >= numbers["Autograd"]:
        return KeySort.ALIAS
    if number < numbers["BackendSelect"]:
        return KeySort.BACKEND
    if numbers["CPU"] <= number < numbers["QuantizedCPU"]:
        return KeySort.DENSE
    if numbers["QuantizedCPU"] <= number < numbers["AutogradCPU"]:
        return KeySort.BACKEND
    return KeySort.FUNCTIONALITY
