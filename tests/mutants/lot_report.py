"""What was told about mutants drawn by lot: a row for each, counts by area and operator. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from difflib import unified_diff
from math import sqrt
from typing import Final

from lot_draw import Site
from msgspec import Struct
from suite_run import Answer

NOTICED: Final = "noticed"
HANGS: Final = "times out"
SURVIVES: Final = "not noticed"
NEVER: Final = "never run"
WORDS: Final = (NOTICED, HANGS, SURVIVES, NEVER)
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


def tables(rows: Sequence[Row]) -> Iterator[str]:
    """Counts by operator and by area, and of all."""
    head = f"{'':26} {'drawn':>6} " + " ".join(f"{word:>11}" for word in WORDS) + "   share"
    for title, key in GROUPS:
        yield f"{title:26} {head[27:]}"
        groups: dict[str, list[Row]] = {}
        for row in rows:
            groups.setdefault(key(row), []).append(row)
        for name, group in sorted(groups.items()):
            yield _line(name, group)
        yield ""
    low, high = interval(noticed(rows), len(rows))
    yield f"{_line('all', rows)}  (95 % sure: {low:.1%} to {high:.1%})"


GROUPS: Final[Sequence[tuple[str, Callable[[Row], str]]]] = (
    ("operator", lambda row: row.site.operator),
    ("area", lambda row: row.site.area),
)


def noticed(rows: Iterable[Row]) -> int:
    """So many of them were noticed."""
    return sum(row.told in (NOTICED, HANGS) for row in rows)


def _line(name: str, rows: Sequence[Row]) -> str:
    counts = " ".join(f"{sum(row.told == word for row in rows):11}" for word in WORDS)
    return f"{name:26} {len(rows):6} {counts}  {noticed(rows) / max(len(rows), 1):6.1%}"


def shown(row: Row, text: bytes, rules: Iterable[str]) -> str:
    """A mutant as a diff, with what was told. `text`: of its module."""
    site = row.site
    head = f"{row.number}. {site.file}:{site.line}: {site.function or 'module'}: {site.operator}"
    told = f"{row.told}: asked {row.asked} of {row.reached} cases"
    named = ", ".join(sorted(rules)) or "no rule named"
    before, after = text.decode().splitlines(), site.text(text).splitlines()
    lines = list(unified_diff(before, after, n=2, lineterm=""))[2:]
    return "\n".join([f"{head}; {told}; {named}", *(f"    {line}" for line in lines)])
