"""Which containers count: those of active pods, once all sources of pods have been seen.

Upstream: pkg/kubelet/cm/cpumanager/cpu_manager.go, memorymanager/memory_manager.go:
removeStaleState.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from refkubelet.cri.records import ContainerState, RuntimePod
from refkubelet.cri.target import CriCallError
from refkubelet.model.objects import Pod
from refkubelet.model.pod import containers, uid

log = logging.getLogger(__name__)


class Assignments(Protocol):
    """What containers were given of a resource, as a value; `entries`: pod UID -> container name ->
    what it has."""

    @property
    def entries(self) -> Mapping[str, Mapping[str, Any]]: ...

    def released(self, pod_uid: str, container: str, /) -> Any: ...


A = TypeVar("A", bound=Assignments)


@dataclass(frozen=True, slots=True)
class ActiveContainers:
    """`pods`: the active ones now (LIFE-012); `sources_ready`: all sources were seen (SRC-070)."""

    pods: Callable[[], Sequence[Pod]]
    sources_ready: Callable[[], bool]

    def names(self, also: Pod | None = None) -> Mapping[str, frozenset[str]] | None:
        """Pod UID -> names of its containers, with those of `also`; None: not all
        pods are known yet."""
        if not self.sources_ready():
            return None
        pods = [*self.pods(), *((also,) if also is not None else ())]
        return {uid(pod): frozenset(c.name for c in containers(pod)) for pod in pods}

    def without_stale(self, state: A, also: Pod | None = None) -> A:
        """The state without what containers have that no active pod has; the same object when there
        is nothing to release, or not all pods are known yet. `also` is active, too."""
        names = self.names(also)
        if names is None:
            return state
        left = state
        for pod_uid, pod in state.entries.items():
            for name in pod:
                if name not in names.get(pod_uid, ()):
                    left = left.released(pod_uid, name)
        return left


class ListingRuntime(Protocol):
    """What lists the pods of the runtime: the runtime manager."""

    async def get_pods(self, *, all_states: bool) -> tuple[RuntimePod, ...]: ...


async def running_containers(runtime: ListingRuntime) -> Iterable[tuple[str, str]]:
    """The containers that run, as (pod UID, container name); none while the runtime is away."""
    try:
        pods = await runtime.get_pods(all_states=False)
    except CriCallError as error:
        log.warning("which containers run is not known: %s", error.text)
        return ()
    return [(pod.uid, c.name) for pod in pods for c in pod.in_state(ContainerState.RUNNING)]
