"""`python tools/opgen [--check | --kernels]`: writes, compares or lists what the YAML declares."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

if not __package__:  # run as `python tools/opgen`
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tools.opgen.emit import (
    derivative_tables,
    kernel_list,
    python_table,
    python_tags,
    rust_functions,
    rust_register,
    stubs,
)
from tools.opgen.model import NON_DIFFERENTIABLE, UNWRITTEN, Function, OpgenError, functions_of
from tools.opgen.yaml_loader import load_operators

REPOSITORY = Path(__file__).resolve().parents[2]
YAML = REPOSITORY / "crates/ops/yaml"
EMITTERS = (rust_functions, rust_register, derivative_tables, python_table, python_tags, stubs)
# Folders that hold generated files only: a file there that no emitter writes is stale.
GENERATED = (rust_functions.ROOT, derivative_tables.ROOT, python_table.ROOT)


def load() -> dict[str, list[Function]]:
    """Every function, by family."""
    result: dict[str, list[Function]] = {}
    for operator in load_operators(YAML):
        result.setdefault(operator.family, []).extend(functions_of(operator))
    return result


def check_written(functions: dict[str, list[Function]]) -> None:
    """Code comes only from finished declarations; the other commands work with what `new_op.py` has just left."""
    for function in (f for family in functions.values() for f in family if f.declared):
        for formula in function.operator.derivative.formulas if function.operator.derivative else ():
            if formula.text == UNWRITTEN:
                what = f"the derivative for `{', '.join(formula.targets)}` is still to be written"
                hint = f"(or `{NON_DIFFERENTIABLE}`)"
                raise OpgenError(formula.location, function.schema.full_name, f"{what} {hint}")


def generate() -> dict[str, str]:
    """The whole output as `{path: text}`, formatted."""
    functions = load()
    check_written(functions)
    files: dict[str, str] = {}
    for emitter in EMITTERS:
        files.update(emitter.emit(functions))
    return {path: rustfmt(path, text) if path.endswith(".rs") else text for path, text in files.items()}


def rustfmt(path: str, text: str) -> str:
    """Formats one file as `cargo fmt` would."""
    run = subprocess.run(
        ["rustfmt", "--edition", "2021"],
        input=text,
        capture_output=True,
        text=True,
        cwd=REPOSITORY,
        check=False,
    )
    if run.returncode != 0:
        raise SystemExit(f"opgen: rustfmt does not accept {path}:\n{run.stderr}")
    return run.stdout


def stale(files: dict[str, str]) -> list[Path]:
    """Files in the generated folders that nothing generates any more."""
    known = {REPOSITORY / path for path in files}
    return [p for folder in GENERATED for p in sorted((REPOSITORY / folder).rglob("*.rs")) if p not in known]


def check(files: dict[str, str]) -> int:
    """Compares the committed files with what the YAML gives; prints what differs."""
    different = [
        p for p, text in files.items() if not (REPOSITORY / p).is_file() or (REPOSITORY / p).read_text() != text
    ]
    different += [str(p.relative_to(REPOSITORY)) for p in stale(files)]
    for path in different:
        print(f"{path} is not what crates/ops/yaml gives; run `make gen`", file=sys.stderr)
    return 1 if different else 0


def write(files: dict[str, str]) -> None:
    """Writes what changed, so that nothing else is rebuilt; removes what is stale."""
    for path, text in files.items():
        target = REPOSITORY / path
        if not target.is_file() or target.read_text() != text:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
            print(path)
    for target in stale(files):
        target.unlink()
        print(f"{target.relative_to(REPOSITORY)} (removed)")


def list_kernels() -> None:
    """Prints the kernels, as far as whoever reads them wants (`| head`)."""
    try:
        print(kernel_list.render(load()), flush=True)
    except BrokenPipeError:
        # Nothing more can be written, not even when the interpreter ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def main(arguments: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="opgen", description=__doc__)
    action = parser.add_mutually_exclusive_group()
    action.add_argument("--check", action="store_true", help="fail if a generated file is not fresh")
    action.add_argument("--kernels", action="store_true", help="print every kernel and its function type")
    options = parser.parse_args(arguments)
    try:
        if options.kernels:
            list_kernels()
            return 0
        files = generate()
    except OpgenError as error:
        print(f"opgen: {error}", file=sys.stderr)
        return 1
    if options.check:
        return check(files)
    write(files)
    return 0


if __name__ == "__main__":
    sys.exit(main())
