"""Measures the signals of the machine.

Rules: EVIC-020..028, EVIC-040, EVIC-041. Of the runtime's ImageFsInfo only mount points and time
stamps are used; the filesystems are measured here (EVIC-028). Every cycle runs this, so it must be
fast. Upstream: pkg/kubelet/eviction/helpers.go: makeSignalObservations.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from msgspec import Struct

from kubeobjects.machine import FilesystemStats
from refkubelet.config.eviction_thresholds import ALLOCATABLE, PID
from refkubelet.cri.usage import ImageFilesystems
from refkubelet.eviction.cycle import Observation
from refkubelet.eviction.layout import Layout, layout_of
from refkubelet.host.machine import Machine
from refkubelet.stats.cgroup_files import memory_dir, read_memory


class NodeObservations(Struct, frozen=True):
    """One measurement of all signals, and the layout of the disks (EVIC-040)."""

    signals: Mapping[str, Observation]
    layout: Layout = Layout.ONE


class Observer(Struct, frozen=True):
    """Measures the signals of `machine`."""

    machine: Machine
    root_dir: str
    pods_cgroup: str = ""
    """Path of the cgroup above all pods; "" if pods have no cgroups."""
    may_split: bool = False
    """Containers may be on another disk than images, which only CRI-O does (EVIC-040, EVIC-046)."""

    def observe(self, filesystems: ImageFilesystems, signals: Collection[str]) -> NodeObservations:
        """Measure memory, all disks, and pids and allocatable memory if they are in `signals`.
        Raises `OSError` if a disk cannot be measured; then there is no observation (EVIC-041)."""
        memory = self.machine.memory()
        node_fs = self.machine.filesystem(self.root_dir)
        observations = {
            "memory.available": Observation(
                memory.total_bytes - memory.working_set_bytes, memory.total_bytes, memory.time_ns
            ),
            **_disk("nodefs", node_fs, memory.time_ns),
        }
        if PID in signals:
            pids = self.machine.pids()
            free_pids = pids.limit - pids.running
            observations[PID] = Observation(free_pids, pids.limit, pids.time_ns)
        if ALLOCATABLE in signals:
            allocatable = self._allocatable(memory.time_ns)
            observations |= {} if allocatable is None else {ALLOCATABLE: allocatable}
        if not filesystems.images:
            raise FileNotFoundError("imagefs device is not found")
        return self._with_images(observations, filesystems, node_fs)

    def _allocatable(self, time_ns: int) -> Observation | None:
        """The memory that all pods together may still use (EVIC-021); None without a limit."""
        if not self.pods_cgroup:
            return None
        directory = memory_dir(self.machine, self.pods_cgroup)
        usage = read_memory(directory, self.machine.cgroup_version())
        if usage is None or usage.limit_bytes is None:
            return None
        available = usage.limit_bytes - usage.working_set_bytes
        return Observation(available, usage.limit_bytes, time_ns)

    def _with_images(
        self,
        signals: dict[str, Observation],
        filesystems: ImageFilesystems,
        node_fs: FilesystemStats,
    ) -> NodeObservations:
        """Add the signals of the disks of images and containers (EVIC-023, EVIC-024)."""
        images = filesystems.images[0]
        image_fs = container_fs = self.machine.filesystem(images.mountpoint)
        container_time_ns = images.time_ns
        if self.may_split and filesystems.containers:
            container_fs = self.machine.filesystem(filesystems.containers[0].mountpoint)
            container_time_ns = filesystems.containers[0].time_ns
        signals |= _disk("imagefs", image_fs, images.time_ns)
        signals |= _disk("containerfs", container_fs, container_time_ns)
        devices = (node_fs.device, image_fs.device, container_fs.device)
        return NodeObservations(signals, layout_of(*devices))


def _disk(name: str, stats: FilesystemStats, time_ns: int) -> dict[str, Observation]:
    return {
        f"{name}.available": Observation(stats.available_bytes, stats.capacity_bytes, time_ns),
        f"{name}.inodesFree": Observation(stats.inodes_free, stats.inodes, time_ns),
    }
