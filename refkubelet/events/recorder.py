"""Events: what the kubelet tells people about pods and the node (texts: LIFE-240..245)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, Protocol

from refkubelet.model.by_identity import by_identity
from refkubelet.model.objects import Pod

EventType = Literal["Normal", "Warning"]


class EventRecorder(Protocol):
    """Takes events. It never waits: they are sent by another task."""

    def pod_event(
        self,
        pod: Pod,
        event_type: EventType,
        reason: str,
        message: str,
        *,
        field_path: str = "",
        annotations: Mapping[str, str] | None = None,
    ) -> None:
        """An event about a pod, or a container of it (`field_path`: `spec.containers{name}`)."""

    def node_event(self, event_type: EventType, reason: str, message: str) -> None:
        """An event about this node (NODE-070)."""


def field_path(pod: Pod, container_name: str) -> str:
    """`spec.containers{c}`, `spec.initContainers{c}` or `spec.ephemeralContainers{c}`; "" for a
    container that the spec does not have."""
    kind = _kinds(pod).get(container_name)
    return f"spec.{kind}{{{container_name}}}" if kind is not None else ""


@by_identity
def _kinds(pod: Pod) -> dict[str, str]:
    """The list of the spec that has a container, by its name; the first one of several."""
    spec, kinds = pod.spec, dict[str, str]()
    for kind, containers in (
        ("containers", spec.containers),
        ("initContainers", spec.initContainers),
        ("ephemeralContainers", spec.ephemeralContainers),
    ):
        for container in containers or ():
            kinds.setdefault(container.name, kind)
    return kinds


class ContainerEvents:
    """Records events about containers. A pod that is known only from the runtime (None) gets
    none."""

    def __init__(self, recorder: EventRecorder) -> None:
        self._recorder = recorder

    def normal(self, pod: Pod | None, container_name: str, reason: str, message: str) -> None:
        """An event of type Normal."""
        self._record("Normal", pod, container_name, reason=reason, message=message)

    def warning(self, pod: Pod | None, container_name: str, reason: str, message: str) -> None:
        """An event of type Warning."""
        self._record("Warning", pod, container_name, reason=reason, message=message)

    def _record(
        self, kind: EventType, pod: Pod | None, container_name: str, *, reason: str, message: str
    ) -> None:
        if pod is not None:
            path = field_path(pod, container_name)
            self._recorder.pod_event(pod, kind, reason, message, field_path=path)
