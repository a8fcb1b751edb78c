"""What a machine says of itself, as plain values; and what runs on it, as the machine sees it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from msgspec import Struct

from kubeobjects.arguments import arguments_told

GIB: Final = 1024**3
NEVER_A_VICTIM: Final = -1000
"""The oom_score_adj of a process that the kernel does not kill for memory."""


@arguments_told
@dataclass(frozen=True, slots=True)
class InterfaceTraffic:
    """Bytes and errors of one network interface."""

    name: str
    rx_bytes: int = 0
    rx_errors: int = 0
    tx_bytes: int = 0
    tx_errors: int = 0


class Usage(Struct, frozen=True):
    """What all containers and images use together, bytes."""

    memory_bytes: int = 0
    """Of containers without a cgroup: what others use is charged there."""
    writable_bytes: int = 0
    image_bytes: int = 0
    writable_inodes: int = 0
    image_inodes: int = 0


@dataclass(frozen=True, slots=True)
class Victim:
    """A process that the kernel may kill when the machine is out of memory. `kill`: what then
    happens to it."""

    name: str
    pid: int
    memory_bytes: int = 0
    oom_score_adj: int = 0
    cgroup: str = "/"
    kill: Callable[[], None] = field(default=lambda: None, compare=False, repr=False)

    def score(self, total_bytes: int) -> int:
        """How much the kernel wants it; the highest dies."""
        return self.memory_bytes + self.oom_score_adj * (total_bytes // 1000)


class Tenant:
    """What runs on a machine, as the machine sees it. On this one nothing runs."""

    def usage(self) -> Usage:
        """What containers and images use now."""
        return Usage()

    def tasks(self) -> int:
        """The processes of containers and sandboxes."""
        return 0

    def candidates(self) -> list[Victim]:
        """The processes that the kernel may kill for memory, beside those in cgroups."""
        return []

    def settle(self) -> None:
        """Charge to the cgroups what was used up to now."""

    def now_ns(self) -> int:
        """The time, nanoseconds since 1970."""
        return 0


@arguments_told
@dataclass(slots=True)
class Filesystem:
    """A filesystem of the fake node. `base_used_bytes` is what others than containers use."""

    device: str
    capacity_bytes: int = 100 * GIB
    base_used_bytes: int = 20 * GIB
    inodes: int = 6_553_600
    base_used_inodes: int = 500_000
    holds_containers: bool = True  # writable layers count here
    holds_images: bool = True
