"""Sets how much memory, disk space, inodes and process IDs a fake machine has left.

All numbers are what is left beside what containers and images use at the moment. Disks and memory
are those of the fake; the machine that the suite runs on is not changed.
"""

from __future__ import annotations

from typing import Final

from fakecri import FakeNode, Filesystem

NODE: Final = "node"
IMAGES: Final = "images"
CONTAINERS: Final = "containers"
PLACES: Final = {NODE: "/", IMAGES: "/var/lib/images", CONTAINERS: "/var/lib/containers"}
"""Disk -> where it is mounted, when there is one of its own; otherwise all is on the node's."""


def separate_disks(machine: FakeNode, *, split: bool) -> None:
    """Give images and writable layers a disk of their own (EVIC-045), with `split` the images alone
    (EVIC-046), which only CRI-O can report. A kubelet that runs already does not notice it
    (EVIC-040)."""
    root = machine.filesystems["/"]
    root.holds_images, root.holds_containers = False, split
    machine.filesystems[PLACES[IMAGES]] = Filesystem("images", holds_containers=not split)
    machine.image_root = PLACES[IMAGES]
    if split:
        machine.container_root = PLACES[CONTAINERS]


def leave_memory(machine: FakeNode, free_bytes: int) -> None:
    """Leave so many bytes of memory available."""
    taken = machine.containers_memory_bytes()
    machine.use_memory(machine.memory_bytes - taken - free_bytes)


def leave_pids(machine: FakeNode, free: int) -> None:
    """Leave so many process IDs free."""
    machine.base_pids = machine.pid_limit - machine.tasks() - free


def leave_disk(machine: FakeNode, disk: str, free_bytes: int) -> None:
    """Leave so many bytes free on the disk `disk`, a key of PLACES."""
    found, usage = _filesystem(machine, disk), machine.usage()
    taken = usage.writable_bytes if found.holds_containers else 0
    taken += usage.image_bytes if found.holds_images else 0
    found.base_used_bytes = found.capacity_bytes - taken - free_bytes


def leave_inodes(machine: FakeNode, disk: str, free: int) -> None:
    """Leave so many inodes free on the disk `disk`, a key of PLACES."""
    found, usage = _filesystem(machine, disk), machine.usage()
    taken = usage.writable_inodes if found.holds_containers else 0
    taken += usage.image_inodes if found.holds_images else 0
    found.base_used_inodes = found.inodes - taken - free


def _filesystem(machine: FakeNode, disk: str) -> Filesystem:
    return machine.filesystems.get(PLACES[disk], machine.filesystems["/"])
