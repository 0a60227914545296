"""The immutable data model: schemas, operators, and the functions that an operator expands to.

Every declared thing knows its YAML file and line (`Location`), so that an error found late, by any emitter, still
points at the line somebody has to edit.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from .dispatch_keys import KeySort, dispatch_keys


@dataclass(frozen=True)
class Location:
    """A line of a YAML file."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class OpgenError(Exception):
    """A mistake in a declaration; the text starts with where it is."""

    def __init__(self, location: Location, subject: str, message: str) -> None:
        super().__init__(f"{location}: {subject}: {message}" if subject else f"{location}: {message}")
        self.location = location


@dataclass(frozen=True)
class Alias:
    """An alias annotation such as `(a)`, `(a!)` or `(a -> *)`."""

    before: tuple[str, ...]
    is_write: bool
    after: tuple[str, ...]

    def __str__(self) -> str:
        text = "|".join(self.before) + ("!" if self.is_write else "")
        if self.after and self.after != self.before:
            text += " -> " + "|".join(self.after)
        return f"({text})"


@dataclass(frozen=True)
class Type:
    """A schema type: `base`, then optionally a list of it, then optionally optional."""

    base: str
    alias: Alias | None = None
    is_list: bool = False
    list_size: int | None = None
    element_optional: bool = False
    optional: bool = False

    def __str__(self) -> str:
        text = self.base + (str(self.alias) if self.alias else "") + ("?" if self.element_optional else "")
        if self.is_list:
            text += f"[{'' if self.list_size is None else self.list_size}]"
        return text + ("?" if self.optional else "")

    @property
    def is_tensor_like(self) -> bool:
        """Whether values of this type hold tensors (Tensor, Tensor?, Tensor[], Tensor?[])."""
        return self.base == "Tensor"

    @property
    def key(self) -> str:
        """The type without alias annotation and list size: what decides its Rust and Python form."""
        return (
            self.base
            + ("?" if self.element_optional else "")
            + ("[]" if self.is_list else "")
            + ("?" if self.optional else "")
        )

    def mutable(self, letter: str) -> Type:
        """This type as an argument that the operator writes to."""
        return Type(self.base, Alias((letter,), True, (letter,)), self.is_list, self.list_size)

    def plain(self) -> Type:
        """This type without its alias annotation."""
        return replace(self, alias=None)


@dataclass(frozen=True)
class Argument:
    """One argument of a schema."""

    name: str
    type: Type
    default: str | None = None
    kwarg_only: bool = False

    @property
    def is_write(self) -> bool:
        """Whether the operator mutates this argument."""
        return self.type.alias is not None and self.type.alias.is_write

    @property
    def is_out(self) -> bool:
        """Whether this is an `out=` argument: written to and keyword-only."""
        return self.is_write and self.kwarg_only

    def __str__(self) -> str:
        return f"{self.type} {self.name}" + ("" if self.default is None else f"={self.default}")


@dataclass(frozen=True)
class Return:
    """One return of a schema, named or not."""

    type: Type
    name: str = ""

    def __str__(self) -> str:
        return f"{self.type} {self.name}".rstrip()


DEFAULT_NAMESPACE = "aten"


@dataclass(frozen=True)
class Schema:
    """A function schema in PyTorch's language."""

    name: str
    overload: str
    arguments: tuple[Argument, ...]
    returns: tuple[Return, ...]
    namespace: str = DEFAULT_NAMESPACE

    def __str__(self) -> str:
        parts: list[str] = []
        for index, argument in enumerate(self.arguments):
            if argument.kwarg_only and (index == 0 or not self.arguments[index - 1].kwarg_only):
                parts.append("*")
            parts.append(str(argument))
        returns = ", ".join(map(str, self.returns))
        if len(self.returns) != 1:
            returns = f"({returns})"
        return f"{self.full_name}({', '.join(parts)}) -> {returns}"

    @property
    def full_name(self) -> str:
        """`name.overload`, or `name` when the overload is empty; with the namespace unless it is `aten`."""
        return self.qualified_name.removeprefix(f"{DEFAULT_NAMESPACE}::")

    @property
    def qualified_name(self) -> str:
        """`aten::name.overload`"""
        return f"{self.namespace}::{self.name}" + (f".{self.overload}" if self.overload else "")

    @property
    def qualified(self) -> str:
        """The schema with its namespace."""
        return str(self) if self.namespace != DEFAULT_NAMESPACE else f"{DEFAULT_NAMESPACE}::{self}"

    @property
    def is_inplace(self) -> bool:
        """Whether the name ends in one underscore and the first argument is written to."""
        return (
            self.name.endswith("_")
            and not self.name.endswith("__")
            and bool(self.arguments)
            and self.arguments[0].is_write
        )

    @property
    def out_arguments(self) -> tuple[Argument, ...]:
        """The `out=` arguments."""
        return tuple(a for a in self.arguments if a.is_out)

    def argument(self, name: str) -> Argument | None:
        """The argument called `name`."""
        return next((a for a in self.arguments if a.name == name), None)

    @property
    def has_tensor_options(self) -> bool:
        """Whether the four TensorOptions arguments (dtype, layout, device, pin_memory) are all present."""
        return TENSOR_OPTIONS <= {a.name for a in self.arguments if a.kwarg_only}


TENSOR_OPTIONS = frozenset({"dtype", "layout", "device", "pin_memory"})


class Kind(enum.Enum):
    """How an operator is computed."""

    STRUCTURED = "structured"  # a meta function, then a kernel that only computes
    KERNEL = "kernel"  # a kernel that allocates its own outputs (`output: dynamic`, or nothing to allocate)
    VIEW = "view"  # the shape function is the implementation
    IMPLICIT = "implicit"  # composite, differentiated through what it calls
    EXPLICIT = "explicit"  # composite, with its own derivative


class Variant(enum.Enum):
    """Which form of an operator a function is."""

    FUNCTIONAL = "functional"
    INPLACE = "inplace"
    OUT = "out"


@dataclass(frozen=True)
class Formula:
    """One derivative formula: the arguments it gives gradients for, and the Rust expression."""

    targets: tuple[str, ...]
    text: str
    location: Location


@dataclass(frozen=True)
class ForwardFormula:
    """One forward-mode formula: the returns it gives tangents for, and the expression (or an `auto_` word)."""

    targets: tuple[str, ...]
    text: str
    location: Location


@dataclass(frozen=True)
class ViewRule:
    """The facts of a view operator: how to copy it, how to invert it, whether gradients pass it, and whether only the
    operator itself makes it anew because it changes more than sizes and strides."""

    copy: str | None = None
    inverse: str | None = None
    differentiable: bool = True
    replay: bool = False
    copy_through: str | None = None  # what the copying form calls if it takes more than the view does


NON_DIFFERENTIABLE = "non_differentiable"
NOT_IMPLEMENTED = "not_implemented"  # a gradient asked of what the operator returns or writes is an error
UNTRACKED = "untracked"  # NON_DIFFERENTIABLE, and a tensor that is written to keeps its history
FALLTHROUGH = "fallthrough"  # under `dispatch`: the operator passes the key by, whatever serves it for others
UNWRITTEN = "unwritten"  # what `new_op.py` leaves in place of a formula
AUTO = "auto"


@dataclass(frozen=True)
class Derivative:
    """The derivative of an operator: formulas, or one word that says why there are none."""

    formulas: tuple[Formula, ...] = ()
    word: str | None = None  # NON_DIFFERENTIABLE, NOT_IMPLEMENTED or AUTO
    keeps_history: bool = False  # `untracked`: the in-place form is not recorded
    location: Location | None = None


@dataclass(frozen=True)
class KernelUse:
    """A kernel of an operator: for some keys, or (`keys` empty) for every backend's strided tensors but `others`."""

    name: str
    keys: tuple[str, ...]
    others: tuple[str, ...]
    structured: bool

    @property
    def stub(self) -> str:
        """Its `DispatchStub` static."""
        return self.name.upper()


@dataclass(frozen=True)
class Operator:
    """One YAML entry, after the family's rules have filled in what it leaves out."""

    location: Location
    family: str
    schema: Schema
    variants: frozenset[str]
    kind: Kind
    meta: str | None = None
    plan: str = "none"
    kernel: str | None = None  # the name under which any backend registers its kernel for strided tensors
    dispatch: Mapping[str, str] = field(default_factory=dict)  # what is stated for single dispatch keys
    kernel_args: tuple[str, ...] = ()
    impl: str | None = None
    copies: str | None = None  # of the copying form of a view: the function whose result is copied
    copy_of: str | None = None  # and the view
    inplace_impl: str | None = None
    out_impl: str | None = None  # a function of the family, or another operator's as `at::abs_out`
    exact_out: bool = False  # `out_dtype: exact`
    inplace_name: str | None = None
    out_name: str | None = None
    out_args: tuple[str, ...] = ()
    derivative: Derivative | None = None
    forward: tuple[ForwardFormula, ...] = ()
    output_differentiability: tuple[bool, ...] = ()
    view: ViewRule | None = None
    autocast: str | None = None
    dynamic_output: bool = False
    tags: tuple[str, ...] = ()
    inplace_tags: tuple[str, ...] | None = None  # of the generated forms, where they are not the operator's
    out_tags: tuple[str, ...] | None = None
    batch: str | None = None
    decomp: str | None = None
    lowering: str | None = None
    sharding: str | None = None
    doc: str | None = None
    namespace: str | None = None
    python: bool = True
    manual_method: bool = False  # `python: manual`: the bindings have the method by hand
    numbers_as_tensors: bool = False
    node: str | None = None
    optional_returns: bool = False
    device_check: bool = True
    meta_device_check: bool = True  # whether it is for the Meta device as well, whose tensors are not computed
    device_guard: bool = True
    # What happens to a given output that shares memory with an input: `refuse` and `refuse_partial` are errors.
    overlap: str = "separate"
    foreach: str | None = None  # the operator that runs on each tensor of the lists
    each: Mapping[str, Any] = field(default_factory=dict)  # how, per variant: `foreach.Each`
    # `init: copy_self`: the wrapper copies `self` into the output before the kernel runs; a composite's functional form
    # is its in-place form on a copy.
    copies_self: bool = False
    same_as: Operator | None = None  # a composite that is this operator, under another name or for numbers

    @property
    def base_name(self) -> str:
        """The name without a trailing in-place underscore."""
        return self.schema.name[:-1] if self.schema.is_inplace else self.schema.name

    def kernel_for(self, key: str) -> str | None:
        """The name under which the kernel of a backend's key is registered."""
        sort = dispatch_keys()[key]
        if sort not in (KeySort.DENSE, KeySort.BACKEND):
            return None
        return self.dispatch.get(key, self.kernel if sort is KeySort.DENSE else None)

    @property
    def kernels(self) -> tuple[KernelUse, ...]:
        """Every kernel with the keys it is for; the one that any backend may register comes first."""
        sorts = dispatch_keys()
        stated = {k: name for k, name in self.dispatch.items() if sorts[k] in (KeySort.DENSE, KeySort.BACKEND)}
        uses: list[KernelUse] = []
        if self.kernel is not None:
            others = tuple(k for k in stated if sorts[k] is KeySort.DENSE)
            uses.append(KernelUse(self.kernel, (), others, self.kind is Kind.STRUCTURED))
        groups: dict[tuple[str, bool], list[str]] = {}
        for key, name in stated.items():
            # Kernels of structured operators fill outputs that the wrapper has made; only strided ones are made.
            structured = self.kind is Kind.STRUCTURED and sorts[key] is KeySort.DENSE
            groups.setdefault((name, structured), []).append(key)
        uses += [KernelUse(name, tuple(keys), (), structured) for (name, structured), keys in groups.items()]
        return tuple(uses)

    def error(self, message: str) -> OpgenError:
        """An error about this operator."""
        return OpgenError(self.location, self.schema.full_name, message)


@dataclass(frozen=True)
class Function:
    """One registered operator: the declared form or a generated variant."""

    operator: Operator
    schema: Schema
    variant: Variant
    declared: bool

    @property
    def tags(self) -> tuple[str, ...]:
        """The stated tags and those that follow from the form. What an operator is decomposed to is its first form."""
        operator, tags = self.operator, set(self.operator.tags)
        if not self.declared:
            tags.discard("core")
        if self.variant is Variant.OUT:
            tags = set(operator.out_tags) if not self.declared and operator.out_tags is not None else tags
            tags.add("out")
        elif self.variant is Variant.INPLACE:
            tags = set(operator.inplace_tags) if not self.declared and operator.inplace_tags is not None else tags
            tags.add("inplace")
            if (operator.same_as or operator).kind is Kind.VIEW:
                tags.add("inplace_view")
        return tuple(sorted(tags | {"pt2_compliant_tag"}))

    @property
    def rust_name(self) -> str:
        """`add.Tensor` → `add_tensor`, `add_.Tensor` → `add__tensor`, `quantized::add` → `quantized_add`."""
        return rust_ident(self.handle.lower())

    @property
    def handle(self) -> str:
        """The name of its `TypedOp` static."""
        schema = self.schema
        parts = [schema.namespace] if schema.namespace != DEFAULT_NAMESPACE else []
        return "_".join([*parts, schema.name, *([schema.overload] if schema.overload else [])]).upper()


RUST_KEYWORDS = frozenset(
    "as break const continue crate else enum extern false fn for if impl in let loop match mod move mut pub ref return "
    "self Self static struct super trait true type unsafe use where while async await dyn abstract become box do final "
    "macro override priv typeof unsized virtual yield try gen".split()
)


def rust_ident(name: str) -> str:
    """`name` as a Rust identifier: keywords get a trailing underscore."""
    return name + "_" if name in RUST_KEYWORDS else name


def camel_case(name: str) -> str:
    """`max_pool2d` → `MaxPool2D`, as PyTorch names its graph nodes."""
    return re.sub("_", "", name.strip("_").title())


def functions_of(operator: Operator) -> Iterator[Function]:
    """The declared function and its generated variants, in a fixed order."""
    from . import variants  # the rules are long enough for a file of their own

    yield from variants.expand(operator)
