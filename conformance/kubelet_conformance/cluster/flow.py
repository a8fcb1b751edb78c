"""Hands out work piece by piece: so much is under way that nobody waits, and no more."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from concurrent.futures import (  # noqa: TID251  # whole cases run elsewhere, with their time
    FIRST_COMPLETED,
    Future,
    wait,
)
from itertools import islice
from typing import Final, TypeVar

K = TypeVar("K")
T = TypeVar("T")
AHEAD: Final = 2
"""So many pieces wait for each process, so that none waits for a piece."""
LOOK_EACH_S: Final = 10.0
"""After so long without a result somebody looks whether there can be one."""


def as_they_end(
    submit: Callable[[K], Future[T]],
    pieces: Iterator[K],
    count: int,
    look: Callable[[], None] = lambda: None,
) -> Generator[tuple[K, Future[T]], None, None]:
    """Each piece and its future, as they end. `count`: how many are done at a time; `look` raises
    what makes waiting useless. What is under way when no more is wanted is cancelled."""
    under_way: dict[Future[T], K] = {}
    try:
        while True:
            for piece in islice(pieces, count * AHEAD - len(under_way)):
                under_way[submit(piece)] = piece
            if not under_way:
                return
            done, _ = wait(under_way, LOOK_EACH_S, FIRST_COMPLETED)
            if not done:
                look()
            for future in done:
                yield under_way.pop(future), future
    finally:
        for future in under_way:
            future.cancel()
