"""Reads derivative formulas: which arguments and results they use, and which facts of them suffice.

A formula is a Rust expression over the schema's argument names. An identifier that names an argument saves the
argument; `self.sym_sizes()` and its like save that one fact; `result`, or the name of a return, saves an output.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from .model import (
    NON_DIFFERENTIABLE,
    Argument,
    Formula,
    Function,
    Operator,
    OpgenError,
    Schema,
    camel_case,
    functions_of,
    rust_ident,
)
from .saved_facts import Fact, facts

_STRING = re.compile(r'"[^"]*"')
_WORD = r"(?<![\w.:'])"


@dataclass(frozen=True)
class Saved:
    """One saved thing: `kind` is Input, Output, Value or Meta; `local` is the name it gets in the formula."""

    kind: str
    index: int
    local: str
    meta: Fact | None = None
    needed_by: int = 0


@dataclass(frozen=True)
class Backward:
    """A formula with its names replaced by Rust locals."""

    formula: Formula
    positions: tuple[int, ...]  # in `differentiable`, in the order of the formula's targets
    expression: str
    slots: tuple[int, ...]  # which saved things it unpacks
    grads: tuple[int, ...]  # which incoming gradients it names
    uses_grads: bool
    uses_mask: bool


@dataclass(frozen=True)
class DerivativeSpec:
    """Everything the derivative table needs to know about one operator."""

    operator: Operator
    node_name: str
    differentiable: tuple[int, ...]
    saved: tuple[Saved, ...]
    backwards: tuple[Backward, ...]


class _Collector:
    """Gathers the saved things of one operator; the same thing used by two formulas is saved once."""

    def __init__(self) -> None:
        self.saved: list[Saved] = []

    def slot(self, kind: str, index: int, local: str, meta: Fact | None, needed_by: int) -> int:
        for position, item in enumerate(self.saved):
            if (item.kind, item.index, item.meta) == (kind, index, meta):
                self.saved[position] = Saved(kind, index, item.local, meta, item.needed_by | needed_by)
                return position
        self.saved.append(Saved(kind, index, local, meta, needed_by))
        return len(self.saved) - 1


def node_names(operators: list[Operator]) -> dict[str, str]:
    """Operator → graph node name: `MulBackward0`, numbered by the order of the overloads in their file."""
    counts: dict[str, int] = {}
    names: dict[str, str] = {}
    for operator in operators:
        if operator.derivative is None or not (operator.derivative.formulas or forgets_inplace(operator)):
            continue
        if operator.copy_of is not None:
            names[operator.schema.full_name] = f"{names[operator.copy_of]}_copy"
            continue
        base = camel_case(operator.base_name.removesuffix("_forward")) + "Backward"
        number = counts.get(base, 0)
        counts[base] = number + 1
        names[operator.schema.full_name] = operator.node or f"{base}{number}"
    return names


def forgets_inplace(operator: Operator) -> bool:
    """Whether an in-place form writes values over `self` that do not depend on it: its gradient is zero from there."""
    assert operator.derivative is not None
    if operator.derivative.word != NON_DIFFERENTIABLE or operator.derivative.keeps_history:
        return False
    return any(is_overwriting(f) for f in functions_of(operator))


def is_overwriting(function: Function) -> bool:
    """Whether the function is an in-place form that writes values over the one tensor that it returns."""
    schema = function.schema
    if "inplace_view" in function.operator.tags:
        return False  # It changes what the tensor shows, not the values.
    return schema.is_inplace and len(schema.returns) == 1 and not schema.arguments[0].type.is_list


def local_name(name: str) -> str:
    """The Rust local that stands for an argument."""
    return "self_" if name == "self" else rust_ident(name)


def analyse(operator: Operator, node_name: str) -> DerivativeSpec:
    """Finds what each formula of `operator` saves."""
    assert operator.derivative is not None
    schema = operator.schema
    # `non_differentiable` arguments take part in no formula; the others are positions of `differentiable`.
    live = _targets(operator)
    differentiable = tuple(i for i, a in enumerate(schema.arguments) if a.name in live)
    position_of = {schema.arguments[i].name: k for k, i in enumerate(differentiable)}
    collector = _Collector()
    backwards: list[Backward] = []
    for formula in operator.derivative.formulas:
        if formula.text == NON_DIFFERENTIABLE:
            continue
        positions = tuple(position_of[t] for t in formula.targets)
        needed_by = sum(1 << p for p in positions)
        backwards.append(_rewrite(operator, formula, positions, needed_by, collector))
    return DerivativeSpec(operator, node_name, differentiable, tuple(collector.saved), tuple(backwards))


def result_names(schema: Schema) -> dict[str, int]:
    """The names by which a formula may use the outputs."""
    names = {f"result{i}": i for i in range(len(schema.returns))}
    if len(schema.returns) == 1:
        names["result"] = 0
    names.update({r.name: i for i, r in enumerate(schema.returns) if r.name})
    return names


def _rewrite(
    operator: Operator, formula: Formula, positions: tuple[int, ...], needed_by: int, collector: _Collector
) -> Backward:
    schema = operator.schema
    slots: list[int] = []
    # String literals are kept aside so that a word in a message is not taken for an argument.
    literals: list[str] = []

    def stash(match: re.Match[str]) -> str:
        literals.append(match.group(0))
        return f'"{len(literals) - 1}"'

    text = _STRING.sub(stash, formula.text)

    def use(kind: str, index: int, local: str, meta: Fact | None = None) -> str:
        slot = collector.slot(kind, index, local, meta, needed_by)
        if slot not in slots:
            slots.append(slot)
        return collector.saved[slot].local

    for index, argument in enumerate(schema.arguments):
        text = _replace_argument(text, index, argument, use, operator, formula)
    names = result_names(schema)
    for name, index in sorted(names.items(), key=lambda item: -len(item[0])):
        if schema.argument(name) is not None:
            continue
        for fact in facts():
            if re.search(rf"{_WORD}{name}\.{fact.method}\(\)", text):
                message = f"`{name}.{fact.method}()`: save the output instead"
                raise OpgenError(formula.location, schema.full_name, message)
        pattern = re.compile(rf"{_WORD}{name}\b(?!\s*(?:\(|::))")
        if pattern.search(text):
            local = use("Output", index, rust_ident(name))
            text = pattern.sub(local, text)
    grads = tuple(sorted({int(n) for n in re.findall(rf"{_WORD}grads\[(\d+)\]", text)}))
    for grad in grads:
        if grad >= len(schema.returns):
            raise OpgenError(
                formula.location, schema.full_name, f"grads[{grad}]: there are {len(schema.returns)} returns"
            )
    uses_grads = bool(re.search(rf"{_WORD}grads\b", text))
    uses_mask = bool(re.search(rf"{_WORD}grad_input_mask\b", text))
    text = re.sub(r'"(\d+)"', lambda m: literals[int(m.group(1))], text)
    return Backward(formula, positions, text, tuple(slots), grads, uses_grads, uses_mask)


def _replace_argument(text, index: int, argument: Argument, use, operator: Operator, formula: Formula):  # type: ignore[no-untyped-def]
    name = argument.name
    local = local_name(name)
    if argument.type.is_tensor_like:
        for fact in facts():
            if fact.of_list != argument.type.is_list:
                continue
            pattern = re.compile(rf"{_WORD}{name}\.{fact.method}\(\)")
            if pattern.search(text):
                bound = f"{local.rstrip('_')}_{fact.method}"
                text = pattern.sub(lambda _, b=bound, f=fact: use("Meta", index, b, f), text)
    # A following `(` or `::` means a function or a path of that name.
    pattern = re.compile(rf"{_WORD}{name}\b(?!\s*(?:\(|::))")
    if pattern.search(text):
        kind = "Input" if argument.type.is_tensor_like else "Value"
        # An in-place form keeps a copy of what `self` was. Other written arguments (running statistics) are saved as
        # they are, as PyTorch does: the formula sees what the operator has left in them.
        if argument.is_write and not operator.schema.is_inplace and (argument.is_out or name in _targets(operator)):
            why = "an output" if argument.is_out else "overwritten and has a gradient of its own"
            raise OpgenError(formula.location, operator.schema.full_name, f"`{name}` is {why}, so it cannot be saved")
        bound = use(kind, index, local)
        text = pattern.sub(bound, text)
    return text


def _targets(operator: Operator) -> set[str]:
    """The arguments that have a gradient."""
    assert operator.derivative is not None
    return {t for f in operator.derivative.formulas if f.text != NON_DIFFERENTIABLE for t in f.targets}


def inplace_uses_self(spec: DerivativeSpec) -> bool:
    """Whether the in-place form has to keep the value that `self` had before the call."""
    return any(s.kind == "Input" and s.index == 0 for s in spec.saved)


def differentiable_functions(functions: list[Function]) -> list[Function]:
    """Those functions that share the operator's derivative: all but the `out=` forms."""
    return [f for f in functions if not f.schema.out_arguments]
