"""Reads the runtime's events (GetContainerEvents): a change of a container or sandbox, and the
status of its pod.

An event has the status of the sandbox and of all its containers (CRI-140), so no further call is
needed. An event without its sandbox, or with a malformed status, is skipped and does not end the
stream (PLEG-302).
Upstream: pkg/kubelet/kuberuntime/kuberuntime_manager.go: GeneratePodStatus.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing
from enum import Enum
from typing import Any, Final

from kubecri.v1 import api_pb2 as cri
from msgspec import Struct

from kubeobjects.structs import replace
from refkubelet.cri import convert
from refkubelet.cri.client import CriClient
from refkubelet.cri.records import RuntimePodStatus
from refkubelet.kuberuntime.logs.termination_message import termination_message
from refkubelet.kuberuntime.reading.pod_reader import pod_ips

log = logging.getLogger(__name__)


class PodEventKind(Enum):
    """What happened (CRI-141)."""

    CREATED = "created"
    STARTED = "started"
    STOPPED = "stopped"
    DELETED = "deleted"


KINDS: Final = {
    cri.CONTAINER_CREATED_EVENT: PodEventKind.CREATED,
    cri.CONTAINER_STARTED_EVENT: PodEventKind.STARTED,
    cri.CONTAINER_STOPPED_EVENT: PodEventKind.STOPPED,
    cri.CONTAINER_DELETED_EVENT: PodEventKind.DELETED,
}


class PodEvent(Struct, frozen=True):
    """One event. `container_id`: of a container or of the sandbox; `status` has only that sandbox
    and its containers."""

    kind: PodEventKind
    container_id: str
    created_at_ns: int
    status: RuntimePodStatus


class PodEventReader:
    """Opens streams of events. `own_directories`: as in `pod_reader.PodReader`."""

    def __init__(self, client: CriClient, own_directories: tuple[str, ...] = ()) -> None:
        self._client = client
        self._own_directories = own_directories

    async def events(self) -> AsyncGenerator[PodEvent, None]:
        """The events from now on, until the runtime ends the stream. Raises `CriCallError` if the
        stream cannot be opened or breaks."""
        async with aclosing(self._client.container_events()) as messages:
            async for message in messages:
                try:
                    event = pod_event(message, self._own_directories)
                except ValueError as error:
                    log.warning("an event of the runtime is ignored: %s", error)
                    continue
                if event is not None:
                    yield event


def pod_event(message: Any, own_directories: tuple[str, ...] = ()) -> PodEvent | None:
    """The event of a message; None if it has no sandbox or an unknown kind. Raises `ValueError` for
    a status that lacks a required field (CRI-008)."""
    kind = KINDS.get(message.container_event_type)
    sandbox = message.pod_sandbox_status
    if kind is None or not sandbox.HasField("metadata"):
        return None
    record = convert.sandbox_record(sandbox)
    containers = [convert.container_record(c, record.id) for c in message.containers_statuses]
    records = [replace(c, message=termination_message(c, own_directories)) for c in containers]
    records.sort(key=lambda c: (-c.created_at_ns, c.id))
    status = RuntimePodStatus(
        uid=sandbox.metadata.uid,
        name=sandbox.metadata.name,
        namespace=sandbox.metadata.namespace,
        ips=pod_ips([record]),
        sandboxes=(record,),
        containers=tuple(records),
    )
    return PodEvent(kind, message.container_id, message.created_at, status)
