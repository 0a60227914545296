"""``ptr.ops``: every operator under its own name, ``ptr.ops.aten.add.Tensor``.

``ptr.ops.<namespace>`` is a namespace, ``ptr.ops.aten.add`` an :class:`OpOverloadPacket` (a name with its overloads),
and ``ptr.ops.aten.add.Tensor`` an :class:`OpOverload` (one operator).
"""

from __future__ import annotations

import types

from ptr import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from ptr._tags import Tag

__all__ = ["OpOverload", "OpOverloadPacket", "ops"]

_get_operation_overload = _C._get_operation_overload
_get_overloads = _C._jit_get_operation_overloads


class OpOverload:
    """One operator. Calling it with arguments that follow its schema runs it.

    Args:
        packet: the packet it belongs to.
        handle: the operator.
    """

    def __init__(self, packet: OpOverloadPacket, handle: Any) -> None:
        self._op = handle
        self._schema = handle.schema
        self._overloadpacket = packet
        self._overloadname = self._schema.overload_name or "default"
        self._qualified_op_name = packet._qualified_op_name
        self.__name__ = f"{packet.__name__}.{self._overloadname}"
        self.__qualname__ = self.__name__
        self.__module__ = packet.__module__

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return self._op(*args, **kwargs)

    def redispatch(self, /, keyset: Any, *args: Any, **kwargs: Any) -> Any:
        """Go on with a call at the keys of ``keyset``."""
        raw = keyset if isinstance(keyset, int) else keyset.raw_repr()
        return self._op.redispatch(raw, *args, **kwargs)

    @property
    def op(self) -> Any:
        """The operator's handle."""
        return self._op

    @property
    def overloadpacket(self) -> OpOverloadPacket:
        """The packet it belongs to."""
        return self._overloadpacket

    @property
    def namespace(self) -> str:
        """The namespace (``"aten"``)."""
        return self._schema.name.split("::")[0]

    @property
    def tags(self) -> list[Tag]:
        """The tags of the definition."""
        from ptr._tags import Tag

        return [Tag[name] for name in self._op.tags]

    @property
    def is_view(self) -> bool:
        """Whether a result shares memory with an argument that is not written to."""
        arguments = str(self._schema).rsplit("->", 1)
        return "(a)" in arguments[1] and not self._schema.is_mutable

    def name(self) -> str:
        """Return the full name, ``"aten::add.Tensor"``."""
        return self._op.name()

    def has_kernel_for_dispatch_key(self, key: Any) -> bool:
        """Return whether a kernel is registered for exactly this key."""
        return self._op.has_kernel_for_dispatch_key(str(key).rsplit(".", 1)[-1])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OpOverload) and self._op == other._op

    def __hash__(self) -> int:
        return hash(self._op)

    def __repr__(self) -> str:
        return f"<OpOverload(op='{self.namespace}.{self._overloadpacket.__name__}', overload='{self._overloadname}')>"

    def __str__(self) -> str:
        return f"{self.namespace}.{self.__name__}"

    def __deepcopy__(self, memo: Any = None) -> OpOverload:
        return self

    def __reduce__(self) -> Any:
        return (_find_overload, (self._qualified_op_name, self._overloadname))


def _find_packet(qualified_name: str) -> OpOverloadPacket:
    """Return the overloads of a name; the function named by pickled packets."""
    namespace, name = qualified_name.split("::")
    return getattr(getattr(ops, namespace), name)


def _find_overload(qualified_name: str, overload: str) -> OpOverload:
    """Return an operator by name; the function named by pickled operators."""
    return getattr(_find_packet(qualified_name), overload)


class OpOverloadPacket:
    """A name with its overloads. Calling it picks the first overload that takes the arguments.

    Args:
        qualified_op_name: ``"aten::add"``.
        op_name: ``"add"``.
        overload_names: the names of the overloads, ``""`` for the unnamed one.
    """

    def __init__(self, qualified_op_name: str, op_name: str, overload_names: list[str]) -> None:
        self._qualified_op_name = qualified_op_name
        self.__name__ = op_name
        self.__qualname__ = op_name
        self.__module__ = f"ptr.ops.{qualified_op_name.split('::')[0]}"
        self._overload_names = ["default" if name == "" else name for name in overload_names]

    def overloads(self) -> list[str]:
        """Return the names of the overloads."""
        return list(self._overload_names)

    def __getattr__(self, key: str) -> Any:
        if key.startswith("__"):
            raise AttributeError(f"'{self}' has no attribute '{key}'")
        handle = _get_operation_overload(self._qualified_op_name, key)
        if handle is None:
            raise AttributeError(f"The underlying op of '{self}' has no overload name '{key}'")
        overload = OpOverload(self, handle)
        setattr(self, key, overload)
        return overload

    def __reduce__(self) -> Any:
        return (_find_packet, (self._qualified_op_name,))

    def __iter__(self) -> Iterator[str]:
        return iter(self._overload_names)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        errors = []
        for name in self._overload_names:
            overload = getattr(self, name)
            try:
                bound = _fits(overload._schema, args, kwargs)
            except TypeError as error:
                errors.append(str(error))
                continue
            if bound:
                return overload(*args, **kwargs)
        if len(self._overload_names) == 1:
            return getattr(self, self._overload_names[0])(*args, **kwargs)
        declarations = "\n".join(f"  {getattr(self, name)._schema}" for name in self._overload_names)
        raise RuntimeError(
            f"Arguments for call are not valid. No overload of {self._qualified_op_name} takes them:\n{declarations}"
        )

    def __str__(self) -> str:
        return f"{self._qualified_op_name.replace('::', '.')}"

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{self}')>"

    def __deepcopy__(self, memo: Any = None) -> OpOverloadPacket:
        return self


_NUMBER = (int, float, complex)


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _takes(type_: str, value: Any) -> bool:
    """Whether an argument of a schema type takes a value."""
    if type_.endswith("?"):
        return value is None or _takes(type_[:-1], value)
    if type_.endswith("]"):
        element = type_[: type_.rindex("[")]
        sized = not type_.endswith("[]")
        if isinstance(value, (list, tuple)):
            return all(_takes(element, item) for item in value)
        return sized and _takes(element, value)
    if type_ == "Tensor":
        return isinstance(value, _C.Tensor)
    if type_ in ("int", "SymInt", "DeviceIndex"):
        return _is_int(value)
    if type_ == "float":
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if type_ == "bool":
        return isinstance(value, bool)
    if type_ in ("Scalar", "complex"):
        return isinstance(value, _NUMBER)
    if type_ == "str":
        return isinstance(value, str)
    if type_ == "ScalarType":
        return isinstance(value, (_C.dtype, int))
    if type_ == "Device":
        return isinstance(value, (_C.device, str))
    return True


def _fits(schema: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether a call fits a schema."""
    arguments = schema.arguments
    positional = [a for a in arguments if not a.kwarg_only]
    if len(args) > len(positional):
        return False
    left = dict(kwargs)
    for index, argument in enumerate(arguments):
        if index < len(args) and not argument.kwarg_only:
            value = args[index]
        elif argument.name in left:
            value = left.pop(argument.name)
        elif argument.has_default:
            continue
        else:
            return False
        if not _takes(argument.type, value):
            return False
    return not left


class _OpNamespace(types.ModuleType):
    """The operators of one namespace."""

    def __init__(self, name: str) -> None:
        super().__init__(f"ptr.ops.{name}")
        self.name = name

    def __getattr__(self, op_name: str) -> OpOverloadPacket:
        qualified_name = f"{self.name}::{op_name}"
        overloads = _get_overloads(qualified_name)
        if not overloads:
            raise AttributeError(f"'_OpNamespace' '{self.name}' object has no attribute '{op_name}'")
        packet = OpOverloadPacket(qualified_name, op_name, overloads)
        setattr(self, op_name, packet)
        return packet


class _Ops(types.ModuleType):
    """``ptr.ops``."""

    __file__ = "_ops.py"

    def __init__(self) -> None:
        super().__init__("ptr.ops")

    def __getattr__(self, name: str) -> _OpNamespace:
        if name.startswith("__"):
            raise AttributeError(f"module 'ptr.ops' has no attribute '{name}'")
        namespace = _OpNamespace(name)
        setattr(self, name, namespace)
        return namespace


ops = _Ops()
