"""Decides which plug-ins to register and to let go, and when one that failed is tried again. Pure.

Rules: CG-086. Upstream: pkg/kubelet/pluginmanager/reconciler, pkg/util/goroutinemap/
exponentialbackoff.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

FIRST_RETRY_S: Final = 0.5
LONGEST_RETRY_S: Final = 122.0

SocketId = tuple[int, ...]
"""What tells a socket from one that is made anew under its name."""


@dataclass(frozen=True, slots=True)
class Retry:
    """A socket whose plug-in could not be registered: not before `not_before_s` again."""

    delay_s: float
    not_before_s: float


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do now, by paths of sockets."""

    let_go: tuple[str, ...] = ()
    register: tuple[str, ...] = ()


def plan(
    desired: Mapping[str, SocketId],
    actual: Mapping[str, SocketId],
    *,
    busy: Collection[str] = (),
    retries: Mapping[str, Retry],
    now_s: float,
) -> Plan:
    """What brings `actual`, the plug-ins that are registered, to `desired`, the sockets that are
    there; nothing for those with which something is under way. One whose socket was made anew is
    let go first, and registered the next time.

    >>> plan({"/a": (1,), "/b": (2,)}, {"/b": (1,), "/c": (3,)}, retries={}, now_s=0.0)
    Plan(let_go=('/b', '/c'), register=('/a',))
    """
    let_go = (p for p, known in actual.items() if p not in busy and desired.get(p) != known)
    new = (p for p in desired if p not in busy and p not in actual)
    return Plan(
        tuple(let_go),
        tuple(p for p in new if p not in retries or now_s >= retries[p].not_before_s),
    )


def failed(before: Retry | None, now_s: float) -> Retry:
    """When to try again after a failure now.

    >>> failed(None, 10.0), failed(Retry(100.0, 0.0), 10.0).delay_s
    (Retry(delay_s=0.5, not_before_s=10.5), 122.0)
    """
    delay_s = FIRST_RETRY_S if before is None else min(2 * before.delay_s, LONGEST_RETRY_S)
    return Retry(delay_s, now_s + delay_s)
