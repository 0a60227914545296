"""`crates/ops/src/gen/register/<family>.rs`: schemas, kernel stubs, structured wrappers and registrations."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from .. import foreach
from ..dispatch_keys import KeySort, dispatch_keys
from ..families import BOOLEAN_PRESETS, META_PRESETS
from ..model import (
    FALLTHROUGH,
    TENSOR_OPTIONS,
    Argument,
    Function,
    KernelUse,
    Kind,
    Operator,
    Schema,
    Variant,
    functions_of,
)
from ..rust_types import (
    borrowed,
    kernel_arguments,
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
    schemas = "\n".join(f"({_literal(f.schema.qualified)}, {_tags(f)})," for f in functions)
    stubs = _stubs(operators)
    runs = [_run(o) for o in operators if o.kind is Kind.STRUCTURED]
    runs += [foreach.body(f) for f in functions if f.operator.foreach and f.variant.value in f.operator.each]
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
    return f"&[{', '.join(_literal(t) for t in function.tags)}]"


_C10_NAMES = (
    "Complex Device DispatchKey DispatchKeySet Error Generator Layout MemoryFormat Result Scalar ScalarType Storage "
    "Stream SymBool SymFloat SymInt Tensor"
)
_ITER_NAMES = "DispatchStub StructuredOutputs TensorIterator"
_KEY_NAMES = "EXPLICIT IMPLICIT META BACKEND_SELECT"
_MODULES = "at composite gen::redispatch lists meta operands structured view"
_MACROS = "with_sizes"


def _imports(text: str) -> str:
    code = re.sub(r'"[^"]*"', '""', text)

    def used(names: str) -> list[str]:
        return [n for n in names.split() if re.search(rf"\b{n}\b", code)]

    modules = ["gen::handles", *(m for m in _MODULES.split() if re.search(rf"(?<![\w:]){m.split('::')[-1]}::", code))]
    lines = [f"use c10::{{{', '.join(sorted({*used(_C10_NAMES), 'Result'}))}}};"]
    if used("DeviceRules"):
        lines.append("use dispatch::DeviceRules;")
    if iter_names := used(_ITER_NAMES):
        lines.append(f"use iter::{{{', '.join(iter_names)}}};")
    lines += ["", *(f"use crate::{m};" for m in sorted(modules))]
    lines += [f"use crate::sym::{m};" for m in _MACROS.split() if f"{m}!" in code]
    lines.append(f"use crate::registrar::{{{', '.join([*used(_KEY_NAMES), 'Registrar', *used('Serves')])}}};")
    return "\n".join(lines)


def _stubs(operators: Sequence[Operator]) -> str:
    seen: dict[str, tuple[str, Operator]] = {}
    lines: list[str] = []
    for operator in operators:
        for use in operator.kernels:
            signature = kernel_signature(operator, use)
            if use.name in seen:
                if seen[use.name][0] != signature:
                    raise operator.error(
                        f"kernel `{use.name}` is {signature} here and {seen[use.name][0]} at "
                        f"{seen[use.name][1].location}"
                    )
                continue
            seen[use.name] = (signature, operator)
            lines.append(f'static {use.stub}: DispatchStub<{signature}> = DispatchStub::new("{use.name}");')
    return "\n".join(lines)


def _missing_kernels(operators: Sequence[Operator]) -> str:
    uses = sorted({u for o in operators for u in o.kernels}, key=lambda u: (u.name, u.keys))
    checks = "\n".join(dict.fromkeys(f"missing.extend({_serves(u)}.missing(key, &{u.stub}));" for u in uses))
    if not checks:
        return ""
    return f"""/// Why kernels of the family cannot run for `key`: not registered, or under another type.
pub(super) fn missing_kernels(key: DispatchKey, missing: &mut Vec<Error>) {{
    {checks}
}}"""


def _keys(names: Sequence[str]) -> str:
    return f"&[{', '.join(f'DispatchKey::{n}' for n in names)}]"


def _serves(use: KernelUse, operator: Operator | None = None) -> str:
    """Which keys the kernel is for and what holds around it, as `registrar::Serves`."""
    # An iterator compares the devices itself, as it allows numbers that live on the CPU.
    mixed = operator and (not operator.device_check or (use.structured and operator.plan == "iter"))
    base = f'Serves::{"dense_of_mixed_devices" if mixed else "dense"}("{use.name}")'
    fields: list[str] = []
    if use.keys:
        fields.append(f"only: {_keys(use.keys)}")
    if use.others:
        fields.append(f"except: {_keys(use.others)}")
    if operator and not operator.device_guard:
        check = "false" if mixed else "true"
        fields.append(f"device: DeviceRules {{ check: {check}, guard: false }}")
    if operator and not operator.meta_device_check:
        fields.append("compare_on_meta: false")
    return f"Serves {{ {', '.join(fields)}, ..{base} }}" if fields else base


def _run_kernel(operator: Operator, kernel: str, values: Sequence[str]) -> str:
    """A call of a kernel, which does not know on whose behalf it runs."""
    return f'{kernel}({", ".join(values)}).map_err(structured::in_operator("{operator.schema.name}"))'


def _structured_kernel(operator: Operator) -> str:
    """The kernel that a structured operator's wrapper calls, for the key of the call."""
    key = _key_name(operator)
    default, *stated = [u for u in operator.kernels if u.structured]
    if not stated:
        return f"{default.stub}.get({key})?"
    arms = [f"{' | '.join(f'DispatchKey::{k}' for k in u.keys)} => {u.stub}.get({key})?," for u in stated]
    return f"match {key} {{ {' '.join(arms)} _ => {default.stub}.get({key})? }}"


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
    return f"""fn {_run_name(operator)}(
    keyset: DispatchKeySet, outs: &mut StructuredOutputs{separator}{head}
) -> Result<()> {{
    {first}
    if let Some({_key_name(operator)}) = {_kernel_key(operator, arguments)} {{
        {" ".join(lets)}
        {_run_kernel(operator, _structured_kernel(operator), values)}?;
    }}
    outs.finish()
}}

"""


def _key_name(operator: Operator) -> str:
    """What the key of a call is called: arguments come first, and one of attention's is a `key`."""
    return "backend" if any(a.name == "key" for a in operator.schema.arguments) else "key"


def _operands(arguments: Sequence[Argument]) -> str:
    """The arguments that hold tensors, as `operands::Operands`."""
    pairs = [f'("{a.name}", &{local(a.name)})' for a in arguments if a.type.is_tensor_like]
    return f"&[{', '.join(pairs)}]"


def _kernel_key(operator: Operator, arguments: Sequence[Argument]) -> str:
    """Whose kernel is to run. An iterator has checked its operands itself; other kernels' are checked here."""
    if operator.plan == "iter":
        return "structured::kernel_key(keyset)"
    return f'operands::kernel_key(keyset, outs, "{operator.schema.name}", {_operands(arguments)})?'


def _overlap_guard(function: Function) -> str:
    """What stands before a call that writes to given outputs, for kernels that no iterator drives."""
    operator, schema = function.operator, function.schema
    if operator.plan == "iter" or function.variant is Variant.FUNCTIONAL:
        return ""
    written = [a for a in schema.arguments if a.is_write]
    # A kernel that starts from a copy of `self` may find it in its output.
    starts_from_self = operator.copies_self and operator.kind is Kind.STRUCTURED
    kept = {a.name for a in written} | ({"self"} if starts_from_self else set())
    read = [a for a in schema.arguments if a.type.is_tensor_like and a.name not in kept]
    if not read or any(a.type.is_list for a in written):
        return ""
    base = next(iter(functions_of(operator)))
    outs = f"&[{', '.join(local(a.name) for a in written)}]"
    call = f'operands::overlaps({outs}, "{schema.name}", operands::Overlap::'
    if operator.overlap == "refuse" or base.schema.is_inplace:
        return f"{call}Refuse, {_operands(read)})?;"
    if operator.kind is not Kind.STRUCTURED or operator.optional_returns:
        return ""  # Computed apart and copied in any case.
    inputs = ", ".join(["keyset", *_base_inputs(function)])
    # A structured operator that no iterator drives writes only the dtype that it computes.
    result = _write_result(function, f"redispatch::{base.rust_name}({inputs})?", exact=True)
    how = "RefusePartial" if operator.overlap == "refuse_partial" else "Separate"
    return f"if {call}{how}, {_operands(read)})? {{ return {result}; }}"


def _guarded(function: Function, call: str) -> str:
    guard = _overlap_guard(function)
    return f"{{ {guard} {call} }}" if guard else call


def _maybe_symbolic(arguments: Sequence[Argument]) -> list[str]:
    """The arguments whose geometry or value may be symbolic."""
    return [local(a.name) for a in arguments if a.type.base in ("Tensor", "SymInt", "Scalar")]


def _with_sizes(path: str, arguments: Sequence[str], maybe_symbolic: Sequence[str]) -> str:
    """A call of a function that computes sizes: it is generic over their type, see `ops::sym`."""
    return f"with_sizes!([{', '.join(maybe_symbolic)}] {path}({', '.join(arguments)}))"


def _registrations(function: Function) -> list[str]:
    operator, schema = function.operator, function.schema
    lines: list[str] = []
    match operator.kind:
        case Kind.VIEW:
            lines.append(_register(function, "EXPLICIT", _view_closure(function)))
        case Kind.IMPLICIT | Kind.EXPLICIT:
            lines.append(_composite(function))
    for use in operator.kernels:
        lines.append(_register_kernel(function, use))
    fallthrough = [key for key, name in operator.dispatch.items() if name == FALLTHROUGH]
    if fallthrough and function.declared:
        lines.append(f'registrar.fall_through("{schema.full_name}", {_keys(fallthrough)})?;')
    for key, name in operator.dispatch.items():
        if name != FALLTHROUGH:
            lines += _register_function(function, key, name)
    if operator.kind is not Kind.IMPLICIT and _selects_backend(schema):
        lines.append(_register(function, "BACKEND_SELECT", _backend_select_closure(function)))
    return lines


def _register(function: Function, keys: str, closure: str) -> str:
    # Views keep lazy conjugation and negation, and implicit composites leave them to their parts.
    transparent = function.operator.kind is Kind.VIEW or keys == "IMPLICIT"
    method = "implement_transparent" if transparent else "implement"
    return f'registrar.{method}("{function.schema.full_name}", &handles::{function.handle}, {keys}, {closure})?;'


def _register_kernel(function: Function, use: KernelUse) -> str:
    """The wrapper for the keys of a kernel; that of a structured operator serves Meta too, once."""
    operator = function.operator
    first = use == operator.kernels[0]
    closure = _structured_closure(function) if use.structured else _kernel_closure(function, use)
    method, end = ("structured", "?;") if use.structured and first else ("kernel", ";")
    arguments = f'"{function.schema.full_name}", &handles::{function.handle}, {_serves(use, operator)}, {closure}'
    return f"registrar.{method}({arguments}){end}"


def _register_function(function: Function, key: str, name: str) -> list[str]:
    """A function of this crate that `dispatch` names for a key above the backends' kernels."""
    match dispatch_keys()[key]:
        case KeySort.META:
            path = f"meta::{function.operator.family}::{name}"
        case KeySort.ALIAS | KeySort.FUNCTIONALITY:
            path = f"composite::{function.operator.family}::{name}"
        case _:
            return []
    if function.declared:
        closure = _forward(function, path)
    elif dispatch_keys()[key] is KeySort.FUNCTIONALITY:
        return []
    else:
        closure = _variant_closure(function)
    return [_register(function, _keys([key]), closure)]


def _pattern(function: Function) -> str:
    return tuple_of(locals_of(function.schema))


def _structured_closure(function: Function) -> str:
    operator, schema = function.operator, function.schema
    run = _run_name(operator)
    outs = [local(a.name) for a in schema.out_arguments]
    inputs = ["keyset", "&mut outs", *(local(a.name) for a in schema.arguments if not a.is_out)]
    # A factory's `out=` form has no options: they are those of `out`.
    missing = [a.name for a in operator.schema.arguments if not a.is_out and schema.argument(a.name) is None]
    if missing:
        inputs = ["keyset", "&mut outs"]
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
    guard += _overlap_guard(function)
    return f"|keyset, {_pattern(function)}| {{ {guard} let mut outs = {make}; {run}({', '.join(inputs)})?; {result} }}"


def _boolean_guard(function: Function) -> str:
    """Kernels of predicates write bool; an output of another dtype gets a converted copy."""
    operator, schema = function.operator, function.schema
    if operator.meta not in BOOLEAN_PRESETS or function.variant is Variant.FUNCTIONAL:
        return ""
    base = next(iter(functions_of(operator)))
    inputs = ", ".join(["keyset", *locals_of(operator.schema)])
    call = f"&redispatch::{base.rust_name}({inputs})?"
    if function.variant is Variant.INPLACE:
        write, out = f'structured::write_inplace("{schema.name}", self_, {call})', "self_"
    else:
        tensors = [local(a.name) for a in operator.schema.arguments if a.type.is_tensor_like]
        write, out = f'structured::write_out_or_input("{schema.name}", out, &[{", ".join(tensors)}], {call})', "out"
    return f"if !structured::is_bool({out}) {{ return {write}; }}"


def tuple_or_one(items: Sequence[str]) -> str:
    """One value stays itself; several make a tuple."""
    return items[0] if len(items) == 1 else f"({', '.join(items)})"


def _kernel_closure(function: Function, use: KernelUse) -> str:
    """The wrapper of a kernel that makes the whole result."""
    if not function.declared:
        return _variant_closure(function)
    schema = function.schema
    operator = function.operator
    lets: list[str] = []
    values: list[str] = []
    for name in kernel_arguments(operator, use):
        argument = schema.argument(name)
        assert argument is not None
        statement, value = kernel_value(argument, local(name))
        lets += [statement] if statement else []
        values.append(value)
    return (
        f"|keyset, {_pattern(function)}| {{ "
        f'operands::check_operands("{schema.name}", {_operands(schema.arguments)})?; '
        f"{' '.join(lets)} "
        f"{_run_kernel(operator, f'{use.stub}.get(structured::backend_key(keyset))?', values)} }}"
    )


def _variant_closure(function: Function) -> str:
    """An in-place or `out=` form that calls the declared form for the same keys, and copies its result."""
    base = next(iter(functions_of(function.operator)))
    call = f"redispatch::{base.rust_name}({', '.join(['keyset', *_base_inputs(function)])})?"
    return f"|keyset, {_pattern(function)}| {_guarded(function, _write_result(function, call))}"


def _base_inputs(function: Function) -> list[str]:
    """The declared form's arguments: a factory's `out=` form has no options, as they are those of `out`."""
    inputs: list[str] = []
    for argument in function.operator.schema.arguments:
        if function.schema.argument(argument.name) is not None:
            inputs.append(local(argument.name))
        else:
            inputs.append(_option_of_out(argument.name, local(function.schema.out_arguments[0].name)))
    return inputs


def _write_result(function: Function, call: str, exact: bool = False) -> str:
    """Copies what `call` returns to the outputs, which must have its dtype if `exact`, or to `self`."""
    schema = function.schema
    written = schema.arguments[0] if function.variant is Variant.INPLACE else schema.out_arguments[0]
    if written.type.is_list:
        form = "inplace" if function.variant is Variant.INPLACE else "out"
        return f'structured::write_list("{schema.name}", {local(written.name)}, &{call}, structured::write_{form})'
    if function.variant is Variant.INPLACE:
        return f'structured::write_inplace("{schema.name}", self_, &{call})'
    if function.operator.optional_returns:
        raise function.operator.error("returns that may be missing have no generated `out=` form")
    outs = [local(a.name) for a in schema.out_arguments]
    exact = exact or function.operator.exact_out
    write = f'structured::{"write_exact" if exact else "write_out"}("{schema.name}"'
    if len(outs) == 1:
        return f"{write}, {outs[0]}, &{call})"
    names = [f"result{i}" for i in range(len(outs))]
    writes = [f"{write}, {o}, &{n})?" for o, n in zip(outs, names, strict=True)]
    return f"{{ let ({', '.join(names)}) = {call}; Ok(({', '.join(writes)})) }}"


def _view_closure(function: Function) -> str:
    path = f"view::{function.operator.impl or next(functions_of(function.operator)).rust_name}"
    call = _with_sizes(path, locals_of(function.schema), _maybe_symbolic(function.schema.arguments))
    if function.variant is Variant.INPLACE:
        call = f'view::in_place("{function.schema.name}()", self_, &{call}?)'
    return f"|_, {_pattern(function)}| {call}"


def _forward(function: Function, path: str) -> str:
    arguments = ", ".join(locals_of(function.schema))
    return f"|_, {_pattern(function)}| {path}({arguments})"


def _same(function: Function) -> str | None:
    """An operator that is another one calls the other's form of the same kind, with numbers as it wants them."""
    other = function.operator.same_as
    assert other is not None
    form = next((f for f in functions_of(other) if f.variant is function.variant), None)
    if form is None:
        return None
    values: list[str] = []
    for mine, its in zip(function.schema.arguments, form.schema.arguments, strict=True):
        value = local(mine.name)
        match mine.type.key, its.type.key:
            case "Scalar", "Tensor":
                value = f"&crate::wrapped_scalar_tensor({value})?"
            case "Tensor", "float":
                value = f"crate::at::item({value})?.to_f64()?"
        values.append(value)
    # Autograd refuses `out=` calls, so that form stands below it.
    keys = "EXPLICIT" if function.variant is Variant.OUT else "IMPLICIT"
    call = f"crate::at::{form.rust_name}({', '.join(values)})"
    return _register(function, keys, f"|_, {_pattern(function)}| {call}")


def _composite(function: Function) -> str:
    operator = function.operator
    if operator.same_as is not None and (registration := _same(function)) is not None:
        return registration
    path = f"composite::{operator.family}::{operator.impl or next(iter(functions_of(operator))).rust_name}"
    keys = "IMPLICIT" if operator.kind is Kind.IMPLICIT else "EXPLICIT"
    if operator.foreach:
        path = foreach.function_name(next(iter(functions_of(operator))))
    if function.variant.value in operator.each:
        return _register(function, keys, _forward(function, foreach.function_name(function)))
    if operator.copies is not None:
        return _register(function, keys, _copy_closure(function, operator.copies))
    if function.declared and not operator.copies_self:
        return _register(function, keys, _forward(function, path))
    if function.variant is Variant.INPLACE and operator.inplace_impl:
        return _register(function, keys, _forward(function, f"composite::{operator.family}::{operator.inplace_impl}"))
    # Autograd refuses `out=` calls, so that form stands below autograd even when the operator is implicit.
    keys = "EXPLICIT" if function.variant is Variant.OUT else keys
    if function.variant is Variant.OUT and operator.out_impl:
        return _register(function, keys, _out_impl_closure(function, operator.out_impl))
    inputs = _base_inputs(function)
    if function.variant is Variant.INPLACE and operator.kind is Kind.IMPLICIT and inputs[0] == "self_":
        inputs[0] = _unmodified_self(function)
    if operator.copies_self:
        path = f"composite::{operator.family}::{operator.inplace_impl}"
        inputs[0] = "&structured::copy_of(self_)?"
    call = f"{path}({', '.join(inputs)})"
    if function.declared:
        return _register(function, keys, f"|_, {_pattern(function)}| {call}")
    call += "?"
    body = _guarded(function, _write_result(function, call))
    return _register(function, keys, f"|_, {_pattern(function)}| {body}")


def _copy_closure(function: Function, view: str) -> str:
    """The copying form of a view, or what copies it to given outputs."""
    call = f"crate::at::{view}({', '.join(_base_inputs(function))})?"
    if function.variant is Variant.OUT:
        body = _guarded(function, _write_result(function, call, exact=True))
    else:
        copy = "copied_list" if function.schema.returns[0].type.is_list else "copied"
        body = f"structured::{copy}(&{call})"
    return f"|_, {_pattern(function)}| {body}"


def _out_impl_closure(function: Function, name: str) -> str:
    """The stated function; one of another operator takes the numbers `self` and `other` as tensors."""
    if not name.startswith("at::"):
        return _forward(function, f"composite::{function.operator.family}::{name}")
    values = [
        f"&crate::wrapped_scalar_tensor({local(a.name)})?"
        if a.type.base == "Scalar" and a.name in ("self", "other")
        else local(a.name)
        for a in function.schema.arguments
    ]
    return f"|_, {_pattern(function)}| crate::{name}({', '.join(values)})"


def _unmodified_self(function: Function) -> str:
    """What an implicit composite computes from: its nodes may save `self`, which is about to be written to."""
    tensors = [a for a in function.schema.arguments if a.type.is_tensor_like and not a.type.is_list]
    given = [local(a.name) if a.type.optional else f"Some({local(a.name)})" for a in tensors]
    return f"&structured::unmodified(self_, &[{', '.join(given)}])?"


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
    missing = "\n".join(f"{name}::missing_kernels(key, &mut missing);" for name in with_kernels)
    return f"""{header("//! Schemas and kernels of every operator.", sources(names))}
use c10::{{DispatchKey, Error, Result}};

use crate::registrar::Registrar;

{modules}

/// Defines every schema, then registers every kernel.
pub(crate) fn register_all(registrar: &mut Registrar) -> Result<()> {{
    {schemas}
    {calls}
    Ok(())
}}

/// Why declared kernels cannot run for `key`: one error for each that is not registered or has another type.
pub(crate) fn missing_kernels(key: DispatchKey) -> Vec<Error> {{
    let mut missing = Vec::new();
    {missing}
    missing
}}
"""
