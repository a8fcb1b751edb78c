"""The text of a module, and where each part of its tree stands."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Span(NamedTuple):
    """A part of the text, in bytes."""

    start: int
    end: int


class Source:
    """A module: its text, and the tree of it."""

    def __init__(self, file: str, text: str) -> None:
        self.file = file
        """Below the root of the repository."""
        self.data = text.encode()
        self.tree = ast.parse(text)
        self._lines = [0, *accumulate(len(line) for line in self.data.splitlines(keepends=True))]

    def span(self, first: ast.AST, last: ast.AST | None = None) -> Span:
        """Where a node stands, or several from the first to the last; without the parentheses
        around it."""
        last = last or first
        begin: tuple[int, int] = (first.lineno, first.col_offset)  # type: ignore[attr-defined]
        end: tuple[int, int] = (last.end_lineno, last.end_col_offset)  # type: ignore[attr-defined]
        return Span(*(self._lines[line - 1] + column for line, column in (begin, end)))

    def within_parentheses(self, span: Span, bounds: Span) -> Span:
        """The span with the parentheses around it that are inside of the bounds."""
        while True:
            before = self.data[bounds.start : span.start].rstrip()
            after = self.data[span.end : bounds.end]
            spaces = len(after) - len(after.lstrip())
            if not before.endswith(b"(") or after[spaces : spaces + 1] != b")":
                return span
            span = Span(bounds.start + len(before) - 1, span.end + spaces + 1)

    def part(self, span: Span) -> str:
        """What stands there."""
        return self.data[span.start : span.end].decode()

    def text_of(self, node: ast.AST) -> str:
        """What stands where the node is."""
        return self.part(self.span(node))

    def line(self, span: Span) -> int:
        """The number of the line where it begins."""
        return self.data.count(b"\n", 0, span.start) + 1


def sources(root: Path, packages: Sequence[str]) -> dict[str, Source]:
    """The modules of these packages, by file."""
    files = sorted(file for package in packages for file in (root / package).rglob("*.py"))
    names = [(str(file.relative_to(root)), file) for file in files]
    return {name: Source(name, file.read_text()) for name, file in names}
