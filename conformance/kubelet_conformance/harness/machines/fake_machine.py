"""Sets how much memory, disk space, inodes and process IDs a fake machine has left.

All numbers are what is left beside what containers and images use at the moment. Disks and memory
are those of the fake; the machine that the suite runs on is not changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Any, Final

from fakecri import FakeNode, Filesystem, uniform_topology
from kubelet_conformance.features import Feature

NODE: Final = "node"
IMAGES: Final = "images"
CONTAINERS: Final = "containers"
PLACES: Final = {NODE: "/", IMAGES: "/var/lib/images", CONTAINERS: "/var/lib/containers"}
"""Disk -> where it is mounted, when there is one of its own; otherwise all is on the node's. A
kubelet process has other places, where it finds directories."""


def set_up(machine: FakeNode, needs: AbstractSet[Feature], words: Mapping[str, Any]) -> None:
    """Make the machine what a case needs, and what its `words` ask for: those of
    `uniform_topology`, and `swap_bytes`."""
    if Feature.CGROUP_V1 in needs:
        machine.cgroups_version = 1
    if not words:
        return
    layout = {name: value for name, value in words.items() if name != "swap_bytes"}
    machine.swap_total_bytes = words.get("swap_bytes", 0)
    machine.layout = uniform_topology(**layout)
    machine.memory_bytes = sum(n.memory_bytes for n in machine.layout.nodes)


def separate_disks(machine: FakeNode, *, split: bool, places: Mapping[str, str] = PLACES) -> None:
    """Give images and writable layers a disk of their own (EVIC-045), with `split` the images alone
    (EVIC-046), which only CRI-O can report. A kubelet that runs already does not notice it
    (EVIC-040)."""
    root = machine.filesystems["/"]
    root.holds_images, root.holds_containers = False, split
    machine.filesystems[places[IMAGES]] = Filesystem("images", holds_containers=not split)
    machine.image_root = places[IMAGES]
    if split:
        machine.container_root = places[CONTAINERS]


def leave_memory(machine: FakeNode, free_bytes: int) -> None:
    """Leave so many bytes of memory available."""
    used_bytes = machine.containers_memory_bytes()
    machine.use_memory(machine.memory_bytes - used_bytes - free_bytes)


def leave_pids(machine: FakeNode, free: int) -> None:
    """Leave so many process IDs free."""
    machine.base_pids = machine.pid_limit - machine.tasks() - free


def leave_disk(
    machine: FakeNode, disk: str, free_bytes: int, places: Mapping[str, str] = PLACES
) -> None:
    """Leave so many bytes free on the disk `disk`, a key of `places`."""
    filesystem, usage = _filesystem(machine, disk, places), machine.usage()
    used_bytes = usage.writable_bytes if filesystem.holds_containers else 0
    used_bytes += usage.image_bytes if filesystem.holds_images else 0
    filesystem.base_used_bytes = filesystem.capacity_bytes - used_bytes - free_bytes


def leave_inodes(
    machine: FakeNode, disk: str, free: int, places: Mapping[str, str] = PLACES
) -> None:
    """Leave so many inodes free on the disk `disk`, a key of `places`."""
    filesystem, usage = _filesystem(machine, disk, places), machine.usage()
    used_inodes = usage.writable_inodes if filesystem.holds_containers else 0
    used_inodes += usage.image_inodes if filesystem.holds_images else 0
    filesystem.base_used_inodes = filesystem.inodes - used_inodes - free


def _filesystem(machine: FakeNode, disk: str, places: Mapping[str, str]) -> Filesystem:
    return machine.filesystems.get(places[disk], machine.filesystems["/"])
