"""``__torch_function__``: classes and modes that take over functions of this package."""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Hashable
from contextlib import contextmanager

from ptr import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

__all__ = [
    "BaseTorchFunctionMode",
    "TorchFunctionMode",
    "enable_reentrant_dispatch",
    "get_default_nowrap_functions",
    "get_ignored_functions",
    "get_overridable_functions",
    "get_testing_overrides",
    "handle_torch_function",
    "has_torch_function",
    "has_torch_function_unary",
    "has_torch_function_variadic",
    "is_tensor_like",
    "is_tensor_method_or_property",
    "redispatch_function",
    "resolve_name",
    "wrap_torch_function",
]

has_torch_function = _C._has_torch_function
has_torch_function_unary = _C._has_torch_function_unary
has_torch_function_variadic = _C._has_torch_function_variadic


def handle_torch_function(public_api: Callable[..., Any], relevant_args: Any, *args: Any, **kwargs: Any) -> Any:
    """Offer a call to modes and to the arguments that override functions, and return the first answer.

    Args:
        public_api: the function that was called.
        relevant_args: the arguments that may override it.
        args: the arguments of the call.
        kwargs: its arguments by name.

    Raises:
        TypeError: all that were asked returned ``NotImplemented``.
    """
    return _C._handle_torch_function(public_api, relevant_args, args, kwargs)


def _normalized(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments of a call as handlers get them: what has no default by position, all else by name.

    Functions of :mod:`ptr.nn.init` say that they want everything by name: ``__all_by_name__``.
    """
    import inspect

    bound = inspect.signature(function).bind(*args, **kwargs)
    bound.apply_defaults()
    all_by_name = getattr(function, "__all_by_name__", False)
    by_position: list[Any] = []
    by_name: dict[str, Any] = {}
    for name, value in bound.arguments.items():
        parameter = bound.signature.parameters[name]
        if parameter.kind is parameter.VAR_POSITIONAL:
            by_position += value
        elif parameter.kind is parameter.VAR_KEYWORD:
            by_name.update(value)
        elif all_by_name or parameter.default is not parameter.empty or parameter.kind is parameter.KEYWORD_ONLY:
            by_name[name] = value
        else:
            by_position.append(value)
    return tuple(by_position), by_name


def wrap_torch_function(dispatcher: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator that makes a function overridable.

    Args:
        dispatcher: takes the function's arguments and returns those that may override it.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            relevant = dispatcher(*args, **kwargs)
            if has_torch_function(relevant):
                return _C._handle_torch_function(wrapped, relevant, args, kwargs)
            return function(*args, **kwargs)

        return wrapped

    return decorate


def redispatch_function(func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """Call ``func`` with the overriding of subclasses switched off: what a ``__torch_function__`` does to go on.

    Args:
        func: the function.
        types: ignored.
        args: its arguments.
        kwargs: its arguments by name.
    """
    with _C.DisableTorchFunctionSubclass():
        return func(*args, **(kwargs or {}))


def is_tensor_like(inp: Any) -> bool:
    """Return whether ``inp`` is a tensor or of a class that overrides functions.

    Args:
        inp: any object.
    """
    return isinstance(inp, _C.Tensor) or hasattr(type(inp), "__torch_function__")


# ---- modes


class TorchFunctionMode:
    """Context in which every function of this package goes through ``__torch_function__``.

    Within ``__torch_function__`` the mode is off: calling ``func`` there goes on with the function.

    Example::

        >>> class Log(TorchFunctionMode):
        ...     def __torch_function__(self, func, types, args=(), kwargs=None):
        ...         print(func)
        ...         return func(*args, **(kwargs or {}))
        >>> with Log():
        ...     torch.add(torch.ones(2), 1)
    """

    inner: TorchFunctionMode

    def __init__(self) -> None:
        pass

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Handle a call of ``func``; ``NotImplemented`` leaves it to the arguments' classes."""
        raise NotImplementedError

    def __enter__(self) -> TorchFunctionMode:
        _push_mode(self)
        return self

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        _pop_mode()

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> Any:
        """Return an instance; to be entered with ``with``. The older way to write ``cls(...)``."""
        return cls(*args, **kwargs)


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that calls every function as it is."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


def _get_current_function_mode() -> Any:
    """The innermost mode, or ``None``."""
    depth = _C._len_torch_function_stack()
    return _C._get_function_stack_at(depth - 1) if depth > 0 else None


def _get_current_function_mode_stack() -> list[Any]:
    """The modes of this thread, outermost first."""
    return [_C._get_function_stack_at(i) for i in range(_C._len_torch_function_stack())]


def _push_mode(mode: Any) -> None:
    _C._push_on_torch_function_stack(mode)


def _pop_mode() -> Any:
    return _C._pop_torch_function_stack()


@contextmanager
def _pop_mode_temporarily() -> Iterator[Any]:
    """Context in which the innermost mode is off."""
    mode = _pop_mode()
    try:
        yield mode
    finally:
        _push_mode(mode)


@contextmanager
def enable_reentrant_dispatch() -> Iterator[None]:
    """Context for ``__torch_dispatch__`` in which autograd and what else is above it work again."""
    above = _C._dispatch_tls_local_exclude_set()
    for key in (
        "AutogradCPU",
        "AutogradCUDA",
        "AutogradMeta",
        "AutogradOther",
        "AutogradPrivateUse1",
        "ADInplaceOrView",
    ):
        above = above.remove(key)
    with _C._ForceDispatchKeyGuard(_C._dispatch_tls_local_include_set(), above):
        yield


# ---- what can be overridden


def get_default_nowrap_functions() -> set[Callable[..., Any]]:
    """Return the attributes whose values are not made instances of the subclass they are read from."""
    tensor = _C.Tensor
    return {getattr(tensor, name).__get__ for name in ("_base", "grad", "_grad", "grad_fn") if hasattr(tensor, name)}


# Functions that take no tensor, or whose results do not depend on what class one is of.
_NOT_OVERRIDABLE = frozenset(
    """
    arange as_tensor asarray blackman_window can_cast device dtype empty empty_strided eye fork from_file from_numpy
    frombuffer full get_default_device get_default_dtype get_num_interop_threads get_num_threads hamming_window
    hann_window
    initial_seed is_anomaly_check_nan_enabled is_anomaly_enabled is_grad_enabled is_inference_mode_enabled is_storage
    is_tensor
    is_warn_always_enabled kaiser_window layout linspace load logspace manual_seed memory_format ones promote_types rand
    randint randn randperm range save scalar_tensor seed set_default_device set_default_dtype set_default_tensor_type
    set_grad_enabled set_num_interop_threads set_num_threads set_printoptions set_rng_state sparse_coo_tensor tensor
    tril_indices triu_indices typename use_deterministic_algorithms vander zeros
    """.split()
)

# Methods that classes cannot override because the protocol itself uses them.
_NOT_OVERRIDABLE_METHODS = frozenset(
    """
    __class__ __delattr__ __delitem__ __dict__ __dir__ __doc__ __format__ __getattribute__ __init__ __init_subclass__
    __module__ __new__ __setattr__ __sizeof__ __slots__ __str__ __subclasshook__ __torch_dispatch__ __torch_function__
    __weakref__ _make_subclass _make_wrapper_subclass as_subclass new new_tensor
    """.split()
)


def get_ignored_functions() -> set[Callable[..., Any]]:
    """Return functions of this package that cannot be overridden."""
    import ptr as torch

    functions = {getattr(torch, name) for name in _NOT_OVERRIDABLE if hasattr(torch, name)}
    methods = [getattr(_C.Tensor, name) for name in _NOT_OVERRIDABLE_METHODS if hasattr(_C.Tensor, name)]
    return functions | {method for method in methods if callable(method)}


def get_overridable_functions() -> dict[Any, list[Callable[..., Any]]]:
    """Return what can be overridden, by the module or class that it is in."""
    import ptr as torch

    functions: dict[Any, list[Callable[..., Any]]] = defaultdict(list)
    for name in dir(_C._VariableFunctions):
        value = getattr(torch, name, None)
        if not name.startswith("_") and name not in _NOT_OVERRIDABLE and callable(value):
            functions[torch].append(value)
    modules = [torch.functional, torch.nn.functional, torch.nn.init]
    modules += [getattr(torch, name) for name in ("linalg", "fft", "special") if hasattr(torch, name)]
    for module in modules:
        for name in getattr(module, "__all__", dir(module)):
            value = getattr(module, name, None)
            if not name.startswith("_") and callable(value) and not isinstance(value, type):
                functions[module].append(value)
    for name in dir(_C.Tensor):
        if name in _NOT_OVERRIDABLE_METHODS:
            continue
        value = getattr(_C.Tensor, name)
        if callable(value):
            functions[_C.Tensor].append(value)
        elif hasattr(value, "__get__"):
            functions[_C.Tensor].append(value.__get__)
    return dict(functions)


def get_testing_overrides() -> dict[Callable[..., Any], Callable[..., Any]]:
    """Return a dummy of each overridable function: a function that takes the same calls and returns -1."""

    def dummy(*args: Any, **kwargs: Any) -> int:
        return -1

    return {function: dummy for functions in get_overridable_functions().values() for function in functions}


@functools.lru_cache(maxsize=1)
def _tensor_members() -> frozenset[Any]:
    members = set()
    for name in dir(_C.Tensor):
        value = getattr(_C.Tensor, name)
        value = value.__get__ if not callable(value) and hasattr(value, "__get__") else value
        if isinstance(value, Hashable):
            members.add(value)
    return frozenset(members)


def is_tensor_method_or_property(func: Callable[..., Any]) -> bool:
    """Return whether ``func``, as a ``__torch_function__`` gets it, is a method or attribute of ``Tensor``.

    Args:
        func: the function.
    """
    return func in _tensor_members() or getattr(func, "__name__", "") == "__get__"


def resolve_name(f: Callable[..., Any]) -> str | None:
    """Return a readable name of a function, as a ``__torch_function__`` gets it.

    Args:
        f: the function.
    """
    from ptr._ops import OpOverload, OpOverloadPacket

    if isinstance(f, (OpOverload, OpOverloadPacket)):
        return str(f)
    owner = getattr(f, "__self__", None)
    if getattr(f, "__name__", "") in ("__get__", "__set__", "__delete__") and owner is not None:
        return f"torch.Tensor.{owner.__name__}.{f.__name__}"
    name = getattr(f, "__qualname__", None) or getattr(f, "__name__", None)
    if name is None:
        return None
    if name.startswith(("Tensor.", "TensorBase.")):
        return "torch.Tensor." + name.split(".", 1)[1]
    module = getattr(f, "__module__", None) or "torch"
    return f"{'torch' + module[3:] if module.startswith('ptr') else module}.{name}"
