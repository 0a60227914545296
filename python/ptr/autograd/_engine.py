"""The engine as an object, and whether it may use threads of its own."""

from __future__ import annotations

from ptr import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["ImperativeEngine", "set_multithreading_enabled"]


class ImperativeEngine:
    """Runs backward passes; there is one, ``Variable._execution_engine``."""

    __slots__ = ()

    def run_backward(
        self,
        tensors: Any,
        grad_tensors: Any,
        keep_graph: bool,
        create_graph: bool,
        inputs: Any = (),
        allow_unreachable: bool = False,
        accumulate_grad: bool = False,
    ) -> tuple[Any, ...]:
        """Run a backward pass for which all gradients are given; otherwise as :func:`torch.autograd.backward`."""
        return _C._engine_run_backward(
            tensors, grad_tensors, keep_graph, create_graph, inputs, allow_unreachable, accumulate_grad
        )

    def queue_callback(self, callback: Callable[[], None]) -> None:
        """Call ``callback`` when the backward pass that this thread is running is complete."""
        _C._autograd._queue_callback(callback)

    def is_checkpoint_valid(self) -> bool:
        """Return whether reentrant checkpointing works in the running backward pass."""
        return _C._autograd._is_checkpoint_valid()


class set_multithreading_enabled:
    """Switch the engine's own threads on or off for this thread: at once or, as a context, for a block.

    Args:
        mode: whether the engine may use threads of its own.
    """

    def __init__(self, mode: bool) -> None:
        self.prev = _C._is_multithreading_enabled()
        self.mode = mode
        _C._set_multithreading_enabled(mode)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *args: object) -> None:
        _C._set_multithreading_enabled(self.prev)

    def clone(self) -> set_multithreading_enabled:
        """Return a fresh context of the same mode."""
        return type(self)(self.mode)
