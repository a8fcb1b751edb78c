"""Collects the statistics of pods on request: from the runtime, cgroups, files and volumes.

The eviction manager and /stats/summary read the same values. Only volumes are measured in the
background (`volumes.py`). Rules: EVIC-029, EVIC-030.
Upstream: pkg/kubelet/stats/cri_stats_provider.go.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from kubeobjects.structs import replace
from refkubelet.cri.records import ContainerState, RuntimePod
from refkubelet.cri.target import CriCallError
from refkubelet.cri.usage import ContainerUsage, SandboxUsage
from refkubelet.host.disk_use import VolumeSize
from refkubelet.host.machine import Machine
from refkubelet.model.objects import Pod
from refkubelet.model.pod import uid
from refkubelet.stats.cgroup_files import count_processes, memory_dir, read_memory
from refkubelet.stats.files import PodFilesReader
from refkubelet.stats.usage import CgroupMemory, PodUsage, rows_by_pod

log = logging.getLogger(__name__)


class StatsRuntime(Protocol):
    """The part of the runtime manager with statistics."""

    async def get_pods(self, *, all_states: bool) -> tuple[RuntimePod, ...]: ...

    async def container_stats(self) -> tuple[ContainerUsage, ...]: ...

    async def sandbox_stats(self) -> tuple[SandboxUsage, ...]: ...


class PodStats(Struct, frozen=True):
    """Collects statistics. `pod_cgroup`: returns the path of a pod's cgroup; None: pods have no
    cgroups. `files` None: files are not measured. `by_sandbox`: memory and processes of pods come
    from ListPodSandboxStats, if the runtime has it (EVIC-030)."""

    runtime: StatsRuntime
    machine: Machine
    pod_cgroup: Callable[[Pod], str] | None = None
    files: PodFilesReader | None = None
    volumes: Callable[[str], Mapping[str, VolumeSize]] = lambda pod_uid: {}
    by_sandbox: bool = False

    async def of(
        self,
        pods: Sequence[Pod],
        *,
        memory: bool = False,
        processes: bool = False,
        files: bool = False,
        network: bool = False,
    ) -> Mapping[str, PodUsage]:
        """Pod UID -> usage, of the pods that have statistics (EVIC-029). `memory`, `processes`:
        read those of the pods' cgroups; `files`: add logs and volumes; `network`: add the traffic
        that the runtime tells. Raises `CriCallError`."""
        sandboxes = await self.sandboxes() if self.by_sandbox else None
        usages = None if sandboxes is None else _by_pod(sandboxes)
        if network and sandboxes is None:
            sandboxes = await self.sandboxes_if_told()
        traffic = {row.pod_uid: row.traffic for row in sandboxes or () if network}
        cgroup_of = self.pod_cgroup if usages is None and (memory or processes) else None
        if usages is None:
            rows = rows_by_pod(await self.runtime.container_stats(), await self._running())
            usages = {pod_uid: PodUsage(own) for pod_uid, own in rows.items()}
        result: dict[str, PodUsage] = {}
        for pod in pods:
            if (usage := usages.get(uid(pod))) is None:
                continue
            if cgroup_of is not None:
                path = cgroup_of(pod)
                usage = self._with_memory(path, usage) if memory else usage
                usage = self._with_processes(path, usage) if processes else usage
            if files:
                usage = self._with_files(pod, usage)
            result[uid(pod)] = replace(usage, traffic=traffic.get(uid(pod)))
        return result

    async def sandboxes(self) -> tuple[SandboxUsage, ...] | None:
        """The rows of ListPodSandboxStats; None: the runtime does not have that call. Raises
        `CriCallError`."""
        try:
            return await self.runtime.sandbox_stats()
        except CriCallError as error:
            if error.unimplemented:
                return None
            raise

    async def sandboxes_if_told(self) -> tuple[SandboxUsage, ...]:
        """The same, nothing if the call fails: containerd 1.6 fails as a whole while one sandbox
        is going away, and what is only added to an answer shall not take the answer away."""
        try:
            return await self.sandboxes() or ()
        except CriCallError as error:
            log.debug("no statistics of sandboxes: %s", error)
            return ()

    async def _running(self) -> list[str]:
        pods = await self.runtime.get_pods(all_states=True)
        return [c.id for pod in pods if pod.sandboxes for c in pod.in_state(ContainerState.RUNNING)]

    def _with_memory(self, path: str, usage: PodUsage) -> PodUsage:
        directory = memory_dir(self.machine, path)
        return replace(usage, memory=read_memory(directory, self.machine.cgroup_version()))

    def _with_processes(self, path: str, usage: PodUsage) -> PodUsage:
        ids = tuple(row.container_id for row in usage.containers)
        return replace(usage, processes=count_processes(memory_dir(self.machine, path), ids))

    def _with_files(self, pod: Pod, usage: PodUsage) -> PodUsage:
        if self.files is None:
            return usage
        return replace(usage, files=replace(self.files.files(pod), volumes=self.volumes(uid(pod))))


def _by_pod(rows: Sequence[SandboxUsage]) -> Mapping[str, PodUsage]:
    """The usage of pods as the runtime tells it of their sandboxes."""
    return {
        row.pod_uid: PodUsage(
            row.containers,
            CgroupMemory(row.memory_usage_bytes, row.memory_working_set_bytes),
            row.processes,
        )
        for row in rows
    }
