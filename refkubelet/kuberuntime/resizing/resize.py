"""Carries out an in-place resize of the pod's cgroup and its running containers.

Memory comes first, then CPU. For each, the pod's limits are raised, the containers are updated, and
the pod's limits are lowered. Before the pod's cgroup is written, the runtime is told the new limits
(UpdatePodSandboxResources), if it has that call. An error ends the resize; the next sync continues.
What must never happen: a memory limit below the used memory (CG-066); a container with other
resources than the checkpoint; an error that does not reach the pod's condition.
Rules: CG-065, CG-066. Upstream: kuberuntime_manager.go: doPodResizeAction.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Final

from msgspec import Struct

from kubeobjects.structs import replace
from refkubelet.container_manager.cgroups.manager import ContainerManager
from refkubelet.container_manager.cgroups.removal import CgroupError
from refkubelet.cri.client import CriClient
from refkubelet.cri.records import RuntimePodStatus
from refkubelet.cri.target import CriCallError
from refkubelet.cri.usage import ContainerUsage
from refkubelet.kuberuntime.common.runtime_deps import RuntimeDeps
from refkubelet.kuberuntime.common.runtime_options import RuntimeOptions
from refkubelet.kuberuntime.config.linux_resources import container_resources, overhead_resources
from refkubelet.kuberuntime.decisions.pod_actions import PodActions
from refkubelet.kuberuntime.decisions.pod_resize import (
    LowerLimits,
    MemoryUsage,
    lower_limits,
    merged,
    pod_limits_of,
    refused_decrease,
    sandbox_update,
)
from refkubelet.kuberuntime.decisions.resize_actions import (
    CPU,
    MEMORY,
    ContainerUpdate,
    next_step,
    with_resources,
)
from refkubelet.kuberuntime.resizing.actuated import ActuatedResources
from refkubelet.model.cgroups.limits import ResourceConfig
from refkubelet.model.cpuset import ANYWHERE, Placement
from refkubelet.model.objects import Container, Pod
from refkubelet.model.pod import pod_ref

NOT_IMPLEMENTED: Final = "not implemented"  # containerd 2.2 answers this with the code UNKNOWN


class ResizeError(Exception):
    """A step of the resize failed; condition and event show this text."""


class ResizeTools(Struct, frozen=True):
    """What every resize works with."""

    client: CriClient
    deps: RuntimeDeps
    options: RuntimeOptions
    actuated: ActuatedResources


class PodResize:
    """One resize of one pod; use it once."""

    def __init__(
        self, tools: ResizeTools, pod: Pod, status: RuntimePodStatus, actions: PodActions
    ) -> None:
        self._tools = tools
        self._pod = pod
        self._status = status
        self._actions = actions
        self._cgroups = tools.deps.node.pod_cgroups()
        self._actuated_now = tools.actuated.of(pod, status)
        self._now: ResourceConfig | None = None
        self._wanted: ResourceConfig | None = None

    async def run(self) -> None:
        """Carry out the resize. Raises `ResizeError`."""
        if self._cgroups is not None:
            self._read_cgroup(self._cgroups)
        lower = lower_limits(self._updates(MEMORY), self._now, self._wanted)
        if lower and (self._updates(MEMORY) or self._actions.resizes_by_restart):
            await self._check_usage(lower)
        for resource in (MEMORY, CPU):
            updates = self._updates(resource)
            whole = self._actions.resizes_by_restart or self._actions.resizes_pod_level
            if updates or whole:
                await self._resize(resource, updates)

    def _updates(self, resource: str) -> list[ContainerUpdate]:
        return [u for u in self._actions.updates if u.resource == resource]

    def _read_cgroup(self, cgroups: ContainerManager) -> None:
        target = cgroups.config_of(self._pod)
        current = target
        for resource in (MEMORY, CPU):
            try:
                current = merged(current, cgroups.read_config(self._pod, resource))
            except (OSError, ValueError):
                raise ResizeError(
                    f'unable to get pod cgroup {resource} config for pod "{pod_ref(self._pod)}"'
                ) from None
        self._now, self._wanted = current, target

    # CG-066

    async def _check_usage(self, lower: LowerLimits) -> None:
        problem = refused_decrease(lower, await self._usage())
        if problem is not None:
            raise ResizeError(problem)

    async def _usage(self) -> MemoryUsage:
        unreadable = f'unable to read memory usage for pod "{pod_ref(self._pod)}"'
        if not self._status.sandboxes:
            raise ResizeError(unreadable)
        cgroups = self._cgroups
        try:
            stats = await self._tools.client.list_container_stats(self._status.sandboxes[0].id)
            pod = cgroups.memory_usage_bytes(self._pod) if cgroups is not None else None
        except (CriCallError, OSError, ValueError):
            raise ResizeError(unreadable) from None
        return MemoryUsage(pod, {row.name: self._memory_of(row) for row in stats})

    def _memory_of(self, row: ContainerUsage) -> int | None:
        """The memory that the container uses: the runtime's figure; where it gives none, that of
        the container's cgroup (CG-066.4). None: neither is known."""
        if row.memory_usage_bytes is not None or self._cgroups is None:
            return row.memory_usage_bytes
        try:
            return self._cgroups.container_memory_usage_bytes(self._pod, row.container_id)
        except (OSError, ValueError):
            return None

    # CG-065

    async def _resize(self, resource: str, updates: list[ContainerUpdate]) -> None:
        current, target = self._now, self._wanted
        steps = pod_limits_of(resource, current, target) if current and target else None
        for limits in steps.before if steps else ():
            await self._write_cgroup(resource, limits)
        for update in updates:
            await self._update(update)
        for limits in steps.after if steps else ():
            await self._write_cgroup(resource, limits)
        if self._actions.resizes_pod_level:
            self._tools.actuated.set_pod_level(self._pod, (resource,))
            await self._saved()

    async def _write_cgroup(self, resource: str, limits: ResourceConfig) -> None:
        """Tell the runtime the new limits, then write them; if the kernel refuses, tell the runtime
        the old limits again. Raises `ResizeError` if either refuses."""
        cgroups, before = self._cgroups, self._now
        assert cgroups is not None
        assert before is not None
        after = merged(before, limits)
        try:
            await self._tell_runtime(after)
        except CriCallError as error:
            raise ResizeError(
                f"failed to notify runtime for UpdatePodSandboxResources (resource={resource}); "
                "resize rejected: updatePodSandboxResources failed for sanboxID "
                f'"{self._actions.sandbox_id}": {error.text}'
            ) from None
        try:
            cgroups.write_config(self._pod, limits)
        except CgroupError as error:
            await self._quietly(self._tell_runtime(before))
            raise ResizeError(str(error)) from None
        self._now = after

    async def _tell_runtime(self, config: ResourceConfig) -> None:
        try:
            await self._tools.client.update_pod_sandbox_resources(
                self._actions.sandbox_id,
                overhead_resources(self._pod, self._tools.options.resources),
                sandbox_update(config, self._pod),
            )
        except CriCallError as error:
            unknown = error.code == "UNKNOWN" and NOT_IMPLEMENTED in error.message
            if not error.unimplemented and not unknown:
                raise

    async def _quietly(self, call: Awaitable[None]) -> None:
        try:
            await call
        except CriCallError:
            return  # the resize has failed already, and its first error is reported

    async def _update(self, update: ContainerUpdate) -> None:
        name = update.container.name
        actuated = next_step(self._actuated_now[name], update)
        updated = with_resources(update.container, actuated)
        resources = container_resources(
            updated, self._pod, self._tools.options.resources, self._placement(update.container)
        )
        try:
            await self._tools.client.update_container_resources(update.container_id, resources)
        except CriCallError as error:
            raise ResizeError(error.text) from None
        self._actuated_now[name] = actuated
        self._tools.actuated.set_updated(self._pod, updated)
        await self._saved()

    def _placement(self, container: Container) -> Placement:
        """The placement without CPUs and memory nodes, which a resize does not change; it only says
        whether the container has exclusive CPUs (CG-031)."""
        placements = self._tools.deps.node.placements
        if placements is None:
            return ANYWHERE
        return replace(placements.placement(self._pod, container), cpus="", memory_nodes="")

    async def _saved(self) -> None:
        try:
            await self._tools.actuated.saved()
        except OSError as error:
            raise ResizeError(f"cannot record the resources: {error.strerror or error}") from None
