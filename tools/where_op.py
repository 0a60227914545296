"""`python tools/where_op.py NAME`: prints file:line of every part of an operator, or says that the part is missing.

NAME is an operator or one of its variants: `add`, `add.Tensor`, `add_.Tensor`, `sum.IntList_out`.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path

if not __package__:
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tools.opgen.__main__ import REPOSITORY, load
from tools.opgen.families import META_PRESETS
from tools.opgen.model import Function, Kind, Operator, functions_of


def find(pattern: str, *folders: str) -> str | None:
    """The first file:line under the folders that matches."""
    regex = re.compile(pattern)
    for folder in folders:
        root = REPOSITORY / folder
        paths = [root] if root.is_file() else sorted([*root.rglob("*.rs"), *root.rglob("*.py"), *root.rglob("*.cu")])
        for path in paths:
            for number, line in enumerate(path.read_text().splitlines(), 1):
                if regex.search(line):
                    return f"{path.relative_to(REPOSITORY)}:{number}"
    return None


def parts(operator: Operator) -> Iterator[tuple[str, str | None]]:
    """(part, where) for each part that the operator has by hand or by rule."""
    family = operator.family
    functions = list(functions_of(operator))
    yield "declaration", f"crates/ops/yaml/{operator.location}"
    if operator.kind is Kind.STRUCTURED:
        file = "presets" if operator.meta in META_PRESETS else family
        yield "meta", find(rf"\b{operator.meta}\b", f"crates/ops/src/meta/{file}.rs")
    elif operator.kind is Kind.VIEW:
        yield "view", find(rf"fn {operator.impl or functions[0].rust_name}\b", "crates/ops/src/view")
    elif operator.same_as is not None:
        yield "same as", operator.same_as.schema.full_name
    elif operator.kind in (Kind.IMPLICIT, Kind.EXPLICIT):
        name = operator.impl or functions[0].rust_name
        folder = f"crates/ops/src/composite/{family}"
        yield "composite", find(rf"(fn |\s){name}\b", f"{folder}.rs", folder)
    for use in operator.kernels:
        for folder in sorted((REPOSITORY / "crates").glob("kernels-*/src")):
            path = str(folder.relative_to(REPOSITORY))
            yield f"kernel {use.name} in {folder.parent.name}", find(rf'\b{use.name}("|: fn\()', path)
    yield from derivative_parts(operator, functions)
    yield "batching rule", operator.batch and f"declared: `{operator.batch}`"
    yield "lowering", operator.lowering and f"declared: `{operator.lowering}`"
    for function in functions:
        yield (
            f"call {function.schema.full_name}",
            find(rf"fn {function.rust_name}\(", f"crates/ops/src/gen/{family}.rs"),
        )
    yield "python name", find(rf'name: "{operator.schema.name}",', "crates/python/src/gen")
    yield "stub", find(rf"def {operator.schema.name}\(", "python/ptr/_C.pyi")
    yield "tests", find(rf"\b{operator.base_name}_?\(", "tests/unit", "crates/ops/tests")


def derivative_parts(operator: Operator, functions: list[Function]) -> Iterator[tuple[str, str | None]]:
    """The formulas, and the helpers that they call."""
    derivative = operator.derivative
    if derivative is None:
        yield "derivative", None
        return
    if derivative.word:
        yield "derivative", derivative.word
        return
    entry = find(rf'"{re.escape(functions[0].schema.qualified_name)}"', f"crates/autograd/src/gen/{operator.family}.rs")
    yield "derivative", entry
    for formula in derivative.formulas:
        for name in dict.fromkeys(re.findall(r"(?<![\w.:])([a-z_]\w*)\(", formula.text)):
            helper = find(rf"pub fn {name}\b", "crates/autograd/src/formulas")
            if helper:
                yield f"formula {name}", helper


def main(arguments: list[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="where_op", description=__doc__)
    parser.add_argument("name")
    name = parser.parse_args(arguments).name
    found: dict[str, Operator] = {}
    for functions in load().values():
        for function in functions:
            if name in (function.schema.full_name, function.schema.name):
                found[function.operator.schema.full_name] = function.operator
    if not found:
        print(f"where_op: no operator is called {name!r}", file=sys.stderr)
        return 1
    for full_name, operator in found.items():
        print(full_name)
        for part, where in parts(operator):
            print(f"  {part:<28} {where or '-'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
