"""The backward graph: nodes, edges, and hooks that concern more than one tensor."""

from __future__ import annotations

import abc
import contextlib
import threading
from collections import defaultdict, namedtuple

from ptr import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

__all__ = [
    "GradientEdge",
    "Node",
    "disable_saved_tensors_hooks",
    "get_gradient_edge",
    "increment_version",
    "register_multi_grad_hook",
    "save_on_cpu",
    "saved_tensors_hooks",
]

_autograd = _C._autograd


class Node(abc.ABC):
    """A step of the backward graph: what ``tensor.grad_fn`` is an instance of."""

    @abc.abstractmethod
    def name(self) -> str:
        """Return the name of the node, ``"MulBackward0"``."""
        raise NotImplementedError

    @property
    @abc.abstractmethod
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        """The nodes that the gradients go to, each with the number of the input they are."""
        raise NotImplementedError

    @abc.abstractmethod
    def metadata(self) -> dict[str, Any]:
        """A dict for notes; anomaly mode keeps the traceback of the forward there."""
        raise NotImplementedError

    @property
    @abc.abstractmethod
    def _input_metadata(self) -> list[Any]:
        raise NotImplementedError

    @abc.abstractmethod
    def register_hook(self, fn: Callable[..., Any]) -> Any:
        """Register ``fn(grad_inputs, grad_outputs) -> tuple or None``, called after the node; return its handle."""
        raise NotImplementedError

    @abc.abstractmethod
    def register_prehook(self, fn: Callable[..., Any]) -> Any:
        """Register ``fn(grad_outputs) -> tuple or None``, called before the node; return a handle to remove it."""
        raise NotImplementedError


Node.register(_C._NodeBase)


# Made without `typing`, which would be a tenth of the time that importing takes.
class GradientEdge(namedtuple("GradientEdge", ["node", "output_nr", "ownership_token"], defaults=[None])):
    """Where the gradient with respect to a tensor arrives. Can stand for the tensor in ``backward`` and ``grad``."""

    __slots__ = ()


def get_gradient_edge(tensor: Any) -> GradientEdge:
    """Return the edge of a tensor that requires gradients.

    Args:
        tensor: the tensor. The edge keeps its graph, and not the tensor.
    """
    if not tensor.requires_grad:
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does not require gradients")
    return GradientEdge(*_autograd._get_gradient_edge(tensor))


def increment_version(tensor: Any) -> None:
    """Count a modification in place that the engine did not see, so that backward notices it.

    Args:
        tensor: a tensor, or an iterable of tensors.
    """
    for item in (tensor,) if isinstance(tensor, _C.Tensor) else tensor:
        _autograd._increment_version(item)


class saved_tensors_hooks:
    """Context that decides how tensors are kept for backward.

    Args:
        pack_hook: called with each tensor that is saved; what it returns is kept instead.
        unpack_hook: called with that; must return a tensor of the same value.

    Example::

        >>> def pack(x):
        ...     return x.numpy()
        >>> def unpack(x):
        ...     return torch.from_numpy(x)
        >>> with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        ...     y = a * b
    """

    def __init__(self, pack_hook: Callable[[Any], Any], unpack_hook: Callable[[Any], Any]) -> None:
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def __enter__(self) -> None:
        _autograd._push_saved_tensors_default_hooks(self.pack_hook, self.unpack_hook)

    def __exit__(self, *args: object) -> None:
        _autograd._pop_saved_tensors_default_hooks()


class save_on_cpu(saved_tensors_hooks):
    """Context that keeps what is saved for backward on the host, and brings it back for backward.

    Args:
        pin_memory: whether to use page-locked memory, which makes the copies to an accelerator asynchronous.
        device_type: the accelerator that the memory is pinned for.
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        def pack(tensor: Any) -> tuple[Any, Any]:
            if not pin_memory:
                return (tensor.device, tensor.cpu())
            packed = _C._VariableFunctions.empty_like(
                tensor, device="cpu", pin_memory=tensor.device.type == device_type
            )
            packed.copy_(tensor)
            return (tensor.device, packed)

        def unpack(packed: tuple[Any, Any]) -> Any:
            device, tensor = packed
            return tensor.to(device, non_blocking=pin_memory)

        super().__init__(pack, unpack)


@contextlib.contextmanager
def disable_saved_tensors_hooks(error_message: str) -> Iterator[None]:
    """Context in which entering :class:`saved_tensors_hooks` fails.

    Args:
        error_message: what the error says.
    """
    previous = _autograd._saved_tensors_hooks_get_disabled_error_message()
    _autograd._saved_tensors_hooks_disable(error_message)
    try:
        yield
    finally:
        if previous is None:
            _autograd._saved_tensors_hooks_enable()
        else:
            _autograd._saved_tensors_hooks_disable(previous)


class _MultiHandle:
    """Removes several hooks at once."""

    def __init__(self, handles: Sequence[Any]) -> None:
        self.handles = tuple(handles)

    def remove(self) -> None:
        """Remove the hooks."""
        for handle in self.handles:
            handle.remove()

    def __enter__(self) -> _MultiHandle:
        return self

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        self.remove()


def register_multi_grad_hook(tensors: Sequence[Any], fn: Callable[..., Any], *, mode: str = "all") -> Any:
    """Register a hook on the gradients of several tensors.

    Args:
        tensors: tensors that require gradients.
        fn: with ``mode="all"`` called as ``fn(grads)`` when the gradients of all tensors that take part in the
            backward pass are there (``None`` for the others); with ``mode="any"`` as ``fn(grad)`` for the first.
        mode: ``"all"`` or ``"any"``.

    Returns:
        a handle whose ``remove()`` takes the hook out again.
    """
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    return _register_all(tensors, fn) if mode == "all" else _register_any(tensors, fn)


def _register_all(tensors: Sequence[Any], fn: Callable[..., Any]) -> _MultiHandle:
    nodes = [_autograd._get_gradient_edge(tensor)[0] for tensor in tensors]
    lock = threading.Lock()
    # By backward pass, since several may run at once and a failed one leaves its entry behind.
    counts: dict[int, int] = defaultdict(int)
    expected: dict[int, int] = {}
    buffers: dict[int, list[Any]] = {}

    def make_hook(index: int) -> Callable[[Any], None]:
        def hook(grad: Any) -> None:
            task = _C._current_graph_task_id()
            if task == -1:
                raise RuntimeError("expected this hook to be called inside a backward call")
            with lock:
                counts[task] += 1
                if task not in expected:
                    expected[task] = sum(map(_C._will_engine_execute_node, nodes))
                    buffers[task] = [None] * len(nodes)
                buffer = buffers[task]
                buffer[index] = grad
                is_last = counts[task] == expected[task]
                if is_last:
                    del counts[task], expected[task], buffers[task]
            if is_last:
                fn(buffer)

        return hook

    return _MultiHandle([tensor.register_hook(make_hook(i)) for i, tensor in enumerate(tensors)])


def _register_any(tensors: Sequence[Any], fn: Callable[..., Any]) -> _MultiHandle:
    lock = threading.Lock()
    # The passes in which the hook has been called. An entry goes when its pass is complete.
    called: set[int] = set()

    def hook(grad: Any) -> None:
        task = _C._current_graph_task_id()
        if task == -1:
            raise RuntimeError("expected this hook to be called inside a backward call")
        with lock:
            if task in called:
                return
            called.add(task)
        _autograd._queue_callback(lambda: called.discard(task))
        fn(grad)

    return _MultiHandle([tensor.register_hook(hook) for tensor in tensors])
