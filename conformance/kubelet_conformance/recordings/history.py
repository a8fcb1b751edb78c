"""From recorded calls to a history that laws are asked about. Pure.

What must never happen here: something that the recording does not show is taken for known.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import nan
from typing import Any, Final, Literal

from msgspec import Struct

from fakecri.recording.recorded import Exchange
from kubelet_conformance.laws.history import History, Planned
from kubelet_conformance.recordings.pods import RecordedPods
from kubelet_conformance.scenarios.learn.learning import kubelet_starts

Known = Literal["pods", "statuses", "configuration", "ends"]
"""What is known beside the calls: the pods as they were given, their statuses, the configuration of
the kubelet, and from calls alone what the kubelet knew of containers that ended (it may have been
told by events of the runtime instead)."""
EVENTS: Final = "GetContainerEvents"


class RecordedCall(Struct, frozen=True, kw_only=True):
    """A call as laws look at it."""

    method: str
    request: Any
    response: Any
    error: tuple[str, str] | None
    disturbed: bool
    started_s: float
    ended_s: float | None
    pod: str = ""
    uid: str = ""
    container: str = ""


class Recording(Struct, frozen=True, kw_only=True):
    """A recording."""

    history: History
    known: frozenset[Known]
    """What is known beside the calls."""


def recording_of(
    calls: Sequence[Exchange],
    *,
    evented: bool = False,
    pods: RecordedPods | None = None,
    config: Mapping[str, Any] | None = None,
    outside: bool = False,
) -> Recording:
    """The recording with these calls. `evented`: the kubelet listened to events of the runtime;
    `pods`, `config`: what is known of pods and of the kubelet's configuration, None: nothing;
    `outside`: others than the kubelet did something to the runtime meanwhile."""
    known: set[Known] = set()
    known |= set() if evented else {"ends"}
    known |= set() if pods is None else {"pods", "statuses"}
    known |= set() if config is None else {"configuration"}
    made = [_call(one) for one in calls]
    if evented:
        made.append(_listening(calls))
    history = History(
        start_s=0.0,  # as the recording counts
        end_s=max((one.end_s for one in calls), default=0.0),
        start_ns=_wall_ns(calls),
        config=config or {},
        calls=made,
        planned=list(_planned(calls, outside=outside)),
        pods={} if pods is None else pods.given,
        shown=() if pods is None else pods.shown,
    )
    return Recording(history=history, known=frozenset(known))


def _call(one: Exchange) -> RecordedCall:
    return RecordedCall(
        method=one.method,
        request=one.request,
        response=one.response,
        error=one.error,
        disturbed=one.disturbed,
        started_s=one.start_s,
        ended_s=one.end_s,
        pod=one.subject.pod,
        uid=one.subject.uid,
        container=one.subject.container,
    )


def _listening(calls: Sequence[Exchange]) -> RecordedCall:
    """The call of a kubelet that listens to events of the runtime; it goes on."""
    began_s = calls[-1].start_s if calls else 0.0
    return RecordedCall(
        method=EVENTS,
        request=None,
        response=None,
        error=None,
        disturbed=False,
        started_s=began_s,
        ended_s=None,
    )


def _wall_ns(calls: Iterable[Exchange]) -> int:
    """The wall clock at the begin of the recording, as the times say at which the runtime has
    started containers: none before it was asked to. 0: it has started none."""
    asked_ns: dict[str, int] = {}
    latest: list[int] = []
    for one in calls:
        if one.error is not None:
            continue
        if one.method == "StartContainer":
            asked_ns[one.request.container_id] = int(one.start_s * 1e9)
        elif one.method == "ContainerStatus" and one.request.container_id in asked_ns:
            began_ns = one.response.status.started_at
            latest += [began_ns - asked_ns[one.request.container_id]] if began_ns else []
    return min(latest, default=0)


def _planned(calls: Sequence[Exchange], *, outside: bool) -> Iterator[Planned]:
    """What happened to the node, as far as calls tell: rules of a proxy acted, a kubelet followed
    another one."""
    if outside:
        yield Planned(nan, "outside")
    for method in sorted({one.method for one in calls if one.disturbed}):
        yield Planned(0.0, "fault", method)
    for at_s in kubelet_starts(calls):
        if any(one.end_s < at_s for one in calls):
            yield Planned(at_s, "stop")
            yield Planned(at_s, "start")
