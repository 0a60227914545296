"""Parametrizations: parameters and buffers that are computed, by modules, from others.

A module with a parametrized tensor gets a class of its own, with a property in the tensor's place. What the tensor is
computed from is in ``module.parametrizations.<name>``, as ``original`` or ``original0``, ``original1``, …
"""

from __future__ import annotations

import collections
import copy
from contextlib import contextmanager

import ptr as torch
from ptr.nn.modules.container import ModuleDict, ModuleList
from ptr.nn.modules.module import Module
from ptr.nn.parameter import Parameter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

__all__ = [
    "ParametrizationList",
    "cached",
    "is_parametrized",
    "register_parametrization",
    "remove_parametrizations",
    "transfer_parametrizations_and_params",
    "type_before_parametrizations",
]

_cache_enabled = 0
_cache: dict[tuple[int, str], torch.Tensor | None] = {}


@contextmanager
def cached() -> Iterator[None]:
    """Return a context in which each parametrized tensor is computed once, when it is first used.

    For models that use one several times, such as recurrent ones. After the context the tensors are forgotten.

    Example::

        >>> with parametrize.cached():
        ...     output = model(input)
    """
    global _cache_enabled, _cache
    _cache_enabled += 1
    try:
        yield
    finally:
        _cache_enabled -= 1
        if not _cache_enabled:
            _cache = {}


def _register(module: Module, name: str, tensor: torch.Tensor) -> None:
    if isinstance(tensor, Parameter):
        module.register_parameter(name, tensor)
    else:
        module.register_buffer(name, tensor)


def _set(tensor: torch.Tensor, value: torch.Tensor) -> None:
    """Give ``tensor`` the memory of ``value``. The object stays: optimizers hold it."""
    if tensor is not value:
        with torch.no_grad():
            tensor.set_(value)


_SEQUENCE_WANTED = "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "


def _inverse(modules: Any, value: Any, *, is_strict: bool) -> Any:
    """Go back through ``modules``; those without an inverse raise, or, unless ``is_strict``, count as the identity."""
    for module in reversed(modules):
        if hasattr(module, "right_inverse"):
            try:
                value = module.right_inverse(value)
            except NotImplementedError:
                if is_strict:
                    raise
        elif is_strict:
            raise RuntimeError(f"parametrization {type(module).__name__} does not implement right_inverse.")
    return value


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor, in the order in which they are applied, and what they start from.

    The one tensor that it starts from is ``original``; if the last ``right_inverse`` gives several, they are
    ``original0``, ``original1``, …

    Args:
        modules: the parametrizations.
        original: the tensor as it is.
        unsafe: do not check that shape and dtype stay. Default: ``False``.

    Raises:
        ValueError: there is no module, or what one returns does not fit.
    """

    original: torch.Tensor
    unsafe: bool

    def __init__(self, modules: Sequence[Module], original: torch.Tensor, unsafe: bool = False) -> None:
        if len(modules) == 0:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        shape, dtype = original.shape, original.dtype
        with torch.no_grad():
            start = _inverse(self, original, is_strict=False)
        if not isinstance(start, (torch.Tensor, collections.abc.Sequence)):
            raise ValueError(f"{_SEQUENCE_WANTED}Got {type(start).__name__}")
        self.is_tensor = isinstance(start, torch.Tensor)
        self.ntensors = 1 if self.is_tensor else len(start)
        if self.is_tensor:
            if original.dtype != start.dtype:
                raise ValueError(
                    "When `right_inverse` outputs one tensor, it may not change the dtype.\n"
                    f"original.dtype: {original.dtype}\n"
                    f"right_inverse(original).dtype: {start.dtype}"
                )
            if original.device != start.device:
                raise ValueError(
                    "When `right_inverse` outputs one tensor, it may not change the device.\n"
                    f"original.device: {original.device}\n"
                    f"right_inverse(original).device: {start.device}"
                )
            _set(original, start)
            _register(self, "original", original)
        else:
            self._register_sequence(start, original)
        if not unsafe:
            self._check(shape, dtype)

    def _register_sequence(self, start: Sequence[Any], original: torch.Tensor) -> None:
        for i, tensor in enumerate(start):
            if not isinstance(tensor, torch.Tensor):
                raise ValueError(
                    f"{_SEQUENCE_WANTED}Got element {i} of the sequence with type {type(tensor).__name__}."
                )
            if isinstance(original, Parameter):
                tensor = Parameter(tensor, original.requires_grad)
            tensor.requires_grad_(original.requires_grad)
            _register(self, f"original{i}", tensor)

    def _check(self, shape: Any, dtype: Any) -> None:
        result = self()
        if not isinstance(result, torch.Tensor):
            raise ValueError(f"A parametrization must return a tensor. Got {type(result).__name__}.")
        for what, before, after in (("dtype", dtype, result.dtype), ("shape", shape, result.shape)):
            if before != after:
                raise ValueError(
                    f"Registering a parametrization may not change the {what} of the tensor, unless `unsafe` flag is "
                    f"enabled.\nunparametrized {what}: {before}\nparametrized {what}: {after}"
                )

    def right_inverse(self, value: torch.Tensor) -> None:
        """Assign to the parametrized tensor: set the originals so that it becomes ``value``, as far as the
        parametrizations' own inverses do that.

        Args:
            value: the new value.

        Raises:
            RuntimeError: a parametrization has no ``right_inverse``.
            ValueError: what one returns does not fit the originals.
        """
        with torch.no_grad():
            result = _inverse(self, value, is_strict=True)
        if self.is_tensor:
            if not isinstance(result, torch.Tensor):
                raise ValueError(f"`right_inverse` should return a tensor. Got {type(result).__name__}")
            if result.dtype != self.original.dtype:
                raise ValueError(
                    f"The tensor returned by `right_inverse` has dtype {result.dtype} while `original` has dtype "
                    f"{self.original.dtype}"
                )
            _set(self.original, result)
            return
        if not isinstance(result, collections.abc.Sequence):
            raise ValueError(f"'right_inverse' must return a sequence of tensors. Got {type(result).__name__}.")
        if len(result) != self.ntensors:
            raise ValueError(
                f"'right_inverse' must return a sequence of tensors of length {self.ntensors}. Got a sequence of "
                f"length {len(result)}."
            )
        for i, tensor in enumerate(result):
            original = getattr(self, f"original{i}")
            if not isinstance(tensor, torch.Tensor):
                raise ValueError(
                    f"`right_inverse` must return a sequence of tensors. Got element {i} of type {type(tensor)}"
                )
            if original.dtype != tensor.dtype:
                raise ValueError(
                    f"Tensor {i} returned by `right_inverse` has dtype {tensor.dtype} while `original{i}` has dtype "
                    f"{original.dtype}"
                )
            _set(original, tensor)

    def forward(self) -> torch.Tensor:
        """Compute the tensor."""
        first, *others = self
        if self.is_tensor:
            result = first(self.original)
        else:
            result = first(*(getattr(self, f"original{i}") for i in range(self.ntensors)))
        for module in others:
            result = module(result)
        return result


def _refuse_pickling(self: Any) -> Any:
    raise RuntimeError(
        "Serialization of parametrized modules is only supported through state_dict(). See:\n"
        "https://pytorch.org/tutorials/beginner/saving_loading_models.html"
        "#saving-loading-a-general-checkpoint-for-inference-and-or-resuming-training"
    )


def _deepcopy(self: Any, memo: dict[int, Any]) -> Any:
    known = memo.get(id(self))
    if known is not None:
        return known
    replica = self.__new__(self.__class__)
    memo[id(self)] = replica
    replica.__dict__ = copy.deepcopy(self.__dict__, memo)
    # Properties are the class's, and which the class has is the instance's matter.
    _inject_new_class(replica, type_before_parametrizations(self))
    for name in replica.parametrizations:
        _inject_property(replica, name)
    return replica


def _inject_new_class(module: Module, cls: type) -> None:
    """Give ``module`` a subclass of ``cls`` of its own, which can have properties."""
    namespace: dict[str, Any] = {"__getstate__": _refuse_pickling}
    # Copies are made without what pickling refuses.
    if not hasattr(cls, "__deepcopy__"):
        namespace["__deepcopy__"] = _deepcopy
    module.__class__ = type(f"Parametrized{cls.__name__}", (cls,), namespace)


def _inject_property(module: Module, tensor_name: str) -> None:
    def get(self: Any) -> torch.Tensor:
        if not _cache_enabled:
            return self.parametrizations[tensor_name]()
        key = (id(self), tensor_name)
        tensor = _cache.get(key)
        if tensor is None:
            tensor = _cache[key] = self.parametrizations[tensor_name]()
        return tensor

    def set_original(self: Any, value: torch.Tensor) -> None:
        self.parametrizations[tensor_name].right_inverse(value)

    setattr(module.__class__, tensor_name, property(get, set_original))


def _check_further(module: Module, tensor_name: str, parametrization: Module) -> None:
    """Check a parametrization on top of others, before it is added."""
    current = getattr(module, tensor_name)
    result = parametrization(current)
    if not isinstance(result, torch.Tensor):
        raise ValueError(f"A parametrization must return a tensor. Got {type(result).__name__}.")
    for what in ("dtype", "shape"):
        before, after = getattr(current, what), getattr(result, what)
        if before != after:
            raise ValueError(
                f"Registering a parametrization may not change the {what} of the tensor, unless the `unsafe` flag is "
                f"enabled.\nmodule.{tensor_name}.{what}: {before}\n"
                f"parametrization(module.{tensor_name}).{what}: {after}"
            )
    if not hasattr(parametrization, "right_inverse"):
        return
    try:
        inverse = parametrization.right_inverse(result)
    except NotImplementedError:
        return
    if not isinstance(inverse, torch.Tensor):
        raise ValueError(f"parametrization.right_inverse must return a tensor. Got: {type(inverse).__name__}")
    for what in ("dtype", "shape"):
        before, after = getattr(current, what), getattr(inverse, what)
        if before != after:
            raise ValueError(
                f"The tensor returned by parametrization.right_inverse must have the same {what} as "
                f"module.{tensor_name}, unless the `unsafe` flag is enabled.\nmodule.{tensor_name}.{what}: {before}\n"
                f"returned {what}: {after}"
            )


def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module:
    """Let ``module.<tensor_name>`` be what ``parametrization`` computes from it, each time it is used.

    Assigning to it goes through ``parametrization.right_inverse``, which also makes the first original of the present
    value and may return several tensors. Further parametrizations of a tensor are applied to what the ones before give.

    Args:
        module: the module.
        tensor_name: the name of a parameter or buffer.
        parametrization: a module from tensors to one tensor.
        unsafe: do not check that shape and dtype stay. Default: ``False``.

    Returns:
        ``module``.

    Raises:
        ValueError: there is no such tensor, or the parametrization changes shape or dtype.

    Example::

        >>> class Symmetric(nn.Module):
        ...     def forward(self, x):
        ...         return x.triu() + x.triu(1).T
        ...     def right_inverse(self, a):
        ...         return a.triu()
        >>> layer = parametrize.register_parametrization(nn.Linear(5, 5), "weight", Symmetric())
        >>> torch.equal(layer.weight, layer.weight.T)
        True
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        if not unsafe:
            _check_further(module, tensor_name, parametrization)
        parametrizations = module.parametrizations[tensor_name]
        parametrizations.append(parametrization)
        # Who has changed the shape once may go on doing so.
        parametrizations.unsafe |= unsafe
    elif tensor_name in module._buffers or tensor_name in module._parameters:
        parametrizations = ParametrizationList([parametrization], getattr(module, tensor_name), unsafe=unsafe)
        delattr(module, tensor_name)
        if not is_parametrized(module):
            _inject_new_class(module, type(module))
            module.parametrizations = ModuleDict()
        _inject_property(module, tensor_name)
        module.parametrizations[tensor_name] = parametrizations
    else:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element with name "
            f"'{tensor_name}'"
        )
    return module


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Return whether ``module`` has parametrized tensors, or the one of the given name is.

    Args:
        module: the module.
        tensor_name: the name of a tensor. Default: any.
    """
    parametrizations = getattr(module, "parametrizations", None)
    if not isinstance(parametrizations, ModuleDict):
        return False
    return len(parametrizations) > 0 if tensor_name is None else tensor_name in parametrizations


def remove_parametrizations(module: Module, tensor_name: str, leave_parametrized: bool = True) -> Module:
    """Make ``module.<tensor_name>`` a plain parameter or buffer again.

    Args:
        module: the module.
        tensor_name: the name of a parametrized tensor.
        leave_parametrized: keep the computed value; otherwise the original one, if it is one tensor. Default: ``True``.

    Returns:
        ``module``.

    Raises:
        ValueError: the tensor is not parametrized, or there are several originals to return to.
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    parametrizations = module.parametrizations[tensor_name]
    if parametrizations.is_tensor:
        original = parametrizations.original
        if leave_parametrized:
            with torch.no_grad():
                value = getattr(module, tensor_name)
            _set(original, value)
    elif leave_parametrized:
        value = getattr(module, tensor_name)
        original = Parameter(value) if value.requires_grad else value
    else:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is parametrized in terms of a "
            "sequence of tensors."
        )
    delattr(module.__class__, tensor_name)
    del module.parametrizations[tensor_name]
    _register(module, tensor_name, original)
    if not is_parametrized(module):
        delattr(module, "parametrizations")
        module.__class__ = module.__class__.__bases__[0]
    return module


def type_before_parametrizations(module: Module) -> type:
    """Return the class that ``module`` had before tensors of it were parametrized.

    Args:
        module: the module.
    """
    return module.__class__.__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(
    from_module: Module, to_module: Module, tensor_name: str | None = None
) -> Module:
    """Parametrize ``to_module`` with the parametrizations and originals of ``from_module``.

    Args:
        from_module: where they come from.
        to_module: where they go; missing tensors are made.
        tensor_name: the one tensor that is meant. Default: all.

    Returns:
        ``to_module``.
    """
    if not is_parametrized(from_module):
        return to_module
    for name in list(from_module.parametrizations) if tensor_name is None else [tensor_name]:
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name)))
        source = from_module.parametrizations[name]
        for parametrization in source:
            register_parametrization(to_module, name, parametrization)
        target = to_module.parametrizations[name]
        for original in ["original"] if source.is_tensor else [f"original{i}" for i in range(source.ntensors)]:
            setattr(target, original, getattr(source, original))
    return to_module
