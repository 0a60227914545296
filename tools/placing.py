"""Where `new_op.py` puts things: beside their siblings, in files whose order says what belongs together."""

from __future__ import annotations

import re
from collections.abc import Iterable


def after_entry(text: str, line: int, entry: str) -> tuple[str, int]:
    """A YAML file with `entry` after the one that begins at `line`, and the line where it is now."""
    lines = text.splitlines(keepends=True)
    while line < len(lines) and lines[line].startswith((" ", "\t")):
        line += 1
    return "".join(lines[:line]) + entry + "".join(lines[line:]), line + 1


def after_item(text: str, pattern: str, item: str) -> tuple[str, int] | None:
    """A Rust file with `item` after the item whose first line has `pattern`, and the line where it is now.

    rustfmt ends an item with a line that begins with its closing bracket.
    """
    lines = text.splitlines(keepends=True)
    for start, line in enumerate(lines):
        if not re.search(pattern, line):
            continue
        end = start
        while end < len(lines) and not lines[end].startswith("}"):
            end += 1
        return "".join(lines[: end + 1]) + item + "".join(lines[end + 1 :]), end + 3
    return None


def at_end(text: str, item: str) -> tuple[str, int]:
    """A Rust file with `item` at its end, but before its tests, and the line of `item`."""
    lines = text.splitlines(keepends=True)
    end = next((i for i, line in enumerate(lines) if line.startswith("#[cfg(test)]")), len(lines))
    below = lines[end:]
    while end and not lines[end - 1].strip():
        end -= 1
    return "".join(lines[:end]) + item + ("\n" if below else "") + "".join(below), end + 2


def beside_kernel(text: str, siblings: Iterable[str], line: str) -> tuple[str, int, str] | None:
    """A Rust file with a line of `register!` after that of the first sibling in it; the line's number; the sibling."""
    lines = text.splitlines(keepends=True)
    for sibling in siblings:
        for start, registered in enumerate(lines):
            if not re.match(rf"\s+{sibling}: fn\(", registered):
                continue
            end = start
            while not lines[end].rstrip().endswith(";"):
                end += 1
            return "".join(lines[: end + 1]) + line + "".join(lines[end + 1 :]), end + 2, sibling
    return None
