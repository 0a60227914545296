"""Calling a module: ``__call__`` and the hooks around :meth:`forward`."""

from __future__ import annotations

import warnings

import ptr as torch
from ptr.nn.modules import _global_hooks
from ptr.nn.modules._global_hooks import (
    _global_backward_hooks,
    _global_backward_pre_hooks,
    _global_forward_hooks,
    _global_forward_hooks_always_called,
    _global_forward_hooks_with_kwargs,
    _global_forward_pre_hooks,
    _HookTable,
    _WrappedHook,
)
from ptr.utils.hooks import BackwardHook, RemovableHandle, register_hook

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

Tensor = torch.Tensor


_CALL_TABLES = frozenset(("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks"))


def _forward_unimplemented(self: Any, *input: Any) -> None:
    """Compute the module's output; every subclass defines its own.

    Call the module itself rather than this method: only the call runs hooks.

    Raises:
        NotImplementedError: the subclass has no ``forward``.
    """
    raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')


class HookedCalls:
    """The part of :class:`~ptr.nn.Module` that runs a call. A module without hooks pays one test for them."""

    _is_full_backward_hook: bool | None = None

    _backward_pre_hooks = _HookTable(seen_by_call=True)
    _backward_hooks = _HookTable(seen_by_call=True)
    _forward_hooks = _HookTable(seen_by_call=True)
    _forward_pre_hooks = _HookTable(seen_by_call=True)
    _forward_hooks_with_kwargs = _HookTable()
    _forward_hooks_always_called = _HookTable()
    _forward_pre_hooks_with_kwargs = _HookTable()
    # True on an instance once it has a call table or a `_call_impl` of its own, on the class once a global call hook
    # was registered.
    _hooked: bool = False

    forward: Callable[..., Any] = _forward_unimplemented

    def _call_impl(self, *args: Any, **kwargs: Any) -> Any:
        # A table may also have been put into the instance's dictionary as it is.
        if self._hooked or not _CALL_TABLES.isdisjoint(self.__dict__):
            return self._call_with_hooks(args, kwargs)
        return self.forward(*args, **kwargs)

    def _wrapped_call_impl(self, *args: Any, **kwargs: Any) -> Any:
        return self._call_impl(*args, **kwargs)

    if TYPE_CHECKING:

        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            """Call ``_call_impl``."""

    def _call_with_hooks(self, args: Any, kwargs: dict[str, Any]) -> Any:
        if not (
            self._backward_hooks
            or self._backward_pre_hooks
            or self._forward_hooks
            or self._forward_pre_hooks
            or _global_backward_pre_hooks
            or _global_backward_hooks
            or _global_forward_hooks
            or _global_forward_pre_hooks
        ):
            return self.forward(*args, **kwargs)

        result = None
        called: set[int] = set()
        try:
            args, kwargs = self._run_forward_pre_hooks(args, kwargs)
            full_hooks, old_hooks = self._get_backward_hooks()
            pre_hooks = self._get_backward_pre_hooks()
            backward_hook = None
            if full_hooks or pre_hooks:
                backward_hook = BackwardHook(self, full_hooks, pre_hooks)
                args = backward_hook.setup_input_hook(args)

            result = self.forward(*args, **kwargs)

            for hook_id, hook in (*_global_forward_hooks.items(), *self._forward_hooks.items()):
                called.add(hook_id)
                replaced = self._run_forward_hook(hook_id, hook, args, kwargs, result)
                if replaced is not None:
                    result = replaced

            if backward_hook is not None:
                if not isinstance(result, (Tensor, tuple)):
                    warnings.warn(
                        "For backward hooks to be called, module output should be a Tensor or a tuple of Tensors "
                        f"but received {type(result)}",
                        stacklevel=2,
                    )
                result = backward_hook.setup_output_hook(result)
            if old_hooks:
                self._register_old_backward_hooks(old_hooks, args, result)
            return result
        except Exception:
            self._run_always_called_hooks(called, args, kwargs, result)
            raise

    def _run_forward_pre_hooks(self, args: Any, kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        for hook_id, hook in (*_global_forward_pre_hooks.items(), *self._forward_pre_hooks.items()):
            if hook_id in self._forward_pre_hooks_with_kwargs:
                replaced = hook(self, args, kwargs)
                if replaced is not None:
                    if not (isinstance(replaced, tuple) and len(replaced) == 2):
                        raise RuntimeError(
                            "forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got "
                            f"{replaced}."
                        )
                    args, kwargs = replaced
            else:
                replaced = hook(self, args)
                if replaced is not None:
                    args = replaced if isinstance(replaced, tuple) else (replaced,)
        return args, kwargs

    def _run_forward_hook(self, hook_id: int, hook: Any, args: Any, kwargs: Any, result: Any) -> Any:
        if hook_id in self._forward_hooks_with_kwargs or hook_id in _global_forward_hooks_with_kwargs:
            return hook(self, args, kwargs, result)
        return hook(self, args, result)

    def _run_always_called_hooks(self, called: set[int], args: Any, kwargs: Any, result: Any) -> None:
        for kind, hooks, always in (
            ("global module", _global_forward_hooks, _global_forward_hooks_always_called),
            ("module", self._forward_hooks, self._forward_hooks_always_called),
        ):
            for hook_id, hook in hooks.items():
                if hook_id not in always or hook_id in called:
                    continue
                try:
                    replaced = self._run_forward_hook(hook_id, hook, args, kwargs, result)
                    if replaced is not None:
                        result = replaced
                except Exception as error:
                    warnings.warn(
                        f"{kind} forward hook with ``always_call=True`` raised an exception that was silenced as "
                        f"another error was raised in forward: {error}",
                        stacklevel=3,
                    )

    def _get_backward_hooks(self) -> tuple[list[Any], list[Any]]:
        """Return the full backward hooks and those of the old kind, global ones first."""
        full: list[Any] = []
        old: list[Any] = []
        if _global_backward_hooks:
            (full if _global_hooks._global_is_full_backward_hook else old).extend(_global_backward_hooks.values())
        if self._backward_hooks:
            if self._is_full_backward_hook is not None:
                (full if self._is_full_backward_hook else old).extend(self._backward_hooks.values())
        return full, old

    def _get_backward_pre_hooks(self) -> list[Any]:
        return [*_global_backward_pre_hooks.values(), *self._backward_pre_hooks.values()]

    def _register_old_backward_hooks(self, hooks: list[Any], args: Any, result: Any) -> None:
        var = result
        while not isinstance(var, Tensor):
            var = next(v for v in var.values() if isinstance(v, Tensor)) if isinstance(var, dict) else var[0]
        node = var.grad_fn
        if node is None:
            return
        for hook in hooks:
            node.register_hook(_WrappedHook(hook, self))
        _warn_of_missing_grads(args, result, node)

    def register_full_backward_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Register ``hook(module, grad_output) -> None or tuple``, run before the module's gradients are computed.

        Args:
            hook: gets the gradients of the outputs (``None`` where an output is no tensor) and may return others.
            prepend: run it before the hooks registered so far.

        Returns:
            a handle whose ``remove()`` takes the hook out again.
        """
        return register_hook(self._backward_pre_hooks, hook, prepend)

    def register_backward_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Register a backward hook of the old kind.

        Deprecated: it sees the gradients of the module's last operation only. Use :meth:`register_full_backward_hook`.
        """
        self._claim_backward_hooks(full=False)
        return register_hook(self._backward_hooks, hook)

    def register_full_backward_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Register ``hook(module, grad_input, grad_output) -> None or tuple``, run when the gradients of the inputs
        are known.

        Args:
            hook: may return gradients that replace ``grad_input``; keyword arguments of the call are not seen.
            prepend: run it before the hooks registered so far.

        Returns:
            a handle whose ``remove()`` takes the hook out again.

        Raises:
            RuntimeError: the module has backward hooks of the old kind.
        """
        self._claim_backward_hooks(full=True)
        return register_hook(self._backward_hooks, hook, prepend)

    def _claim_backward_hooks(self, full: bool) -> None:
        if self._is_full_backward_hook is (not full):
            raise RuntimeError(
                "Cannot use both regular backward hooks and full backward hooks on a single Module. Please use only "
                "one of them."
            )
        self._is_full_backward_hook = full

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Register ``hook(module, args) -> None or new args``, run before :meth:`forward`.

        Args:
            hook: may return arguments that replace those of the call; a single value stands for a tuple of one.
            prepend: run it before the hooks registered so far.
            with_kwargs: ``hook(module, args, kwargs) -> None or (args, kwargs)`` instead.

        Returns:
            a handle whose ``remove()`` takes the hook out again.
        """
        handle = register_hook(self._forward_pre_hooks, hook, prepend, [self._forward_pre_hooks_with_kwargs])
        if with_kwargs:
            self._forward_pre_hooks_with_kwargs[handle.id] = True
        return handle

    def register_forward_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
    ) -> RemovableHandle:
        """Register ``hook(module, args, output) -> None or new output``, run after :meth:`forward`.

        Args:
            hook: may return an output that replaces the module's.
            prepend: run it before the hooks registered so far.
            with_kwargs: ``hook(module, args, kwargs, output)`` instead.
            always_call: run the hook even when the call raised.

        Returns:
            a handle whose ``remove()`` takes the hook out again.
        """
        extras = [self._forward_hooks_with_kwargs, self._forward_hooks_always_called]
        handle = register_hook(self._forward_hooks, hook, prepend, extras)
        if with_kwargs:
            self._forward_hooks_with_kwargs[handle.id] = True
        if always_call:
            self._forward_hooks_always_called[handle.id] = True
        return handle


# `__call__` is `self._call_impl(*args, **kwargs)`, which a class, a patch of a class or an assignment to a module may
# have replaced; if none has and there are no hooks it calls `forward` straight away.
torch._C._bind_module_call(HookedCalls)


def _warn_of_missing_grads(inputs: Any, result: Any, node: Any) -> None:
    """Warn where a backward hook of the old kind, which hangs on the node of the first output, misses gradients."""

    def warn(reason: str, missing: str) -> None:
        warnings.warn(
            f"Using {reason} is deprecated and will be removed in future versions. This hook will be missing some "
            f"{missing}. "
            "Please use register_full_backward_hook to get the documented behavior.",
            FutureWarning,
            stacklevel=5,
        )

    results = (result,) if isinstance(result, Tensor) else result
    if not (isinstance(results, tuple) and all(isinstance(r, Tensor) for r in results)):
        warn(
            "non-full backward hooks on a Module that does not return a single Tensor or a tuple of Tensors",
            "grad_output",
        )
        return
    inputs = (inputs,) if isinstance(inputs, Tensor) else inputs
    if not (isinstance(inputs, tuple) and all(isinstance(i, Tensor) for i in inputs)):
        warn(
            "non-full backward hooks on a Module that does not take as input a single Tensor or a tuple of Tensors",
            "grad_input",
        )
        return
    out_nodes = {r.grad_fn for r in results if r.grad_fn is not None}
    if len(out_nodes) > 1:
        warn("a non-full backward hook when outputs are generated by different autograd Nodes", "grad_output")
    elif node not in out_nodes:
        warn("a non-full backward hook when outputs are nested in python data structure", "grad_output")
    elif {i.grad_fn for i in inputs if i.grad_fn is not None} != {entry[0] for entry in node.next_functions}:
        warn("a non-full backward hook when the forward contains multiple autograd Nodes", "grad_input")
