"""Encodes and decodes the file kubelet_internal_checkpoint, with the devices of containers and the
registered resources. Pure: text in, text out.

The format and the checksum are upstream's, so that each kubelet can read the other's file.
Upstream: pkg/kubelet/cm/devicemanager/checkpoint/checkpoint.go.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct

from refkubelet.checkpoints.content import (
    CORRUPT,
    CheckpointError,
    checksum,
    go_bytes,
    go_map,
    go_slice,
    go_struct,
    json_value,
)
from refkubelet.container_manager.devices.ledger import Entry
from refkubelet.container_manager.devices.types import Allotment

FILE_NAME: Final = "kubelet_internal_checkpoint"
_DATA: Final = "checkpoint.checkpointData"
_ENTRIES: Final = "[]checkpoint.PodDevicesEntry"


class _Row(msgspec.Struct):
    PodUID: str
    ContainerName: str
    ResourceName: str
    DeviceIDs: dict[str, list[str] | None] | None
    AllocResp: str | None


class _Data(msgspec.Struct):
    PodDeviceEntries: list[_Row] | None
    RegisteredDevices: dict[str, list[str] | None] | None


class Checkpoint(Struct, frozen=True):
    """The content of the file. `registered`: resource -> its healthy devices at that time."""

    entries: tuple[Entry, ...] = ()
    registered: Mapping[str, Sequence[str]] | None = None


def write(entries: Iterable[Entry], registered: Mapping[str, Iterable[str]]) -> str:
    """The file's text."""
    data = {
        "PodDeviceEntries": [_row(entry) for entry in entries] or None,
        "RegisteredDevices": {name: sorted(registered[name]) for name in sorted(registered)},
    }
    return json.dumps({"Data": data, "Checksum": _checksum(data)}, separators=(",", ":"))


def read(text: str) -> Checkpoint:
    """The content of the file's text. Raises `CheckpointError`."""
    try:
        whole = json_value(text)
        data, checksum = whole["Data"], whole["Checksum"]
        msgspec.convert(data, _Data)  # only to check the types
        expected_checksum = _checksum(data)
        entries = tuple(_entry(row) for row in data["PodDeviceEntries"] or ())
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise CheckpointError(f"not a checkpoint of devices: {error!r}") from None
    if checksum != expected_checksum:
        raise CheckpointError(f"{CORRUPT}: its checksum is {checksum}, wanted {expected_checksum}")
    return Checkpoint(entries, data["RegisteredDevices"] or {})


def _row(entry: Entry) -> dict[str, Any]:
    pod_uid, container, resource, allotment = entry
    by_name = {str(node): list(ids) for node, ids in allotment.devices.items()}
    return {
        "PodUID": pod_uid,
        "ContainerName": container,
        "ResourceName": resource,
        "DeviceIDs": dict(sorted(by_name.items())),
        "AllocResp": base64.b64encode(allotment.answer).decode(),
    }


def _entry(row: Mapping[str, Any]) -> Entry:
    devices = {int(node): tuple(ids or ()) for node, ids in (row["DeviceIDs"] or {}).items()}
    answer = base64.b64decode(row["AllocResp"] or "")
    return row["PodUID"], row["ContainerName"], row["ResourceName"], Allotment(devices, answer)


def _checksum(data: Mapping[str, Any]) -> int:
    rows, registered = data["PodDeviceEntries"], data["RegisteredDevices"]
    lists = (
        None if registered is None else {name: go_slice(ids) for name, ids in registered.items()}
    )
    printed = go_struct(
        {
            "PodDeviceEntries": (_ENTRIES, go_slice(None if rows is None else map(_print, rows))),
            "RegisteredDevices": ("map[string][]string", go_map(lists)),
        }
    )
    return checksum(_DATA, printed)


def _print(row: Mapping[str, Any]) -> str:
    ids, answer = row["DeviceIDs"], row["AllocResp"]
    nodes = None if ids is None else {int(node): go_slice(names) for node, names in ids.items()}
    data = go_slice(None) if answer is None else go_bytes(base64.b64decode(answer))
    return go_struct(
        {
            "PodUID": ("string", row["PodUID"]),
            "ContainerName": ("string", row["ContainerName"]),
            "ResourceName": ("string", row["ResourceName"]),
            "DeviceIDs": ("checkpoint.DevicesPerNUMA", go_map(nodes)),
            "AllocResp": ("[]uint8", data),
        }
    )
