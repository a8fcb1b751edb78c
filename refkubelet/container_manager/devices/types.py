"""The records of the device manager: devices, options of plugins, devices of containers. Pure.

`convert` makes them from messages. Upstream: pkg/kubelet/cm/devicemanager:
types.go, checkpoint/checkpoint.go.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from types import MappingProxyType
from typing import Final, TypeVar

from msgspec import Struct, field

T = TypeVar("T")

HEALTHY: Final = "Healthy"
NO_NODE: Final = -1  # stands for the NUMA node of devices without one


class Device(Struct, frozen=True):
    """A device of a plugin. `nodes`: its NUMA nodes; may be empty."""

    id: str
    health: str = HEALTHY
    nodes: tuple[int, ...] = ()

    @property
    def healthy(self) -> bool:
        return self.health == HEALTHY


class PluginOptions(Struct, frozen=True):
    """The optional calls that a plugin has."""

    pre_start_required: bool = False
    preferred_allocation: bool = False


class Allotment(Struct, frozen=True):
    """A container's devices of one resource. `devices`: NUMA node -> IDs; a device with two nodes
    is under both; `answer`: the plugin's serialized answer to Allocate."""

    devices: Mapping[int, tuple[str, ...]]
    answer: bytes = b""

    @property
    def ids(self) -> frozenset[str]:
        """Their IDs, whatever NUMA node they are on."""
        return frozenset(device_id for ids in self.devices.values() for device_id in ids)


def by_node(ids: Iterable[str], known: Mapping[str, Device]) -> dict[int, tuple[str, ...]]:
    """The devices by NUMA node; unknown devices have `NO_NODE`.

    >>> by_node(["a", "b"], {"a": Device("a", nodes=(0, 1))})
    {0: ('a',), 1: ('a',), -1: ('b',)}
    """
    nodes: dict[int, tuple[str, ...]] = {}
    for device_id in ids:
        device = known.get(device_id)
        for node in (device.nodes if device else ()) or (NO_NODE,):
            nodes[node] = (*nodes.get(node, ()), device_id)
    return nodes


class DeviceNode(Struct, frozen=True):
    """A device file for a container; `permissions`: some of r, w, m."""

    host_path: str
    container_path: str
    permissions: str


class DeviceMount(Struct, frozen=True):
    """A directory or file that is mounted into a container."""

    host_path: str
    container_path: str
    read_only: bool


class ContainerSettings(Struct, frozen=True):
    """The settings that devices add to a container's configuration (CG-084)."""

    envs: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    mounts: tuple[DeviceMount, ...] = ()
    devices: tuple[DeviceNode, ...] = ()
    annotations: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    cdi_devices: tuple[str, ...] = ()


NO_SETTINGS: Final = ContainerSettings()


def combined(parts: Iterable[ContainerSettings]) -> ContainerSettings:
    """The settings of all devices of a container; of conflicting ones the first counts. Variables,
    annotations and CDI devices are compared by name, device files and mounts by their path in the
    container (upstream: pod_devices.go: deviceRunContainerOptions)."""
    parts = tuple(parts)
    return ContainerSettings(
        envs=_first(part.envs for part in parts),
        mounts=_unique((m for part in parts for m in part.mounts), lambda m: m.container_path),
        devices=_unique((d for part in parts for d in part.devices), lambda d: d.container_path),
        annotations=_first(part.annotations for part in parts),
        cdi_devices=_unique((name for part in parts for name in part.cdi_devices), str),
    )


def _first(maps: Iterable[Mapping[str, str]]) -> dict[str, str]:
    merged: dict[str, str] = {}
    for values in maps:
        merged = {**values, **merged}
    return merged


def _unique(values: Iterable[T], key: Callable[[T], Hashable]) -> tuple[T, ...]:
    by_key: dict[Hashable, T] = {}
    for value in values:
        by_key.setdefault(key(value), value)
    return tuple(by_key.values())
