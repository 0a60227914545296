"""Reads `crates/ops/yaml/*.yaml` into `Operator`s, applying the family rules and rejecting what it does not know."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from . import foreach
from .dispatch_keys import KeySort, dispatch_keys
from .families import FAMILIES, FamilyRule, rule_of
from .model import (
    AUTO,
    FALLTHROUGH,
    NON_DIFFERENTIABLE,
    NOT_IMPLEMENTED,
    UNTRACKED,
    Derivative,
    Formula,
    ForwardFormula,
    Function,
    Kind,
    Location,
    Operator,
    OpgenError,
    Schema,
    ViewRule,
    functions_of,
)
from .schema import SchemaError, parse_schema

KEYS = frozenset(
    "op family variants meta plan kernel dispatch kernel_args init composite impl inplace_impl out_impl out_dtype "
    "output inplace_name out_name out_args optional_returns overlap derivative forward output_differentiability node "
    "view autocast tags inplace_tags out_tags batch decomp lowering sharding doc namespace python numbers_as_tensors "
    "device_check device_guard foreach aliases numbers same_as".split()
)
# `function_inplace` also binds the in-place form as a function (`torch.relu_`), which PyTorch does for some operators.
VARIANTS = frozenset({"function", "method", "inplace", "function_inplace", "out"})
NAMESPACES = frozenset({"nn", "special", "linalg", "fft"})
FORWARD_WORDS = frozenset({"auto_linear", "auto_element_wise"})
DEVICE_CHECKS = frozenset({"NoCheck", "ExceptMeta", "ExactSame"})
AUTOCAST = frozenset({"lower_precision_fp", "fp32", "fp32_set_opt_dtype", "fp32_append_dtype", "promote", "banned"})


class _Node:
    """A YAML value with the line it stands on."""

    def __init__(self, file: str, node: yaml.Node) -> None:
        self.file = file
        self.node = node
        self.location = Location(file, node.start_mark.line + 1)

    def fail(self, message: str, subject: str = "") -> OpgenError:
        return OpgenError(self.location, subject, message)

    def scalar(self) -> Any:
        """The plain value of a scalar node."""
        if not isinstance(self.node, yaml.ScalarNode):
            raise self.fail("expected a plain value")
        return yaml.safe_load(yaml.serialize(self.node))

    def text(self) -> str:
        if not isinstance(self.node, yaml.ScalarNode):
            raise self.fail("expected a string")
        return self.node.value

    def boolean(self) -> bool:
        value = self.scalar()
        if not isinstance(value, bool):
            raise self.fail(f"expected true or false, got {value!r}")
        return value

    def items(self) -> list[_Node]:
        if not isinstance(self.node, yaml.SequenceNode):
            raise self.fail("expected a list")
        return [_Node(self.file, n) for n in self.node.value]

    def texts(self) -> tuple[str, ...]:
        return tuple(n.text() for n in self.items())

    def mapping(self) -> dict[str, _Node]:
        if not isinstance(self.node, yaml.MappingNode):
            raise self.fail("expected a mapping")
        result: dict[str, _Node] = {}
        for key, value in self.node.value:
            if key.value in result:
                raise _Node(self.file, key).fail(f"key `{key.value}` appears twice")
            result[key.value] = _Node(self.file, value)
        return result

    @property
    def is_mapping(self) -> bool:
        return isinstance(self.node, yaml.MappingNode)


def load_tags(path: Path) -> dict[str, str]:
    """The known tags and what they mean."""
    root = yaml.compose(path.read_text(), Loader=yaml.SafeLoader)
    tags: dict[str, str] = {}
    for item in _Node(path.name, root).items():
        entry = item.mapping()
        if set(entry) != {"tag", "desc"}:
            raise item.fail("an entry of tags.yaml has exactly the keys `tag` and `desc`")
        tags[entry["tag"].text()] = entry["desc"].text()
    return tags


def load_operators(directory: Path) -> list[Operator]:
    """Every operator of every family file, in file order; names are checked to be unique across variants."""
    tags = load_tags(directory / "tags.yaml")
    operators: list[Operator] = []
    for path in sorted(directory.glob("*.yaml")):
        if path.stem != "tags":
            operators.extend(load_family(path, tags))
    operators.extend([copy for operator in operators if (copy := copying_form(operator))])
    check_unique(operators)
    return foreach.bind(operators)


def load_family(path: Path, tags: Iterable[str]) -> list[Operator]:
    """The operators of one family file."""
    if path.stem not in FAMILIES:
        raise OpgenError(Location(path.name, 1), "", f"unknown family `{path.stem}`; known are {', '.join(FAMILIES)}")
    try:
        root = yaml.compose(path.read_text(), Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise OpgenError(Location(path.name, line), "", f"not valid YAML: {error.problem}") from None
    if root is None:
        return []
    operators: list[Operator] = []
    declared: dict[str, Operator] = {}
    for item in _Node(path.name, root).items():
        same_as = item.mapping().get("same_as")
        if same_as is not None and same_as.text() not in declared:
            raise same_as.fail(f"`{same_as.text()}` is no operator declared above")
        operator = _operator(item, path.stem, frozenset(tags))
        if same_as is not None:
            operator = replace(operator, same_as=declared[same_as.text()])
        for each in (operator, *_others(item, operator)):
            operators.append(each)
            declared[each.schema.full_name] = each
    return operators


def _others(item: _Node, operator: Operator) -> Iterator[Operator]:
    """The operators that an entry declares beside its own: `aliases`, and with `numbers` in place of a tensor."""
    entry = item.mapping()
    for node in entry["aliases"].items() if "aliases" in entry else []:
        yield _alias(operator, node)
    for overload, node in entry["numbers"].mapping().items() if "numbers" in entry else []:
        yield _with_number(operator, overload, node)


def _same(operator: Operator, location: Location, schema: Schema, variants: Iterable[str]) -> Operator:
    """A composite with another schema that is `operator`."""
    stated = {"inplace_name": None, "inplace_impl": None, "impl": None, "meta": None, "kernel": None, "node": None}
    return replace(
        operator,
        **stated,
        location=location,
        schema=schema,
        variants=frozenset(variants),
        kind=Kind.IMPLICIT,
        plan="none",
        dispatch={},
        kernel_args=(),
        derivative=Derivative(word=AUTO, location=location),
        forward=(),
        out_name=None,
        batch="decompose",
        lowering="decompose",
        sharding="decompose",
        copies_self=False,
        same_as=operator,
    )


def _alias(operator: Operator, node: _Node) -> Operator:
    """`operator` under another name; a name `special_…` is one of that namespace, which has functions only."""
    name, _, overload = node.text().partition(".")
    schema = replace(operator.schema, name=name, overload=overload or operator.schema.overload)
    special = name.startswith("special_")
    if special:
        schema = replace(schema, overload=overload)
    variants = operator.variants & {"function", "out"} if special else operator.variants
    alias = _same(operator, node.location, schema, variants)
    out_overload = (operator.out_name or "").partition(".")[2]
    return replace(
        alias,
        namespace="special" if special else operator.namespace,
        out_name=f"{name}.{out_overload}" if out_overload and not special else None,
    )


def _with_number(operator: Operator, overload: str, node: _Node) -> Operator:
    """The overload of `operator` that takes a number for one tensor."""
    argument = operator.schema.argument(node.text())
    if argument is None or argument.type.key != "Tensor":
        raise node.fail(f"`{node.text()}` is not an argument of type Tensor")
    number = replace(argument, type=replace(argument.type, base="Scalar"))
    arguments = tuple(number if a is argument else a for a in operator.schema.arguments)
    schema = replace(operator.schema, overload=overload, arguments=arguments)
    # A number has no method and is not written to.
    is_first = argument is operator.schema.arguments[0]
    return _same(
        operator, node.location, schema, operator.variants & {"function", "out"} if is_first else operator.variants
    )


def copying_form(operator: Operator) -> Operator | None:
    """The operator that a view's entry names as its `copy`: the result in memory of its own, derived alike."""
    if operator.view is None or operator.view.copy is None:
        return None
    name, _, overload = operator.view.copy.partition(".")
    schema = replace(
        operator.schema,
        name=name,
        overload=overload,
        arguments=tuple(replace(a, type=a.type.plain()) for a in operator.schema.arguments),
        returns=tuple(replace(r, type=r.type.plain()) for r in operator.schema.returns),
    )
    view = next(functions_of(operator))
    fills_list = schema.returns[0].type.is_list
    return replace(
        operator,
        schema=schema,
        variants=frozenset({"function", "out"}),
        kind=Kind.EXPLICIT,
        copies=view.rust_name if operator.view.copy_through is None else operator.view.copy_through,
        copy_of=operator.schema.full_name,
        view=None,
        impl=None,
        dispatch={},
        out_name=f"{name}.{overload}_out" if overload and not fills_list else None,
        node=None,
        tags=("view_copy",),
        out_tags=() if fills_list else ("generated", "view_copy"),
        python=True,
        manual_method=False,
    )


def check_unique(operators: Iterable[Operator]) -> None:
    """Two functions with one name, or with names that are one in Rust, are a mistake of the later entry."""
    seen: dict[str, Location] = {}
    in_rust: dict[str, Function] = {}
    for operator in operators:
        for function in functions_of(operator):
            name = function.schema.full_name
            if name in seen:
                raise operator.error(f"`{name}` is already declared by {seen[name]}")
            seen[name] = operator.location
            other = in_rust.setdefault(function.rust_name, function)
            if other is not function:
                raise operator.error(
                    f"`{name}` is `{function.rust_name}` in Rust, as `{other.schema.full_name}` of "
                    f"{other.operator.location} is"
                )


def _operator(item: _Node, family: str, tags: frozenset[str]) -> Operator:
    entry = item.mapping()
    if "op" not in entry:
        raise item.fail("an entry needs the key `op`")
    text = entry["op"].text()
    try:
        schema = parse_schema(text)
    except SchemaError as error:
        raise entry["op"].fail(str(error), text.partition("(")[0]) from None
    subject = schema.full_name
    for key, node in entry.items():
        if key not in KEYS:
            raise node.fail(f"unknown key `{key}`; known are {', '.join(sorted(KEYS))}", subject)
    try:
        return _checked(_Entry(entry, item.location, family, schema, tags).build())
    except OpgenError as error:
        if f": {subject}: " in str(error):
            raise
        raise OpgenError(error.location, subject, str(error).partition(": ")[2]) from None


class _Entry:
    """One entry on its way to an `Operator`."""

    def __init__(
        self, entry: dict[str, _Node], location: Location, family: str, schema: Schema, tags: frozenset[str]
    ) -> None:
        self.entry = entry
        self.location = location
        self.family = family
        self.schema = schema
        self.known_tags = tags
        self.rule: FamilyRule = rule_of(family)

    def text(self, key: str, default: str | None = None) -> str | None:
        return self.entry[key].text() if key in self.entry else default

    def flag(self, key: str, default: bool) -> bool:
        return self.entry[key].boolean() if key in self.entry else default

    def texts(self, key: str) -> tuple[str, ...]:
        return self.entry[key].texts() if key in self.entry else ()

    def choice(self, key: str, allowed: frozenset[str]) -> str | None:
        value = self.text(key)
        if value is not None and value not in allowed:
            raise self.entry[key].fail(f"`{key}` is one of {', '.join(sorted(allowed))}; got `{value}`")
        return value

    def build(self) -> Operator:
        if "family" in self.entry and self.text("family") != self.family:
            raise self.entry["family"].fail(f"the family is the file's name, `{self.family}`")
        kind = self.kind()
        structured = kind is Kind.STRUCTURED
        plan = self.text("plan", self.rule.plan if structured else "none") or "none"
        view = self.view() if kind is Kind.VIEW else None
        return Operator(
            location=self.location,
            family=self.family,
            schema=self.schema,
            variants=self.variants(kind),
            kind=kind,
            meta=(self.text("meta") or f"{self.base()}_meta") if structured else None,
            plan=plan,
            kernel=self.kernel(kind),
            dispatch=self.dispatch(kind),
            kernel_args=self.kernel_args(kind, plan),
            impl=self.text("impl"),
            inplace_impl=self.text("inplace_impl"),
            out_impl=self.text("out_impl"),
            exact_out=self.choice("out_dtype", frozenset({"exact"})) == "exact",
            inplace_name=self.text("inplace_name"),
            out_name=self.text("out_name"),
            out_args=self.texts("out_args"),
            derivative=self.derivative(kind),
            forward=self.forward(),
            output_differentiability=tuple(n.boolean() for n in self.entry["output_differentiability"].items())
            if "output_differentiability" in self.entry
            else (),
            view=view,
            autocast=self.choice("autocast", AUTOCAST),
            dynamic_output=self.choice("output", frozenset({"dynamic"})) == "dynamic",
            tags=self.tags("tags") if "tags" in self.entry else self.rule.tags,
            inplace_tags=self.tags("inplace_tags") if "inplace_tags" in self.entry else None,
            out_tags=self.tags("out_tags") if "out_tags" in self.entry else self.rule.out_tags,
            batch=self.text("batch", self.rule.batch if kind is not Kind.IMPLICIT else "decompose"),
            decomp=self.text("decomp"),
            lowering=self.text("lowering", self.rule.lowering if kind is not Kind.IMPLICIT else "decompose"),
            sharding=self.text("sharding", self.rule.sharding if kind is not Kind.IMPLICIT else "decompose"),
            doc=self.text("doc"),
            namespace=self.choice("namespace", NAMESPACES) or ("special" if self.is_special else None),
            python=self.text("python") == "manual" or self.flag("python", True),
            manual_method=self.text("python") == "manual",
            numbers_as_tensors=self.flag("numbers_as_tensors", False),
            node=self.text("node"),
            optional_returns=self.flag("optional_returns", False),
            device_check=self.choice("device_check", DEVICE_CHECKS) != "NoCheck",
            meta_device_check=self.choice("device_check", DEVICE_CHECKS) != "ExceptMeta",
            device_guard=self.flag("device_guard", True),
            foreach=self.text("foreach"),
            overlap=self.choice("overlap", frozenset({"refuse", "refuse_partial"})) or "separate",
            copies_self=self.choice("init", frozenset({"copy_self"})) == "copy_self",
        )

    @property
    def is_special(self) -> bool:
        """Whether it is a function of the namespace `special`, where there are no methods."""
        return self.schema.name.startswith("special_")

    def base(self) -> str:
        return self.schema.name[:-1] if self.schema.is_inplace else self.schema.name

    def kind(self) -> Kind:
        stated = [k for k in ("meta", "view", "composite", "foreach", "same_as") if k in self.entry]
        if len(stated) > 1:
            raise self.entry[stated[1]].fail(f"`{stated[0]}` and `{stated[1]}` exclude each other")
        if "same_as" in self.entry:
            return Kind.IMPLICIT
        if "composite" in self.entry:
            word = self.choice("composite", frozenset({"implicit", "explicit"}))
            return Kind.IMPLICIT if word == "implicit" else Kind.EXPLICIT
        if "foreach" in self.entry:
            return Kind.IMPLICIT
        if "view" in self.entry:
            return Kind.VIEW
        if "meta" in self.entry:
            return Kind.STRUCTURED
        if "output" in self.entry:
            return Kind.KERNEL
        if self.rule.structured:
            return Kind.STRUCTURED
        if "kernel" in self.entry or "dispatch" in self.entry:
            return Kind.KERNEL
        raise OpgenError(
            self.location,
            "",
            f"family `{self.family}` has no default: state `meta`, `view`, `composite`, `kernel` or `output`",
        )

    def variants(self, kind: Kind) -> frozenset[str]:
        if "variants" not in self.entry:
            defaults = set(self.rule.variants)
            if self.is_special:
                defaults &= {"function", "out"}
            if self.schema.is_inplace or self.schema.out_arguments or kind in (Kind.VIEW, Kind.KERNEL):
                defaults -= {"inplace", "function_inplace", "out"}
            return frozenset(defaults)
        for node in self.entry["variants"].items():
            if node.text() not in VARIANTS:
                raise node.fail(f"a variant is one of {', '.join(sorted(VARIANTS))}; got `{node.text()}`")
        return frozenset(self.texts("variants"))

    def kernel(self, kind: Kind) -> str | None:
        """The name that every backend's kernel has unless `dispatch` states another."""
        if kind not in (Kind.STRUCTURED, Kind.KERNEL):
            if "kernel" in self.entry:
                raise self.entry["kernel"].fail("views and composites have no kernel for all backends; see `dispatch`")
            return None
        stated = self.dispatch(kind)
        backends = [k for k in stated if dispatch_keys()[k] in (KeySort.DENSE, KeySort.BACKEND)]
        if kind is Kind.KERNEL and backends and "kernel" not in self.entry:
            return None
        return self.text("kernel") or f"{self.base()}_kernel"

    def dispatch(self, kind: Kind) -> dict[str, str]:
        """What is stated per key: kernels for backends' keys, functions of this crate for all others."""
        if "dispatch" not in self.entry:
            return {}
        if kind is Kind.IMPLICIT:
            raise self.entry["dispatch"].fail("an implicit composite has no kernels of its own: autograd passes it by")
        result: dict[str, str] = {}
        sorts = dispatch_keys()
        for keys, node in self.entry["dispatch"].mapping().items():
            for key in (k.strip() for k in keys.split(",")):
                if key not in sorts:
                    raise node.fail(f"`{key}` is not a dispatch key under which kernels are registered")
                if key in result:
                    raise node.fail(f"`{key}` is stated twice")
                if sorts[key] is KeySort.META and kind is Kind.STRUCTURED:
                    raise node.fail("the shape function of a structured operator is its kernel for Meta")
                if sorts[key] is KeySort.ALIAS and kind in (Kind.EXPLICIT, Kind.VIEW):
                    raise node.fail(f"the operator's function is registered for an alias already; got `{key}` too")
                if node.text() == FALLTHROUGH and sorts[key] is not KeySort.FUNCTIONALITY:
                    raise node.fail(f"nothing can fall through `{key}`: no key below it serves the call")
                result[key] = node.text()
        return result

    def kernel_args(self, kind: Kind, plan: str) -> tuple[str, ...]:
        names = [a.name for a in self.schema.arguments]
        if "kernel_args" in self.entry:
            for node in self.entry["kernel_args"].items():
                if node.text() not in names:
                    raise node.fail(f"`{node.text()}` is not an argument")
            return self.texts("kernel_args")
        if kind is Kind.STRUCTURED and plan == "iter":
            if self.rule.kernel_args is not None and self.rule.plan == "iter":
                return self.rule.kernel_args
            return tuple(a.name for a in self.schema.arguments if not a.type.is_tensor_like)
        return tuple(a.name for a in self.schema.arguments if not a.is_out)

    def tags(self, key: str) -> tuple[str, ...]:
        for node in self.entry[key].items():
            if node.text() not in self.known_tags:
                raise node.fail(f"unknown tag `{node.text()}`; tags.yaml has {', '.join(sorted(self.known_tags))}")
        return self.texts(key)

    def view(self) -> ViewRule:
        node = self.entry["view"]
        if not node.is_mapping:
            if node.boolean() is not True:
                raise node.fail("`view` is true or a mapping with `copy` and `inverse`")
            return ViewRule()
        parts = node.mapping()
        for key, value in parts.items():
            if key not in ("copy", "copy_through", "inverse", "differentiable", "replay"):
                known = "copy, copy_through, inverse, differentiable, replay"
                raise value.fail(f"unknown key `{key}` in `view`; known are {known}")
        return ViewRule(
            parts["copy"].text() if "copy" in parts else None,
            parts["inverse"].text() if "inverse" in parts else None,
            parts["differentiable"].boolean() if "differentiable" in parts else True,
            parts["replay"].boolean() if "replay" in parts else False,
            parts["copy_through"].text() if "copy_through" in parts else None,
        )

    def derivative(self, kind: Kind) -> Derivative | None:
        if "derivative" not in self.entry:
            return Derivative(word=AUTO, location=self.location) if kind is Kind.IMPLICIT else None
        node = self.entry["derivative"]
        if not node.is_mapping:
            word = node.text()
            if word not in (NON_DIFFERENTIABLE, NOT_IMPLEMENTED, UNTRACKED, AUTO):
                known = f"`{NON_DIFFERENTIABLE}`, `{NOT_IMPLEMENTED}`, `{UNTRACKED}` or `{AUTO}`"
                raise node.fail(f"`derivative` is a mapping, {known}; got `{word}`")
            if word == UNTRACKED:
                return Derivative(word=NON_DIFFERENTIABLE, keeps_history=True, location=node.location)
            if word == AUTO and kind is not Kind.IMPLICIT:
                raise node.fail("`auto` is for `composite: implicit`")
            return Derivative(word=word, location=node.location)
        if kind is Kind.IMPLICIT:
            raise node.fail("an implicit composite is differentiated through what it calls; use `composite: explicit`")
        formulas: list[Formula] = []
        covered: set[str] = set()
        for key, value in node.mapping().items():
            targets = tuple(t.strip() for t in key.split(","))
            for target in targets:
                argument = self.schema.argument(target)
                if argument is None:
                    raise value.fail(f"derivative for `{target}`, which is not an argument")
                if not argument.type.is_tensor_like:
                    raise value.fail(f"derivative for `{target}`, which is {argument.type}, not a Tensor")
                if target in covered:
                    raise value.fail(f"derivative for `{target}` is given twice")
                covered.add(target)
            formulas.append(Formula(targets, value.text(), value.location))
        return Derivative(tuple(formulas), None, node.location)

    def forward(self) -> tuple[ForwardFormula, ...]:
        if "forward" not in self.entry:
            return ()
        node = self.entry["forward"]
        results = [r.name or ("result" if len(self.schema.returns) == 1 else f"result{i}")
                   for i, r in enumerate(self.schema.returns)]  # fmt: skip
        if not node.is_mapping:
            return (ForwardFormula(tuple(results), node.text(), node.location),)
        formulas: list[ForwardFormula] = []
        for key, value in node.mapping().items():
            targets = tuple(t.strip() for t in key.split(","))
            for target in targets:
                if target not in results:
                    raise value.fail(f"forward formula for `{target}`; the returns are {', '.join(results)}")
            formulas.append(ForwardFormula(targets, value.text(), value.location))
        return tuple(formulas)


def _checked(operator: Operator) -> Operator:
    """The rules that need the whole operator."""
    schema = operator.schema
    if operator.output_differentiability and len(operator.output_differentiability) != len(schema.returns):
        raise operator.error(f"output_differentiability has {len(schema.returns)} entries, one per return")
    if operator.kind is Kind.VIEW and not any(r.type.alias for r in schema.returns):
        raise operator.error("a view's return carries an alias annotation such as Tensor(a)")
    if (
        operator.view
        and not operator.view.differentiable
        and (operator.derivative is None or operator.derivative.word != NON_DIFFERENTIABLE)
    ):
        raise operator.error("a view that gradients do not pass has `derivative: non_differentiable`")
    if operator.kind is Kind.KERNEL and operator.variants & {"inplace", "function_inplace"}:
        raise operator.error("an operator whose kernel allocates has no generated in-place variant")
    has_inplace = operator.kind is Kind.EXPLICIT and operator.inplace_impl is not None
    if operator.copies_self and not ((operator.kind is Kind.STRUCTURED or has_inplace) and schema.argument("self")):
        raise operator.error(
            "`init: copy_self` is for structured operators, and composites with `inplace_impl`, with an argument `self`"
        )
    if operator.kind is not Kind.STRUCTURED and operator.plan != "none":
        raise operator.error("`plan` is for structured operators")
    if operator.manual_method and "method" not in operator.variants:
        raise operator.error("`python: manual` is about the method, which `variants` does not have")
    if operator.namespace and "method" in operator.variants:
        raise operator.error("an operator of a namespace has no method")
    for formula in operator.forward:
        if formula.text in FORWARD_WORDS and operator.derivative is None:
            raise OpgenError(formula.location, schema.full_name, f"`{formula.text}` needs a reverse derivative")
    return operator
