"""Answers requests for the logs of containers (SRV-020 to SRV-023).

What is wrong with the request, the pod or the container is an error status; once the container is
found the answer is 200, and what goes wrong then is told in its body, as upstream does.
Upstream: pkg/kubelet/server/server.go: getContainerLogs; kuberuntime: GetContainerLogs.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator

from msgspec import Struct

from refkubelet.cri.records import ContainerState
from refkubelet.cri.target import CriCallError
from refkubelet.model.pod import all_containers, bare_container_id
from refkubelet.server.common.exchange import Answer, Request, text
from refkubelet.server.common.host import ServerHost
from refkubelet.server.common.routes import Route
from refkubelet.server.logs.lines import LogFilter, UnknownFormat
from refkubelet.server.logs.reader import LogReader, LogSource
from refkubelet.server.logs.request import (
    ALL,
    SPLIT_STREAMS,
    LogError,
    LogOptions,
    container_with_logs,
    log_options,
    stream_refused,
)

log = logging.getLogger(__name__)
NANO = 10**9


class ContainerLogs(Struct, frozen=True):
    """The handler of /containerLogs."""

    host: ServerHost

    async def answer(self, request: Request, route: Route) -> Answer:
        """GET /containerLogs/NAMESPACE/POD/CONTAINER."""
        options = log_options(request)
        if isinstance(options, Answer):
            return options
        namespace, name = route.parts["namespace"], route.parts["pod"]
        container = route.parts["container"]
        pod = self.host.pods.by_name(namespace, name)
        if pod is None:
            return text(f'pod "{name}" does not exist', 404)
        if all(c.name != container for c in all_containers(pod)):
            return text(f'container "{container}" not found in pod "{name}"', 404)
        split = self.host.gates(SPLIT_STREAMS, False)
        if (refused := stream_refused(options, split_streams=split)) is not None:
            return refused
        status, previous = self.host.pods.status(pod), options.previous
        try:
            container_id = container_with_logs(name, status, container, previous=previous)
        except LogError as error:
            return text(str(error), 400)
        return Answer(chunks=self._chunks(container_id, options))

    async def _chunks(self, wanted: str, options: LogOptions) -> AsyncIterator[bytes]:
        """The log of the container `wanted`; its failure as the last words."""
        container_id = bare_container_id(wanted)
        try:
            record = await self.host.client.container_status(container_id)
        except CriCallError:
            yield f"unable to retrieve container logs for {wanted}".encode()
            return
        source = LogSource(
            path=record.log_path,
            clock=self.host.clock,
            running=lambda: self._running(container_id),
            trusted=self.host.files.log_roots,
        )
        reader = LogReader(
            source,
            self._filter(options),
            tail_lines=options.tail_lines,
            follow=options.follow,
        )
        try:
            async for chunk in reader.chunks():
                yield chunk
        except (OSError, ValueError) as error:
            why = (error.strerror if isinstance(error, OSError) else None) or str(error)
            yield f'failed to open log file "{record.log_path}": {why.lower()}'.encode()
        except (UnknownFormat, CriCallError) as error:
            yield str(error).encode()

    def _filter(self, options: LogOptions) -> LogFilter:
        since_ns = None
        if options.since_seconds is not None:
            since_ns = self.host.clock.wall_ns() - options.since_seconds * NANO
        elif options.since_time is not None:
            since_ns = int(options.since_time.timestamp() * 1_000_000) * 1000
        chosen = options.stream not in (None, ALL)
        return LogFilter(
            timestamps=options.timestamps,
            since_ns=since_ns,
            limit_bytes=options.limit_bytes,
            stream=(options.stream or "").lower().encode() if chosen else None,
        )

    async def _running(self, container_id: str) -> bool:
        """Whether the container still runs; while the runtime is away it may (SRV-023)."""
        try:
            record = await self.host.client.container_status(container_id)
        except CriCallError as error:
            if error.code == "UNAVAILABLE":
                return True
            raise
        return record.state is ContainerState.RUNNING
