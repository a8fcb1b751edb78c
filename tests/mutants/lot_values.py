"""Mutants by lot of values: conditions, comparisons, constants, arguments, elements, fields."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Final, NamedTuple

from lot_records import Records
from mutant_probes import deciding
from mutant_source import Function, Source, Span


class Change(NamedTuple):
    """One small change of a module."""

    operator: str
    span: Span
    new: str
    """What stands there instead."""
    at: ast.stmt | None = None
    """The statement by which a case reaches it, where it is not the one around it."""


class Place(NamedTuple):
    """A node, and how its parent has it."""

    node: ast.AST
    parent: ast.AST
    field: str
    function: Function | None
    """The one around it."""
    default: bool
    """Whether it belongs to the default of a parameter or field."""


FIXED: Final = "condition fixed"
MOVED: Final = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
TURNED: Final = {
    **{"<": ">", "<=": ">=", ">": "<", ">=": "<="},
    **{"==": "!=", "!=": "==", "in": "not in", "not in": "in", "is": "is not", "is not": "is"},
}
WRITTEN: Final = re.compile(rb"not\s+in|is\s+not|<=|>=|==|!=|<|>|in\b|is\b")
SMALL: Final = 10
"""Numbers below it become one more, others double."""


def conditions(place: Place, source: Source) -> Iterator[Change]:
    """What decides (of `if`, `while`, `and`, ...), and what a function that says yes or no
    returns: negated, always true, always false."""
    for node in deciding(place.node, place.function):
        span = source.span(node)
        yield Change("condition negated", span, f"not ({source.part(span)})")
        yield Change(FIXED, span, "True")
        yield Change(FIXED, span, "False")


def comparisons(place: Place, source: Source) -> Iterator[Change]:
    """`<` becomes `<=` or `>`, `==` becomes `!=`. What a negated condition is already is not made
    again."""
    if not isinstance(place.node, ast.Compare):
        return
    terms = [place.node.left, *place.node.comparators]
    for left, right in pairwise(terms):
        between = Span(source.span(left).end, source.span(right).start)
        found = WRITTEN.search(source.data, *between)
        if not found:
            continue
        span, word = Span(*found.span()), " ".join(found[0].decode().split())
        if word in MOVED:
            yield Change("comparison moved", span, MOVED[word])
        if word in MOVED or len(terms) > 2 or not _decides(place):
            yield Change("comparison turned", span, TURNED[word])


def _decides(place: Place) -> bool:
    """Whether it is a condition itself, or the opposite of one."""
    match place.parent:
        case ast.UnaryOp(ast.Not()):
            return True
        case parent:
            return place.node in deciding(parent, place.function)


def constants(place: Place, source: Source) -> Iterator[Change]:
    """Numbers, words, True and False become others."""
    node, span = place.node, None
    if isinstance(node, ast.Constant | ast.JoinedStr):
        span = source.span(node)
    if span is None or isinstance(place.parent, ast.FormattedValue):
        return
    new, kind = _other(node, source.part(span))
    if new:
        yield Change("default changed" if place.default else f"{kind} changed", span, new)


def _other(node: ast.AST, written: str) -> tuple[str, str]:
    match node:
        case ast.Constant(bool(value)):
            return repr(not value), "truth"
        case ast.Constant(int(value)):
            more = value < SMALL or written[:2].lower() in ("0o", "0x", "0b")
            return str(value + 1 if more else 2 * value), "number"
        case ast.Constant(float(value)):
            return repr(2 * value or 1.0), "number"
        case ast.Constant(bytes()):
            return f'({written} b"x")', "word"
        case ast.Constant(str()) | ast.JoinedStr():
            return f'({written} "x")', "word"
    return "", ""


def exchanged(place: Place, source: Source) -> Iterator[Change]:
    """Of a call two neighbouring arguments, of those without and of those with names."""
    if not isinstance(place.node, ast.Call):
        return
    named = [word.value for word in place.node.keywords if word.arg]
    for values in (place.node.args, named):
        for one, other in pairwise(values):
            if isinstance(one, ast.Starred) or isinstance(other, ast.Starred):
                continue
            first, second = source.text_of(one), source.text_of(other)
            between = source.part(Span(source.span(one).end, source.span(other).start))
            if first != second:
                new = f"{second}{between}{first}"
                yield Change("arguments exchanged", source.span(one, other), new)


def elements(place: Place, source: Source) -> Iterator[Change]:
    """One is missing in a list, set, table or dict, or in a tuple that is used as a list."""
    node, inner = place.node, Span(0, 0)
    match node:
        case ast.List() | ast.Set():
            spans, empty = [source.span(each) for each in node.elts], "[]"
        case ast.Tuple() if _is_list(place) and source.text_of(node).startswith("("):
            spans, empty = [source.span(each) for each in node.elts], "()"
        case ast.Dict():
            pairs = zip(node.keys, node.values, strict=True)
            spans, empty = [_entry(source, key, value) for key, value in pairs], "{}"
        case _:
            return
    whole = source.span(node)
    inner = Span(whole.start + 1, whole.end - 1)
    spans = [source.within_parentheses(span, inner) for span in spans]
    if len(spans) == 1:
        yield Change("element left out", whole, "set()" if isinstance(node, ast.Set) else empty)
        return
    for this, following in pairwise(spans):
        tuple_of_one = isinstance(node, ast.Tuple) and len(spans) == 2
        if tuple_of_one:
            yield Change("element left out", whole, f"({source.part(following)},)")
        else:
            yield Change("element left out", Span(this.start, following.start), "")
    if spans:
        before, last = spans[-2:]
        comma = "," if len(spans) == 2 and isinstance(node, ast.Tuple) else ""
        yield Change("element left out", Span(before.end, last.end), comma)


def _entry(source: Source, key: ast.expr | None, value: ast.expr) -> Span:
    if key is not None:
        return source.span(key, value)
    span = source.span(value)
    return Span(source.data.rindex(b"**", 0, span.start), span.end)


def _is_list(place: Place) -> bool:
    """Whether the tuple is a list by its place: assigned, looped over, searched, an argument."""
    match place.parent:
        case ast.Assign(targets=[ast.Name() | ast.Attribute()]) | ast.AnnAssign():
            return True
        case ast.For() | ast.AsyncFor() | ast.comprehension() | ast.Starred() | ast.arguments():
            return True
        case ast.Compare(comparators=[*others]):
            return place.node in others
        case ast.Call() | ast.keyword() | ast.ExceptHandler():
            return place.field != "func"
    return False


def fields(place: Place, source: Source, records: Records, messages: set[str]) -> Iterator[Change]:
    """A keyword argument is missing that has a default."""
    if not isinstance(place.node, ast.Call):
        return
    for word in records.optional(place.node, messages):
        yield Change("field not filled in", _argument(place.node, word, source), "")


def _argument(call: ast.Call, word: ast.keyword, source: Source) -> Span:
    """An argument with the comma that belongs to it."""
    span, end = source.span(word), source.span(call).end - 1
    rest = Span(source.span(call.func).end, end)
    span = Span(span.start, _end_of(source, word, rest))
    after = source.data[span.end : end]
    if after.lstrip().startswith(b","):
        return Span(span.start, span.end + after.index(b",") + 1)
    before = source.data[rest.start : span.start].rstrip()
    if before.endswith(b","):
        return Span(rest.start + len(before) - 1, span.end)
    return span


def _end_of(source: Source, word: ast.keyword, bounds: Span) -> int:
    """Of an argument, with the parentheses around its value."""
    value = source.span(word.value)
    inner = Span(source.span(word).start, bounds.end)
    return source.within_parentheses(value, inner).end


def suppressed(place: Place, source: Source) -> Iterator[Change]:
    """`with suppress(...)` lets through what it kept."""
    match place.node:
        case ast.Call(ast.Name("suppress") | ast.Attribute(attr="suppress"), [_, *_] as kinds):
            span = source.span(kinds[0], kinds[-1])
            yield Change("exception let through", span, "")
