"""Operators defined in Python."""

import ptr as torch
import pytest
from ptr import library
from ptr._library.library import _scoped_library


@pytest.fixture
def lib():
    with _scoped_library("pytestlib", "FRAGMENT") as scoped:
        yield scoped


def test_define_and_impl(lib):
    assert lib.define("twice(Tensor x, int times=2) -> Tensor") == "twice"
    lib.impl("twice", lambda x, times=2: x * times, "CompositeExplicitAutograd")
    x = torch.ones(2)
    assert torch.ops.pytestlib.twice(x).tolist() == [2.0, 2.0]
    assert torch.ops.pytestlib.twice(x, times=3).tolist() == [3.0, 3.0]
    assert torch.ops.pytestlib.twice.default.name() == "pytestlib::twice"
    with pytest.raises(RuntimeError, match="already a kernel registered from python"):
        lib.impl("twice", lambda x, times=2: x, "CompositeExplicitAutograd")


def test_registrations_end_with_the_library():
    with _scoped_library("pytestgone", "DEF") as scoped:
        scoped.define("f(Tensor x) -> Tensor")
        scoped.impl("f", lambda x: x + 1, "CPU")
        assert torch.ops.pytestgone.f(torch.zeros(1)).item() == 1.0
    with pytest.raises((AttributeError, RuntimeError, NotImplementedError)):
        torch.ops.pytestgone.f(torch.zeros(1))


def test_composite_differentiates(lib):
    lib.define("square(Tensor x) -> Tensor")
    lib.impl("square", lambda x: x * x, "CompositeImplicitAutograd")
    x = torch.tensor([3.0], requires_grad=True)
    torch.ops.pytestlib.square(x).backward()
    assert x.grad.item() == 6.0


def test_overriding_a_kernel_and_fallthrough(lib):
    lib.define("which(Tensor x) -> str")
    lib.impl("which", lambda x: "cpu", "CPU")
    lib.impl("which", library.fallthrough_kernel, "AutogradCPU")
    assert torch.ops.pytestlib.which(torch.ones(1, requires_grad=True)) == "cpu"


def test_with_keyset(lib):
    lib.define("keys(Tensor x) -> bool")
    lib.impl("keys", lambda keyset, x: keyset.has("CPU"), "CPU", with_keyset=True)
    assert torch.ops.pytestlib.keys(torch.ones(1)) is True


def test_kernel_results_and_errors(lib):
    lib.define("pair(Tensor x) -> (Tensor, Tensor)")
    lib.impl("pair", lambda x: (x, x + 1), "CPU")
    a, b = torch.ops.pytestlib.pair(torch.zeros(1))
    assert (a.item(), b.item()) == (0.0, 1.0)
    lib.define("bad(Tensor x) -> Tensor")
    lib.impl("bad", lambda x: 3.5j, "CPU")
    with pytest.raises(TypeError, match="Unable to cast the result 0 of pytestlib::bad"):
        torch.ops.pytestlib.bad(torch.zeros(1))
    lib.define("none(Tensor x) -> ()")
    lib.impl("none", lambda x: x, "CPU")
    with pytest.raises(RuntimeError, match="return nothing"):
        torch.ops.pytestlib.none(torch.zeros(1))
    with pytest.raises(TypeError, match="callable"):
        lib.impl("none", 3, "CUDA")
    with pytest.raises(ValueError, match="Unsupported kind"):
        library.Library("x", "WHAT")
    with pytest.raises(RuntimeError):
        lib.define("not a schema")


def test_register_autograd(lib):
    lib.define("mysin(Tensor x) -> Tensor")
    lib.impl("mysin", lambda x: torch.sin(x), "CPU")

    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(inputs[0])

    def backward(ctx, grad):
        return grad * ctx.saved_tensors[0].cos()

    library.register_autograd("pytestlib::mysin", backward, setup_context=setup_context, lib=lib)
    x = torch.tensor([0.0], requires_grad=True)
    y = torch.ops.pytestlib.mysin(x)
    y.backward()
    assert x.grad.item() == 1.0


def test_infer_schema():
    def f(x: torch.Tensor, y: torch.Tensor | None, sizes: list[int], *, p: float = 0.5) -> tuple[torch.Tensor, int]:
        raise NotImplementedError

    schema = library.infer_schema(f, mutates_args=())
    assert schema == "(Tensor x, Tensor? y, SymInt[] sizes, *, float p=0.5) -> (Tensor, SymInt)"
    assert library.infer_schema(f, mutates_args={"x"}).startswith("(Tensor(a!) x")

    def untyped(x):
        return x

    with pytest.raises(ValueError, match="must have a type annotation"):
        library.infer_schema(untyped, mutates_args=())


def test_custom_op():
    @library.custom_op("pytestcustom::scale", mutates_args=())
    def scale(x: torch.Tensor, factor: float) -> torch.Tensor:
        return x * factor

    x = torch.tensor([1.0, 2.0], requires_grad=True)
    assert scale(x.detach(), 3.0).tolist() == [3.0, 6.0]
    assert torch.ops.pytestcustom.scale(x.detach(), 3.0).tolist() == [3.0, 6.0]
    with pytest.raises(RuntimeError, match="no autograd formula was registered"):
        scale(x, 3.0).sum().backward()
    with pytest.raises(NotImplementedError, match="no fake impl registered"):
        scale(torch.ones(2, device="meta"), 3.0)

    @scale.register_fake
    def _(x, factor):
        return torch.empty_like(x)

    assert scale(torch.ones(2, 3, device="meta"), 3.0).shape == (2, 3)

    def setup_context(ctx, inputs, output):
        ctx.factor = inputs[1]

    scale.register_autograd(lambda ctx, grad: (grad * ctx.factor, None), setup_context=setup_context)
    scale(x, 3.0).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]
    results = library.opcheck(scale, (x, 3.0))
    assert set(results.values()) == {"SUCCESS"}


def test_custom_op_that_writes():
    @library.custom_op("pytestcustom::increment", mutates_args={"x"})
    def increment(x: torch.Tensor) -> None:
        x.add_(1)

    x = torch.zeros(2)
    version = x._version
    increment(x)
    assert x.tolist() == [1.0, 1.0] and x._version > version


def test_custom_op_may_not_return_its_argument():
    @library.custom_op("pytestcustom::same", mutates_args=())
    def same(x: torch.Tensor) -> torch.Tensor:
        return x

    with pytest.raises(RuntimeError, match="must not also be an input"):
        same(torch.ones(1))


def test_opcheck_finds_undeclared_writes():
    @library.custom_op("pytestcustom::sneaky", mutates_args=())
    def sneaky(x: torch.Tensor) -> torch.Tensor:
        return x.add_(1).clone()

    with pytest.raises(library.OpCheckError, match="not defined as mutable but was mutated"):
        library.opcheck(sneaky, (torch.ones(1),), test_utils="test_schema")


def test_lists_of_tensors_differentiate():
    @library.custom_op("pytestcustom::total", mutates_args=())
    def total(xs: list[torch.Tensor], y: torch.Tensor) -> torch.Tensor:
        return sum(xs, y.clone())

    total.register_autograd(lambda ctx, grad: ([grad, grad], grad * 2))
    a, b, c = (torch.tensor([float(i)], requires_grad=True) for i in range(3))
    total([a, b], c).backward()
    assert (a.grad.item(), b.grad.item(), c.grad.item()) == (1.0, 1.0, 2.0)
