"""The parts of `--shard K/N`: every case in one of them, a case always in the same one, parts of
equal length where it is known how long cases take.

A case has an order of preference of its own among the parts, made of its ID; it gets the first one
that has room. So a case that comes or goes moves few others, and every machine finds the same parts
without asking another.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, Final
from zlib import crc32

ROOM: Final = 1.02
"""How much longer than the average a part may get."""


class TimesError(ValueError):
    """A file of times cannot be used; the text says why."""


def parts(case_ids: Sequence[str], count: int, times_s: Mapping[str, float]) -> dict[str, int]:
    """Case ID -> its part, from 1; none is empty where there are as many cases as parts. `times_s`:
    case ID -> seconds; a case that is not there counts as the median of the others."""
    known_s = [times_s[case] for case in case_ids if times_s.get(case, 0) > 0]
    usual = median(known_s) if known_s else 1.0
    weights = {case: times_s.get(case) or usual for case in case_ids}
    room = max(sum(weights.values()) / count * ROOM, *weights.values())
    loads, sizes = [0.0] * count, [0] * count
    parts_of: dict[str, int] = {}
    for case in sorted(weights, key=lambda case_id: (-weights[case_id], _hash(case_id), case_id)):
        open_count = len(weights) - len(parts_of)
        empty = [place for place in range(count) if not sizes[place]]
        place = empty[0] if open_count <= len(empty) else _place(case, weights[case], loads, room)
        loads[place] += weights[case]
        sizes[place] += 1
        parts_of[case] = place + 1
    return parts_of


def _place(case_id: str, weight: float, loads: Sequence[float], room: float) -> int:
    """The part that the case likes most of those with room, else the shortest."""
    likes = sorted(range(len(loads)), key=lambda place: _hash(f"{case_id}/{place}"))
    fits = (place for place in likes if loads[place] + weight <= room)
    return next(fits, min(range(len(loads)), key=lambda place: loads[place]))


def _hash(text: str) -> int:
    return crc32(text.encode())


def read_times(path: Path) -> dict[str, float]:
    """Case ID -> seconds of wall time, of a file of `--results`; of a case that is there several
    times, their sum. Raises TimesError for a file that cannot be used."""
    try:
        text = path.read_text()
        times_s = _times(text)
    except (OSError, UnicodeDecodeError, ValueError) as error:
        raise TimesError(f"--times {path}: cannot be read: {error}") from None
    if not times_s:
        raise TimesError(
            f"--times {path}: wanted a file that kubelet-conformance run --results has written, "
            "with the real_s of each case"
        )
    return times_s


def _times(text: str) -> dict[str, float]:
    """Of one object with `cases`, or of lines with an object for each case."""
    try:
        whole = json.loads(text)
        rows = whole.get("cases", {}) if isinstance(whole, dict) else whole
    except ValueError:
        rows = [json.loads(line) for line in text.splitlines() if line.strip()]
    pairs = rows.items() if isinstance(rows, dict) else ((None, row) for row in rows)
    times_s: dict[str, float] = {}
    for name, row in pairs:
        case_id = name or _name(row)
        seconds = row.get("real_s") if isinstance(row, dict) else None
        if isinstance(case_id, str) and isinstance(seconds, int | float):
            times_s[case_id] = times_s.get(case_id, 0.0) + seconds
    return times_s


def _name(row: Any) -> Any:
    return (row.get("case") or row.get("id")) if isinstance(row, dict) else None
