"""Encodes and decodes the file kubelet_internal_checkpoint, with the devices of containers and the
registered resources. Pure: text in, text out.

The format and the checksum are upstream's, so that each kubelet can read the other's file.
Upstream: pkg/kubelet/cm/devicemanager/checkpoint/checkpoint.go.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct

from kubeobjects.golang.fnv import Fnv32, fnv1a_32
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


class Writer:
    """Makes the texts of one file after another; of entries that stay, most is kept from the last
    one."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str, str], tuple[Allotment, str, str]] = {}
        self._hash = Fnv32()

    def write(self, entries: Iterable[Entry], registered: Mapping[str, Iterable[str]]) -> str:
        """The file's text."""
        known, self._known = self._known, {}
        for entry in entries:
            texts = known.get(entry[:3])
            if texts is None or texts[0] is not entry[3]:
                row = _row(entry)
                texts = (entry[3], _compact(row), _print(row))
            self._known[entry[:3]] = texts
        rows = [row for _, row, _ in self._known.values()]
        printed = [text for _, _, text in self._known.values()] or None
        devices = {name: sorted(registered[name]) for name in sorted(registered)}
        listed = f"[{','.join(rows)}]" if rows else "null"
        data = f'{{"PodDeviceEntries":{listed},"RegisteredDevices":{_compact(devices)}}}'
        return f'{{"Data":{data},"Checksum":{_checksum(printed, devices, self._hash.of)}}}'


def write(entries: Iterable[Entry], registered: Mapping[str, Iterable[str]]) -> str:
    """The text of a first file."""
    return Writer().write(entries, registered)


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def read(text: str) -> Checkpoint:
    """The content of the file's text. Raises `CheckpointError`."""
    try:
        whole = json_value(text)
        data, checksum = whole["Data"], whole["Checksum"]
        msgspec.convert(data, _Data)  # only to check the types
        rows = data["PodDeviceEntries"]
        printed = None if rows is None else list(map(_print, rows))
        expected_checksum = _checksum(printed, data["RegisteredDevices"])
        entries = tuple(_entry(row) for row in rows or ())
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


def _checksum(
    rows: Sequence[str] | None,
    registered: Mapping[str, Iterable[str] | None] | None,
    hash_of: Callable[[bytes], int] = fnv1a_32,
) -> int:
    """Of the entries, as `_print` prints each, and the registered devices."""
    lists = (
        None if registered is None else {name: go_slice(ids) for name, ids in registered.items()}
    )
    printed = go_struct(
        {
            "PodDeviceEntries": (_ENTRIES, go_slice(rows)),
            "RegisteredDevices": ("map[string][]string", go_map(lists)),
        }
    )
    return checksum(_DATA, printed, hash_of)


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
