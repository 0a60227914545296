"""Functions written in Python that modes and overriding arguments take over."""

import copy
import inspect
import pickle
from typing import Any

import ptr as torch
from ptr.nn import functional as F
from ptr.overrides import TorchFunctionMode


class Logging(torch.Tensor):
    calls: list[tuple[Any, int, dict[str, Any]]] = []

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        cls.calls.append((func, len(args), dict(kwargs or {})))
        return super().__torch_function__(func, types, args, kwargs or {})


def call_of(function: Any, *args: Any, **kwargs: Any) -> tuple[int, dict[str, Any]]:
    Logging.calls = []
    function(*args, **kwargs)
    called, positional, named = Logging.calls[0]
    assert called is function
    return positional, {name: value for name, value in named.items() if not isinstance(value, torch.Tensor)}


def test_a_handler_is_given_the_call_in_pytorchs_form() -> None:
    x = torch.tensor([-1.0, 2.0]).as_subclass(Logging)
    assert call_of(F.relu, x) == call_of(F.relu, input=x) == call_of(F.relu, x, False) == (1, {"inplace": False})
    assert call_of(F.dropout, x, 0.25)[1] == {"p": 0.25, "training": True, "inplace": False}
    assert call_of(torch.split, x, 1) == (2, {"dim": 0})
    assert call_of(torch.norm, x) == (1, {"p": "fro", "dim": None, "keepdim": False, "out": None, "dtype": None})
    named = call_of(torch.nn.init.uniform_, x, 0.0, b=2.0)
    assert named == (0, {"a": 0.0, "b": 2.0, "generator": None}) and "tensor" in Logging.calls[0][2]
    weight = torch.ones(2).as_subclass(Logging)
    assert call_of(F.nll_loss, torch.zeros(1, 2), torch.tensor([1]), weight=weight)[0] == 2


def test_a_mode_sees_calls_of_plain_tensors() -> None:
    seen = []

    class Mode(TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(func)
            return func(*args, **(kwargs or {}))

    x = torch.ones(2)
    with Mode():
        F.dropout(x, training=False)
    assert seen[0] is F.dropout


def test_what_is_no_tensor_may_take_over() -> None:
    class Thing:
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return func, types

    assert F.relu(Thing()) == (F.relu, (Thing,))


def test_it_looks_like_the_function() -> None:
    assert F.relu.__name__ == F.relu.__qualname__ == "relu"
    assert F.relu.__module__ == "ptr.nn.functional"
    assert "max(0, x)" in F.relu.__doc__
    assert list(inspect.signature(F.relu).parameters) == ["input", "inplace"]
    assert pickle.loads(pickle.dumps(F.relu)) is F.relu
    assert copy.deepcopy(F.relu) is F.relu
    assert inspect.isfunction(inspect.unwrap(F.relu))
    F.relu.mark = 3
    assert F.relu.mark == 3
    del F.relu.mark
    assert not hasattr(F.relu, "mark")


def test_it_binds_as_a_method() -> None:
    Logging.calls = []
    assert 2.0 in torch.tensor([2.0]).as_subclass(Logging)
    assert Logging.calls[0][0] is torch.Tensor.__contains__


def test_errors_are_the_functions_own() -> None:
    for call in (lambda: F.relu(), lambda: F.relu(torch.ones(1), nonsense=2)):
        try:
            call()
        except TypeError as error:
            assert "relu()" in str(error)
        else:
            raise AssertionError("wrong arguments were accepted")
