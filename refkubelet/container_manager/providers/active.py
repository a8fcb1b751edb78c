"""The containers of active pods; assignments of other containers are released, once all sources
have delivered their pods.

Upstream: pkg/kubelet/cm/cpumanager/cpu_manager.go, memorymanager/memory_manager.go:
removeStaleState.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from msgspec import Struct

from refkubelet.cri.records import ContainerState, RuntimePod
from refkubelet.cri.target import CriCallError
from refkubelet.model.objects import Pod
from refkubelet.model.pod import containers, uid

log = logging.getLogger(__name__)


class Assignments(Protocol):
    """The state of a manager. `entries`: pod UID -> container name -> its assignment."""

    @property
    def entries(self) -> Mapping[str, Mapping[str, Any]]:
        """By pod UID and container name."""

    def released(self, pod_uid: str, container: str, /) -> Any:
        """The same without what that container has."""


A = TypeVar("A", bound=Assignments)


class ActiveContainers(Struct, frozen=True):
    """`pods`: the active pods (LIFE-012); `sources_ready`: whether all sources have delivered their
    pods (SRC-070); `still_runs`: whether something of the pod with that UID, which is not active
    any more, may still run."""

    pods: Callable[[], Sequence[Pod]]
    sources_ready: Callable[[], bool]
    still_runs: Callable[[str], bool] = lambda pod_uid: False

    def names(self, also: Pod | None = None) -> Mapping[str, frozenset[str]] | None:
        """Pod UID -> names of its containers, also of the pod `also`; None: the sources are not
        ready."""
        if not self.sources_ready():
            return None
        pods = [*self.pods(), *((also,) if also is not None else ())]
        return {uid(pod): frozenset(c.name for c in containers(pod)) for pod in pods}

    def without_stale(self, state: A, also: Pod | None = None) -> A:
        """The state without assignments of containers of inactive pods of which nothing runs; the
        same object if there are none, or the sources are not ready. `also` counts as active."""
        names = self.names(also)
        if names is None:
            return state
        remaining = state
        for pod_uid, pod in state.entries.items():
            if pod_uid not in names and self.still_runs(pod_uid):
                continue
            for name in pod:
                if name not in names.get(pod_uid, ()):
                    remaining = remaining.released(pod_uid, name)
        return remaining


class ListingRuntime(Protocol):
    """The part of the runtime manager that lists pods."""

    async def get_pods(self, *, all_states: bool) -> tuple[RuntimePod, ...]: ...


async def running_containers(runtime: ListingRuntime) -> Iterable[tuple[str, str]]:
    """The running containers, as (pod UID, container name); none if the runtime does not answer."""
    try:
        pods = await runtime.get_pods(all_states=False)
    except CriCallError as error:
        log.warning("cannot list the running containers: %s", error.text)
        return ()
    return [(pod.uid, c.name) for pod in pods for c in pod.in_state(ContainerState.RUNNING)]
