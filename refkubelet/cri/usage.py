"""What filesystems, containers and pods use, as the runtime tells it: CRI-098, CRI-123, CRI-124.
Pure.

Instants are nanoseconds since 1970 (0: never), as on the wire.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from refkubelet.cri import bounds
from refkubelet.cri.labels import CONTAINER_NAME, POD_NAME, POD_NAMESPACE, POD_UID
from refkubelet.model.traffic import InterfaceTraffic, Traffic

Message = Any
Pressure = Mapping[str, Mapping[str, float]]
"""`full` and `some`, each with total, avg10, avg60 and avg300."""


class FilesystemUsage(Struct, frozen=True):
    """One entry of ImageFsInfo (CRI-098)."""

    mountpoint: str
    used_bytes: int
    inodes_used: int
    time_ns: int


class ImageFilesystems(Struct, frozen=True):
    """The answer of ImageFsInfo, in the runtime's order. `containers`: where writable layers are;
    empty when the runtime does not tell."""

    images: tuple[FilesystemUsage, ...]
    containers: tuple[FilesystemUsage, ...] = ()


class ContainerUsage(Struct, frozen=True):
    """One row of ListContainerStats (CRI-123). None: the runtime gave no value."""

    container_id: str  # the runtime's
    name: str  # in the pod
    pod_uid: str  # "" when the runtime has no labels, as the next two
    pod_name: str  # metadata.name
    pod_namespace: str  # metadata.namespace
    memory_working_set_bytes: int | None = None  # what cannot be freed under pressure
    memory_time_ns: int = 0  # when memory was measured
    cpu_usage_core_ns: int | None = None  # time on CPUs since the start
    cpu_usage_nano_cores: int | None = None  # use of CPUs now
    rootfs_used_bytes: int | None = None  # of the writable layer
    rootfs_inodes_used: int | None = None  # of the writable layer
    rootfs_time_ns: int = 0  # when the writable layer was measured
    rootfs_mountpoint: str = ""  # of the filesystem with the writable layer
    cpu_time_ns: int = 0  # when CPU was measured
    memory_usage_bytes: int | None = None  # with caches
    memory_rss_bytes: int | None = None  # anonymous memory
    memory_available_bytes: int | None = None  # limit less working set
    memory_page_faults: int | None = None  # since the start
    memory_major_page_faults: int | None = None  # since the start
    swap_time_ns: int = 0  # when swap was measured
    swap_usage_bytes: int | None = None  # swapped out
    swap_available_bytes: int | None = None  # limit less usage
    cpu_psi: Pressure | None = None  # time lost to waiting for each of these
    memory_psi: Pressure | None = None
    io_psi: Pressure | None = None
    io_time_ns: int = 0  # when io_psi was measured


class SandboxUsage(Struct, frozen=True):
    """One row of ListPodSandboxStats (CRI-124): a pod as a whole, and its containers."""

    pod_uid: str
    memory_working_set_bytes: int
    memory_usage_bytes: int
    processes: int
    containers: tuple[ContainerUsage, ...]
    sandbox_id: str = ""
    traffic: Traffic | None = None  # None: not told


def container_usage(stats: Message) -> ContainerUsage:
    """A row of ListContainerStats; the pod is known by the container's labels (CRI-123)."""
    labels = stats.attributes.labels
    layer = stats.writable_layer
    has_layer = stats.HasField("writable_layer")
    return ContainerUsage(
        container_id=stats.attributes.id,
        name=bounds.name(labels.get(CONTAINER_NAME) or stats.attributes.metadata.name),
        pod_uid=bounds.name(labels.get(POD_UID, "")),
        pod_name=bounds.name(labels.get(POD_NAME, "")),
        pod_namespace=bounds.name(labels.get(POD_NAMESPACE, "")),
        memory_working_set_bytes=_value(stats.memory, "working_set_bytes"),
        memory_time_ns=bounds.number(stats.memory.timestamp),
        cpu_usage_core_ns=_value(stats.cpu, "usage_core_nano_seconds"),
        cpu_usage_nano_cores=_value(stats.cpu, "usage_nano_cores"),
        rootfs_used_bytes=_value(layer, "used_bytes") if has_layer else None,
        rootfs_inodes_used=_value(layer, "inodes_used") if has_layer else None,
        rootfs_time_ns=bounds.number(layer.timestamp),
        rootfs_mountpoint=bounds.whole(layer.fs_id.mountpoint, bounds.PATH_BYTES),
        cpu_time_ns=bounds.number(stats.cpu.timestamp),
        memory_usage_bytes=_value(stats.memory, "usage_bytes"),
        memory_rss_bytes=_value(stats.memory, "rss_bytes"),
        memory_available_bytes=_value(stats.memory, "available_bytes"),
        memory_page_faults=_value(stats.memory, "page_faults"),
        memory_major_page_faults=_value(stats.memory, "major_page_faults"),
        swap_time_ns=bounds.number(stats.swap.timestamp),
        swap_usage_bytes=_value(stats.swap, "swap_usage_bytes"),
        swap_available_bytes=_value(stats.swap, "swap_available_bytes"),
        cpu_psi=_pressure(stats.cpu),
        memory_psi=_pressure(stats.memory),
        io_psi=_pressure(stats.io),
        io_time_ns=bounds.number(stats.io.timestamp),
    )


def sandbox_usage(stats: Message) -> SandboxUsage:
    linux, attributes = stats.linux, stats.attributes
    return SandboxUsage(
        pod_uid=bounds.name(attributes.labels.get(POD_UID, "") or attributes.metadata.uid),
        memory_working_set_bytes=bounds.number(linux.memory.working_set_bytes.value),
        memory_usage_bytes=bounds.number(linux.memory.usage_bytes.value),
        processes=bounds.number(linux.process.process_count.value),
        containers=tuple(container_usage(row) for row in linux.containers),
        sandbox_id=attributes.id,
        traffic=_traffic(linux.network) if linux.HasField("network") else None,
    )


def _traffic(network: Message) -> Traffic:
    default = network.default_interface if network.HasField("default_interface") else None
    return Traffic(
        time_ns=bounds.number(network.timestamp),
        default=_interface(default) if default is not None else None,
        interfaces=tuple(_interface(each) for each in network.interfaces[: bounds.MOST_NAMES]),
    )


def _interface(usage: Message) -> InterfaceTraffic:
    return InterfaceTraffic(
        name=bounds.name(usage.name),
        rx_bytes=_value(usage, "rx_bytes"),
        rx_errors=_value(usage, "rx_errors"),
        tx_bytes=_value(usage, "tx_bytes"),
        tx_errors=_value(usage, "tx_errors"),
    )


def _pressure(resource: Message) -> Pressure | None:
    if not resource.HasField("psi"):
        return None
    return {
        kind.lower(): {
            "total": bounds.number(data.Total),
            "avg10": bounds.decimal(data.Avg10),
            "avg60": bounds.decimal(data.Avg60),
            "avg300": bounds.decimal(data.Avg300),
        }
        for kind in ("Full", "Some")
        for data in (getattr(resource.psi, kind),)
    }


def filesystem_usage(usage: Message) -> FilesystemUsage:
    return FilesystemUsage(
        mountpoint=bounds.whole(usage.fs_id.mountpoint, bounds.PATH_BYTES),
        used_bytes=bounds.number(usage.used_bytes.value),
        inodes_used=bounds.number(usage.inodes_used.value),
        time_ns=bounds.number(usage.timestamp),
    )


def _value(message: Message, field: str) -> int | None:
    if not message.HasField(field):
        return None
    return bounds.number(getattr(message, field).value)
