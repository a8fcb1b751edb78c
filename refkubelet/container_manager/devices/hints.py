"""Computes the device manager's hints: the sets of NUMA nodes with enough devices. Pure.

Upstream: pkg/kubelet/cm/devicemanager/topology_hints.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet

from refkubelet.container_manager.devices.types import Device
from refkubelet.container_manager.providers.hints import TopologyHint, all_masks, mask_of


def is_aligned(known: Iterable[Device]) -> bool:
    """Whether any device of the resource has a NUMA node."""
    return any(device.nodes for device in known)


def device_hints(
    known: Mapping[str, Device],
    *,
    available: AbstractSet[str],
    reusable: AbstractSet[str],
    count: int,
    numa_nodes: tuple[int, ...],
) -> tuple[TopologyHint, ...]:
    """The sets of NUMA nodes with at least `count` devices, available or reusable, which include
    all nodes of reusable devices.

    Preferred are sets of the smallest size that would be enough if all devices were free.
    `numa_nodes`: of the machine; only those with devices of the resource are combined.
    """
    with_devices = {node for device in known.values() for node in device.nodes}
    nodes = tuple(n for n in numa_nodes if n in with_devices) or numa_nodes
    tied = {device_id for device_id in reusable if device_id in known and known[device_id].nodes}
    smallest, masks = len(nodes), []
    for mask in all_masks(nodes):
        near = {device_id for device_id, device in known.items() if mask & mask_of(device.nodes)}
        if len(near) >= count:
            smallest = min(smallest, mask.bit_count())
        if tied <= near and len(tied) + len(near & available) >= count:
            masks.append(mask)
    return tuple(TopologyHint(mask, mask.bit_count() == smallest) for mask in masks)
