"""What a fake runtime answers, undisturbed: every CRI method, from request to answer.

Most calls take no time and are a function of the core each (`HANDLERS`). What must never happen
here: a call looks at a core that is not up to date, or its news wait for the next call.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from functools import cache
from typing import Any, Final

from google.protobuf.message import Message
from kubecri.v1 import api_pb2 as pb
from msgspec import Struct

from fakecri.calls import containers, images, lists, metrics, runtime, sandboxes, stats
from fakecri.calls.checkpoint import checkpoint
from fakecri.calls.containers import StartsAndStops
from fakecri.calls.events import EventStreams
from fakecri.calls.exec import ExecSync, check_streams
from fakecri.calls.images import Pulls
from fakecri.clockwork.clockwork import Clockwork
from fakecri.core.runtime import Core
from fakecri.cri.list_streams import STREAMS
from fakecri.cri.services import METHODS, require_method
from fakecri.errors import CriError

HANDLERS: Final[dict[str, Callable[[Core, Any], Message]]] = {
    **runtime.HANDLERS,
    **lists.HANDLERS,
    **sandboxes.HANDLERS,
    **containers.HANDLERS,
    **stats.HANDLERS,
    **metrics.HANDLERS,
    **images.HANDLERS,
    "CheckpointContainer": checkpoint,
}
"""The calls that take no time."""
READINGS: Final = frozenset(
    ("Version", "Status", "RuntimeConfig", "PodSandboxStatus", "ContainerStatus", *lists.HANDLERS)
)
"""Those of them that change nothing and are asked for often."""
_IN_BYTES: Final[Mapping[str, Callable[[Core, Any], bytes]]] = {
    "Status": runtime.status,
    **lists.IN_BYTES,
}


class Outage(Struct, eq=False):
    """Whether the runtime is down, and since when."""

    error: CriError | None = None
    """What calls fail with; None: it is up."""
    since_ns: int = 0


class Answers:
    """The calls of a fake runtime. `stream_url` answers Exec, Attach and PortForward."""

    in_bytes: Mapping[str, type[Message]] = {
        method: METHODS[method].response_type for method in _IN_BYTES
    }

    def __init__(
        self,
        core: Core,
        clockwork: Clockwork,
        outage: Outage,
        *,
        events: EventStreams,
        starts_and_stops: StartsAndStops,
        pulls: Pulls,
        exec_sync: ExecSync,
        stream_url: Callable[[Message], Awaitable[Message]],
    ) -> None:
        self._core = core
        self._clockwork = clockwork
        self._outage = outage
        self._events = events
        self._stream_url = stream_url
        self.list_batch_items = lists.BATCH_ITEMS
        """Items a message of a streaming list carries at most."""
        self._at_once: dict[str, Callable[[Any], Message | None]] = {
            "StartContainer": starts_and_stops.start_at_once,
            "StopContainer": starts_and_stops.stop_at_once,
        }
        self._slow: dict[str, Callable[[Any], Awaitable[Message]]] = {
            "StopContainer": starts_and_stops.stop_container,
            "StartContainer": starts_and_stops.start_container,
            "ExecSync": exec_sync.answer,
            "PullImage": pulls.pull_image,
            "Exec": self._checked_url,
            "Attach": self._checked_url,
            "PortForward": self._checked_url,
        }

    def call_now(self, method: str, request: Message) -> Message | None:
        """The answer of a call that takes no time; None: this one may take some."""
        handler = HANDLERS.get(method)
        if handler is None and method not in self._at_once:
            return None
        if self._outage.error is not None:
            raise self._outage.error
        self._clockwork.pump()
        if handler is not None and method in READINGS:
            return handler(self._core, request)
        try:
            if handler is not None:
                return handler(self._core, request)
            return self._at_once[method](request)
        finally:
            self._clockwork.pump()

    async def call_bytes(self, method: str, request: Message, timeout_s: float | None) -> bytes:
        """The answer of one of `in_bytes`, the very same bytes while nothing in it changes."""
        if self._outage.error is not None:
            raise self._outage.error
        self._clockwork.pump()
        return _IN_BYTES[method](self._core, request)

    async def call(self, method: str, request: Message, timeout_s: float | None) -> Message:
        """The answer of any unary call."""
        answer = self.call_now(method, request)
        if answer is not None:
            return answer
        if self._outage.error is not None:
            raise self._outage.error
        if method not in self._slow:
            raise _not_here(method)
        self._clockwork.pump()
        try:
            return await self._slow[method](request)
        finally:
            self._clockwork.pump()

    async def stream(
        self, method: str, request: Message, timeout_s: float | None
    ) -> AsyncIterator[Message]:
        """The answers of a streaming call."""
        if self._outage.error is not None:
            raise self._outage.error
        if method == "GetContainerEvents":
            async for event in self._events.subscribe():
                yield event
            return
        if method not in STREAMS:
            raise _not_here(method)
        self._clockwork.pump()
        for batch in lists.batches(STREAMS[method], request, self._listed, self.list_batch_items):
            yield batch

    def _listed(self, method: str, request: Message) -> Message:
        return HANDLERS[method](self._core, request)

    async def _checked_url(
        self, request: pb.ExecRequest | pb.AttachRequest | pb.PortForwardRequest
    ) -> Message:
        """CRI-115, CRI-116: where the caller gets its streams."""
        check_streams(self._core, request)
        return await self._stream_url(request)


@cache
def _not_here(method: str) -> ValueError:
    """For a method that CRI does not have, or that answers in the other way."""
    require_method(method)
    way = "a stream: use `stream`" if METHODS[method].streams else "one message: use `call`"
    return ValueError(f"{method} answers with {way}")
