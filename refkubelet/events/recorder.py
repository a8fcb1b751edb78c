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
