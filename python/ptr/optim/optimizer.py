"""The base class of all optimizers."""

from __future__ import annotations

import functools
import warnings
from collections import OrderedDict, defaultdict

import ptr as torch
from ptr._utils import typename
from ptr.utils.hooks import RemovableHandle, register_hook

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    ParamsT = Iterable[torch.Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, torch.Tensor]]

__all__ = ["Optimizer", "register_optimizer_step_post_hook", "register_optimizer_step_pre_hook"]

_global_optimizer_pre_hooks: OrderedDict[int, Callable[..., Any]] = OrderedDict()
_global_optimizer_post_hooks: OrderedDict[int, Callable[..., Any]] = OrderedDict()

_FUSED_DEVICES = ("cpu", "cuda")


class _RequiredParameter:
    """Default of an option that every parameter group has to give."""

    def __repr__(self) -> str:
        return "<required parameter>"


required = _RequiredParameter()


def register_optimizer_step_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Register ``hook(optimizer, args, kwargs) -> None or (args, kwargs)``, run before every step of every optimizer.

    Returns:
        a handle whose ``remove()`` takes the hook out again.
    """
    return register_hook(_global_optimizer_pre_hooks, hook)


def register_optimizer_step_post_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Register ``hook(optimizer, args, kwargs) -> None``, run after every step of every optimizer.

    Returns:
        a handle whose ``remove()`` takes the hook out again.
    """
    return register_hook(_global_optimizer_post_hooks, hook)


def _use_grad_for_differentiable(func: Any) -> Any:
    """Make a ``step`` run in the grad mode that the optimizer's ``differentiable`` asks for: off, normally."""

    @functools.wraps(func)
    def with_grad_mode(self: Any, *args: Any, **kwargs: Any) -> Any:
        previous = torch.is_grad_enabled()
        set_grad_enabled = torch._C._set_grad_enabled
        set_grad_enabled(self.defaults.get("differentiable", False))
        try:
            return func(self, *args, **kwargs)
        finally:
            set_grad_enabled(previous)

    return with_grad_mode


def _to_scalar(x: Any) -> Any:
    """Return a tensor of one element without its dimensions, which would broadcast; other values as they are."""
    return x.squeeze() if isinstance(x, torch.Tensor) and x.dim() != 0 else x


def _check_fused(param: torch.Tensor) -> None:
    if not (param.device.type in _FUSED_DEVICES and torch.is_floating_point(param)):
        raise RuntimeError(
            "`fused=True` requires all the params to be floating point Tensors of supported devices: "
            f"{list(_FUSED_DEVICES)} but {param.dtype} and {param.device.type}"
        )


class Optimizer:
    """Base class of all optimizers.

    A subclass gives its options' defaults to ``super().__init__`` and defines :meth:`step`.

    Args:
        params: the parameters: an iterable of tensors, of ``(name, tensor)`` pairs, or of dictionaries, one per group,
            with the tensors under ``"params"`` and options that differ from the defaults.
        defaults: the options and their default values.

    Attributes:
        param_groups: the groups, each a dictionary with ``"params"`` and all options.
        state: what the optimizer remembers of each parameter.
        defaults: the defaults.

    Raises:
        TypeError: ``params`` is a tensor or holds something else than tensors.
        ValueError: ``params`` is empty, holds a tensor twice, or one that is no leaf.
    """

    def __init__(self, params: ParamsT, defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        self._make_hook_tables()
        self._patch_step_function()
        if isinstance(params, torch.Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, but got "
                + typename(params)
            )
        self.state: defaultdict[Any, Any] = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        groups: list[Any] = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    def _make_hook_tables(self) -> None:
        for name in (
            "_optimizer_step_pre_hooks",
            "_optimizer_step_post_hooks",
            "_optimizer_state_dict_pre_hooks",
            "_optimizer_state_dict_post_hooks",
            "_optimizer_load_state_dict_pre_hooks",
            "_optimizer_load_state_dict_post_hooks",
        ):
            self.__dict__.setdefault(name, OrderedDict())

    def __getstate__(self) -> dict[str, Any]:
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._make_hook_tables()
        self._patch_step_function()
        self.defaults.setdefault("differentiable", False)

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for i, group in enumerate(self.param_groups):
            if i > 0:
                lines.append("")
            lines.append(f"Parameter Group {i}")
            lines += [f"    {key}: {group[key]}" for key in sorted(group) if key != "params"]
        return "\n".join([*lines, ")"])

    # --- steps ------------------------------------------------------------------------------------------------------

    @staticmethod
    def profile_hook_step(func: Any) -> Any:
        """Wrap a ``step`` so that it runs the hooks."""

        @functools.wraps(func)
        def step_with_hooks(self: Any, *args: Any, **kwargs: Any) -> Any:
            pre_hooks, post_hooks = self._optimizer_step_pre_hooks, self._optimizer_step_post_hooks
            if not (pre_hooks or post_hooks or _global_optimizer_pre_hooks or _global_optimizer_post_hooks):
                return func(self, *args, **kwargs)
            # Hooks see the optimizer as the first positional argument.
            args = (self, *args)
            for hook in [*_global_optimizer_pre_hooks.values(), *pre_hooks.values()]:
                result = hook(self, args, kwargs)
                if result is None:
                    continue
                if not (isinstance(result, tuple) and len(result) == 2):
                    raise RuntimeError(
                        f"{func} must return None or a tuple of (new_args, new_kwargs), but got {result}."
                    )
                args, kwargs = result
            out = func(*args, **kwargs)
            for hook in [*post_hooks.values(), *_global_optimizer_post_hooks.values()]:
                hook(self, args, kwargs)
            return out

        step_with_hooks.hooked = True  # type: ignore[attr-defined]
        return step_with_hooks

    def _patch_step_function(self) -> None:
        # Wrapped once per class, whichever class of the hierarchy defines it.
        cls = type(self)
        if not getattr(cls.step, "hooked", False):
            cls.step = self.profile_hook_step(cls.step)  # type: ignore[method-assign]

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update all parameters once.

        Args:
            closure: recomputes the loss and its gradients; the loss is returned.
        """
        raise NotImplementedError

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Reset the gradients of all parameters.

        Args:
            set_to_none: drop them, which saves memory and the next accumulation; otherwise fill them with zeros.
        """
        if set_to_none:
            for group in self.param_groups:
                for param in group["params"]:
                    param.grad = None
            return
        foreach = self.defaults.get("foreach") or self.defaults.get("fused")
        together: dict[Any, list[Any]] = {}
        for group in self.param_groups:
            for param in group["params"]:
                grad = param.grad
                if grad is None:
                    continue
                if grad.grad_fn is not None:
                    grad.detach_()
                else:
                    grad.requires_grad_(False)
                if foreach and not grad.is_sparse:
                    together.setdefault((grad.device, grad.dtype), []).append(grad)
                else:
                    grad.zero_()
        for grads in together.values():
            torch._foreach_zero_(grads)

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Register ``hook(optimizer, args, kwargs) -> None or (args, kwargs)``, run before each :meth:`step`."""
        return register_hook(self._optimizer_step_pre_hooks, hook)

    def register_step_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Register ``hook(optimizer, args, kwargs) -> None``, run after each :meth:`step`."""
        return register_hook(self._optimizer_step_post_hooks, hook)

    @staticmethod
    def _group_tensors_by_device_and_dtype(
        tensorlistlist: list[list[Any]], with_indices: bool = False
    ) -> dict[Any, tuple[list[list[Any]], list[int]]]:
        """Sort the columns of ``tensorlistlist`` by device and dtype of their first row, which holds no ``None``.

        Returns:
            for each pair of device and dtype the lists, and (if ``with_indices``) the positions they came from.
        """
        groups: dict[Any, tuple[list[list[Any]], list[int]]] = {}
        for i, column in enumerate(zip(*tensorlistlist, strict=True)):
            key = (column[0].device, column[0].dtype)
            if key not in groups:
                groups[key] = ([[] for _ in column], [])
            lists, indices = groups[key]
            for tensors, tensor in zip(lists, column, strict=True):
                tensors.append(tensor)
            if with_indices:
                indices.append(i)
        return groups

    # --- state dicts ------------------------------------------------------------------------------------------------

    def register_state_dict_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Register ``hook(optimizer) -> None``, run before :meth:`state_dict`; first of all if ``prepend``."""
        return register_hook(self._optimizer_state_dict_pre_hooks, hook, prepend)

    def register_state_dict_post_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Register ``hook(optimizer, state_dict) -> None or state_dict``, run after :meth:`state_dict`."""
        return register_hook(self._optimizer_state_dict_post_hooks, hook, prepend)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Register ``hook(optimizer, state_dict) -> None or state_dict``, run before :meth:`load_state_dict`."""
        return register_hook(self._optimizer_load_state_dict_pre_hooks, hook, prepend)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Register ``hook(optimizer) -> None``, run after :meth:`load_state_dict`."""
        return register_hook(self._optimizer_load_state_dict_post_hooks, hook, prepend)

    def state_dict(self) -> dict[str, Any]:
        """Return the state as a dictionary.

        Returns:
            ``"state"``, what is remembered of each parameter, and ``"param_groups"``, the groups; parameters are given
            by their numbers, counted through all groups. The tensors are not copied.
        """
        for hook in self._optimizer_state_dict_pre_hooks.values():
            hook(self)
        number: dict[int, int] = {}
        start = 0
        groups = []
        for group in self.param_groups:
            packed = {key: value for key, value in group.items() if key != "params"}
            for i, param in enumerate(group["params"], start):
                number.setdefault(id(param), i)
            packed["params"] = [number[id(param)] for param in group["params"]]
            start += len(packed["params"])
            groups.append(packed)
        state = {number[id(key)] if isinstance(key, torch.Tensor) else key: value for key, value in self.state.items()}
        result: dict[str, Any] = {"state": state, "param_groups": groups}
        for hook in self._optimizer_state_dict_post_hooks.values():
            replaced = hook(self, result)
            if replaced is not None:
                result = replaced
        return result

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over a state that :meth:`state_dict` returned.

        Parameters are matched by position, names do not count. State is cast to the dtype and device of its parameter.

        Args:
            state_dict: the state; it is not changed.

        Raises:
            ValueError: the groups differ in number or size.
        """
        state_dict = state_dict.copy()
        for hook in self._optimizer_load_state_dict_pre_hooks.values():
            replaced = hook(self, state_dict)
            if replaced is not None:
                state_dict = replaced

        import copy

        saved_groups = copy.deepcopy(state_dict["param_groups"])
        if len(saved_groups) != len(self.param_groups):
            raise ValueError("loaded state dict has a different number of parameter groups")
        if any(
            len(ours["params"]) != len(saved["params"])
            for ours, saved in zip(self.param_groups, saved_groups, strict=True)
        ):
            raise ValueError(
                "loaded state dict contains a parameter group that doesn't match the size of optimizer's group"
            )

        param_of: dict[Any, Any] = {}
        group_of: dict[Any, Any] = {}
        for ours, saved in zip(self.param_groups, saved_groups, strict=True):
            for key, param in zip(saved["params"], ours["params"], strict=True):
                param_of[key] = param
                group_of.setdefault(key, saved)
        state: defaultdict[Any, Any] = defaultdict(dict)
        for key, value in state_dict["state"].items():
            if key in param_of:
                state[param_of[key]] = _fit(value, param_of[key], group_of[key])
            else:
                state[key] = value

        for ours, saved in zip(self.param_groups, saved_groups, strict=True):
            saved["params"] = ours["params"]
            if "param_names" in ours and "param_names" not in saved:
                saved["param_names"] = ours["param_names"]
        self.__setstate__({"state": state, "param_groups": saved_groups})
        for hook in self._optimizer_load_state_dict_post_hooks.values():
            hook(self)

    # --- groups -----------------------------------------------------------------------------------------------------

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group of parameters, such as layers that are unfrozen during training.

        Args:
            param_group: the tensors (or ``(name, tensor)`` pairs) under ``"params"``, and options that differ from the
                defaults.

        Raises:
            TypeError: the group is no dictionary, its parameters are a set, or one is no tensor.
            ValueError: a parameter is no leaf or in another group already, a required option is absent, or only some
                parameters have names.
        """
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        given = param_group["params"]
        if isinstance(given, set):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, but the ordering of tensors in sets "
                "will change between runs. Please use a list instead."
            )
        given = [given] if isinstance(given, torch.Tensor) else list(given)
        names = [item[0] for item in given if isinstance(item, tuple)]
        params = [item[1] if isinstance(item, tuple) else item for item in given]
        param_group["params"] = params
        if names:
            if len(names) != len(params):
                raise ValueError("all optimizer params should be with/without names. Some param names are missing")
            param_group["param_names"] = names

        for param in params:
            if not isinstance(param, torch.Tensor):
                raise TypeError(f"optimizer can only optimize Tensors, but one of the params is {typename(param)}")
            if not (self.defaults.get("differentiable") or param.is_leaf or param.retains_grad):
                raise ValueError("can't optimize a non-leaf Tensor")
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise ValueError(f"parameter group didn't specify a value of required optimization parameter {name}")
            param_group.setdefault(name, default)

        ids = {id(param) for param in params}
        if len(ids) != len(params):
            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters; in future, this will cause an error",
                stacklevel=3,
            )
        for group in self.param_groups:
            if ("param_names" in param_group) != ("param_names" in group):
                kind = "with names" if "param_names" in param_group else "without names"
                raise ValueError(
                    "all optimizer param groups should be with/without names. "
                    f"cannot add param group {kind} to the optimizer"
                )
            if any(id(param) in ids for param in group["params"]):
                raise ValueError("some parameters appear in more than one parameter group")
        self.param_groups.append(param_group)


def _fit(value: Any, param: torch.Tensor, group: dict[str, Any], key: Any = None) -> Any:
    """Return saved state cast to the dtype and device of its parameter."""
    if isinstance(value, torch.Tensor):
        if key == "step":
            # A count of steps keeps its own dtype; only kernels on the device need it there.
            if group.get("capturable") or group.get("fused"):
                return value.to(dtype=torch.float32, device=param.device)
            return value
        if param.is_floating_point():
            return value.to(dtype=param.dtype, device=param.device)
        return value.to(device=param.device)
    if isinstance(value, dict):
        return {k: _fit(v, param, group, k) for k, v in value.items()}
    if isinstance(value, (list, tuple, set)):
        return type(value)(_fit(v, param, group) for v in value)
    return value
