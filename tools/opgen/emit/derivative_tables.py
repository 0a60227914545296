"""`crates/autograd/src/gen/<family>.rs`: a `DerivativeEntry` per differentiable overload, and its backward."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ..derivatives import (
    Backward,
    DerivativeSpec,
    Saved,
    analyse,
    differentiable_functions,
    is_overwriting,
    node_names,
)
from ..model import NON_DIFFERENTIABLE, Function, Operator, functions_of
from ..rust_types import marker
from .common import C10_TYPES, header, sources

ROOT = "crates/autograd/src/gen"


def emit(functions: Mapping[str, Sequence[Function]]) -> dict[str, str]:
    """The table of every family that has a derivative, and the `mod.rs` that lists the tables."""
    operators = [f.operator for items in functions.values() for f in items if f.declared]
    names = node_names(operators)
    files: dict[str, str] = {}
    with_entries: list[str] = []
    for family, items in functions.items():
        declared = [f.operator for f in items if f.declared and _has_entry(f.operator)]
        if declared:
            with_entries.append(family)
            files[f"{ROOT}/{family}.rs"] = _family(family, declared, names)
    tracking = {o.schema.qualified_name: t for o in operators if (t := _tracking(o)) != "Strided"}
    files[f"{ROOT}/mod.rs"] = _mod(with_entries, tracking)
    return files


def _tracking(operator: Operator) -> str:
    """The `ViewTracking` of an operator."""
    if operator.view and not operator.view.differentiable:
        return "None"
    return "Replayed" if operator.view and operator.view.replay else "Strided"


def _has_entry(operator: Operator) -> bool:
    derivative = operator.derivative
    if derivative is None:
        return False
    if derivative.formulas:
        return True
    takes_tensors = any(a.type.is_tensor_like for a in operator.schema.arguments)
    return derivative.word == NON_DIFFERENTIABLE and takes_tensors


def _family(family: str, operators: Sequence[Operator], names: Mapping[str, str]) -> str:
    entries: list[str] = []
    bodies: list[str] = []
    for operator in operators:
        functions = list(functions_of(operator))
        assert operator.derivative is not None
        if operator.derivative.formulas:
            spec = analyse(operator, names[operator.schema.full_name])
            body = f"{functions[0].rust_name}_apply"
            bodies.append(_backward(body, spec))
            entries += [_entry(f, spec, body) for f in differentiable_functions(functions)]
        else:
            for function in differentiable_functions(functions):
                forgets = is_overwriting(function) and operator.schema.full_name in names
                entries.append(_zero_gradient(function, names) if forgets else _no_gradient(function))
    code = "\n".join(bodies)
    imports = ["BackwardCtx", "DerivativeEntry"]
    imports += [n for n in ("ForwardRule", "MetaKind", "SavedArg") if any(f"{n}::" in e for e in entries)]
    uses = ["use c10::Result;"]
    if "as ArgType>" in code:
        uses[0] = f"use c10::{{{', '.join(_value_types(code))}}};"
        uses.append("use dispatch::ArgType;")
    if "at::" in code:
        uses.append("use ops::at;")
    shared = [n for n in ("no_gradient", "zero_gradient") if any(f"backward: {n} " in e for e in entries)]
    lines = [u for u in uses]
    newline = "\n"
    return f"""{header(f"//! Derivatives of the `{family}` operators.", [f"crates/ops/yaml/{family}.yaml"])}
#![allow(clippy::too_many_arguments, clippy::needless_borrow)]

{newline.join(lines)}

#[allow(unused_imports)]
use crate::formulas::{{self, *}};
use crate::{{{", ".join(n for n in imports if n != "ForwardRule")}}};
{"use crate::forward_ad::ForwardRule;" if "ForwardRule" in imports else ""}
{f"use super::{{{', '.join(shared)}}};" if shared else ""}

/// One entry per differentiable overload.
pub(super) static ENTRIES: &[DerivativeEntry] = &[
{newline.join(entries)}
];

{code}
"""


def _value_types(code: str) -> list[str]:
    used = set(re.findall(r"<((?:[A-Za-z0-9<>]|\s)+?) as ArgType>", code))
    words = {w for u in used for w in re.findall(r"\w+", u)}
    return sorted({w for w in C10_TYPES if w in words} | {"Result"})


def _source(operator: Operator) -> str:
    # Without the line: a new entry would rewrite those of all that follow it.
    return operator.location.file


def _entry(function: Function, spec: DerivativeSpec, body: str) -> str:
    operator = function.operator
    saved = ", ".join(_saved(s) for s in spec.saved)
    outputs = ", ".join(str(b).lower() for b in operator.output_differentiability)
    return (
        f'DerivativeEntry {{ op: "{function.schema.qualified_name}", node_name: "{spec.node_name}", '
        f'source: "{_source(operator)}", differentiable: &[{", ".join(map(str, spec.differentiable))}], '
        f"saved: &[{saved}], output_differentiability: &[{outputs}], forward: {_forward(operator)}, "
        f"backward: {body} }},"
    )


def _forward(operator: Operator) -> str:
    """The rule of forward mode. Other formulas than `auto_linear` are declared for later; nothing evaluates them."""
    linear = [f.text for f in operator.forward] == ["auto_linear"]
    return "Some(ForwardRule::Linear)" if linear else "None"


def _no_gradient(function: Function) -> str:
    operator = function.operator
    outputs = ", ".join("false" for _ in function.schema.returns)
    return (
        f'DerivativeEntry {{ op: "{function.schema.qualified_name}", node_name: "", source: "{_source(operator)}", '
        f"differentiable: &[], saved: &[], output_differentiability: &[{outputs}], forward: None, "
        f"backward: no_gradient }},"
    )


def _zero_gradient(function: Function, names: Mapping[str, str]) -> str:
    """The entry of an in-place form whose result depends on no tensor as far as gradients go.

    It is recorded when any of them requires a gradient, as in PyTorch, where `self` then requires one too.
    """
    operator = function.operator
    tensors = ", ".join(str(i) for i, a in enumerate(function.schema.arguments) if a.type.key in ("Tensor", "Tensor?"))
    return (
        f'DerivativeEntry {{ op: "{function.schema.qualified_name}", '
        f'node_name: "{names[operator.schema.full_name]}", source: "{_source(operator)}", '
        f"differentiable: &[{tensors}], saved: &[], output_differentiability: &[true], forward: None, "
        "backward: zero_gradient },"
    )


def _saved(saved: Saved) -> str:
    match saved.kind:
        case "Input":
            return f"SavedArg::Input {{ arg: {saved.index}, needed_by: {saved.needed_by:#b} }}"
        case "Output":
            return f"SavedArg::Output {{ ret: {saved.index}, needed_by: {saved.needed_by:#b} }}"
        case "Value":
            return f"SavedArg::Value {{ arg: {saved.index} }}"
        case _:
            assert saved.meta is not None
            what = f"MetaKind::{saved.meta.kind}"
            return f"SavedArg::Meta {{ arg: {saved.index}, what: {what}, needed_by: {saved.needed_by:#b} }}"


def _grad_numbers(operator: Operator) -> list[int]:
    """Return index → index among the differentiable outputs (what `BackwardCtx::grad` counts)."""
    flags = operator.output_differentiability or (True,) * len(operator.schema.returns)
    numbers: list[int] = []
    count = 0
    for flag in flags:
        numbers.append(count if flag else -1)
        count += flag
    return numbers


def _backward(name: str, spec: DerivativeSpec) -> str:
    lines = [f"fn {name}(ctx: &mut BackwardCtx<'_>) -> Result<()> {{"]
    if any(b.uses_grads for b in spec.backwards):
        lines.append("let grads = ctx.grads();")
    for backward in spec.backwards:
        lines += _formula(spec, backward)
    lines += ["Ok(())", "}", ""]
    return "\n".join(lines)


def _names_grad(backward: Backward) -> bool:
    return bool(re.search(r"(?<![\w.:])grad\b(?!\s*\()", backward.expression))


def _formula(spec: DerivativeSpec, backward: Backward) -> list[str]:
    operator = spec.operator
    positions = backward.positions
    if len(positions) == 1:
        condition = f"ctx.needs({positions[0]})"
    else:
        condition = f"ctx.needs_any(&[{', '.join(map(str, positions))}])"
    # Where no gradient came in, the formulas of that gradient alone give none.
    single = _names_grad(backward)
    lines = [f"if let (true, Some(grad)) = ({condition}, ctx.grad(0)) {{" if single else f"if {condition} {{"]
    for slot in backward.slots:
        lines += _bind(operator, slot, spec.saved[slot])
    if backward.uses_mask:
        lines.append(f"let grad_input_mask = [{', '.join(f'ctx.needs({p})' for p in positions)}];")
    expression = _special(operator, backward)
    numbers = _grad_numbers(operator)
    for index in backward.grads:
        if numbers[index] < 0:
            raise operator.error(f"grads[{index}] is of a return that output_differentiability excludes")
    if len(positions) == 1:
        lines.append(f"ctx.set_grad({positions[0]}, {expression});")
    else:
        names = [f"grad_{i}" for i in range(len(positions))]
        lines.append(f"let ({', '.join(names)}) = {expression};")
        for name, position in zip(names, positions, strict=True):
            lines.append(f"if ctx.needs({position}) {{ ctx.set_grad({position}, {name}); }}")
    lines.append("}")
    return lines


def _special(operator: Operator, backward: Backward) -> str:
    match = re.fullmatch(r'not_implemented\(("[^"]*")\)', backward.expression.strip())
    if match:
        target = backward.formula.targets[0]
        return f'not_implemented("{operator.schema.qualified_name}", "{target}", {match.group(1)})?'
    # grads[i] counts the returns; BackwardCtx counts the differentiable ones.
    numbers = _grad_numbers(operator)
    return re.sub(
        r"(?<![\w.:])grads\[(\d+)\]", lambda m: f"grads[{numbers[int(m.group(1))]}].as_ref()", backward.expression
    )


def _bind(operator: Operator, slot: int, saved: Saved) -> list[str]:
    name = saved.local
    if saved.kind == "Meta":
        assert saved.meta is not None
        return [f"let {name} = ctx.{saved.meta.accessor}({slot})?;"]
    if saved.kind == "Output":
        is_list = operator.schema.returns[saved.index].type.is_list
        return [f"let {name} = &ctx.{'tensor_list' if is_list else 'tensor'}({slot})?;"]
    argument = operator.schema.arguments[saved.index]
    if saved.kind == "Value":
        kind = marker(argument)
        return [
            f"let {name} = <{kind} as ArgType>::hold(ctx.value({slot})?.clone())?;",
            f"let {name} = <{kind} as ArgType>::borrow(&{name});",
        ]
    match argument.type.key:
        case "Tensor":
            return [f"let {name} = &ctx.tensor({slot})?;"]
        case "Tensor?":
            return [f"let {name} = ctx.opt_tensor({slot})?;", f"let {name} = {name}.as_ref();"]
        case "Tensor[]":
            return [f"let {name} = &ctx.tensor_list({slot})?[..];"]
        case _:
            return [f"let {name} = &ctx.opt_tensor_list({slot})?[..];"]


def _mod(names: Sequence[str], tracking: Mapping[str, str]) -> str:
    views = ", ".join(f'("{n}", ViewTracking::{t})' for n, t in tracking.items())
    modules = "\n".join(f"mod {n};" for n in names)
    entries = ", ".join(f"{n}::ENTRIES" for n in names)
    return f"""{header("//! Derivative tables, one file per family.", sources(names))}
use c10::Result;

use crate::ad_inplace_or_view::ViewTracking;
use crate::{{BackwardCtx, DerivativeEntry}};

{modules}

static TABLES: &[&[DerivativeEntry]] = &[{entries}];

/// The operators whose views are not tracked as strided ones.
pub(crate) static VIEW_TRACKING: &[(&str, ViewTracking)] = &[{views}];

/// The tables of all families.
pub fn all() -> &'static [&'static [DerivativeEntry]] {{
    TABLES
}}

/// The backward of an in-place operator whose result has no gradient: what it overwrote and compared with gets zeros.
fn zero_gradient(ctx: &mut BackwardCtx<'_>) -> Result<()> {{
    if let Some(grad) = ctx.grad(0) {{
        for k in 0..ctx.num_differentiable() {{
            if ctx.needs(k) {{
                ctx.set_grad(k, crate::tensor_ops::zeros_like(grad)?);
            }}
        }}
    }}
    Ok(())
}}

/// The backward of an operator whose outputs carry no gradient; never reached, as no node is made for it.
fn no_gradient(_ctx: &mut BackwardCtx<'_>) -> Result<()> {{
    Ok(())
}}
"""
