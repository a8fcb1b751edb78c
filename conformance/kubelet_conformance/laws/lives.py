"""Lives of sandboxes and containers, as the kubelet's calls and their answers tell them. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from kubecri.v1 import api_pb2 as cri
from msgspec import Struct, field

from kubelet_conformance.laws.history import History

GONE: Final = "CANCELLED"
"""The code of calls that nobody waits for any more."""


class Container(Struct):
    """One instance of a container. Times are of the clock of the run; None: not known."""

    id: str
    uid: str
    """Of its pod."""
    pod: str
    name: str
    attempt: int
    sandbox: str
    asked_s: float
    """When the kubelet asked to create it."""
    start_asked_s: float | None = None
    started_s: float | None = None
    """When the runtime answered that it has started it."""
    start_failed: bool = False
    """Whether the kubelet was told that it could not be started, or was told nothing."""
    answer_lost_s: float | None = None
    """When a fault took the answer to that: it may run, and the next list says so."""
    told_started_s: float | None = None
    """When its status first told that it was started: who had asked for that may be gone."""
    over_s: float | None = None
    """From when on the kubelet could know that it runs no more."""
    exit_code: int | None = None
    """As the runtime told it last."""
    reason: str = ""
    began_ns: int = 0
    finished_ns: int = 0
    stops: list[Any] = field(default_factory=list)
    """The calls of StopContainer."""
    removed_s: float | None = None
    """When its removal was answered, or was broken off: it may be gone."""

    @property
    def known_started_s(self) -> float | None:
        """From when on a kubelet could know that it was started, by whatever answer; None: no
        answer has told so."""
        told_s = (self.started_s, self.answer_lost_s, self.told_started_s)
        return min((at_s for at_s in told_s if at_s is not None), default=None)


class Sandbox(Struct):
    """One sandbox."""

    id: str
    uid: str
    pod: str
    namespace: str
    attempt: int
    source: str
    """Where the pod is from: `api`, `file`, `http`; "" if that is not told."""
    asked_s: float
    made_s: float
    over_s: float | None = None
    """From when on the kubelet could know that it is not ready any more."""
    removed_s: float | None = None


class Lives(Struct):
    """All of them, by their IDs, in order of creation."""

    containers: dict[str, Container] = field(default_factory=dict)
    sandboxes: dict[str, Sandbox] = field(default_factory=dict)
    addresses: dict[str, set[str]] = field(default_factory=dict)
    """UID of a pod -> all addresses that the runtime told of its sandboxes."""

    def of_pod(self, uid: str) -> dict[str, list[Container]]:
        """The containers of a pod, by name."""
        named: dict[str, list[Container]] = {}
        for one in self.containers.values():
            if one.uid == uid:
                named.setdefault(one.name, []).append(one)
        return named

    def has_lost(self, uid: str) -> bool:
        """Whether a sandbox of the pod is over."""
        return any(box.uid == uid and box.over_s is not None for box in self.sandboxes.values())


def lives_of(history: History) -> Lives:
    """The lives that the calls tell."""
    lives = Lives()
    for call in history.calls:
        take = _TAKE.get(call.method)
        if take is not None and call.ended_s is not None:
            take(lives, call)
    return lives


def _ran_sandbox(lives: Lives, call: Any) -> None:
    if call.error is not None:
        return
    config = call.request.config
    lives.sandboxes[call.response.pod_sandbox_id] = Sandbox(
        call.response.pod_sandbox_id,
        uid=config.metadata.uid,
        pod=config.metadata.name,
        namespace=config.metadata.namespace,
        attempt=config.metadata.attempt,
        source=config.annotations.get("kubernetes.io/config.source", ""),
        asked_s=call.started_s,
        made_s=call.ended_s,
    )


def _stopped_sandbox(lives: Lives, call: Any) -> None:
    _sandbox_over(lives, call.request.pod_sandbox_id, call)


def _sandbox_over(lives: Lives, sandbox_id: str, call: Any) -> None:
    if call.error is not None and call.error[0] != "NOT_FOUND":
        return
    box = lives.sandboxes.get(sandbox_id)
    if box is not None and box.over_s is None:
        box.over_s = call.ended_s
    for one in lives.containers.values():
        if one.sandbox == sandbox_id and one.over_s is None:
            one.over_s = call.ended_s


def _removed_sandbox(lives: Lives, call: Any) -> None:
    _sandbox_over(lives, call.request.pod_sandbox_id, call)
    box = lives.sandboxes.get(call.request.pod_sandbox_id)
    if box is not None and _may_be_done(call):
        box.removed_s = call.ended_s


def _sandbox_status(lives: Lives, call: Any) -> None:
    if call.error is not None:
        return
    status = call.response.status
    if status.network.ip:
        told = lives.addresses.setdefault(status.metadata.uid, set())
        told.update((status.network.ip, *(each.ip for each in status.network.additional_ips)))
    box = lives.sandboxes.get(call.request.pod_sandbox_id)
    if box is not None and status.state != cri.SANDBOX_READY and box.over_s is None:
        box.over_s = call.ended_s


def _created(lives: Lives, call: Any) -> None:
    if call.error is not None:
        return
    metadata = call.request.config.metadata
    sandbox = call.request.sandbox_config.metadata
    lives.containers[call.response.container_id] = Container(
        call.response.container_id,
        uid=sandbox.uid,
        pod=sandbox.name,
        name=metadata.name,
        attempt=metadata.attempt,
        sandbox=call.request.pod_sandbox_id,
        asked_s=call.started_s,
    )


def _started(lives: Lives, call: Any) -> None:
    one = lives.containers.get(call.request.container_id)
    if one is None:
        return
    one.start_asked_s = call.started_s
    if call.error is None:
        one.started_s = call.ended_s
    else:
        one.start_failed = True
        one.answer_lost_s = call.ended_s if call.disturbed else None


def _stopped(lives: Lives, call: Any) -> None:
    one = lives.containers.get(call.request.container_id)
    if one is None:
        return
    one.stops.append(call)
    if one.over_s is None and (call.error is None or call.error[0] == "NOT_FOUND"):
        one.over_s = call.ended_s


def _removed(lives: Lives, call: Any) -> None:
    one = lives.containers.get(call.request.container_id)
    if one is not None and _may_be_done(call):
        one.removed_s = call.ended_s
        one.over_s = call.ended_s if one.over_s is None else one.over_s


def _may_be_done(call: Any) -> bool:
    """Whether a call has done what it was for, or may have: a fault may have taken its answer, or
    the kubelet died that waited for it."""
    return call.error is None or call.disturbed or call.error[0] == GONE


def _container_status(lives: Lives, call: Any) -> None:
    one = lives.containers.get(call.request.container_id)
    if one is None:
        return
    if call.error is not None:
        if call.error[0] == "NOT_FOUND" and one.over_s is None:
            one.over_s = call.ended_s
        return
    status = call.response.status
    one.began_ns = status.started_at
    if status.started_at and one.told_started_s is None:
        one.told_started_s = call.ended_s
    if status.state == cri.CONTAINER_EXITED:
        one.over_s = call.ended_s if one.over_s is None else one.over_s
        one.exit_code, one.finished_ns = status.exit_code, status.finished_at
        one.reason = status.reason


_TAKE: Final[Mapping[str, Callable[[Lives, Any], None]]] = {
    "RunPodSandbox": _ran_sandbox,
    "StopPodSandbox": _stopped_sandbox,
    "RemovePodSandbox": _removed_sandbox,
    "PodSandboxStatus": _sandbox_status,
    "CreateContainer": _created,
    "StartContainer": _started,
    "StopContainer": _stopped,
    "RemoveContainer": _removed,
    "ContainerStatus": _container_status,
}
"""What is learnt of which call."""
