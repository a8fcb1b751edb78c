"""`kubelet-conformance search --whole`: its options, and what it says of its worlds."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

from kubelet_conformance.search.campaign import Summary
from kubelet_conformance.search.records import SearchError
from kubelet_conformance.search.sources import WHOLE
from kubelet_conformance.search.whole.bases import BASES
from kubelet_conformance.search.whole.points import CHANGING
from kubelet_conformance.search.whole.whole_world import CannotCount, WholeWorld, whole_world

SEEDS: Final = "1:100"
"""Of the worlds that are drawn, if nothing is said."""
LIST: Final = "?"


def add_words(parser: argparse.ArgumentParser) -> None:
    """Add the words of `search --whole`."""
    parser.add_argument(
        "--whole",
        nargs="?",
        const=LIST,
        metavar="NAME",
        help="a small world, with every fault and a kill at every call; without NAME: say which",
    )
    parser.add_argument(
        "--pairs",
        metavar="N",
        default="0",
        help="of --whole: so many worlds with two of these, or all (default 0)",
    )


def take(options: argparse.Namespace) -> None:
    """Let `seeds` and `size` say which worlds are played. Raises SearchError."""
    if options.whole is None:
        options.seeds = options.seeds or SEEDS
        return
    if options.whole not in BASES:
        raise SearchError(f"--whole {options.whole}: wanted one of {', '.join(BASES)}")
    options.size = f"{WHOLE}{options.whole}"
    if options.seeds is None and options.show is None:
        world = _world(options.whole)
        options.seeds = f"0:{len(world.points) + _pairs(options.pairs, world)}"


def _world(name: str) -> WholeWorld:
    """That small world. Raises SearchError."""
    try:
        return whole_world(name)
    except CannotCount as problem:
        raise SearchError(f"--whole {name}: {' '.join(str(problem).split())}") from None


def _pairs(text: str, world: WholeWorld) -> int:
    """How many pairs are wanted."""
    if text == "all":
        return world.pairs
    if not text.isdigit():
        raise SearchError(f"--pairs {text}: wanted a number, or all")
    return min(int(text), world.pairs)


def words_of_worlds() -> Iterator[str]:
    """A line for each small world."""
    for name, base in BASES.items():
        world = _world(name)
        calls = len({point.place for point in world.points})
        about = base["title"].partition(": ")[2]
        yield f"{name}: {about}: {calls} calls, {len(world.points)} worlds, {world.pairs} of pairs"


def words_of(summary: Summary, name: str) -> Iterator[str]:
    """Which part of a small world was played, and what failed of what was done to its calls."""
    world = _world(name)
    yield (
        f"of {name}: {len(world.points)} worlds with one thing done to one call, "
        f"{world.pairs} with two"
    )
    every = {point.word for point in world.points}
    played, failed = summary.kinds, summary.failing
    for kind in CHANGING:
        words = sorted(word for word in every if word.rpartition(" ")[0] == kind and played[word])
        if words:
            yield f"{kind}: {_counted(words, played)}"
    for word, count in sorted(failed.items()):
        yield f"failed with {word}: {count} of {played[word]}"
    if missing := sorted(word for word in every if not played[word]):
        yield f"never met: {', '.join(missing)}"


def _counted(words: Iterable[str], played: Counter[str]) -> str:
    """How many worlds there were of each method."""
    return ", ".join(f"{word.rpartition(' ')[2]} {played[word]}" for word in words)
