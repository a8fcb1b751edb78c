"""The CPUs of a container and the NUMA nodes of its memory, as the runtime is told them. Pure.

Rules: CG-031, CG-050. Upstream: pkg/kubelet/cm/internal_container_lifecycle_linux.go.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Placement:
    """Where one container may run. The default leaves it to the kernel."""

    cpus: str = ""
    """A list in the kernel's format, such as `0-3,8`; "" for any CPU."""
    memory_nodes: str = ""
    """NUMA nodes, in the same format; "" for any."""
    own_cpus: bool = False
    """The CPUs are this container's alone, so that a CFS quota would only slow it down (CG-031)."""


ANYWHERE: Final = Placement()
