"""Every declared operator has all of its parts; what is missing is named with the line that declares it.

The declarations are read from the YAML; kernels from the sources that register them, so that the test needs no build.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from tools.opgen.__main__ import REPOSITORY, load
from tools.opgen.families import META_PRESETS
from tools.opgen.model import NON_DIFFERENTIABLE, Kind, Operator
from tools.opgen.rust_types import kernel_signature

OPERATORS = [f.operator for functions in load().values() for f in functions if f.declared]


def rust_sources(folder: str) -> str:
    return "\n".join(p.read_text() for p in sorted((REPOSITORY / folder).rglob("*.rs")))


def missing(check: Callable[[Operator], str | None]) -> list[str]:
    """`file:line: operator: what is missing` for each operator that the check objects to."""
    return [f"{o.location}: {o.schema.full_name}: {text}" for o in OPERATORS if (text := check(o))]


def assert_nothing(missing_parts: list[str]) -> None:
    assert not missing_parts, "\n" + "\n".join(missing_parts)


@pytest.mark.parametrize("backend", ["CPU"])
def test_every_kernel_is_registered(backend: str) -> None:
    sources = rust_sources(f"crates/kernels-{backend.lower()}/src")
    # `register! { exp_kernel: fn(&TensorIterator); }`, or a call with the name as a string.
    registered = set(re.findall(r'\b(\w+_kernel)(?:"|\s*:\s*fn\()', sources))

    def check(operator: Operator) -> str | None:
        name = operator.kernel_for(backend)
        if operator.kind not in (Kind.STRUCTURED, Kind.KERNEL):
            return None
        if name is None:
            return f"no kernel for {backend}"
        kinds = [kernel_signature(operator, use) for use in operator.kernels if use.name == name]
        return None if name in registered else f"{name} is not registered: {' or '.join(kinds)}"

    assert_nothing(missing(check))


def test_every_shape_function_exists() -> None:
    # A family is a file, or a folder of files.
    folder = REPOSITORY / "crates/ops/src/meta"
    metas = {p.stem: p.read_text() for p in folder.glob("*.rs")}
    metas |= {p.name: rust_sources(f"crates/ops/src/meta/{p.name}") for p in folder.iterdir() if p.is_dir()}
    views = rust_sources("crates/ops/src/view")

    def check(operator: Operator) -> str | None:
        if operator.kind is Kind.STRUCTURED:
            file = "presets" if operator.meta in META_PRESETS else operator.family
            return None if re.search(rf"\b{operator.meta}\b", metas[file]) else f"no {operator.meta} in meta/{file}.rs"
        if operator.kind is Kind.VIEW:
            name = operator.impl or rust_name(operator)
            return None if re.search(rf"fn {name}\b", views) else f"no {name} in view/"
        return None

    assert_nothing(missing(check))


def rust_name(operator: Operator) -> str:
    from tools.opgen.model import functions_of

    return next(iter(functions_of(operator))).rust_name


def test_every_operator_states_its_derivative() -> None:
    """Formulas or `non_differentiable`; implicit composites and factories without a tensor need neither."""

    def check(operator: Operator) -> str | None:
        takes_tensors = any(a.type.is_tensor_like and not a.is_out for a in operator.schema.arguments)
        if operator.kind is Kind.IMPLICIT or not takes_tensors:
            return None
        return "no `derivative`" if operator.derivative is None else None

    assert_nothing(missing(check))


def test_every_differentiable_argument_has_a_formula() -> None:
    """A Tensor argument of a differentiable operator that no formula names would silently get no gradient."""

    def check(operator: Operator) -> str | None:
        derivative = operator.derivative
        if derivative is None or derivative.word is not None:
            return None
        covered = {t for f in derivative.formulas for t in f.targets}
        tensors = [a for a in operator.schema.arguments if a.type.is_tensor_like]
        # Places in another tensor have no derivative, whatever their dtype.
        left = [a.name for a in tensors if a.name not in covered and a.name != "indices"]
        return f"no formula for {', '.join(left)} (a formula or `{NON_DIFFERENTIABLE}`)" if left else None

    assert_nothing(missing(check))


def test_every_formula_helper_exists() -> None:
    formulas_source = rust_sources("crates/autograd/src/formulas")
    helpers = set(re.findall(r"pub fn (\w+)", formulas_source))
    # Those of `ops` are given on by name.
    for names in re.findall(r"pub use ops::[\w:]+::\{([^}]*)\};", formulas_source):
        helpers |= set(re.findall(r"\w+", names))
    calls = set(re.findall(r"pub fn (\w+)", rust_sources("crates/ops/src/gen")))

    def check(operator: Operator) -> str | None:
        formulas = operator.derivative.formulas if operator.derivative else ()
        named = {n for f in formulas for n in re.findall(r"(?<![\w.:])([a-z_]\w*)\(", f.text)}
        absent = sorted(named - helpers)
        absent += sorted({n for f in formulas for n in re.findall(r"at::(\w+)\(", f.text)} - calls)
        return f"formulas call {', '.join(absent)}, which nobody defines" if absent else None

    assert_nothing(missing(check))


def test_every_operator_declares_a_batching_rule_and_a_lowering() -> None:
    """From its family's rule or its entry; a fallback is stated as such. Nothing carries these out yet: what is checked
    is that whoever does will find a rule for every operator."""

    def check(operator: Operator) -> str | None:
        absent = [key for key in ("batch", "lowering") if getattr(operator, key) is None]
        return f"no {' and no '.join(absent)}" if absent else None

    assert_nothing(missing(check))


def test_random_operators_are_tagged() -> None:
    """What draws from a generator says so, or compilers would merge two draws into one."""

    def check(operator: Operator) -> str | None:
        draws = operator.schema.argument("generator") is not None
        return (
            "takes a generator but lacks the tag nondeterministic_seeded"
            if draws and ("nondeterministic_seeded" not in operator.tags)
            else None
        )

    assert_nothing(missing(check))


def test_methods_written_by_hand_exist() -> None:
    """`python: manual` names methods of `crates/python`; import compares the other way round too."""
    sources = rust_sources("crates/python/src/tensor")

    def check(operator: Operator) -> str | None:
        name = operator.schema.name
        slot = f"Py_nb_{name.strip('_')}" if name.startswith("__") else f'c"{name}"'
        return f"nothing binds Tensor.{name}" if operator.manual_method and slot not in sources else None

    assert any(o.manual_method for o in OPERATORS)
    assert_nothing(missing(check))
