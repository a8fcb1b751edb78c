"""Events: what the kubelet tells people about pods and the node (texts: LIFE-240..245)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, Protocol

from refkubelet.model.objects import Pod

EventType = Literal["Normal", "Warning"]


class EventRecorder(Protocol):
    """Takes events without waiting; sending them is somebody else's task."""

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
        ...

    def node_event(self, event_type: EventType, reason: str, message: str) -> None: ...


def field_path(pod: Pod, container_name: str) -> str:
    """`spec.containers{c}`, `spec.initContainers{c}` or `spec.ephemeralContainers{c}`; "" for a
    container that the spec does not have."""
    kinds = (
        ("containers", pod.spec.containers),
        ("initContainers", pod.spec.initContainers),
        ("ephemeralContainers", pod.spec.ephemeralContainers),
    )
    for kind, containers in kinds:
        if any(c.name == container_name for c in containers or []):
            return f"spec.{kind}{{{container_name}}}"
    return ""


class ContainerEvents:
    """Records events about containers; a pod known from the runtime only gets none."""

    def __init__(self, recorder: EventRecorder) -> None:
        self._recorder = recorder

    def normal(self, pod: Pod | None, container_name: str, reason: str, message: str) -> None:
        self._record(pod, container_name, "Normal", reason, message)

    def warning(self, pod: Pod | None, container_name: str, reason: str, message: str) -> None:
        self._record(pod, container_name, "Warning", reason, message)

    def _record(
        self, pod: Pod | None, container_name: str, kind: EventType, reason: str, message: str
    ) -> None:
        if pod is not None:
            path = field_path(pod, container_name)
            self._recorder.pod_event(pod, kind, reason, message, field_path=path)
