"""The parser of PyTorch's schema language, for the subset that operator declarations use."""

from __future__ import annotations

import re

from .model import DEFAULT_NAMESPACE, Alias, Argument, Return, Schema, Type

BASE_TYPES = frozenset(
    "Tensor int SymInt float SymFloat bool SymBool complex Scalar str ScalarType Layout Device MemoryFormat Generator "
    "Storage Stream".split()
)

_TOKEN = re.compile(r"\s*(->|[A-Za-z_][A-Za-z_0-9]*|-?\d+\.\d*(?:e-?\d+)?|-?\d+(?:e-?\d+)?|\"[^\"]*\"|'[^']*'|.)")


class SchemaError(Exception):
    """A schema that does not parse; the caller adds where it stands."""


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = [m.group(1) for m in _TOKEN.finditer(text.strip()) if m.group(1).strip()]
        self.position = 0

    def peek(self) -> str:
        return self.tokens[self.position] if self.position < len(self.tokens) else ""

    def next(self) -> str:
        token = self.peek()
        if not token:
            raise SchemaError(f"unexpected end of schema {self.text!r}")
        self.position += 1
        return token

    def accept(self, token: str) -> bool:
        if self.peek() == token:
            self.position += 1
            return True
        return False

    def expect(self, token: str) -> None:
        got = self.next()
        if got != token:
            raise SchemaError(f"expected {token!r}, got {got!r} in {self.text!r}")

    def ident(self, what: str) -> str:
        token = self.next()
        if not re.fullmatch(r"[A-Za-z_]\w*", token):
            raise SchemaError(f"expected {what}, got {token!r} in {self.text!r}")
        return token

    def alias_set(self) -> tuple[str, ...]:
        names = [self.next()]
        while self.accept("|"):
            names.append(self.next())
        return tuple(names)

    def alias(self) -> Alias | None:
        if not self.accept("("):
            return None
        before = self.alias_set()
        is_write = self.accept("!")
        after = self.alias_set() if self.accept("->") else before
        self.expect(")")
        return Alias(before, is_write, after)

    def type(self) -> Type:
        base = self.ident("a type")
        if base not in BASE_TYPES:
            raise SchemaError(f"unknown type {base!r}; known are {', '.join(sorted(BASE_TYPES))}")
        alias = self.alias()
        optional = self.accept("?")
        if not self.accept("["):
            return Type(base, alias, optional=optional)
        size = None
        if self.peek() != "]":
            token = self.next()
            if not token.isdigit():
                raise SchemaError(f"expected a list size, got {token!r} in {self.text!r}")
            size = int(token)
        self.expect("]")
        # A list may carry the annotation of its elements' storage: `Tensor(a!)[]` and `Tensor[](a!)` mean the same.
        return Type(base, alias or self.alias(), True, size, element_optional=optional, optional=self.accept("?"))

    def default(self) -> str:
        if self.accept("["):
            items: list[str] = []
            while not self.accept("]"):
                items.append(self.next())
                self.accept(",")
            return f"[{', '.join(items)}]"
        return self.next()

    def arguments(self) -> tuple[Argument, ...]:
        self.expect("(")
        arguments: list[Argument] = []
        kwarg_only = False
        while not self.accept(")"):
            if self.accept("*"):
                if kwarg_only:
                    raise SchemaError(f"'*' appears twice in {self.text!r}")
                kwarg_only = True
            else:
                kind = self.type()
                name = self.ident("an argument name")
                if any(a.name == name for a in arguments):
                    raise SchemaError(f"argument {name!r} appears twice in {self.text!r}")
                default = self.default() if self.accept("=") else None
                if default is None and not kwarg_only and arguments and arguments[-1].default is not None:
                    raise SchemaError(f"argument {name!r} without default follows one with default in {self.text!r}")
                arguments.append(Argument(name, kind, default, kwarg_only))
            if self.peek() != ")":
                self.expect(",")
        return tuple(arguments)

    def single_return(self) -> Return:
        kind = self.type()
        name = self.ident("a return name") if re.fullmatch(r"[A-Za-z_]\w*", self.peek()) else ""
        return Return(kind, name)

    def returns(self) -> tuple[Return, ...]:
        self.expect("->")
        if not self.accept("("):
            return (self.single_return(),)
        returns: list[Return] = []
        while not self.accept(")"):
            returns.append(self.single_return())
            if self.peek() != ")":
                self.expect(",")
        return tuple(returns)


def parse_schema(text: str) -> Schema:
    """Parses `name.overload(arguments) -> returns`; `namespace::name` for another namespace than `aten`."""
    parser = _Parser(text)
    name, namespace = parser.ident("an operator name"), DEFAULT_NAMESPACE
    if parser.accept(":"):
        parser.expect(":")
        name, namespace = parser.ident("an operator name"), name
    overload = parser.ident("an overload name") if parser.accept(".") else ""
    schema = Schema(name, overload, parser.arguments(), parser.returns(), namespace)
    if parser.peek():
        raise SchemaError(f"unexpected {parser.peek()!r} after the schema in {text!r}")
    return schema
