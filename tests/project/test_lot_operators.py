"""Mutants by lot: what each operator makes of a small text, and what is left alone."""

from __future__ import annotations

import ast
from collections.abc import Sequence

import pytest
from lot_draw import Site, Walk, is_python
from lot_records import Records
from mutant_source import Source, Span


def sites(text: str) -> list[Site]:
    source = Source("refkubelet/x.py", text)
    return list(Walk(source, Records([source.tree])).sites())


def made(text: str, operator: str) -> list[str]:
    """The texts that an operator makes of a text."""
    return [site.text(text.encode()) for site in sites(text) if site.operator == operator]


def one(kind: str, before: str, *after: str) -> tuple[str, str, Sequence[str]]:
    """A row: the operator, a text, what is made of it."""
    return kind, before, after


@pytest.mark.parametrize(
    ("operator", "before", "after"),
    [
        one(
            "condition negated",
            "if a and b: c",
            "if not (a and b): c",
            "if not (a) and b: c",
            "if a and not (b): c",
        ),
        one("condition negated", "x = [i for i in y if z]", "x = [i for i in y if not (z)]"),
        one("condition negated", "x = a if b else c", "x = a if not (b) else c"),
        one("condition negated", "def f() -> bool: return a", "def f() -> bool: return not (a)"),
        one("condition fixed", "while a: b", "while True: b", "while False: b"),
        one("condition fixed", "while True: b"),
        one("comparison moved", "x = a < b", "x = a <= b"),
        one("comparison moved", "x = a >= (b)", "x = a > (b)"),
        one("comparison turned", "x = a < b", "x = a > b"),
        one("comparison turned", "x = a not in b", "x = a in b"),
        one("comparison turned", "if a == b: c"),  # the same as its condition negated
        one("comparison turned", "if a < b < c: d", "if a > b < c: d", "if a < b > c: d"),
        one(
            "number changed",
            "x = 9, 10, 1.5, 0.0, 0o644",
            "x = 10, 10, 1.5, 0.0, 0o644",
            "x = 9, 20, 1.5, 0.0, 0o644",
            "x = 9, 10, 3.0, 0.0, 0o644",
            "x = 9, 10, 1.5, 1.0, 0o644",
            "x = 9, 10, 1.5, 0.0, 421",
        ),
        one("word changed", "x = 'a'", "x = ('a' \"x\")"),
        one("word changed", "x = b'a'", "x = (b'a' b\"x\")"),
        one("word changed", "x = f'{a}'", "x = (f'{a}' \"x\")"),
        one("truth changed", "f(True)", "f(False)"),
        one(
            "default changed",
            "def f(a=1, *, b=True): c",
            "def f(a=2, *, b=True): c",
            "def f(a=1, *, b=False): c",
        ),
        one("default changed", "class A:\n    b: int = 1", "class A:\n    b: int = 2"),
        one("arguments exchanged", "f(a, b, x=c, y=d)", "f(b, a, x=c, y=d)", "f(a, b, x=d, y=c)"),
        one("arguments exchanged", "f(a, *b)"),
        one("element left out", "x = [a, (b), c]", "x = [(b), c]", "x = [a, c]", "x = [a, (b)]"),
        one("element left out", "x = {a}", "x = set()"),
        one("element left out", "x = (a, b)", "x = (b,)", "x = (a,)"),
        one("element left out", "x = {a: b, **c}", "x = {**c}", "x = {a: b}"),
        one("element left out", "def f(): return (a, b)"),  # its caller wants two
        one("exception let through", "with suppress(A, B): c", "with suppress(): c"),
        one("exception let through", "try: a\nexcept A: b; c", "try: a\nexcept A: raise"),
        one("exception swallowed", "try: a\nexcept A: b; c", "try: a\nexcept A: pass"),
        one("exception swallowed", "try: a\nexcept A: log.info(1)"),
        one("statement left out", "f()", "pass"),
        one("statement left out", "log.info(1)"),
        one("statement left out", "a.b = 1", "pass"),
        one(
            "statement left out",
            "def f(a):\n    b = 1\n    a = 2",
            "def f(a):\n    b = 1\n    pass",
        ),
        one("statement left out", "for a in b: c += 1", "pass", "for a in b: pass"),
        one("await left out", "async def f(): await a", "async def f(): pass"),
        one(
            "early return",
            "def f() -> None:\n    a\n    b",
            "def f() -> None:\n    return\n    a\n    b",
            "def f() -> None:\n    a\n    return\n    b",
        ),
        one(
            "early return",
            "def f() -> list[A]:\n    a = b\n    return a",
            "def f() -> list[A]:\n    return []\n    a = b\n    return a",
        ),
        one(
            "early return",
            "def f() -> A | None:\n    a = b\n    return a",
            "def f() -> A | None:\n    return None\n    a = b\n    return a",
        ),
        one("early return", "def f() -> A:\n    a = b\n    return a"),
    ],
)
def test_what_an_operator_makes(operator: str, before: str, after: Sequence[str]) -> None:
    assert sorted(made(before, operator)) == sorted(after)


RECORDS = """\
class A(Struct):
    a: int
    b: int = 1
"""


@pytest.mark.parametrize(
    ("call", "after"),
    [
        ("A(a=x, b=y)", ["A(a=x, )"]),
        ("A(b=(y), a=x)", ["A( a=x)"]),
        ("replace(x, b=y)", ["replace(x)"]),
        ("unknown(b=y)", []),
    ],
)
def test_a_field_with_a_default_is_not_filled_in(call: str, after: list[str]) -> None:
    found = [text.removeprefix(RECORDS) for text in made(RECORDS + call, "field not filled in")]
    assert [ast.dump(ast.parse(text)) for text in found] == [
        ast.dump(ast.parse(text)) for text in after
    ]


def test_fields_of_messages_all_have_a_default() -> None:
    text = "from kubecri.v1 import api_pb2 as cri\ncri.Mount(host_path=x)"
    assert made(text, "field not filled in") == [text.replace("host_path=x", "")]


@pytest.mark.parametrize(
    "text",
    [
        '"""A text."""',
        "import a",
        "x: dict[str, 'A']",
        "def f(x: 'A') -> 'B': ...",
        "assert x == 1",
        "if TYPE_CHECKING:\n    x = 1",
        "class A(Struct, frozen=True): ...",
        "__all__ = ['a']",
        "Alias = Callable[[int, str], None]",
        "def f():\n    log.warning('a %s', 1)",
        "class A:\n    def __repr__(self): return 'a'",
    ],
)
def test_what_is_left_alone(text: str) -> None:
    assert [site for site in sites(text) if site.operator != "early return"] == []


MIXED = """\
LIMIT = 10
class A:
    ä: int = 1
    def f(self, x=2):
        if x < LIMIT:
            self.ä = g(x, "ö", y=[1, 2])
"""


def test_a_mutant_says_where_it_is_and_how_cases_reach_it() -> None:
    """A statement in a function, or the names that depend on what is executed at import."""
    found = {(s.old, s.operator): s for s in sites(MIXED)}
    number = found["10", "number changed"]
    assert (number.function, number.line, number.at, number.names) == ("", 1, None, ("LIMIT",))
    field = found["1", "default changed"]
    assert (field.function, field.line, field.names) == ("A", 3, ("A", "ä"))
    word = found['"ö"', "word changed"]
    assert (word.function, word.line, word.at) == ("A.f", 6, (6, 12))
    moved = found["<", "comparison moved"]
    assert (moved.at, moved.area) == ((5, 8), "x")
    assert found["2", "default changed"].names == ("A", "f")


def test_each_is_another_program() -> None:
    source = Source("refkubelet/x.py", MIXED)
    found = sites(MIXED)
    assert len(found) > 10
    assert all(is_python(site, source) for site in found)
    same = Site("refkubelet/x.py", "", 1, "", 0, "LIMIT", "LIMIT")
    broken = Site("refkubelet/x.py", "", 1, "", 0, "LIMIT", "if")
    assert not is_python(same, source)
    assert not is_python(broken, source)


def test_parentheses_belong_to_what_they_are_around() -> None:
    source = Source("x.py", "f(((a)), b)")
    inner = source.within_parentheses(Span(4, 5), Span(2, 10))
    assert source.part(inner) == "((a))"
