"""What a family fills in, so that the common operator of each family is declared in a few lines.

A rule supplies defaults only: whatever an entry states wins.
"""

from __future__ import annotations

from dataclasses import dataclass

FAMILIES = (
    "pointwise reduce scan shape index sort linalg conv pool norm attention rnn loss factory random fft special "
    "foreach sparse quant"
).split()


@dataclass(frozen=True)
class FamilyRule:
    """The defaults of one family."""

    variants: tuple[str, ...] = ("function", "method")
    structured: bool = False  # an entry without meta, view, composite or `output: dynamic` gets `<base>_meta`
    plan: str = "none"
    # Which arguments a kernel sees beside its plan. None: every argument (with plan none) or every non-tensor one.
    kernel_args: tuple[str, ...] | None = None
    batch: str | None = None
    lowering: str | None = None
    sharding: str | None = None
    tags: tuple[str, ...] = ()
    out_tags: tuple[str, ...] | None = None  # of the generated `out=` forms, where they are not the operator's


_DEFAULT = FamilyRule()

RULES: dict[str, FamilyRule] = {
    "pointwise": FamilyRule(
        variants=("function", "method", "inplace", "out"),
        structured=True,
        plan="iter",
        batch="pointwise",
        lowering="pointwise",
        sharding="pointwise",
        tags=("pointwise",),
    ),
    "special": FamilyRule(
        variants=("function", "method", "inplace", "out"),
        structured=True,
        plan="iter",
        batch="pointwise",
        lowering="pointwise",
        sharding="pointwise",
    ),
    "reduce": FamilyRule(
        variants=("function", "method", "out"),
        structured=True,
        plan="iter",
        kernel_args=(),
        batch="reduce",
        lowering="reduce",
        sharding="reduce",
    ),
    "scan": FamilyRule(
        variants=("function", "method", "inplace", "out"),
        structured=True,
        batch="move_dim",
        lowering="scan",
    ),
    "shape": FamilyRule(batch="view", lowering="view", sharding="view"),
    "index": FamilyRule(structured=True, batch="loop", lowering="index"),
    "sort": FamilyRule(variants=("function", "method", "out"), structured=True, batch="move_dim", lowering="fallback"),
    "linalg": FamilyRule(
        variants=("function", "method", "out"),
        structured=True,
        batch="matmul",
        lowering="gemm",
    ),
    "conv": FamilyRule(variants=("function",), structured=True, batch="loop", lowering="fallback"),
    "pool": FamilyRule(variants=("function",), structured=True, batch="loop", lowering="fallback"),
    "norm": FamilyRule(variants=("function",), structured=True, batch="loop", lowering="norm"),
    "attention": FamilyRule(variants=("function",), structured=True, batch="loop", lowering="fallback"),
    "rnn": FamilyRule(variants=("function",), batch="decompose", lowering="decompose"),
    "loss": FamilyRule(variants=("function",), structured=True, batch="loop", lowering="reduce"),
    "factory": FamilyRule(variants=("function", "out"), structured=True, batch="factory", lowering="factory"),
    "random": FamilyRule(variants=("function",), structured=True, plan="iter", batch="random", lowering="random"),
    "foreach": FamilyRule(
        variants=("function", "function_inplace", "out"), out_tags=("generated",), batch="loop", lowering="foreach"
    ),
}


def rule_of(family: str) -> FamilyRule:
    """The rule of `family`."""
    return RULES.get(family, _DEFAULT)


# Meta functions that take the tensors alone, whatever else the schema has: `ops/src/meta/presets.rs`.
META_PRESETS = frozenset(
    {
        "unary_op",
        "unary_float_op",
        "unary_bool_op",
        "binary_op",
        "binary_float_op",
        "comparison_op",
        "fill_op",
    }
)

# Those whose kernels write bool.
BOOLEAN_PRESETS = frozenset({"unary_bool_op", "comparison_op"})
