"""Which static pod may start: those with the same full name take turns (LIFE-034, MIRR-002). Pure.

An edited manifest is another UID with the same name: it waits until the pod of the old one is gone
for good. Upstream: pkg/kubelet/pod_workers.go: allowStaticPodStart.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence


def next_in_line(waiting: Sequence[str], may_still_start: Callable[[str], bool]) -> str | None:
    """The oldest waiting UID that was not asked to end; None when there is none."""
    return next((uid for uid in waiting if may_still_start(uid)), None)


def may_start(
    uid: str,
    started: str | None,
    waiting: Sequence[str],
    may_still_start: Callable[[str], bool],
) -> bool:
    """Whether the static pod `uid` may start now.

    `started` is the UID of the same full name that has started and is not gone, `waiting` the
    UIDs that arrived and have not started, in order of arrival.

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
    """The UIDs that wait on after `started` took its turn; those that can never start are
    dropped."""
    return tuple(uid for uid in waiting if uid != started and may_still_start(uid))


class StaticTurns:
    """Per full name: which UID has started, and which wait, in order of arrival."""

    def __init__(self) -> None:
        self._waiting: dict[str, tuple[str, ...]] = {}
        self._started: dict[str, str] = {}

    def arrive(self, full_name: str, uid: str) -> None:
        """`uid` waits for its turn from now on."""
        self._waiting[full_name] = (*self._waiting.get(full_name, ()), uid)

    def take(self, full_name: str, uid: str, may_still_start: Callable[[str], bool]) -> bool:
        """Take the turn, if it is this UID's; True: it may start."""
        waiting = self._waiting.get(full_name, ())
        if not may_start(uid, self._started.get(full_name), waiting, may_still_start):
            return False
        self._waiting[full_name] = still_waiting(waiting, uid, may_still_start)
        if not self._waiting[full_name]:
            del self._waiting[full_name]
        self._started[full_name] = uid
        return True

    def leave(self, full_name: str, uid: str) -> None:
        """`uid` is gone for good; the next may start (MIRR-003)."""
        if self._started.get(full_name) == uid:
            del self._started[full_name]

    def started(self, full_name: str) -> str | None:
        """The UID that has started and is not gone."""
        return self._started.get(full_name)
