"""What the tables of several pages are made with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any


def table(heads: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A table in Markdown; bars in cells are escaped."""
    rows = [heads, ["---"] * len(heads), *lines]
    return "".join(
        f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in r)} |\n" for r in rows
    )


def duration(seconds: float) -> str:
    """`1 h 02 min`, or `2 min 10 s` below an hour."""
    if seconds >= 3600:
        return f"{int(seconds // 3600)} h {int(seconds % 3600 // 60):02d} min"
    return f"{int(seconds // 60)} min {int(seconds % 60):02d} s"


def by_version(runs: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """The items of a record whose keys are versions, the oldest first."""
    return sorted(runs.items(), key=lambda item: [int(part) for part in item[0].split(".")])
