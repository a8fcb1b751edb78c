"""What is counted of runs. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from kubelet_conformance.results_schema import CaseLine, LevelName

LEVELS: Final[tuple[LevelName, ...]] = ("must", "should", "detail")
RAN: Final = ("passed", "failed", "known bug", "inconclusive", "error")
"""Verdicts of cases that ran."""
NOT_PASSED: Final = ("failed", "error", "inconclusive", "known bug")
HEADS: Final = (
    *("area", "MUST", "SHOULD", "DETAIL"),
    *("failed", "error", "inconclusive", "known bug", "skipped", "disabled", "case time"),
)


def summary_rows(cases: Sequence[CaseLine]) -> list[list[str]]:
    """A row for each area, and one for all, under HEADS: of each level how many passed of those
    that ran, and how many ended otherwise."""
    areas = sorted({case.area for case in cases})
    rows = [_summary(area, [case for case in cases if case.area == area]) for area in areas]
    return [*rows, _summary("all", cases)]


def _summary(name: str, cases: Sequence[CaseLine]) -> list[str]:
    by: Counter[str] = Counter(case.verdict for case in cases)
    shares = [share([case for case in cases if case.level == level]) for level in LEVELS]
    columns = ("failed", "error", "inconclusive", "known bug", "skipped", "disabled")
    counts = [str(by[verdict] or "-") for verdict in columns]
    return [name, *shares, *counts, duration(sum(case.case_s for case in cases))]


def share(cases: Iterable[CaseLine]) -> str:
    """`12/13`: passed of those that ran; `-` when none ran."""
    ran = [case.verdict for case in cases if case.verdict in RAN]
    return f"{ran.count('passed')}/{len(ran)}" if ran else "-"


def duration(seconds: float) -> str:
    """Seconds in hours, minutes or seconds.

    >>> duration(3725), duration(185), duration(4.26)
    ('1 h 02 min', '3 min 05 s', '4.3 s')
    """
    whole = round(seconds)
    if whole >= 3600:
        return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
    return f"{whole // 60} min {whole % 60:02d} s" if whole >= 120 else f"{seconds:.1f} s"


def cases_in_words(number: int) -> str:
    """
    >>> cases_in_words(1), cases_in_words(2)
    ('1 case', '2 cases')
    """
    return f"{number} case{'' if number == 1 else 's'}"


class Column(Struct, frozen=True):
    """One run in a matrix: its name, and each case's worst result."""

    name: str
    cases: Mapping[str, CaseLine]


def matrix(columns: Sequence[Column]) -> tuple[list[str], list[list[str]]]:
    """Heads and rows of the table of areas x runs: passed of those that ran, and what did not."""
    areas = sorted({case.area for column in columns for case in column.cases.values()})
    rows = [[area, *(_cell(column, area) for column in columns)] for area in areas]
    return ["area", *(column.name for column in columns)], [
        *rows,
        ["all", *(_cell(column, None) for column in columns)],
    ]


def _cell(column: Column, area: str | None) -> str:
    cases = [case for case in column.cases.values() if area in (None, case.area)]
    by: Counter[str] = Counter(case.verdict for case in cases)
    other = ", ".join(f"{by[verdict]} {verdict}" for verdict in NOT_PASSED if by[verdict])
    return share(cases) + (f" ({other})" if other else "")


def differing(columns: Sequence[Column]) -> tuple[list[str], list[list[str]]]:
    """Heads and rows of the cases that did not end alike in all runs; a run that has no such case
    shows `-`."""
    names = sorted({name for column in columns for name in column.cases})
    rows = []
    for name in names:
        cases = [column.cases.get(name) for column in columns]
        verdicts: list[str] = ["-" if case is None else case.verdict for case in cases]
        if len(set(verdicts)) > 1:
            rows.append([name, *verdicts])
    return ["case", *(column.name for column in columns)], rows


def text_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """The table in columns of a terminal.

    >>> print(text_table(["a", "b"], [["long", "1"]]))
    a     b
    long  1
    """
    lines = [list(heads), *map(list, rows)]
    widths = [max(len(line[place]) for line in lines) for place in range(len(heads))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def markdown_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """The table in Markdown.

    >>> print(markdown_table(["a", "b"], [["x|y", "1"]]))
    | a | b |
    | --- | --- |
    | x\\|y | 1 |
    """
    lines = [list(heads), ["---"] * len(heads), *map(list, rows)]
    return "\n".join(
        f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines
    )
