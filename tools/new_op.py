"""`python tools/new_op.py FAMILY "SCHEMA"`: writes the skeleton of all parts of an operator of that family.

    python tools/new_op.py pointwise --meta unary_float_op "erfc(Tensor self) -> Tensor"
    python tools/new_op.py reduce "nansum(Tensor self, int[1]? dim, bool keepdim=False) -> Tensor"
    python tools/new_op.py shape --view "swapdims2(Tensor(a) self, int dim0, int dim1) -> Tensor(a)"

Each part goes beside that of a sibling: the operator that `--after` names, else another overload, else the last
operator of the family that is declared alike. What has to be written by hand is left as a line that does not compile
and says what belongs there, so that nothing unfinished can pass for done. Then `make gen`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

if not __package__:
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tools import placing
from tools.opgen.__main__ import REPOSITORY, load
from tools.opgen.families import FAMILIES, META_PRESETS, rule_of
from tools.opgen.model import UNWRITTEN, Function, Kind, Operator, OpgenError, Schema, Variant, functions_of
from tools.opgen.rust_types import kernel_arguments, kernel_signature, kernel_type, local, parameters, return_type
from tools.opgen.schema import SchemaError, parse_schema

KINDS = {
    "view": Kind.VIEW,
    "implicit": Kind.IMPLICIT,
    "explicit": Kind.EXPLICIT,
    "dynamic": Kind.KERNEL,
    "structured": Kind.STRUCTURED,
}


def yaml_entry(schema: Schema, kind: str, meta: str) -> str:
    """The declaration, with the keys that nearly every operator of its kind states."""
    lines = [f"- op: {schema}"]
    if kind == "view":
        lines.append(f"  view: {{copy: {schema.name}_copy, inverse: {schema.name}_inverse}}")
    elif kind in ("implicit", "explicit"):
        lines.append(f"  composite: {kind}")
    elif kind == "dynamic":
        lines.append("  output: dynamic")
    else:
        lines.append(f"  meta: {meta}")
    tensors = [a.name for a in schema.arguments if a.type.is_tensor_like]
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


def kernel_skeleton(operator: Operator) -> str:
    """The kernel, whose body does not compile yet."""
    use, schema = operator.kernels[0], operator.schema
    head = [f"{local(a.name)}: {kernel_type(a)}" for a in schema.arguments if a.name in kernel_arguments(operator, use)]
    if use.structured and operator.plan != "none":
        head.insert(0, "iter: &TensorIterator" if operator.plan == "iter" else f"plan: &{operator.plan}")
    if use.structured and operator.plan != "iter":
        head.append("outs: &[Tensor]")
    result = kernel_signature(operator, use).split(" -> ")[1]
    body = f'    compile_error!("{schema.full_name}: write this kernel")\n'
    return f"\nfn {use.name}({', '.join(head)}) -> {result} {{\n{body}}}\n"


def kind_of(family: str, arguments: argparse.Namespace) -> str:
    """The kind the options ask for, else the family's."""
    for kind in ("view", "implicit", "explicit", "dynamic"):
        if getattr(arguments, kind):
            return kind
    if not rule_of(family).structured:
        raise SystemExit(f"new_op: family `{family}` has no default kind: give --view, --implicit or --explicit")
    return "structured"


def meta_of(family: str, schema: Schema, given: str | None) -> str:
    """The rule for shapes and dtypes: the one given, or a function of the operator's own."""
    own = f"{schema.name}_meta"
    if given is None and family == "pointwise":
        presets = ", ".join(sorted(META_PRESETS))
        raise SystemExit(
            f"new_op: a pointwise operator needs a rule: give --meta with a preset ({presets}), the name of a function "
            f"of ops/src/meta/pointwise.rs, or `own` for a new one, `{own}`"
        )
    return own if given in (None, "own") else given


def is_internal(operator: Operator) -> bool:
    """Operators that others are made of stand in sections of their own."""
    return operator.schema.name.startswith("_") or operator.schema.name.endswith("_backward")


def siblings_of(
    schema: Schema, declared: Sequence[Operator], kind: str, meta: str, after: str | None
) -> list[Operator]:
    """The family's operators, those first that the new one belongs beside."""
    if after is not None:
        named = [o for o in declared if after in (o.schema.full_name, o.schema.name)]
        if not named:
            raise SystemExit(f"new_op: --after: the family declares no `{after}`")
        first = named[-1]
    else:
        overloads = [o for o in declared if o.base_name == schema.name.rstrip("_")]
        kin = [o for o in declared if o.kind is KINDS[kind] and not is_internal(o)]
        alike = [o for o in kin if kind != "structured" or o.meta == meta]
        first = next((group[-1] for group in (overloads, alike, kin, declared) if group), None)
    if first is None:
        return []
    at = declared.index(first)
    # Overloads stay together, unless one of them was named.
    while after != first.schema.full_name and at + 1 < len(declared) and declared[at + 1].base_name == first.base_name:
        at += 1
    # Then those declared before it, the nearest first, then those after it.
    return [*reversed(declared[: at + 1]), *declared[at + 1 :]]


class Writer:
    """Writes parts, and remembers where."""

    def __init__(self, siblings: Sequence[Operator]) -> None:
        self.siblings = siblings
        self.done: list[str] = []

    def _write(self, path: Path, text: str, line: int) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        self.done.append(f"{path.relative_to(REPOSITORY)}:{line}")

    def entry(self, path: Path, entry: str) -> None:
        """The declaration, after that of the first sibling."""
        text = path.read_text() if path.is_file() else ""
        line = self.siblings[0].location.line if self.siblings else text.count("\n")
        self._write(path, *placing.after_entry(text, line, entry))

    def function(self, paths: Sequence[Path], names: Sequence[str], skeleton: str) -> None:
        """A function, after the first of `names` that is in one of the files; else at the end of the first file."""
        texts = {path: path.read_text() for path in paths if path.is_file()}
        for name in names:
            for path, text in texts.items():
                if placed := placing.after_item(text, rf"fn {name}\b", skeleton):
                    return self._write(path, *placed)
        self._write(paths[0], *placing.at_end(texts.get(paths[0], ""), skeleton))
        return None

    def kernel(self, family: str, operator: Operator) -> None:
        """The kernel's registration beside a sibling's, and its skeleton where the sibling's is a plain function."""
        use = operator.kernels[0]
        signature = kernel_signature(operator, use).removesuffix(" -> Result<()>")
        if " -> Result<" in signature:
            signature = signature.replace(" -> Result<", " -> ").removesuffix(">")
        names = [o.kernels[0].name for o in self.siblings if o.kernels]
        # The file of the nearest sibling, not the first file that has any.
        folder = REPOSITORY / f"crates/kernels-cpu/src/{family}"
        texts = {path: path.read_text() for path in sorted(folder.rglob("*.rs"))}
        for name in names:
            for path, text in texts.items():
                placed = placing.beside_kernel(text, [name], f"        {use.name}: {signature};\n")
                if placed is None:
                    continue
                self._write(path, placed[0], placed[1])
                if written := placing.after_item(placed[0], rf"^fn {name}\(", kernel_skeleton(operator)):
                    self._write(path, *written)
                else:
                    self.done.append(f"{path.relative_to(REPOSITORY)}: write `{use.name}` beside `{name}`")
                return
        self.done.append(f"crates/kernels-cpu/src/{family}/: register `{use.name}: {signature}`")


def main(arguments: list[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="new_op", description=__doc__.splitlines()[0])
    parser.add_argument("family", choices=FAMILIES)
    parser.add_argument("schema")
    parser.add_argument("--meta", metavar="RULE", help="a preset, a function of ops/src/meta, or `own` for a new one")
    parser.add_argument("--after", metavar="NAME", help="the operator to stand beside")
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--view", action="store_true", help="the shape function is the implementation")
    group.add_argument("--implicit", action="store_true", help="composite, differentiated through its parts")
    group.add_argument("--explicit", action="store_true", help="composite with its own derivative")
    group.add_argument("--dynamic", action="store_true", help="the kernel allocates its output")
    options = parser.parse_args(arguments)
    try:
        schema = parse_schema(options.schema)
        functions = load()
    except (SchemaError, OpgenError) as error:
        print(f"new_op: {error}", file=sys.stderr)
        return 1
    taken = {f.schema.full_name: f.operator.location for fs in functions.values() for f in fs}
    if schema.full_name in taken:
        print(f"new_op: {schema.full_name} is already declared at {taken[schema.full_name]}", file=sys.stderr)
        return 1
    kind = kind_of(options.family, options)
    meta = meta_of(options.family, schema, options.meta) if kind == "structured" else ""
    declared = [f.operator for f in functions.get(options.family, []) if f.declared]
    writer = Writer(siblings_of(schema, declared, kind, meta, options.after))
    write_parts(schema, options.family, kind, meta, writer)
    print("\n".join(writer.done))
    print("fill in these places, then `make gen` and `make check`")
    return 0


def write_parts(schema: Schema, family: str, kind: str, meta: str, writer: Writer) -> None:
    """Writes every part that an operator of this kind has by hand."""
    source = REPOSITORY / "crates/ops/src"
    writer.entry(REPOSITORY / f"crates/ops/yaml/{family}.yaml", yaml_entry(schema, kind, meta))
    function = Function(None, schema, Variant.FUNCTIONAL, declared=True)  # type: ignore[arg-type]
    result = return_type(schema.returns, optional=False)
    names = [o.impl or next(iter(functions_of(o))).rust_name for o in writer.siblings if o.kind is KINDS[kind]]
    if kind == "view":
        paths = [source / "view/dims.rs", *sorted((source / "view").glob("*.rs"))]
        writer.function(paths, names, rust_skeleton(function, function.rust_name, "", result, sized=True))
    elif kind in ("implicit", "explicit"):
        paths = [source / f"composite/{family}.rs", *sorted((source / f"composite/{family}").glob("*.rs"))]
        writer.function(paths, names, rust_skeleton(function, function.rust_name, "", result))
    elif meta == f"{schema.name}_meta" and not any(o.meta == meta for o in writer.siblings):
        plan = "TensorIterator" if rule_of(family).plan == "iter" else "()"
        skeleton = rust_skeleton(function, meta, "outs: &mut StructuredOutputs", plan, sized=plan == "()")
        writer.function([source / f"meta/{family}.rs"], [o.meta for o in writer.siblings if o.meta], skeleton)
    if kind in ("structured", "dynamic"):
        written = next(f.operator for f in load()[family] if f.schema.full_name == schema.full_name)
        writer.kernel(family, written)


if __name__ == "__main__":
    sys.exit(main())
