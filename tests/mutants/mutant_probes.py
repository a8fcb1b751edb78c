"""Modules with probes: each statement in a function notes that it was reached, and each condition
there whether it was false or true.

That is much faster than a tracer, which Python asks at each call, also where nothing is looked for.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from typing import Any, Final

from mutant_source import Function, Source

NOTES: Final = "_reached_statements"
VALUED: Final = "_valued_condition"
"""The names of the table and of the function that notes a value, among Python's own, so that each
module finds them."""
At = tuple[str, int, int]
"""A statement: file, line, column."""
Condition = tuple[str, int, int]
"""What decides something: file, and where it begins and ends, in bytes."""


def statements(source: Source) -> Iterator[At]:
    """All statements in functions, in order."""
    for body in _bodies(source.tree, inside=False):
        yield from ((source.file, node.lineno, node.col_offset) for node in body)


def conditions(source: Source) -> Iterator[Condition]:
    """All conditions in functions, in order."""
    for node in _conditions(source.tree, None):
        span = source.span(node)
        yield source.file, span.start, span.end


def deciding(node: ast.AST, function: Function | None) -> Iterator[ast.expr]:
    """What decides in a node (`if`, `while`, `and`, ...): also what a function that says yes or no
    returns. Not what is always the same."""
    for expression in _deciding(node, function):
        if not isinstance(expression, ast.Constant):
            yield expression


def _deciding(node: ast.AST, function: Function | None) -> Iterator[ast.expr]:
    match node:
        case ast.If(test) | ast.While(test) | ast.IfExp(test):
            yield test
        case ast.BoolOp(values=values):
            yield from values
        case ast.comprehension(ifs=tests):
            yield from tests
        case ast.match_case(guard=ast.expr() as test):
            yield test
        case ast.Return(ast.expr() as value):
            if (
                function
                and isinstance(function.returns, ast.Name)
                and function.returns.id == "bool"
            ):
                yield value


def _conditions(node: ast.AST, function: Function | None) -> Iterator[ast.expr]:
    if function is not None and not isinstance(node, ast.BoolOp):
        for expression in deciding(node, function):
            yield expression
            yield from _terms(expression)
    for field, value in ast.iter_fields(node):
        inner = node if isinstance(node, Function) and field == "body" else function
        for part in value if isinstance(value, list) else [value]:
            if isinstance(part, ast.AST):
                yield from _conditions(part, inner)


def _terms(condition: ast.expr) -> Iterator[ast.expr]:
    """What `and` and `or` join in a condition. Elsewhere their values are more than yes or no."""
    match condition:
        case ast.BoolOp(values=values):
            for value in values:
                if not isinstance(value, ast.Constant):
                    yield value
                yield from _terms(value)
        case ast.UnaryOp(ast.Not(), operand):
            yield from _terms(operand)


class _Valued(ast.NodeTransformer):
    """Has each of these conditions note its value: false under its number, true under the next."""

    def __init__(self, numbers: dict[ast.AST, int]) -> None:
        self._numbers = numbers

    def visit(self, node: ast.AST) -> ast.AST:
        self.generic_visit(node)
        number = self._numbers.get(node)
        if number is None or not isinstance(node, ast.expr):
            return node
        call = ast.Call(ast.Name(VALUED, ast.Load()), [node, ast.Constant(number)], [])
        return ast.fix_missing_locations(ast.copy_location(call, node))


def probed(source: Source, first: int, first_value: int | None = None) -> ast.Module:
    """The module with a probe before each statement and around each condition; the tree of the
    source is changed. `first`: the number of its first statement, `first_value`: that of the first
    condition, each of which has two; None: conditions have no probes."""
    if first_value is not None:
        nodes = enumerate(_conditions(source.tree, None))
        _Valued({node: first_value + 2 * place for place, node in nodes}).visit(source.tree)
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
    """For so many numbers: from now on probes write there."""
    table = bytearray(count)

    def valued(value: Any, number: int) -> Any:
        table[number + bool(value)] = 1
        return value

    setattr(builtins, NOTES, table)
    setattr(builtins, VALUED, valued)


def heard() -> bytes:
    """Of each number whether it was noted since the last time: 0 or 1."""
    table: bytearray = getattr(builtins, NOTES)
    found = bytes(table)
    table[:] = bytes(len(table))
    return found
