"""nn.Module: registration, calls with hooks, state dicts, walks, conversion, printing."""

import copy
import inspect
import pickle
from collections import OrderedDict

import ptr as torch
import pytest
from ptr import nn


def values(x):
    return x.tolist() if isinstance(x, torch.Tensor) else x


class Scale(nn.Module):
    """Multiplies by a parameter; small enough to predict every value."""

    def __init__(self, factor=2.0):
        super().__init__()
        self.factor = nn.Parameter(torch.tensor([factor]))

    def forward(self, x, *, plus=0.0):
        return x * self.factor + plus


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda m: m.register_parameter("a.b", nn.Parameter(torch.ones(1))), KeyError, "name can.*t contain"),
        (lambda m: m.register_parameter("", None), KeyError, "name can.*t be empty"),
        (lambda m: m.register_parameter("q", torch.ones(1)), TypeError, "torch.nn.Parameter or None required"),
        (lambda m: m.register_parameter("forward", None), KeyError, "already exists"),
        (lambda m: m.register_parameter("q", nn.Parameter(torch.ones(1)) * 2), TypeError, "cannot assign"),
        (lambda m: m.register_buffer("q", 3), TypeError, "torch Tensor or None required"),
        (lambda m: m.register_buffer("factor", None), KeyError, "already exists"),
        (lambda m: m.add_module("q", 3), TypeError, "is not a Module subclass"),
        (lambda m: m.add_module(3, nn.Identity()), TypeError, "should be a string"),
        (lambda m: setattr(m, "factor", torch.ones(1)), TypeError, "cannot assign 'torch.FloatTensor' as parameter"),
        (lambda m: m.missing, AttributeError, "'Scale' object has no attribute 'missing'"),
        (lambda m: m.train(1), ValueError, "boolean"),
        (lambda m: m.to(torch.int32), TypeError, "only accepts floating point or complex"),
        (lambda m: m.get_submodule("a.b"), AttributeError, "has no attribute `a`"),
        (lambda m: m.get_parameter("training"), AttributeError, "is not an nn.Parameter"),
        (lambda m: m.get_buffer("factor"), AttributeError, "is not a buffer"),
        (lambda m: m.set_submodule("", m), ValueError, "without a target name"),
        (lambda m: nn.Module(1), TypeError, "takes 1 positional argument but 2 were given"),
        (lambda m: nn.Module(a=1), TypeError, "unexpected keyword argument 'a'"),
        (lambda m: nn.Module()(1), NotImplementedError, 'missing the required "forward" function'),
    ],
)
def test_misuse(call, error, match):
    with pytest.raises(error, match=match):
        call(Scale())


@pytest.mark.parametrize("value", [nn.Parameter, nn.Identity, nn.Buffer], ids=lambda v: v.__name__)
def test_assignment_before_init(value):
    class Early(nn.Module):
        def __init__(self):
            self.x = value()

    with pytest.raises(AttributeError, match=r"before Module.__init__\(\) call"):
        Early()


def test_attributes_change_their_kind():
    m = nn.Module()
    m.x = 3
    m.x = nn.Parameter(torch.ones(1))
    assert "x" not in m.__dict__ and list(m._parameters) == ["x"]
    m.x = None
    assert m.x is None and list(m._parameters) == ["x"] and not list(m.parameters())
    del m.x
    m.x = nn.Identity()
    assert list(m._modules) == ["x"]
    del m.x
    m.x = torch.ones(1)
    assert "x" in m.__dict__


def test_buffers():
    m = nn.Module()
    m.register_buffer("kept", torch.ones(2))
    m.register_buffer("left_out", torch.ones(1), persistent=False)
    m.assigned = nn.Buffer(torch.ones(1), persistent=False)
    assert list(m.state_dict()) == ["kept"]
    assert [name for name, _ in m.named_buffers()] == ["kept", "left_out", "assigned"]
    m.kept = torch.zeros(2)
    assert values(m.state_dict()["kept"]) == [0.0, 0.0]
    m.left_out = torch.zeros(1)
    assert list(m.state_dict()) == ["kept"]
    with pytest.raises(TypeError, match="as buffer 'kept'"):
        m.kept = 3


def test_forward_hooks_see_and_replace():
    m, log = Scale(), []
    x = torch.ones(1)
    pre = m.register_forward_pre_hook(lambda mod, args: (args[0] + 1,))
    post = m.register_forward_hook(lambda mod, args, out: log.append(values(out)) or out * 10)
    assert values(m(x)) == [40.0] and log == [[4.0]]
    pre.remove()
    assert values(m(x)) == [20.0]
    post.remove()
    assert values(m(x)) == [2.0] and len(log) == 2


def test_forward_hooks_with_kwargs_and_order():
    m, log = Scale(), []
    m.register_forward_pre_hook(lambda mod, args, kw: (args, {"plus": kw["plus"] + 1}), with_kwargs=True)
    m.register_forward_pre_hook(lambda mod, args: log.append("first"), prepend=True)
    m.register_forward_hook(lambda mod, args, kw, out: log.append(kw), with_kwargs=True)
    with m.register_forward_hook(lambda mod, args, out: log.append("before"), prepend=True):
        assert values(m(torch.ones(1), plus=1.0)) == [4.0]
    assert log == ["first", "before", {"plus": 2.0}]
    m.register_forward_pre_hook(lambda mod, args, kw: 3, with_kwargs=True)
    with pytest.raises(RuntimeError, match="forward pre-hook must return None or a tuple"):
        m(torch.ones(1), plus=1.0)


def test_always_called_hooks_run_after_errors():
    m, log = Scale(), []
    m.register_forward_hook(lambda mod, args, out: log.append(("always", out)), always_call=True)
    m.register_forward_hook(lambda mod, args, out: log.append("never"))
    with pytest.raises(TypeError):
        m("text" * 2, wrong=1)
    assert log == [("always", None)]


def test_full_backward_hooks():
    m, log = Scale(), []
    m.register_full_backward_pre_hook(lambda mod, go: (go[0] * 3,))
    m.register_full_backward_hook(lambda mod, gi, go: log.append((values(gi[0]), values(go[0]))) or (gi[0] * 5,))
    x = torch.ones(1, requires_grad=True)
    m(x).sum().backward()
    assert log == [([6.0], [3.0])]
    assert values(x.grad) == [30.0] and values(m.factor.grad) == [3.0]


def test_full_backward_hook_without_input_gradients():
    m, log = Scale(), []
    m.register_full_backward_hook(lambda mod, gi, go: log.append((gi, values(go[0]))))
    with pytest.warns(UserWarning, match="no inputs require gradients"):
        m(torch.ones(1)).sum().backward()
    assert log == [((None,), [1.0])] and values(m.factor.grad) == [1.0]


def test_backward_hooks_check_the_number_of_gradients():
    m = Scale()
    m.register_full_backward_hook(lambda mod, gi, go: (gi[0], gi[0]))
    with pytest.raises(RuntimeError, match="invalid number of grad_input, got 2, but expected 1"):
        m(torch.ones(1, requires_grad=True)).sum().backward()
    with pytest.raises(RuntimeError, match="Cannot use both"):
        m.register_backward_hook(print)


def test_global_hooks():
    log = []
    module = nn.modules.module
    handles = [
        module.register_module_forward_pre_hook(lambda m, args: log.append("pre")),
        module.register_module_forward_hook(lambda m, args, out: log.append("post")),
        module.register_module_parameter_registration_hook(lambda m, name, p: log.append(name)),
    ]
    m = Scale()
    m(torch.ones(1))
    for handle in handles:
        handle.remove()
    Scale()(torch.ones(1))
    assert log == ["factor", "pre", "post"]


def test_calls_without_hooks_make_no_tables(monkeypatch):
    monkeypatch.setattr(nn.Module, "_hooked", False)  # as before any global hook was registered
    m = Scale()
    m(torch.ones(1))
    assert not any(name.endswith("hooks") for name in m.__dict__)


def test_hooks_survive_copies_and_pickles():
    m = Scale()
    m.register_forward_hook(double_output)
    for twin in (copy.deepcopy(m), pickle.loads(pickle.dumps(m))):
        assert values(twin(torch.ones(1))) == [4.0]
        assert twin.factor is not m.factor
    plain = pickle.loads(pickle.dumps(Scale()))
    plain.register_forward_hook(double_output)
    assert values(plain(torch.ones(1))) == [4.0]


def double_output(module, args, output):
    return output * 2


def test_state_dict_round_trip_and_metadata():
    m = nn.Sequential(Scale(3.0), Scale(4.0))
    sd = m.state_dict()
    assert list(sd) == ["0.factor", "1.factor"] and sd._metadata == {
        "": {"version": 1},
        "0": {"version": 1},
        "1": {"version": 1},
    }
    assert not sd["0.factor"].requires_grad and m.state_dict(keep_vars=True)["0.factor"].requires_grad
    other = nn.Sequential(Scale(), Scale())
    assert repr(other.load_state_dict(sd)) == "<All keys matched successfully>"
    assert [values(p) for p in other.parameters()] == [[3.0], [4.0]]


def test_load_state_dict_reports_all_problems():
    m = nn.Sequential(Scale(), Scale())
    bad = {"0.factor": torch.ones(2), "2.factor": torch.ones(1)}
    with pytest.raises(RuntimeError) as info:
        m.load_state_dict(bad)
    text = str(info.value)
    assert 'Missing key(s) in state_dict: "1.factor"' in text
    assert 'Unexpected key(s) in state_dict: "2.factor"' in text
    assert "size mismatch for 0.factor" in text
    keys = m.load_state_dict({"2.factor": torch.ones(1)}, strict=False)
    assert keys.missing_keys == ["0.factor", "1.factor"] and keys.unexpected_keys == ["2.factor"]
    with pytest.raises(TypeError, match="Expected state_dict to be dict-like"):
        m.load_state_dict(3)


def test_load_state_dict_assign():
    m = Scale()
    given = torch.zeros(1, dtype=torch.float64)
    m.load_state_dict({"factor": given}, assign=True)
    assert isinstance(m.factor, nn.Parameter) and m.factor.dtype == torch.float64 and m.factor.requires_grad
    assert m.factor.data_ptr() == given.data_ptr()


def test_state_dict_hooks():
    m, log = nn.Sequential(Scale()), []
    m.register_state_dict_pre_hook(lambda mod, prefix, keep: log.append(("pre", prefix, keep)))
    m.register_state_dict_post_hook(lambda mod, sd, prefix, meta: sd.clear())
    m[0].register_load_state_dict_pre_hook(lambda mod, sd, prefix, *rest: sd.update({prefix + "factor": torch.ones(1)}))
    m.register_load_state_dict_post_hook(lambda mod, keys: log.append(keys.missing_keys))
    sd = m.state_dict()
    assert list(sd) == []
    m.load_state_dict(sd)
    assert log == [("pre", "", False), []] and values(m[0].factor) == [1.0]


def test_extra_state():
    class Counting(nn.Module):
        count = 0

        def get_extra_state(self):
            return {"count": self.count}

        def set_extra_state(self, state):
            self.count = state["count"]

    m = nn.Sequential(Counting())
    m[0].count = 7
    sd = m.state_dict()
    assert sd["0._extra_state"] == {"count": 7}
    other = nn.Sequential(Counting())
    other.load_state_dict(sd)
    assert other[0].count == 7
    with pytest.raises(RuntimeError, match="Missing key"):
        other.load_state_dict({})


def test_walks_give_shared_members_once():
    shared = Scale()
    m = nn.Sequential(OrderedDict(a=shared, b=nn.Sequential(shared, Scale())))
    assert [n for n, _ in m.named_parameters()] == ["a.factor", "b.1.factor"]
    assert [n for n, _ in m.named_parameters(remove_duplicate=False)] == ["a.factor", "b.0.factor", "b.1.factor"]
    assert [n for n, _ in m.named_modules()] == ["", "a", "b", "b.1"]
    assert [n for n, _ in m.named_children()] == ["a", "b"]
    assert [n for n, _ in m.named_parameters(prefix="z", recurse=False)] == []
    assert m.get_submodule("b.1") is m[1][1] and m.get_parameter("a.factor") is shared.factor
    m.set_submodule("b.1", nn.Identity())
    assert isinstance(m[1][1], nn.Identity)


def test_conversions_keep_parameters():
    m = Scale()
    m.register_buffer("count", torch.zeros(1, dtype=torch.int64))
    param = m.factor
    param.grad = torch.ones(1)
    assert m.double() is m and m.factor is param
    assert param.dtype == param.grad.dtype == torch.float64 and m.count.dtype == torch.int64
    for convert, dtype in (
        (lambda: m.half(), torch.float16),
        (lambda: m.bfloat16(), torch.bfloat16),
        (lambda: m.to(torch.float32), torch.float32),
        (lambda: m.to("cpu", torch.float64), torch.float64),
        (lambda: m.to(torch.ones(1)), torch.float32),
    ):
        convert()
        assert m.factor is param and param.dtype == dtype
    m.to("meta")
    assert m.factor.is_meta and isinstance(m.factor, nn.Parameter)
    with pytest.raises(NotImplementedError, match=r"Cannot copy out of meta tensor.*to_empty"):
        m.to("cpu")
    assert not m.to_empty(device="cpu").factor.is_meta


def test_modes_and_gradients():
    m, seen = nn.Sequential(Scale(), nn.Sequential(Scale())), []
    m.eval()
    assert not any(mod.training for mod in m.modules())
    m.requires_grad_(False)
    assert not any(p.requires_grad for p in m.parameters())
    m.requires_grad_()
    m(torch.ones(1)).backward()
    m.zero_grad(set_to_none=False)
    assert [values(p.grad) for p in m.parameters()] == [[0.0], [0.0]]
    m.zero_grad()
    assert all(p.grad is None for p in m.parameters())
    m.apply(lambda mod: seen.append(type(mod).__name__))
    assert seen == ["Scale", "Scale", "Sequential", "Sequential"]


def test_repr():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Sequential(nn.Linear(2, 3), nn.ReLU(inplace=True))

        def extra_repr(self):
            return "one\ntwo"

    assert repr(Net()) == (
        "Net(\n  one\n  two\n  (inner): Sequential(\n    (0): Linear(in_features=2, out_features=3, bias=True)\n"
        "    (1): ReLU(inplace=True)\n  )\n)"
    )
    assert {"inner", "training"} <= set(dir(Net()))


def test_parameter():
    p = nn.Parameter(torch.ones(2))
    assert repr(p) == "Parameter containing:\ntensor([1., 1.], requires_grad=True)"
    q = copy.deepcopy(p)
    assert type(q) is nn.Parameter and q is not p and q.requires_grad
    assert type(p + 1) is torch.Tensor and not isinstance(torch.ones(1), nn.Parameter)
    assert nn.Parameter().shape == (0,)
    with torch.no_grad():
        assert nn.Parameter(torch.ones(1)).requires_grad


class CallsTwice(nn.Linear):
    def _call_impl(self, x):
        return 2 * super()._call_impl(x)


class Doubling:
    def _call_impl(self, *args, **kwargs):
        return 2 * super()._call_impl(*args, **kwargs)


class Mixed(Doubling, nn.Identity):
    pass


def test_a_class_may_override_how_it_is_called():
    module = CallsTwice(2, 2)
    x = torch.ones(1, 2)
    plain = nn.functional.linear(x, module.weight, module.bias)
    assert torch.equal(module(x), 2 * plain)
    module.register_forward_hook(lambda module, args, output: output + 1)
    assert torch.equal(module(x), 2 * (plain + 1))
    assert Mixed()(torch.ones(2)).tolist() == [2.0, 2.0]


def test_an_instance_may_override_how_it_is_called():
    module = nn.Identity()
    original = module._call_impl
    module._call_impl = lambda x: original(x) + 1
    assert module(torch.ones(1)).item() == 2.0


@pytest.mark.parametrize("patched", [nn.Identity, nn.Module])
def test_a_class_may_be_patched_later(patched, monkeypatch):
    module, wrapped = nn.Identity(), nn.Sequential(nn.Identity())
    x = torch.ones(1)
    module(x)
    original = patched._call_impl
    with monkeypatch.context() as patch:
        patch.setattr(patched, "_call_impl", lambda self, *args, **kwargs: original(self, *args, **kwargs) + 1)
        assert module(x).item() == module(input=x).item() == 2.0
        assert wrapped(x).item() == (2.0 if patched is nn.Identity else 3.0)
        module.register_forward_hook(lambda module, args, output: output * 2)
        assert module(x).item() == 3.0
    assert module(x).item() == 2.0 and wrapped(x).item() == 1.0
    with monkeypatch.context() as patch:
        patch.setattr(patched, "__call__", lambda self, x: x - 1, raising=False)
        assert module(x).item() == 0.0
    assert module(x).item() == 2.0


def test_a_call_passes_arguments_on_as_they_are():
    class Args(nn.Module):
        def forward(self, *args, **kwargs):
            return args, kwargs

    assert Args()() == ((), {})
    assert Args()(*range(12), a=1, b=2) == (tuple(range(12)), {"a": 1, "b": 2})
    assert Args().__call__(1, self_=2) == nn.Module.__call__(Args(), 1, self_=2) == ((1,), {"self_": 2})
    assert str(inspect.signature(nn.Module.__call__)) == "(self, /, *args, **kwargs)"
    with pytest.raises(NotImplementedError, match="missing the required"):
        nn.Module()(1)
    with pytest.raises(TypeError, match="doesn't apply to a 'int' object"):
        nn.Module.__call__(1)


@pytest.mark.parametrize("through", [setattr, lambda module, name, value: module.__setstate__({name: value})])
def test_assigned_tables_of_hooks_run(through):
    module = nn.Identity()
    through(module, "_forward_hooks", OrderedDict({0: lambda module, args, output: output + 1}))
    assert module(torch.ones(1)).item() == 2.0
    module = nn.Identity()
    through(module, "_forward_pre_hooks", OrderedDict({0: lambda module, args: (args[0] * 3,)}))
    assert module(torch.ones(1)).item() == 3.0
