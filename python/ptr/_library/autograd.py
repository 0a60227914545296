"""Derivatives of operators defined in Python: a kernel for the Autograd keys around the rest of the call."""

from __future__ import annotations

from ptr import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any


def _check_functional(schema: Any) -> None:
    if schema.is_mutable or any(ret.alias_set for ret in schema.returns):
        raise RuntimeError(
            f"Cannot register autograd formula for non-functional operator {schema}. Please create a functional "
            "operator and register an autograd formula for that."
        )


def _autograd_kernel(overload: Any, backward: Callable[..., Any], setup_context: Callable[..., Any] | None) -> Any:
    """The kernel for the Autograd keys: a custom function around the rest of the call."""
    from ptr.autograd.function import Function

    schema = overload._schema
    keyword_only = [argument.name for argument in schema.arguments if argument.kwarg_only]
    num_positional = len(schema.arguments) - len(keyword_only)
    # Lists of tensors are spread over the arguments of the function, since it differentiates by direct arguments only.
    positional = [argument for argument in schema.arguments if not argument.kwarg_only]

    def flatten(args: Sequence[Any]) -> tuple[list[Any], list[int | None]]:
        flat: list[Any] = []
        spread: list[int | None] = []
        for argument, value in zip(positional, args, strict=False):
            if "Tensor" in argument.type and isinstance(value, (list, tuple)):
                flat.extend(value)
                spread.append(len(value))
            else:
                flat.append(value)
                spread.append(None)
        return flat, spread

    def unflatten(flat: Sequence[Any], spread: Sequence[int | None]) -> list[Any]:
        args: list[Any] = []
        at = 0
        for count in spread:
            if count is None:
                args.append(flat[at])
                at += 1
            else:
                args.append(list(flat[at : at + count]))
                at += count
        return args

    def call_forward(ctx: Any, keyset: Any, spread: Any, kwargs: dict[str, Any], flat: tuple[Any, ...]) -> Any:
        args = unflatten(flat, spread)
        with _C._AutoDispatchBelowAutograd():
            result = overload.redispatch(keyset & _C._after_autograd_keyset, *args, **kwargs)
        if setup_context is not None:
            inputs = tuple(args)
            if keyword_only:
                setup_context(ctx=ctx, inputs=inputs, keyword_only_inputs=kwargs, output=result)
            else:
                setup_context(ctx, inputs, result)
        ctx._spread = spread
        return tuple(result) if isinstance(result, list) else result

    class Generated(Function):
        @staticmethod
        def forward(ctx: Any, keyset: Any, spread: Any, kwargs: dict[str, Any], *flat: Any) -> Any:
            return call_forward(ctx, keyset, spread, kwargs, flat)

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            if _returns_list(schema):
                grads = (list(grads),)
            result = backward(ctx, *grads)
            gradients = result if isinstance(result, tuple) else (result,)
            if len(gradients) != len(ctx._spread):
                raise RuntimeError(
                    f"{schema.name}: the registered backward returned {len(gradients)} gradients, expected one for "
                    f"each of the {len(ctx._spread)} arguments"
                )
            flat: list[Any] = []
            for gradient, count in zip(gradients, ctx._spread, strict=False):
                if count is None:
                    flat.append(gradient)
                else:
                    flat.extend([None] * count if gradient is None else gradient)
            return (None, None, None, *flat)

    Generated.__name__ = Generated.__qualname__ = (
        f"GeneratedBackwardFor_{schema.name.replace('::', '_')}_{overload._overloadname}"
    )
    Generated._backward_cls.__name__ = Generated.__name__ + "Backward"

    def kernel(keyset: Any, *args: Any, **kwargs: Any) -> Any:
        args = (*args, *(argument.default_value for argument in positional[len(args) : num_positional]))
        flat, spread = flatten(args)
        needs_graph = _C.is_grad_enabled() and any(isinstance(a, _C.Tensor) and a.requires_grad for a in flat)
        if not needs_graph:
            with _C._AutoDispatchBelowAutograd():
                return overload.redispatch(keyset & _C._after_autograd_keyset, *args, **kwargs)
        result = Generated.apply(keyset, spread, kwargs, *flat)
        return list(result) if _returns_list(schema) else result

    return kernel


def _returns_list(schema: Any) -> bool:
    return len(schema.returns) == 1 and schema.returns[0].type.endswith("]")
