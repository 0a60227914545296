"""Python signatures: which overloads a Python name has, and the order in which the argument parser tries them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .model import DEFAULT_NAMESPACE, Argument, Function, Schema, Variant


@dataclass(frozen=True)
class Overload:
    """One signature of a Python function: an operator, and the `out=` form that shares its arguments."""

    base: Function | None
    out: Function | None
    is_function: bool
    is_method: bool

    @property
    def schema(self) -> Schema:
        """The schema that the arguments come from."""
        function = self.base or self.out
        assert function is not None
        return function.schema

    @property
    def arguments(self) -> tuple[Argument, ...]:
        """The arguments without `out=`."""
        return tuple(a for a in self.schema.arguments if not a.is_out)


@dataclass(frozen=True)
class Binding:
    """A Python name with its overloads, in the order of trial."""

    name: str
    namespace: str | None
    overloads: tuple[Overload, ...]

    @property
    def family(self) -> str:
        """Where the name belongs if families share it: to the one whose operator was declared first."""
        operators = [f.operator for o in self.overloads for f in (o.base, o.out) if f]
        return min(operators, key=lambda o: (o.location.file, o.location.line)).family

    @property
    def is_function(self) -> bool:
        return any(o.is_function for o in self.overloads)

    @property
    def is_method(self) -> bool:
        return any(o.is_method for o in self.overloads)

    @property
    def is_manual(self) -> bool:
        """Whether the bindings have the method by hand, for all of its overloads."""
        methods = [o.base for o in self.overloads if o.is_method and o.base]
        manual = [f for f in methods if f.operator.manual_method]
        if manual and len(manual) != len(methods):
            generated = next(f for f in methods if f not in manual)
            raise generated.operator.error(
                f"the method `{self.name}` is bound by hand, as {manual[0].operator.location} says: `python: manual`"
            )
        return bool(manual)

    @property
    def return_names(self) -> tuple[str, ...]:
        """The named tuple's fields: of the overloads that return several named values."""
        for overload in self.overloads:
            returns = overload.schema.returns
            if len(returns) > 1 and all(r.name for r in returns):
                return tuple(r.name for r in returns)
        return ()

    @property
    def is_factory(self) -> bool:
        """Whether the Python function takes `requires_grad`, which no schema has."""
        return any(o.schema.has_tensor_options for o in self.overloads)

    @property
    def numbers_as_tensors(self) -> bool:
        """Whether a Python number is taken where the schema says Tensor."""
        return any(f.operator.numbers_as_tensors for o in self.overloads for f in (o.base, o.out) if f)


def bindings(functions: Iterable[Function]) -> list[Binding]:
    """All Python names, sorted; the operators with `python: false` are left out.

    Those of other namespaces are reached by `ops.<namespace>` alone.
    """
    groups: dict[tuple[str, str | None], list[Function]] = {}
    for function in functions:
        if function.operator.python and function.schema.namespace == DEFAULT_NAMESPACE:
            groups.setdefault((function.schema.name, function.operator.namespace), []).append(function)
    result: list[Binding] = []
    for (name, namespace), items in sorted(groups.items(), key=lambda g: (g[0][0], g[0][1] or "")):
        overloads = [o for o in _pair(items) if o.is_function or o.is_method]
        if overloads:
            result.append(Binding(name, namespace, tuple(_sorted(overloads))))
    return result


def _visible(function: Function) -> tuple[bool, bool]:
    """Whether it is bound as a function and as a method."""
    variants = function.operator.variants
    if function.variant is Variant.OUT:
        # Python functions take no list of outputs.
        return not any(a.type.is_list for a in function.schema.out_arguments), False
    if function.variant is Variant.INPLACE and not function.declared:
        return "function_inplace" in variants, "inplace" in variants
    return "function" in variants, "method" in variants


def _pair(functions: Sequence[Function]) -> list[Overload]:
    """Joins each `out=` form with the form that takes the same arguments otherwise."""
    bases = [f for f in functions if f.variant is not Variant.OUT]
    outs = [f for f in functions if f.variant is Variant.OUT and any(_visible(f))]
    overloads: list[Overload] = []
    for base in bases:
        match = next((o for o in outs if _same_call(base.schema, o.schema)), None)
        if match is not None:
            outs.remove(match)
        is_function, is_method = _visible(base)
        # PyTorch binds `out=` to functions only, so a method-only operator leaves its out form without a Python name.
        overloads.append(Overload(base, match if is_function else None, is_function, is_method))
    overloads.extend(Overload(None, o, True, False) for o in outs)
    return overloads


def _same_call(base: Schema, out: Schema) -> bool:
    options = base.has_tensor_options and not out.has_tensor_options
    left = [a for a in base.arguments if not (options and a.kwarg_only and a.name in _OPTIONS)]
    right = [a for a in out.arguments if not a.is_out]
    return [(a.name, a.type.key) for a in left] == [(a.name, a.type.key) for a in right]


_OPTIONS = frozenset({"dtype", "layout", "device", "pin_memory"})


def _is_smaller_argument(left: str, right: str) -> bool:
    """Whether an argument of type `left` has to be tried after one of type `right`."""
    return (
        (left == "Scalar" and right == "Tensor")
        or (left == "Scalar?" and right == "Tensor?")
        or (left in ("int[]", "SymInt[]") and right in ("int", "int?", "SymInt", "SymInt?"))
        or (left == "Tensor[]" and right.endswith("[]"))
        # A 0-dim integer tensor passes for an integer, and would never reach the overload with a tensor.
        or (left in ("int", "SymInt") and right == "Tensor")
    )


def _is_smaller(left: Overload, right: Overload) -> bool:
    a = [x.type.key for x in left.arguments]
    b = [x.type.key for x in right.arguments]
    if len(a) != len(b) or a == b:
        return False
    return all(x == y or _is_smaller_argument(x, y) for x, y in zip(a, b, strict=True))


def _sorted(overloads: Sequence[Overload]) -> list[Overload]:
    """A stable topological order: an overload comes after those whose arguments are larger."""
    ordered = sorted(overloads, key=lambda o: str(o.schema).partition("(")[2])
    result: list[Overload] = []
    while ordered:
        for index, candidate in enumerate(ordered):
            if not any(_is_smaller(candidate, other) for other in ordered if other is not candidate):
                result.append(ordered.pop(index))
                break
        else:  # pragma: no cover - the order is a partial order, so some overload is always largest
            raise AssertionError("overload order has a cycle")
    return result
