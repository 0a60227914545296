"""Schema types as Rust types: the owned marker, the borrow a function takes, and what a kernel sees."""

from __future__ import annotations

from collections.abc import Sequence

from .model import Argument, KernelUse, Kind, Operator, Return, Schema, rust_ident

_SCALARS = {
    "Tensor": "Tensor",
    "int": "i64",
    "SymInt": "SymInt",
    "float": "f64",
    "SymFloat": "SymFloat",
    "bool": "bool",
    "SymBool": "SymBool",
    "complex": "Complex<f64>",
    "Scalar": "Scalar",
    "str": "String",
    "ScalarType": "ScalarType",
    "Layout": "Layout",
    "Device": "Device",
    "MemoryFormat": "MemoryFormat",
    "Generator": "Generator",
    "Storage": "Storage",
    "Stream": "Stream",
}
_BY_VALUE = frozenset("int float bool complex ScalarType Layout Device MemoryFormat Stream".split())


def marker(argument: Argument) -> str:
    """The owned type that stands for the argument in `TypedOp<(…), R>`."""
    kind = argument.type
    text = _SCALARS[kind.base]
    if kind.element_optional:
        text = f"Option<{text}>"
    if kind.is_list:
        text = f"Vec<{text}>"
    return f"Option<{text}>" if kind.optional else text


def borrowed(argument: Argument) -> str:
    """The type of the argument in functions: `&Tensor`, `Option<&[i64]>`, `i64`."""
    kind = argument.type
    text = _SCALARS[kind.base]
    if kind.element_optional:
        text = f"Option<{text}>"
    if kind.is_list:
        text = f"&[{text}]"
    elif kind.base == "str":
        text = "&str"
    elif kind.base not in _BY_VALUE:
        text = f"&{text}"
    return f"Option<{text}>" if kind.optional else text


def kernel_type(argument: Argument) -> str:
    """As `borrowed`, with symbolic numbers resolved: kernels see plain ones."""
    text = borrowed(argument)
    for symbolic, plain in (("SymInt", "i64"), ("SymFloat", "f64"), ("SymBool", "bool")):
        text = text.replace(f"&{symbolic}", plain).replace(f"[{symbolic}]", f"[{plain}]")
    return text


def kernel_value(argument: Argument, local: str) -> tuple[str, str]:
    """How a wrapper passes the argument to a kernel: a statement to run first (or nothing), and the expression."""
    match argument.type.key:
        case "SymInt":
            return "", f"{local}.guard_int()?"
        case "SymInt?":
            return "", f"structured::optional_int({local})?"
        case "SymFloat":
            return "", f"{local}.guard_float()?"
        case "SymFloat?":
            return "", f"{local}.map(SymFloat::guard_float).transpose()?"
        case "SymBool":
            return "", f"{local}.guard_bool()?"
        case "SymBool?":
            return "", f"{local}.map(SymBool::guard_bool).transpose()?"
        case "SymInt[]":
            return f"let {local} = structured::ints({local})?;", f"&{local}"
        case "SymInt[]?":
            return f"let {local} = structured::optional_ints({local})?;", f"{local}.as_deref()"
        case _:
            return "", local


def kernel_arguments(operator: Operator, use: KernelUse) -> tuple[str, ...]:
    """The arguments that the kernel sees: as declared, or all where it makes the whole result."""
    if use.structured or operator.kind is Kind.KERNEL:
        return operator.kernel_args
    return tuple(a.name for a in operator.schema.arguments)


def return_type(returns: Sequence[Return], *, optional: bool) -> str:
    """The Rust return type."""
    texts = [_return(r, optional=optional) for r in returns]
    return texts[0] if len(texts) == 1 else f"({', '.join(texts)})"


def _return(ret: Return, *, optional: bool) -> str:
    text = _SCALARS[ret.type.base]
    if ret.type.is_list:
        return f"Vec<{text}>"
    return f"Option<{text}>" if optional else text


def local(name: str) -> str:
    """An argument's name as a Rust identifier."""
    return "self_" if name == "self" else rust_ident(name)


def parameters(schema: Schema) -> str:
    """`self_: &Tensor, other: &Tensor`"""
    return ", ".join(f"{local(a.name)}: {borrowed(a)}" for a in schema.arguments)


def locals_of(schema: Schema) -> list[str]:
    """The arguments' Rust names."""
    return [local(a.name) for a in schema.arguments]


def tuple_of(items: Sequence[str]) -> str:
    """A Rust tuple, with the comma that a single element needs."""
    return f"({items[0]},)" if len(items) == 1 else f"({', '.join(items)})"


def markers(schema: Schema) -> str:
    """The argument tuple type of the operator's `TypedOp`."""
    return tuple_of([marker(a) for a in schema.arguments])


def kernel_signature(operator: Operator, use: KernelUse) -> str:
    """The Rust function type under which backends register the operator's kernel."""
    schema = operator.schema
    arguments = [kernel_type(a) for n in kernel_arguments(operator, use) if (a := schema.argument(n)) is not None]
    if not use.structured:
        result = return_type(schema.returns, optional=operator.optional_returns)
        return f"fn({', '.join(arguments)}) -> Result<{result}>"
    if operator.plan == "iter":
        arguments.insert(0, "&TensorIterator")
    else:
        if operator.plan != "none":
            arguments.insert(0, f"&iter::{operator.plan}")
        arguments.append("&[Tensor]")
    return f"fn({', '.join(arguments)}) -> Result<()>"
