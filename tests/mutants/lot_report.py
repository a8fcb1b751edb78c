"""What was told about mutants drawn by lot: a row for each, counts by area and operator. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from difflib import unified_diff
from math import sqrt
from typing import Final

from lot_draw import Site
from lot_outside import Entry, Place, reason_of
from msgspec import Struct
from suite_run import Answer

NOTICED: Final = "noticed"
HANGS: Final = "times out"
SURVIVES: Final = "not noticed"
NEVER: Final = "never run"
OUTSIDE: Final = "outside"
WORDS: Final = (NOTICED, HANGS, SURVIVES, OUTSIDE, NEVER)
"""Outside the suite is what is never run, with a reason (lot_outside.list)."""
SURE: Final = 1.96
"""Standard deviations on both sides of 95 %."""


class Row(Struct, frozen=True):
    """What was told about one of them."""

    number: int
    """In the order in which they are drawn, from 1."""
    site: Site
    told: str
    """noticed; times out: a case did not end, which is noticed, too; not noticed; never run: by any
    case."""
    by: str
    """The case that noticed it; `import`: the kubelet could not be imported."""
    reached: int
    """So many cases run what is changed."""
    asked: int
    """So many were asked."""
    seconds: float
    """Of processor time."""
    test: str | None = None
    """Where no case runs it: the first test of ours that noticed it; "": none did; None: none was
    asked."""

    @property
    def place(self) -> Place:
        """The function that is changed."""
        return Place(self.site.file, self.site.function)


def row_of(number: int, answer: Answer, reached: int) -> Row:
    """The row of an answer."""
    told, by = SURVIVES, ""
    if answer.error:
        told, by = NOTICED, "import"
    elif answer.noticed:
        told, by = (HANGS if answer.hangs else NOTICED), answer.noticed[-1]
    elif not reached:
        told = NEVER
    return Row(number, answer.mutant, told, by, reached, answer.ran, answer.seconds)


def interval(found: int, count: int) -> tuple[float, float]:
    """The share that all have, with 95 % certainty, when so many of so many drawn have it (Wilson).

    >>> [round(bound, 3) for bound in interval(62, 100)]
    [0.522, 0.709]
    """
    if not count:
        return 0.0, 1.0
    share, square = found / count, SURE * SURE
    middle = share + square / (2 * count)
    half = SURE * sqrt((share * (1 - share) + square / (4 * count)) / count)
    return max(0.0, (middle - half) / (1 + square / count)), min(
        1.0, (middle + half) / (1 + square / count)
    )


def tables(rows: Sequence[Row], table: Sequence[Entry] = ()) -> Iterator[str]:
    """Counts by operator and by area, and of all; what no case runs by reason. `table`: the
    reasons."""
    head = f"{'':26} {'drawn':>6} " + " ".join(f"{word:>11}" for word in WORDS) + "   share"
    for title, key in GROUPS:
        yield f"{title:26} {head[27:]}"
        groups: dict[str, list[Row]] = {}
        for row in rows:
            groups.setdefault(key(row), []).append(row)
        for name, group in sorted(groups.items()):
            yield _line(name, group, table)
        yield ""
    low, high = interval(noticed(rows), len(rows))
    yield f"{_line('all', rows, table)}  (95 % sure: {low:.1%} to {high:.1%})"
    yield from _outside(rows, table)


def word_of(row: Row, table: Iterable[Entry]) -> str:
    """Which column it counts in."""
    return OUTSIDE if row.told == NEVER and reason_of(row.place, table) else row.told


def _outside(rows: Sequence[Row], table: Sequence[Entry]) -> Iterator[str]:
    """What no case runs, by reason: how many, what tests of ours say of them. Nothing of this
    counts as noticed."""
    never = [row for row in rows if row.told == NEVER]
    groups: dict[str, list[Row]] = {}
    for row in never:
        groups.setdefault(reason_of(row.place, table) or "never run, without a reason", []).append(
            row
        )
    if never:
        yield "\nrun by no case, and noticed by a test of ours of those that were asked about"
    for reason, group in sorted(groups.items(), key=lambda item: -len(item[1])):
        asked = [row for row in group if row.test is not None]
        found = sum(bool(row.test) for row in asked)
        yield f"{len(group):6} {found:6} of {len(asked):5}  {reason}"


GROUPS: Final[Sequence[tuple[str, Callable[[Row], str]]]] = (
    ("operator", lambda row: row.site.operator),
    ("area", lambda row: row.site.area),
)


def noticed(rows: Iterable[Row]) -> int:
    """So many of them were noticed."""
    return sum(row.told in (NOTICED, HANGS) for row in rows)


def _line(name: str, rows: Sequence[Row], table: Sequence[Entry]) -> str:
    words = Counter(word_of(row, table) for row in rows)
    counts = " ".join(f"{words[word]:11}" for word in WORDS)
    return f"{name:26} {len(rows):6} {counts}  {noticed(rows) / max(len(rows), 1):6.1%}"


def shown(row: Row, text: bytes, rules: Iterable[str]) -> str:
    """A mutant as a diff, with what was told. `text`: of its module."""
    site = row.site
    head = f"{row.number}. {site.file}:{site.line}: {site.function or 'module'}: {site.operator}"
    told = f"{row.told}: asked {row.asked} of {row.reached} cases"
    if row.test:
        told += f"; noticed by {row.test}"
    named = ", ".join(sorted(rules)) or "no rule named"
    before, after = text.decode().splitlines(), site.text(text).splitlines()
    lines = list(unified_diff(before, after, n=2, lineterm=""))[2:]
    return "\n".join([f"{head}; {told}; {named}", *(f"    {line}" for line in lines)])
