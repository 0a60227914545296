"""Hooks that every module runs, and the tables that hold hooks."""

from __future__ import annotations

import functools
import weakref
from collections import OrderedDict

from ptr.utils.hooks import RemovableHandle, register_hook

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_global_buffer_registration_hooks: OrderedDict[int, Callable[..., Any]] = OrderedDict()
_global_module_registration_hooks: OrderedDict[int, Callable[..., Any]] = OrderedDict()
_global_parameter_registration_hooks: OrderedDict[int, Callable[..., Any]] = OrderedDict()

_global_backward_pre_hooks: OrderedDict[int, Callable[..., Any]] = OrderedDict()
_global_backward_hooks: OrderedDict[int, Callable[..., Any]] = OrderedDict()
_global_forward_pre_hooks: OrderedDict[int, Callable[..., Any]] = OrderedDict()
_global_forward_hooks: OrderedDict[int, Callable[..., Any]] = OrderedDict()
_global_forward_hooks_always_called: OrderedDict[int, bool] = OrderedDict()
_global_forward_hooks_with_kwargs: OrderedDict[int, bool] = OrderedDict()
_global_is_full_backward_hook: bool | None = None


class _HookTable:
    """A module's table of hooks, made when first touched.

    Most modules never get a hook; creating a dozen tables for each would dominate their construction. As a descriptor
    without ``__set__`` it steps aside once the table sits in the instance. A table that is consulted by calls also
    sets the instance's ``_hooked``, the one flag that ``__call__`` reads.
    """

    def __init__(self, seen_by_call: bool = False) -> None:
        self.seen_by_call = seen_by_call

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, module: Any, owner: type | None = None) -> Any:
        if module is None:
            return self
        table: OrderedDict[int, Any] = OrderedDict()
        attributes = module.__dict__
        attributes[self.name] = table
        if self.seen_by_call:
            attributes["_hooked"] = True
        return table


class _WrappedHook:
    """A hook that may be bound to its module, without keeping the module alive."""

    def __init__(self, hook: Callable[..., Any], module: Any = None) -> None:
        self.hook = hook
        functools.update_wrapper(self, hook)
        self.with_module = module is not None
        if module is not None:
            self.module = weakref.ref(module)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not self.with_module:
            return self.hook(*args, **kwargs)
        module = self.module()
        if module is None:
            raise RuntimeError("You are trying to call the hook of a dead Module!")
        return self.hook(module, *args, **kwargs)

    def __getstate__(self) -> dict[str, Any]:
        return {
            "hook": self.hook,
            "with_module": self.with_module,
            "module": self.module() if self.with_module else None,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.hook = state["hook"]
        self.with_module = state["with_module"]
        if self.with_module:
            if state["module"] is None:
                raise RuntimeError("You are trying to revive the hook of a dead Module!")
            self.module = weakref.ref(state["module"])


def _calls_are_hooked() -> None:
    # Every module inherits the flag; from here on all calls look at the tables.
    from ptr.nn.modules.module import Module

    Module._hooked = True


def register_module_buffer_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Register ``hook(module, name, buffer) -> None or buffer``, run whenever any module registers a buffer.

    Returns:
        a handle whose ``remove()`` takes the hook out again.
    """
    return register_hook(_global_buffer_registration_hooks, hook)


def register_module_module_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Register ``hook(module, name, submodule) -> None or module``, run whenever any module registers a submodule.

    Returns:
        a handle whose ``remove()`` takes the hook out again.
    """
    return register_hook(_global_module_registration_hooks, hook)


def register_module_parameter_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Register ``hook(module, name, param) -> None or parameter``, run whenever any module registers a parameter.

    Returns:
        a handle whose ``remove()`` takes the hook out again.
    """
    return register_hook(_global_parameter_registration_hooks, hook)


def register_module_forward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Register ``hook(module, args) -> None or new args``, run before the forward of every module.

    Global hooks run before those of the module itself. They are meant for debugging and profiling.

    Returns:
        a handle whose ``remove()`` takes the hook out again.
    """
    _calls_are_hooked()
    return register_hook(_global_forward_pre_hooks, hook)


def register_module_forward_hook(
    hook: Callable[..., Any], *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Register ``hook(module, args, output) -> None or new output``, run after the forward of every module.

    Args:
        hook: the function; global hooks run before those of the module itself.
        with_kwargs: pass the keyword arguments too, ``hook(module, args, kwargs, output)``.
        always_call: run the hook even when the call raised.

    Returns:
        a handle whose ``remove()`` takes the hook out again.
    """
    _calls_are_hooked()
    handle = register_hook(
        _global_forward_hooks,
        hook,
        extra_dict=[_global_forward_hooks_with_kwargs, _global_forward_hooks_always_called],
    )
    if with_kwargs:
        _global_forward_hooks_with_kwargs[handle.id] = True
    if always_call:
        _global_forward_hooks_always_called[handle.id] = True
    return handle


def _claim_backward_hooks(full: bool) -> None:
    global _global_is_full_backward_hook
    if _global_is_full_backward_hook is (not full):
        raise RuntimeError(
            "Cannot use both regular backward hooks and full backward hooks as a global Module hook. "
            "Please use only one of them."
        )
    _global_is_full_backward_hook = full
    _calls_are_hooked()


def register_module_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Register a backward hook of the old kind for every module.

    Deprecated: it sees the gradients of the module's last operation only. Use
    :func:`register_module_full_backward_hook`.
    """
    _claim_backward_hooks(full=False)
    return register_hook(_global_backward_hooks, hook)


def register_module_full_backward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Register ``hook(module, grad_output) -> None or tuple`` for every module, as
    :meth:`~ptr.nn.Module.register_full_backward_pre_hook` does for one."""
    _calls_are_hooked()
    return register_hook(_global_backward_pre_hooks, hook)


def register_module_full_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Register ``hook(module, grad_input, grad_output) -> None or tuple`` for every module, as
    :meth:`~ptr.nn.Module.register_full_backward_hook` does for one."""
    _claim_backward_hooks(full=True)
    return register_hook(_global_backward_hooks, hook)
