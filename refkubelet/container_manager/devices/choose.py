"""Chooses the devices for a container. No I/O.

Devices of the pod's init containers are reused first; then those near the NUMA nodes of the hint,
and among them the ones that the plugin prefers. Where upstream takes any of a set, the smallest IDs
are taken here, so that runs can be repeated.
Upstream: pkg/kubelet/cm/devicemanager/manager.go: devicesToAllocate, filterByAffinity.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from msgspec import Struct

from refkubelet.container_manager.devices.types import NO_NODE, Device
from refkubelet.container_manager.providers.hints import NumaMask


class Unavailable(Exception):
    """The requested devices are not available; the text is upstream's."""


class Want(Struct, frozen=True):
    """A container's request of one resource. `had`: the devices it has already; None: none yet."""

    pod_uid: str
    container: str
    resource: str
    count: int
    had: frozenset[str] | None = None


def check_unchanged(want: Want) -> None:
    """Refuse another count for a container that has devices already. Raises `Unavailable`."""
    if want.had is not None and len(want.had) != want.count:
        raise Unavailable(
            f'pod "{want.pod_uid}" container "{want.container}" changed request for resource '
            f'"{want.resource}" from {len(want.had)} to {want.count}'
        )


def still_needed(want: Want, healthy: AbstractSet[str] | None) -> int:
    """How many devices must be allocated now. `healthy`: the healthy devices; None: no plugin has
    registered the resource. Raises `Unavailable`."""
    had = want.had or frozenset()
    if healthy is None:
        raise Unavailable(f"cannot allocate unregistered device {want.resource}")
    if not healthy:
        raise Unavailable(
            f"no healthy devices present; cannot allocate unhealthy devices {want.resource}"
        )
    if not had <= healthy:
        raise Unavailable(
            "previously allocated devices are no longer healthy; cannot allocate unhealthy devices "
            f"{want.resource}"
        )
    return want.count - len(had)


@dataclass(slots=True)
class Pick:
    """The devices taken so far, in order, and how many are still `needed`."""

    needed: int
    taken: list[str] = field(default_factory=list)

    def take(self, ids: Iterable[str]) -> bool:
        """Take as many as needed of these, smallest IDs first; True: nothing more is needed."""
        for device_id in sorted(set(ids) - set(self.taken)):
            if self.needed == 0:
                break
            self.taken.append(device_id)
            self.needed -= 1
        return self.needed == 0


class Nearness(Struct, frozen=True):
    """The available devices: near the hint's NUMA nodes, near others, and without a NUMA node."""

    aligned: frozenset[str] = frozenset()
    unaligned: frozenset[str] = frozenset()
    no_affinity: frozenset[str] = frozenset()


def by_nearness(
    available: AbstractSet[str], known: Mapping[str, Device], affinity: NumaMask | None
) -> Nearness:
    """Sort the available devices by the hint's affinity. Without one, or if no device of the
    resource has a NUMA node, all of them are in `no_affinity`."""
    if affinity is None or not any(device.nodes for device in known.values()):
        return Nearness(no_affinity=frozenset(available))
    aligned = {device_id for device_id in available if _is_near(known, device_id, affinity)}
    without = {
        device_id for device_id in available if _nodes(known, device_id) == (NO_NODE,)
    } - aligned
    rest = frozenset(available) - aligned - without
    return Nearness(frozenset(aligned), rest, frozenset(without))


def _nodes(known: Mapping[str, Device], device_id: str) -> tuple[int, ...]:
    device = known.get(device_id)
    return (device.nodes if device else ()) or (NO_NODE,)


def _is_near(known: Mapping[str, Device], device_id: str, affinity: NumaMask) -> bool:
    return any(node >= 0 and affinity >> node & 1 for node in _nodes(known, device_id))
