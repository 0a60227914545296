"""opgen: schema parser, family rules, variants, derivative analysis, and errors that name their line."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tools.opgen import __main__ as opgen
from tools.opgen import foreach
from tools.opgen.derivatives import analyse, node_names
from tools.opgen.emit import kernel_list
from tools.opgen.model import Kind, Operator, OpgenError, functions_of
from tools.opgen.rust_types import kernel_signature
from tools.opgen.schema import SchemaError, parse_schema
from tools.opgen.signatures import bindings
from tools.opgen.yaml_loader import check_unique, load_family


def declare(tmp_path: Path, text: str, family: str = "pointwise", tags: tuple[str, ...] = ("core",)) -> list[Operator]:
    path = tmp_path / f"{family}.yaml"
    path.write_text(text)
    operators = load_family(path, tags)
    check_unique(operators)
    return operators


def names(operator: Operator) -> list[str]:
    return [f.schema.full_name for f in functions_of(operator)]


@pytest.mark.parametrize(
    "text",
    [
        "add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
        "split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]",
        "max.dim_max(Tensor self, int dim, bool keepdim=False, *, Tensor(a!) max, Tensor(b!) max_values) -> "
        "(Tensor(a!) values, Tensor(b!) indices)",
        "_foreach_add_.Scalar(Tensor(a!)[] self, Scalar scalar) -> ()",
        "index.Tensor(Tensor self, Tensor?[] indices) -> Tensor",
        'f(int[2]? dim=[0, 1], float eps=1e-05, str mode="mean", bool[3] mask, SymInt? n=None) -> (Tensor, Scalar)',
    ],
)
def test_schemas_round_trip(text: str) -> None:
    if "mask" in text:  # a positional argument without default may not follow one with default
        text = text.replace("bool[3] mask", "*, bool[3] mask")
    assert str(parse_schema(text)) == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("add(Tensor self", "end of schema"),
        ("add(Tenser self) -> Tensor", "unknown type 'Tenser'"),
        ("add(Tensor self, Tensor self) -> Tensor", "appears twice"),
        ("add(Tensor self=1, Tensor other) -> Tensor", "without default"),
        ("add(Tensor self) -> Tensor x y", "unexpected 'y'"),
    ],
)
def test_schema_errors(text: str, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        parse_schema(text)


def test_pointwise_operator_costs_three_lines(tmp_path: Path) -> None:
    [operator] = declare(
        tmp_path,
        """
- op: erfc(Tensor self) -> Tensor
  meta: unary_float_op
  derivative: {self: "erfc_backward(grad, self)?"}
""",
    )
    assert names(operator) == ["erfc", "erfc_", "erfc.out"]
    assert operator.kind is Kind.STRUCTURED
    [use] = operator.kernels
    assert (use.name, use.keys, operator.kernel_for("MPS")) == ("erfc_kernel", (), "erfc_kernel")
    assert kernel_signature(operator, use) == "fn(&TensorIterator) -> Result<()>"
    assert (operator.batch, operator.lowering) == ("pointwise", "pointwise")


def test_variants_have_pytorchs_names(tmp_path: Path) -> None:
    add, total, div = declare(
        tmp_path,
        """
- op: add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
- op: sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False) -> Tensor
  variants: [function, out]
  out_name: sum.IntList_out
- op: floor_divide(Tensor self, Tensor other) -> Tensor
  inplace_name: floor_divide_.Tensor
""",
    )
    assert [str(f.schema) for f in functions_of(add)] == [
        "add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
        "add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)",
        "add.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)",
    ]
    assert names(total) == ["sum.dim_IntList", "sum.IntList_out"]
    assert names(div) == ["floor_divide", "floor_divide_.Tensor", "floor_divide.out"]


def test_namespaces_and_every_scalar_type(tmp_path: Path) -> None:
    from tools.opgen.emit import derivative_tables, rust_functions

    operators = declare(
        tmp_path,
        """
- op: quantized::scale(Tensor self, SymFloat factor, complex z, SymBool? flag=None, Stream? s=None) -> Tensor
  variants: [out]
  kernel_args: [factor, z, flag, s]
  derivative: {self: "grad.scale(z)"}
""",
    )
    [operator] = operators
    assert [f.schema.full_name for f in functions_of(operator)] == ["quantized::scale", "quantized::scale.out"]
    [use] = operator.kernels
    assert kernel_signature(operator, use) == (
        "fn(&TensorIterator, f64, Complex<f64>, Option<bool>, Option<Stream>) -> Result<()>"
    )
    text = emitted(operators)
    assert '"quantized::scale(Tensor self, SymFloat factor,' in text
    assert 'registrar.structured("quantized::scale.out", &handles::QUANTIZED_SCALE_OUT,' in text
    assert "factor.guard_float()?, z, flag.map(SymBool::guard_bool).transpose()?" in text
    functions = {"pointwise": list(functions_of(operator))}
    calls = rust_functions.emit(functions)
    handle = "QUANTIZED_SCALE: TypedOp<(Tensor, SymFloat, Complex<f64>, Option<SymBool>, Option<Stream>), Tensor>"
    assert f'{handle} = TypedOp::new("quantized::scale", "");' in calls[f"{rust_functions.ROOT}/pointwise.rs"]
    assert 'NAMESPACES: &[&str] = &["quantized"];' in calls[f"{rust_functions.ROOT}/mod.rs"]
    tables = derivative_tables.emit(functions)[f"{derivative_tables.ROOT}/pointwise.rs"]
    assert 'op: "quantized::scale",' in tables
    assert bindings(functions["pointwise"]) == []


def test_lists_have_variants_too(tmp_path: Path) -> None:
    add, mul, norm = declare(
        tmp_path,
        """
- op: _foreach_add.List(Tensor[] self, Tensor[] other, *, Scalar alpha=1) -> Tensor[]
  composite: implicit
- op: _foreach_mul.Tensor(Tensor[] self, Tensor other) -> Tensor[]
  composite: implicit
  inplace_impl: each_mul
- op: _foreach_norm.Scalar(Tensor[] self, Scalar ord=2) -> Tensor[]
  variants: [function, out]
  composite: implicit
""",
        "foreach",
    )
    assert [str(f.schema) for f in functions_of(add)][1:] == [
        "_foreach_add_.List(Tensor(a!)[] self, Tensor[] other, *, Scalar alpha=1) -> ()",
        "_foreach_add.List_out(Tensor[] self, Tensor[] other, *, Scalar alpha=1, Tensor(a!)[] out) -> ()",
    ]
    assert names(mul) == ["_foreach_mul.Tensor", "_foreach_mul_.Tensor", "_foreach_mul.Tensor_out"]
    assert names(norm) == ["_foreach_norm.Scalar", "_foreach_norm.Scalar_out"]
    text = emitted([add, mul], "foreach")
    assert 'structured::write_list("_foreach_add_", self_, ' in text
    assert "composite::foreach::each_mul(self_, other)" in text
    bound = bindings(f for o in (add, mul, norm) for f in functions_of(o))
    assert [(b.name, b.is_function, b.is_method) for b in bound] == [
        ("_foreach_add", True, False),
        ("_foreach_add_", True, False),
        ("_foreach_mul", True, False),
        ("_foreach_mul_", True, False),
        ("_foreach_norm", True, False),
    ]
    assert all(overload.out is None for b in bound for overload in b.overloads)


def foreach_entries(tmp_path: Path, text: str) -> list[Operator]:
    singles = declare(
        tmp_path,
        """
- op: scale.Tensor(Tensor self, Tensor by, *, Scalar alpha=1) -> Tensor
  variants: [function, inplace]
- op: scale.Scalar(Tensor self, Scalar by, Scalar alpha=1) -> Tensor
  variants: [function, inplace]
- op: mix(Tensor self, Tensor end, Scalar weight) -> Tensor
  variants: [function]
""",
    )
    return foreach.bind([*singles, *declare(tmp_path, text, "foreach")])[len(singles) :]


def test_each_takes_the_overload_that_fits(tmp_path: Path) -> None:
    operators = foreach_entries(
        tmp_path,
        """
- op: _foreach_scale.List(Tensor[] self, Tensor[] other, *, Scalar alpha=1) -> Tensor[]
  foreach: scale
- op: _foreach_scale.ScalarList(Tensor[] self, Scalar[] scalars) -> Tensor[]
  foreach: scale
- op: _foreach_scale.Tensor(Tensor[] self, Tensor other) -> Tensor[]
  foreach: scale
- op: _foreach_mix.Tensor(Tensor[] self, Tensor[] ends, Tensor weights) -> Tensor[]
  variants: [function, out]
  foreach: mix
""",
    )
    text = emitted(operators, "foreach")
    for call in (
        "at::scale_tensor(&self_[i], &other[i], alpha)",
        "at::scale__tensor(&self_[i], &other[i], alpha)",
        "at::scale_scalar(&self_[i], &scalars[i], &Scalar::Int(1))",
        "at::scale__tensor(&self_[i], other, &Scalar::Int(1))",
        "at::mix(&self_[i], &ends[i], &weights[i])",
        "lists::check_lists(&[self_, other])?",
        "lists::check_scalars(self_, scalars)?",
        "lists::check_scalar_tensor(other)?",
        "let weights = lists::unpack(weights, self_.len())?",
    ):
        assert call in text, call
    # The `out=` form calls the function of the declared one.
    assert 'structured::write_list("_foreach_mix", out, &_foreach_mix_tensor_each(' in text


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (
            "_foreach_no(Tensor[] self) -> Tensor[]\n  foreach: no",
            "`foreach: no` fits 0 overloads of `no`: there is no",
        ),
        ("_foreach_scale(Tensor[] self) -> Tensor[]\n  foreach: scale", "fits 0 overloads of `scale`: scale.Tensor"),
        ("_foreach_mix(Tensor[] self, Tensor[] end, Scalar weight) -> Tensor[]\n  foreach: mix", "overloads of `mix_`"),
        ("_foreach_mix(Tensor[] self) -> Tensor[]\n  foreach: mix\n  composite: implicit", "exclude each other"),
    ],
)
def test_each_that_fits_nothing_is_an_error(tmp_path: Path, entry: str, message: str) -> None:
    with pytest.raises(OpgenError, match=re.escape(message)):
        foreach_entries(tmp_path, f"- op: {entry}\n")


def test_formula_saves_what_it_names(tmp_path: Path) -> None:
    [operator] = declare(
        tmp_path,
        """
- op: f(Tensor self, Tensor other, int dim, *, Scalar alpha=1) -> Tensor
  variants: [function]
  derivative:
    self: at::mul(grad, &at::cos(other)?, dim, self.sym_sizes())?
    other: helper(grad, result, &alpha.conj(), other.scalar_type(), "self is a word here")?
""",
    )
    spec = analyse(operator, "FBackward0")
    assert spec.differentiable == (0, 1)
    saved = [(s.kind, s.index, s.meta.kind if s.meta else "", s.needed_by) for s in spec.saved]
    assert saved == [
        ("Meta", 0, "SymSizes", 0b01),
        ("Input", 1, "", 0b01),
        ("Value", 2, "", 0b01),
        ("Meta", 1, "ScalarType", 0b10),
        ("Value", 3, "", 0b10),
        ("Output", 0, "", 0b10),
    ]
    assert spec.backwards[1].expression == (
        'helper(grad, result, &alpha.conj(), other_scalar_type, "self is a word here")?'
    )


def test_arguments_written_on_the_side_are_saved(tmp_path: Path) -> None:
    [operator] = declare(
        tmp_path,
        """
- op: f(Tensor input, Tensor(a!) running_mean, Tensor(b!) other) -> Tensor
  variants: [function]
  composite: explicit
  derivative:
    input: f_backward(grad, input, running_mean)?
    other: grad.clone()
""",
    )
    saved = [(s.kind, s.index) for s in analyse(operator, "FBackward0").saved]
    assert saved == [("Input", 0), ("Input", 1)]


@pytest.mark.parametrize(
    ("schema", "derivative", "message"),
    [
        ("f(Tensor x, Tensor(a!) y) -> Tensor", '{x: g(grad), y: "g(grad, y)"}', "`y` is overwritten"),
        ("f(Tensor x, *, Tensor(a!) out) -> Tensor(a!)", '{x: "g(grad, out)"}', "`out` is an output"),
    ],
)
def test_what_is_gone_cannot_be_saved(tmp_path: Path, schema: str, derivative: str, message: str) -> None:
    text = f"- op: {schema}\n  variants: []\n  composite: explicit\n  derivative: {derivative}\n"
    [operator] = declare(tmp_path, text)
    with pytest.raises(OpgenError, match=rf"pointwise.yaml:4: f.*: {message}"):
        analyse(operator, "FBackward0")


def test_each_formula_has_its_own_guard(tmp_path: Path) -> None:
    from tools.opgen.emit import derivative_tables

    operators = declare(
        tmp_path,
        """
- op: f(Tensor a, Tensor b, Tensor c) -> (Tensor, Tensor)
  variants: [function]
  composite: explicit
  derivative:
    a: g(grad)
    b: h(grads[1])
    c: at::zeros_like(c)?
""",
    )
    functions = {"pointwise": [f for o in operators for f in functions_of(o)]}
    text = " ".join(derivative_tables.emit(functions)[f"{derivative_tables.ROOT}/pointwise.rs"].split())
    assert "if let (true, Some(grad)) = (ctx.needs(0), ctx.grad(0)) { ctx.set_grad(0, g(grad)); }" in text
    assert "if ctx.needs(1) { ctx.set_grad(1, h(grads[1].as_ref())); }" in text
    assert "if ctx.needs(2) { let c = &ctx.tensor(0)?; ctx.set_grad(2, at::zeros_like(c)?); }" in text
    assert "else { return Ok(()) }" not in text


def test_facts_are_read_from_the_table() -> None:
    from tools.opgen.saved_facts import facts

    source = (opgen.REPOSITORY / "crates/autograd/src/saved_meta.rs").read_text()
    rows, _, _ = source.partition("\nsaved_facts! {")[2].partition("\n}")
    assert len(facts()) == len(re.findall(r"\bfn \w+ ->", rows)) >= 14
    assert ("MemoryFormat", False, "suggest_memory_format") in [(f.kind, f.of_list, f.method) for f in facts()]


def test_graph_nodes_are_numbered_as_declared(tmp_path: Path) -> None:
    operators = declare(
        tmp_path,
        """
- op: mul.Tensor(Tensor self, Tensor other) -> Tensor
  derivative: {self: grad.clone()}
- op: mul.Scalar(Tensor self, Scalar other) -> Tensor
  variants: [function]
  derivative: {self: grad.clone()}
- op: pool2d_forward(Tensor self) -> Tensor
  variants: [function]
  derivative: {self: grad.clone()}
""",
    )
    assert list(node_names(operators).values()) == ["MulBackward0", "MulBackward1", "Pool2DBackward0"]


def test_overloads_are_tried_tensors_first(tmp_path: Path) -> None:
    operators = declare(
        tmp_path,
        """
- op: eq.Scalar(Tensor self, Scalar other) -> Tensor
- op: eq.Tensor(Tensor self, Tensor other) -> Tensor
  out_name: eq.Tensor_out
""",
    )
    functions = [f for o in operators for f in functions_of(o)]
    [eq] = [b for b in bindings(functions) if b.name == "eq"]
    assert [o.base and o.base.schema.overload for o in eq.overloads] == ["Tensor", "Scalar"]
    assert [o.out and o.out.schema.overload for o in eq.overloads] == ["Tensor_out", "Scalar_out"]


def test_a_tensor_is_tried_before_an_integer_that_it_could_stand_for(tmp_path: Path) -> None:
    operators = declare(
        tmp_path,
        """
- op: f.ints(Tensor self, SymInt[] at, int dim=0) -> Tensor
  composite: implicit
- op: f.int(Tensor self, SymInt at, int dim=0) -> Tensor
  composite: implicit
- op: f.tensor(Tensor self, Tensor at, int dim=0) -> Tensor
  composite: implicit
""",
    )
    [f] = [b for b in bindings([f for o in operators for f in functions_of(o)]) if b.name == "f"]
    assert [o.base and o.base.schema.overload for o in f.overloads] == ["tensor", "int", "ints"]


def test_methods_by_hand_are_declared_so(tmp_path: Path) -> None:
    half = declare(
        tmp_path,
        """
- op: f.a(Tensor self) -> Tensor
  variants: [function, method]
  python: manual
- op: f.b(Tensor self, Tensor other) -> Tensor
  variants: [function, method]
""",
    )
    with pytest.raises(OpgenError, match=r"pointwise.yaml:5: f.b: the method `f` is bound by hand, as pointwise.yaml"):
        _ = [b.is_manual for b in bindings(f for o in half for f in functions_of(o))]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- op: add(Tensor self) -> Tensr\n", r"pointwise.yaml:1: add: unknown type 'Tensr'"),
        ("- op: add(Tensor self) -> Tensor\n  kernl: x\n", r"pointwise.yaml:2: add: unknown key `kernl`"),
        ("- op: add(Tensor self) -> Tensor\n  tags: [cor]\n", r"pointwise.yaml:2: add: unknown tag `cor`"),
        (
            "- op: add(Tensor self) -> Tensor\n  view: true\n",
            r"pointwise.yaml:1: add: a view's return carries an alias",
        ),
        (
            "- op: add(Tensor self) -> Tensor\n  derivative: {other: grad}\n",
            r"pointwise.yaml:2: add: derivative for `other`, which is not an argument",
        ),
        (
            "- op: add(Tensor self) -> Tensor\n- op: add(Tensor self) -> Tensor\n",
            r"pointwise.yaml:2: add: `add` is already declared by pointwise.yaml:1",
        ),
        (
            "- op: f.Out(Tensor self) -> Tensor\n  variants: []\n- op: f(Tensor self) -> Tensor\n",
            r"pointwise.yaml:3: f: `f.out` is `f_out` in Rust, as `f.Out` of pointwise.yaml:1 is",
        ),
        (
            "- op: f_g(Tensor self) -> Tensor\n  variants: []\n- op: f.g(Tensor self) -> Tensor\n  variants: []\n",
            r"pointwise.yaml:3: f.g: `f.g` is `f_g` in Rust, as `f_g` of pointwise.yaml:1 is",
        ),
        (
            "- op: add(Tensor self) -> Tensor\n  composite: implicit\n  derivative: {self: grad}\n",
            r"pointwise.yaml:3: add: an implicit composite",
        ),
        ("- op: add(Tensor self) -> Tensor\n  variants: [functon]\n", r"pointwise.yaml:2: add: a variant is one of"),
        ("- op: add(Tensor self) -> Tensor\n  op: x\n", r"pointwise.yaml:2: key `op` appears twice"),
        (
            "- op: add(Tensor self) -> Tensor\n  dispatch: {CPUU: x}\n",
            r"pointwise.yaml:2: add: `CPUU` is not a dispatch key",
        ),
        (
            "- op: add(Tensor self) -> Tensor\n  dispatch: {Dense: x}\n",
            r"pointwise.yaml:2: add: `Dense` is not a dispatch key",
        ),
        (
            "- op: add(Tensor self) -> Tensor\n  dispatch: {Meta: x}\n",
            r"pointwise.yaml:2: add: the shape function of a structured operator is its kernel for Meta",
        ),
        (
            "- op: add(Tensor self) -> Tensor\n  composite: implicit\n  dispatch: {CPU: x}\n",
            r"pointwise.yaml:3: add: an implicit composite has no kernels",
        ),
        (
            "- op: add(Tensor self) -> Tensor\n  dispatch: {CPU: fallthrough}\n",
            r"pointwise.yaml:2: add: nothing can fall through `CPU`",
        ),
        (
            "- op: f(Tensor(a) self) -> Tensor(a)\n  view: {differentiable: false}\n  derivative: {self: grad}\n",
            r"pointwise.yaml:1: f: a view that gradients do not pass has",
        ),
        ("- op: [\n", r"pointwise.yaml:2: not valid YAML"),
    ],
)
def test_errors_name_file_and_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(OpgenError, match=message):
        declare(tmp_path, text)


def test_what_new_op_leaves_is_read_but_generates_nothing(tmp_path: Path) -> None:
    operators = declare(tmp_path, "- op: add(Tensor self) -> Tensor\n  derivative:\n    self: unwritten\n")
    functions = {"pointwise": [f for o in operators for f in functions_of(o)]}
    assert "`add_kernel`" in kernel_list.render(functions)
    message = r"pointwise.yaml:3: add: the derivative for `self` is still to be written"
    with pytest.raises(OpgenError, match=message):
        opgen.check_written(functions)


def test_one_kernel_has_one_type(tmp_path: Path) -> None:
    from tools.opgen.emit import rust_register

    operators = declare(
        tmp_path,
        """
- op: f(Tensor self) -> Tensor
  kernel: shared_kernel
- op: g(Tensor self, Scalar value) -> Tensor
  kernel: shared_kernel
""",
    )
    functions = {"pointwise": [f for o in operators for f in functions_of(o)]}
    with pytest.raises(OpgenError, match=r"pointwise.yaml:4: g: kernel `shared_kernel` is"):
        rust_register.emit(functions)


def emitted(operators: list[Operator], family: str = "pointwise") -> str:
    """The registrations of one family, without the blanks that rustfmt decides."""
    from tools.opgen.emit import rust_register

    functions = {family: [f for o in operators for f in functions_of(o)]}
    return " ".join(rust_register.emit(functions)[f"{rust_register.ROOT}/{family}.rs"].split())


def test_dispatch_names_a_kernel_or_a_function_per_key(tmp_path: Path) -> None:
    operators = declare(
        tmp_path,
        """
- op: f(Tensor self, Scalar value) -> Tensor
  dispatch: {CUDA: f_cuda_kernel, "SparseCPU, SparseCUDA": f_sparse_kernel, ZeroTensor: f_zero}
""",
    )
    [operator] = operators
    assert [operator.kernel_for(k) for k in ("CPU", "CUDA", "SparseCUDA", "QuantizedCPU")] == [
        "f_kernel",
        "f_cuda_kernel",
        "f_sparse_kernel",
        None,
    ]
    text = emitted(operators)
    # A strided kernel fills outputs; one for another layout makes its result.
    assert "F_CUDA_KERNEL: DispatchStub<fn(&TensorIterator, &Scalar) -> Result<()>>" in text
    assert "F_SPARSE_KERNEL: DispatchStub<fn(&Tensor, &Scalar) -> Result<Tensor>>" in text
    assert "match key { DispatchKey::CUDA => F_CUDA_KERNEL.get(key)?, _ => F_KERNEL.get(key)? }" in text
    dense = 'Serves { except: &[DispatchKey::CUDA], ..Serves::dense_of_mixed_devices("f_kernel") }'
    assert f'registrar.structured("f_", &handles::F_, {dense}' in text
    sparse = 'Serves { only: &[DispatchKey::SparseCPU, DispatchKey::SparseCUDA], ..Serves::dense("f_sparse_kernel") }'
    assert f'registrar.kernel("f", &handles::F, {sparse}' in text
    copied = "|keyset, (self_, value, out)| structured::write_out"
    assert f'registrar.kernel("f.out", &handles::F_OUT, {sparse}, {copied}' in text
    assert 'registrar.implement("f", &handles::F, &[DispatchKey::ZeroTensor], ' in text
    assert "composite::pointwise::f_zero(self_, value)" in text


def test_device_rules(tmp_path: Path) -> None:
    text = emitted(
        declare(
            tmp_path,
            """
- op: f(Tensor self) -> Tensor
  output: dynamic
- op: g(Tensor self, Tensor other) -> Tensor
  output: dynamic
  device_check: NoCheck
- op: h(Tensor self) -> Tensor
  output: dynamic
  device_guard: false
- op: i(Tensor self) -> Tensor
  variants: []
- op: j(Tensor self) -> Tensor
  meta: j_meta
  plan: none
  variants: []
  device_check: ExceptMeta
""",
        )
    )
    assert 'Serves { compare_on_meta: false, ..Serves::dense("j_kernel") }' in text
    assert '&handles::F, Serves::dense("f_kernel"),' in text
    assert '&handles::G, Serves::dense_of_mixed_devices("g_kernel"),' in text
    free = 'Serves { device: DeviceRules { check: true, guard: false }, ..Serves::dense("h_kernel") }'
    assert f"&handles::H, {free}," in text
    assert '&handles::I, Serves::dense_of_mixed_devices("i_kernel"),' in text, "the iterator compares"


def test_an_operator_may_fall_through_a_key(tmp_path: Path) -> None:
    text = emitted(
        declare(
            tmp_path,
            """
- op: f(Tensor self) -> Tensor
  dispatch: {"Conjugate, Negative": fallthrough}
""",
        )
    )
    assert 'registrar.fall_through("f", &[DispatchKey::Conjugate, DispatchKey::Negative])?;' in text
    assert 'fall_through("f.out"' not in text, "an output with the bit is another matter"


def test_a_kernel_may_have_a_shape_function_and_a_composite_beside_it(tmp_path: Path) -> None:
    text = emitted(
        declare(
            tmp_path,
            """
- op: f(Tensor self) -> (Tensor values, Tensor indices)
  variants: [function, out]
  output: dynamic
  dispatch: {CPU: f_cpu_kernel, Meta: f_meta, CompositeExplicitAutograd: f}
""",
        )
    )
    assert "&[DispatchKey::Meta], |_, (self_,)| meta::pointwise::f_meta(self_))?;" in text
    assert "&[DispatchKey::CompositeExplicitAutograd], |_, (self_,)| composite::pointwise::f(self_))?;" in text
    # The `out=` form goes on to the kernel of the same key, and copies each result.
    assert "let (result0, result1) = redispatch::f(keyset, self_)?;" in text
    assert 'structured::write_out("f", indices, &result1)?' in text


def test_generated_code_is_fresh() -> None:
    assert opgen.main(["--check"]) == 0


def test_every_operator_is_found(capsys: pytest.CaptureFixture[str]) -> None:
    from tools import where_op

    assert where_op.main(["add_.Tensor"]) == 0
    shown = capsys.readouterr().out
    assert "crates/ops/yaml/pointwise.yaml:" in shown
    assert where_op.main(["no_such_operator"]) == 1


def test_the_list_of_kernels_may_be_cut_short():
    command = f"{sys.executable} -m tools.opgen --kernels | head -1"
    done = subprocess.run(["bash", "-c", command], cwd=opgen.REPOSITORY, capture_output=True, text=True)
    assert done.stdout.count("\n") == 1 and not done.stderr
