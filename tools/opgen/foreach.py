"""`foreach: NAME`: an entry that applies the operator NAME to each tensor of its lists.

The entry's arguments are those of the operator, by name or else by position, with lists where it has single values: a
call for the i-th tensors gets the i-th element of every list, and what is no list as it is. A `Tensor` where the
operator has a `Scalar` holds one number for each.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from .model import Argument, Function, Operator, Schema, Variant, functions_of
from .rust_types import local, parameters


@dataclass(frozen=True)
class Each:
    """The function that runs on each element, and for each of its arguments the entry's; `None` is the default."""

    function: Function
    sources: tuple[tuple[Argument, Argument | None], ...]


def bind(operators: Iterable[Operator]) -> list[Operator]:
    """Finds what each `foreach` entry applies."""
    operators = list(operators)
    functions: dict[str, list[Function]] = {}
    for operator in operators:
        if operator.foreach is None:
            for function in functions_of(operator):
                functions.setdefault(function.schema.name, []).append(function)
    bound: list[Operator] = []
    for operator in operators:
        if operator.foreach is not None:
            each = tuple(
                (f.variant.value, _each(f, functions))
                for f in functions_of(operator)
                if f.declared or f.variant is Variant.INPLACE
            )
            operator = replace(operator, each=dict(each))
        bound.append(operator)
    return bound


def _each(function: Function, functions: Mapping[str, list[Function]]) -> Each:
    """The overload whose arguments fit the entry's."""
    operator = function.operator
    name = operator.foreach
    assert name is not None
    if function.variant is Variant.INPLACE and not name.endswith("_"):
        name += "_"
    candidates = [f for f in functions.get(name, ()) if f.variant is not Variant.OUT]
    fitting = [e for f in candidates if (e := _fit(function.schema, f)) is not None]
    # Numbers are unpacked for an operator that has no tensor there.
    fitting = [e for e in fitting if not _unpacks(e)] or fitting
    if len(fitting) != 1:
        known = "; ".join(str(f.schema) for f in candidates) or "there is no such operator"
        raise operator.error(f"`foreach: {operator.foreach}` fits {len(fitting)} overloads of `{name}`: {known}")
    return fitting[0]


def _fit(schema: Schema, function: Function) -> Each | None:
    taken: dict[str, Argument] = {}
    wanted = function.schema.arguments
    for position, argument in enumerate(schema.arguments):
        target = function.schema.argument(argument.name)
        if target is None:
            target = wanted[position] if position < len(wanted) else None
        if target is None or target.name in taken or not _takes(target, argument):
            return None
        taken[target.name] = argument
    if any(a.name not in taken and a.default is None for a in wanted):
        return None
    return Each(function, tuple((a, taken.get(a.name)) for a in wanted))


def _takes(target: Argument, argument: Argument) -> bool:
    given, wanted = argument.type.key, target.type.key.removesuffix("?")
    if given == f"{wanted}[]" or given.removesuffix("?") == wanted:
        return True
    return _is_packed(target, argument)


def _is_packed(target: Argument, argument: Argument) -> bool:
    return argument.type.key == "Tensor" and target.type.key == "Scalar"


def _unpacks(each: Each) -> bool:
    return any(argument is not None and _is_packed(target, argument) for target, argument in each.sources)


def body(function: Function) -> str:
    """The Rust function of the declared or the in-place form."""
    each = function.operator.each[function.variant.value]
    schema = function.schema
    lists = [a for a in schema.arguments if a.type.is_list and a.type.base == "Tensor"]
    first = local(lists[0].name)
    lines = [f"lists::check_lists(&[{', '.join(local(a.name) for a in lists)}])?;"]
    values: list[str] = []
    for target, argument in each.sources:
        if argument is None:
            values.append(_default(function, target))
            continue
        name = local(argument.name)
        if argument.type.is_list:
            if argument.type.base == "Scalar":
                lines.append(f"lists::check_scalars({first}, {name})?;")
            values.append(f"&{name}[i]")
        elif _is_packed(target, argument):
            lines.append(f"let {name} = lists::unpack({name}, {first}.len())?;")
            values.append(f"&{name}[i]")
        else:
            if argument.type.key == "Tensor":
                lines.append(f"lists::check_scalar_tensor({name})?;")
            values.append(name)
    call = f"at::{each.function.rust_name}({', '.join(values)})"
    if schema.returns:
        result, lines = "Vec<Tensor>", [*lines, f"(0..{first}.len()).map(|i| {call}).collect()"]
    else:
        result, lines = "()", [*lines, f"(0..{first}.len()).try_for_each(|i| {call}.map(drop))"]
    code = "\n    ".join(lines)
    return f"fn {function_name(function)}({parameters(schema)}) -> Result<{result}> {{\n    {code}\n}}\n\n"


def function_name(function: Function) -> str:
    """What `body` defines."""
    return f"{function.rust_name}_each"


def _default(function: Function, argument: Argument) -> str:
    """The default of an argument that the entry does not have, in Rust."""
    text = argument.default
    if text == "None":
        return "None"
    if text in ("True", "False"):
        return text.lower()
    if text is not None and argument.type.key == "Scalar" and text.lstrip("-").isdigit():
        return f"&Scalar::Int({text})"
    raise function.operator.error(
        f"no Rust form of the default `{argument.name}={text}` of {function.schema.full_name}"
    )
