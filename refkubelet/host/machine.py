"""The machine as the kubelet sees it: memory, filesystems, CPUs, cgroups; and its capacity.

`Machine` is one small interface, so that a fake node can stand in for it. Upstream:
pkg/kubelet/cadvisor/util.go: CapacityFromMachineInfo; pkg/kubelet/cm/container_manager_linux.go:
internalCapacity.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Literal, Protocol

from kubeobjects.machine import FilesystemStats, KernelMessage, MemoryStats, PidStats
from kubeobjects.quantity import NANO
from kubeobjects.topology import MachineTopology
from refkubelet.model.cgroups.limits import page_resource
from refkubelet.model.traffic import InterfaceTraffic


class KernelLogReader(Protocol):
    """Gives the records one after the other, each as soon as it is there, until it is closed."""

    def __aiter__(self) -> KernelLogReader: ...

    async def __anext__(self) -> KernelMessage: ...

    def close(self) -> None:
        """Nothing more is read; a reader that waits for a record gets the end."""


class CgroupDir(Protocol):
    """A directory or file below /sys/fs/cgroup: what `pathlib.Path` and the fake's path share.

    Errors are OSError with the kernel's errno.
    """

    @property
    def name(self) -> str: ...

    @property
    def parent(self) -> CgroupDir: ...

    def __truediv__(self, name: str, /) -> CgroupDir: ...

    def mkdir(
        self, mode: int = 0o777, *, parents: bool = False, exist_ok: bool = False
    ) -> None: ...

    def rmdir(self) -> None: ...

    def exists(self) -> bool: ...

    def is_dir(self) -> bool: ...

    def iterdir(self) -> Iterator[CgroupDir]: ...

    def stat(self) -> os.stat_result:
        """`st_nlink` of a directory is 2 and one for each below it (CG-100)."""

    def read_text(self) -> str: ...

    def write_text(self, data: str) -> int: ...


class Machine(Protocol):
    """What the container and resource managers, eviction and the Node object ask of the machine."""

    def memory(self) -> MemoryStats: ...

    def filesystem(self, path: str) -> FilesystemStats:
        """The filesystem that holds `path`. Raises FileNotFoundError when none does."""

    def cpu_count(self) -> int: ...

    def boot_id(self) -> str: ...

    def boot_time_ns(self) -> int | None:
        """When the machine was booted, in nanoseconds since 1970; None: unknown."""

    def interfaces(self) -> Sequence[InterfaceTraffic]:
        """The interfaces to other machines, and their traffic."""

    def cgroup_root(self) -> CgroupDir:
        """/sys/fs/cgroup; with v1 a directory for each hierarchy is below it."""

    def cgroup_version(self) -> Literal[1, 2]:
        """2 where the unified hierarchy is all there is; a hybrid is 1 (CG-014)."""

    def watch_memory(
        self, cgroup: str, usage_bytes: int, passed: Callable[[], None]
    ) -> Callable[[], None]:
        """Call `passed` each time memory of the cgroup v1 with that absolute path passes so many
        bytes; call the answer to end it. Raises OSError (EVIC-058)."""

    def kill_process(self, pid: int) -> None:
        """SIGKILL; a process that is gone is no error (CG-042)."""

    def pids(self) -> PidStats: ...

    def swap_bytes(self) -> int:
        """Size of all swap areas together."""

    def limits_swap(self) -> bool:
        """Whether cgroups can be limited in their use of swap (CG-050)."""

    def topology(self) -> MachineTopology: ...

    def kernel_log(self) -> KernelLogReader:
        """What the kernel says from now on (EVIC-124). Raises OSError when it cannot be read."""


def page_sizes(topology: MachineTopology) -> tuple[int, ...]:
    """The sizes of huge pages, in bytes, also those of which there are no pages now."""
    return tuple(sorted({pages.page_bytes for node in topology.nodes for pages in node.hugepages}))


def machine_capacity(machine: Machine) -> dict[str, int]:
    """CPU, memory and huge pages of every size, in nano units by resource name (NODE-030)."""
    topology = machine.topology()
    capacity = {"cpu": machine.cpu_count() * NANO, "memory": machine.memory().total_bytes * NANO}
    for size in page_sizes(topology):
        pages = (p for node in topology.nodes for p in node.hugepages if p.page_bytes == size)
        capacity[page_resource(size)] = sum(p.pages for p in pages) * size * NANO
    return capacity


def internal_capacity(machine: Machine) -> dict[str, int]:
    """What the cgroup of all pods is limited by: pids, too (CG-034)."""
    return {**machine_capacity(machine), "pid": machine.pids().limit * NANO}
