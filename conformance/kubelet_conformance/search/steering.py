"""Coverage steers: what was seldom met in an earlier campaign is drawn more often in the next one
(`--steer FILE`), and the end of a campaign says what calls have never met.

The weights are a part of the size of the worlds, so that head line and `--resume` know them, and
the same seed makes the same world.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from statistics import median
from typing import Final

from kubelet_conformance.scenarios.play.struck import NO_CALL
from kubelet_conformance.search.campaign import Summary
from kubelet_conformance.search.drawing.faults import CALLS, CHANGING, HALVES
from kubelet_conformance.search.drawing.kinds import OF_STEPS
from kubelet_conformance.search.records import Met, SearchError, read_lines
from kubelet_conformance.search.sources import with_weights
from refkubelet.pod_workers.taken import name_of
from refkubelet.pod_workers.transitions import TRANSITIONS

RARE: Final = 5
"""So many transitions are told with the number of their worlds."""
MOST: Final = 3.0
"""The largest weight: what is rare for a reason must not crowd out all else."""
STRUCK: Final[Mapping[str, tuple[str, ...]]] = {
    "failing calls": ("failing",),
    "slow calls": ("slow", "late"),
    "hanging calls": ("hanging",),
    "lost answers": ("lost",),
    "half calls": ("half",),
    "kubelet killed": ("killed in",),
    "killed at calls": ("killed in",),
    "kubelet restarted": ("stopped in",),
}
"""Kinds that may strike a call or not -> how the words for that begin; all others count as met when
they can be in a world."""
_ON: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(("failing", "slow", "late", "hanging", "killed in", "stopped in"), CALLS),
    "lost": CHANGING,
    "half": HALVES,
}
"""What is done -> to calls of which methods."""


def add_words(parser: argparse.ArgumentParser) -> None:
    """Add the words of steering."""
    parser.add_argument(
        "--steer",
        type=Path,
        metavar="FILE",
        help="results of an earlier search: draw more of what it has seldom met",
    )


def take(options: argparse.Namespace) -> None:
    """Let `size` say how often kinds are there. Raises SearchError."""
    if options.steer is None:
        return
    if options.whole is not None:
        raise SearchError("--steer: wanted without --whole, of which nothing is drawn")
    _, lines = read_lines(options.steer, "--steer")
    options.size = with_weights(options.size, weights_of(lines))


def weights_of(lines: Iterable[Met]) -> dict[str, float]:
    """The weights of kinds of steps after these worlds: 1 for those that were met as often as half
    of them, more for the others."""
    counts = dict.fromkeys(OF_STEPS, 0)
    for line in lines:
        for kind in counts:
            counts[kind] += _is_met(kind, line)
    usual = median(counts.values()) + 1
    return {
        kind: round(min(MOST, max(1.0, usual / (count + 1))), 2) for kind, count in counts.items()
    }


def _is_met(kind: str, line: Met) -> bool:
    begins = STRUCK.get(kind)
    if begins is None:
        return kind in line.kinds
    return any(word.startswith(begins) and NO_CALL not in word for word in line.struck)


def words_of(summary: Summary) -> Iterator[str]:
    """A table of what calls have met, and what they have never; and which transitions pod workers
    have made."""
    for done, methods in _ON.items():
        counts = {method: summary.struck[f"{done} {method}"] for method in methods}
        met = ", ".join(f"{method} {count}" for method, count in counts.items() if count)
        never = ", ".join(method for method, count in counts.items() if not count)
        yield f"{done}: {met or 'nothing'}{f'; never {never}' if never and met else ''}"
    if summary.transitions:
        yield _of_workers(summary.transitions)


def _of_workers(counts: Mapping[str, int]) -> str:
    """Which transitions were met in how many worlds, the rare ones first."""
    names = [name_of(row) for row in TRANSITIONS]
    met = sorted((name for name in names if counts[name]), key=lambda name: counts[name])
    rare = ", ".join(f"{name} {counts[name]}" for name in met[:RARE])
    never = ", ".join(name for name in names if not counts[name])
    text = f"pod workers: {len(met)} of {len(names)} transitions; rarest {rare}"
    return f"{text}; never {never}" if never else text
