"""Reads recordings: a file of `fakecri proxy --record`, or the folder of a recorded run."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from fakecri.recording.recorded import RecordError, exchanges
from kubelet_conformance.recordings.abbreviated import without_slashes, written_out
from kubelet_conformance.recordings.history import EVENTS, Recording, recording_of
from kubelet_conformance.recordings.pods import RecordedPods, recorded_pods_of

CALLS: Final = "cri.jsonl"
PODS: Final = "pods.jsonl"
KIND: Final = "KubeletConfiguration"
_LISTENS: Final = re.compile(rf'"method": ?"{EVENTS}"')


def read_recording(
    path: Path, *, config: Mapping[str, Any] | None = None, outside: bool = False
) -> Recording:
    """The recording in a file with a line for each call, or of the file `cri.jsonl` in a folder,
    beside which `pods.jsonl` may have pods and statuses. `config`, `outside`: as for
    `recording_of`. Raises RecordError, which names file and line."""
    file = path / CALLS if path.is_dir() else path
    lines = _lines(file)
    pods = None
    beside = file.parent / PODS
    if file.name == CALLS and beside.is_file():
        pods = read_pods(_lines(beside), str(beside))
    calls = list(exchanges(written_out(lines, str(file)), str(file)))
    if not any(line.strip() for line in lines):
        raise RecordError(f"{file}: it is empty, and tells of no kubelet")
    evented = any(_LISTENS.search(line) for line in lines)
    return recording_of(calls, evented=evented, pods=pods, config=config, outside=outside)


def read_pods(lines: Iterable[str], name: str) -> RecordedPods:
    """The pods of a file `pods.jsonl`. Raises RecordError, which names the line."""
    return recorded_pods_of(_rows(lines, name))


def read_configuration(path: Path) -> Mapping[str, Any]:
    """The fields of a KubeletConfiguration, of YAML or JSON. Raises RecordError."""
    try:
        fields = yaml.safe_load("\n".join(_lines(path)))
    except yaml.YAMLError as error:
        raise RecordError(f"{path}: no YAML: {' '.join(str(error).split())}") from None
    if not isinstance(fields, Mapping) or fields.get("kind", KIND) != KIND:
        raise RecordError(f"{path}: wanted the fields of a {KIND}")
    return fields


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise RecordError(f"cannot read {file}: {(error.strerror or str(error)).lower()}") from None
    except UnicodeDecodeError as error:
        raise RecordError(f"{file}: no UTF-8 text (byte {error.start})") from None


def _rows(lines: Iterable[str], name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each row with its place. Raises RecordError."""
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        place = f"{name}:{number}"
        try:
            row = json.loads(without_slashes(line))
        except ValueError as error:
            raise RecordError(f"{place}: no JSON: {error}") from None
        if not isinstance(row, dict):
            raise RecordError(f"{place}: wanted an object, got {type(row).__name__}")
        yield place, row
