"""What differs between a recorded and a replayed run, as lines that a table can name.

Two things are no difference. A status that lasted less than `BRIEF_S` may be missing on one side:
what is seen of it depends on how fast the machine is. One run may have been watched longer than
the other at its end: there the longer one may have removals that the other lacks.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from golden_forms import Timed

BRIEF_S: Final = 0.12
REMOVALS: Final = ("RemoveContainer", "StopPodSandbox", "RemovePodSandbox")
Told = Mapping[str, Sequence[Timed]]


def differing_statuses(recorded: Told, replayed: Told) -> list[str]:
    """One line per status that only one side has."""
    return [
        f"status {pod} {side} {one.line}"
        for pod, side, one, lasted_s in _unmatched(recorded, replayed)
        if lasted_s >= BRIEF_S
    ]


def differing_calls(recorded: Told, replayed: Told) -> list[str]:
    """One line per call that only one side has at its place."""
    cut = {pod: _same_end(recorded.get(pod, ()), replayed.get(pod, ())) for pod in recorded}
    before = {pod: pair[0] for pod, pair in cut.items()}
    after = {**replayed, **{pod: pair[1] for pod, pair in cut.items()}}
    return [f"call {pod} {side} {one.line}" for pod, side, one, _ in _unmatched(before, after)]


def differing_events(recorded: Told, replayed: Told) -> list[str]:
    """One line per event that only one side has at its place."""
    return [
        f"event {pod} {side} {one.line}" for pod, side, one, _ in _unmatched(recorded, replayed)
    ]


def _unmatched(recorded: Told, replayed: Told) -> list[tuple[str, str, Timed, float]]:
    """Pod, side (`-` recorded, `+` replayed), line, and how long it was the newest."""
    found: list[tuple[str, str, Timed, float]] = []
    for pod in sorted({*recorded, *replayed}):
        theirs, ours = recorded.get(pod, ()), replayed.get(pod, ())
        for side, number in _alignment(theirs, ours):
            lines = theirs if side == "-" else ours
            found.append((pod, side, lines[number], _lasted_s(lines, number)))
    return found


def _alignment(theirs: Sequence[Timed], ours: Sequence[Timed]) -> list[tuple[str, int]]:
    """The cheapest way to make both equal by leaving lines out; brief ones cost little."""
    cost = {(len(theirs), len(ours)): 0.0}
    for i in range(len(theirs), -1, -1):
        for k in range(len(ours), -1, -1):
            ways = [cost[i, k]] if (i, k) in cost else []
            if i < len(theirs):
                ways.append(cost[i + 1, k] + _price(theirs, i))
            if k < len(ours):
                ways.append(cost[i, k + 1] + _price(ours, k))
            if i < len(theirs) and k < len(ours) and theirs[i].line == ours[k].line:
                ways.append(cost[i + 1, k + 1])
            cost[i, k] = min(ways)
    left_out: list[tuple[str, int]] = []
    i = k = 0
    while i < len(theirs) or k < len(ours):
        both = i < len(theirs) and k < len(ours) and theirs[i].line == ours[k].line
        if both and cost[i, k] == cost[i + 1, k + 1]:
            i, k = i + 1, k + 1
        elif i < len(theirs) and cost[i, k] == cost[i + 1, k] + _price(theirs, i):
            left_out.append(("-", i))
            i += 1
        else:
            left_out.append(("+", k))
            k += 1
    return left_out


def _price(lines: Sequence[Timed], number: int) -> float:
    return 1.0 if _lasted_s(lines, number) >= BRIEF_S else 2.0**-10


def _lasted_s(lines: Sequence[Timed], number: int) -> float:
    return lines[number + 1].at_s - lines[number].at_s if number + 1 < len(lines) else math.inf


def _same_end(
    one: Sequence[Timed], other: Sequence[Timed]
) -> tuple[Sequence[Timed], Sequence[Timed]]:
    """Both without the removals at their ends, if those of one are among those of the other."""
    end, other_end = _end(one), _end(other)
    removals, others = (Counter(t.line for t in part) for part in (one[end:], other[other_end:]))
    if removals <= others or others <= removals:
        return one[:end], other[:other_end]
    return one, other


def _end(lines: Sequence[Timed]) -> int:
    """Where the removals at the end begin; the first StopPodSandbox is none of them."""
    end = len(lines)
    while end and lines[end - 1].line.startswith(REMOVALS):
        end -= 1
    while end < len(lines) and lines[end].line.startswith("StopPodSandbox"):
        end += 1
    return end
