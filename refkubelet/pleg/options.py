"""How often a PLEG works, and what it asks of the runtime."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from refkubelet.cri.records import RuntimePod, RuntimePodStatus


@dataclass(frozen=True, slots=True)
class PlegOptions:
    """Period between the end of a relist and the next, the age from which the PLEG counts as
    unhealthy (PLEG-001, PLEG-201), and the room for events (PLEG-008). `evented`: the runtime's
    events write the cache, too, so a status counts from when it is read (PLEG-302)."""

    relist_period_s: float = 1.0
    relist_threshold_s: float = 180.0
    events_capacity: int = 1000
    evented: bool = False


class PlegRuntime(Protocol):
    """What the PLEG asks of the runtime manager."""

    async def get_pods(self, *, all_states: bool) -> tuple[RuntimePod, ...]: ...

    async def get_pod(self, uid: str) -> RuntimePod | None: ...

    async def status_of(self, pod: RuntimePod) -> RuntimePodStatus: ...
