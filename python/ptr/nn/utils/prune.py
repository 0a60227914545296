"""Pruning: parameters some of whose elements are held at zero by a mask.

A pruned tensor ``weight`` is kept as the parameter ``weight_orig`` and the buffer ``weight_mask``; before each call of
the module a hook makes ``weight`` their product.
"""

from __future__ import annotations

import numbers
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any

import ptr as torch

__all__ = [
    "BasePruningMethod",
    "CustomFromMask",
    "Identity",
    "L1Unstructured",
    "LnStructured",
    "PruningContainer",
    "RandomStructured",
    "RandomUnstructured",
    "custom_from_mask",
    "global_unstructured",
    "identity",
    "is_pruned",
    "l1_unstructured",
    "ln_structured",
    "random_structured",
    "random_unstructured",
    "remove",
]


# ---- what methods have in common


class BasePruningMethod(ABC):
    """A way to choose what is pruned, and the hook that applies it. A subclass defines :meth:`compute_mask` and
    ``PRUNING_TYPE``: ``"unstructured"``, ``"structured"`` (whole slices of a ``dim``) or ``"global"``."""

    PRUNING_TYPE: str
    _tensor_name: str

    def __call__(self, module: Any, inputs: Any) -> None:
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t: torch.Tensor, default_mask: torch.Tensor) -> torch.Tensor:
        """Return the mask: zeros where something is pruned.

        Args:
            t: the tensor, or how important its elements are.
            default_mask: the mask so far.
        """

    def apply_mask(self, module: Any) -> torch.Tensor:
        """Return the pruned tensor of ``module``."""
        mask, original = getattr(module, f"{self._tensor_name}_mask"), getattr(module, f"{self._tensor_name}_orig")
        return mask.to(dtype=original.dtype) * original

    @classmethod
    def apply(
        cls, module: Any, name: str, *args: Any, importance_scores: torch.Tensor | None = None, **kwargs: Any
    ) -> BasePruningMethod:
        """Prune a tensor of a module, further if it is pruned already.

        Args:
            module: the module; changed in place.
            name: the name of the parameter.
            args, kwargs: what the method is made with.
            importance_scores: how important the elements are. Default: the parameter itself.

        Returns:
            the hook.
        """
        method: BasePruningMethod = cls(*args, **kwargs)
        method._tensor_name = name
        previous = _take_hook(module, name)
        original = getattr(module, name)
        if importance_scores is not None and importance_scores.shape != original.shape:
            if previous is not None:
                module.register_forward_pre_hook(previous)
            raise AssertionError(
                f"importance_scores should have the same shape as parameter {name} of {module}, got "
                f"{importance_scores.shape} vs {original.shape}"
            )
        scores = original if importance_scores is None else importance_scores
        if previous is None:
            default_mask = torch.ones_like(original)
        else:
            container = previous if isinstance(previous, PruningContainer) else PruningContainer(previous)
            container.add_pruning_method(method)
            method = container
            default_mask = getattr(module, f"{name}_mask").detach().clone(memory_format=torch.contiguous_format)
        # Before anything changes: a method that refuses leaves the module as it was.
        try:
            with torch.no_grad():
                mask = method.compute_mask(scores, default_mask)
        except BaseException:
            if previous is not None:
                if previous is method:
                    previous._pruning_methods = previous._pruning_methods[:-1]
                module.register_forward_pre_hook(previous)
            raise
        if previous is None:
            module.register_parameter(f"{name}_orig", original)
            del module._parameters[name]
        module.register_buffer(f"{name}_mask", mask)
        setattr(module, name, method.apply_mask(module))
        module.register_forward_pre_hook(method)
        return method

    def prune(
        self,
        t: torch.Tensor,
        default_mask: torch.Tensor | None = None,
        importance_scores: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Return a pruned copy of a tensor.

        Args:
            t: the tensor.
            default_mask: a mask to start from. Default: nothing is pruned.
            importance_scores: how important the elements are. Default: the tensor itself.
        """
        if importance_scores is not None and importance_scores.shape != t.shape:
            raise AssertionError(
                f"importance_scores should have the same shape as tensor t, got {importance_scores.shape} vs {t.shape}"
            )
        scores = t if importance_scores is None else importance_scores
        return t * self.compute_mask(scores, torch.ones_like(t) if default_mask is None else default_mask)

    def remove(self, module: Any) -> None:
        """Make the pruned tensor of ``module`` a plain parameter again; what is pruned stays zero."""
        name = self._tensor_name
        pruned = self.apply_mask(module)
        if hasattr(module, name):
            delattr(module, name)
        original = module._parameters.pop(f"{name}_orig")
        original.data = pruned.data
        del module._buffers[f"{name}_mask"]
        setattr(module, name, original)


def _hooks(module: Any, name: str) -> list[tuple[int, BasePruningMethod]]:
    return [
        (key, hook)
        for key, hook in module._forward_pre_hooks.items()
        if isinstance(hook, BasePruningMethod) and hook._tensor_name == name
    ]


def _take_hook(module: Any, name: str) -> Any:
    """Remove the hook that prunes a tensor, and return it."""
    hooks = _hooks(module, name)
    if len(hooks) > 1:
        raise AssertionError(
            f"Avoid adding multiple pruning hooks to the same tensor {name} of module {module}. Use a PruningContainer."
        )
    if not hooks:
        return None
    ((key, hook),) = hooks
    del module._forward_pre_hooks[key]
    return hook


class PruningContainer(BasePruningMethod):
    """Methods that are applied one after the other, each to what the ones before have left.

    Args:
        *args: the methods, for one tensor.
    """

    def __init__(self, *args: BasePruningMethod) -> None:
        self._pruning_methods: tuple[BasePruningMethod, ...] = ()
        if args:
            self._tensor_name = args[0]._tensor_name
        for method in args:
            self.add_pruning_method(method)

    def add_pruning_method(self, method: BasePruningMethod | None) -> None:
        """Add a method.

        Args:
            method: a method for the same tensor.

        Raises:
            TypeError: it is no method.
            ValueError: it is for another tensor.
        """
        if method is None:
            return
        if not isinstance(method, BasePruningMethod):
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        if self._tensor_name != method._tensor_name:
            raise ValueError(
                f"Can only add pruning methods acting on the parameter named '{self._tensor_name}' to PruningContainer "
                f"{self}. Found '{method._tensor_name}'"
            )
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Iterator[BasePruningMethod]:
        return iter(self._pruning_methods)

    def __getitem__(self, idx: Any) -> Any:
        return self._pruning_methods[idx]

    def compute_mask(self, t: torch.Tensor, default_mask: torch.Tensor) -> torch.Tensor:
        """Return ``default_mask`` with what the last method prunes of the rest."""
        method = self._pruning_methods[-1]
        mask = default_mask.to(dtype=t.dtype)
        rest = _rest(method, mask)
        combined = mask.clone()
        combined[rest] = method.compute_mask(t[rest], default_mask=mask[rest]).to(dtype=combined.dtype)
        return combined


def _rest(method: Any, mask: torch.Tensor) -> Any:
    """The index of what is not pruned, as far as the kind of a method looks at it."""
    kind = method.PRUNING_TYPE
    if kind == "unstructured":
        return mask == 1
    if kind == "global":
        return (slice(None),) * mask.dim()
    if kind != "structured":
        raise AttributeError(f"PruningContainer cannot combine methods of PRUNING_TYPE {kind}")
    dim = method.dim % mask.dim()
    others = [d for d in range(mask.dim()) if d != dim]
    return tuple(mask.sum(dim=others) != 0 if d == dim else slice(None) for d in range(mask.dim()))


# ---- amounts


def _validate_pruning_amount_init(amount: Any) -> None:
    if not isinstance(amount, numbers.Real):
        raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
    if amount < 0 or (not isinstance(amount, numbers.Integral) and amount > 1):
        raise ValueError(f"amount={amount} should either be a float in the range [0, 1] or a non-negative integer")


def _compute_nparams_toprune(amount: Any, tensor_size: int) -> int:
    """Return how many of ``tensor_size`` are meant by a number or fraction."""
    if not isinstance(amount, numbers.Integral):
        return round(amount * tensor_size)
    if amount > tensor_size:
        raise ValueError(f"amount={amount} should be smaller than the number of parameters to prune={tensor_size}")
    return int(amount)


def _validate_structured(t: torch.Tensor, dim: int) -> None:
    if t.dim() <= 1:
        raise ValueError(
            "Structured pruning can only be applied to multidimensional tensors. Found tensor of shape "
            f"{t.shape} with {t.dim()} dims"
        )
    if dim >= t.dim() or dim < -t.dim():
        raise IndexError(f"Invalid index {dim} for tensor of size {t.shape}")


def _without_channels(t: torch.Tensor, default_mask: torch.Tensor, dim: int, kept: torch.Tensor) -> torch.Tensor:
    """``default_mask``, with zeros but for the slices ``kept`` of a dimension."""
    mask = torch.zeros_like(t)
    mask[tuple(kept if d == dim % t.dim() else slice(None) for d in range(t.dim()))] = 1
    return mask.mul_(default_mask.to(dtype=mask.dtype))


def _without_elements(default_mask: torch.Tensor, pruned: torch.Tensor) -> torch.Tensor:
    mask = default_mask.clone(memory_format=torch.contiguous_format)
    mask.view(-1)[pruned] = 0
    return mask


# ---- the methods


class Identity(BasePruningMethod):
    """Prunes nothing: for tensors that only get the names of pruned ones."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: torch.Tensor, default_mask: torch.Tensor) -> torch.Tensor:
        """Return ``default_mask``."""
        return default_mask

    @classmethod
    def apply(cls, module: Any, name: str) -> BasePruningMethod:  # type: ignore[override]
        """Give a tensor of ``module`` a mask of ones."""
        return super().apply(module, name)


class _Amount(BasePruningMethod):
    """A method that prunes an amount.

    Args:
        amount: how many, as a number, or a fraction from 0.0 to 1.0.
    """

    def __init__(self, amount: float) -> None:
        _validate_pruning_amount_init(amount)
        self.amount = amount


class RandomUnstructured(_Amount):
    """Prunes elements at random.

    Args:
        amount: how many, as a number, or a fraction from 0.0 to 1.0.
    """

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: torch.Tensor, default_mask: torch.Tensor) -> torch.Tensor:
        """Return the mask."""
        count = _compute_nparams_toprune(self.amount, t.numel())
        if count == 0:
            return default_mask.clone(memory_format=torch.contiguous_format)
        return _without_elements(default_mask, torch.topk(torch.rand_like(t).view(-1), k=count).indices)

    @classmethod
    def apply(cls, module: Any, name: str, amount: float) -> BasePruningMethod:  # type: ignore[override]
        """Prune a tensor of ``module``."""
        return super().apply(module, name, amount=amount)


class L1Unstructured(_Amount):
    """Prunes the elements nearest to zero.

    Args:
        amount: how many, as a number, or a fraction from 0.0 to 1.0.
    """

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: torch.Tensor, default_mask: torch.Tensor) -> torch.Tensor:
        """Return the mask."""
        count = _compute_nparams_toprune(self.amount, t.numel())
        if count == 0:
            return default_mask.clone(memory_format=torch.contiguous_format)
        return _without_elements(default_mask, torch.topk(t.abs().reshape(-1), k=count, largest=False).indices)

    @classmethod
    def apply(  # type: ignore[override]
        cls, module: Any, name: str, amount: float, importance_scores: torch.Tensor | None = None
    ) -> BasePruningMethod:
        """Prune a tensor of ``module``."""
        return super().apply(module, name, amount=amount, importance_scores=importance_scores)


class RandomStructured(_Amount):
    """Prunes slices at random.

    Args:
        amount: how many, as a number, or a fraction from 0.0 to 1.0.
        dim: the dimension whose slices are pruned. Default: the last.
    """

    PRUNING_TYPE = "structured"

    def __init__(self, amount: float, dim: int = -1) -> None:
        super().__init__(amount)
        self.dim = dim

    def compute_mask(self, t: torch.Tensor, default_mask: torch.Tensor) -> torch.Tensor:
        """Return the mask."""
        _validate_structured(t, self.dim)
        channels = t.shape[self.dim]
        count = _compute_nparams_toprune(self.amount, channels)
        if count == 0:
            return default_mask
        chance = torch.rand(channels)
        kept = chance > torch.kthvalue(chance, k=count).values
        return _without_channels(t, default_mask, self.dim, kept)

    @classmethod
    def apply(cls, module: Any, name: str, amount: float, dim: int = -1) -> BasePruningMethod:  # type: ignore[override]
        """Prune a tensor of ``module``."""
        return super().apply(module, name, amount=amount, dim=dim)


class LnStructured(_Amount):
    """Prunes the slices with the least norms.

    Args:
        amount: how many, as a number, or a fraction from 0.0 to 1.0.
        n: the order of the norm, as for :func:`ptr.norm`.
        dim: the dimension whose slices are pruned. Default: the last.
    """

    PRUNING_TYPE = "structured"

    def __init__(self, amount: float, n: Any, dim: int = -1) -> None:
        super().__init__(amount)
        self.n = n
        self.dim = dim

    def compute_mask(self, t: torch.Tensor, default_mask: torch.Tensor) -> torch.Tensor:
        """Return the mask."""
        _validate_structured(t, self.dim)
        channels = t.shape[self.dim]
        count = _compute_nparams_toprune(self.amount, channels)
        if count == 0:
            return default_mask
        others = [d for d in range(t.dim()) if d != self.dim % t.dim()]
        kept = torch.topk(torch.norm(t, p=self.n, dim=others), k=channels - count, largest=True).indices
        return _without_channels(t, default_mask, self.dim, kept)

    @classmethod
    def apply(  # type: ignore[override]
        cls, module: Any, name: str, amount: float, n: Any, dim: int, importance_scores: torch.Tensor | None = None
    ) -> BasePruningMethod:
        """Prune a tensor of ``module``."""
        return super().apply(module, name, amount=amount, n=n, dim=dim, importance_scores=importance_scores)


class CustomFromMask(BasePruningMethod):
    """Prunes what a given mask says.

    Args:
        mask: the mask.
    """

    PRUNING_TYPE = "global"

    def __init__(self, mask: torch.Tensor) -> None:
        self.mask = mask

    def compute_mask(self, t: torch.Tensor, default_mask: torch.Tensor) -> torch.Tensor:
        """Return the mask."""
        if default_mask.shape != self.mask.shape:
            raise AssertionError(
                f"default_mask shape {default_mask.shape} must match self.mask shape {self.mask.shape}"
            )
        return default_mask * self.mask.to(dtype=default_mask.dtype)

    @classmethod
    def apply(cls, module: Any, name: str, mask: torch.Tensor) -> BasePruningMethod:  # type: ignore[override]
        """Prune a tensor of ``module``."""
        return super().apply(module, name, mask=mask)


# ---- the same as functions


def identity(module: Any, name: str) -> Any:
    """Give a parameter the names of a pruned one, without pruning it.

    Args:
        module: the module; changed in place and returned.
        name: the name of the parameter.
    """
    Identity.apply(module, name)
    return module


def random_unstructured(module: Any, name: str, amount: float) -> Any:
    """Prune elements of a parameter at random.

    Args:
        module: the module; changed in place and returned.
        name: the name of the parameter.
        amount: how many, as a number, or a fraction from 0.0 to 1.0.
    """
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(module: Any, name: str, amount: float, importance_scores: torch.Tensor | None = None) -> Any:
    """Prune the elements of a parameter nearest to zero.

    Args:
        module: the module; changed in place and returned.
        name: the name of the parameter.
        amount: how many, as a number, or a fraction from 0.0 to 1.0.
        importance_scores: what to look at instead of the parameter itself.

    Example::

        >>> layer = prune.l1_unstructured(nn.Linear(2, 3), "weight", amount=0.2)
        >>> list(layer.state_dict())
        ['bias', 'weight_orig', 'weight_mask']
    """
    L1Unstructured.apply(module, name, amount=amount, importance_scores=importance_scores)
    return module


def random_structured(module: Any, name: str, amount: float, dim: int) -> Any:
    """Prune slices of a parameter at random.

    Args:
        module: the module; changed in place and returned.
        name: the name of the parameter.
        amount: how many, as a number, or a fraction from 0.0 to 1.0.
        dim: the dimension whose slices are pruned.
    """
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(
    module: Any, name: str, amount: float, n: Any, dim: int, importance_scores: torch.Tensor | None = None
) -> Any:
    """Prune the slices of a parameter with the least norms.

    Args:
        module: the module; changed in place and returned.
        name: the name of the parameter.
        amount: how many, as a number, or a fraction from 0.0 to 1.0.
        n: the order of the norm.
        dim: the dimension whose slices are pruned.
        importance_scores: what to look at instead of the parameter itself.
    """
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def custom_from_mask(module: Any, name: str, mask: torch.Tensor) -> Any:
    """Prune what a mask says.

    Args:
        module: the module; changed in place and returned.
        name: the name of the parameter.
        mask: zeros where the parameter is pruned.
    """
    CustomFromMask.apply(module, name, mask)
    return module


def global_unstructured(
    parameters: Iterable[tuple[Any, str]],
    pruning_method: Any,
    importance_scores: dict[tuple[Any, str], torch.Tensor] | None = None,
    **kwargs: Any,
) -> None:
    """Prune several parameters as if they were one.

    Args:
        parameters: modules and names of their parameters.
        pruning_method: a class of unstructured methods.
        importance_scores: what to look at instead of parameters themselves, for some of them.
        kwargs: what the method is made with.

    Raises:
        TypeError: the method is not unstructured, or an argument is of another kind.

    Example::

        >>> prune.global_unstructured([(net.a, "weight"), (net.b, "weight")], prune.L1Unstructured, amount=10)
    """
    if not isinstance(parameters, Iterable):
        raise TypeError("global_unstructured(): parameters is not an Iterable")
    importance_scores = {} if importance_scores is None else importance_scores
    if not isinstance(importance_scores, dict):
        raise TypeError("global_unstructured(): importance_scores must be of type dict")
    pairs = [(module, name) for module, name in parameters]
    tensors = [getattr(module, name) for module, name in pairs]
    to_vector = torch.nn.utils.parameters_to_vector
    with torch.no_grad():
        scores = to_vector(importance_scores.get(pair, tensor) for pair, tensor in zip(pairs, tensors, strict=True))
        masks = to_vector(
            getattr(module, f"{name}_mask", torch.ones_like(tensor))
            for (module, name), tensor in zip(pairs, tensors, strict=True)
        )
        method = pruning_method(**kwargs)
        if method.PRUNING_TYPE != "unstructured":
            raise TypeError(
                f'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. Found method {pruning_method} '
                f"of type {method.PRUNING_TYPE}"
            )
        method._tensor_name = "all"
        mask = PruningContainer(method).compute_mask(scores, masks)
    start = 0
    for (module, name), tensor in zip(pairs, tensors, strict=True):
        custom_from_mask(module, name, mask[start : start + tensor.numel()].view_as(tensor))
        start += tensor.numel()


def remove(module: Any, name: str) -> Any:
    """Make a pruned tensor a plain parameter again; what is pruned stays zero.

    Args:
        module: the module; changed in place and returned.
        name: the name of the parameter.

    Raises:
        ValueError: it is not pruned.
    """
    for key, hook in _hooks(module, name):
        hook.remove(module)
        del module._forward_pre_hooks[key]
        return module
    raise ValueError(f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed")


def is_pruned(module: Any) -> bool:
    """Return whether a tensor of ``module``, or of one within it, is pruned.

    Args:
        module: the module.
    """
    return any(
        isinstance(hook, BasePruningMethod) for child in module.modules() for hook in child._forward_pre_hooks.values()
    )
