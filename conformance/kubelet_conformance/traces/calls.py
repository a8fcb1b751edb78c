"""Recorded CRI calls as entries of a trace. Pure.

A row is what `fakecri proxy --record` writes and what the recorded kubelet runs have: `t_start`,
`t_end`, `method`, `request`, and `response` or `error` {code, message}. Successful calls that only
look are counted; what they show of containers and sandboxes becomes entries of the kind `state`.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from typing import Any, Final

from kubelet_conformance.traces.entries import Entry
from kubelet_conformance.traces.naming import NOBODY, Names, Owner

READS: Final = frozenset(
    {
        "Version", "Status", "ListPodSandbox", "ListContainers", "PodSandboxStatus",
        "ContainerStatus", "ListImages", "ImageStatus", "ImageFsInfo", "ListContainerStats",
        "ContainerStats", "ListPodSandboxStats", "PodSandboxStats", "RuntimeConfig",
        "GetContainerEvents", "ListMetricDescriptors", "ListPodSandboxMetrics",
    }
)  # fmt: skip
"""Calls that change nothing."""
SHOWS: Final = frozenset(
    {"ListPodSandbox", "PodSandboxStatus", "ListContainers", "ContainerStatus"}
)
"""Calls whose answers say what an id belongs to, or what state it is in."""
Row = Mapping[str, Any]
_LABELS: Final = ("io.kubernetes.pod.name", "io.kubernetes.pod.uid")
_STATES: Final = {
    "CONTAINER_EXITED": "exited",
    "SANDBOX_NOTREADY": "notready",
}


def entries_of(rows: Iterable[Row], names: Names) -> list[Entry]:
    """The entries of these calls, which are in order of `t_start`; `names` learns their ids."""
    making = _Making(names)
    for row in rows:
        making.take(row)
    making.end_reads()
    return making.entries


class _Making:
    """The entries so far."""

    def __init__(self, names: Names) -> None:
        self.entries: list[Entry] = []
        self._names = names
        self._reads: dict[str, int] = {}
        self._reads_at = (0.0, 0.0)
        self._started: dict[str, float] = {}  # container id -> when it was started
        self._stopped: dict[str, float] = {}  # container id -> when its stop was answered
        self._ended: set[str] = set()  # ids whose end was seen

    def take(self, row: Row) -> None:
        start_s, end_s = float(row["t_start"]), row.get("t_end")
        if "collapsed" in row:
            for method, number in row["collapsed"].items():
                self._count(method, int(number), start_s, end_s)
            return
        if not isinstance(row.get("method"), str):
            return  # the header of a recorded run
        method = row["method"]
        self._learn(method, row)
        if method in READS and not row.get("error"):
            self._count(method, 1, start_s, end_s)
        else:
            self.end_reads()
            self.entries.append(self._call(method, row, start_s, end_s))
        self._states(method, row, start_s if end_s is None else float(end_s))

    def _count(self, method: str, number: int, start_s: float, end_s: float | None) -> None:
        if not self._reads:
            self._reads_at = (start_s, start_s)
        self._reads[method] = self._reads.get(method, 0) + number
        last = start_s if end_s is None else float(end_s)
        self._reads_at = (self._reads_at[0], max(self._reads_at[1], last))

    def end_reads(self) -> None:
        """Make an entry of the calls that were counted."""
        if self._reads:
            first, last = self._reads_at
            counts = ", ".join(f"{number} {method}" for method, number in self._reads.items())
            entry = Entry(
                at_s=first,
                kind="reads",
                what=f"{sum(self._reads.values())} reads",
                until_s=last,
                told=counts,
                detail=dict(self._reads),
            )
            self.entries.append(entry)
            self._reads = {}

    def _call(self, method: str, row: Row, start_s: float, end_s: float | None) -> Entry:
        request = _fields(row, "request")
        pod, container, attempt = self._owner(method, request)
        probe = method == "ExecSync" and int(request.get("timeout") or 0) > 0
        failure = row.get("error")
        error = f"{failure.get('code')}: {failure.get('message')}" if failure else ""
        answer = _fields(row, "response")
        if probe and not error and answer.get("exit_code"):
            error = f"exit code {answer['exit_code']}"
        detail = {"request": _short(request), "response": answer}
        if row.get("deadline_s") is not None:
            detail["deadline_s"] = row["deadline_s"]
        return Entry(
            at_s=start_s,
            kind="probe" if probe else "call",
            what=method,
            pod=pod,
            container=container,
            attempt=attempt,
            until_s=None if end_s is None else float(end_s),
            error=self._names.named(error),
            told=self._names.named(_told(method, request, answer, probe=probe and not failure)),
            detail=self._names.named({key: value for key, value in detail.items() if value}),
        )

    def _owner(self, method: str, request: Row) -> Owner:
        config = request.get("config") or {}
        own = config.get("metadata") or {}
        if method == "RunPodSandbox":
            return own.get("name", ""), "", int(own.get("attempt") or 0)
        identity = request.get("container_id") or request.get("pod_sandbox_id") or ""
        if method == "CreateContainer":
            pod = _pod_of(request) or self._names.owner(identity)[0]
            return pod, own.get("name", ""), int(own.get("attempt") or 0)
        if identity:
            return self._names.owner(identity)
        return (_pod_of(request), "", None) if _pod_of(request) else NOBODY

    def _learn(self, method: str, row: Row) -> None:
        """Take in whose ids are in the call."""
        request, answer = _fields(row, "request"), _fields(row, "response")
        if method == "RunPodSandbox":
            pod, _, attempt = self._owner(method, request)
            self._names.uid((request.get("config", {}).get("metadata") or {}).get("uid", ""), pod)
            self._names.sandbox(answer.get("pod_sandbox_id", ""), pod, attempt or 0)
        elif method == "CreateContainer":
            pod, container, attempt = self._owner(method, request)
            self._names.container(answer.get("container_id", ""), pod, container, attempt or 0)
        elif method in SHOWS:
            for item in _shown(answer):
                self._learn_shown(item)

    def _learn_shown(self, shown: Row) -> None:
        own = shown.get("metadata") or {}
        labels = shown.get("labels") or {}
        attempt = int(own.get("attempt") or 0)
        if str(shown.get("state", "")).startswith("SANDBOX"):
            self._names.uid(own.get("uid", ""), own.get("name", ""))
            self._names.sandbox(shown.get("id", ""), own.get("name", ""), attempt)
        else:
            pod, uid = (labels.get(label, "") for label in _LABELS)
            self._names.uid(uid, pod)
            self._names.container(shown.get("id", ""), pod, own.get("name", ""), attempt)

    def _states(self, method: str, row: Row, at_s: float) -> None:
        """What the call says about states: of what it makes, and of what it shows."""
        request, answer = _fields(row, "request"), _fields(row, "response")
        if row.get("error") or row.get("t_end") is None:
            return
        match method:
            case "RunPodSandbox":
                self._state(answer.get("pod_sandbox_id", ""), "ready", at_s)
            case "CreateContainer":
                self._state(answer.get("container_id", ""), "created", at_s)
            case "StartContainer":
                self._started[request.get("container_id", "")] = at_s
                self._state(request.get("container_id", ""), "running", at_s)
            case "StopContainer":
                self._stopped.setdefault(request.get("container_id", ""), at_s)
            case "StopPodSandbox":
                self._end(request.get("pod_sandbox_id", ""), "notready", at_s)
            case "RemoveContainer":
                self._state(request.get("container_id", ""), "removed", at_s)
            case "RemovePodSandbox":
                self._state(request.get("pod_sandbox_id", ""), "removed", at_s)
            case _ if method in SHOWS:
                for item in _shown(answer):
                    if word := _STATES.get(str(item.get("state"))):
                        self._seen_end(item, word, at_s)

    def _seen_end(self, shown: Row, word: str, at_s: float) -> None:
        """An answer shows something that has ended: when it did, as far as that is told."""
        identity = shown.get("id", "")
        began, ended = (int(shown.get(key) or 0) for key in ("started_at", "finished_at"))
        if word == "exited" and not ended:
            return  # of a list, which does not tell how it ended
        if began and ended and identity in self._started:
            at_s = min(at_s, self._started[identity] + max(ended - began, 0) / 1e9)
        at_s = min(at_s, self._stopped.get(identity, at_s))
        code = int(shown.get("exit_code") or 0)
        reason = shown.get("reason") or ""
        self._end(identity, word, round(at_s, 4), f"exit code {code} {reason}" if ended else "")

    def _end(self, identity: str, word: str, at_s: float, told: str = "") -> None:
        if identity not in self._ended:
            self._ended.add(identity)
            self._state(identity, word, at_s, told)

    def _state(self, identity: str, word: str, at_s: float, told: str = "") -> None:
        pod, container, attempt = self._names.owner(identity)
        if pod:
            entry = Entry(
                at_s=at_s,
                kind="state",
                what=word,
                pod=pod,
                container=container,
                attempt=attempt,
                told=told.strip(),
            )
            self.entries.append(entry)


def _shown(answer: Row) -> list[Row]:
    """The sandboxes and containers in an answer."""
    status = answer.get("status")
    return [
        *(answer.get("items") or []),
        *(answer.get("containers") or []),
        *([status] if isinstance(status, Mapping) and "id" in status else []),
    ]


def _fields(row: Row, key: str) -> Row:
    """That field if it has fields; recorded runs have a note in place of what they repeat."""
    value = row.get(key)
    return value if isinstance(value, Mapping) else {}


def _pod_of(request: Row) -> str:
    own = _fields(request, "sandbox_config").get("metadata") or {}
    return str(own.get("name", ""))


def _short(request: Row) -> dict[str, Any]:
    """The request without the configuration of the sandbox, which RunPodSandbox has."""
    return {key: value for key, value in request.items() if key != "sandbox_config"}


def _told(method: str, request: Row, answer: Row, *, probe: bool = False) -> str:
    """What is worth saying of a call in a few words."""
    match method:
        case "StopContainer":
            return f"timeout {int(request.get('timeout') or 0)} s"
        case "ExecSync":
            words = " ".join(map(str, request.get("cmd") or []))
            ended = [f"exit code {answer.get('exit_code') or 0}"] if probe else []
            result = ": ".join([*ended, *filter(None, [_text(answer.get("stdout"))])])
            return f"{words} -> {result}" if result else words
        case "CreateContainer":
            return _image((request.get("config") or {}).get("image") or {})
        case "PullImage" | "ImageStatus" | "RemoveImage":
            return _image(request.get("image") or {})
    return ""


def _image(image: Row) -> str:
    return str(image.get("user_specified_image") or image.get("image") or "")


def _text(encoded: Any) -> str:
    """The first line of bytes as protobuf's JSON has them."""
    try:
        text = base64.b64decode(str(encoded or ""), validate=True).decode()
    except ValueError:
        return ""
    return text.strip().partition("\n")[0][:80]
