"""Which static pod may start: pods with the same full name take turns (LIFE-034, MIRR-002). No I/O.

An edited manifest makes a pod with the same name and a new UID; it waits until the old pod has
finished. Upstream: pkg/kubelet/pod_workers.go: allowStaticPodStart.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence


def next_in_line(waiting: Sequence[str], may_still_start: Callable[[str], bool]) -> str | None:
    """The first of `waiting` that may still start, that is, was not asked to end; else None."""
    return next((uid for uid in waiting if may_still_start(uid)), None)


def may_start(
    uid: str,
    started: str | None,
    waiting: Sequence[str],
    may_still_start: Callable[[str], bool],
) -> bool:
    """Whether the static pod `uid` may start now (MIRR-002.1, MIRR-002.2).

    `started` is the UID of the same full name that has started and not finished, `waiting` the
    UIDs that have not started, in order of arrival.

    >>> may_start("b", "a", ["b"], lambda uid: True)
    False
    >>> may_start("c", None, ["b", "c"], lambda uid: uid != "b")
    True
    """
    if started is not None:
        return started == uid
    return next_in_line(waiting, may_still_start) in (uid, None)


def still_waiting(
    waiting: Sequence[str], started: str, may_still_start: Callable[[str], bool]
) -> tuple[str, ...]:
    """`waiting` without `started` and without the UIDs that can never start."""
    return tuple(uid for uid in waiting if uid != started and may_still_start(uid))


class StaticTurns:
    """For each full name of a static pod: the UID that has started, and the UIDs that wait."""

    def __init__(self) -> None:
        self._waiting: dict[str, tuple[str, ...]] = {}
        self._started: dict[str, str] = {}

    def arrive(self, full_name: str, uid: str) -> None:
        """Put `uid` at the end of the line."""
        self._waiting[full_name] = (*self._waiting.get(full_name, ()), uid)

    def take(self, full_name: str, uid: str, may_still_start: Callable[[str], bool]) -> bool:
        """Start `uid` if it is its turn; False: it must wait."""
        waiting = self._waiting.get(full_name, ())
        if not may_start(uid, self._started.get(full_name), waiting, may_still_start):
            return False
        self._waiting[full_name] = still_waiting(waiting, uid, may_still_start)
        if not self._waiting[full_name]:
            del self._waiting[full_name]
        self._started[full_name] = uid
        return True

    def leave(self, full_name: str, uid: str) -> None:
        """`uid` has finished; the next may start (MIRR-003)."""
        if self._started.get(full_name) == uid:
            del self._started[full_name]

    def started(self, full_name: str) -> str | None:
        """The UID that has started and not finished; None: there is no such pod."""
        return self._started.get(full_name)
