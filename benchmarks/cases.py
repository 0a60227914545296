"""What is timed. Each case takes the module (`ptr` or `torch`) and returns a function to call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Case = Callable[[Any], Callable[[], object]]

CASES: dict[str, Case] = {}


def case(name: str) -> Callable[[Case], Case]:
    def register(build: Case) -> Case:
        CASES[name] = build
        return build

    return register


def _on_pair(name: str, f: Callable[[Any, Any, Any], object], *shape: int) -> None:
    @case(name)
    def build(module: Any) -> Callable[[], object]:
        a, b = module.rand(*shape), module.rand(*shape)
        return lambda: f(module, a, b)


_on_pair("call/add", lambda m, a, b: a + b, 4, 4)
_on_pair("call/add_out", lambda m, a, b: m.add(a, b, out=a), 4, 4)
_on_pair("call/sum", lambda m, a, b: a.sum(), 4, 4)
_on_pair("call/view", lambda m, a, b: a.view(2, 8), 4, 4)
_on_pair("call/matmul", lambda m, a, b: a @ b, 4, 4)
_on_pair("call/index", lambda m, a, b: a[1], 4, 4)
_on_pair("pointwise/add_1m", lambda m, a, b: a + b, 1_000_000)
_on_pair("pointwise/exp_1m", lambda m, a, b: a.exp(), 1_000_000)
_on_pair("pointwise/tanh_1m", lambda m, a, b: a.tanh(), 1_000_000)
_on_pair("pointwise/add_transposed_1k", lambda m, a, b: a + b.t(), 1000, 1000)
_on_pair("reduce/sum_1m", lambda m, a, b: a.sum(), 1_000_000)
_on_pair("reduce/sum_columns_1k", lambda m, a, b: a.sum(dim=0), 1000, 1000)
_on_pair("gemm/512", lambda m, a, b: a @ b, 512, 512)


@case("autograd/backward_chain20")
def _chain(module: Any) -> Callable[[], object]:
    x = module.rand(4, 4, requires_grad=True)

    def run() -> object:
        x.grad = None
        y = x
        for _ in range(20):
            y = y * 1.01 + 0.1
        y.sum().backward()
        return x.grad

    return run
