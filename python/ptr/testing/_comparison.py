"""Comparison of tensors, numbers and containers of them."""

from __future__ import annotations

import cmath
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import ptr as torch

__all__ = ["assert_close", "default_tolerances"]

_TOLERANCES = {
    torch.float16: (1e-3, 1e-5),
    torch.bfloat16: (1.6e-2, 1e-5),
    torch.float32: (1.3e-6, 1e-5),
    torch.float64: (1e-7, 1e-7),
    torch.complex64: (1.3e-6, 1e-5),
    torch.complex128: (1e-7, 1e-7),
}
_NUMBER_DTYPES = {int: torch.int64, float: torch.float64, complex: torch.complex128}


class _Mismatch(Exception):
    """A difference found while comparing: the error class it becomes, its message and where it is."""

    def __init__(self, error: type[Exception], message: str, path: tuple[Any, ...] = ()) -> None:
        super().__init__(message)
        self.error = error
        self.message = message
        self.path = path

    def to_error(self, msg: str | Callable[[str], str] | None) -> Exception:
        message = self.message
        if self.path:
            message += f"\n\nThe failure occurred for item {''.join(f'[{item!r}]' for item in self.path)}"
        # A misuse is reported in its own words: msg is about the comparison.
        if self.error is not AssertionError or msg is None:
            return self.error(message)
        return self.error(msg if isinstance(msg, str) else msg(message))


def default_tolerances(*inputs: Any) -> tuple[float, float]:
    """Return the relative and absolute tolerance for the least precise of ``inputs``, tensors or dtypes."""
    pairs = []
    for value in inputs:
        dtype = value if isinstance(value, torch.dtype) else value.dtype
        pairs.append(_TOLERANCES.get(dtype, (0.0, 0.0)))
    return max(rtol for rtol, _ in pairs), max(atol for _, atol in pairs)


class _Comparison:
    """The options of one comparison."""

    def __init__(
        self,
        allow_subclasses: bool,
        rtol: float | None,
        atol: float | None,
        equal_nan: bool,
        check_device: bool,
        check_dtype: bool,
        check_layout: bool,
        check_stride: bool,
    ) -> None:
        if (rtol is None) != (atol is None):
            missing = "rtol" if rtol is None else "atol"
            raise _Mismatch(
                ValueError, f"Both 'rtol' and 'atol' must be either specified or omitted, but got no {missing}."
            )
        self.allow_subclasses = allow_subclasses
        self.rtol = rtol
        self.atol = atol
        self.equal_nan = equal_nan
        self.check_device = check_device
        self.check_dtype = check_dtype
        self.check_layout = check_layout
        self.check_stride = check_stride

    def tolerances(self, *inputs: Any) -> tuple[float, float]:
        if self.rtol is None or self.atol is None:
            return default_tolerances(*inputs)
        return self.rtol, self.atol

    def compare(self, actual: Any, expected: Any, path: tuple[Any, ...] = ()) -> None:
        """Raise the first :class:`_Mismatch` between two values."""
        if _are(actual, expected, Sequence) and not (isinstance(actual, str) or isinstance(expected, str)):
            if len(actual) != len(expected):
                raise _Mismatch(
                    AssertionError,
                    f"The length of the sequences mismatch: {len(actual)} != {len(expected)}",
                    path,
                )
            for i, pair in enumerate(zip(actual, expected, strict=True)):
                self.compare(*pair, (*path, i))
        elif _are(actual, expected, Mapping):
            if set(actual) != set(expected):
                raise _Mismatch(
                    AssertionError,
                    "The keys of the mappings do not match:\n"
                    f"Missing keys in the actual mapping: {sorted(set(expected) - set(actual), key=repr)}\n"
                    f"Additional keys in the actual mapping: {sorted(set(actual) - set(expected), key=repr)}",
                    path,
                )
            for key in actual:
                self.compare(actual[key], expected[key], (*path, key))
        else:
            try:
                self.compare_leaves(actual, expected)
            except _Mismatch as mismatch:
                mismatch.path = path
                raise

    def compare_leaves(self, actual: Any, expected: Any) -> None:
        if actual is None or expected is None:
            if actual is not expected:
                raise _Mismatch(AssertionError, f"None mismatch: {actual} is not {expected}")
            return
        a, e = _plain_number(actual), _plain_number(expected)
        if isinstance(a, bool) and isinstance(e, bool):
            if a is not e:
                raise _Mismatch(AssertionError, f"Booleans mismatch: {a} is not {e}")
        elif isinstance(a, (int, float, complex)) and isinstance(e, (int, float, complex)):
            self.compare_numbers(a, e)
        else:
            self.compare_tensors(*self.to_tensors(actual, expected))

    def compare_numbers(self, actual: Any, expected: Any) -> None:
        if self.check_dtype and type(actual) is not type(expected):
            raise _Mismatch(AssertionError, f"The (d)types do not match: {type(actual)} != {type(expected)}.")
        if actual == expected or (self.equal_nan and cmath.isnan(actual) and cmath.isnan(expected)):
            return
        # bool is not in the table, but is an int.
        dtypes = [_NUMBER_DTYPES.get(type(value), torch.int64) for value in (actual, expected)]
        rtol, atol = self.tolerances(*dtypes)
        difference = abs(actual - expected)
        if cmath.isfinite(difference) and difference <= atol + rtol * abs(expected):
            return
        raise _Mismatch(AssertionError, _scalar_message("Scalars", actual, expected, rtol, atol))

    def to_tensors(self, actual: Any, expected: Any) -> tuple[Any, Any]:
        related = isinstance(actual, type(expected)) or isinstance(expected, type(actual))
        if related and (self.allow_subclasses or type(actual) is type(expected)):
            try:
                return tuple(  # type: ignore[return-value]
                    value if isinstance(value, torch.Tensor) else torch.as_tensor(value) for value in (actual, expected)
                )
            except (TypeError, ValueError, RuntimeError):
                pass
        raise _Mismatch(
            TypeError, f"No comparison pair was able to handle inputs of type {type(actual)} and {type(expected)}."
        )

    def compare_tensors(self, actual: Any, expected: Any) -> None:
        rtol, atol = self.tolerances(actual, expected)
        self.compare_attribute("shape", actual.shape, expected.shape)
        if actual.layout != expected.layout:
            if self.check_layout:
                self.compare_attribute("layout", actual.layout, expected.layout)
        elif self.check_stride and actual.layout is torch.strided:
            self.compare_attribute("stride()", actual.stride(), expected.stride())
        if self.check_device:
            self.compare_attribute("device", actual.device, expected.device)
        if self.check_dtype:
            self.compare_attribute("dtype", actual.dtype, expected.dtype)
        if actual.is_meta or expected.is_meta:
            return

        if actual.device != expected.device:
            actual, expected = actual.cpu(), expected.cpu()
        if actual.dtype != expected.dtype:
            wide = (torch.uint16, torch.uint32, torch.uint64)
            dtype = torch.promote_types(
                *[torch.int64 if value.dtype in wide else value.dtype for value in (actual, expected)]
            )
            actual, expected = actual.to(dtype), expected.to(dtype)
        if actual.layout != expected.layout:
            actual, expected = [v if v.layout is torch.strided else v.to_dense() for v in (actual, expected)]

        matches = torch.isclose(actual, expected, rtol=rtol, atol=atol, equal_nan=self.equal_nan)
        if bool(matches.all()):
            return
        if actual.dim() == 0:
            raise _Mismatch(AssertionError, _scalar_message("Tensor-likes", actual.item(), expected.item(), rtol, atol))
        raise _Mismatch(AssertionError, _tensor_message(actual, expected, matches, rtol, atol))

    @staticmethod
    def compare_attribute(name: str, actual: Any, expected: Any) -> None:
        if actual != expected:
            raise _Mismatch(AssertionError, f"The values for attribute '{name}' do not match: {actual} != {expected}.")


def _are(actual: Any, expected: Any, cls: type) -> bool:
    return isinstance(actual, cls) and isinstance(expected, cls)


def _plain_number(value: Any) -> Any:
    """Return a NumPy scalar as the Python number it stands for, anything else as it is."""
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, (numpy.bool_, numpy.number)):
        return value.item()
    return value


def _message(
    what: str,
    extra: str,
    rtol: float,
    atol: float,
    absolute: tuple[float, Any],
    relative: tuple[float, Any],
) -> str:
    exact = rtol == 0 and atol == 0
    lines = [f"{what} are not {'equal' if exact else 'close'}!", "", extra]
    for kind, (difference, index), tolerance in (("absolute", absolute, atol), ("relative", relative, rtol)):
        if index is None:
            line = f"{kind.title()} difference: {difference}"
        else:
            line = f"Greatest {kind} difference: {difference} at index {index}"
        lines.append(line if exact else f"{line} (up to {tolerance} allowed)")
    return "\n".join(lines)


def _scalar_message(what: str, actual: Any, expected: Any, rtol: float, atol: float) -> str:
    difference = abs(actual - expected)
    relative = float("inf") if expected == 0 else difference / abs(expected)
    extra = f"Expected {expected} but got {actual}."
    return _message(what, extra, rtol, atol, (difference, None), (relative, None))


def _tensor_message(actual: Any, expected: Any, matches: Any, rtol: float, atol: float) -> str:
    total = matches.numel()
    matches = matches.flatten()
    wrong = total - int(matches.sum())
    shape = actual.shape
    actual, expected = actual.detach().flatten(), expected.detach().flatten()
    if not (actual.dtype.is_floating_point or actual.dtype.is_complex):
        # Differences of unsigned or narrow integers may not fit their dtype, those of booleans do not exist.
        actual, expected = actual.to(torch.int64), expected.to(torch.int64)

    def greatest(difference: Any) -> tuple[float, tuple[int, ...]]:
        difference[matches] = 0
        value, flat = torch.max(difference, 0)
        index = []
        position = int(flat)
        for size in reversed(shape):
            position, remainder = divmod(position, size)
            index.append(remainder)
        return value.item(), tuple(reversed(index))

    difference = torch.abs(actual - expected)
    relative = difference / torch.abs(expected)
    extra = f"Mismatched elements: {wrong} / {total} ({wrong / total:.1%})"
    return _message("Tensor-likes", extra, rtol, atol, greatest(difference), greatest(relative))


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: str | Callable[[str], str] | None = None,
) -> None:
    """Assert that two values are close: :math:`|actual - expected| \\le atol + rtol \\cdot |expected|` in all elements.

    Values may be tensors, what converts to tensors, numbers, booleans, ``None``, and sequences and mappings of such.

    Args:
        actual, expected: the values.
        allow_subclasses: let a subclass stand for its class.
        rtol, atol: the tolerances, both or neither. By default they follow from the less precise dtype: 1e-3 and 1e-5
            for ``float16``, 1.6e-2 and 1e-5 for ``bfloat16``, 1.3e-6 and 1e-5 for ``float32``, 1e-7 both for
            ``float64``, likewise for complex dtypes, 0 for others.
        equal_nan: let nan equal nan.
        check_device, check_dtype, check_layout, check_stride: demand that these are equal too.
        msg: the message of the error, or a function of the generated one.

    Raises:
        AssertionError: the values are not close.
        TypeError: they cannot be compared.
        ValueError: only one of the tolerances is given.

    Example::

        >>> torch.testing.assert_close(torch.tensor([1.0]), torch.tensor([1.0 + 1e-7]))
    """
    __tracebackhide__ = True
    try:
        comparison = _Comparison(
            allow_subclasses, rtol, atol, equal_nan, check_device, check_dtype, check_layout, check_stride
        )
        comparison.compare(actual, expected)
    except _Mismatch as mismatch:
        error = mismatch.to_error(msg)
    else:
        return
    raise error
