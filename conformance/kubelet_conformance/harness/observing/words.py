"""CRI calls and pod statuses as text, for reports and expectations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kubelet_conformance.traces.calls import READS


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
    timeout = f" timeout={call.request.timeout}" if call.method == "StopContainer" else ""
    return f"{call.started_s - start_s:9.3f} +{took} {call.method} {whom}{timeout}{ending}"


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
    """A status on one line: phase, reason, and each container's state and restart count."""
    parts = [f"{status.get('phase')} {status.get('reason') or ''}".strip()]
    for kind in ("initContainerStatuses", "containerStatuses"):
        for entry in status.get(kind) or []:
            ready = " ready" if entry.get("ready") else ""
            state = state_name(entry.get("state") or {})
            parts.append(f"{entry['name']}={state}{ready} restarts={entry.get('restartCount', 0)}")
    return "; ".join(parts)
