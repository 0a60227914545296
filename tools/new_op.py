"""`python tools/new_op.py FAMILY "SCHEMA"`: writes the skeleton of all parts of an operator of that family.

    python tools/new_op.py pointwise "erfc(Tensor self) -> Tensor"
    python tools/new_op.py reduce "nansum(Tensor self, int[1]? dim, bool keepdim=False) -> Tensor"
    python tools/new_op.py shape --view "swapdims2(Tensor(a) self, int dim0, int dim1) -> Tensor(a)"

The declaration goes to the end of the family's YAML file; a function skeleton goes where that kind of operator has
one. What has to be written by hand is left as a line that does not compile and says what belongs there, so that
nothing unfinished can pass for done. Then `make gen`.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

if not __package__:
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tools.opgen.__main__ import REPOSITORY, load
from tools.opgen.families import FAMILIES, rule_of
from tools.opgen.model import UNWRITTEN, Function, OpgenError, Schema, Variant
from tools.opgen.rust_types import parameters, return_type
from tools.opgen.schema import SchemaError, parse_schema


def yaml_entry(schema: Schema, kind: str) -> str:
    """The declaration, with the keys that nearly every operator of its kind states."""
    lines = [f"- op: {schema}"]
    tensors = [a.name for a in schema.arguments if a.type.is_tensor_like]
    if kind == "view":
        lines.append(f"  view: {{copy: {schema.name}_copy, inverse: {schema.name}_inverse}}")
    elif kind in ("implicit", "explicit"):
        lines.append(f"  composite: {kind}")
    elif kind == "dynamic":
        lines.append("  output: dynamic")
    elif kind == "pointwise":
        preset = {1: "unary_float_op", 2: "binary_op"}.get(len(tensors), f"{schema.name}_meta")
        lines.append(f"  meta: {preset}")
    else:
        lines.append(f"  meta: {schema.name}_meta")
    if kind != "implicit" and tensors:
        lines.append("  derivative:")
        lines += [f"    {name}: {UNWRITTEN}" for name in tensors]
    return "\n".join(lines) + "\n"


def rust_skeleton(function: Function, name: str, extra: str, result: str, *, sized: bool = False) -> str:
    """A documented function whose body does not compile yet; a `sized` one works out sizes, plain or symbolic."""
    schema = function.schema
    separator = ", " if extra and schema.arguments else ""
    generics = "<I: SizeInt>" if sized else ""
    return (
        f"\n/// `{schema.qualified_name}`\n"
        f"pub fn {name}{generics}({extra}{separator}{parameters(schema)}) -> Result<{result}> {{\n"
        f'    compile_error!("{schema.full_name}: write this function")\n}}\n'
    )


def kind_of(family: str, arguments: argparse.Namespace) -> str:
    """The kind the options ask for, else the family's."""
    for kind in ("view", "implicit", "explicit", "dynamic"):
        if getattr(arguments, kind):
            return kind
    if family == "pointwise":
        return "pointwise"
    if not rule_of(family).structured:
        raise SystemExit(f"new_op: family `{family}` has no default kind: give --view, --implicit or --explicit")
    return "structured"


def append(path: Path, text: str, done: list[str]) -> None:
    """Adds `text` to a file that exists; remembers where."""
    old = path.read_text() if path.is_file() else ""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(old + text)
    done.append(f"{path.relative_to(REPOSITORY)}:{old.count(chr(10)) + 1}")


def main(arguments: list[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="new_op", description=__doc__.splitlines()[0])
    parser.add_argument("family", choices=FAMILIES)
    parser.add_argument("schema")
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--view", action="store_true", help="the shape function is the implementation")
    group.add_argument("--implicit", action="store_true", help="composite, differentiated through its parts")
    group.add_argument("--explicit", action="store_true", help="composite with its own derivative")
    group.add_argument("--dynamic", action="store_true", help="the kernel allocates its output")
    options = parser.parse_args(arguments)
    try:
        schema = parse_schema(options.schema)
        taken = {f.schema.full_name: f.operator.location for fs in load().values() for f in fs}
    except (SchemaError, OpgenError) as error:
        print(f"new_op: {error}", file=sys.stderr)
        return 1
    if schema.full_name in taken:
        print(f"new_op: {schema.full_name} is already declared at {taken[schema.full_name]}", file=sys.stderr)
        return 1
    done: list[str] = []
    write_parts(schema, options.family, kind_of(options.family, options), done)
    print("\n".join(done))
    print("fill in these places, then `make gen` and `make check`")
    return 0


def write_parts(schema: Schema, family: str, kind: str, done: list[str]) -> None:
    """Writes every part that an operator of this kind has by hand."""
    crates = REPOSITORY / "crates"
    entry = yaml_entry(schema, kind)
    append(crates / f"ops/yaml/{family}.yaml", entry, done)
    function = Function(None, schema, Variant.FUNCTIONAL, declared=True)  # type: ignore[arg-type]
    result = return_type(schema.returns, optional=False)
    if kind == "view":
        path = crates / "ops/src/view/dims.rs"
        append(path, rust_skeleton(function, function.rust_name, "", result, sized=True), done)
    elif kind in ("implicit", "explicit"):
        path = crates / f"ops/src/composite/{family}.rs"
        append(path, rust_skeleton(function, function.rust_name, "", result), done)
    elif f"{schema.name}_meta" in entry:
        plan = "TensorIterator" if rule_of(family).plan == "iter" else "()"
        outs = "outs: &mut StructuredOutputs"
        path = crates / f"ops/src/meta/{family}.rs"
        append(path, rust_skeleton(function, f"{schema.name}_meta", outs, plan, sized=plan == "()"), done)
    if kind in ("pointwise", "structured", "dynamic"):
        done.append(f"crates/kernels-cpu/src/{family}/: register `{schema.name}_kernel` (type: `opgen --kernels`)")


if __name__ == "__main__":
    sys.exit(main())
