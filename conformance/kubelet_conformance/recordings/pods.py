"""Pods and their statuses as they were recorded beside the calls (`pods.jsonl`). Pure.

A row has `t`, `uid` and `pod`, and what has changed: `metadata` and `spec` (in the first row of a
pod all of it), `status`; `gone` (or the type DELETED) says that the pod is there no more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct, field

from fakecri.recording.recorded import RecordError
from kubelet_conformance.laws.history import Shown
from refkubelet.model.objects import ObjectMeta, PodSpec, PodStatus

MIRROR: Final = "kubernetes.io/config.mirror"
CHANGING: Final = ("generation", "deletionTimestamp", "deletionGracePeriodSeconds")
"""Fields of the metadata that later rows have by themselves."""

TYPES: Final = {"metadata": ObjectMeta, "spec": PodSpec, "status": PodStatus}
"""What fields of a row are objects of."""

Row = Mapping[str, Any]


class RecordedPods(Struct):
    """What was recorded of all pods; of mirrors nothing: their UIDs are none of a runtime's."""

    given: dict[str, list[Mapping[str, Any]]] = field(default_factory=dict)
    """UID -> the pod as it was given, and after each change of that."""
    shown: list[Shown] = field(default_factory=list)
    """Its statuses, in order."""


def recorded_pods_of(rows: Iterable[tuple[str, Row]]) -> RecordedPods:
    """The pods of these rows, each with its place. Raises RecordError, which names that."""
    pods = RecordedPods()
    gone: set[str] = set()
    mirrors: set[str] = set()
    for place, row in rows:
        if "header" in row:
            continue
        if not isinstance(row.get("uid"), str) or not isinstance(row.get("t"), int | float):
            raise RecordError(f"{place}: wanted a row of a pod with t and uid, got {sorted(row)}")
        uid = row["uid"]
        if _is_mirror(row):
            mirrors.add(uid)
        if uid not in mirrors:
            try:
                _take(pods, row, again=uid in gone)
            except (KeyError, TypeError, AttributeError) as mistake:
                raise RecordError(f"{place}: no row of a pod: {mistake!r}") from None
            except msgspec.ValidationError as mistake:
                raise RecordError(f"{place}: no row of a pod: {mistake}") from None
            gone.discard(uid)
        if row.get("gone") or row.get("type") == "DELETED":
            gone.add(uid)
    return pods


def _is_mirror(row: Row) -> bool:
    metadata = row.get("metadata")
    notes = metadata.get("annotations") if isinstance(metadata, Mapping) else None
    return isinstance(notes, Mapping) and MIRROR in notes


def _take(pods: RecordedPods, row: Row, *, again: bool) -> None:
    """Take in what a row tells. Raises KeyError, TypeError, AttributeError or ValidationError for
    one that tells it in another way."""
    uid = row["uid"]
    for name, kind in TYPES.items():
        if name in row:
            msgspec.convert(row[name], kind)
    before = pods.given.get(uid, [])
    last: Mapping[str, Any] = before[-1] if before else {}
    changed = {name: row[name] for name in CHANGING if name in row}
    metadata = {**(row.get("metadata") or last.get("metadata") or {}), **changed}
    spec = row["spec"] if "spec" in row else last.get("spec")
    if spec is not None and (metadata, spec) != (last.get("metadata"), last.get("spec")):
        pods.given.setdefault(uid, []).append({"metadata": metadata, "spec": spec})
    if "status" in row:
        name = row["pod"].rpartition("/")[2]
        pods.shown.append(Shown(float(row["t"]), name, uid, dict(row["status"]), again))
