"""Pull intents and records on disk, in `image_manager/pulling` and `image_manager/pulled` below the
kubelet's root (BACK-211).

Each is a JSON file in the format of the kubelet's configuration API, so that another kubelet can
read it, and is named by the hash of its key. What must never happen: a half-written file replaces a
record; an unreadable file stops a pull.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from refkubelet.checkpoints.atomic_file import read_json, write_whole
from refkubelet.kuberuntime.images.keyring import ServiceAccountSource
from refkubelet.kuberuntime.images.pull_records import Access, PulledRecord, SecretUse
from refkubelet.telemetry.runtime_metrics import ImageMetrics
from simclock import format_rfc3339
from simclock.clock import NANOSECONDS

log = logging.getLogger(__name__)

API_VERSION: Final = "kubelet.config.k8s.io/v1beta1"
DIRECTORY_MODE: Final = 0o700
PREFIX: Final = "sha256-"
UNFINISHED: Final = ".tmp"  # left by a kubelet that was killed while writing


class PullRecordFiles:
    """The records below `root_dir`; `metrics`: how many there are. Methods that write raise
    OSError."""

    def __init__(self, root_dir: Path, metrics: ImageMetrics | None = None) -> None:
        self._pulling = root_dir / "image_manager" / "pulling"
        self._pulled = root_dir / "image_manager" / "pulled"
        self._metrics = metrics or ImageMetrics()
        self._counts = {d: len(_files(d)) for d in (self._pulling, self._pulled)}
        self._show_counts()

    def write_intent(self, image: str) -> None:
        """Write the intent of a pull of `image`, named as in the spec."""
        self._write(self._pulling, image, "ImagePullIntent", {"image": image})

    def delete_intent(self, image: str) -> None:
        """The pull is over, well or not."""
        self._delete(self._pulling, image)

    def has_intent(self, image: str) -> bool:
        return _path(self._pulling, image).exists()

    def intents(self) -> list[str]:
        """The images of all intents; unreadable ones are logged and left out."""
        return [str(value.get("image")) for value in _objects(self._pulling)]

    def read(self, image_ref: str) -> PulledRecord | None:
        """The record of an image, or None. Raises ValueError or OSError for an unreadable one."""
        path = _path(self._pulled, image_ref)
        if not path.exists():
            return None
        record = record_of(read_json(path))
        return record if record.image_ref == image_ref else None

    def write(self, record: PulledRecord) -> None:
        self._write(self._pulled, record.image_ref, "ImagePulledRecord", record_fields(record))

    def delete(self, image_ref: str) -> None:
        self._delete(self._pulled, image_ref)

    def records(self) -> list[PulledRecord]:
        """All records; unreadable ones are logged and left out."""
        records = []
        for value in _objects(self._pulled):
            try:
                records.append(record_of(value))
            except ValueError as error:
                log.error("invalid image pull record: %s", error)
        return records

    def _write(self, directory: Path, key: str, kind: str, fields: dict[str, Any]) -> None:
        if not directory.is_dir():
            directory.parent.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
            directory.mkdir(mode=DIRECTORY_MODE, exist_ok=True)
        text = json.dumps({"kind": kind, "apiVersion": API_VERSION, **fields}) + "\n"
        path = _path(directory, key)
        is_new = not os.path.lexists(path)
        write_whole(path, text.encode())
        self._counts[directory] += is_new
        self._show_counts()

    def _delete(self, directory: Path, key: str) -> None:
        try:
            _path(directory, key).unlink()
        except FileNotFoundError:
            return
        self._counts[directory] -= 1
        self._show_counts()

    def _show_counts(self) -> None:
        """Nobody else changes these directories: they are counted once, at the start."""
        self._metrics.intents.set(self._counts[self._pulling])
        self._metrics.records.set(self._counts[self._pulled])


def _path(directory: Path, key: str) -> Path:
    return directory / (PREFIX + hashlib.sha256(key.encode()).hexdigest())


def _files(directory: Path) -> list[Path]:
    """The files that are whole, by name; none if the directory cannot be read."""
    try:
        names = sorted(directory.iterdir())
    except OSError:
        return []
    return [p for p in names if p.name.startswith(PREFIX) and not p.name.endswith(UNFINISHED)]


def _objects(directory: Path) -> Iterator[dict[str, Any]]:
    for path in _files(directory):
        try:
            value = read_json(path)
        except (OSError, ValueError) as error:
            log.error("cannot read image pull record %s: %s", path, error)
            continue
        if isinstance(value, dict):
            yield value


def record_fields(record: PulledRecord) -> dict[str, Any]:
    """The fields of a record as JSON, without kind and apiVersion."""
    return {
        "lastUpdatedTime": format_rfc3339(record.updated_ns),
        "imageRef": record.image_ref,
        "credentialMapping": {name: _access_fields(a) for name, a in record.access.items()},
    }


def _access_fields(access: Access) -> dict[str, Any]:
    if access.every_pod:
        return {"nodePodsAccessible": True}
    fields: dict[str, Any] = {}
    if access.secrets or not access.accounts:
        fields["kubernetesSecrets"] = [
            {"uid": s.uid, "namespace": s.namespace, "name": s.name, "credentialHash": s.hash}
            for s in access.secrets
        ]
    if access.accounts:
        fields["kubernetesServiceAccounts"] = [
            {"uid": a.uid, "namespace": a.namespace, "name": a.name} for a in access.accounts
        ]
    return fields


def record_of(value: dict[str, Any]) -> PulledRecord:
    """The record of a JSON object. Raises ValueError if it is invalid."""
    try:
        return _record_of(value)
    except (KeyError, TypeError, AttributeError, OverflowError) as error:
        raise ValueError(f"not a record of a pulled image: {error!r}") from None


def _record_of(value: dict[str, Any]) -> PulledRecord:
    mapping = value.get("credentialMapping") or {}
    updated_s = datetime.fromisoformat(value["lastUpdatedTime"]).timestamp()
    updated_ns = round(updated_s * NANOSECONDS)
    return PulledRecord(value["imageRef"], updated_ns, {n: _access(a) for n, a in mapping.items()})


def _access(value: dict[str, Any]) -> Access:
    if value.get("nodePodsAccessible"):
        return Access(every_pod=True)
    return Access(
        secrets=tuple(
            SecretUse(s["namespace"], s["name"], s["uid"], s.get("credentialHash", ""))
            for s in value.get("kubernetesSecrets") or ()
        ),
        accounts=tuple(
            ServiceAccountSource(a["namespace"], a["name"], a["uid"])
            for a in value.get("kubernetesServiceAccounts") or ()
        ),
    )
