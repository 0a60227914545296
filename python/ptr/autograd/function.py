"""Custom differentiable functions: ``Function`` and the context that its methods get."""

from __future__ import annotations

import functools
import itertools
import warnings

from ptr import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    import inspect
    from collections.abc import Callable
    from typing import Any

__all__ = [
    "BackwardCFunction",
    "Function",
    "FunctionCtx",
    "FunctionMeta",
    "InplaceFunction",
    "NestedIOFunction",
    "once_differentiable",
]

_function_ids = itertools.count()


class FunctionCtx:
    """What ``forward``, ``setup_context`` and ``backward`` of a :class:`Function` get as ``ctx``."""

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep tensors for backward, where ``ctx.saved_tensors`` gives them back. To be called at most once.

        Saving arguments and outputs this way, rather than as attributes, makes the engine notice that they were
        modified in between, lets hooks pack them, and makes no cycles.

        Args:
            tensors: tensors, or ``None``.
        """
        self.to_save = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        """Keep tensors for ``jvp``. To be called at most once.

        Args:
            tensors: tensors, or ``None``.
        """
        for tensor in tensors:
            if not (tensor is None or isinstance(tensor, _C.Tensor)):
                raise AssertionError(
                    "save_for_forward expects all arguments to be tensors; you should save non-tensors as "
                    "attributes on ctx."
                )
        self.saved_for_forward = tensors

    def mark_dirty(self, *args: Any) -> None:
        """Say which arguments ``forward`` modified in place. They must be returned.

        Args:
            args: tensors among the arguments.
        """
        self.dirty_tensors = args

    def mark_non_differentiable(self, *args: Any) -> None:
        """Say which outputs have no gradient: indices, for example.

        Args:
            args: tensors among the outputs. ``backward`` still gets a gradient for each, of zeros.
        """
        self.non_differentiable = args

    def set_materialize_grads(self, value: bool) -> None:
        """Set whether ``backward`` gets zeros, the default, or ``None`` for outputs without gradient.

        Args:
            value: whether gradients are always tensors.
        """
        self.materialize_grads = value

    @property
    def saved_variables(self) -> tuple[Any, ...]:
        """The older name of ``saved_tensors``."""
        warnings.warn("'saved_variables' is deprecated; use 'saved_tensors'", DeprecationWarning, stacklevel=2)
        return self.saved_tensors  # type: ignore[attr-defined]

    def mark_shared_storage(self, *pairs: Any) -> None:
        """Do nothing: tensors that share memory are known to."""
        warnings.warn(
            "`mark_shared_storage` is deprecated. Tensors with shared storages are automatically tracked. Note that "
            "calls to `set_()` are not tracked",
            FutureWarning,
            stacklevel=2,
        )


class _HookMixin:
    @staticmethod
    def _register_hook(backward_hooks: Any, hook: Any) -> tuple[Any, Any]:
        from collections import OrderedDict

        from ptr.utils.hooks import RemovableHandle

        if backward_hooks is None:
            backward_hooks = OrderedDict()
        handle = RemovableHandle(backward_hooks)
        backward_hooks[handle.id] = hook
        return backward_hooks, handle


class BackwardCFunction(_C._FunctionBase, FunctionCtx, _HookMixin):  # type: ignore[misc, name-defined]
    """The class of contexts. Each :class:`Function` has a subclass of its own; its instances are nodes of the graph."""

    _forward_cls: Any

    def _get_user_fn(self) -> Any:
        backward, vjp = self._forward_cls.backward, self._forward_cls.vjp
        if vjp is Function.vjp:
            return backward
        if backward is not Function.backward:
            raise RuntimeError(
                "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You should only "
                "implement one of them."
            )
        return vjp

    def apply(self, *args: Any) -> Any:
        """Run the function's backward on the gradients ``args``. Called by the engine."""
        if self._forward_cls.boxed_grads_call:
            return self.apply_boxed(list(args))
        return self._get_user_fn()(self, *args)

    def apply_boxed(self, *args: Any) -> Any:
        """Run the backward of a function with ``boxed_grads_call`` on one list of gradients, which it may empty."""
        return self._get_user_fn()(self, *args)

    def apply_jvp(self, *args: Any) -> Any:
        """Run the function's jvp on the tangents ``args``."""
        return self._forward_cls.jvp(self, *args)


class FunctionMeta(type):
    """Gives each function the class of its contexts."""

    def __init__(cls, name: str, bases: tuple[type, ...], attrs: dict[str, Any]) -> None:
        namespace = {"_forward_cls": cls, "_autograd_function_id": next(_function_ids), "__module__": __name__}
        cls._backward_cls = type(name + "Backward", (BackwardCFunction,), namespace)
        super().__init__(name, bases, attrs)


class _SingleLevelFunction(_C._FunctionBase, FunctionCtx, _HookMixin, metaclass=FunctionMeta):  # type: ignore
    """What a function is made of. See :class:`Function`."""

    boxed_grads_call = False
    clear_saved_tensors_on_access = False

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Compute the outputs; to be overridden.

        With ``setup_context`` overridden the signature is ``forward(*args)``, otherwise ``forward(ctx, *args)``.
        """
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        """Save what backward needs; to be overridden where ``forward`` gets no ``ctx``.

        Args:
            ctx: the context.
            inputs: the arguments of ``forward``.
            output: what it returned.
        """
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """Compute the gradients with respect to the arguments; to be overridden (or ``vjp``, which is the same).

        Args:
            ctx: the context; ``ctx.needs_input_grad`` tells which arguments need a gradient.
            grad_outputs: the gradient with respect to each output.

        Returns:
            as many gradients as there are arguments; ``None`` for those that need none.
        """
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom autograd.Function to use it with "
            "backward mode AD."
        )

    vjp = backward

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        """Compute the derivatives of the outputs along the tangents ``grad_inputs``; to be overridden."""
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use it with forward mode AD."
        )


class Function(_SingleLevelFunction):
    """Base class of custom differentiable functions.

    A subclass has static methods ``forward`` and ``backward``, and is used through :meth:`apply`.

    Example::

        >>> class Exp(torch.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         result = x.exp()
        ...         ctx.save_for_backward(result)
        ...         return result
        ...
        ...     @staticmethod
        ...     def backward(ctx, grad_output):
        ...         (result,) = ctx.saved_tensors
        ...         return grad_output * result
        >>> y = Exp.apply(torch.tensor(1.0, requires_grad=True))
    """

    generate_vmap_rule = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        warnings.warn(
            f"{type(self)} should not be instantiated. Methods on autograd functions are all static, so you should "
            "invoke them on the class itself. Instantiating an autograd function will raise an error in a future "
            "version of PyTorch.",
            DeprecationWarning,
            stacklevel=2,
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            "Legacy autograd function with non-static forward method is deprecated. Please use new-style autograd "
            "function with static forward method. (Example: "
            "https://pytorch.org/docs/stable/autograd.html#torch.autograd.Function)"
        )

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        """Compute the function on batches; to be overridden, or ``generate_vmap_rule = True`` set."""
        raise NotImplementedError(
            "To use autograd.Function with vmap, you must either override the vmap staticmethod or set "
            "generate_vmap_rule=True."
        )

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run ``forward`` and, if an argument needs a gradient, put the function into the graph.

        Args:
            args: the arguments of ``forward``; tensors anywhere but directly among them are constants.
            kwargs: arguments by name, for functions with ``setup_context``.
        """
        if kwargs or _is_setup_context_defined(cls.setup_context):
            args, kwargs = _with_defaults(cls, args, kwargs)
        return super().apply(*args, **kwargs)


def _is_setup_context_defined(function: Any) -> bool:
    return function is not _SingleLevelFunction.setup_context


@functools.lru_cache(maxsize=256)
def _signature(forward: Any) -> inspect.Signature:
    import inspect  # expensive to import, and needed by functions with defaults only

    return inspect.signature(forward)


def _with_defaults(cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of ``forward`` with defaults filled in, by position where that is possible."""
    if not _is_setup_context_defined(cls.setup_context):
        return args, kwargs
    bound = _signature(cls.forward).bind(*args, **kwargs)
    bound.apply_defaults()
    return bound.args, bound.kwargs


def once_differentiable(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator for a ``backward`` whose result cannot be differentiated again: doing so is an error."""

    @functools.wraps(fn)
    def wrapper(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        from ptr.autograd.grad_mode import no_grad

        with no_grad():
            outputs = fn(ctx, *args, **kwargs)
        if not _C.is_grad_enabled():
            return outputs
        # What the result depends on is not known; that no gradient came with a history is taken for "on nothing".
        if not any(isinstance(arg, _C.Tensor) and arg.requires_grad for arg in args):
            return outputs
        is_tuple = isinstance(outputs, tuple)
        outputs = outputs if is_tuple else (outputs,)
        guard = _C._functions.DelayedError(
            "trying to differentiate twice a function that was marked with @once_differentiable", len(outputs)
        )
        # The copies need a gradient, so that a second backward reaches the error.
        copies = [None if output is None else output.detach().requires_grad_() for output in outputs]
        guarded = guard(*copies)
        return tuple(guarded) if isinstance(guarded, tuple) and is_tuple else guarded

    return wrapper


class InplaceFunction(Function):
    """A function that may work in place. Kept for older programs.

    Args:
        inplace: whether it does.
    """

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace


class NestedIOFunction(Function):
    """A function over nested structures of tensors, in the style of early versions. Not available."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError("NestedIOFunction is not available; use Function with flat arguments")
