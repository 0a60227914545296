"""Calling a module with other parameters than its own."""

from __future__ import annotations

import warnings

import ptr as torch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["functional_call"]

_ABSENT: Any = object()


def _swap(module: Any, name: str, value: Any) -> Any:
    """Put ``value`` in the place of a tensor of ``module``, past all checks, and return what was there."""
    owner_path, _, leaf = name.rpartition(".")
    owner = module.get_submodule(owner_path)
    for members in (owner._parameters, owner._buffers):
        if leaf in members:
            previous = members[leaf]
            members[leaf] = value
            return previous
    # Not a parameter or buffer: an attribute that holds a tensor, or a name that a strict call would refuse.
    previous = getattr(owner, leaf, _ABSENT)
    if previous is not _ABSENT and previous is not None and not isinstance(previous, torch.Tensor):
        raise TypeError(f"{previous} is not an instance of torch.Tensor")
    if value is _ABSENT:
        delattr(owner, leaf)
    else:
        setattr(owner, leaf, value)
    return previous


def _untie(module: Any, given: dict[str, Any]) -> dict[str, Any]:
    """Add to ``given`` the other names of tensors that the module holds under several."""
    names_of: dict[int, list[str]] = {}
    for named in (module.named_parameters(remove_duplicate=False), module.named_buffers(remove_duplicate=False)):
        for name, tensor in named:
            names_of.setdefault(id(tensor), []).append(name)
    untied = dict(given)
    for names in names_of.values():
        mentioned = [name for name in names if name in given]
        if len(names) < 2 or not mentioned:
            continue
        if len({id(given[name]) for name in mentioned}) > 1:
            raise ValueError(
                f"functional_call got multiple values for keys {sorted(names)}, which are tied. "
                "Consider using tie_weights=False"
            )
        untied.update(dict.fromkeys(names, given[mentioned[0]]))
    return untied


def _check_keys(module: Any, given: dict[str, Any]) -> None:
    known = {name for name, _ in module.named_parameters(remove_duplicate=False)}
    known.update(name for name, _ in module.named_buffers(remove_duplicate=False))
    problems = []
    for kind, names in (("Unexpected", set(given) - known), ("Missing", known - set(given))):
        if names:
            problems.append(f"{kind} key(s): {', '.join(map(repr, sorted(names)))}.")
    if problems:
        raise RuntimeError(f"Error(s) in reparametrizing for {module._get_name()}:\n\t" + "\n\t".join(problems))


class _reparametrize_module:
    """Context in which tensors of a module are replaced; on exit, buffers that the module assigned anew go to the
    caller."""

    def __init__(self, module: Any, parameters_and_buffers: dict[str, Any], tie_weights: bool, strict: bool) -> None:
        self.module = module
        self.given = parameters_and_buffers
        self.values = _untie(module, parameters_and_buffers) if tie_weights else dict(parameters_and_buffers)
        if strict:
            _check_keys(module, self.values)
        self.previous: dict[str, Any] = {}

    def __enter__(self) -> None:
        try:
            for name, value in self.values.items():
                self.previous[name] = _swap(self.module, name, value)
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *exc: object) -> None:
        for name in reversed(list(self.previous)):
            latest = _swap(self.module, name, self.previous[name])
            if name in self.given:
                self.given[name] = latest


def _functional_call(
    module: Any,
    parameters_and_buffers: dict[str, Any],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    if args is None:
        args = ()
    elif not isinstance(args, tuple):
        args = (args,)
    with _reparametrize_module(module, parameters_and_buffers, tie_weights, strict):
        return module(*args, **(kwargs or {}))


def functional_call(
    module: Any,
    parameters_and_buffers: dict[str, Any],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call ``module`` with the given tensors in place of its own.

    Deprecated in favour of :func:`ptr.func.functional_call`.

    Args:
        module: the module; it has its own tensors again afterwards.
        parameters_and_buffers: names and tensors. Buffers that the call assigns anew are put into it.
        args: the arguments of the call; a single one may be given bare.
        kwargs: its keyword arguments.
        tie_weights: replace a tensor held under several names under all of them.
        strict: raise unless exactly all parameters and buffers are given.

    Returns:
        what the module returns.

    Raises:
        RuntimeError: names are missing or unexpected, if ``strict``.
        ValueError: tied names got different values, if ``tie_weights``.
    """
    warnings.warn(
        "`torch.nn.utils.stateless.functional_call` is deprecated. Please use `torch.func.functional_call` instead.",
        FutureWarning,
        stacklevel=2,
    )
    return _functional_call(module, parameters_and_buffers, args, kwargs, tie_weights=tie_weights, strict=strict)
