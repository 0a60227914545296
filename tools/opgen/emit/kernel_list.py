"""`--kernels`: the table of every kernel that a backend registers, with its exact function type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..model import Function
from ..rust_types import kernel_arguments, kernel_signature


def render(functions: Mapping[str, Sequence[Function]]) -> str:
    """One section per family; a kernel that serves several operators is listed once with all of them."""
    lines: list[str] = ["# Kernels to register, by family", ""]
    for family, items in functions.items():
        kernels: dict[str, tuple[str, list[str]]] = {}
        for function in items:
            operator = function.operator
            if not function.declared:
                continue
            for use in operator.kernels:
                names = ", ".join(kernel_arguments(operator, use))
                entry = kernels.setdefault(use.name, (kernel_signature(operator, use), []))
                entry[1].append(f"{operator.schema.full_name}({names})")
        if kernels:
            lines += [f"## {family}", ""]
            lines += [f"- `{name}`: `{kind}` — {'; '.join(ops)}" for name, (kind, ops) in sorted(kernels.items())]
            lines.append("")
    return "\n".join(lines)
