"""List answers as records, converted only when they changed.

A kubelet lists everything every second, and nearly every answer is the one before. An answer with
the same bytes gives the very same tuple again, so the caller can tell by identity that nothing
changed; and in a list that did change, the rows that did not are the records of last time. What
must never happen here: an answer is taken for another one; memory grows with the pods that come and
go (only lists over all pods are kept, and of their rows those of the last answer).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, Generic, TypeVar

from kubecri.v1 import api_pb2 as cri

from refkubelet.cri.labels import POD_UID

Message = Any
T = TypeVar("T")
SLICE: Final = 500
"""So many rows are converted in one piece, some milliseconds."""


class Listings(Generic[T]):
    """The last answers of one list method: messages of that kind, with rows in that field, of
    which `record` converts one."""

    def __init__(self, kind: type[Message], rows: str, record: Callable[[Message], T]) -> None:
        self._kind = kind
        self._field = rows
        self._record = record
        self._last: dict[bool, tuple[bytes, tuple[T, ...]]] = {}
        self._rows: dict[bool, dict[bytes, T]] = {}

    async def records(self, answer: bytes, *, alive_only: bool) -> tuple[T, ...]:
        """The rows of a list over all pods, given as bytes; the tuple of last time if the answer is
        the same. Of a long list others have their turn between the slices."""
        last = self._last.get(alive_only)
        if last is not None and last[0] == answer:
            return last[1]
        records = await self._convert_new(answer, alive_only)
        self._last[alive_only] = (answer, records)
        return records

    async def _convert_new(self, answer: bytes, alive_only: bool) -> tuple[T, ...]:
        """As `convert`, with the records that are known already."""
        known_records, rows = self._rows.get(alive_only, {}), {}
        records = []
        for item in getattr(self._kind.FromString(answer), self._field):
            data = item.SerializeToString()
            record = known_records.get(data)
            if record is None:
                record = self._record(item)
            rows[data] = record
            records.append(record)
            if len(records) % SLICE == 0:
                await asyncio.sleep(0)
        self._rows[alive_only] = rows
        return tuple(records)

    def convert(self, answer: Message) -> tuple[T, ...]:
        """The rows of any answer, in the runtime's order."""
        return tuple(self._record(item) for item in getattr(answer, self._field))


@lru_cache(maxsize=1024)
def sandbox_list_request(uid: str, ready_only: bool) -> Message:
    """ListPodSandbox over all pods (`uid` "") or one. Shared: it must not be changed."""
    filter_ = cri.PodSandboxFilter()
    if uid:
        filter_.label_selector[POD_UID] = uid
    if ready_only:
        filter_.state.state = cri.SANDBOX_READY
    return cri.ListPodSandboxRequest(filter=filter_)


@lru_cache(maxsize=1024)
def container_list_request(uid: str, running_only: bool) -> Message:
    """ListContainers over all pods (`uid` "") or one. Shared: it must not be changed."""
    filter_ = cri.ContainerFilter()
    if uid:
        filter_.label_selector[POD_UID] = uid
    if running_only:
        filter_.state.state = cri.CONTAINER_RUNNING
    return cri.ListContainersRequest(filter=filter_)
