"""The order of the queue of pending resizes (CG-061). Pure.

Upstream: pkg/kubelet/allocation/allocation_manager.go: sortPendingResizes.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final

from msgspec import Struct

_NEVER: Final = datetime.max.replace(tzinfo=UTC)


class PendingResize(Struct, frozen=True):
    """The facts that decide the order. `since`: when the resize became pending; None: it was not
    tried yet."""

    uid: str
    increases: bool
    priority: int
    guaranteed: bool
    since: datetime | None = None


def in_order(pending: Iterable[PendingResize]) -> list[str]:
    """The UIDs in order: resizes that increase no request first, then by higher priority,
    Guaranteed before Burstable, the longest pending; equal ones keep their order."""
    return [
        resize.uid
        for resize in sorted(
            pending,
            key=lambda r: (r.increases, *_among_increases(r)) if r.increases else (False,),
        )
    ]


def _among_increases(resize: PendingResize) -> tuple[int, bool, datetime]:
    return (-resize.priority, not resize.guaranteed, resize.since or _NEVER)
