"""Printing of tensors.

Values are fetched once, as nested lists, and everything else is done on Python numbers: printing a small tensor costs a
handful of operator calls whatever its size. A large tensor is first cut down to the values at its edges.
"""

from __future__ import annotations

import math

import ptr as torch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["get_printoptions", "printoptions", "set_printoptions"]


class _PrinterOptions:
    __slots__ = ("edgeitems", "linewidth", "precision", "sci_mode", "threshold")

    def __init__(self) -> None:
        self.precision: int = 4
        self.threshold: float = 1000
        self.edgeitems: int = 3
        self.linewidth: int = 80
        self.sci_mode: bool | None = None


PRINT_OPTS = _PrinterOptions()

_PROFILES: dict[str, dict[str, Any]] = {
    "default": {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80},
    "short": {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 80},
    "full": {"precision": 4, "threshold": math.inf, "edgeitems": 3, "linewidth": 80},
}


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Set how tensors are printed. What is not given stays, but ``sci_mode`` goes back to ``None``.

    Args:
        precision: digits after the point. Default: 4.
        threshold: number of elements above which only the edges are shown. Default: 1000.
        edgeitems: number of elements shown at each end of a dimension in that case. Default: 3.
        linewidth: length of a line. Default: 80.
        profile: ``"default"``, ``"short"`` or ``"full"``; sets all of the above, which may then be overridden.
        sci_mode: whether to use scientific notation; ``None`` decides for each tensor.

    Example::

        >>> torch.set_printoptions(precision=2)
        >>> torch.tensor([1.12345])
        tensor([1.12])
        >>> torch.set_printoptions(profile="default")
    """
    values = dict(_PROFILES.get(profile, {})) if profile is not None else {}
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    values.update((name, value) for name, value in given.items() if value is not None)
    for name, value in values.items():
        setattr(PRINT_OPTS, name, value)
    PRINT_OPTS.sci_mode = sci_mode


def get_printoptions() -> dict[str, Any]:
    """Return the options as a dictionary of arguments for :func:`set_printoptions`."""
    return {
        name: getattr(PRINT_OPTS, name) for name in ("precision", "threshold", "edgeitems", "linewidth", "sci_mode")
    }


class printoptions:
    """Context in which the given options, those of :func:`set_printoptions`, are in force.

    Example::

        >>> with torch._tensor_str.printoptions(precision=2):
        ...     print(x)
    """

    def __init__(self, **kwargs: Any) -> None:
        self.options = kwargs

    def __enter__(self) -> None:
        self.previous = get_printoptions()
        set_printoptions(**self.options)

    def __exit__(self, *exc: object) -> None:
        set_printoptions(**self.previous)


class _Formatter:
    """How the numbers of one tensor look: one notation and one width for all of them.

    Args:
        values: the numbers, in one list.
        floating: whether they are of a floating dtype.
    """

    __slots__ = ("floating", "int_mode", "max_width", "sci_mode", "spec")

    def __init__(self, values: list[Any], floating: bool) -> None:
        self.floating = floating
        self.int_mode = True
        self.sci_mode = False
        self.max_width = 1
        self.spec = ""
        if floating:
            self._measure_floats(values)
        elif values:
            self.max_width = max(map(len, map(str, values)))

    def _measure_floats(self, values: list[float]) -> None:
        isfinite = math.isfinite
        finite = [value for value in values if value and isfinite(value)]
        if not finite:
            self.spec = ".0f"
            return
        magnitudes = [abs(value) for value in finite]
        low, high = min(magnitudes), max(magnitudes)
        self.int_mode = all(map(float.is_integer, finite))
        if PRINT_OPTS.sci_mode is None:
            self.sci_mode = high / low > 1000.0 or high > 1.0e8 or low < 1.0e-4
        else:
            self.sci_mode = PRINT_OPTS.sci_mode
        if self.sci_mode:
            spec = f".{PRINT_OPTS.precision}e"
        elif self.int_mode:
            spec = ".0f"
        else:
            spec = f".{PRINT_OPTS.precision}f"
        # Zeros, infinities and nans take part in no width: the first are never wider, the others stick out.
        width = max([len(format(value, spec)) for value in finite])
        self.spec = spec
        # Integers of a floating dtype are marked by a point.
        self.max_width = max(1, width + 1 if self.int_mode and not self.sci_mode else width)

    def format(self, value: Any) -> str:
        if not self.floating:
            return str(value).rjust(self.max_width)
        text = format(value, self.spec)
        if self.int_mode and not self.sci_mode and math.isfinite(value):
            text += "."
        return text.rjust(self.max_width)


def _flatten(nested: Any, dim: int) -> list[Any]:
    """Return the elements of nested lists of depth ``dim`` as one list."""
    if dim == 0:
        return [nested]
    for _ in range(dim - 1):
        nested = [element for inner in nested for element in inner]
    return nested


class _Printer:
    """Lays out nested lists of values.

    Args:
        cut: for each dimension whether its middle has been left out.
    """

    __slots__ = ("cut", "element_width", "formatter", "imag_formatter")

    def __init__(self, nested: Any, dim: int, dtype: Any, cut: list[bool]) -> None:
        self.cut = cut
        values = _flatten(nested, dim)
        self.imag_formatter = None
        if dtype.is_complex:
            self.formatter = _Formatter([value.real for value in values], True)
            self.imag_formatter = _Formatter([value.imag for value in values], True)
            self.element_width = self.formatter.max_width + self.imag_formatter.max_width + 1
        else:
            self.formatter = _Formatter(values, dtype.is_floating_point)
            self.element_width = self.formatter.max_width

    def scalar(self, value: Any) -> str:
        if self.imag_formatter is None:
            return self.formatter.format(value)
        imag = self.imag_formatter.format(value.imag).lstrip() + "j"
        return self.formatter.format(value.real) + (imag if imag[0] in "+-" else "+" + imag)

    def vector(self, values: list[Any], indent: int, cut: bool) -> str:
        formatter = self.formatter
        if self.imag_formatter is not None:
            texts = [self.scalar(value) for value in values]
        elif formatter.floating and not formatter.int_mode and not formatter.sci_mode:
            # The usual case, spelled out: a call per element would take most of the time.
            spec, width = formatter.spec, formatter.max_width
            texts = [format(value, spec).rjust(width) for value in values]
        else:
            texts = [formatter.format(value) for value in values]
        if cut:
            edge = PRINT_OPTS.edgeitems
            texts = [*texts[:edge], " ...", *texts[edge:]] if edge else ["..."]
        per_line = max(1, (PRINT_OPTS.linewidth - indent) // (self.element_width + 2))
        if len(texts) <= per_line:
            return "[" + ", ".join(texts) + "]"
        lines = [", ".join(texts[i : i + per_line]) for i in range(0, len(texts), per_line)]
        return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"

    def nested(self, values: Any, dim: int, indent: int) -> str:
        if dim == 0:
            return self.scalar(values)
        cut = self.cut[-dim]
        if dim == 1:
            return self.vector(values, indent, cut)
        texts = [self.nested(inner, dim - 1, indent + 1) for inner in values]
        if cut:
            texts.insert(PRINT_OPTS.edgeitems, "...")
        return "[" + ("," + "\n" * (dim - 1) + " " * (indent + 1)).join(texts) + "]"


def _cut_to_edges(tensor: Any) -> tuple[Any, list[bool]]:
    """Return the values at the edges of all long dimensions, and which dimensions were cut."""
    edge = PRINT_OPTS.edgeitems
    cut = [size > 2 * edge for size in tensor.shape]
    with torch.no_grad():
        for dim, is_cut in enumerate(cut):
            if is_cut:
                size = tensor.shape[dim]
                ends = tensor.narrow(dim, 0, edge), tensor.narrow(dim, size - edge, edge)
                tensor = torch.cat(ends, dim) if edge else ends[0]
    return tensor, cut


def _tensor_str(tensor: Any, indent: int) -> str:
    """Return the values of a dense tensor in brackets."""
    dim = tensor.dim()
    if tensor.numel() == 0:
        return "[]"
    if dim and tensor.numel() > PRINT_OPTS.threshold:
        kept, cut = _cut_to_edges(tensor)
        nested = kept.tolist()
    else:
        cut = [False] * dim
        nested = tensor.tolist()
    return _Printer(nested, dim, tensor.dtype, cut).nested(nested, dim, indent)


def _add_suffixes(text: str, suffixes: list[str], indent: int) -> str:
    """Append ``suffixes`` and the closing bracket, each on a line of its own where it does not fit."""
    line_length = len(text) - text.rfind("\n") + 1
    for suffix in suffixes:
        if line_length + len(suffix) + 2 > PRINT_OPTS.linewidth:
            text += ",\n" + " " * indent + suffix
            line_length = indent + len(suffix)
        else:
            text += ", " + suffix
            line_length += len(suffix) + 2
    return text + ")"


def _graph_suffix(tensor: Any) -> str | None:
    if not tensor.requires_grad:
        return None
    try:
        grad_fn = tensor.grad_fn
    except RuntimeError:
        # The graph of a view that was changed in place under no_grad cannot be rebuilt.
        return "grad_fn=<Invalid>"
    if grad_fn is None:
        return "requires_grad=True"
    name = type(grad_fn).__name__
    if name == "CppFunction":
        name = grad_fn.name().rsplit("::", 1)[-1]
    return f"grad_fn=<{name}>"


def _str(tensor: Any, *, tensor_contents: str | None = None) -> str:
    """Return ``repr(tensor)``.

    Args:
        tensor: any tensor.
        tensor_contents: shown in place of the values.
    """
    cls = type(tensor)
    parameter = torch.nn.Parameter
    plain = cls is torch.Tensor or cls is parameter
    prefix = "tensor(" if plain else f"{cls.__name__}("
    indent = len(prefix)
    suffixes = []
    dtype = tensor.dtype
    default_dtype = torch.get_default_dtype()

    device = tensor.device
    if device.type != "cpu":
        suffixes.append(f"device='{device}'")

    text = tensor_contents
    if tensor.is_meta:
        suffixes.append(f"size={tuple(tensor.shape)}")
        if dtype != default_dtype:
            suffixes.append(f"dtype={dtype}")
        if text is None:
            text = "..."
    elif tensor.numel() == 0:
        # Neither the shape nor an integer dtype could be read from no elements.
        if tensor.dim() != 1:
            suffixes.append(f"size={tuple(tensor.shape)}")
        if dtype != default_dtype:
            suffixes.append(f"dtype={dtype}")
        if text is None:
            text = "[]"
    else:
        if not PRINT_OPTS.edgeitems:
            suffixes.append(f"size={tuple(tensor.shape)}")
        if not (
            dtype == default_dtype
            or dtype == torch.int64
            or dtype == torch.bool
            or dtype == (torch.complex128 if default_dtype == torch.float64 else torch.complex64)
        ):
            suffixes.append(f"dtype={dtype}")
        if text is None:
            text = _tensor_str(tensor if plain else tensor.detach(), indent)

    graph = _graph_suffix(tensor)
    if graph is not None:
        suffixes.append(graph)
    result = _add_suffixes(prefix + text, suffixes, indent)
    if not plain and isinstance(tensor, parameter):
        result = f"Parameter({result})"
    return result
