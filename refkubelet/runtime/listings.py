"""List answers as records, converted only when they changed.

A kubelet lists everything every second, and nearly every answer is the one before. An answer with
the same bytes gives the very same tuple again, so who asks can tell by identity that nothing
changed. What must never happen here: an answer is taken for another one; memory grows with the
pods that come and go (only lists over all pods are kept).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Generic, TypeVar

from criapi.v1 import api_pb2 as cri

from refkubelet.runtime.labels import POD_UID

Message = Any
T = TypeVar("T")


class Listings(Generic[T]):
    """The last answers of one list method. `items` picks the rows of an answer, `record` converts
    one of them."""

    def __init__(
        self, items: Callable[[Message], list[Message]], record: Callable[[Message], T]
    ) -> None:
        self._items = items
        self._record = record
        self._last: dict[bool, tuple[bytes, tuple[T, ...]]] = {}

    def records(self, answer: Message, *, alive_only: bool) -> tuple[T, ...]:
        """The rows of a list over all pods; the tuple of last time if the answer is the same."""
        data = answer.SerializeToString()
        last = self._last.get(alive_only)
        if last is not None and last[0] == data:
            return last[1]
        records = self.convert(answer)
        self._last[alive_only] = (data, records)
        return records

    def convert(self, answer: Message) -> tuple[T, ...]:
        """The rows of any answer, in the runtime's order."""
        return tuple(self._record(item) for item in self._items(answer))


@lru_cache(maxsize=1024)
def sandbox_list_request(uid: str, ready_only: bool) -> Message:
    """ListPodSandbox over all pods (`uid` "") or one. Shared: nobody changes a request."""
    wanted = cri.PodSandboxFilter()
    if uid:
        wanted.label_selector[POD_UID] = uid
    if ready_only:
        wanted.state.state = cri.SANDBOX_READY
    return cri.ListPodSandboxRequest(filter=wanted)


@lru_cache(maxsize=1024)
def container_list_request(uid: str, running_only: bool) -> Message:
    """ListContainers over all pods (`uid` "") or one. Shared: nobody changes a request."""
    wanted = cri.ContainerFilter()
    if uid:
        wanted.label_selector[POD_UID] = uid
    if running_only:
        wanted.state.state = cri.CONTAINER_RUNNING
    return cri.ListContainersRequest(filter=wanted)
