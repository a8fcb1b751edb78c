"""Waiting before the next try: the arithmetic of one entry, and the table of entries. Pure.

Crash loops (BACK-001..007, BACK-013) and image pulls (BACK-206) use the same entry {delay, last
update} with different reset rules. Instants are wall-clock nanoseconds, because they are compared
with the runtime's finish times. In memory only: a restarted kubelet forgets (BACK-007).
Upstream: staging/src/k8s.io/client-go/util/flowcontrol/backoff.go.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from refkubelet.model.objects import Container, Pod, to_dict
from refkubelet.model.pod import full_name, uid
from simtime.clock import NANOSECONDS

INITIAL_DELAY_S: Final = 10.0
MAX_DELAY_S: Final = 300.0
EXPIRY_NS: Final = 600 * NANOSECONDS


@dataclass(frozen=True, slots=True)
class BackoffEntry:
    """The current delay and when it was last set (the last start attempt)."""

    delay_ns: int
    last_update_ns: int


@dataclass(frozen=True, slots=True)
class BackoffLimits:
    """First and greatest delay."""

    initial_ns: int
    max_ns: int

    @classmethod
    def up_to(cls, max_s: float, initial_s: float = INITIAL_DELAY_S) -> BackoffLimits:
        """Starting at 10 s, or at the maximum if that is smaller (BACK-013)."""
        return cls(round(min(initial_s, max_s) * NANOSECONDS), round(max_s * NANOSECONDS))


def expired(entry: BackoffEntry, event_ns: int) -> bool:
    """Whether the event (a container's finish) came more than 600 s after the last update
    (BACK-003)."""
    return event_ns - entry.last_update_ns > EXPIRY_NS


def backoff_end(entry: BackoffEntry | None, event_ns: int, now_ns: int) -> int | None:
    """The instant at which the back-off since `event_ns` ends, or None when there is none.

    In back-off: the entry exists, is not expired, and now - event < delay; exactly equal is out
    (BACK-002).
    """
    if entry is None or expired(entry, event_ns) or now_ns - event_ns >= entry.delay_ns:
        return None
    return event_ns + entry.delay_ns


def next_entry(
    entry: BackoffEntry | None, event_ns: int, now_ns: int, limits: BackoffLimits
) -> BackoffEntry:
    """The entry after an allowed attempt: the initial delay if new or expired, else doubled up to
    the maximum (BACK-002)."""
    if entry is None or expired(entry, event_ns):
        return BackoffEntry(limits.initial_ns, now_ns)
    return BackoffEntry(min(2 * entry.delay_ns, limits.max_ns), now_ns)


class BackoffTable:
    """The back-off entries of crash loops, or of image pulls, by key."""

    def __init__(self, limits: BackoffLimits) -> None:
        self.limits = limits
        self._entries: dict[str, BackoffEntry] = {}

    def get(self, key: str) -> BackoffEntry | None:
        """The entry of that key, expired or not."""
        return self._entries.get(key)

    def wait_until(self, key: str, event_ns: int, now_ns: int) -> int | None:
        """The end of the back-off since `event_ns`, or None when the key is not in back-off."""
        return backoff_end(self._entries.get(key), event_ns, now_ns)

    def next(self, key: str, event_ns: int, now_ns: int) -> None:
        """Count an attempt that is about to be made."""
        self._entries[key] = next_entry(self._entries.get(key), event_ns, now_ns, self.limits)

    def collect(self, now_ns: int) -> None:
        """Drop entries last updated more than 600 s before *now* (housekeeping, BACK-004)."""
        if self._entries:
            self._entries = {k: e for k, e in self._entries.items() if not expired(e, now_ns)}


def restart_key(pod: Pod, container: Container) -> str:
    """What makes two starts the same for the crash loop: the pod, and the container's name, image
    and resources (BACK-005)."""
    resources = to_dict(container.resources) if container.resources else {}
    return repr((full_name(pod), uid(pod), container.name, container.image, resources))


def image_key(pod_uid: str, image: str) -> str:
    """Image back-off is per pod and image as written in the spec (BACK-206)."""
    return f"{pod_uid}_{image}"
