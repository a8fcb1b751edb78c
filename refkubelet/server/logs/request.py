"""What a request for logs asks for, and which container has them. Pure.

Rules: SRV-020, SRV-021, SRV-022.
Upstream: pkg/kubelet/server/server.go: getContainerLogs; pkg/apis/core/v1/validation:
ValidatePodLogOptions; pkg/kubelet/kubelet_pods.go: validateContainerLogStatus.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Final, TypeVar

from msgspec import Struct

from refkubelet.model.objects import ContainerStatus, PodStatus
from refkubelet.server.common.exchange import Answer, Request, text
from simclock.clock import EPOCH

T = TypeVar("T")
ALL: Final = "All"
STREAMS: Final = (ALL, "Stdout", "Stderr")
SPLIT_STREAMS: Final = "PodLogsQuerySplitStreams"
_INTEGER: Final = re.compile(r"[+-]?[0-9]+\Z")
_PULLS: Final = {
    "ErrImagePull": "image can't be pulled",
    "ImagePullBackOff": "trying and failing to pull image",
}


class LogOptions(Struct, frozen=True):
    """What is wanted of a log; None: no bound."""

    follow: bool = False
    previous: bool = False
    timestamps: bool = False
    tail_lines: int | None = None
    limit_bytes: int | None = None
    since_seconds: int | None = None
    since_time: datetime | None = None
    stream: str | None = None


class LogError(Exception):
    """There is no log to show; the text says why."""


def log_options(request: Request) -> LogOptions | Answer:
    """The options of a request; an answer if they are none (SRV-021)."""
    try:
        options = LogOptions(
            follow=_truth(request, "follow"),
            previous=_truth(request, "previous"),
            timestamps=_truth(request, "timestamps"),
            tail_lines=_tail(request),
            limit_bytes=_given(request, "limitBytes", _integer),
            since_seconds=_given(request, "sinceSeconds", _integer),
            since_time=_given(request, "sinceTime", _time),
            stream=_given(request, "stream", str),
        )
    except ValueError:
        return text('{"message": "Unable to decode query."}', 400)
    if any(_mistakes(options)):
        return text('{"message": "Invalid request."}', 422)
    return options


def stream_refused(options: LogOptions, *, split_streams: bool) -> Answer | None:
    """The answer to a stream that is asked for without the gate; None: there is nothing wrong.
    Looked at after pod and container were found."""
    if split_streams or options.stream in (None, ALL):
        return None
    words = (
        f'unable to return the given log stream: "{options.stream}". '
        f"Please enable {SPLIT_STREAMS} feature gate in kubelet"
    )
    return text(words, 400)


def _mistakes(options: LogOptions) -> Iterator[bool]:
    yield options.tail_lines is not None and options.tail_lines < 0
    yield options.limit_bytes is not None and options.limit_bytes < 1
    yield options.since_seconds is not None and options.since_time is not None
    yield options.since_seconds is not None and options.since_seconds < 1
    if options.stream is not None:
        yield options.stream not in STREAMS
        yield options.stream != ALL and options.tail_lines is not None


def _given(request: Request, name: str, read: Callable[[str], T]) -> T | None:
    """The parameter's value; None: it is not there. Raises ValueError."""
    return read(request.first(name)) if request.every(name) else None


def _tail(request: Request) -> int | None:
    """tailLines, or its old name `tail`, of which `all` means no bound. Raises ValueError."""
    if not (tail := request.first("tail")):
        return _given(request, "tailLines", _integer)
    return None if tail == "all" else _integer(tail)


def _truth(request: Request, name: str) -> bool:
    """Everything that is there is true, also an empty text, but for `0` and `false`."""
    values = request.every(name)
    return bool(values) and values[0] != "0" and values[0].lower() != "false"


def _integer(value: str) -> int:
    if not _INTEGER.match(value) or not -(1 << 63) <= (number := int(value)) < 1 << 63:
        raise ValueError(value)
    return number


def _time(value: str) -> datetime:
    if value in ("", "null"):
        return EPOCH
    if "T" not in value or len(value) < len("2006-01-02T15:04:05Z"):
        raise ValueError(value)
    time = datetime.fromisoformat(value)
    if time.tzinfo is None:
        raise ValueError(value)
    return time


def container_with_logs(pod: str, status: PodStatus, container: str, *, previous: bool) -> str:
    """The ID of the container whose log is wanted, as statuses have it (`containerd://ID`). Raises
    `LogError`."""
    container_status = next((s for s in _statuses(status) if s.name == container), None)
    where = f'container "{container}" in pod "{pod}"'
    if container_status is None:
        raise LogError(f"{where} is not available")
    state = container_status.state
    before = container_status.lastState.terminated if container_status.lastState else None
    last = before.containerID if before is not None else None
    if previous:
        if not last:
            raise LogError(f"previous terminated {where} not found")
        return last
    if state is not None and state.running is not None:
        return container_status.containerID or ""
    ended = state.terminated if state is not None else None
    if ended is not None or before is not None:
        container_id = (ended.containerID if ended is not None else None) or last
        if not container_id:
            raise LogError(f"{where} is terminated")
        return container_id
    raise LogError(f"{where} is waiting to start{_why_waiting(container_status)}")


def _why_waiting(found: ContainerStatus) -> str:
    if found.state is None or found.state.waiting is None:
        return " - no logs yet"
    reason = found.state.waiting.reason or ""
    return f": {_PULLS.get(reason, reason)}"


def _statuses(status: PodStatus) -> Iterator[ContainerStatus]:
    yield from status.containerStatuses or ()
    yield from status.initContainerStatuses or ()
    yield from status.ephemeralContainerStatuses or ()
