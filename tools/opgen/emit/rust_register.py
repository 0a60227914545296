"""`crates/ops/src/gen/register/<family>.rs`: schemas, kernel stubs, structured wrappers and registrations."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ..families import BOOLEAN_PRESETS, META_PRESETS
from ..model import TENSOR_OPTIONS, Argument, Function, Kind, Operator, Schema, Variant, functions_of
from ..rust_types import (
    borrowed,
    kernel_signature,
    kernel_value,
    local,
    locals_of,
    tuple_of,
)
from .common import families, header, sources

ROOT = "crates/ops/src/gen/register"


def emit(functions: Mapping[str, Sequence[Function]]) -> dict[str, str]:
    """The files of every family, and the `mod.rs` that joins them."""
    files = {f"{ROOT}/{family}.rs": _family(family, items) for family, items in functions.items()}
    files[f"{ROOT}/mod.rs"] = _mod(functions)
    return files


def _operators(functions: Sequence[Function]) -> list[Operator]:
    return [f.operator for f in functions if f.declared]


def _family(family: str, functions: Sequence[Function]) -> str:
    operators = _operators(functions)
    schemas = "\n".join(f"({_literal(f'aten::{f.schema}')}, {_tags(f)})," for f in functions)
    stubs = _stubs(operators)
    runs = [_run(o) for o in operators if o.kind is Kind.STRUCTURED]
    registrations = "\n".join(line for f in functions for line in _registrations(f))
    imports = _imports(stubs + "".join(runs) + registrations + _missing_kernels(operators))
    doc = f"//! Schemas, kernel stubs and registrations of the `{family}` operators."
    return f"""{header(doc, [f"crates/ops/yaml/{family}.yaml"])}
#![allow(clippy::too_many_arguments, clippy::type_complexity)]

{imports}

/// The schemas and their tags, in the order of their declarations.
pub(super) static SCHEMAS: &[(&str, &[&str])] = &[
{schemas}
];

{stubs}

{"".join(runs)}

{_missing_kernels(operators)}

/// Registers every kernel of the family.
pub(super) fn register(registrar: &mut Registrar) -> Result<()> {{
    {registrations}
    Ok(())
}}
"""


def _literal(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _tags(function: Function) -> str:
    return f"&[{', '.join(_literal(t) for t in function.operator.tags)}]"


_C10_NAMES = (
    "Device DeviceType DispatchKeySet Error Generator Layout MemoryFormat Result Scalar ScalarType SymInt Tensor"
)
_ITER_NAMES = "DispatchStub StructuredOutputs TensorIterator"
_KEY_NAMES = "BACKENDS KERNEL_BACKENDS EXPLICIT IMPLICIT BACKEND_SELECT"
_MODULES = "composite gen::redispatch meta structured view"
_MACROS = "with_sizes"


def _imports(text: str) -> str:
    code = re.sub(r'"[^"]*"', '""', text)

    def used(names: str) -> list[str]:
        return [n for n in names.split() if re.search(rf"\b{n}\b", code)]

    modules = ["gen::handles", *(m for m in _MODULES.split() if f"{m.split('::')[-1]}::" in code)]
    lines = [f"use c10::{{{', '.join(sorted({*used(_C10_NAMES), 'Result'}))}}};"]
    if iter_names := used(_ITER_NAMES):
        lines.append(f"use iter::{{{', '.join(iter_names)}}};")
    lines += ["", *(f"use crate::{m};" for m in sorted(modules))]
    lines += [f"use crate::sym::{m};" for m in _MACROS.split() if f"{m}!" in code]
    lines.append(f"use crate::registrar::{{{', '.join([*used(_KEY_NAMES), 'Registrar'])}}};")
    return "\n".join(lines)


def _stubs(operators: Sequence[Operator]) -> str:
    seen: dict[str, tuple[str, Operator]] = {}
    lines: list[str] = []
    for operator in operators:
        for name in dict.fromkeys(operator.kernels.values()):
            signature = kernel_signature(operator)
            if name in seen:
                if seen[name][0] != signature:
                    raise operator.error(
                        f"kernel `{name}` is {signature} here and {seen[name][0]} at {seen[name][1].location}"
                    )
                continue
            seen[name] = (signature, operator)
            lines.append(f'static {name.upper()}: DispatchStub<{signature}> = DispatchStub::new("{name}");')
    return "\n".join(lines)


def _missing_kernels(operators: Sequence[Operator]) -> str:
    names = sorted({name.upper() for o in operators for name in o.kernels.values()})
    checks = "\n".join(f"missing.extend({name}.get(device).err());" for name in names)
    if not checks:
        return ""
    return f"""/// Why kernels of the family cannot run on `device`: not registered, or under another type.
pub(super) fn missing_kernels(device: DeviceType, missing: &mut Vec<Error>) {{
    {checks}
}}"""


def _stub(operator: Operator) -> str:
    return next(iter(operator.kernels.values())).upper()


def _run_name(operator: Operator) -> str:
    return next(iter(functions_of(operator))).rust_name + "_run"


def _run(operator: Operator) -> str:
    """The body that a structured operator's variants share: meta, then the kernel, then the copy back."""
    schema = operator.schema
    declared_out = [a.name for a in schema.out_arguments]
    arguments = [a for a in schema.arguments if a.name not in declared_out]
    head = ", ".join(f"{local(a.name)}: {borrowed(a)}" for a in arguments)
    assert operator.meta is not None
    if operator.meta in META_PRESETS:
        tensors = [local(a.name) for a in arguments if a.type.is_tensor_like]
        call = f'meta::presets::{operator.meta}(outs, "{operator.base_name}", {", ".join(tensors)})?'
    elif operator.plan == "iter":
        call = f"meta::{operator.family}::{operator.meta}({', '.join(['outs', *(local(a.name) for a in arguments)])})?"
    else:
        path, inputs = f"meta::{operator.family}::{operator.meta}", ["outs", *(local(a.name) for a in arguments)]
        call = _with_sizes(path, inputs, ["outs", *_maybe_symbolic(arguments)]) + "?"
    lets: list[str] = []
    values: list[str] = []
    for name in operator.kernel_args:
        argument = schema.argument(name)
        assert argument is not None
        statement, value = kernel_value(argument, local(name))
        lets += [statement] if statement else []
        values.append(value)
    if operator.plan == "none":
        first, values = f"{call};", [*values, "&outs.outputs()?"]
    else:
        first, values = f"let plan = {call};", ["&plan", *values]
        if operator.plan != "iter":
            values.append("&outs.outputs()?")
    separator = ", " if head else ""
    if operator.copies_self:
        lets.insert(0, "structured::init_from(self_, outs)?;")
    return f"""fn {_run_name(operator)}(outs: &mut StructuredOutputs{separator}{head}) -> Result<()> {{
    {first}
    if let Some(device) = structured::kernel_device(outs)? {{
        {" ".join(lets)}
        {_stub(operator)}.get(device)?({", ".join(values)})?;
    }}
    outs.finish()
}}

"""


def _maybe_symbolic(arguments: Sequence[Argument]) -> list[str]:
    """The arguments whose geometry or value may be symbolic."""
    return [local(a.name) for a in arguments if a.type.base in ("Tensor", "SymInt", "Scalar")]


def _with_sizes(path: str, arguments: Sequence[str], maybe_symbolic: Sequence[str]) -> str:
    """A call of a function that computes sizes: it is generic over their type, see `ops::sym`."""
    return f"with_sizes!([{', '.join(maybe_symbolic)}] {path}({', '.join(arguments)}))"


def _registrations(function: Function) -> list[str]:
    operator, schema = function.operator, function.schema
    match operator.kind:
        case Kind.STRUCTURED:
            lines = [_register(function, "BACKENDS", _structured_closure(function))]
        case Kind.KERNEL:
            lines = [_register(function, "KERNEL_BACKENDS", _kernel_closure(function))]
        case Kind.VIEW:
            lines = [_register(function, "EXPLICIT", _view_closure(function))]
        case Kind.IMPLICIT | Kind.EXPLICIT:
            lines = [_composite(function)]
    if operator.kind is not Kind.IMPLICIT and _selects_backend(schema):
        lines.append(_register(function, "BACKEND_SELECT", _backend_select_closure(function)))
    return lines


def _register(function: Function, keys: str, closure: str) -> str:
    # Views keep lazy conjugation and negation, and implicit composites leave them to their parts.
    transparent = function.operator.kind is Kind.VIEW or keys == "IMPLICIT"
    method = "implement_transparent" if transparent else "implement"
    return f'registrar.{method}("{function.schema.full_name}", &handles::{function.handle}, {keys}, {closure})?;'


def _pattern(function: Function) -> str:
    return tuple_of(locals_of(function.schema))


def _structured_closure(function: Function) -> str:
    operator, schema = function.operator, function.schema
    run = _run_name(operator)
    outs = [local(a.name) for a in schema.out_arguments]
    inputs = ["&mut outs", *(local(a.name) for a in schema.arguments if not a.is_out)]
    # A factory's `out=` form has no options: they are those of `out`.
    missing = [a.name for a in operator.schema.arguments if not a.is_out and schema.argument(a.name) is None]
    if missing:
        inputs = ["&mut outs"]
        inputs += ["None" if a.name in missing else local(a.name) for a in operator.schema.arguments if not a.is_out]
    guard = _boolean_guard(function)
    match function.variant:
        case Variant.INPLACE:
            make, result = "StructuredOutputs::inplace(self_)", "self_.clone()"
        case Variant.OUT:
            make = f"StructuredOutputs::out(&[{', '.join(outs)}])"
            result = tuple_or_one([f"{o}.clone()" for o in outs])
        case Variant.FUNCTIONAL:
            count = len(schema.returns)
            make = f"StructuredOutputs::functional({count})"
            result = tuple_or_one([f"outs.take({i})?" for i in range(count)])
    result = "outs.take(0)" if result == "outs.take(0)?" else f"Ok({result})"
    keyset = "keyset" if guard else "_"
    return (
        f"|{keyset}, {_pattern(function)}| {{ {guard} let mut outs = {make}; {run}({', '.join(inputs)})?; {result} }}"
    )


def _boolean_guard(function: Function) -> str:
    """Kernels of predicates write bool; an output of another dtype gets a converted copy."""
    operator, schema = function.operator, function.schema
    if operator.meta not in BOOLEAN_PRESETS or function.variant is Variant.FUNCTIONAL:
        return ""
    base = next(iter(functions_of(operator)))
    inputs = ", ".join(["keyset", *locals_of(operator.schema)])
    write, out = ("write_out", "out") if function.variant is Variant.OUT else ("write_inplace", "self_")
    return (
        f"if !structured::is_bool({out}) {{ "
        f'return structured::{write}("{schema.name}", {out}, &redispatch::{base.rust_name}({inputs})?); }}'
    )


def tuple_or_one(items: Sequence[str]) -> str:
    """One value stays itself; several make a tuple."""
    return items[0] if len(items) == 1 else f"({', '.join(items)})"


def _kernel_closure(function: Function) -> str:
    operator, schema = function.operator, function.schema
    if function.variant is Variant.OUT and not function.declared:
        inputs = ", ".join(locals_of(operator.schema))
        base = next(iter(functions_of(operator)))
        call = f"redispatch::{base.rust_name}(keyset, {inputs})?"
        return f'|keyset, {_pattern(function)}| structured::write_out("{schema.name}", out, &{call})'
    lets: list[str] = []
    values: list[str] = []
    for name in operator.kernel_args:
        argument = schema.argument(name)
        assert argument is not None
        statement, value = kernel_value(argument, local(name))
        lets += [statement] if statement else []
        values.append(value)
    return (
        f"|_, {_pattern(function)}| {{ {' '.join(lets)} "
        f"{_stub(operator)}.get({_device_expression(operator)})?({', '.join(values)}) }}"
    )


def _device_expression(operator: Operator) -> str:
    schema = operator.schema
    for argument in schema.arguments:
        if argument.type.key == "Tensor":
            return f"{local(argument.name)}.device().device_type()"
        if argument.type.key == "Tensor[]":
            return f"structured::list_device({local(argument.name)})"
    if schema.has_tensor_options:
        return "structured::device_or_default(device).device_type()"
    raise operator.error("a kernel needs a tensor or device argument to find its backend by")


def _view_closure(function: Function) -> str:
    path = f"view::{function.operator.impl or function.rust_name}"
    call = _with_sizes(path, locals_of(function.schema), _maybe_symbolic(function.schema.arguments))
    return f"|_, {_pattern(function)}| {call}"


def _forward(function: Function, path: str) -> str:
    arguments = ", ".join(locals_of(function.schema))
    return f"|_, {_pattern(function)}| {path}({arguments})"


def _composite(function: Function) -> str:
    operator, schema = function.operator, function.schema
    path = f"composite::{operator.family}::{operator.impl or next(iter(functions_of(operator))).rust_name}"
    if function.declared:
        keys = "IMPLICIT" if operator.kind is Kind.IMPLICIT else "EXPLICIT"
        return _register(function, keys, _forward(function, path))
    if function.variant is Variant.INPLACE:
        keys = "IMPLICIT" if operator.kind is Kind.IMPLICIT else "EXPLICIT"
        if operator.inplace_impl:
            path = f"composite::{operator.family}::{operator.inplace_impl}"
            return _register(function, keys, _forward(function, path))
        call = f"{path}({', '.join(locals_of(schema))})?"
        return _register(
            function, keys, f'|_, {_pattern(function)}| structured::write_inplace("{schema.name}", self_, &{call})'
        )
    # Autograd refuses `out=` calls, so that form stands below autograd even when the operator is implicit.
    outs = [local(a.name) for a in schema.out_arguments]
    inputs: list[str] = []
    for argument in operator.schema.arguments:
        if schema.argument(argument.name) is not None:
            inputs.append(local(argument.name))
        else:
            inputs.append(_option_of_out(argument.name, outs[0]))
    call = f"{path}({', '.join(inputs)})?"
    if len(outs) == 1:
        body = f'structured::write_out("{schema.name}", {outs[0]}, &{call})'
    else:
        names = [f"result{i}" for i in range(len(outs))]
        writes = [f'structured::write_out("{schema.name}", {o}, &{n})?' for o, n in zip(outs, names, strict=True)]
        body = f"{{ let ({', '.join(names)}) = {call}; Ok(({', '.join(writes)})) }}"
    return _register(function, "EXPLICIT", f"|_, {_pattern(function)}| {body}")


def _option_of_out(name: str, out: str) -> str:
    assert name in TENSOR_OPTIONS
    return {
        "dtype": f"Some({out}.dtype())",
        "layout": f"Some({out}.layout())",
        "device": f"Some({out}.device())",
        "pin_memory": "None",
    }[name]


def _selects_backend(schema: Schema) -> bool:
    return schema.has_tensor_options and not any(a.type.is_tensor_like for a in schema.arguments)


def _backend_select_closure(function: Function) -> str:
    arguments = ", ".join(
        ["structured::select_backend(keyset, dtype, layout, device, pin_memory)?", *locals_of(function.schema)]
    )
    return f"|keyset, {_pattern(function)}| redispatch::{function.rust_name}({arguments})"


def _mod(functions: Mapping[str, Sequence[Function]]) -> str:
    names = families(functions)
    modules = "\n".join(f"mod {name};" for name in names)
    schemas = "\n".join(f"registrar.define({name}::SCHEMAS)?;" for name in names)
    calls = "\n".join(f"{name}::register(registrar)?;" for name in names)
    with_kernels = [n for n, items in functions.items() if any(o.kernels for o in _operators(items))]
    missing = "\n".join(f"{name}::missing_kernels(device, &mut missing);" for name in with_kernels)
    return f"""{header("//! Schemas and kernels of every operator.", sources(names))}
use c10::{{DeviceType, Error, Result}};

use crate::registrar::Registrar;

{modules}

/// Defines every schema, then registers every kernel.
pub(crate) fn register_all(registrar: &mut Registrar) -> Result<()> {{
    {schemas}
    {calls}
    Ok(())
}}

/// Why declared kernels cannot run on `device`: one error for each that is not registered or has another type.
pub(crate) fn missing_kernels(device: DeviceType) -> Vec<Error> {{
    let mut missing = Vec::new();
    {missing}
    missing
}}
"""
