"""Modules with probes: each statement in a function notes that it was reached.

That is much faster than a tracer, which Python asks at each call, also where nothing is looked for.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from typing import Final

from mutant_source import Function, Source

NOTES: Final = "_reached_statements"
"""The name of the table among Python's own, so that each module finds it."""
At = tuple[str, int, int]
"""A statement: file, line, column."""


def statements(source: Source) -> Iterator[At]:
    """All statements in functions, in order."""
    for body in _bodies(source.tree, inside=False):
        yield from ((source.file, node.lineno, node.col_offset) for node in body)


def probed(source: Source, first: int) -> ast.Module:
    """The module with a probe before each of them; the tree of the source is changed. `first`: the
    number of its first statement."""
    number = first
    for body in list(_bodies(source.tree, inside=False)):
        before, body[:] = list(body), []
        for place, node in enumerate(before):
            if place or not _is_text(node):  # a docstring must stay the first
                body.append(_probe(number, node))
            body.append(node)
            number += 1
    return source.tree


def _bodies(node: ast.AST, *, inside: bool) -> Iterator[list[ast.stmt]]:
    for field, value in ast.iter_fields(node):
        parts = value if isinstance(value, list) else [value]
        within = inside or (isinstance(node, Function) and field == "body")
        if within and parts and isinstance(parts[0], ast.stmt):
            yield value
        for part in parts:
            if isinstance(part, ast.AST):
                yield from _bodies(part, inside=within)


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _probe(number: int, before: ast.stmt) -> ast.stmt:
    place = ast.Subscript(ast.Name(NOTES, ast.Load()), ast.Constant(number), ast.Store())
    probe = ast.Assign([place], ast.Constant(1))
    for node in ast.walk(probe):
        ast.copy_location(node, before)
    return probe


def new_table(count: int) -> None:
    """For so many statements: from now on probes write there."""
    setattr(builtins, NOTES, bytearray(count))


def heard() -> bytes:
    """Of each statement whether it was reached since the last time: 0 or 1."""
    table: bytearray = getattr(builtins, NOTES)
    found = bytes(table)
    table[:] = bytes(len(table))
    return found
