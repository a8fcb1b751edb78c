"""PodConfig: runs the sources of pods and queues operations for the sync loop.

Each source runs as a task and delivers complete sets of pods; a source that fails does not disturb
the others. The queue has room for 50 updates; while it is full, sources wait (SRC-064).
Upstream: pkg/kubelet/config/config.go: PodConfig.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Final, Protocol

from refkubelet.events.recorder import EventRecorder
from refkubelet.failures import Part, keep_running
from refkubelet.model.gates import gated_fields
from refkubelet.model.objects import Pod
from refkubelet.model.pod import pod_ref, uid
from refkubelet.model.pod_updates import PodSource, PodUpdate
from refkubelet.pods.merge import merge_pod_sources
from refkubelet.telemetry.pod_startup_latency import PodStartupLatency
from simclock import Clock, format_rfc3339

log = logging.getLogger(__name__)

Deliver = Callable[[Sequence[Pod]], Awaitable[None]]
QUEUE_SIZE = 50
NO_GATES: Final[Mapping[str, bool]] = MappingProxyType({})  # every gate has its default


class Source(Protocol):
    """Something that delivers complete sets of pods, again and again, until cancelled."""

    source: PodSource

    async def run(self, deliver: Deliver) -> None: ...


class PodConfig:
    """Runs `sources`, compares each delivered set with the last one, and queues the operations in
    `updates`. `latency` is told of every pod of the API server."""

    def __init__(
        self,
        sources: Sequence[Source],
        recorder: EventRecorder,
        clock: Clock,
        feature_gates: Mapping[str, bool] = NO_GATES,
        latency: PodStartupLatency | None = None,
    ) -> None:
        self.updates: asyncio.Queue[PodUpdate] = asyncio.Queue(maxsize=QUEUE_SIZE)
        self._sources = tuple(sources)
        self.sources = frozenset(s.source for s in sources)
        """The configured sources."""
        self._recorder = recorder
        self._clock = clock
        self._gated = gated_fields(feature_gates)
        self._latency = latency
        self._pods: dict[PodSource, Mapping[str, Pod]] = {}
        self._came: dict[PodSource, Mapping[str, Pod]] = {}  # as the source told of those

    def seen_all_sources(self, seen: frozenset[PodSource]) -> bool:
        """Whether every configured source has delivered, and the sync loop has taken an update of
        each (`seen`). Until then nothing may be killed or cleaned up (SRC-070, SRC-071).
        """
        return self.sources <= seen and self.sources <= self._pods.keys()

    async def run(self) -> None:
        """Run all sources until cancelled; one that fails is started again. Without sources,
        wait."""
        async with asyncio.TaskGroup() as group:
            for source in self._sources:
                part = Part(f"source {source.source.value}", partial(self._run_source, source))
                group.create_task(keep_running(part, self._clock), name=part.name)
            if not self._sources:
                await asyncio.Event().wait()

    async def _run_source(self, source: Source) -> None:
        async def deliver(pods: Sequence[Pod]) -> None:
            await self.merge(source.source, pods)

        await source.run(deliver)

    async def merge(self, source: PodSource, pods: Sequence[Pod]) -> None:
        """Merge one complete set of `source`; waits while the queue is full."""
        before = self._came.get(source, {})
        same = {id(pod) for pod in pods if before.get(uid(pod)) is pod}
        if self._latency is not None and source is PodSource.API:
            for pod in pods:
                if id(pod) not in same or self._latency.may_end(uid(pod)):
                    self._latency.observed(pod)
        gated = [pod if id(pod) in same else self._gated(pod) for pod in pods]
        result = merge_pod_sources(
            self._pods.get(source, {}),
            gated,
            source,
            first=source not in self._pods,
            seen_at=format_rfc3339(self._clock.wall_ns(), digits=9),
            same=same,
        )
        self._pods[source] = result.pods
        left_out = {id(dropped.pod) for dropped in result.dropped}
        self._came[source] = {
            uid(came): came
            for came, pod in zip(pods, gated, strict=True)
            if id(pod) not in left_out
        }
        for dropped in result.dropped:
            pod = dropped.pod
            message = (
                f"Error validating pod {pod_ref(pod)} from {source.value} due to {dropped.why}, "
                "ignoring"
            )
            log.warning(message)
            self._recorder.pod_event(pod, "Warning", "FailedValidation", message)
        for update in result.updates:
            await self.updates.put(update)
