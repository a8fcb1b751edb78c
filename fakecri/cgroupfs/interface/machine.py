"""What the fake kernel's machine has, as far as cgroup files show it."""

from __future__ import annotations

from msgspec import Struct


class Machine(Struct, frozen=True):
    """CPUs, nodes, huge pages and privileges that the files depend on."""

    cpus: int = 4
    memory_nodes: int = 1
    hugepage_sizes: tuple[str, ...] = ("1GB", "2MB")
    block_devices: tuple[str, ...] = ("8:0",)
    """Whole disks, by number: those that I/O limits can be about (CG-146)."""
    cap_sys_resource: bool = True
    """Whether the writer may set pressure triggers with any window (CG-126)."""
