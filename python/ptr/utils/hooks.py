"""Handles that remove hooks, and the machinery of full module backward hooks."""

from __future__ import annotations

import warnings
import weakref
from collections import OrderedDict

import ptr as torch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

__all__ = ["BackwardHook", "RemovableHandle", "unserializable_hook", "warn_if_has_hooks"]


class RemovableHandle:
    """Handle returned by every ``register_*`` function; :meth:`remove` takes the hook out again.

    The handle holds its tables weakly: it keeps neither a module nor a tensor alive. It is also a context manager that
    removes the hook on exit.

    Args:
        hooks_dict: the table that the hook is stored in under ``handle.id``.
        extra_dict: further tables (one, or a list of them) that may hold an entry for the same id.

    Example::

        >>> handle = module.register_forward_hook(hook)
        >>> handle.remove()
    """

    id: int
    next_id: int = 0

    def __init__(self, hooks_dict: Any, *, extra_dict: Any = None) -> None:
        self.hooks_dict_ref = weakref.ref(hooks_dict)
        self.id = RemovableHandle.next_id
        RemovableHandle.next_id += 1
        extras = [] if extra_dict is None else [extra_dict] if isinstance(extra_dict, dict) else list(extra_dict)
        self.extra_dict_ref: tuple[Any, ...] = tuple(weakref.ref(table) for table in extras)

    def remove(self) -> None:
        """Remove the hook; does nothing when it is gone already."""
        for ref in (self.hooks_dict_ref, *self.extra_dict_ref):
            table = ref()
            if table is not None:
                table.pop(self.id, None)

    def __getstate__(self) -> tuple[Any, ...]:
        return (self.hooks_dict_ref(), self.id, tuple(ref() for ref in self.extra_dict_ref))

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        table, self.id, *rest = state
        # A table that died before pickling leaves a handle whose remove() has nothing to do.
        self.hooks_dict_ref = weakref.ref(OrderedDict() if table is None else table)
        extras = rest[0] if rest and rest[0] is not None else ()
        self.extra_dict_ref = tuple(weakref.ref(extra) for extra in extras if extra is not None)
        RemovableHandle.next_id = max(RemovableHandle.next_id, self.id + 1)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        self.remove()


def register_hook(table: Any, hook: Any, prepend: bool = False, extra_dict: Any = None) -> RemovableHandle:
    """Put ``hook`` into a table of hooks, behind or before those that are there; return the handle that removes it."""
    handle = RemovableHandle(table, extra_dict=extra_dict)
    table[handle.id] = hook
    if prepend:
        table.move_to_end(handle.id, last=False)
    return handle


def unserializable_hook(f: Any) -> Any:
    """Mark ``f`` as a hook that is knowingly lost by serialization, which silences :func:`warn_if_has_hooks`."""
    f.__torch_unserializable__ = True
    return f


def warn_if_has_hooks(tensor: torch.Tensor) -> None:
    """Warn for each backward hook of ``tensor`` that a pickle of it would lose."""
    for hook in (tensor._backward_hooks or {}).values():
        if not hasattr(hook, "__torch_unserializable__"):
            warnings.warn(
                f"backward hook {hook!r} on tensor will not be serialized. If this is expected, decorate the function "
                "with @torch.utils.hooks.unserializable_hook to suppress this warning",
                stacklevel=2,
            )


class BackwardHook:
    """Runs the full backward hooks of one module call.

    An identity node is put over the module's inputs and another over its outputs. The output node sees the gradients
    that enter the module (pre-hooks run there), the input node those that leave it (hooks run there). Positions that
    hold no tensor, or a tensor of no graph, read as ``None`` in what the user's hooks get.

    Args:
        module: the module, first argument of each hook.
        user_hooks: functions ``hook(module, grad_input, grad_output)``.
        user_pre_hooks: functions ``hook(module, grad_output)``.
    """

    def __init__(
        self, module: Any, user_hooks: Sequence[Callable[..., Any]], user_pre_hooks: Sequence[Callable[..., Any]]
    ):
        self.module = module
        self.user_hooks = user_hooks
        self.user_pre_hooks = user_pre_hooks
        self.grad_outputs: tuple[Any, ...] | None = None
        self.n_inputs = self.n_outputs = -1
        self.input_tensors_index: list[int] | None = None
        self.output_tensors_index: list[int] | None = None

    def setup_input_hook(self, args: Any) -> Any:
        """Put the identity node over the call's arguments and return them."""
        args, self.input_tensors_index = self._wrap(args, self._on_input_grads)
        self.n_inputs = len(args)
        return args

    def setup_output_hook(self, result: Any) -> Any:
        """Put the identity node over the call's result (a tensor or a tuple) and return it."""
        outputs = result if isinstance(result, tuple) else (result,)
        outputs, self.output_tensors_index = self._wrap(outputs, self._on_output_grads)
        self.n_outputs = len(outputs)
        return outputs if isinstance(result, tuple) else outputs[0]

    def _wrap(self, values: Any, node_hook: Callable[..., Any]) -> tuple[Any, list[int] | None]:
        index = [i for i, value in enumerate(values) if isinstance(value, torch.Tensor)]
        if not (torch.is_grad_enabled() and any(values[i].requires_grad for i in index)):
            return values, None
        from ptr.nn.modules._functions import BackwardHookFunction

        wrapped = BackwardHookFunction.apply(*[values[i] for i in index])
        node = next((t.grad_fn for t in wrapped if t.grad_fn is not None), None)
        if node is None:
            raise RuntimeError(
                "Error while setting up backward hooks: no output of the identity node is differentiable"
            )
        node.register_hook(node_hook)
        values_list = list(values)
        for i, tensor in zip(index, wrapped, strict=True):
            values_list[i] = tensor
        # A named tuple takes its fields one by one, a plain tuple takes one iterable.
        return (tuple(values_list) if type(values) is tuple else type(values)(*values_list)), index

    @staticmethod
    def _spread(index: list[int], grads: Sequence[Any], size: int) -> tuple[Any, ...]:
        full: list[Any] = [None] * size
        for i, grad in zip(index, grads, strict=True):
            full[i] = grad
        return tuple(full)

    def _on_output_grads(self, _: Any, grad_output: Any) -> Any:
        index = self.output_tensors_index
        assert index is not None
        grads = self._spread(index, grad_output, self.n_outputs)
        for hook in self.user_pre_hooks:
            replaced = hook(self.module, grads)
            if replaced is None:
                continue
            if len(replaced) != len(grads):
                raise RuntimeError(
                    "Backward pre hook returned an invalid number of grad_output, "
                    f"got {len(replaced)}, but expected {len(grads)}"
                )
            grads = replaced
        self.grad_outputs = grads
        if self.input_tensors_index is None:
            self._run_without_input_grads(grads)
        return tuple(grads[i] for i in index)

    def _run_without_input_grads(self, grads: tuple[Any, ...]) -> None:
        # No input requires a gradient, so no input node exists: the hooks run here, with None for each input.
        if self.user_hooks:
            warnings.warn(
                "Full backward hook is firing when gradients are computed with respect to module outputs since no "
                "inputs require gradients; its grad_input holds None only",
                stacklevel=5,
            )
        for hook in self.user_hooks:
            res = hook(self.module, (None,) * self.n_inputs, grads)
            if res is not None and not (isinstance(res, tuple) and all(grad is None for grad in res)):
                raise RuntimeError(
                    "Backward hook for Modules where no input requires gradient should always return None or None for "
                    "all gradients."
                )
        self.grad_outputs = None

    def _on_input_grads(self, grad_input: Any, _: Any) -> Any:
        if self.grad_outputs is None:  # The backward started inside the module: its outputs took no part.
            return None
        index = self.input_tensors_index
        assert index is not None
        grads = self._spread(index, grad_input, self.n_inputs)
        for hook in self.user_hooks:
            replaced = hook(self.module, grads, self.grad_outputs)
            if replaced is None:
                continue
            if len(replaced) != len(grads):
                raise RuntimeError(
                    "Backward hook returned an invalid number of grad_input, "
                    f"got {len(replaced)}, but expected {len(grads)}"
                )
            grads = replaced
        self.grad_outputs = None
        return tuple(grads[i] for i in index)
