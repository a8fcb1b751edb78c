"""Back-off of crash loops and image pulls: the arithmetic of an entry, and the table. No I/O.

Crash loops (BACK-001..007, BACK-013) and image pulls (BACK-206) use the same entries with different
reset rules. Times are wall-clock nanoseconds, because they are compared with the runtime's finish
times. Entries are in memory only, so a restarted kubelet has none (BACK-007).
Upstream: staging/src/k8s.io/client-go/util/flowcontrol/backoff.go.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from refkubelet.model.objects import Container, Pod, to_dict
from refkubelet.model.pod import full_name, uid
from simclock.clock import NANOSECONDS

INITIAL_DELAY_S: Final = 10.0
MAX_DELAY_S: Final = 300.0
EXPIRY_NS: Final = 600 * NANOSECONDS


class BackoffEntry(Struct, frozen=True):
    """The current delay, and when it was last set: at the last attempt."""

    delay_ns: int
    last_update_ns: int


class BackoffLimits(Struct, frozen=True):
    """The first and the greatest delay."""

    initial_ns: int
    max_ns: int

    @classmethod
    def up_to(cls, max_s: float, initial_s: float = INITIAL_DELAY_S) -> BackoffLimits:
        """Starting at 10 s, or at the maximum if that is smaller (BACK-013)."""
        return cls(round(min(initial_s, max_s) * NANOSECONDS), round(max_s * NANOSECONDS))


def expired(entry: BackoffEntry, event_ns: int) -> bool:
    """Whether the event, a container's exit, came more than 600 s after the last update
    (BACK-003)."""
    return event_ns - entry.last_update_ns > EXPIRY_NS


def backoff_end(entry: BackoffEntry | None, event_ns: int, now_ns: int) -> int | None:
    """When the back-off since `event_ns` ends; None: it has ended, or there is none (BACK-002)."""
    if entry is None or expired(entry, event_ns) or now_ns - event_ns >= entry.delay_ns:
        return None
    return event_ns + entry.delay_ns


def next_entry(
    entry: BackoffEntry | None, event_ns: int, now_ns: int, limits: BackoffLimits
) -> BackoffEntry:
    """The entry after an attempt: with the initial delay if it is new or expired, else with twice
    the delay, up to the maximum (BACK-002)."""
    if entry is None or expired(entry, event_ns):
        return BackoffEntry(limits.initial_ns, now_ns)
    return BackoffEntry(min(2 * entry.delay_ns, limits.max_ns), now_ns)


class BackoffTable:
    """The back-off entries of crash loops, or of image pulls, by key."""

    def __init__(self, limits: BackoffLimits) -> None:
        self.limits = limits
        self._entries: dict[str, BackoffEntry] = {}

    def get(self, key: str) -> BackoffEntry | None:
        """The entry of `key`, expired or not; None: there is none."""
        return self._entries.get(key)

    def wait_until(self, key: str, event_ns: int, now_ns: int) -> int | None:
        """When the back-off of `key` since `event_ns` ends; None: it is not in back-off."""
        return backoff_end(self._entries.get(key), event_ns, now_ns)

    def next(self, key: str, event_ns: int, now_ns: int) -> None:
        """Count an attempt, before it is made."""
        self._entries[key] = next_entry(self._entries.get(key), event_ns, now_ns, self.limits)

    def collect(self, now_ns: int) -> None:
        """Drop entries that were last updated more than 600 s ago (BACK-004)."""
        if self._entries:
            self._entries = {k: e for k, e in self._entries.items() if not expired(e, now_ns)}


def restart_key(pod: Pod, container: Container) -> str:
    """The key of a container's crash-loop back-off: the pod, and the container's name, image and
    resources (BACK-005)."""
    resources = to_dict(container.resources) if container.resources else {}
    return repr((full_name(pod), uid(pod), container.name, container.image, resources))


def image_key(pod_uid: str, image: str) -> str:
    """The key of an image's back-off: the pod and the image as written in the spec (BACK-206)."""
    return f"{pod_uid}_{image}"
