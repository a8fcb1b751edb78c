"""Clients of the ports that containers serve, as entries of a trace: probes over the network with
their results, and hooks over HTTP. Pure.

What a kubelet made of an answer is not asked here: the entry says what the container answered, and
whether a probe that gets this has failed (PROBE-068, PROBE-071, PROBE-073).
"""

from __future__ import annotations

from typing import Any, Final

from kubelet_conformance.traces.entries import Entry

HOOK_AGENT: Final = "kube-lifecycle/"
"""How the User-Agent of a hook's request begins (LIFE-142); that of a probe is another."""
_GOOD: Final = range(200, 400)


def visit_entry(visit: Any, start_s: float) -> Entry:
    """The entry of a `Visit` of fakecri; `start_s`: when the case began, on the same clock."""
    at_s = round(visit.time_s - start_s, 4)
    until_s = None if visit.ended_s is None else round(visit.ended_s - start_s, 4)
    hook = any(agent.startswith(HOOK_AGENT) for agent in visit.header("User-Agent"))
    destination = f"port {visit.port} {visit.path or visit.service}".strip()
    return Entry(
        at_s=at_s,
        kind="hook" if hook else "probe",
        what=visit.protocol,
        pod=visit.pod,
        container=visit.container,
        until_s=until_s,
        error=_failure(visit),
        told=f"{destination} -> {visit.answer}" if visit.answer else destination,
        detail={"headers": [list(pair) for pair in visit.headers]} if visit.headers else {},
    )


def _failure(visit: Any) -> str:
    """Why a probe with this answer has failed; "" if it has not, or is not answered yet."""
    if not visit.answer:
        return "" if visit.ended_s is None else "the client left before there was an answer"
    match visit.protocol:
        case "http" | "https":
            code = visit.answer
            if code.isdigit():
                return "" if int(code) in _GOOD else f"HTTP {code}"
        case "grpc" if visit.answer == "SERVING":
            return ""
        case "tcp" if visit.answer == "open":
            return ""
    return str(visit.answer)
