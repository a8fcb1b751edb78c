"""Events about one container of a pod: the field path that names it (LIFE-240)."""

from __future__ import annotations

from refkubelet.events.recorder import EventRecorder, EventType
from refkubelet.model.objects import Pod


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
