"""Who may start: static pods with the same full name take turns (LIFE-034, MIRR-002). Pure.

An edited manifest is another UID with the same name; it waits until its predecessor is gone for
good. Upstream: pkg/kubelet/pod_workers.go: allowStaticPodStart.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence


def next_in_line(waiting: Sequence[str], may_still_start: Callable[[str], bool]) -> str | None:
    """The oldest waiting UID that nobody asked to end; None when there is none."""
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
    """Who waits on after `started` took its turn; those that can never start are dropped."""
    return tuple(uid for uid in waiting if uid != started and may_still_start(uid))
