"""Recorded runs and our runs in one form: the calls that change something, with key arguments.

Left out: lists and status readings (their number depends on the implementation). Kept: what was
called in which order on which object, attempts, time-outs, commands. Ids become names. Containers
of a pod are stopped at the same time, so calls that stop and start within 5 ms have no order.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from google.protobuf.json_format import MessageToDict

GOLDEN = Path(__file__).parent.parent / "data" / "golden"
KEPT = (
    "RunPodSandbox",
    "StopPodSandbox",
    "RemovePodSandbox",
    "ImageStatus",
    "PullImage",
    "CreateContainer",
    "StartContainer",
    "StopContainer",
    "RemoveContainer",
    "ExecSync",
)
TOGETHER = ("StopContainer", "ExecSync")


def recorded(scenario: str) -> list[str]:
    """The calls of a golden run, in order of arrival."""
    rows = []
    for line in (GOLDEN / scenario / "cri.jsonl").read_text().splitlines():
        row = json.loads(line)
        if row.get("method") in KEPT:
            rows.append(row)
    return normalised(
        Row(r["t_start"], r["method"], r.get("request") or {}, r.get("response") or {})
        for r in rows
    )


def observed(calls: Iterable[Any]) -> list[str]:
    """The calls a FakeCRI has seen, in order of arrival."""
    return normalised(
        Row(
            call.started_s,
            call.method,
            _as_json(call.request),
            _as_json(call.response) if call.response is not None else {},
        )
        for call in sorted(calls, key=lambda c: c.seq)
        if call.method in KEPT
    )


def _as_json(message: Any) -> dict[str, Any]:
    return MessageToDict(message, preserving_proto_field_name=True)


def until_stopped(lines: list[str]) -> list[str]:
    """Without what is removed at the very end: whether the next relist or the garbage collection
    does that depends on when housekeeping came (s01 and s02 show both)."""
    acts = ("StopContainer", "CreateContainer", "StartContainer")
    last = max(number for number, line in enumerate(lines) if line.startswith(acts))
    while last + 1 < len(lines) and lines[last + 1].startswith("StopPodSandbox"):
        last += 1
    return lines[: last + 1]


class Row(NamedTuple):
    """One call: start (s), method, request and response in their JSON form."""

    start_s: float
    method: str
    request: Mapping[str, Any]
    response: Mapping[str, Any]


def normalised(calls: Iterable[Row]) -> list[str]:
    """One line per call; repeated ImageStatus calls of one image count once."""
    names: dict[str, str] = {}
    lines: list[str] = []
    stops: list[tuple[float, str]] = []

    def flush() -> None:
        lines.extend(line for _, line in sorted(stops, key=lambda s: s[1]))
        stops.clear()

    for call in calls:
        line = f"{call.method} {_argument(call.method, call.request, names)}"
        _learn(call.method, call.request, call.response, names)
        if stops and (call.method not in TOGETHER or call.start_s - stops[0][0] > 0.005):
            flush()
        if call.method in TOGETHER:
            stops.append((call.start_s, line))
        elif not (call.method == "ImageStatus" and lines and lines[-1] == line):
            lines.append(line)
    flush()
    return lines


def _argument(method: str, request: Mapping[str, Any], names: Mapping[str, str]) -> str:
    config = request.get("config", {})
    meta = config.get("metadata", {})
    sandbox = _name(request.get("pod_sandbox_id", ""), names)
    container = _name(request.get("container_id", ""), names)
    match method:
        case "RunPodSandbox":
            return f"{meta['name']} attempt {meta.get('attempt', 0)}"
        case "CreateContainer":
            return f"{meta['name']} attempt {meta.get('attempt', 0)} in {sandbox}"
        case "StopContainer":
            return f"{container} timeout {request.get('timeout', 0)}"
        case "ExecSync":
            return f"{container} {request['cmd']} timeout {request.get('timeout', 0)}"
        case "ImageStatus" | "PullImage":
            return str(request["image"]["image"])
        case _:
            return container or sandbox


def _learn(
    method: str,
    request: Mapping[str, Any],
    response: Mapping[str, Any],
    names: dict[str, str],
) -> None:
    meta = request.get("config", {}).get("metadata", {})
    if method == "RunPodSandbox" and response:
        sandbox_id = response["pod_sandbox_id"]
        names[sandbox_id] = f"sandbox {meta['name']}/{meta.get('attempt', 0)}"
    elif method == "CreateContainer" and response:
        pod = _name(request["pod_sandbox_id"], names).removeprefix("sandbox ").partition("/")[0]
        names[response["container_id"]] = f"{pod}/{meta['name']}/{meta.get('attempt', 0)}"


def _name(object_id: str, names: Mapping[str, str]) -> str:
    return names.get(object_id, object_id)
