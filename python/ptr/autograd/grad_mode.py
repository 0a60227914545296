"""Contexts and decorators that switch the recording of graphs."""

from __future__ import annotations

import functools
import warnings

from ptr import _C
from ptr.autograd._engine import set_multithreading_enabled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["enable_grad", "inference_mode", "no_grad", "set_grad_enabled", "set_multithreading_enabled"]

# Bound once: these run around every step of a training loop.
_set_grad_enabled = _C._set_grad_enabled
_is_grad_enabled = _C.is_grad_enabled

_CO_GENERATOR = 0x20


class _DecoratorContextManager:
    """A context that is also a decorator: each call of the decorated function runs in a fresh one."""

    __slots__ = ()

    def __call__(self, orig_func: Any) -> Any:
        func = orig_func
        if isinstance(orig_func, type):
            warnings.warn(
                "Decorating classes is deprecated and will be disabled in future versions. You should only decorate "
                "functions or methods. To preserve the current behavior of class decoration, you can directly decorate "
                "the `__init__` method and nothing else.",
                FutureWarning,
                stacklevel=2,
            )

            def func(*args: Any, **kwargs: Any) -> Any:
                return orig_func(*args, **kwargs)

        make_context = self.clone
        code = getattr(func, "__code__", None)
        if code is not None and code.co_flags & _CO_GENERATOR:
            return _wrap_generator(make_context, func)

        @functools.wraps(orig_func, updated=() if func is not orig_func else functools.WRAPPER_UPDATES)
        def in_context(*args: Any, **kwargs: Any) -> Any:
            with make_context():
                return func(*args, **kwargs)

        return in_context

    def clone(self) -> Any:
        """Return a fresh context of the same kind."""
        return type(self)()

    def __enter__(self) -> None:
        raise NotImplementedError

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        raise NotImplementedError


def _wrap_generator(make_context: Any, func: Any) -> Any:
    """Run a generator in the context, but its consumer outside of it: the context is left at each yield."""

    @functools.wraps(func)
    def generator_in_context(*args: Any, **kwargs: Any) -> Any:
        generator = func(*args, **kwargs)
        # What the consumer does to this generator is passed on to the wrapped one.
        resume, value = generator.send, None
        try:
            while True:
                with make_context():
                    response = resume(value)
                try:
                    resume, value = generator.send, (yield response)
                except GeneratorExit:
                    with make_context():
                        generator.close()
                    raise
                except BaseException as error:
                    resume, value = generator.throw, error  # type: ignore[assignment]
        except StopIteration as stop:
            return stop.value

    return generator_in_context


class no_grad(_DecoratorContextManager):
    """Context, or decorator, in which operations record no graph.

    Results have ``requires_grad=False``, whatever their inputs; factories with ``requires_grad=True`` are unaffected.
    Only the current thread is concerned.

    Example::

        >>> x = torch.tensor([1.0], requires_grad=True)
        >>> with torch.no_grad():
        ...     y = x * 2
        >>> y.requires_grad
        False
        >>> @torch.no_grad()
        ... def doubler(x):
        ...     return x * 2
    """

    __slots__ = ("prev",)

    def __new__(cls, orig_func: Any = None) -> Any:
        # Also usable as a decorator without parentheses.
        return object.__new__(cls) if orig_func is None else cls()(orig_func)

    def __enter__(self) -> None:
        self.prev = _is_grad_enabled()
        _set_grad_enabled(False)

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        _set_grad_enabled(self.prev)


class enable_grad(_DecoratorContextManager):
    """Context, or decorator, in which operations record their graph even within :class:`no_grad`.

    Example::

        >>> with torch.no_grad():
        ...     with torch.enable_grad():
        ...         y = x * 2
        >>> y.requires_grad
        True
    """

    __slots__ = ("prev",)

    def __new__(cls, orig_func: Any = None) -> Any:
        return object.__new__(cls) if orig_func is None else cls()(orig_func)

    def __enter__(self) -> None:
        self.prev = _is_grad_enabled()
        _set_grad_enabled(True)

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        _set_grad_enabled(self.prev)


class set_grad_enabled(_DecoratorContextManager):
    """Switch the recording of graphs on or off: at once, for a block, or for a decorated function.

    Args:
        mode: whether to record.

    Example::

        >>> torch.set_grad_enabled(False)  # from here on
        >>> with torch.set_grad_enabled(is_train):  # or for a block
        ...     y = x * 2
    """

    __slots__ = ("mode", "prev")

    def __init__(self, mode: bool) -> None:
        self.prev = _is_grad_enabled()
        self.mode = mode
        _set_grad_enabled(mode)

    def __call__(self, orig_func: Any) -> Any:
        # As a decorator it concerns the function only, not what follows.
        _set_grad_enabled(self.prev)
        return super().__call__(orig_func)

    def __enter__(self) -> None:
        _set_grad_enabled(self.mode)

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        _set_grad_enabled(self.prev)

    def __repr__(self) -> str:
        return f"torch.autograd.grad_mode.set_grad_enabled(mode={self.mode})"

    def clone(self) -> set_grad_enabled:
        """Return a fresh context of the same mode."""
        return type(self)(self.mode)


class inference_mode(_DecoratorContextManager):
    """Context, or decorator, like :class:`no_grad` but cheaper still: no versions and no views are tracked.

    Tensors made inside are inference tensors: outside they take part in no graph and cannot be changed in place by
    operations that are recorded.

    Args:
        mode: whether inference mode is on. Default: ``True``.

    Example::

        >>> with torch.inference_mode():
        ...     y = x * 2
        >>> y.is_inference()
        True
    """

    __slots__ = ("_inference_mode_context", "mode")

    def __new__(cls, mode: Any = True) -> Any:
        return object.__new__(cls) if isinstance(mode, bool) else cls()(mode)

    def __init__(self, mode: bool = True) -> None:
        self.mode = mode

    def __enter__(self) -> None:
        self._inference_mode_context = _C._InferenceMode(self.mode)
        self._inference_mode_context.__enter__()

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        self._inference_mode_context.__exit__(exc_type, exc_value, traceback)

    def clone(self) -> inference_mode:
        """Return a fresh context of the same mode."""
        return type(self)(self.mode)
