"""The reasons of failed container starts, which become `state.waiting`.

The status is generated before the start and reads the reason of the previous attempt here, so a
waiting reason appears one sync after its error (BACK-010, LIFE-171). In memory only.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

MAX_ENTRIES: Final = 1000


class ReasonCache:
    """Reason and message of the last failed start, per pod UID and container name.

    Holds the 1000 most recently used entries (upstream: pkg/kubelet/reason_cache.go).
    """

    def __init__(self) -> None:
        self._entries: OrderedDict[tuple[str, str], tuple[str, str]] = OrderedDict()

    def get(self, uid: str, container_name: str) -> tuple[str, str] | None:
        """Reason and message of the container's last failed start, or None."""
        key = (uid, container_name)
        if key in self._entries:
            self._entries.move_to_end(key)
        return self._entries.get(key)

    def set(self, uid: str, container_name: str, reason: str, message: str) -> None:
        """Record a failed start (LIFE-070 step 12)."""
        self._entries[uid, container_name] = (reason, message)
        self._entries.move_to_end((uid, container_name))
        while len(self._entries) > MAX_ENTRIES:
            self._entries.popitem(last=False)

    def clear(self, uid: str, container_name: str) -> None:
        """Drop the entry of a container that was started."""
        self._entries.pop((uid, container_name), None)
