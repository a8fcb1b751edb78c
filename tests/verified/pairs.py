"""Two runtimes driven with the same operations, and the comparison of what they answer.

Ids, times and paths differ between any two runtimes: an operation names objects by symbols ("s1",
"c3"), and answers are brought into a normal form with symbols in the place of ids. What is left
must be equal, but for the rows of `differences.py`.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Final, TypeAlias, TypeVar

import differences as table
import grpc
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message
from kubecri.v1 import api_pb2 as cri

R = TypeVar("R", table.CodeRow, table.TextRow, table.RaceRow)
UNKNOWN: Final = "unknown"
_NEW_ID: Final = re.compile(r"(?<![0-9a-f:])(?!f{64})[0-9a-f]{64}")
_TIMES: Final = frozenset({"created_at", "started_at", "finished_at", "timestamp"})
_UNORDERED: Final = frozenset({"containers", "items", "images", "stats"})


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a call ended: code name, error text, answer."""

    code: str
    text: str = ""
    answer: Any = None


@dataclass
class Side:
    """One of the two runtimes, and what it calls the objects."""

    label: str
    target: Any
    log_root: str
    version: str = ""
    """containerd's, which decides what rows of the table hold; "": not a containerd."""
    ids: dict[str, str] = field(default_factory=dict)
    kept: dict[str, str] = field(default_factory=dict)
    """Symbols that outlive an example: images."""

    def id(self, symbol: str) -> str:
        """The id behind a symbol; `c1~` is a prefix of it, `unknown` an id of nothing."""
        if symbol == UNKNOWN:
            return "f" * 64
        return self.ids[symbol[:-1]][:16] if symbol.endswith("~") else self.ids.get(symbol, "")

    async def call(self, method: str, request: Message) -> Outcome:
        try:
            return Outcome("OK", answer=await self.target.call(method, request, timeout_s=60))
        except grpc.RpcError as error:
            return Outcome(error.code().name, error.details() or "")

    def learn(self, symbol: str, made: Outcome) -> None:
        """A create call that succeeded has made what `symbol` means from now on."""
        if made.code == "OK":
            identity = getattr(made.answer, "pod_sandbox_id", "") or made.answer.container_id
            self.ids[symbol] = identity

    def symbols(self, text: str) -> str:
        """`text` with symbols for ids and roots."""
        for symbol, identity in (self.ids | self.kept).items():
            text = text.replace(identity, symbol).replace(identity[:16], f"{symbol}~")
        return _NEW_ID.sub("an id", text).replace(self.log_root, "LOGS")


Build: TypeAlias = Callable[[Side], Message]


class Mismatch(AssertionError):
    """The two runtimes answered differently."""


class Pair:
    """The runtime that is right and the one under test."""

    def __init__(self, real: Side, fake: Side) -> None:
        self.real = real
        self.fake = fake
        self.operations = 0
        self.history: list[str] = []
        self.used: dict[table.Row, int] = {}
        self.mismatch = ""

    async def do(self, method: str, build: Build) -> Outcome:
        """The same call on both sides. Returns the real outcome; raises Mismatch."""
        self.operations += 1
        real, fake = await asyncio.gather(
            self.real.call(method, build(self.real)), self.fake.call(method, build(self.fake))
        )
        return self._settled(method, build, real, fake)

    async def make(self, symbol: str, method: str, build: Build) -> bool:
        """A call that makes an object; the object is called `symbol` from then on.

        Where a row lets the runtimes differ in whether it is made, it is removed again.
        """
        self.operations += 1
        outcomes = []
        for side in (self.real, self.fake):
            outcome = await side.call(method, build(side))
            outcomes.append(outcome)
            side.learn(symbol, outcome)
        self._settled(method, build, *outcomes)
        made = [outcome.code == "OK" for outcome in outcomes]
        if made[0] and not made[1]:
            undo = cri.RemoveContainerRequest(container_id=outcomes[0].answer.container_id)
            assert (await self.real.call("RemoveContainer", undo)).code == "OK"
        return all(made)

    async def race(self, method: str, build: Build, symbol: str = "") -> bool:
        """The same call twice at once on each side: the same two codes, in any order, but for the
        accidents among the `RACES`. Returns whether a call succeeded.

        What the call that wins makes is called `symbol` from then on.
        """
        self.operations += 2
        codes, texts = [], []
        for side in (self.real, self.fake):
            both = await asyncio.gather(*(side.call(method, build(side)) for _ in range(2)))
            accidents = () if symbol else table.RACES  # none of them makes anything
            codes.append(sorted(self._code_in_race(side, method, o, accidents) for o in both))
            texts.append(" | ".join(f"{o.code} {side.symbols(o.text)}" for o in both))
            for outcome in both if symbol else ():
                side.learn(symbol, outcome)
        self.history.append(f"race of two {method}: {texts[0]}")
        if codes[0] != codes[1]:
            raise self._mismatch(method, build, *texts)
        return "OK" in codes[0]

    def _code_in_race(
        self, side: Side, method: str, outcome: Outcome, accidents: Iterable[table.RaceRow]
    ) -> str:
        """The code that counts; for the real side, what its rows say it stands for."""
        if side is self.fake or outcome.code == "OK":
            return outcome.code
        text = side.symbols(outcome.text)
        if self._row(accidents, method, text):
            return "OK"
        row = self._row(table.CODES, method, text, real=outcome.code)
        return row.fake if row else outcome.code

    def _settled(self, method: str, build: Build, real: Outcome, fake: Outcome) -> Outcome:
        shown = self.real.symbols(_one_line(build(self.real)))
        text = self.real.symbols(real.text)
        self.history.append(f"{method} {shown[:160]} -> {real.code} {text[:200]}")
        if real.code != fake.code:
            self._need_code_row(method, build, real, fake)
        elif real.code == "OK":
            self._compare_answers(method, build, real, fake)
        else:
            self._compare_texts(method, build, real, fake)
        return real

    def _need_code_row(self, method: str, build: Build, real: Outcome, fake: Outcome) -> None:
        a, b = self.real.symbols(real.text), self.fake.symbols(fake.text)
        for row in table.CODES:
            if (
                self._holds(row, method)
                and row.real in (real.code, "*")
                and row.fake in (fake.code, "*")
                and fnmatchcase(a, row.pattern)
                and fnmatchcase(b, row.fake_text)
            ):
                self._use(row)
                texts_differ = row.fake_text != "*" or row.fake == "*"
                if not texts_differ and "OK" not in (real.code, fake.code):
                    self._compare_texts(method, build, real, fake)
                return
        raise self._mismatch(method, build, f"{real.code} {a}", f"{fake.code} {b}")

    def _compare_texts(self, method: str, build: Build, real: Outcome, fake: Outcome) -> None:
        a, b = self.real.symbols(real.text), self.fake.symbols(fake.text)
        if a != b and not self._row(table.TEXTS, method, a):
            raise self._mismatch(method, build, a, b)

    def _row(self, rows: Iterable[R], method: str, text: str, **values: str) -> R | None:
        """The first row for a text of `method` on this version, with `values` in its fields."""
        for row in rows:
            if (
                self._holds(row, method)
                and fnmatchcase(text, row.pattern)
                and all(getattr(row, name) == value for name, value in values.items())
            ):
                self._use(row)
                return row
        return None

    def _holds(self, row: table.AnyRow, method: str) -> bool:
        return fnmatchcase(method, row.method) and row.holds(self.real.version)

    def _compare_answers(self, method: str, build: Build, real: Outcome, fake: Outcome) -> None:
        a = self._normal(self.real, method, real.answer)
        b = self._normal(self.fake, method, fake.answer)
        if a != b:
            raise self._mismatch(method, build, str(a), str(b))
        if method == "ContainerStatus":
            check_times(fake.answer.status)

    def _normal(self, side: Side, method: str, message: Message) -> Any:
        return self._plain(
            side, method, "", MessageToDict(message, preserving_proto_field_name=True)
        )

    def _plain(self, side: Side, method: str, path: str, value: Any) -> Any:
        if isinstance(value, dict):
            found = {}
            for key, item in sorted(value.items()):
                inner = f"{path}.{key}".lstrip(".")
                if not self._left_out(method, inner):
                    found[key] = self._plain(side, method, inner, item)
            return {key: item for key, item in found.items() if item not in ({}, "", "0", [])}
        if isinstance(value, list):
            items = [self._plain(side, method, path, item) for item in value]
            return sorted(items, key=str) if path.rpartition(".")[2] in _UNORDERED else items
        last = path.rpartition(".")[2]
        if last in _TIMES:
            return "a time" if value not in (0, "0") else ""
        if last in ("ip", "mountpoint"):
            return f"an {last}"
        return side.symbols(value) if isinstance(value, str) else value

    def _left_out(self, method: str, path: str) -> bool:
        for row in table.FIELDS:
            if row.path == path and self._holds(row, method):
                self._use(row)
                return True
        return False

    def _use(self, row: table.Row) -> None:
        self.used[row] = self.used.get(row, 0) + 1

    def _mismatch(self, method: str, build: Build, real: str, fake: str) -> Mismatch:
        steps = "\n".join(f"  {line}" for line in self.history[-25:])
        text = (
            f"{method} differs\n  {self.real.label}: {real}\n  {self.fake.label}: {fake}\n"
            f"  request: {self.real.symbols(_one_line(build(self.real)))}\nsteps:\n{steps}"
        )
        self.mismatch = self.mismatch or text  # the first one: repeating it may go another way
        return Mismatch(text)


def _one_line(message: Message) -> str:
    return str(MessageToDict(message, preserving_proto_field_name=True))


def check_times(status: cri.ContainerStatus) -> None:
    """created < started < finished, as far as they are set (CRI-050).

    Asked of the fake only: containerd stamps the start when it hears of it, so a process that
    exits at once may have finished up to some milliseconds before it started (seen on 1.6.20).
    """
    given = [t for t in (status.created_at, status.started_at, status.finished_at) if t]
    assert given == sorted(set(given)), status
