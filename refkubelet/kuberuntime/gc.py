"""Garbage collection of dead containers, sandboxes and log directories (GC-001..011, GC-020).

`gc_choice` decides what is removed; the collector lists and removes. A removal that fails is logged
and tried again by the next run; only a failed list makes the whole run a failed one (GC-001).
Upstream: pkg/kubelet/kuberuntime/kuberuntime_gc.go, pkg/kubelet/pod_container_deletor.go;
pkg/kubelet/kubelet.go: StartGarbageCollection.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol

from refkubelet.cri.client import CriClient
from refkubelet.cri.records import (
    ContainerRecord,
    ContainerState,
    ListedContainer,
    RuntimePodStatus,
)
from refkubelet.cri.target import CriCallError
from refkubelet.events.recorder import EventRecorder
from refkubelet.failures import Complaints, log_failure
from refkubelet.host.untrusted_files import listed, removed
from refkubelet.kuberuntime.common.runtime_deps import RuntimeDeps
from refkubelet.kuberuntime.common.runtime_options import RuntimeOptions
from refkubelet.kuberuntime.decisions.gc_choice import (
    MayGo,
    dead_to_delete,
    removable_containers,
    removable_sandboxes,
)
from refkubelet.kuberuntime.decisions.grace import stop_timeout_s
from refkubelet.kuberuntime.kill import noted_grace_s
from refkubelet.kuberuntime.removal import LogRemovalError, remove_container
from refkubelet.model.names import parse_pod_log_dir
from refkubelet.telemetry.spans import KUBERUNTIME
from simclock import Clock, aside

log = logging.getLogger(__name__)

CONTAINER_GC_PERIOD_S: Final = 60.0
DELETOR_SLOTS: Final = 50
NO_ROOM: Final = "the deletor's queue is full; containers are left to the next collection"


class PodQuestions(Protocol):
    """What the collector asks the pod workers."""

    def should_pod_content_be_removed(self, uid: str) -> bool:
        """Whether the pod was evicted, is deleted and terminated, or unknown after the first full
        sync (LIFE-057)."""

    def should_pod_runtime_be_removed(self, uid: str) -> bool:
        """Whether the pod is terminated (LIFE-056)."""


class ContainerGC:
    """Collects garbage once; `GarbageCollection` runs it every 60 s (GC-001)."""

    def __init__(
        self, client: CriClient, deps: RuntimeDeps, options: RuntimeOptions, pods: PodQuestions
    ) -> None:
        self._client = client
        self._clock = deps.clock
        self._spans = deps.measures.spans
        self._options = options
        self._pods = pods
        self._complaints = Complaints(log, deps.clock)

    async def garbage_collect(
        self, all_sources_ready: bool, evict_terminated: bool = False
    ) -> list[str]:
        """Remove containers, sandboxes and log directories. Returns the errors of parts that failed
        as a whole. `all_sources_ready` False: containers and logs of all pods stay, because a
        source may still deliver them. `evict_terminated`: remove everything of terminated pods, too
        (GC-004)."""

        def may_go(uid: str) -> bool:
            if self._pods.should_pod_content_be_removed(uid):
                return True
            return evict_terminated and self._pods.should_pod_runtime_be_removed(uid)

        with self._spans.span("Containers/GarbageCollect", scope=KUBERUNTIME):
            return await self._parts(all_sources_ready, may_go)

    async def _parts(self, all_sources_ready: bool, may_go: MayGo) -> list[str]:
        errors: list[str] = []
        surely = may_go if all_sources_ready else _no_pod
        parts = ((self._containers, surely), (self._sandboxes, may_go), (self._log_dirs, surely))
        for part, question in parts:
            try:
                await part(question)
            except Exception as error:
                if not isinstance(error, CriCallError):
                    self._complaints.failed("a part of garbage collection", error)
                errors.append(str(error) or repr(error))
        return errors

    async def _containers(self, may_go: MayGo) -> None:
        listed = await self._client.list_containers()
        now_ns = self._clock.wall_ns()
        for container in removable_containers(listed, now_ns, self._options.gc, may_go):
            try:
                await self._remove(container)
            except Exception as error:  # the others are removed all the same
                complaint = f"cannot remove container {container.name} ({container.id})"
                self._complaints.failed(complaint, error, CriCallError, LogRemovalError)

    async def _remove(self, container: ListedContainer) -> None:
        if container.state is ContainerState.UNKNOWN:  # its process may still run
            grace_s = noted_grace_s(container)
            await self._client.stop_container(container.id, stop_timeout_s(grace_s))
        await remove_container(self._client, container.id, self._options.container_logs_dir)

    async def _sandboxes(self, may_go: MayGo) -> None:
        containers = await self._client.list_containers()
        sandboxes = await self._client.list_pod_sandboxes()
        for sandbox_id in removable_sandboxes(sandboxes, containers, may_go):
            try:
                await self._client.stop_pod_sandbox(sandbox_id)
                await self._client.remove_pod_sandbox(sandbox_id)
            except Exception as error:
                self._complaints.failed(f"cannot remove sandbox {sandbox_id}", error, CriCallError)

    async def _log_dirs(self, may_go: MayGo) -> None:
        """Remove log directories of pods in `may_go`, and links without a log (GC-011)."""
        for entry in _entries(self._options.pod_logs_dir):
            names = parse_pod_log_dir(entry.name)
            if may_go(names[2] if names else entry.name):
                with suppress(OSError):  # what is left of it is looked at next time
                    await aside(f"the logs in {entry}", removed(str(entry)))
        complaint, failed = f"cannot clean up {self._options.container_logs_dir}", False
        for link in _entries(self._options.container_logs_dir):
            try:  # a link of another user keeps nothing else from being cleaned up
                if _dangles(link) and not await self._may_log_again(link.stem.rpartition("-")[2]):
                    link.unlink(missing_ok=True)
            except OSError as error:
                if not failed:
                    self._complaints.failed(complaint, error, OSError)
                failed = True
        if not failed:
            self._complaints.over(complaint)

    async def _may_log_again(self, container_id: str) -> bool:
        """Whether the container exists and has not exited; False if the runtime does not answer."""
        try:
            record = await self._client.container_status(container_id)
        except CriCallError:
            return False
        return record.state is not ContainerState.EXITED


def _no_pod(uid: str) -> bool:
    """For `may_go` while a source may still deliver any pod."""
    return False


def _dangles(link: Path) -> bool:
    """Whether it is a link to a log that is not there. Raises OSError where that cannot be seen."""
    return link.suffix == ".log" and link.is_symlink() and not link.exists()


def _entries(directory: Path | None) -> list[Path]:
    try:
        return [directory / name for name in listed(directory.resolve())] if directory else []
    except OSError:
        return []


class GarbageCollection:
    """Container garbage collection every 60 s, the first at once (GC-001)."""

    def __init__(
        self,
        collector: ContainerGC,
        sources_ready: Callable[[], bool],
        recorder: EventRecorder,
        clock: Clock,
        forget_old: Callable[[], None] = lambda: None,
    ) -> None:
        self._forget_old = forget_old
        self._collector = collector
        self._sources_ready = sources_ready
        self._recorder = recorder
        self._clock = clock

    async def run(self) -> None:
        """Collect every 60 s, until cancelled."""
        while True:
            await self.collect()
            await self._clock.sleep(CONTAINER_GC_PERIOD_S)

    async def collect(self, *, evict_terminated: bool = False) -> None:
        """Collect once; a failure becomes a node event, never an exception."""
        self._forget_old()
        try:
            errors = await self._collector.garbage_collect(self._sources_ready(), evict_terminated)
        except Exception as error:
            log.exception("container garbage collection failed")
            errors = [str(error)]
        if errors:
            text = errors[0] if len(errors) == 1 else f"[{', '.join(dict.fromkeys(errors))}]"
            self._recorder.node_event("Warning", "ContainerGCFailed", text)

    async def reclaim(self) -> None:
        """Collect under disk pressure: everything of terminated pods, too (GC-004)."""
        await self.collect(evict_terminated=True)


class ContainerDeletor:
    """Removes old instances of a container when a newer one has died (GC-020, LIFE-003). `dropped`:
    how many were left to the garbage collector because the queue was full."""

    def __init__(self, client: CriClient, options: RuntimeOptions, clock: Clock) -> None:
        self._client = client
        self._options = options
        self._queue: asyncio.Queue[str] = asyncio.Queue(DELETOR_SLOTS)
        self._complaints = Complaints(log, clock)
        self._emptied: RuntimePodStatus | None = None  # the last one of which all were to go
        self._rest: deque[ContainerRecord] = deque()  # those that have found no room so far
        self.dropped = 0

    def delete_containers_in_pod(
        self, container_id: str, status: RuntimePodStatus, remove_all: bool = False
    ) -> None:
        """Queue the containers to remove after the death of `container_id`. While the queue is
        full, they are left to the garbage collector."""
        keep = max(self._options.gc.max_per_pod_container, 1)
        if remove_all and self._emptied is status:  # many died at once: go on with the rest
            self._put(self._rest)
            return
        dead = deque(dead_to_delete(container_id, status, keep, remove_all=remove_all))
        self._put(dead)
        if remove_all:
            self._emptied, self._rest = status, dead
        if dead:
            self.dropped += len(dead)
            times = self._complaints.again(NO_ROOM)
            if times is not None:
                log.warning("%s%s: %s", NO_ROOM, times, dead[0].name)

    def _put(self, records: deque[ContainerRecord]) -> None:
        """Queue as many as there is room for; `records` has the others afterwards."""
        while records and not self._queue.full():
            self._queue.put_nowait(records.popleft().id)

    async def run(self) -> None:
        """Remove queued containers, one by one, for ever; failures are left to the garbage
        collector."""
        while True:
            container_id = await self._queue.get()
            self._complaints.over(NO_ROOM)
            try:
                links = self._options.container_logs_dir
                await remove_container(self._client, container_id, links)
            except Exception as error:
                complaint = f"cannot remove container {container_id}"
                log_failure(log, complaint, error, CriCallError, LogRemovalError)
