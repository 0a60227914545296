"""The facts that a node may keep instead of a tensor, as `crates/autograd/src/saved_meta.rs` tabulates them."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from pathlib import Path

_SOURCE = Path(__file__).resolve().parents[2] / "crates/autograd/src/saved_meta.rs"
_ROW = re.compile(r'^    (\w+): (tensor|list)\.(\w+)\(\) as "\w+",\s+fn (\w+) ->', re.MULTILINE)


@dataclass(frozen=True)
class Fact:
    """A row of the table."""

    kind: str  # the variant of `MetaKind`
    of_list: bool
    method: str  # how a formula writes it: `self.sym_sizes()`
    accessor: str  # the method of `BackwardCtx` that reads it


@functools.cache
def facts() -> tuple[Fact, ...]:
    """All rows."""
    return tuple(Fact(kind, place == "list", method, accessor)
                 for kind, place, method, accessor in _ROW.findall(_SOURCE.read_text()))  # fmt: skip
