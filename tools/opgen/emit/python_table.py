"""`crates/python/src/gen/`: the tables from which the Python functions and methods are made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ..model import Function
from ..signatures import Binding, Overload, bindings
from .common import header

ROOT = "crates/python/src/gen"


def emit(functions: Mapping[str, Sequence[Function]]) -> dict[str, str]:
    """`mod.rs` (the tables' types, from a template) and a table per family."""
    everything = [f for items in functions.values() for f in items]
    families: dict[str, list[Binding]] = {}
    for binding in bindings(everything):
        families.setdefault(binding.family, []).append(binding)
    names = sorted(families)
    template = (Path(__file__).parent.parent / "templates" / "python_gen_mod.rs").read_text()
    module = template.replace("// <modules>", "\n".join(f"mod {n};" for n in names))
    module = module.replace("/* <tables> */", ", ".join(f"{n}::BINDINGS" for n in names))
    files = {f"{ROOT}/{name}.rs": _table(name, families[name]) for name in names}
    return {f"{ROOT}/mod.rs": module, **files}


def _table(family: str, items: Sequence[Binding]) -> str:
    rows = "\n".join(_row(b) for b in items)
    doc = f"//! The Python names of the `{family}` operators, sorted."
    return f"""{header(doc, [f"crates/ops/yaml/{family}.yaml"])}
use super::{{Binding, Namespaces, Overload}};

/// The bindings.
pub(super) static BINDINGS: &[Binding] = &[
{rows}
];
"""


def _namespaces(binding: Binding) -> str:
    names: list[str] = []
    if binding.is_function:
        names.append((binding.namespace or "function").upper())
    if binding.is_method:
        names.append("METHOD")
    return _union(names)


def _union(names: Sequence[str]) -> str:
    if not names:
        return "Namespaces::NONE"
    text = f"Namespaces::{names[0]}"
    for name in names[1:]:
        text += f".with(Namespaces::{name})"
    return text


def _row(binding: Binding) -> str:
    overloads = ", ".join(_overload(binding, o) for o in binding.overloads)
    fields = ", ".join(f'"{n}"' for n in binding.return_names)
    return (
        f'Binding {{ name: "{binding.name}", namespaces: {_namespaces(binding)}, overloads: &[{overloads}], '
        f"return_fields: &[{fields}], takes_requires_grad: {_flag(binding.is_factory)}, "
        f"numbers_as_tensors: {_flag(binding.numbers_as_tensors)} }},"
    )


def _overload(binding: Binding, overload: Overload) -> str:
    names: list[str] = []
    if overload.is_function:
        names.append((binding.namespace or "function").upper())
    if overload.is_method:
        names.append("METHOD")
    position = next((i for i, a in enumerate(overload.schema.arguments) if a.name == "self"), None)
    self_arg = "None" if position is None or not overload.is_method else f"Some({position})"
    return (
        f"Overload {{ op: {_name(overload.base)}, out: {_name(overload.out)}, "
        f"namespaces: {_union(names)}, self_arg: {self_arg} }}"
    )


def _name(function: Function | None) -> str:
    return "None" if function is None else f'Some("{function.schema.qualified_name}")'


def _flag(value: bool) -> str:
    return "true" if value else "false"
