"""new_op: parts go beside those of a sibling."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import new_op, placing
from tools.opgen.model import Operator
from tools.opgen.schema import parse_schema
from tools.opgen.yaml_loader import load_family

POINTWISE = """# Elementwise operators.
- op: exp(Tensor self) -> Tensor
  meta: unary_float_op
  derivative: {self: "mul_conj(grad, result)?"}
- op: copysign.Tensor(Tensor self, Tensor other) -> Tensor
  meta: binary_float_op
  derivative:
    self: grad
    other: non_differentiable
- op: copysign.Scalar(Tensor self, Scalar other) -> Tensor
  composite: implicit

# ---- gradients ----
- op: f_backward(Tensor self, Tensor other) -> Tensor
  meta: binary_float_op
  derivative: non_differentiable
"""


@pytest.fixture
def declared(tmp_path: Path) -> list[Operator]:
    path = tmp_path / "pointwise.yaml"
    path.write_text(POINTWISE)
    return load_family(path, ("core",))


@pytest.mark.parametrize(
    ("schema", "kind", "meta", "after", "sibling"),
    [
        ("hypot(Tensor self, Tensor other) -> Tensor", "structured", "binary_float_op", None, "copysign.Scalar"),
        ("exp2(Tensor self) -> Tensor", "structured", "unary_float_op", None, "exp"),
        ("exp.other(Tensor self) -> Tensor", "implicit", "", None, "exp"),
        ("triple(Tensor self) -> Tensor", "implicit", "", None, "copysign.Scalar"),
        ("triple(Tensor self) -> Tensor", "implicit", "", "exp", "exp"),
        ("triple(Tensor self) -> Tensor", "implicit", "", "copysign.Tensor", "copysign.Tensor"),
    ],
)
def test_an_entry_stands_beside_its_like(
    declared: list[Operator], schema: str, kind: str, meta: str, after: str | None, sibling: str
) -> None:
    siblings = new_op.siblings_of(parse_schema(schema), declared, kind, meta, after)
    assert siblings[0].schema.full_name == sibling
    assert len(siblings) == len(declared)


def test_a_sibling_has_to_be_there(declared: list[Operator]) -> None:
    with pytest.raises(SystemExit, match="no `sinh`"):
        new_op.siblings_of(parse_schema("cosh(Tensor self) -> Tensor"), declared, "structured", "own", "sinh")


def test_a_pointwise_operator_is_told_its_rule() -> None:
    schema = parse_schema("hypot(Tensor self, Tensor other) -> Tensor")
    with pytest.raises(SystemExit, match="comparison_op"):
        new_op.meta_of("pointwise", schema, None)
    assert new_op.meta_of("pointwise", schema, "binary_op") == "binary_op"
    assert new_op.meta_of("pointwise", schema, "own") == "hypot_meta"
    assert new_op.meta_of("index", schema, None) == "hypot_meta"


def test_an_entry_comes_before_the_comment_of_the_next_section(declared: list[Operator]) -> None:
    text, line = placing.after_entry(POINTWISE, declared[2].location.line, "- op: g(Tensor self) -> Tensor\n")
    assert text.splitlines()[line - 1].startswith("- op: g")
    assert "composite: implicit\n- op: g(Tensor self) -> Tensor\n\n# ---- gradients" in text


RUST = """//! Kernels.

pub(super) fn register() {
    register! {
        exp_kernel: fn(&TensorIterator);
        long_kernel: fn(
            &TensorIterator,
        );
    }
}

fn exp_kernel(iter: &TensorIterator) -> Result<()> {
    run(iter, || {
        1
    })
}

fn long_kernel() {}

#[cfg(test)]
mod tests {}
"""


def test_a_kernel_is_registered_and_written_after_its_sibling() -> None:
    line = "        new_kernel: fn(&TensorIterator);\n"
    for sibling, before in (("exp_kernel", "exp_kernel: fn(&TensorIterator);\n"), ("long_kernel", "        );\n")):
        placed = placing.beside_kernel(RUST, ["absent_kernel", sibling], line)
        assert placed is not None
        text, number, found = placed
        assert before + line in text and text.splitlines()[number - 1] + "\n" == line and found == sibling
    assert placing.beside_kernel(RUST, ["absent_kernel"], line) is None


def test_functions_are_placed_after_an_item_or_before_the_tests() -> None:
    item = "\nfn new() {}\n"
    placed = placing.after_item(RUST, r"fn exp_kernel\b", item)
    assert placed is not None
    assert "})\n}\n\nfn new() {}\n\nfn long_kernel" in placed[0]
    assert placed[0].splitlines()[placed[1] - 1] == "fn new() {}"
    assert placing.after_item(RUST, r"fn absent\b", item) is None
    text, number = placing.at_end(RUST, item)
    assert "fn long_kernel() {}\n\nfn new() {}\n\n#[cfg(test)]" in text
    assert text.splitlines()[number - 1] == "fn new() {}"
