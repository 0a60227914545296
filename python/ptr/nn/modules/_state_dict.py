"""Saving and loading of a module's state: the methods of :class:`~ptr.nn.Module` that deal with state dicts."""

from __future__ import annotations

import warnings
from collections import OrderedDict, namedtuple
from collections.abc import Mapping

import ptr as torch
from ptr.nn.parameter import Parameter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_EXTRA_STATE_KEY_SUFFIX = "_extra_state"


class _IncompatibleKeys(namedtuple("IncompatibleKeys", ["missing_keys", "unexpected_keys"])):
    """What :meth:`Module.load_state_dict` returns: two lists of keys."""

    __slots__ = ()

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return super().__repr__()

    __str__ = __repr__


_base: Any = None


def _overrides(module: Any, method: str) -> bool:
    global _base
    if _base is None:
        # Late, because `Module` is made of the functions here; once, because an import costs as much as the rest.
        from ptr.nn.modules.module import Module as _base
    return getattr(type(module), method, None) is not getattr(_base, method)


def state_dict(self: Any, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False) -> Any:
    """Return a dictionary of all parameters, persistent buffers and extra state, children's included.

    Args:
        destination: a dictionary to fill and return instead of a new one.
        prefix: put in front of all keys.
        keep_vars: keep the graph of the values; by default they are detached. They share memory with the module either
            way.

    Returns:
        an ordered dictionary whose attribute ``_metadata`` holds each module's version.

    Example::

        >>> list(nn.Linear(2, 3).state_dict())
        ['weight', 'bias']
    """
    if args:
        warnings.warn(
            "Positional args are being deprecated, use kwargs instead: state_dict(destination=..., prefix=..., "
            "keep_vars=...)",
            FutureWarning,
            stacklevel=2,
        )
        if destination is None:
            destination = args[0]
        if len(args) > 1 and prefix == "":
            prefix = args[1]
        if len(args) > 2 and keep_vars is False:
            keep_vars = args[2]
    if destination is None:
        destination = OrderedDict()
        destination._metadata = OrderedDict()
    local_metadata = {"version": self._version}
    if hasattr(destination, "_metadata"):
        destination._metadata[prefix[:-1]] = local_metadata

    for hook in self._state_dict_pre_hooks.values():
        hook(self, prefix, keep_vars)
    self._save_to_state_dict(destination, prefix, keep_vars)
    for name, module in self._modules.items():
        if module is not None:
            module.state_dict(destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
    for hook in self._state_dict_hooks.values():
        replaced = hook(self, destination, prefix, local_metadata)
        if replaced is None:
            continue
        if getattr(hook, "_from_public_api", False):
            raise RuntimeError("state_dict post-hook must return None")
        destination = replaced
    return destination


def save_to_state_dict(self: Any, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
    """Put the module's own state, not that of its children, into ``destination``; subclasses may add to it."""
    for name, param in self._parameters.items():
        if param is not None:
            destination[prefix + name] = param if keep_vars else param.detach()
    for name, buffer in self._buffers.items():
        if buffer is not None and name not in self._non_persistent_buffers_set:
            destination[prefix + name] = buffer if keep_vars else buffer.detach()
    if _overrides(self, "get_extra_state"):
        destination[prefix + _EXTRA_STATE_KEY_SUFFIX] = self.get_extra_state()


def load_state_dict(
    self: Any, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
) -> _IncompatibleKeys:
    """Copy parameters and buffers from ``state_dict`` into the module and all modules below it.

    Args:
        state_dict: names and tensors, as returned by :meth:`state_dict`.
        strict: raise if the names are not exactly those of this module.
        assign: put the given tensors in the place of the module's, keeping their dtype and device, instead of copying
            into them. The module's ``requires_grad`` is kept.

    Returns:
        a named tuple with the lists ``missing_keys`` and ``unexpected_keys``.

    Raises:
        TypeError: ``state_dict`` is no mapping.
        RuntimeError: a tensor does not fit, or (if ``strict``) names are missing or unexpected; lists all of them.
    """
    if not isinstance(state_dict, Mapping):
        raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
    missing_keys: list[str] = []
    unexpected_keys: list[str] = []
    error_msgs: list[str] = []
    metadata = getattr(state_dict, "_metadata", None)
    # A copy: hooks may change entries.
    copied: Any = OrderedDict(state_dict)
    if metadata is not None:
        copied._metadata = metadata

    def load(module: Any, local: Any, prefix: str) -> None:
        local_metadata = {} if metadata is None else metadata.get(prefix[:-1], {})
        if assign:
            local_metadata["assign_to_params_buffers"] = assign
        module._load_from_state_dict(local, prefix, local_metadata, True, missing_keys, unexpected_keys, error_msgs)
        for name, child in module._modules.items():
            if child is not None:
                child_prefix = f"{prefix}{name}."
                load(child, {k: v for k, v in local.items() if k.startswith(child_prefix)}, child_prefix)
        incompatible = _IncompatibleKeys(missing_keys, unexpected_keys)
        for hook in module._load_state_dict_post_hooks.values():
            if hook(module, incompatible) is not None:
                raise AssertionError(
                    "Hooks registered with ``register_load_state_dict_post_hook`` are not expected to return new "
                    "values; modify incompatible_keys in place instead."
                )

    load(self, copied, "")

    if strict:
        for kind, keys in (("Unexpected", unexpected_keys), ("Missing", missing_keys)):
            if keys:
                listed = ", ".join(f'"{key}"' for key in keys)
                error_msgs.insert(0, f"{kind} key(s) in state_dict: {listed}. ")
    if error_msgs:
        joined = "\n\t".join(error_msgs)
        raise RuntimeError(f"Error(s) in loading state_dict for {type(self).__name__}:\n\t{joined}")
    return _IncompatibleKeys(missing_keys, unexpected_keys)


def _load_from_state_dict(
    self: Any,
    state_dict: dict[str, Any],
    prefix: str,
    local_metadata: dict[str, Any],
    strict: bool,
    missing_keys: list[str],
    unexpected_keys: list[str],
    error_msgs: list[str],
) -> None:
    """Take the module's own entries, not those of its children; subclasses may override it to convert older state
    dicts.

    Problems are appended to the three lists; nothing is raised here.
    """
    for hook in self._load_state_dict_pre_hooks.values():
        hook(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)

    assign = local_metadata.get("assign_to_params_buffers", False)
    own = {name: param for name, param in self._parameters.items() if param is not None}
    for name, buffer in self._buffers.items():
        if buffer is not None and name not in self._non_persistent_buffers_set:
            own[name] = buffer

    for name, param in own.items():
        key = prefix + name
        if key in state_dict:
            error = _load_entry(self, name, key, param, state_dict[key], assign)
            if error:
                error_msgs.append(error)
        elif strict:
            missing_keys.append(key)

    extra_key = prefix + _EXTRA_STATE_KEY_SUFFIX
    takes_extra = _overrides(self, "set_extra_state")
    if takes_extra and extra_key in state_dict:
        self.set_extra_state(state_dict[extra_key])
    elif takes_extra and strict:
        missing_keys.append(extra_key)
    elif strict and extra_key in state_dict:
        unexpected_keys.append(extra_key)

    if strict:
        for key in state_dict:
            if key.startswith(prefix) and key != extra_key:
                first, dot, _ = key[len(prefix) :].partition(".")
                if first not in (self._modules if dot else own):
                    unexpected_keys.append(key)


def _load_entry(module: Any, name: str, key: str, param: Any, value: Any, assign: bool) -> str | None:
    if not (isinstance(value, torch.Tensor) or hasattr(value, "__torch_function__")):
        return (
            f'While copying the parameter named "{key}", expected torch.Tensor or Tensor-like object from checkpoint '
            f"but received {type(value)}"
        )
    if param.dim() == 0 and tuple(value.shape) == (1,):
        # Files of torch 0.3 hold scalars as vectors of one element.
        value = value[0]
    if value.shape != param.shape:
        return (
            f"size mismatch for {key}: copying a param with shape {value.shape} from checkpoint, the shape in current "
            f"model is {param.shape}."
        )
    if param.is_meta and not value.is_meta and not assign:
        warnings.warn(
            f"for {key}: copying from a non-meta parameter in the checkpoint to a meta parameter in the current model, "
            "which is a no-op. (Did you mean to pass `assign=True` to put the tensors of the state dictionary in their "
            "place?)",
            stacklevel=4,
        )
    try:
        with torch.no_grad():
            if not assign:
                param.copy_(value)
                return None
            if isinstance(param, Parameter):
                if isinstance(value, Parameter):
                    value.requires_grad_(param.requires_grad)
                else:
                    value = Parameter(value, requires_grad=param.requires_grad)
            setattr(module, name, value)
            return None
    except Exception as error:  # Whatever went wrong is reported together with all other problems.
        return (
            f'While copying the parameter named "{key}", whose dimensions in the model are {param.size()} and whose '
            f"dimensions in the checkpoint are {value.size()}, an exception occurred : {error.args}."
        )
