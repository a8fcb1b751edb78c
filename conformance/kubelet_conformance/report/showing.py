"""Recorded calls as a trace: files of `fakecri proxy --record`, recorded kubelet runs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from fakecri.recording.recorded import RecordError
from kubelet_conformance.harness.observing.words import describe
from kubelet_conformance.traces.calls import entries_of
from kubelet_conformance.traces.entries import Entry, Trace, in_order
from kubelet_conformance.traces.naming import Names
from kubelet_conformance.traces.requests import event_entry, request_entry, status_entry
from kubelet_conformance.traces.waits import waits_of

CALLS: Final = "cri.jsonl"
VERBS: Final = {"create": "POST", "update": "PUT", "patch": "PATCH", "delete": "DELETE"}
_RESOURCE: Final = {"pods/status": "pods/{name}/status", "nodes/status": "nodes/{name}/status"}


def recorded_trace(path: Path) -> Trace:
    """The trace of a recording: a file with calls, or the folder of a recorded run. Beside a file
    `cri.jsonl` lie what else was recorded of that run: statuses, events, requests. Raises
    RecordError, which names file and line."""
    file = path / CALLS if path.is_dir() else path
    names = Names()
    entries = entries_of(_calls(file), names)
    if file.name == CALLS:
        entries += _beside(file.parent, names)
    entries.sort(key=lambda entry: entry.at_s)
    end_s = max((e.until_s or e.at_s for e in entries), default=0.0)
    return in_order([*entries, *waits_of(entries)], end_s)


def _calls(file: Path) -> list[dict[str, Any]]:
    """The rows with calls, in order of their start."""
    rows = []
    for place, row in _rows(file):
        if "header" in row:
            continue
        if not isinstance(row.get("t_start"), int | float):
            raise RecordError(f"{place}: wanted a call with t_start in seconds, got {sorted(row)}")
        method, request = row.get("method"), row.get("request", {})
        if "collapsed" not in row and not (isinstance(method, str) and isinstance(request, dict)):
            raise RecordError(f"{place}: wanted method and request of a call, got {sorted(row)}")
        rows.append(row)
    return sorted(rows, key=lambda row: float(row["t_start"]))


def _rows(file: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each line with its place. Raises RecordError."""
    try:
        with file.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                if not line.strip():
                    continue
                try:
                    row = json.loads(line)
                except ValueError as error:
                    raise RecordError(f"{file}:{number}: no JSON: {error}") from None
                if not isinstance(row, dict):
                    raise RecordError(f"{file}:{number}: wanted an object, got {line.strip()[:40]}")
                yield f"{file}:{number}", row
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise RecordError(f"cannot read {file}: {why}") from None
    except UnicodeDecodeError as error:
        raise RecordError(f"{file}: no UTF-8 text (byte {error.start})") from None


def _beside(folder: Path, names: Names) -> Iterator[Entry]:
    """What lies beside the calls of a recorded run."""
    readers = {"pods.jsonl": _status, "events.jsonl": _event, "kubelet-api-calls.jsonl": _request}
    for name, read in readers.items():
        if not (folder / name).is_file():
            continue
        for place, row in _rows(folder / name):
            if "header" in row:
                continue
            try:
                entry = read(names.named(row))
            except (KeyError, TypeError, ValueError, AttributeError) as mistake:
                raise RecordError(f"{place}: not as recorded runs are: {mistake!r}") from None
            if entry is not None:
                yield entry


def _status(row: Mapping[str, Any]) -> Entry | None:
    status = row.get("status")
    if not isinstance(status, Mapping):
        return None
    return status_entry(row["pod"].rpartition("/")[2], status, float(row["t"]), describe(status))


def _event(row: Mapping[str, Any]) -> Entry | None:
    event = dict(row["event"])
    kind, _, name = str(event.get("object", "")).partition(" ")
    field = {"fieldPath": event.get("fieldPath", "")}
    event["involvedObject"] = {"kind": kind, "name": name, **field}
    return event_entry(event, float(row["t"]), None, "")


def _request(row: Mapping[str, Any]) -> Entry | None:
    resource = str(row["resource"])
    if resource == "events":
        return None  # as event
    name = str(row.get("name", ""))
    path = "/" + _RESOURCE.get(resource, f"{resource}/{{name}}").format(name=name).rstrip("/")
    return request_entry(
        method=VERBS.get(row["verb"], "GET"),
        path=path,
        body=row.get("request"),
        status=int(row.get("code") or 0),
        at_s=float(row["t"]),
        until_s=None,
    )
