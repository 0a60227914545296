"""`crates/ops/src/gen/<family>.rs`: a `TypedOp` static, a typed function and a redispatching one per operator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..model import Function
from ..rust_types import locals_of, markers, parameters, return_type, tuple_of
from .common import families, header, sources, used_c10_types

ROOT = "crates/ops/src/gen"


def emit(functions: Mapping[str, Sequence[Function]]) -> dict[str, str]:
    """The files of every family, and the `mod.rs` that joins them."""
    files = {f"{ROOT}/{family}.rs": _family(family, items) for family, items in functions.items()}
    files[f"{ROOT}/mod.rs"] = _mod(functions)
    return files


def _family(family: str, functions: Sequence[Function]) -> str:
    handles = [_handle(f) for f in functions]
    calls = [_call(f) for f in functions]
    redispatches = [_redispatch(f) for f in functions]
    types = used_c10_types("\n".join(calls))
    return f"""{header(f"//! Typed calls of the `{family}` operators.", [f"crates/ops/yaml/{family}.yaml"])}
#![allow(clippy::too_many_arguments, clippy::type_complexity)]

/// The operators' handles.
pub mod handles {{
    use c10::{{{used_c10_types(chr(10).join(handles), result=False)}}};
    use dispatch::TypedOp;

    {chr(10).join(handles)}
}}

/// Typed calls.
pub mod calls {{
    use c10::{{{types}}};

    use super::handles;

    {chr(10).join(calls)}
}}

/// The same calls for a kernel that passes a call on: dispatch goes by the given keys.
pub mod redispatch {{
    use c10::{{DispatchKeySet, {used_c10_types(chr(10).join(redispatches))}}};

    use super::handles;

    {chr(10).join(redispatches)}
}}
"""


def _handle(function: Function) -> str:
    schema = function.schema
    result = return_type(schema.returns, optional=function.operator.optional_returns)
    return (
        f"/// `{schema.qualified_name}`\n"
        f"pub static {function.handle}: TypedOp<{markers(schema)}, {result}> = "
        f'TypedOp::new("{schema.namespace}::{schema.name}", "{schema.overload}");'
    )


def _call(function: Function) -> str:
    schema = function.schema
    result = return_type(schema.returns, optional=function.operator.optional_returns)
    doc = function.operator.doc
    lines = [f"/// {doc}", "///"] if doc else []
    lines += [
        f"/// `{schema.qualified}`",
        "#[inline]",
        f"pub fn {function.rust_name}({parameters(schema)}) -> Result<{result}> {{",
        f"    handles::{function.handle}.call({tuple_of(locals_of(schema))})",
        "}",
        "",
    ]
    return "\n".join(lines)


def _redispatch(function: Function) -> str:
    schema = function.schema
    result = return_type(schema.returns, optional=function.operator.optional_returns)
    separator = ", " if schema.arguments else ""
    return (
        f"/// `{schema.qualified_name}`\n#[inline]\n"
        f"pub fn {function.rust_name}(keyset: DispatchKeySet{separator}{parameters(schema)}) -> Result<{result}> {{\n"
        f"    handles::{function.handle}.redispatch(keyset, {tuple_of(locals_of(schema))})\n}}\n"
    )


def _mod(functions: Mapping[str, Sequence[Function]]) -> str:
    names = families(functions)
    modules = "\n".join(f"pub mod {name};" for name in names)
    uses = "\n".join(f"pub use super::{name}::handles::*;" for name in names)
    calls = "\n".join(f"pub use super::{name}::calls::*;" for name in names)
    namespaces = ", ".join(f'"{n}"' for n in sorted({f.schema.namespace for fs in functions.values() for f in fs}))
    redispatch = "\n".join(f"pub use super::{name}::redispatch::*;" for name in names)
    return f"""{header("//! Generated calls and registrations of every operator, one file per family.", sources(names))}
{modules}
pub(crate) mod register;

/// The namespaces that the declarations define.
pub static NAMESPACES: &[&str] = &[{namespaces}];

/// Every operator's `TypedOp`.
pub mod handles {{
    {uses}
}}

/// Every operator's typed call.
pub mod calls {{
    {calls}
}}

/// Every operator's redispatching call.
pub mod redispatch {{
    {redispatch}
}}
"""
