"""Mutants by lot of statements: left out, returned from early, exceptions swallowed or let on."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import Final

from lot_left_out import is_log, left_out
from lot_values import Change, Place
from mutant_source import Function, Source

EMPTY: Final = {
    **dict.fromkeys(("list", "Sequence", "Iterable", "Collection"), "[]"),
    **dict.fromkeys(("dict", "Mapping"), "{}"),
    **{"tuple": "()", "set": "set()", "frozenset": "frozenset()", "str": '""', "int": "0"},
}
"""What a function returns early, by the first word of its annotation."""


def missing(place: Place, source: Source) -> Iterator[Change]:
    """A statement that does something is not there: a call, an assignment to what is there
    already, a `raise`, a loop."""
    node = place.node
    if isinstance(node, ast.stmt) and not is_log(node):
        match node:
            case ast.Expr(ast.Await()):
                yield Change("await left out", source.span(node), "pass")
            case ast.Assign([ast.Attribute() | ast.Subscript()]) | ast.AugAssign() | ast.Delete():
                yield Change("statement left out", source.span(node), "pass")
            case ast.AnnAssign(ast.Attribute() | ast.Subscript(), value=ast.expr()):
                yield Change("statement left out", source.span(node), "pass")
            case ast.Expr() | ast.Raise() | ast.Break() | ast.Continue():
                yield Change("statement left out", source.span(node), "pass")
            case ast.For() | ast.AsyncFor():
                yield Change("statement left out", source.span(node), "pass")
    if isinstance(node, Function):
        for statement in _assigned_again(node):
            yield Change("statement left out", source.span(statement), "pass", statement)


def _assigned_again(function: Function) -> Iterator[ast.Assign]:
    """Assignments to names that have a value before."""
    args = function.args
    bound = {arg.arg for arg in [*args.posonlyargs, *args.args, *args.kwonlyargs]}
    for node in _own(function.body):
        if isinstance(node, ast.Assign):
            names = {each.id for each in ast.walk(node) if _is_stored(each)}
            if names and names <= bound:
                yield node
        bound |= {each.id for each in ast.walk(node) if _is_stored(each)}


def _is_stored(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)


def _own(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a function, in order; not those of functions in it."""
    for node in body:
        yield node
        if not isinstance(node, Function | ast.ClassDef):
            for part in ast.iter_child_nodes(node):
                if isinstance(part, ast.stmt):
                    yield from _own([part])
                elif isinstance(part, ast.ExceptHandler | ast.match_case):
                    yield from _own(part.body)


def early(place: Place, source: Source) -> Iterator[Change]:
    """A function that returns nothing does so before each of its statements; one that may return
    None or something empty does so at once."""
    node = place.node
    if not isinstance(node, Function):
        return
    value = _early_value(node)
    body = [each for each in node.body if not left_out(each)]
    if value is None or any(isinstance(n, ast.Yield | ast.YieldFrom) for n in ast.walk(node)):
        return
    for statement in body if value == "" else body[:1]:
        span = source.span(statement)
        if isinstance(statement, Function | ast.Return):
            continue
        new = f"{f'return {value}'.rstrip()}\n{' ' * statement.col_offset}"
        yield Change("early return", span._replace(end=span.start), new, statement)


def _early_value(function: Function) -> str | None:
    """The word behind `return`; None: it does not return early."""
    annotation = function.returns
    match annotation:
        case ast.Constant(None):
            return ""
        case ast.BinOp(right=ast.Constant(None)):
            return "None"
        case ast.Name(name) | ast.Subscript(ast.Name(name)):
            return EMPTY.get(name)
    return None


def handlers(place: Place, source: Source) -> Iterator[Change]:
    """What handles an exception lets it through, or does nothing."""
    if not isinstance(place.node, ast.ExceptHandler):
        return
    body = place.node.body
    span = source.span(body[0], body[-1])
    does_nothing = all(is_log(each) or isinstance(each, ast.Pass | ast.Continue) for each in body)
    if source.part(span) != "raise":
        yield Change("exception let through", span, "raise", body[0])
    if not does_nothing:
        yield Change("exception swallowed", span, "pass", body[0])
