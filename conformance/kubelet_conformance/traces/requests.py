"""Requests to the API server, and pod statuses, as entries of a trace. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from kubelet_conformance.traces.entries import Entry

CHANGES: Final = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_POD_PATH: Final = re.compile(r"/pods/([^/]+)")
_FIELD: Final = re.compile(r"\{(.+)\}")
_HTTP_ERROR: Final = 300
STATUS_LISTS: Final = ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses")


def request_entry(
    *,
    method: str,
    path: str,
    body: Any,
    status: int,
    at_s: float,
    until_s: float | None,
    by_kubelet: bool = True,
) -> Entry | None:
    """The entry of a request that changes something; None of one that only reads.

    Events are entries of their own kind. `status`: of the answer; 0: there was none.
    """
    if method not in CHANGES:
        return None
    content = body if isinstance(body, Mapping) else {}
    error = "no answer" if not status else f"HTTP {status}" if status >= _HTTP_ERROR else ""
    if by_kubelet and "/events" in path and content.get("reason"):
        return event_entry(content, at_s, until_s, error)
    named = content.get("metadata") or {}
    pod = _POD_PATH.search(path)
    return Entry(
        at_s=at_s,
        kind="api" if by_kubelet else "user",
        what=f"{method} {path}",
        pod=pod[1] if pod else str(named.get("name", "")) if path.endswith("/pods") else "",
        until_s=until_s,
        error=error,
        told=_changed(content),
        detail=dict(content),
    )


def event_entry(event: Mapping[str, Any], at_s: float, until_s: float | None, error: str) -> Entry:
    """The entry of an event that was sent."""
    about = event.get("involvedObject") or {}
    container = _FIELD.search(str(about.get("fieldPath", "")))
    count = int(event.get("count") or 1)
    again = f" (x{count})" if count > 1 else ""
    return Entry(
        at_s=at_s,
        kind="event",
        what=str(event["reason"]),
        pod=str(about.get("name", "")) if about.get("kind") == "Pod" else "",
        container=container[1] if container else "",
        until_s=until_s,
        error=error,
        told=f"{event.get('type', '')}: {event.get('message', '')}{again}",
        detail=dict(event),
    )


def _changed(content: Mapping[str, Any]) -> str:
    """What a body is about: the names of its fields, and the phase in it."""
    status = content.get("status")
    if not isinstance(status, Mapping):
        return ", ".join(sorted(map(str, content)))
    phase = f" {status['phase']}" if status.get("phase") else ""
    return f"status{phase}: {', '.join(sorted(map(str, status)))}"


def status_entry(pod: str, status: Mapping[str, Any], at_s: float, told: str) -> Entry:
    """The entry of a pod status that is shown from then on; `told`: it in one line."""
    return Entry(
        at_s=at_s,
        kind="status",
        what=str(status.get("phase") or "no phase"),
        pod=pod,
        told=told,
        detail=dict(status),
    )
