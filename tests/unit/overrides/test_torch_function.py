"""``__torch_function__``: subclasses, modes, and functions written in Python."""

import copy

import ptr as torch
import pytest
from ptr import overrides


class Logged(torch.Tensor):
    calls = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.calls.append(getattr(func, "__name__", str(func)))
        return super().__torch_function__(func, types, args, kwargs or {})


def make(*values):
    Logged.calls.clear()
    return torch.tensor(list(values)).as_subclass(Logged)


def test_a_subclass_sees_functions_methods_and_operators():
    x = make(1.0, 2.0)
    Logged.calls.clear()
    y = torch.add(x, 1)
    z = x.mul(2) + x
    assert type(y) is type(z) is Logged
    assert Logged.calls[:2] == ["add", "mul"]
    assert z.tolist() == [3.0, 6.0]


def test_autograd_keeps_the_subclass():
    x = make(1.0, 2.0).requires_grad_()
    y = (x * 2).sum()
    y.backward()
    assert torch.Tensor.tolist(x.grad) == [2.0, 2.0]


def test_not_implemented_goes_on_and_fails_at_last():
    class No(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return NotImplemented

    x = torch.ones(1).as_subclass(No)
    with pytest.raises(TypeError, match="no implementation found for 'torch.*add"):
        torch.add(x, x)


def test_classes_that_are_no_tensors():
    class Other:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return (func.__name__, types)

    name, types = torch.add(torch.ones(1), Other())
    assert name == "add" and types == (Other,)
    assert overrides.is_tensor_like(Other()) and not overrides.is_tensor_like(3)


def test_modes():
    seen = []

    class Mode(overrides.TorchFunctionMode):
        def __init__(self, name):
            self.name = name

        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append((self.name, func.__name__))
            return func(*args, **(kwargs or {}))

    x = torch.ones(1)
    with Mode("outer"):
        with Mode("inner"):
            assert len(overrides._get_current_function_mode_stack()) == 2
            torch.add(x, x)
    assert seen == [("inner", "add"), ("outer", "add")]
    torch.add(x, x)
    assert len(seen) == 2
    assert overrides._get_current_function_mode() is None


def test_a_mode_that_raises_is_left():
    class Mode(overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        with Mode():
            torch.add(torch.ones(1), 1)
    assert torch.add(torch.ones(1), 1).item() == 2.0


def test_switched_off():
    x = make(1.0)
    with torch._C.DisableTorchFunctionSubclass():
        y = torch.add(x, 1)
    assert type(y) is torch.Tensor and "add" not in Logged.calls


def test_functions_written_in_python():
    @overrides.wrap_torch_function(lambda a, b=None: (a, b))
    def combine(a, b=None):
        return "plain"

    class Mine:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return (func is combine, args, kwargs)

    assert combine(1) == "plain"
    mine = Mine()
    assert combine(mine, b=2) == (True, (mine,), {"b": 2})
    assert overrides.has_torch_function((1, mine)) and not overrides.has_torch_function((1, 2))
    assert overrides.handle_torch_function(combine, (mine,), mine) == (True, (mine,), {})


def test_names_and_lists():
    assert overrides.resolve_name(torch.Tensor.add).endswith("Tensor.add")
    assert overrides.is_tensor_method_or_property(torch.Tensor.add)
    assert not overrides.is_tensor_method_or_property(torch.nn.functional.relu)
    functions = overrides.get_overridable_functions()
    assert torch.add in functions[torch]
    ignored = overrides.get_ignored_functions()
    assert torch.zeros in ignored
    dummies = overrides.get_testing_overrides()
    assert dummies[torch.add](1, 2) == -1


class Names(overrides.TorchFunctionMode):
    """Notes the names and types of the calls it sees."""

    def __init__(self):
        self.seen = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        owner = getattr(func, "__self__", None)
        name = func.__name__
        self.seen.append(f"{owner.__name__}.{name}" if name in ("__get__", "__set__", "__delete__") else name)
        return func(*args, **(kwargs or {}))


class Sub(torch.Tensor):
    seen = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        owner = getattr(func, "__self__", None)
        name = func.__name__
        cls.seen.append(f"{owner.__name__}.{name}" if name in ("__get__", "__set__", "__delete__") else name)
        assert types == (Sub,)
        return super().__torch_function__(func, types, args, kwargs)


def sub(value):
    return torch.tensor(value).as_subclass(Sub)


# What is written, and what PyTorch's handlers see of it.
SEEN = [
    ("x[i]", ["__getitem__"]),
    ("x[(i,)]", ["__getitem__"]),
    ("x[[i]]", ["__getitem__"]),
    ("x[0]", ["__getitem__"]),
    ("x[0] = v", ["__setitem__"]),
    ("x[i] = 1", ["__setitem__"]),
    ("x.data = x", ["data.__set__"]),
    ("x.grad = None", ["grad.__set__"]),
    ("del x.grad", ["grad.__delete__"]),
    ("x.requires_grad = True", ["requires_grad.__set__"]),
    ("x.requires_grad_()", ["requires_grad_"]),
    ("x._backward_hooks", ["_backward_hooks.__get__"]),
    ("x._backward_hooks = None", ["_backward_hooks.__set__"]),
    ("x.shape", ["shape.__get__"]),
    ("x.data", ["data.__get__"]),
    ("x.T", ["T.__get__"]),
    ("x.device", ["device.__get__"]),
    ("len(x)", ["__len__"]),
    ("float(v)", ["__float__"]),
    ("int(v)", ["__int__"]),
    ("bool(v)", ["__bool__"]),
    ("complex(v)", ["__complex__"]),
    ("[1, 2][i]", ["__index__"]),
    ("1 in x", ["__contains__"]),
    ("repr(x)", ["__repr__"]),
    ("str(x)", ["__repr__"]),
    ("dir(x)", ["__dir__"]),
    ("x.__dlpack_device__()", ["__dlpack_device__"]),
    ("hash(x)", []),
    ("x == x", ["__eq__"]),
    ("x == None", ["__eq__"]),
    ("1 == x", ["__eq__"]),
    ("x != 1", ["ne"]),
    ("1 < x", ["gt"]),
    ("~m", ["__invert__"]),
    ("-x", ["neg"]),
    ("1 + x", ["add"]),
    ("x - 1", ["sub"]),
    ("1 - x", ["__rsub__"]),
    ("x / 1", ["div"]),
    ("1 / x", ["__rdiv__"]),
    ("x // 1", ["__floordiv__"]),
    ("1 // x", ["__rfloordiv__"]),
    ("x % 1", ["remainder"]),
    ("1 % x", ["__rmod__"]),
    ("x**2", ["pow"]),
    ("2**x", ["__rpow__"]),
    ("m & m", ["__and__"]),
    ("True & m", ["bitwise_and"]),
    ("m | m", ["__or__"]),
    ("m ^ m", ["__xor__"]),
    ("m &= True", ["__iand__"]),
    ("m |= True", ["__ior__"]),
    ("m ^= True", ["__ixor__"]),
    ("x.clone().mul_(2)", ["clone", "mul_"]),
    ("torch.numel(x)", ["numel"]),
    ("torch.is_complex(x)", ["is_complex"]),
    ("torch.is_floating_point(x)", ["is_floating_point"]),
    ("torch.is_nonzero(v)", ["is_nonzero"]),
    ("torch.result_type(x, 1)", ["result_type"]),
    ("torch.is_tensor(x)", []),
    ("x.as_subclass(torch.Tensor)", []),
    ("x.new(1)", ["new"]),
    ("x.detach()", ["detach"]),
]


NOT_A_TUPLE = pytest.mark.filterwarnings("ignore:Using a non-tuple sequence")


@NOT_A_TUPLE
@pytest.mark.parametrize(("code", "names"), SEEN)
def test_subclasses_see_the_names_that_pytorch_gives(code, names):
    scope = {"torch": torch, "x": sub([1.0, 2.0]), "i": sub(1), "v": sub(1.0), "m": sub([True, False])}
    Sub.seen.clear()
    exec(code, scope)
    assert Sub.seen == names


@NOT_A_TUPLE
@pytest.mark.parametrize(
    ("code", "names"),
    [
        *SEEN,
        ("torch.tensor([1.0])", ["tensor"]),
        ("torch.as_tensor([1.0])", ["as_tensor"]),
        ("torch.ones(2)", ["ones"]),
        ("torch.can_cast(torch.int32, torch.int64)", ["can_cast"]),
        ("format(v, '.2f')", ["__format__"]),
        ("copy.deepcopy(x)", ["__deepcopy__"]),
        ("v.requires_grad_().backward()", ["requires_grad_", "backward"]),
        ("x.requires_grad_().register_hook(print)", ["requires_grad_", "register_hook"]),
    ],
)
def test_modes_see_the_names_that_pytorch_gives(code, names):
    scope = {
        "torch": torch,
        "copy": copy,
        "x": torch.tensor([1.0, 2.0]),
        "i": torch.tensor(1),
        "v": torch.tensor(1.0),
        "m": torch.tensor([True, False]),
    }
    with Names() as mode:
        exec(code, scope)
    assert mode.seen == names


@NOT_A_TUPLE
def test_plain_tensors_meet_a_subclass_in_an_index_or_value():
    x, i, v = torch.zeros(3), sub(1), sub(2.0)
    for code in ("x[i]", "x[(i,)]", "x[[i]]", "x[0] = v", "x[i] = 1", "x += v"):
        Sub.seen.clear()
        exec(code, {"x": x, "i": i, "v": v})
        assert len(Sub.seen) == 1, code


class Refuses(overrides.TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        return NotImplemented


@pytest.mark.parametrize(
    "code",
    [
        "torch.split(x, 1)",
        "F.relu(x)",
        "torch.add(x, 1)",
        "x.add(1)",
        "x[0]",
        "x[0] = 1",
        "x.shape",
        "x.grad = None",
        "len(x)",
        "repr(x)",
        "x + 1",
        "x < 1",
        "x += 1",
        "torch.ones(2)",
        "torch.numel(x)",
        "x.numel()",
        "float(x.sum())",
    ],
)
def test_a_mode_that_refuses_is_the_end(code):
    x = torch.tensor([1.0, 2.0])
    with pytest.raises(TypeError), Refuses():
        exec(code, {"torch": torch, "F": torch.nn.functional, "x": x})
    with Refuses():
        # Comparing by identity is Python's last resort.
        assert (x == 1) is False
        assert (x != 1) is True


def test_a_subclass_is_asked_when_a_mode_refuses():
    class Answers(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return "answer"

    x = torch.ones(1).as_subclass(Answers)
    with Refuses():
        assert torch.add(x, 1) == "answer"
    with pytest.raises(TypeError, match="no implementation found for 'torch.nn.functional.relu'.* nor in mode"):
        plain = torch.ones(1)
        with Refuses():
            torch.nn.functional.relu(plain)


def test_what_handlers_return_for_python_itself_is_checked():
    class Odd(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return "odd"

    x = torch.ones(1).as_subclass(Odd)
    for call in (len, bool, int, float):
        with pytest.raises(TypeError):
            call(x)
