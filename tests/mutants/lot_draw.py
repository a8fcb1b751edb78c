"""Draws mutants by lot: small changes of any code of refkubelet.

All pairs of a place and an operator that fits there are put into an order by the seed, each as
likely as any other, and the first ones are taken; so a greater sample begins with a smaller one,
and the sample of an area is what whole samples have of it. Where an operator can do several things
(a condition is always true, or always false), one of them is drawn. Nothing can be tuned: whoever
adds code adds places. A mutant that is no Python is passed over.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from itertools import chain, islice
from pathlib import Path
from typing import Final

from lot_left_out import parts
from lot_records import Records, messages_in
from lot_statements import early, handlers, missing
from lot_values import (
    Change,
    Place,
    comparisons,
    conditions,
    constants,
    elements,
    exchanged,
    fields,
    suppressed,
)
from msgspec import Struct
from mutant_source import Function, Source, sources
from mutant_tables import ROOT

from simclock import Rng

DRAWN: Final = "refkubelet"
"""The package that is changed."""
KNOWN: Final = (DRAWN, "kubeobjects", "simclock")
"""Whose functions and records have defaults."""
OPERATORS: Final = (
    conditions,
    comparisons,
    constants,
    exchanged,
    elements,
    suppressed,
    missing,
    early,
    handlers,
)


class Site(Struct, frozen=True):
    """A mutant: one change of one module."""

    file: str
    """Below the root of the repository."""
    function: str
    """The function or class with the change, as `BackOff.next`; "": the module."""
    line: int
    operator: str
    start: int
    """Where it begins in the file, in bytes."""
    old: str
    new: str
    at: tuple[int, int] | None = None
    """Line and column of the statement by which a case reaches it; None: it is executed when the
    module is imported."""
    names: tuple[str, ...] = ()
    """Then: the names of the module and class that depend on it."""

    @property
    def area(self) -> str:
        """The package of refkubelet, or its module.

        >>> Site("refkubelet/pleg/compute.py", "", 1, "", 0, "", "").area
        'pleg'
        """
        return self.file.split("/")[1].removesuffix(".py")

    def text(self, before: bytes) -> str:
        """The module's text with the change."""
        end = self.start + len(self.old.encode())
        return (before[: self.start] + self.new.encode() + before[end:]).decode()

    def texts(self, root: Path = ROOT) -> dict[str, str]:
        """The module that it changes, by file: its text."""
        return {self.file: self.text((root / self.file).read_bytes())}


class Around(Struct, frozen=True):
    """What is around a node."""

    qualname: tuple[str, ...] = ()
    function: Function | None = None
    statement: ast.stmt | None = None
    """The innermost one in a function."""
    names: tuple[str, ...] = ()
    default: bool = False


class Walk:
    """Goes through a module and makes all changes of it."""

    def __init__(self, source: Source, records: Records) -> None:
        self.source, self.records = source, records
        self.messages = messages_in(source.tree)

    def sites(self) -> Iterator[Site]:
        """All of them, each once."""
        seen: set[tuple[int, str, str]] = set()
        for site in self._below(self.source.tree, Around()):
            key = (site.start, site.old, site.new)
            if key not in seen:
                seen.add(key)
                yield site

    def _below(self, parent: ast.AST, around: Around) -> Iterator[Site]:
        for field, node in parts(parent):
            here = _around(parent, field, node, around)
            place = Place(node, parent, field, here.function, here.default)
            every = chain.from_iterable(operator(place, self.source) for operator in OPERATORS)
            named = fields(place, self.source, self.records, self.messages)
            for change in chain(every, named):
                yield self._site(change, here)
            yield from self._below(node, here)

    def _site(self, change: Change, here: Around) -> Site:
        statement = change.at or here.statement
        return Site(
            file=self.source.file,
            function=".".join(here.qualname),
            line=self.source.line(change.span),
            operator=change.operator,
            start=change.span.start,
            old=self.source.part(change.span),
            new=change.new,
            at=(statement.lineno, statement.col_offset) if statement else None,
            names=() if statement else here.names,
        )


def _around(parent: ast.AST, field: str, node: ast.AST, above: Around) -> Around:
    """What is around `node`, which its parent has in this field."""
    qualname, function, statement = above.qualname, above.function, above.statement
    names, default = above.names, above.default
    if isinstance(parent, Function) and field == "body":
        function = parent
    if isinstance(node, ast.stmt):
        if function is not None:
            statement = node
        else:
            names = (*names, *names_of(node))
        default = function is None and isinstance(parent, ast.ClassDef)
    if isinstance(parent, ast.arguments) and field in ("defaults", "kw_defaults"):
        default = True
    if isinstance(node, Function | ast.ClassDef):
        qualname = (*qualname, node.name)
        default = False
    return Around(qualname, function, statement, names, default)


def names_of(statement: ast.stmt) -> Iterator[str]:
    """What a statement of a module or class gives a value."""
    if isinstance(statement, Function | ast.ClassDef):
        yield statement.name
        return
    for node in ast.walk(statement):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def every_site(texts: Mapping[str, Source], records: Records) -> list[list[Site]]:
    """All mutants there are; those of one operator in one place together."""
    found: dict[tuple[str, str, int, str], list[Site]] = {}
    for source in texts.values():
        for site in Walk(source, records).sites():
            key = (site.file, site.operator, site.start, site.old)
            found.setdefault(key, []).append(site)
    return list(found.values())


def is_python(site: Site, source: Source) -> bool:
    """Whether what comes out is another program, not only another text."""
    try:
        tree = ast.parse(site.text(source.data))
    except SyntaxError:
        return False
    return ast.dump(tree) != ast.dump(source.tree)


def drawn(root: Path, seed: str, count: int, only: str = "") -> list[Site]:
    """So many mutants, in the order in which they are drawn. `only`: of this area."""
    texts = sources(root, [DRAWN])
    records = Records(source.tree for source in sources(root, KNOWN).values())
    chance = Rng(int(seed, 16)).stream("mutants by lot")
    places = every_site(texts, records)
    chance.shuffle(places)
    sites = [chance.choice(place) for place in places]
    chosen = (site for site in sites if only in ("", site.area))
    return list(islice((s for s in chosen if is_python(s, texts[s.file])), count))
