"""`python/ptr/_C.pyi`: the types of every function and Tensor method, after a hand-written head."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ..model import Argument, Function, Schema
from ..signatures import Binding, Overload, bindings

PATH = "python/ptr/_C.pyi"

_KEYWORDS = frozenset("from in is lambda not or and if else def class global import pass with as try".split())
# Inside class Tensor these names are methods or properties, so types are spelled through an alias.
_BASES = {
    "Tensor": "Tensor",
    "int": "_int",
    "SymInt": "_int | SymInt",
    "float": "_float",
    "SymFloat": "_float | SymFloat",
    "bool": "_bool",
    "SymBool": "_bool | SymBool",
    "complex": "_complex",
    "Scalar": "Number | _complex",
    "str": "str",
    "ScalarType": "_dtype",
    "Layout": "_layout",
    "Device": "DeviceLikeType",
    "MemoryFormat": "_memory_format",
    "Generator": "Generator",
    "Storage": "UntypedStorage",
    "Stream": "Any",
}


def emit(functions: Mapping[str, Sequence[Function]]) -> dict[str, str]:
    """The stub file."""
    head = (Path(__file__).parent.parent / "templates" / "_C.pyi.in").read_text()
    everything = [f for items in functions.values() for f in items]
    names = bindings(everything)
    # A method written by hand may have a stub written by hand.
    written = [b.name for b in names if b.is_manual and f"    def {b.name}(self" in head]
    methods = [line for b in names if b.is_method and b.name not in written for line in _defs(b, method=True)]
    groups = {
        "_VariableFunctions": [b for b in names if b.is_function and b.namespace is None],
        "_nn": [b for b in names if b.is_function and b.namespace == "nn"],
        "_special": [b for b in names if b.is_function and b.namespace == "special"],
        "_linalg": [b for b in names if b.is_function and b.namespace == "linalg"],
        "_fft": [b for b in names if b.is_function and b.namespace == "fft"],
    }
    namespaces: list[str] = []
    for name, items in groups.items():
        lines = [line for b in items for line in _defs(b, method=False)]
        namespaces += [f"class {name}Class:", *(lines or ["    ..."]), "", f"{name}: {name}Class", ""]
    text = head.replace("    # <methods>\n", "\n".join(methods) + "\n").replace(
        "# <namespaces>\n", "\n".join(namespaces).rstrip() + "\n"
    )
    return {PATH: text}


def _defs(binding: Binding, *, method: bool) -> list[str]:
    signatures: list[str] = []
    for overload in binding.overloads:
        if method and overload.is_method:
            signatures += _signatures(binding, overload, method=True)
        elif not method and overload.is_function:
            signatures += _signatures(binding, overload, method=False)
    signatures = list(dict.fromkeys(signatures))
    indent = "    "
    # A name that Python reserves cannot be written as a def; such methods are reached by getattr.
    if binding.name in _KEYWORDS:
        return []
    decorators = [] if method else ["@staticmethod"]
    if len(signatures) > 1:
        decorators = ["@overload", *decorators]
    lines: list[str] = []
    for signature in signatures:
        lines += [indent + d for d in decorators]
        lines.append(f"{indent}def {binding.name}{signature}: ...")
    return lines


def _signatures(binding: Binding, overload: Overload, *, method: bool) -> list[str]:
    schema = overload.schema
    arguments = list(overload.arguments)
    options = schema.has_tensor_options
    positional = [a for a in arguments if not a.kwarg_only]
    keywords = [a for a in arguments if a.kwarg_only]
    if method:
        positional = [a for a in positional if a.name != "self"]
    texts = [_argument(a, function=not method, numbers=binding.numbers_as_tensors) for a in positional]
    keyword_texts = [_argument(a, function=not method) for a in keywords]
    if overload.out is not None and not method:
        outs = overload.out.schema.out_arguments
        keyword_texts.append(_out(outs, optional=overload.base is not None))
    if options:
        keyword_texts.append("requires_grad: _bool | None = False")
    returns = _returns(schema)
    first = ["self"] if method else []
    result = [_join(first + texts, keyword_texts, returns)]
    variadic = _variadic(positional)
    if variadic is not None:
        result.append(_join([*first, variadic], keyword_texts, returns, star=False))
    return result


def _join(positional: list[str], keywords: list[str], returns: str, *, star: bool = True) -> str:
    parts = list(positional)
    if keywords:
        if star:
            parts.append("*")
        parts += keywords
    return f"({', '.join(parts)}) -> {returns}"


def _variadic(positional: Sequence[Argument]) -> str | None:
    """`view(*shape)`: a single list of integers may be given as separate arguments."""
    if len(positional) != 1 or positional[0].type.key not in ("int[]", "SymInt[]"):
        return None
    return f"*{_python_name(positional[0].name)}: {_BASES['SymInt']}"


def _python_name(name: str) -> str:
    return name + "_" if name in _KEYWORDS else name


def _argument(argument: Argument, *, function: bool, numbers: bool = False) -> str:
    name = "input" if argument.name == "self" and function else _python_name(argument.name)
    text = f"{name}: {type_of(argument)}"
    if numbers and argument.type.key == "Tensor":
        text += " | Number | _complex"
    return text if argument.default is None else f"{text} = {_default(argument)}"


def type_of(argument: Argument) -> str:
    """The Python type that an argument accepts."""
    kind = argument.type
    text = _BASES[kind.base]
    if kind.element_optional:
        text += " | None"
    if kind.is_list:
        if kind.base == "Tensor":
            text = f"Sequence[{text}]" if kind.element_optional else "tuple[Tensor, ...] | list[Tensor]"
        else:
            text = f"Sequence[{text}]"
            if kind.list_size is not None and kind.base in ("int", "SymInt", "float"):
                text = f"{_BASES[kind.base]} | {text}"
    return f"{text} | None" if kind.optional else text


def _default(argument: Argument) -> str:
    default = argument.default or "None"
    if argument.type.base in ("MemoryFormat", "Layout", "ScalarType") and default not in ("None",):
        return "..."
    if default.startswith("["):
        return default.replace("[", "(").replace("]", ",)") if default != "[]" else "()"
    if default in ("Mean", "Sum"):
        return "1" if default == "Mean" else "2"
    if default[0] in "\"'":
        return '"' + default[1:-1] + '"'
    return default


def _out(outs: Sequence[Argument], *, optional: bool) -> str:
    if len(outs) == 1:
        text = "Tensor" if not outs[0].type.is_list else type_of(outs[0])
    else:
        text = f"tuple[{', '.join('Tensor' for _ in outs)}] | list[Tensor]"
    return f"out: {text} | None = None" if optional else f"out: {text}"


def _returns(schema: Schema) -> str:
    if not schema.returns:
        return "None"
    texts = [_return(r.type.base, r.type.is_list) for r in schema.returns]
    if len(texts) == 1:
        return texts[0]
    return f"tuple[{', '.join(texts)}]"


def _return(base: str, is_list: bool) -> str:
    text = {"Scalar": "Number | _complex", "SymInt": "_int | SymInt"}.get(base, _BASES[base])
    return f"tuple[{text}, ...]" if is_list else text
