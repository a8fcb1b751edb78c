"""Garbage collection of dead containers, sandboxes and log directories: GC-001..011, GC-020.

Choosing what goes is pure (`evictable`, `over_limit`, `removable_sandboxes`); the collector lists,
asks and removes. What must never happen: a RUNNING container or a sandbox that still owns a
container is removed; one failure ends the run.
Upstream: pkg/kubelet/kuberuntime/kuberuntime_gc.go, pkg/kubelet/pod_container_deletor.go.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from refkubelet.failures import log_failure
from refkubelet.model.names import parse_pod_log_dir
from refkubelet.runtime.client import CriCallError, CriClient
from refkubelet.runtime.labels import POD_UID
from refkubelet.runtime.options import GcOptions, RuntimeDeps, RuntimeOptions
from refkubelet.runtime.records import (
    ContainerRecord,
    ContainerState,
    ListedContainer,
    ListedSandbox,
    RuntimePodStatus,
    SandboxState,
)
from refkubelet.runtime.removal import LogRemovalError, remove_container
from simtime.clock import NANOSECONDS

log = logging.getLogger(__name__)

STOP_OF_UNKNOWN_S: Final = 2
DELETOR_SLOTS: Final = 50
MayGo = Callable[[str], bool]


class PodQuestions(Protocol):
    """What the collector asks the pod workers."""

    def should_pod_content_be_removed(self, uid: str) -> bool:
        """Evicted, deleted and terminated, or unknown after the first full sync (LIFE-057)."""
        ...

    def should_pod_runtime_be_removed(self, uid: str) -> bool:
        """Terminated (LIFE-056)."""
        ...


@dataclass(frozen=True, slots=True)
class DeadContainer:
    """A candidate: unit = (pod UID, container name)."""

    id: str
    name: str
    uid: str
    created_at_ns: int
    unknown: bool = False

    @property
    def unit(self) -> tuple[str, str]:
        return (self.uid, self.name)


def evictable(
    containers: Iterable[ListedContainer], now_ns: int, min_age_s: float
) -> list[DeadContainer]:
    """Containers that do not run and are old enough, newest first (GC-002). Pure."""
    newest_allowed_ns = now_ns - round(min_age_s * NANOSECONDS)
    dead = [
        DeadContainer(
            c.id,
            c.name,
            c.labels.get(POD_UID, ""),
            c.created_at_ns,
            c.state is ContainerState.UNKNOWN,
        )
        for c in containers
        if c.state is not ContainerState.RUNNING and c.created_at_ns <= newest_allowed_ns
    ]
    return sorted(dead, key=lambda c: (-c.created_at_ns, c.id))


def over_limit(dead: Sequence[DeadContainer], limits: GcOptions) -> list[DeadContainer]:
    """Those beyond the limits: per unit the oldest, then the oldest of all (GC-003 b, c). Pure.

    `dead` is sorted newest first.
    """
    kept, gone = _keep_per_unit(dead, limits.max_per_pod_container)
    if 0 <= limits.max_containers < len(kept):
        units = len({c.unit for c in kept})
        kept, more = _keep_per_unit(kept, max(1, limits.max_containers // units))
        gone += more + kept[limits.max_containers :]
    return gone


def _keep_per_unit(
    dead: Sequence[DeadContainer], limit: int
) -> tuple[list[DeadContainer], list[DeadContainer]]:
    counts: dict[tuple[str, str], int] = {}
    kept: list[DeadContainer] = []
    gone: list[DeadContainer] = []
    for container in dead:
        counts[container.unit] = counts.get(container.unit, 0) + 1
        (kept if limit < 0 or counts[container.unit] <= limit else gone).append(container)
    return kept, gone


def removable_sandboxes(
    sandboxes: Iterable[ListedSandbox],
    containers: Iterable[ListedContainer],
    content_may_go: MayGo,
) -> list[str]:
    """Ids of inactive sandboxes: all of pods whose content may go, else all but the newest.

    Active: READY, or owning any listed container (GC-010). Pure.
    """
    owners = {c.sandbox_id for c in containers}
    by_pod: dict[str, list[ListedSandbox]] = {}
    for sandbox in sorted(sandboxes, key=lambda s: (-s.created_at_ns, s.id)):
        by_pod.setdefault(sandbox.labels.get(POD_UID, ""), []).append(sandbox)
    return [
        sandbox.id
        for uid, group in by_pod.items()
        for sandbox in (group if content_may_go(uid) else group[1:])
        if sandbox.state is not SandboxState.READY and sandbox.id not in owners
    ]


class ContainerGC:
    """Run it every 60 s (GC-001)."""

    def __init__(
        self, client: CriClient, deps: RuntimeDeps, options: RuntimeOptions, pods: PodQuestions
    ) -> None:
        self._client = client
        self._clock = deps.clock
        self._options = options
        self._pods = pods

    async def garbage_collect(
        self, all_sources_ready: bool, evict_terminated: bool = False
    ) -> list[str]:
        """One run: containers, sandboxes, log directories; the errors as texts, [] when all went
        well. `evict_terminated` also takes everything of terminated pods (GC-004)."""
        errors: list[str] = []
        may_go = self._question(all_sources_ready, evict_terminated)
        for step in (self._containers, self._sandboxes, self._log_dirs):
            try:
                errors += await step(may_go)
            except CriCallError as error:
                errors.append(error.text)
        return errors

    def _question(self, all_sources_ready: bool, evict_terminated: bool) -> MayGo:
        """Which pods' content may go: none before all sources are seen."""

        def may_go(uid: str) -> bool:
            if not all_sources_ready:
                return False
            if self._pods.should_pod_content_be_removed(uid):
                return True
            return evict_terminated and self._pods.should_pod_runtime_be_removed(uid)

        return may_go

    async def _containers(self, may_go: MayGo) -> list[str]:
        listed = await self._client.list_containers()
        dead = evictable(listed, self._clock.wall_ns(), self._options.gc.min_age_s)
        gone: list[DeadContainer] = []
        rest: list[DeadContainer] = []
        for container in dead:
            (gone if may_go(container.uid) else rest).append(container)
        return await self._remove([*gone, *over_limit(rest, self._options.gc)])

    async def _remove(self, containers: Sequence[DeadContainer]) -> list[str]:
        errors = []
        for container in containers:
            try:
                if container.unknown:  # its process may still run
                    await self._client.stop_container(container.id, STOP_OF_UNKNOWN_S)
                links = self._options.container_logs_dir
                await remove_container(self._client, container.id, links)
            except (CriCallError, LogRemovalError) as error:
                errors.append(f"cannot remove container {container.name}: {error}")
        return errors

    async def _sandboxes(self, may_go: MayGo) -> list[str]:
        containers = await self._client.list_containers()
        sandboxes = await self._client.list_pod_sandboxes()
        errors = []
        for sandbox_id in removable_sandboxes(sandboxes, containers, may_go):
            try:
                await self._client.stop_pod_sandbox(sandbox_id)
                await self._client.remove_pod_sandbox(sandbox_id)
            except CriCallError as error:
                errors.append(f"cannot remove sandbox {sandbox_id}: {error.text}")
        return errors

    async def _log_dirs(self, may_go: MayGo) -> list[str]:
        """Log directories of pods that may go, and links that point nowhere (GC-011)."""
        for entry in _entries(self._options.pod_logs_dir):
            names = parse_pod_log_dir(entry.name)
            if may_go(names[2] if names else entry.name):
                shutil.rmtree(entry, ignore_errors=True)
        alive = {c.id for c in await self._client.list_containers(running_only=True)}
        for link in _entries(self._options.container_logs_dir):
            container_id = link.stem.rpartition("-")[2]
            if link.is_symlink() and not link.exists() and container_id not in alive:
                link.unlink(missing_ok=True)
        return []


def _entries(directory: Path | None) -> list[Path]:
    try:
        return sorted(directory.iterdir()) if directory is not None else []
    except OSError:
        return []


class ContainerDeletor:
    """Removes old instances as soon as a newer one has died (GC-020, LIFE-003)."""

    def __init__(self, client: CriClient, options: RuntimeOptions) -> None:
        self._client = client
        self._options = options
        self._queue: asyncio.Queue[str] = asyncio.Queue(DELETOR_SLOTS)

    def delete_containers_in_pod(
        self, container_id: str, status: RuntimePodStatus, remove_all: bool = False
    ) -> None:
        """After the death of `container_id`: queue what goes. What finds the queue full is left to
        the garbage collector."""
        keep = max(self._options.gc.max_per_pod_container, 1)
        for record in dead_to_delete(container_id, status, keep, remove_all=remove_all):
            try:
                self._queue.put_nowait(record.id)
            except asyncio.QueueFull:
                log.warning("the deletor's queue is full; %s is left to the next GC", record.name)

    async def run(self) -> None:
        """Remove what is queued, one by one, for ever; failures are left to the collector."""
        while True:
            container_id = await self._queue.get()
            try:
                links = self._options.container_logs_dir
                await remove_container(self._client, container_id, links)
            except Exception as error:
                what = f"cannot remove container {container_id}"
                log_failure(log, what, error, CriCallError, LogRemovalError)


def dead_to_delete(
    container_id: str, status: RuntimePodStatus, keep: int, *, remove_all: bool = False
) -> tuple[ContainerRecord, ...]:
    """EXITED instances of the same name beyond the newest `keep`; all EXITED ones of the pod with
    `remove_all`; nothing for an id that is no container of the pod. Pure."""
    exited = tuple(c for c in status.containers if c.state is ContainerState.EXITED)
    if remove_all:
        return exited
    died = next((c for c in status.containers if c.id == container_id), None)
    if died is None:
        return ()
    return tuple(c for c in exited if c.name == died.name)[keep:]
