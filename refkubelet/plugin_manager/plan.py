"""Decides which plug-ins to register and to let go. Pure.

Rules: CG-086. Upstream: pkg/kubelet/pluginmanager/reconciler.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from msgspec import Struct

from refkubelet.operation_backoff import Retry

SocketId = tuple[int, ...]
"""What tells a socket from one that is made anew under its name."""


class Plan(Struct, frozen=True):
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
    let_go = (p for p, actual_id in actual.items() if p not in busy and desired.get(p) != actual_id)
    new = (p for p in desired if p not in busy and p not in actual)
    return Plan(
        tuple(let_go),
        tuple(p for p in new if p not in retries or now_s >= retries[p].not_before_s),
    )
