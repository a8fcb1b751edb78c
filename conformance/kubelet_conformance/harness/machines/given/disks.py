"""Disks whose sizes a fake node sets: small file systems in memory; and what the kernel is to say
of them, of cgroups and of processes.

A file on such a disk is a real one, but what is left there is what the node says.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from fakecri import FakeNode
from kubelet_conformance.harness.machines import mounting
from kubelet_conformance.harness.machines.given import statfs_struct

CGROUP_PLACE: Final = "/sys/fs/cgroup"
SIZE: Final = "size=256m,mode=755"


class KernelOfNode:
    """What `answers` says instead of the kernel: of the fake `node`. statfs tells the fake's sizes
    of the file systems at `disks`, and its cgroup version of /sys/fs/cgroup; processes are those in
    its cgroups."""

    def __init__(self, node: FakeNode, disks: Sequence[Path]) -> None:
        self._node = node
        self._disks = {os.stat(disk).st_dev: disk for disk in disks}

    def statfs(self, path: str) -> bytes | None:
        """The structure; None: the kernel's own. Raises OSError."""
        if path == CGROUP_PLACE or path.startswith(f"{CGROUP_PLACE}/"):
            return self._of_cgroups(path.removeprefix(CGROUP_PLACE))
        if not path.startswith("/"):
            return None
        disk = self._disks.get(os.stat(path).st_dev)
        return None if disk is None else statfs_struct.of_disk(self._node.filesystem(str(disk)))

    def _of_cgroups(self, path: str) -> bytes | None:
        """`path`: below /sys/fs/cgroup."""
        words = [word for word in path.split("/") if word]
        if self._node.cgroups_version == 1 and not words:
            return statfs_struct.of_nothing(statfs_struct.TMPFS)
        if not self._node.cgroup_root().joinpath(*words).exists():
            return None
        return statfs_struct.of_nothing(
            statfs_struct.CGROUP_V1 if self._node.cgroups_version == 1 else statfs_struct.CGROUP_V2
        )

    def has_process(self, pid: int) -> bool:
        """Whether a process of that number is in its cgroups."""
        processes = self._node.cgroups.processes.processes
        return pid in processes and pid > 1

    def kill(self, pid: int) -> None:
        """End that process of its cgroups."""
        self._node.kill_process(pid)


@contextmanager
def disks_in_memory(places: Sequence[Path]) -> Iterator[None]:
    """A file system in memory at each of the directories, until the block ends. Raises OSError."""
    mounted: list[Path] = []
    try:
        for place in places:
            mounting.mount_memory(place, SIZE)
            mounted.append(place)
            mounting.make_shared(place)
        yield
    finally:
        for place in reversed(mounted):
            if os.path.ismount(place):  # the end of a kubelet unmounts what is below its case
                mounting.unmount(place)
