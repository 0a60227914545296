"""From one declared schema to its in-place and `out=` schemas, named as PyTorch names them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from .model import TENSOR_OPTIONS, Argument, Function, Operator, Return, Schema, Variant

_LETTERS = "abcdefgh"


def declared_variant(schema: Schema) -> Variant:
    """Which form the declared schema itself is."""
    if schema.is_inplace:
        return Variant.INPLACE
    return Variant.OUT if schema.out_arguments else Variant.FUNCTIONAL


def inplace_schema(operator: Operator) -> Schema:
    """`add.Tensor(Tensor self, …) -> Tensor` → `add_.Tensor(Tensor(a!) self, …) -> Tensor(a!)`.

    On lists `_foreach_add.List(Tensor[] self, …) -> Tensor[]` → `_foreach_add_.List(Tensor(a!)[] self, …) -> ()`.
    """
    schema = operator.schema
    kind = schema.arguments[0].type.key if schema.arguments and schema.arguments[0].name == "self" else ""
    if kind not in ("Tensor", "Tensor[]"):
        raise operator.error("variant `inplace` needs `Tensor self` or `Tensor[] self` as the first argument")
    if len(schema.returns) != 1 or schema.returns[0].type.key != kind:
        raise operator.error(f"variant `inplace` needs one {kind} return")
    mutable = schema.arguments[0].type.mutable("a")
    returns = () if mutable.is_list else (Return(mutable),)
    arguments = (replace(schema.arguments[0], type=mutable), *schema.arguments[1:])
    overload = _stated(operator, operator.inplace_name, schema.name + "_", "inplace_name")
    return replace(
        schema,
        name=schema.name + "_",
        overload=schema.overload if overload is None else overload,
        arguments=arguments,
        returns=returns,
    )


def _stated(operator: Operator, stated: str | None, base: str, key: str) -> str | None:
    """The overload of a stated variant name, whose base has to be `base`."""
    if stated is None:
        return None
    name, _, overload = stated.partition(".")
    if name != base:
        raise operator.error(f"{key} must read `{base}` or `{base}.<overload>`, got `{stated}`")
    return overload


def out_overload(operator: Operator) -> str:
    """The overload name of the `out=` form: `out`, `<overload>_out`, or what the entry states."""
    stated = _stated(operator, operator.out_name, operator.schema.name, "out_name")
    if stated is not None:
        return stated
    overload = operator.schema.overload
    # `add.Tensor` has `add.out`; the forms on lists are named without that exception.
    short = ("",) if _returns_list(operator.schema) else ("", "Tensor")
    return "out" if overload in short else f"{overload}_out"


def _returns_list(schema: Schema) -> bool:
    return len(schema.returns) == 1 and schema.returns[0].type.key == "Tensor[]"


def out_schema(operator: Operator) -> Schema:
    """`add.Tensor(…) -> Tensor` → `add.out(…, *, …, Tensor(a!) out) -> Tensor(a!)`.

    A list is filled: `_foreach_neg(…) -> Tensor[]` → `_foreach_neg.out(…, *, Tensor(a!)[] out) -> ()`.
    """
    schema = operator.schema
    is_list = _returns_list(schema)
    if not schema.returns or (not is_list and any(r.type.key != "Tensor" for r in schema.returns)):
        raise operator.error("variant `out` needs Tensor returns, or one Tensor[]")
    names: tuple[str, ...] = operator.out_args
    if not names:
        names = ("out",) if len(schema.returns) == 1 else tuple(r.name for r in schema.returns)
    if len(names) != len(schema.returns) or not all(names):
        raise operator.error(f"out_args must name {len(schema.returns)} arguments")
    outs: list[Argument] = []
    returns: list[Return] = []
    for letter, name, ret in zip(_LETTERS, names, schema.returns, strict=False):
        mutable = ret.type.mutable(letter)
        outs.append(Argument(name, mutable, None, kwarg_only=True))
        if not is_list:
            returns.append(Return(mutable, ret.name))
    # The `out=` form of a factory takes dtype, layout and device from `out` itself.
    dropped: frozenset[str] = TENSOR_OPTIONS if schema.has_tensor_options else frozenset()
    kept = tuple(a for a in schema.arguments if not (a.kwarg_only and a.name in dropped))
    return replace(schema, overload=out_overload(operator), arguments=(*kept, *outs), returns=tuple(returns))


def expand(operator: Operator) -> Iterator[Function]:
    """The declared function, then its in-place and `out=` variants."""
    declared = declared_variant(operator.schema)
    yield Function(operator, operator.schema, declared, declared=True)
    if declared is not Variant.FUNCTIONAL:
        if operator.variants & {"inplace", "function_inplace", "out"}:
            raise operator.error("only a functional schema has generated variants")
        return
    if operator.variants & {"inplace", "function_inplace"}:
        yield Function(operator, inplace_schema(operator), Variant.INPLACE, declared=False)
    if "out" in operator.variants:
        yield Function(operator, out_schema(operator), Variant.OUT, declared=False)
