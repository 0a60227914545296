"""The base class of all modules."""

from __future__ import annotations

import warnings
from collections import OrderedDict

import ptr as torch
from ptr._utils import typename
from ptr.nn.modules._calls import HookedCalls
from ptr.nn.modules._global_hooks import (
    _global_buffer_registration_hooks,
    _global_module_registration_hooks,
    _global_parameter_registration_hooks,
    _HookTable,
    _WrappedHook,
    register_module_backward_hook,
    register_module_buffer_registration_hook,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)
from ptr.nn.modules._state_dict import _IncompatibleKeys as _IncompatibleKeys
from ptr.nn.modules._state_dict import (
    _load_from_state_dict,
    load_state_dict,
    save_to_state_dict,
    state_dict,
)
from ptr.nn.parameter import Buffer, Parameter
from ptr.utils.hooks import RemovableHandle, register_hook

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, Self

__all__ = [
    "Module",
    "register_module_backward_hook",
    "register_module_buffer_registration_hook",
    "register_module_forward_hook",
    "register_module_forward_pre_hook",
    "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
]

Tensor = torch.Tensor


def _addindent(text: str, num_spaces: int) -> str:
    first, *rest = text.split("\n")
    return "\n".join([first, *(" " * num_spaces + line if line.strip() else "" for line in rest)])


class Module(HookedCalls):
    """Base class for all neural network modules.

    A module holds parameters, buffers and other modules, all assigned as plain attributes, and computes in
    :meth:`forward`. Call ``super().__init__()`` before the first such assignment.

    Attributes:
        training: whether the module is in training mode (:meth:`train`, :meth:`eval`).

    Example::

        >>> class Model(nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.hidden = nn.Linear(4, 8)
        ...         self.out = nn.Linear(8, 2)
        ...
        ...     def forward(self, x):
        ...         return self.out(F.relu(self.hidden(x)))
        >>> Model()(torch.randn(3, 4)).shape
        torch.Size([3, 2])
    """

    dump_patches: bool = False
    # Written to state dicts; a subclass whose parameters changed raises it and converts older ones when loading.
    _version: int = 1
    # Whether arguments of __init__ are handed on to the next class of the method resolution order.
    call_super_init: bool = False

    training: bool
    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _modules: dict[str, Module | None]
    _non_persistent_buffers_set: set[str]

    _state_dict_hooks = _HookTable()
    _state_dict_pre_hooks = _HookTable()
    _load_state_dict_pre_hooks = _HookTable()
    _load_state_dict_post_hooks = _HookTable()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if not self.call_super_init:
            if kwargs:
                raise TypeError(
                    f"{type(self).__name__}.__init__() got an unexpected keyword argument '{next(iter(kwargs))}'"
                )
            if args:
                raise TypeError(
                    f"{type(self).__name__}.__init__() takes 1 positional argument but {len(args) + 1} were given"
                )
        # Written past __setattr__, whose search for parameters and modules these four make possible.
        attributes = self.__dict__
        attributes["training"] = True
        attributes["_parameters"] = {}
        attributes["_buffers"] = {}
        attributes["_non_persistent_buffers_set"] = set()
        attributes["_modules"] = {}
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    # --- registration -----------------------------------------------------------------------------------------------

    def _check_name(self, kind: str, name: Any, members: dict[str, Any]) -> None:
        if not isinstance(name, str):
            raise TypeError(f"{kind} name should be a string. Got {typename(name)}")
        if hasattr(self, name) and name not in members:
            raise KeyError(f"attribute '{name}' already exists")
        if "." in name:
            raise KeyError(
                f'{kind} name can\'t contain ".", got: {name}'
                if kind == "module"
                else f'{kind} name can\'t contain "."'
            )
        if name == "":
            raise KeyError(f'{kind} name can\'t be empty string ""')

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Add a buffer: state that is no parameter, such as a running mean.

        Args:
            name: the attribute through which the buffer is reached.
            tensor: the buffer, or ``None`` for one that is absent and is skipped by ``to``, ``state_dict`` and the
                like.
            persistent: whether the buffer is part of the ``state_dict``.

        Raises:
            KeyError: the name is empty, holds a dot or belongs to another attribute.
            TypeError: ``tensor`` is neither a tensor nor ``None``.

        Example::

            >>> self.register_buffer("running_mean", torch.zeros(num_features))
        """
        buffers = self.__dict__.get("_buffers")
        if buffers is None:
            raise AttributeError("cannot assign buffer before Module.__init__() call")
        self._check_name("buffer", name, buffers)
        if tensor is not None and not (isinstance(tensor, Tensor) or hasattr(tensor, "__torch_function__")):
            raise TypeError(
                f"cannot assign '{typename(tensor)}' object to buffer '{name}' (torch Tensor or None required)"
            )
        for hook in _global_buffer_registration_hooks.values():
            replaced = hook(self, name, tensor)
            if replaced is not None:
                tensor = replaced
        buffers[name] = tensor
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Add a parameter.

        Args:
            name: the attribute through which the parameter is reached.
            param: the parameter, or ``None`` for one that is absent.

        Raises:
            KeyError: the name is empty, holds a dot or belongs to another attribute.
            TypeError: ``param`` is neither a :class:`~ptr.nn.Parameter` nor ``None``.
            ValueError: ``param`` was computed from other tensors.
        """
        params = self.__dict__.get("_parameters")
        if params is None:
            raise AttributeError("cannot assign parameter before Module.__init__() call")
        self._check_name("parameter", name, params)
        if param is not None:
            if not isinstance(param, Parameter):
                raise TypeError(
                    f"cannot assign '{typename(param)}' object to parameter '{name}' (torch.nn.Parameter or None "
                    "required)"
                )
            if param.grad_fn is not None:
                raise ValueError(
                    f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be created "
                    f"explicitly; to express '{name}' as a function of another Tensor, compute it in the forward() "
                    "method."
                )
            for hook in _global_parameter_registration_hooks.values():
                replaced = hook(self, name, param)
                if replaced is not None:
                    param = replaced
        params[name] = param

    def add_module(self, name: str, module: Module | None) -> None:
        """Add a child module that is then reached as the attribute ``name``.

        Raises:
            KeyError: the name is empty, holds a dot or belongs to another attribute.
            TypeError: ``module`` is neither a module nor ``None``.
        """
        if not isinstance(module, Module) and module is not None:
            raise TypeError(f"{typename(module)} is not a Module subclass")
        self._check_name("module", name, self._modules)
        self._modules[name] = self._run_module_registration_hooks(name, module)

    def register_module(self, name: str, module: Module | None) -> None:
        """Alias for :meth:`add_module`."""
        self.add_module(name, module)

    def _run_module_registration_hooks(self, name: str, module: Any) -> Any:
        for hook in _global_module_registration_hooks.values():
            replaced = hook(self, name, module)
            if replaced is not None:
                module = replaced
        return module

    # --- attributes -------------------------------------------------------------------------------------------------

    def __getattr__(self, name: str) -> Any:
        attributes = self.__dict__
        if "_parameters" in attributes:
            members = attributes["_parameters"]
            if name in members:
                return members[name]
        if "_modules" in attributes:
            members = attributes["_modules"]
            if name in members:
                return members[name]
        if "_buffers" in attributes:
            members = attributes["_buffers"]
            if name in members:
                return members[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def _forget(self, name: str, *holders: Any) -> None:
        # An attribute that changes its kind leaves its former holder.
        for holder in holders:
            if name in holder:
                if isinstance(holder, dict):
                    del holder[name]
                else:
                    holder.discard(name)

    def __setattr__(self, name: str, value: Any) -> None:
        attributes = self.__dict__
        params = attributes.get("_parameters")
        modules = attributes.get("_modules")
        # The isinstance on Tensor runs in C and spares plain values the Python-level check of Parameter's metaclass.
        is_tensor = isinstance(value, Tensor)
        if is_tensor and isinstance(value, Parameter):
            if params is None:
                raise AttributeError("cannot assign parameters before Module.__init__() call")
            self._forget(name, attributes, self._buffers, self._modules, self._non_persistent_buffers_set)
            self.register_parameter(name, value)
        elif params is not None and name in params:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{typename(value)}' as parameter '{name}' (torch.nn.Parameter or None expected)"
                )
            self.register_parameter(name, value)
        elif isinstance(value, Module):
            if modules is None:
                raise AttributeError("cannot assign module before Module.__init__() call")
            self._forget(name, attributes, self._parameters, self._buffers, self._non_persistent_buffers_set)
            modules[name] = self._run_module_registration_hooks(name, value)
        elif modules is not None and name in modules:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{typename(value)}' as child module '{name}' (torch.nn.Module or None expected)"
                )
            modules[name] = self._run_module_registration_hooks(name, value)
        else:
            buffers = attributes.get("_buffers")
            known = buffers is not None and name in buffers
            if known or (is_tensor and isinstance(value, Buffer)):
                self._set_buffer(name, value, known)
            else:
                super().__setattr__(name, value)
                if name in _CALL_ATTRIBUTES:
                    attributes["_hooked"] = True

    def _set_buffer(self, name: str, value: Any, known: bool) -> None:
        if value is not None and not (isinstance(value, Tensor) or hasattr(value, "__torch_function__")):
            raise TypeError(
                f"cannot assign '{typename(value)}' as buffer '{name}' (torch.nn.Buffer, torch.Tensor or None expected)"
            )
        if isinstance(value, Buffer):
            persistent = value.persistent
        else:
            persistent = not known or name not in self._non_persistent_buffers_set
        if getattr(self.register_buffer, "__func__", None) is not Module.register_buffer:
            import inspect

            # A subclass may have a register_buffer of the older signature, without persistent.
            if "persistent" not in inspect.signature(self.register_buffer).parameters:
                if not persistent:
                    raise RuntimeError(
                        "Registering a non-persistent buffer on a Module subclass that implements register_buffer() "
                        "without the persistent argument is not allowed."
                    )
                self.register_buffer(name, value)
                return
        self.register_buffer(name, value, persistent)

    def __delattr__(self, name: str) -> None:
        for members in (self._parameters, self._buffers, self._modules):
            if name in members:
                del members[name]
                self._non_persistent_buffers_set.discard(name)
                return
        super().__delattr__(name)

    def __dir__(self) -> list[str]:
        keys = [*dir(type(self)), *self.__dict__, *self._parameters, *self._modules, *self._buffers]
        return sorted(key for key in keys if not key[0].isdigit())

    @staticmethod
    def _state_for_files(state: dict[str, Any]) -> dict[str, Any]:
        """Return a module's state with every hook table: PyTorch, which reads the files too, wants them there."""
        tables: dict[str, Any] = {name: OrderedDict() for name in _hook_tables}
        return {"_is_full_backward_hook": None} | tables | state

    def __setstate__(self, state: dict[str, Any]) -> None:
        attributes = self.__dict__
        attributes.update(state)
        attributes.setdefault("_non_persistent_buffers_set", set())
        # Drop empty tables, so that a later registration finds none and raises the flag.
        for name, table in _hook_tables.items():
            if name in attributes:
                if not attributes[name]:
                    del attributes[name]
                elif table.seen_by_call:
                    attributes["_hooked"] = True
        if "_call_impl" in attributes:
            attributes["_hooked"] = True

    # --- state dicts (in _state_dict.py) ------------------------------------------------------------------------------

    state_dict = state_dict
    load_state_dict = load_state_dict
    _save_to_state_dict = save_to_state_dict
    _load_from_state_dict = _load_from_state_dict

    def get_extra_state(self) -> Any:
        """Return state to be saved beside parameters and buffers; override together with :meth:`set_extra_state`."""
        raise RuntimeError("Reached a code path in Module.get_extra_state() that should never be called.")

    def set_extra_state(self, state: Any) -> None:
        """Take back what :meth:`get_extra_state` returned; called by :meth:`load_state_dict`."""
        raise RuntimeError("Reached a code path in Module.set_extra_state() that should never be called.")

    def _register_state_dict_hook(self, hook: Any) -> RemovableHandle:
        """Register ``hook(module, state_dict, prefix, local_metadata) -> None or state_dict``."""
        if getattr(hook, "_from_public_api", False):
            raise RuntimeError(
                "Cannot register the same function as the state dict post hook that was previously registered via "
                "register_state_dict_post_hook"
            )
        return register_hook(self._state_dict_hooks, hook)

    def register_state_dict_post_hook(self, hook: Any) -> RemovableHandle:
        """Register ``hook(module, state_dict, prefix, local_metadata) -> None``, run after :meth:`state_dict`; it may
        change the dictionary in place."""
        hook._from_public_api = True
        return register_hook(self._state_dict_hooks, hook)

    def register_state_dict_pre_hook(self, hook: Any) -> RemovableHandle:
        """Register ``hook(module, prefix, keep_vars) -> None``, run before :meth:`state_dict`."""
        return register_hook(self._state_dict_pre_hooks, hook)

    def _register_load_state_dict_pre_hook(self, hook: Any, with_module: bool = False) -> RemovableHandle:
        return register_hook(self._load_state_dict_pre_hooks, _WrappedHook(hook, self if with_module else None))

    def register_load_state_dict_pre_hook(self, hook: Any) -> RemovableHandle:
        """Register ``hook(module, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys,
        error_msgs) -> None``, run before the module takes its own entries in :meth:`load_state_dict`."""
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def register_load_state_dict_post_hook(self, hook: Any) -> RemovableHandle:
        """Register ``hook(module, incompatible_keys) -> None``, run after the module and its children were loaded; it
        may change the two lists in place."""
        return register_hook(self._load_state_dict_post_hooks, hook)

    # --- walks ------------------------------------------------------------------------------------------------------

    def _named_members(
        self, get_members_fn: Any, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Any]]:
        seen = set()
        modules = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate) if recurse else [(prefix, self)]
        for module_prefix, module in modules:
            for name, member in get_members_fn(module):
                if member is None or member in seen:
                    continue
                if remove_duplicate:
                    seen.add(member)
                yield (f"{module_prefix}.{name}" if module_prefix else name), member

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """Iterate over the parameters, of children too if ``recurse``; shared ones come once."""
        for _, param in self.named_parameters(recurse=recurse):
            yield param

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """Iterate over ``(name, parameter)``; names of children's parameters hold the path, joined by dots.

        Args:
            prefix: put in front of all names.
            recurse: include the parameters of all submodules.
            remove_duplicate: give a shared parameter once, under its first name.
        """
        yield from self._named_members(lambda module: module._parameters.items(), prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """Iterate over the buffers, of children too if ``recurse``; shared ones come once."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """Iterate over ``(name, buffer)``, with the arguments of :meth:`named_parameters`."""
        yield from self._named_members(lambda module: module._buffers.items(), prefix, recurse, remove_duplicate)

    def children(self) -> Iterator[Module]:
        """Iterate over the direct submodules, each once."""
        for _, module in self.named_children():
            yield module

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """Iterate over ``(name, module)`` of the direct submodules, each once."""
        seen = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def modules(self, remove_duplicate: bool = True) -> Iterator[Module]:
        """Iterate over this module and all modules below it, each once unless ``remove_duplicate`` is false."""
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def named_modules(
        self, memo: set[Module] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """Iterate over ``(path, module)`` of this module and all below it.

        Args:
            memo: modules to leave out; those given are added.
            prefix: the path of this module.
            remove_duplicate: give a shared module once, under its first path.
        """
        if memo is None:
            memo = set()
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                yield from module.named_modules(memo, f"{prefix}.{name}" if prefix else name, remove_duplicate)

    def _get_member(self, target: str) -> tuple[Module, str, Any]:
        path, _, name = target.rpartition(".")
        owner = self.get_submodule(path)
        if not hasattr(owner, name):
            raise AttributeError(f"{owner._get_name()} has no attribute `{name}`")
        return owner, name, getattr(owner, name)

    def get_submodule(self, target: str) -> Module:
        """Return the submodule at the dotted path ``target``; the empty path is the module itself.

        Raises:
            AttributeError: the path does not exist or passes through something that is no module.
        """
        module: Any = self
        for name in target.split(".") if target else ():
            if not hasattr(module, name):
                raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
            module = getattr(module, name)
            if not isinstance(module, Module):
                raise AttributeError(f"`{name}` is not an nn.Module")
        return module

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Put ``module`` at the dotted path ``target``.

        Args:
            target: the path; all but its last part must exist.
            module: the new module.
            strict: only replace, do not add.

        Raises:
            ValueError: the path is empty, or ``module`` is no module.
            AttributeError: the path does not exist, or its last part names something that is no module.
        """
        if target == "":
            raise ValueError("Cannot set the submodule without a target name!")
        if not isinstance(module, Module):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
        path, _, name = target.rpartition(".")
        parent = self.get_submodule(path)
        if hasattr(parent, name):
            if not isinstance(getattr(parent, name), Module):
                raise AttributeError(f"`{name}` is not an nn.Module")
        elif strict:
            raise AttributeError(f"{parent._get_name()} has no attribute `{name}`")
        setattr(parent, name, module)

    def get_parameter(self, target: str) -> Parameter:
        """Return the parameter at the dotted path ``target``.

        Raises:
            AttributeError: the path does not exist or names something else.
        """
        _, name, param = self._get_member(target)
        if not isinstance(param, Parameter):
            raise AttributeError(f"`{name}` is not an nn.Parameter")
        return param

    def get_buffer(self, target: str) -> Tensor:
        """Return the buffer at the dotted path ``target``.

        Raises:
            AttributeError: the path does not exist or names something else.
        """
        owner, name, buffer = self._get_member(target)
        if name not in owner._buffers:
            raise AttributeError(f"`{name}` is not a buffer")
        return buffer

    # --- changes to all parameters ------------------------------------------------------------------------------------

    def _apply(self, fn: Callable[[Any], Any], recurse: bool = True) -> Self:
        if recurse:
            for module in self.children():
                module._apply(fn)
        for name, param in self._parameters.items():
            if param is None:
                continue
            with torch.no_grad():
                applied = fn(param)
            grad = param.grad
            if _can_take_data(param, applied):
                # The parameter keeps its identity, so that optimizers made before still hold it.
                param.data = applied
            else:
                param = self._parameters[name] = Parameter(applied, param.requires_grad)
            if grad is not None:
                with torch.no_grad():
                    grad_applied = fn(grad)
                if param.grad is not None and _can_take_data(grad, grad_applied):
                    param.grad.data = grad_applied
                else:
                    param.grad = grad_applied.requires_grad_(grad.requires_grad)
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    def apply(self, fn: Callable[[Module], None]) -> Self:
        """Call ``fn`` on every submodule, children first, and on the module itself; returns the module.

        Example::

            >>> net.apply(lambda m: nn.init.ones_(m.weight) if isinstance(m, nn.Linear) else None)
        """
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def cuda(self, device: Any = None) -> Self:
        """Move all parameters and buffers to a GPU, in place; returns the module."""
        return self._apply(lambda t: t.cuda(device))

    def cpu(self) -> Self:
        """Move all parameters and buffers to the CPU, in place; returns the module."""
        return self._apply(lambda t: t.cpu())

    def type(self, dst_type: Any) -> Self:
        """Cast all parameters and buffers to ``dst_type``, in place; returns the module."""
        return self._apply(lambda t: t.type(dst_type))

    def float(self) -> Self:
        """Cast all floating parameters and buffers to ``float32``, in place; returns the module."""
        return self._apply(lambda t: t.float() if t.is_floating_point() else t)

    def double(self) -> Self:
        """Cast all floating parameters and buffers to ``float64``, in place; returns the module."""
        return self._apply(lambda t: t.double() if t.is_floating_point() else t)

    def half(self) -> Self:
        """Cast all floating parameters and buffers to ``float16``, in place; returns the module."""
        return self._apply(lambda t: t.half() if t.is_floating_point() else t)

    def bfloat16(self) -> Self:
        """Cast all floating parameters and buffers to ``bfloat16``, in place; returns the module."""
        return self._apply(lambda t: t.bfloat16() if t.is_floating_point() else t)

    def share_memory(self) -> Self:
        """Move all parameters and buffers, in place, to where other processes can see them; returns the module.

        See :meth:`ptr.Tensor.share_memory_`.
        """
        return self._apply(lambda t: t.share_memory_())

    def to_empty(self, *, device: Any, recurse: bool = True) -> Self:
        """Give all parameters and buffers uninitialized memory on ``device``, in place; returns the module.

        Args:
            device: where the memory is; a module made on ``"meta"`` becomes usable this way.
            recurse: include submodules.
        """
        return self._apply(lambda t: torch.empty_like(t, device=device), recurse=recurse)

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Move and cast parameters and buffers, in place; returns the module.

        The forms are ``to(device=None, dtype=None, non_blocking=False)``, ``to(dtype, non_blocking=False)``,
        ``to(tensor, non_blocking=False)`` and ``to(memory_format=...)``. A dtype is applied to floating and complex
        tensors only; a memory format to those of four or five dimensions.

        Raises:
            TypeError: the dtype is neither floating nor complex.
            NotImplementedError: data would be copied out of a meta tensor (use :meth:`to_empty`).
        """
        device, dtype, non_blocking, memory_format = _parse_to(args, kwargs)
        if dtype is not None:
            if not (dtype.is_floating_point or dtype.is_complex):
                raise TypeError(
                    f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={dtype}"
                )
            if dtype.is_complex:
                warnings.warn(
                    "Complex modules are a new feature whose design may change, and some modules might not work as "
                    "expected when using complex tensors as parameters or buffers.",
                    stacklevel=2,
                )

        def convert(t: Any) -> Any:
            target = dtype if t.is_floating_point() or t.is_complex() else None
            try:
                if memory_format is not None and t.dim() in (4, 5):
                    return t.to(device, target, non_blocking, memory_format=memory_format)
                return t.to(device, target, non_blocking)
            except NotImplementedError as error:
                if "Cannot copy out of meta tensor" not in str(error):
                    raise
                raise NotImplementedError(
                    f"{error} Please use torch.nn.Module.to_empty() instead of torch.nn.Module.to() when moving module "
                    "from meta to a different device."
                ) from None

        return self._apply(convert)

    def train(self, mode: bool = True) -> Self:
        """Set training mode for the module and all below it; returns the module.

        Raises:
            ValueError: ``mode`` is no ``bool``.
        """
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self) -> Self:
        """Set evaluation mode, ``train(False)``; returns the module."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Set ``requires_grad`` of all parameters; returns the module."""
        for param in self.parameters():
            param.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Reset the gradients of all parameters, to ``None`` or (``set_to_none=False``) to zeros."""
        for param in self.parameters():
            grad = param.grad
            if grad is None:
                continue
            if set_to_none:
                param.grad = None
                continue
            if grad.grad_fn is not None:
                grad.detach_()
            else:
                grad.requires_grad_(False)
            grad.zero_()

    # --- printing ---------------------------------------------------------------------------------------------------

    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        """Return what :func:`repr` shows beside the children; may span lines."""
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr()
        extra_lines = extra.split("\n") if extra else []
        child_lines = [f"({name}): {_addindent(repr(module), 2)}" for name, module in self._modules.items()]
        if len(extra_lines) == 1 and not child_lines:
            return f"{self._get_name()}({extra_lines[0]})"
        lines = extra_lines + child_lines
        body = "\n  " + "\n  ".join(lines) + "\n" if lines else ""
        return f"{self._get_name()}({body})"


_hook_tables = {
    name: table for cls in (HookedCalls, Module) for name, table in vars(cls).items() if isinstance(table, _HookTable)
}


# Whatever of these an instance has of its own, its calls have to look at.
_CALL_ATTRIBUTES = frozenset({"_call_impl", *(name for name, table in _hook_tables.items() if table.seen_by_call)})


def _can_take_data(tensor: Any, data: Any) -> bool:
    """Whether ``tensor.data = data`` is possible: the two differ in nothing but sizes, dtype and which memory they
    use."""
    if tensor.layout != data.layout:
        return False
    ours, theirs = tensor.device.type, data.device.type
    return ours == theirs or {ours, theirs} <= {"cpu", "cuda"}


def _parse_to(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any, bool, Any]:
    """Sort the arguments of :meth:`Module.to` into device, dtype, non_blocking and memory format."""
    kwargs = dict(kwargs)
    memory_format = kwargs.pop("memory_format", None)
    names: tuple[str, ...]
    if (args and isinstance(args[0], Tensor)) or "tensor" in kwargs:
        names = ("tensor", "non_blocking", "copy")
    elif args and isinstance(args[0], torch.dtype):
        names = ("dtype", "non_blocking", "copy")
    else:
        names = ("device", "dtype", "non_blocking", "copy")
    if len(args) > len(names):
        raise TypeError(
            f"to() received an invalid combination of arguments: at most {len(names)} positional ones, got {len(args)}"
        )
    values = dict(zip(names, args, strict=False))
    for name, value in kwargs.items():
        if name not in names or name in values:
            raise TypeError(f"to() received an invalid combination of arguments: unexpected or repeated '{name}'")
        values[name] = value
    device, dtype = values.get("device"), values.get("dtype")
    if dtype is not None and not isinstance(dtype, torch.dtype):
        raise TypeError(f"to(): argument 'dtype' must be torch.dtype, not {typename(dtype)}")
    if "tensor" in values:
        device, dtype = values["tensor"].device, values["tensor"].dtype
    elif device is not None and not isinstance(device, torch.device):
        if not isinstance(device, (str, int)):
            raise TypeError(f"to(): argument 'device' must be torch.device, not {typename(device)}")
        device = torch.device(device)
    return device, dtype, bool(values.get("non_blocking", False)), memory_format
