"""By which statements cases reach a mutant drawn by lot, and in which order they are asked. Pure.

What is executed when a module is imported is reached by what depends on the name that it defines:
statements in functions that mention the name, or another one that is made of it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from lot_draw import Site, names_of
from lot_left_out import left_out
from lot_values import FIXED
from mutant_plan import Plan, Question, rule_of
from mutant_probes import At
from mutant_record import Record
from mutant_source import Function, Source

from kubelet_conformance.registry import Case

RULE: Final = re.compile(r"\b[A-Z]{2,5}-\d{3}\b")
PURE: Final = {
    *("all", "any", "bool", "endswith", "get", "isdisjoint", "isinstance", "issubset", "items"),
    *("keys", "len", "match", "max", "min", "set", "startswith", "sum", "tuple", "values"),
}
"""Functions and methods that change nothing."""
LEAST_S: Final = 2.0
TIMES: Final = 10
"""A case that takes so many times as long as without a mutant, and LEAST_S, hangs."""


class Mentions:
    """Which statements in functions depend on a name that a module or a class gives a value."""

    def __init__(self, texts: Mapping[str, Source], numbers: Mapping[At, int]) -> None:
        self._numbers = numbers
        self._mentioned: dict[str, set[int]] = {}
        self._made_of: dict[str, set[str]] = {}
        for source in texts.values():
            self._look(source.file, source.tree, None, ())

    def _look(self, file: str, node: ast.AST, at: int | None, names: tuple[str, ...]) -> None:
        """`at`: the statement in a function that `node` belongs to; None where it is in none:
        then `names` are what depends on it."""
        for part in ast.iter_child_nodes(node):
            here, made = at, names
            if isinstance(part, ast.stmt):
                here = self._numbers.get((file, part.lineno, part.col_offset))
                if here is None:
                    made = (*names, *names_of(part))
            word = _word(part)
            if word and here is not None:
                self._mentioned.setdefault(word, set()).add(here)
            elif word:
                self._made_of.setdefault(word, set()).update(made)
            self._look(file, part, here, made)

    def of(self, site: Site) -> set[int]:
        """The numbers of the statements by which a case reaches the mutant."""
        if site.at is not None:
            return {self._numbers[site.file, *site.at]}
        known: set[str] = set()
        left = set(site.names)
        while left:
            name = left.pop()
            known.add(name)
            left |= self._made_of.get(name, set()) - known
        return set().union(*(self._mentioned.get(name, ()) for name in known))


def _word(node: ast.AST) -> str:
    match node:
        case ast.Name(name, ast.Load()) | ast.Attribute(attr=name) | ast.keyword(arg=str(name)):
            return name
    return ""


def rules_in(source: Source, function: str) -> set[str]:
    """The rules that a function names, or, if it names none, what is around it."""
    names = function.split(".") if function else []
    found, node = set(RULE.findall(ast.get_docstring(source.tree) or "")), source.tree
    for name in names:
        inner = [n for n in ast.walk(node) if getattr(n, "name", None) == name]
        if not inner:
            break
        node = inner[0]  # type: ignore[assignment]
        found = set(RULE.findall(source.text_of(node))) or found
    return found


def never_run(source: Source, record: Record) -> Iterator[tuple[int, str]]:
    """The functions of which no case runs anything: line and name; not those that are a signature
    only."""
    never = record.never()

    def below(node: ast.AST, names: tuple[str, ...]) -> Iterator[tuple[int, str]]:
        for part in ast.iter_child_nodes(node):
            here = names
            if isinstance(part, Function | ast.ClassDef):
                here = (*names, part.name)
            if isinstance(part, Function):
                body = [each for each in part.body if not left_out(each)]
                ats = {(source.file, each.lineno, each.col_offset) for each in body}
                if ats and ats <= never:
                    yield part.lineno, ".".join(here)
                    continue
            yield from below(part, here)

    yield from below(source.tree, ())


def noticing_cases(site: Site, numbers: Collection[int], record: Record) -> list[str]:
    """The cases that can notice a mutant which they reach by these statements: one whose condition
    is always true only where it has been false."""
    value = record.values.get((site.file, site.start, site.start + len(site.old.encode())))
    if site.operator == FIXED and value is not None and _only_looks(site.old):
        return record.reaching([value + (site.new == "False")])
    return record.reaching(numbers)


def _only_looks(expression: str) -> bool:
    """Whether it may as well not be asked.

    >>> _only_looks("isinstance(x, str) and y"), _only_looks("(x := y)"), _only_looks("x.pop()")
    (True, False, False)
    """
    for node in ast.walk(ast.parse(f"({expression})", mode="eval")):
        match node:
            case ast.Call(ast.Name(name) | ast.Attribute(attr=name)) if name in PURE:
                pass
            case ast.Call() | ast.Await() | ast.NamedExpr() | ast.Yield() | ast.YieldFrom():
                return False
    return True


def places_never_run(texts: Iterable[Source], record: Record) -> Iterator[tuple[str, str]]:
    """File and name of each function with a statement that no case runs; "": those of modules, on
    which nothing depends that one runs."""
    never = record.never()

    def below(file: str, node: ast.AST, names: tuple[str, ...]) -> Iterator[tuple[str, str]]:
        for part in ast.iter_child_nodes(node):
            here = (*names, part.name) if isinstance(part, Function | ast.ClassDef) else names
            if isinstance(part, ast.stmt) and (file, part.lineno, part.col_offset) in never:
                yield file, ".".join(names)
            yield from below(file, part, here)

    for source in texts:
        yield from below(source.file, source.tree, ())


def plan_of(site: Site, record: Record, numbers: Collection[int], asked: Sequence[str]) -> Plan:
    """Ask these cases, in this order, until one notices it."""
    questions = tuple(
        Question(case, True, LEAST_S + TIMES * record.seen[case].seconds) for case in asked
    )
    return Plan(site, questions, anew=site.at is None or record.is_imported(numbers))


def in_order(
    reaching: Iterable[str], rules: set[str], cases: Mapping[str, Case], record: Record
) -> list[str]:
    """First those that cite a rule of the function, then the others, as different from each other
    as can be."""

    def key(case: str) -> tuple[bool, int]:
        cites = not rules.isdisjoint(map(rule_of, cases[case].rules))
        return not cites, record.in_order[case]

    return sorted((case for case in reaching if case in cases), key=key)
