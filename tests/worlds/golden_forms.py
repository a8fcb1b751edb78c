"""The forms in which a recorded and a replayed run are compared, pod by pod.

Calls: those that change something, in order, with names instead of ids, attempts, time-outs and
commands. Statuses: every distinct one as a line of text, without times and addresses. Events:
reason, field and count in the order of their first sending. Nothing here reads files or runs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

Row = Mapping[str, Any]

KEPT: Final = (
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
    "UpdateContainerResources",
    "UpdatePodSandboxResources",
)
LIMITS: Final = (
    "cpu_period",
    "cpu_quota",
    "cpu_shares",
    "memory_limit_in_bytes",
    "oom_score_adj",
    "memory_swap_limit_in_bytes",
)
TOGETHER: Final = ("StopContainer", "ExecSync")
PROBE: Final = re.compile(r"^ExecSync .* timeout [1-9]\d*$")
TOGETHER_S: Final = 0.1
BESIDE_S: Final = 0.2
QUANTITY: Final = re.compile(r"\b(available: |was using )\d+\w+")
UID: Final = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f]{32}"
)


@dataclass(frozen=True, slots=True)
class Timed:
    """A line and when it was told (s)."""

    at_s: float
    line: str


def pod_name(name: str) -> str:
    """Static pods carry their node's name.

    >>> pod_name("default/one-golden"), pod_name("one")
    ('one', 'one')
    """
    return name.rpartition("/")[2].removesuffix("-golden")


# Calls


def calls_by_pod(rows: Iterable[Row]) -> dict[str, list[Timed]]:
    """The kept calls of each pod. Image look-ups name no pod: where several pods run they are told
    by image, and how often depends on chance (BACK-207), so that each counts once."""
    book = _Names()
    told: dict[str, list[Timed]] = {}
    kept = [row for row in rows if row["method"] in KEPT]
    pods = {
        pod_name(row["request"]["config"]["metadata"]["name"])
        for row in kept
        if row["method"] == "RunPodSandbox"
    }
    only = pods.pop() if len(pods) == 1 else None
    for row in kept:
        pod, words = book.tell(row)
        if row["method"] == "ImageStatus":
            pod = only or f"image {words}"
        told.setdefault(pod, []).append(Timed(row["t_start"], f"{row['method']} {words}"))
    return {pod: _in_order(_removals_first(lines)) for pod, lines in told.items()}


def _removals_first(lines: list[Timed]) -> list[Timed]:
    """Dead containers are removed beside the syncs of their pod: among the calls of one moment the
    removals are put first, sorted, and each once (two parts ask for those of init containers)."""
    ordered: list[Timed] = []
    for one in lines:
        at = len(ordered)
        if one.line.startswith("RemoveContainer"):
            while at and _gives_way(ordered[at - 1], one):
                at -= 1
            if at and ordered[at - 1].line == one.line:
                continue
        ordered.insert(at, one)
    return ordered


def _gives_way(earlier: Timed, removal: Timed) -> bool:
    if removal.at_s - earlier.at_s > BESIDE_S:
        return False
    if earlier.line.startswith("RemoveContainer"):
        return earlier.line > removal.line
    return earlier.line.startswith(("ImageStatus", "CreateContainer", "StartContainer"))


def _in_order(lines: list[Timed]) -> list[Timed]:
    """Stops and hooks that start together have no order; a repeated look-up counts once; of the
    probe runs between two other calls, each kind counts once."""
    ordered: list[Timed] = []
    for kind, group in groupby(_groups(lines), key=lambda pair: pair[0]):
        told = [line for _, line in group]
        if kind:
            told = sorted({line.line: line for line in told}.values(), key=lambda t: t.line)
        ordered += told
    return ordered


def _groups(lines: Iterable[Timed]) -> Iterator[tuple[str, Timed]]:
    """Lines with the same first part, not empty, have no order among them."""
    together_s = -TOGETHER_S
    last = ""
    for one in lines:
        if PROBE.search(one.line):
            yield "probes", one
        elif one.line.startswith(TOGETHER):
            if one.at_s - together_s > TOGETHER_S:
                together_s = one.at_s
            yield f"together {together_s}", one
        elif not (one.line.startswith("ImageStatus") and one.line == last):
            yield "", one
        last = one.line


class _Names:
    """Which pod and what name an id stands for."""

    def __init__(self) -> None:
        self._pods: dict[str, str] = {}
        self._names: dict[str, str] = {}

    def tell(self, row: Row) -> tuple[str, str]:
        """Pod and words of one call."""
        method, request = row["method"], row.get("request") or {}
        made = row.get("response") or {}
        if method in ("ImageStatus", "PullImage"):
            return self._image(request)
        if method == "RunPodSandbox":
            meta = request["config"]["metadata"]
            pod, words = pod_name(meta["name"]), f"attempt {meta.get('attempt', 0)}"
            self._learn(made.get("pod_sandbox_id"), pod, f"sandbox {meta.get('attempt', 0)}")
            return pod, words
        target = request.get("container_id") or request.get("pod_sandbox_id", "")
        pod, name = self._pods.get(target, "unknown"), self._names.get(target, "unknown")
        if method == "CreateContainer":
            meta = request["config"]["metadata"]
            own = f"{meta['name']}/{meta.get('attempt', 0)}"
            self._learn(made.get("container_id"), pod, own)
            return pod, f"{own} in {name}"
        return pod, name + self._more(method, request)

    def _learn(self, made: str | None, pod: str, name: str) -> None:
        if made:
            self._pods[made] = pod
            self._names[made] = name

    def _image(self, request: Row) -> tuple[str, str]:
        sandbox = request.get("sandbox_config", {}).get("metadata", {}).get("name", "")
        return pod_name(sandbox), request["image"]["image"]

    def _more(self, method: str, request: Row) -> str:
        if method == "StopContainer":
            return f" timeout {request.get('timeout', 0)}"
        if method == "ExecSync":
            return f" {' '.join(request['cmd'])!r} timeout {request.get('timeout', 0)}"
        for resources in ("linux", "resources"):
            if resources in request:
                return " " + " ".join(
                    f"{field}={request[resources][field]}"
                    for field in LIMITS
                    if field in request[resources]
                )
        return ""


# Statuses


def status_line(status: Row) -> str:
    """One status in words; equal statuses give equal lines.

    >>> status_line({"phase": "Failed", "reason": "Evicted"})
    'Failed Evicted'
    """
    parts = [_words(status.get("phase"), status.get("reason"), status.get("message"))]
    for kind, prefix in (("initContainerStatuses", "init "), ("containerStatuses", "")):
        parts += [prefix + _container(one) for one in status.get(kind) or ()]
    parts += [_condition(one) for one in status.get("conditions") or ()]
    parts += [key for key in ("podIP", "startTime") if status.get(key)]
    if status.get("qosClass"):
        parts.append(status["qosClass"])
    return " | ".join(parts)


def _container(status: Row) -> str:
    flags = [
        "ready" if status.get("ready") else "",
        "started" if status.get("started") else "",
        f"restarts={status.get('restartCount', 0)}",
        "id" if status.get("containerID") else "",
        _resources(status),
    ]
    state = _state(status.get("state") or {})
    last = _state(status.get("lastState") or {})
    words = [f"{status['name']}: {state}", f"last({last})" if last else "", *flags]
    return " ".join(word for word in words if word)


def _resources(status: Row) -> str:
    told = [
        f"{key} {json.dumps(status[key], sort_keys=True)}"
        for key in ("resources", "allocatedResources")
        if status.get(key)
    ]
    return f"[{' '.join(told)}]" if told else ""


def pod_resources(status: Row) -> str:
    """The resources of the pod as a whole. While a container runs they change with the first sync
    after the API server was told of the phase Running, and when that comes is chance."""
    return _resources(status)


def _state(state: Row) -> str:
    for kind, told in state.items():
        if told is not None:
            code = told.get("exitCode")
            exit_code = "" if code is None else str(code)
            return _words(kind, exit_code, told.get("reason"), told.get("message"))
    return ""


def _condition(condition: Row) -> str:
    told = _words(condition.get("reason"), condition.get("message"))
    return f"{condition['type']}={condition['status']}" + (f" {told}" if told else "")


def _words(*words: str | None) -> str:
    return QUANTITY.sub(r"\1<n>", UID.sub("UID", " ".join(word for word in words if word)))


def statuses_by_pod(rows: Iterable[Row]) -> dict[str, list[Timed]]:
    """The distinct statuses of each pod; the end of its object is a line too, but not a list that
    lacks it for a moment because the kubelet was started anew. Rows: as recordings have them."""
    rows = list(rows)
    newest = {row["uid"]: number for number, row in enumerate(rows)}
    names: dict[str, str] = {}
    told: dict[str, list[Timed]] = {}
    for number, row in enumerate(rows):
        name = names.setdefault(row["uid"], pod_name(row.get("pod", "")))
        if row.get("gone") and newest[row["uid"]] != number:
            continue
        lines = told.setdefault(name, [])
        gone = row.get("gone") or row.get("type") == "DELETED"
        deleting = "deleting | " if row.get("deletionTimestamp") else ""
        line = "gone" if gone else deleting + status_line(row["status"])
        if not lines or lines[-1].line != line:
            lines.append(Timed(row["t"], line))
    return told


# Events


def events_by_pod(rows: Iterable[Row]) -> dict[str, list[Timed]]:
    """The distinct events of each pod, by the first sending, and how often each came. Those that
    come with every sync of a waiting pod are not counted: their number is chance (BACK-011)."""
    told: dict[str, dict[str, tuple[float, int]]] = {}
    for row in rows:
        event = row["event"]
        kind, _, name = event["object"].partition(" ")
        if kind != "Pod":
            continue
        field = (event.get("fieldPath") or "").removeprefix("spec.")
        line = _words(event["type"], event["reason"], field, _quiet(event["message"]))
        known = told.setdefault(pod_name(name), {})
        first_s = known[line][0] if line in known else row["t"]
        known[line] = (first_s, event.get("count") or 1)
    return {pod: _events_in_order(lines) for pod, lines in told.items()}


def _events_in_order(lines: Mapping[str, tuple[float, int]]) -> list[Timed]:
    ordered: list[Timed] = []
    group_s = 0.0
    for line, (at_s, count) in lines.items():
        counted = line if WAITING.search(line) else f"{line} x{count}"
        if not (
            ordered
            and KILLING in line
            and KILLING in ordered[-1].line
            and at_s - group_s < TOGETHER_S
        ):
            group_s = at_s
        ordered.append(Timed(group_s if KILLING in line else at_s, counted))
    return [
        one
        for killing, group in groupby(ordered, key=lambda t: (t.at_s, KILLING in t.line))
        for one in (sorted(group, key=lambda t: t.line) if killing[1] else group)
    ]


KILLING: Final = " Killing "
WAITING: Final = re.compile(r" BackOff |Error: ImagePullBackOff$")
DURATION: Final = re.compile(
    r"\b\d+(\.\d+)?(ms|µs|s)\b( \(\d+(\.\d+)?(ms|µs|s) including waiting\))?"
)


def _quiet(message: str) -> str:
    return DURATION.sub("<time>", message).strip()
