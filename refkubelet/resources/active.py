"""Which containers count: those of active pods, once all sources of pods have been seen.

Upstream: pkg/kubelet/cm/cpumanager/cpu_manager.go, memorymanager/memory_manager.go:
removeStaleState.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from refkubelet.model.objects import Pod, uid
from refkubelet.resources.containers import in_order


@dataclass(frozen=True, slots=True)
class ActiveContainers:
    """`pods`: the active ones now (LIFE-012); `sources_ready`: all sources were seen (SRC-070)."""

    pods: Callable[[], Sequence[Pod]]
    sources_ready: Callable[[], bool]

    def names(self, also: Pod | None = None) -> Mapping[str, frozenset[str]] | None:
        """Pod UID -> names of its containers, with those of `also`; None: nobody can know yet."""
        if not self.sources_ready():
            return None
        pods = [*self.pods(), *((also,) if also is not None else ())]
        return {uid(pod): frozenset(c.name for c in in_order(pod)) for pod in pods}
