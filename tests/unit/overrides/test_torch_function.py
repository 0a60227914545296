"""``__torch_function__``: subclasses, modes, and functions written in Python."""

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
