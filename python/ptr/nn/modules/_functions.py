"""Autograd functions that modules are built from."""

from __future__ import annotations

from ptr.autograd import Function

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class BackwardHookFunction(Function):
    """Identity over several tensors with one node, whose hooks see all their gradients together."""

    @staticmethod
    def forward(ctx: Any, *args: Any) -> Any:
        ctx.mark_non_differentiable(*[arg for arg in args if not arg.requires_grad])
        return args

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return grads
