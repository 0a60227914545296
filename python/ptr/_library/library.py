"""``Library``: definitions and kernels of operators that live as long as it does."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from ptr import _C
from ptr._library.utils import _dot
from ptr._tags import Tag

__all__ = ["Library", "fallthrough_kernel"]

_RESERVED_NAMESPACES = frozenset({"prim"})


def fallthrough_kernel() -> None:
    """Say, given as a kernel, that calls go on with the next dispatch key."""
    raise NotImplementedError("fallthrough_kernel() should never be called.")


class Library:
    """Defines operators, and registers kernels for operators, in one namespace.

    What a library registers lives as long as the library.

    Args:
        ns: the namespace.
        kind: ``"DEF"`` for the library that owns the namespace, ``"FRAGMENT"`` for others that define operators in it,
            ``"IMPL"`` for those that only register kernels.
        dispatch_key: the key of kernels for which none is given.

    Example::

        >>> lib = torch.library.Library("mylib", "DEF")
        >>> lib.define("twice(Tensor x) -> Tensor")
        'twice'
        >>> lib.impl("twice", lambda x: x * 2, "CompositeImplicitAutograd")
        >>> torch.ops.mylib.twice(torch.ones(1))
        tensor([2.])
    """

    def __init__(self, ns: str, kind: str, dispatch_key: str = "") -> None:
        if kind not in ("IMPL", "DEF", "FRAGMENT"):
            raise ValueError(f"Unsupported kind: {kind}")
        if ns in _RESERVED_NAMESPACES and kind in ("DEF", "FRAGMENT"):
            raise ValueError(f"{ns} is a reserved namespace. Please try creating a library with another name.")
        self.ns = ns
        self.kind = kind
        self.dispatch_key = dispatch_key
        self._op_defs: set[str] = set()
        self._op_impls: set[str] = set()
        self.m = _C._DispatchLibrary(kind, ns)
        self._finalizer = weakref.finalize(self, _reset, self.m, self._op_defs, ns)

    def __repr__(self) -> str:
        return f"Library(kind={self.kind}, ns={self.ns}, dispatch_key={self.dispatch_key})>"

    def define(self, schema: str, alias_analysis: str = "", *, tags: Any = ()) -> str:
        """Define an operator and return its name.

        Args:
            schema: ``"name(Tensor x, int n=1) -> Tensor"``.
            alias_analysis: accepted for compatibility: schemas say what they alias.
            tags: members of :class:`ptr.Tag`, or one.

        Raises:
            RuntimeError: for a tag that there is not.
        """
        if alias_analysis not in ("", "FROM_SCHEMA", "CONSERVATIVE"):
            raise RuntimeError(f"Invalid alias_analysis type {alias_analysis}")
        names = [tags] if isinstance(tags, (str, Tag)) else tags
        names = [str(name).rsplit(".", 1)[-1] for name in names]
        if unknown := [name for name in names if name not in Tag.__members__]:
            raise RuntimeError(f"define(): {unknown[0]} is no tag; torch.Tag has {', '.join(Tag.__members__)}")
        name = self.m.define(schema, names)
        self._op_defs.add(f"{self.ns}::{name}")
        _forget_packet(self.ns, name)
        return name

    def impl(
        self,
        op_name: Any,
        fn: Callable[..., Any],
        dispatch_key: str = "",
        *,
        with_keyset: bool = False,
        allow_override: bool = False,
    ) -> None:
        """Register a kernel.

        Args:
            op_name: the name of the operator with overload, or the operator of ``torch.ops``.
            fn: the kernel, or :func:`fallthrough_kernel`.
            dispatch_key: the key that it serves. Default: the library's.
            with_keyset: whether ``fn`` gets the key set of the call as its first argument.
            allow_override: whether it may replace a kernel that this or another library has registered.
        """
        if not callable(fn):
            raise TypeError(f"Input function is required to be a callable but found type {type(fn)}")
        key = dispatch_key or self.dispatch_key or "CompositeImplicitAutograd"
        name = op_name if isinstance(op_name, str) else op_name._schema.name + _dot(op_name._schema.overload_name)
        if "::" in name:
            namespace, name = name.split("::")
            if namespace != self.ns and self.ns != "_":
                raise ValueError(
                    f"library of namespace {self.ns} cannot register a kernel for an operator of namespace {namespace}"
                )
        registration = f"{self.ns}/{name}/{key}"
        if not allow_override and registration in _registrations:
            raise RuntimeError(
                f"This is not allowed since there's already a kernel registered from python overriding {name}'s "
                f"behavior "
                f"for {key} dispatch key and {self.ns} namespace."
            )
        if key == "Meta" and _C._dispatch_has_schema(f"{self.ns}::{name}"):
            if _C._dispatch_has_kernel_for_dispatch_key(f"{self.ns}::{name}", "CompositeImplicitAutograd"):
                raise RuntimeError(
                    f"We should not register a meta kernel directly to the operator '{name}', because it has a "
                    "CompositeImplicitAutograd kernel in core. Instead we should let the operator decompose, and "
                    "ensure that "
                    "we have meta kernels for the base ops that it decomposes into."
                )
        self.m.impl(name, key, None if fn is fallthrough_kernel else fn, with_keyset)
        _registrations.add(registration)
        self._op_impls.add(registration)
        weakref.finalize(self, _registrations.discard, registration)

    def fallback(self, fn: Callable[..., Any], dispatch_key: str = "", *, with_keyset: bool = False) -> None:
        """Register the kernel of all operators that have none for a key.

        Args:
            fn: called with the operator and the arguments of the call; or :func:`fallthrough_kernel`.
            dispatch_key: the key that it serves. Default: the library's.
            with_keyset: whether ``fn`` gets the key set of the call as its first argument.
        """
        if self.ns != "_":
            raise RuntimeError(
                "Fallback can only be registered using library fragment on the global namespace "
                f"'_' but it is {self.ns}"
            )
        if not callable(fn):
            raise TypeError(f"Input function is required to be a callable but found type {type(fn)}")
        key = dispatch_key or self.dispatch_key
        if not key:
            raise AssertionError("dispatch_key must be provided")
        self.m.fallback(key, None if fn is fallthrough_kernel else fn, with_keyset)

    def _destroy(self) -> None:
        """Take all registrations back now."""
        self._finalizer()
        for registration in self._op_impls:
            _registrations.discard(registration)


# Kernels registered from Python, as "namespace/operator/key".
_registrations: set[str] = set()


def _forget_packet(namespace: str, name: str) -> None:
    """Make ``torch.ops`` look an operator up anew."""
    from ptr._ops import ops

    holder = getattr(ops, namespace)
    vars(holder).pop(name.split(".")[0], None)


def _reset(module: Any, defs: set[str], namespace: str) -> None:
    module.reset()
    for qualname in defs:
        _forget_packet(namespace, qualname.split("::")[1])


@contextlib.contextmanager
def _scoped_library(*args: Any, **kwargs: Any) -> Iterator[Library]:
    """Context with a library that is taken back at its end."""
    library = Library(*args, **kwargs)
    try:
        yield library
    finally:
        library._destroy()


# Libraries of the functions below, which live as long as the process.
_kept: list[Library] = []


def _library_for(namespace: str, lib: Library | None) -> Library:
    if lib is None:
        lib = Library(namespace, "FRAGMENT")
        _kept.append(lib)
    return lib
