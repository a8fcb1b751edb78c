"""Where a container runs: its CPUs and the NUMA nodes of its memory, as the runtime is told. Pure.

Rules: CG-031, CG-050. Upstream: pkg/kubelet/cm/internal_container_lifecycle_linux.go.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Placement:
    """`cpus` and `memory_nodes`: lists in the kernel's format; "" where nothing is said.
    `own_cpus`: nobody else runs on these CPUs, so that a CFS quota would only harm."""

    cpus: str = ""
    memory_nodes: str = ""
    own_cpus: bool = False


ANYWHERE: Final = Placement()
