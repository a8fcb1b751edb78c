"""Two API servers that do the same operations, and the comparison of what they answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, TypeAlias, TypeVar

import api_differences as table
from api_normal import Symbols, differences, normal
from api_sides import ApiSide

Row = TypeVar("Row", table.TextRow, table.CodeRow)


@dataclass(frozen=True, slots=True)
class Ask:
    """One request."""

    method: str
    path: str
    body: Any = None
    params: dict[str, str] = field(default_factory=dict)
    kind: str = "application/json"
    accept: str = "application/json"


@dataclass(frozen=True, slots=True)
class Answer:
    """Status and body; of a watch the events are the body."""

    code: int
    body: Any


class Server:
    """One of the two servers, and what it calls things."""

    def __init__(self, label: str, side: ApiSide) -> None:
        self.label = label
        self.side = side
        self.symbols = Symbols()
        self.list_versions: dict[str, str] = {}
        """The version of the last list, by kind, and tokens to go on with lists."""

    async def ask(self, ask: Ask) -> Answer:
        code, body = await self.side.ask(
            ask.method,
            ask.path,
            ask.body,
            kind=ask.kind,
            params=ask.params,
            Accept=ask.accept,
        )
        return Answer(code, body)


Build: TypeAlias = Callable[[Server], Ask]


class Mismatch(AssertionError):
    """The two servers answered differently."""


class ApiPair:
    """The server that is right and the one under test. `minor`: of the one that is right ("1.34").
    `collect`: differences are collected and the run goes on, for whoever works on the fake."""

    def __init__(
        self, real: Server, fake: Server, *, minor: str = "", collect: bool = False
    ) -> None:
        self.minor = minor
        self.real = real
        self.fake = fake
        self.operations = 0
        self.history: list[str] = []
        self.used: dict[table.AnyRow, int] = {}
        self.mismatch = ""
        self.collect = collect
        self.found: dict[tuple[str, str], list[str]] = {}

    async def do(self, what: str, build: Build) -> tuple[Answer, Answer]:
        """The same request to both. `what`: operation and kind, such as `create pods`. Raises:
        Mismatch."""
        return await self.both(what, build, lambda server: server.ask(build(server)))

    async def both(
        self, what: str, build: Build, ask: Callable[[Server], Any]
    ) -> tuple[Answer, Answer]:
        """As `do`, with another way to ask."""
        self.operations += 1
        real, fake = await asyncio.gather(ask(self.real), ask(self.fake))
        self._settle(what, build(self.real), real, fake)
        return real, fake

    def _settle(self, what: str, ask: Ask, real: Answer, fake: Answer) -> None:
        said = real.body.get("message", "") if isinstance(real.body, dict) else ""
        shown = f"{ask.method} {ask.path} {ask.params or ''} {str(ask.body or '')[:300]}"
        self.history.append(f"{what}: {shown} -> {real.code} {said[:200]}")
        if real.code != fake.code:
            told = str(fake.body.get("message", "")) if isinstance(fake.body, dict) else ""
            if not self._row(table.CODES, what, said, real=real.code, fake=fake.code):
                self._differ(what, ask, [("code", f"{real.code} {said}", f"{fake.code} {told}")])
            return
        # Not above: what only one of the two has made must get no symbol.
        a = normal(self.real.symbols, real.body)
        b = normal(self.fake.symbols, fake.body)
        if real.code >= 400 and isinstance(a, dict) and isinstance(b, dict):
            self._compare_refusals(what, ask, a, b)
            return
        left = [one for one in differences(a, b) if not self._left_out(what, one[0])]
        if left:
            self._differ(what, ask, left)

    def _compare_refusals(self, what: str, ask: Ask, a: dict[str, Any], b: dict[str, Any]) -> None:
        left = differences(a, b)
        if left and self._row(table.TEXTS, what, str(a.get("message", ""))):
            left = [one for one in left if not one[0].startswith(("message", "details.causes"))]
        left = [one for one in left if not self._left_out(what, one[0])]
        if left:
            self._differ(what, ask, left)

    def _left_out(self, what: str, path: str) -> bool:
        for row in table.FIELDS:
            if not table.applies(row, self.minor):
                continue
            if fnmatchcase(what, row.method) and fnmatchcase(path, row.path):
                self.used[row] = self.used.get(row, 0) + 1
                return True
        return False

    def _row(self, rows: Iterable[Row], what: str, text: str, **values: Any) -> Row | None:
        for row in rows:
            if (
                table.applies(row, self.minor)
                and fnmatchcase(what, row.method)
                and fnmatchcase(text, row.pattern)
                and all(getattr(row, name) == value for name, value in values.items())
            ):
                self.used[row] = self.used.get(row, 0) + 1
                return row
        return None

    def _differ(self, what: str, ask: Ask, left: list[tuple[str, Any, Any]]) -> None:
        lines = [f"  {path}\n    real: {a}\n    fake: {b}" for path, a, b in left]
        if self.collect:
            for (path, _, _), line in zip(left, lines, strict=True):
                if path.endswith(("metadata.resourceVersion", "metadata.uid", "details.uid")):
                    continue  # what follows from another difference
                self.found.setdefault((what, path), []).append(f"{line}\n    {self.history[-1]}")
            return
        steps = "\n".join(f"  {line}" for line in self.history[-25:])
        text = "\n".join(lines)
        self.mismatch = self.mismatch or f"{what} differs\n{text}\n{ask}\nsteps:\n{steps}"
        raise Mismatch(self.mismatch)
