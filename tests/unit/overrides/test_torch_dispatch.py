"""``__torch_dispatch__``: wrappers, modes, and the calls that they see."""

import copy
import pickle

import numpy as np
import ptr as torch
import pytest
from ptr.utils._python_dispatch import (
    TorchDispatchMode,
    _disable_current_modes,
    _get_current_dispatch_mode,
    is_in_torch_dispatch_mode,
    is_traceable_wrapper_subclass,
    return_and_correct_aliasing,
    transform_subclass,
)

aten = torch.ops.aten


class Log(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.calls = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.calls.append((func, args, kwargs))
        return func(*args, **(kwargs or {}))


class Wrapper(torch.Tensor):
    """Holds a tensor and logs what is done with it."""

    log = []

    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(
            cls,
            inner.size(),
            strides=inner.stride(),
            dtype=inner.dtype,
            device=inner.device,
            requires_grad=inner.requires_grad,
        )

    def __init__(self, inner):
        self.inner = inner

    __torch_function__ = torch._C._disabled_torch_function_impl

    def __tensor_flatten__(self):
        return ["inner"], None

    @staticmethod
    def __tensor_unflatten__(inner, context, size, stride):
        return Wrapper(inner["inner"])

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        cls.log.append(func)

        def unwrap(value):
            if isinstance(value, Wrapper):
                return value.inner
            return [unwrap(v) for v in value] if isinstance(value, list) else value

        out = func(*map(unwrap, args), **{k: unwrap(v) for k, v in (kwargs or {}).items()})
        wrapped = Wrapper(out) if isinstance(out, torch.Tensor) else out
        return return_and_correct_aliasing(func, args, kwargs, wrapped)


_ONE = torch.ones(1)


@pytest.fixture(autouse=True)
def _fresh_log():
    Wrapper.log.clear()


def test_a_mode_sees_operators_as_they_are_called():
    x = torch.ones(2)
    with Log() as mode:
        assert is_in_torch_dispatch_mode() and _get_current_dispatch_mode() is mode
        y = x + 1
    assert y.tolist() == [2.0, 2.0]
    func, args, kwargs = mode.calls[-1]
    assert func is aten.add.Tensor
    assert args[0] is x and len(args) == 2 and kwargs == {}
    assert not is_in_torch_dispatch_mode()


def test_defaults_are_left_out_and_others_kept():
    x = torch.ones(2, 3)
    with Log() as mode:
        x.sum(1)
        x.sum(1, True)
        torch.add(x, x, alpha=2)
        torch.cat([x, x])
    calls = [(func, args[1:], kwargs) for func, args, kwargs in mode.calls]
    assert calls[0] == (aten.sum.dim_IntList, ([1],), {})
    assert calls[1] == (aten.sum.dim_IntList, ([1], True), {})
    assert calls[2][2] == {"alpha": 2}
    assert isinstance(mode.calls[3][1][0], list)


def test_a_mode_sees_factories():
    with Log() as mode:
        torch.zeros(2)
    assert any("zeros" in str(func) or "empty" in str(func) for func, _, _ in mode.calls)


def test_nested_modes_and_switching_off():
    x = torch.ones(1)
    with Log() as outer:
        with Log() as inner:
            x + x
            with _disable_current_modes():
                x + x
        x * x
    assert [f for f, _, _ in inner.calls] == [aten.add.Tensor]
    assert [f for f, _, _ in outer.calls] == [aten.add.Tensor, aten.mul.Tensor]


def test_a_mode_is_below_autograd():
    x = torch.ones(2, requires_grad=True)
    with Log() as mode:
        y = (x * 2).sum()
        y.backward()
    assert x.grad.tolist() == [2.0, 2.0]
    assert aten.mul.Tensor in [f for f, _, _ in mode.calls]
    assert y.grad_fn is not None


def test_results_are_checked():
    class Bad(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return "text"

    with pytest.raises(TypeError, match="Unable to cast the result 0 of aten::add"):
        with Bad():
            _ONE + _ONE


def test_exceptions_come_through():
    class MyError(Exception):
        pass

    class Bad(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            raise MyError

    with pytest.raises(MyError):
        with Bad():
            _ONE + _ONE
    assert (_ONE + _ONE).item() == 2.0


def test_wrappers():
    x = Wrapper(torch.tensor([1.0, 2.0]))
    assert is_traceable_wrapper_subclass(x)
    y = x + 1
    assert type(y) is Wrapper and y.inner.tolist() == [2.0, 3.0]
    assert Wrapper.log == [aten.add.Tensor]
    assert y.shape == (2,) and y.dtype is torch.float32
    z = torch.cat([x, y])
    assert z.inner.tolist() == [1.0, 2.0, 2.0, 3.0]
    doubled = transform_subclass(x, lambda name, t: t * 2)
    assert doubled.inner.tolist() == [2.0, 4.0]


def test_in_place_returns_the_same_wrapper():
    x = Wrapper(torch.tensor([1.0]))
    y = x.add_(1)
    assert y is x and x.inner.tolist() == [2.0]


def test_wrappers_differentiate():
    x = Wrapper(torch.tensor([1.0, 2.0])).requires_grad_()
    y = (x * x).sum()
    y.backward()
    assert type(x.grad) is Wrapper and x.grad.inner.tolist() == [2.0, 4.0]


def test_not_implemented_by_all():
    class No(torch.Tensor):
        @staticmethod
        def __new__(cls):
            return torch.Tensor._make_wrapper_subclass(cls, (1,))

        __torch_function__ = torch._C._disabled_torch_function_impl

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return NotImplemented

    with pytest.raises(TypeError, match="Multiple dispatch failed for 'aten.add.Tensor'"):
        No() + 1


def test_subclasses_are_asked_before_their_bases():
    asked = []

    class Base(Wrapper):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            asked.append(cls)
            return NotImplemented

    class Derived(Base):
        pass

    with pytest.raises(TypeError):
        torch.add(Base(torch.ones(1)), Derived(torch.ones(1)))
    assert asked == [Derived, Base]


SCALARS = [
    "v.item()",
    "bool(v)",
    "float(v)",
    "int(v)",
    "complex(v)",
    "[1, 2][i]",
    "i.__index__()",
    "torch.is_nonzero(v)",
    "x[i]",
    "x[i:]",
    "format(v)",
    "1.0 in x",
    "torch.ones(i)",
    "torch.add(x, 1, alpha=i)",
]


@pytest.mark.parametrize("code", SCALARS)
def test_modes_see_values_leave_the_graph(code):
    scope = {"torch": torch, "x": torch.arange(3.0), "i": torch.tensor(1), "v": torch.tensor(1.5)}
    with Log() as mode:
        exec(code, scope)
    assert [str(func) for func, _, _ in mode.calls].count("aten._local_scalar_dense.default") == 1


@pytest.mark.parametrize("code", ["x.data", "x.detach()", "x.numpy()", "x.__array__()", "x.numpy(force=True)"])
def test_modes_see_memory_leave_the_graph(code):
    x = torch.arange(3.0)
    with Log() as mode:
        exec(code, {"x": x})
    assert [str(func) for func, _, _ in mode.calls] == ["aten.detach.default"]


def test_values_that_become_part_of_new_tensors_do_not_leave():
    v = torch.tensor(1.5)
    with Log() as mode:
        assert torch.tensor([v, v]).tolist() == [1.5, 1.5]
    assert "aten._local_scalar_dense.default" not in [str(func) for func, _, _ in mode.calls]


def test_wrappers_are_copied_and_pickled_without_memory():
    wrapper = Wrapper(torch.ones(2))
    copied = copy.deepcopy(wrapper)
    assert type(copied) is Wrapper and copied.inner is not wrapper.inner and copied.inner.tolist() == [1.0, 1.0]
    for again in (pickle.loads(pickle.dumps(wrapper)), copy.copy(wrapper)):
        assert type(again) is Wrapper and again.inner.tolist() == [1.0, 1.0] and again.shape == (2,)
    parameter = torch.nn.Linear(1, 1)
    parameter.weight.tag = wrapper
    assert copy.deepcopy(wrapper.requires_grad_()).requires_grad


class Bare(torch.Tensor):
    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return NotImplemented


def test_arguments_of_make_wrapper_subclass_are_checked():
    make = torch.Tensor._make_wrapper_subclass
    made = make(Bare, (2,), layout=torch.strided, dispatch_sizes_strides_policy=None, pin_memory=True)
    assert made.layout is torch.strided
    assert make(Bare, (2,), (1,), 0, None, torch.float64, torch.strided, torch.device("cpu"), False, True).requires_grad
    with pytest.raises(TypeError, match="unexpected keyword argument 'foo'"):
        make(Bare, (2,), foo=1)
    with pytest.raises(TypeError, match="multiple values for argument 'size'"):
        make(Bare, (2,), size=(2,))
    with pytest.raises(TypeError, match='missing 2 required positional argument: "cls", "size"'):
        make()
    with pytest.raises(TypeError, match="takes from 2 to 15 positional arguments but 16"):
        make(Bare, (2,), *[None] * 14)
    with pytest.raises(ValueError, match="Unknown sizes_strides_policy: x"):
        make(Bare, (2,), dispatch_sizes_strides_policy="x")
    for argument in (
        {"dispatch_sizes_strides_policy": "sizes"},
        {"dispatch_device": True},
        {"dispatch_layout": True},
        {"storage_size": 3},
        {"layout": torch.sparse_coo},
    ):
        with pytest.raises(NotImplementedError):
            make(Bare, (2,), **argument)
    with pytest.raises(TypeError, match="must define __torch_dispatch__"):
        make(torch.Tensor, (2,))


def test_arguments_of_make_subclass_are_checked():
    make, x = torch.Tensor._make_subclass, torch.ones(2)
    assert make(torch.Tensor, x, require_grad=True).requires_grad
    assert not make(torch.Tensor, data=x, device_for_backend_keys=None).requires_grad
    with pytest.raises(TypeError, match="unexpected keyword argument 'foo'"):
        make(torch.Tensor, x, foo=1)
    with pytest.raises(TypeError, match="takes from 2 to 3 positional arguments but 4"):
        make(torch.Tensor, x, False, None)
    with pytest.raises(TypeError, match='missing 1 required positional arguments: "data"'):
        make(torch.Tensor)
    with pytest.raises(TypeError, match="must be Tensor, not int"):
        make(torch.Tensor, 1)
    with pytest.raises(TypeError, match="does not inherit from Tensor"):
        make(int, x)
    with pytest.raises(NotImplementedError):
        make(torch.Tensor, x, dispatch_device=True)


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("torch.tensor([1.0, 2.0])", ["lift_fresh"]),
        ("torch.tensor(1)", ["lift_fresh"]),
        ("torch.tensor([v, v])", ["lift_fresh"]),
        ("torch.tensor(v.detach())", ["detach", "detach", "_to_copy"]),
        ("torch.tensor(n)", ["lift_fresh", "_to_copy"]),
        ("torch.as_tensor([1.0])", ["lift_fresh"]),
        ("torch.as_tensor(n)", ["lift_fresh"]),
        ("torch.as_tensor(v)", []),
        ("torch.from_numpy(n)", ["lift_fresh"]),
        ("v.new_tensor([1.0])", ["lift_fresh"]),
        ("torch.Tensor([1.0, 2.0])", ["lift_fresh"]),
        ("x[[0]]", ["lift_fresh", "index"]),
    ],
)
@pytest.mark.filterwarnings("ignore:To copy construct")
def test_modes_see_tensors_that_are_made_of_data(code, names):
    scope = {"torch": torch, "n": np.ones(2), "v": torch.tensor(1.5), "x": torch.arange(3.0)}
    with Log() as mode:
        exec(code, scope)
    assert [str(func).split(".")[1] for func, _, _ in mode.calls] == names


def test_a_mode_may_put_another_tensor_in_place_of_data():
    class Zeros(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return torch.zeros_like(args[0]) if func is aten.lift_fresh.default else func(*args, **(kwargs or {}))

    with Zeros():
        x = torch.tensor([1.0, 2.0], requires_grad=True)
    assert x.tolist() == [0.0, 0.0] and x.requires_grad


def test_a_class_with_only_torch_dispatch_gives_what_that_returns():
    class Plain(torch.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return torch.ones(3)

    class Both(Plain):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return "function"

    w = torch.Tensor._make_wrapper_subclass(Plain, (3,))
    assert type(w + 1) is torch.Tensor and type(w.sum()) is torch.Tensor
    assert Plain.__torch_function__ is torch._C._disabled_torch_function_impl
    assert torch.Tensor._make_wrapper_subclass(Both, (3,)) + 1 == "function"
