"""How often the PLEG relists, and what it asks of the runtime."""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct

from refkubelet.cri.records import RuntimePod, RuntimePodStatus


class PlegOptions(Struct, frozen=True):
    """Settings of the generic PLEG; the defaults are those without the runtime's events."""

    relist_period_s: float = 1.0
    """From the end of a relist to the next (PLEG-001)."""
    relist_threshold_s: float = 180.0
    """The age of the last relist from which the PLEG counts as unhealthy (PLEG-201)."""
    events_capacity: int = 1000
    """How many events find room in the queue of the sync loop (PLEG-008)."""
    evented: bool = False
    """The runtime's events write the cache, too; a status is then as new as its reading, not as the
    list before it (PLEG-302)."""


class PlegRuntime(Protocol):
    """What the PLEG asks of the runtime manager."""

    async def get_pods(self, *, all_states: bool) -> tuple[RuntimePod, ...]: ...

    async def get_pod(self, uid: str) -> RuntimePod | None: ...

    async def status_of(self, pod: RuntimePod) -> RuntimePodStatus: ...
