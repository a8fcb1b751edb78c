"""CRI calls and pod statuses as text, for reports and expectations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from kubelet_conformance.traces.calls import READS

LONGEST_COMMAND: Final = 120


def is_write(call: Any) -> bool:
    """Whether the call changes something in the runtime (an ExecSync counts)."""
    return call.method not in READS


def write_name(call: Any) -> str:
    """`StartContainer main/1`: method, container and attempt; `RunPodSandbox/0` for a sandbox.

    >>> from types import SimpleNamespace as S
    >>> write_name(S(method="StartContainer", container="main", attempt=1))
    'StartContainer main/1'
    """
    attempt = "" if call.attempt is None else f"/{call.attempt}"
    whom = f" {call.container}" if call.container else ""
    return f"{call.method}{whom}{attempt}"


def call_line(call: Any, start_s: float) -> str:
    """One call on one line: when, how long, method, pod and container, and how it ended."""
    took = "..." if call.ended_s is None else f"{call.ended_s - call.started_s:.3f}"
    whom = "/".join(str(p) for p in (call.pod, call.container, call.attempt) if p not in (None, ""))
    ending = f" -> {call.error[0]}: {call.error[1]}" if call.error else ""
    asked = ""
    if call.method == "StopContainer":
        asked = f" timeout={call.request.timeout}"
    elif call.method == "ExecSync":
        asked = f": {_command(call.request.cmd)}"
        if call.succeeded and call.response is not None:
            ending = f" -> exit code {call.response.exit_code}"
    return f"{call.started_s - start_s:9.3f} +{took} {call.method} {whom}{asked}{ending}"


def _command(words: Iterable[str]) -> str:
    """A command on one line, cut."""
    line = " ".join(" ".join(words).split())
    return line if len(line) <= LONGEST_COMMAND else f"{line[:LONGEST_COMMAND]}..."


def event_line(event: Mapping[str, Any], at_s: float | None) -> str:
    """One event on one line: when it was last reported (None: it is not known), type and reason,
    what it is about, and how often."""
    about = event["involvedObject"]["name"]
    count = f" ({event['count']} times)" if int(event.get("count") or 1) > 1 else ""
    when = " " * 9 if at_s is None else f"{at_s:9.3f}"
    message = " ".join(event["message"].split())
    return f"{when} {event['type']} {event['reason']} {about}: {message}{count}"


def state_name(state: Mapping[str, Any]) -> str:
    """`running`, `waiting(<reason>)`, `terminated(<exit code>)`; "" without a state.

    >>> state_name({"terminated": {"exitCode": 3}})
    'terminated(3)'
    """
    if "running" in state:
        return "running"
    if "terminated" in state:
        return f"terminated({state['terminated'].get('exitCode', 0)})"
    if "waiting" in state:
        return f"waiting({state['waiting'].get('reason', '')})"
    return ""


def describe(status: Mapping[str, Any]) -> str:
    """A status on one line: phase, reason, and each container's state, whether it is ready or else
    has started, and restart count."""
    parts = [f"{status.get('phase')} {status.get('reason') or ''}".strip()]
    for kind in ("initContainerStatuses", "containerStatuses"):
        for entry in status.get(kind) or []:
            state = f"{state_name(entry.get('state') or {})}{_progress(entry)}"
            parts.append(f"{entry['name']}={state} restarts={entry.get('restartCount', 0)}")
    return "; ".join(parts)


def _progress(entry: Mapping[str, Any]) -> str:
    """How far a container has come: ready, or else started, or not even that."""
    if entry.get("ready"):
        return " ready"
    if "running" not in (entry.get("state") or {}) or "started" not in entry:
        return ""
    return " started" if entry["started"] else " not started"
