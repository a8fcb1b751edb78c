"""What is left to do on the node for a volume that was made larger, and how its claim is told of it
(NODE-222). Pure.

A controller asks the storage system for more, gives the persistent volume its new capacity, and
says in the claim's status that the node has to do its part. An old controller, of the time before
the gate RecoverVolumeExpansionFailure, does not say it: then the capacity alone counts.
Upstream: pkg/volume/util/operationexecutor: node_expander.go, checkForRecoveryFromExpansion;
pkg/volume/util/resize_util.go.
"""

from __future__ import annotations

from enum import Enum
from typing import Any, Final

from lightkube.models.core_v1 import (
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimStatus,
    PersistentVolumeSpec,
)
from lightkube.models.meta_v1 import ObjectMeta
from msgspec import Struct

from kubeobjects.quantity import parse_nano

STORAGE: Final = "storage"
PENDING: Final = "NodeResizePending"
IN_PROGRESS: Final = "NodeResizeInProgress"
INFEASIBLE: Final = "NodeResizeInfeasible"
RESIZE_ERROR: Final = "NodeResizeError"
RESIZE_CONDITIONS: Final = frozenset(
    {"FileSystemResizePending", "Resizing", "ControllerResizeError", RESIZE_ERROR}
)
SHARED: Final = "ReadWriteMany"
NOT_REQUIRED: Final = "volume.kubernetes.io/node-expansion-not-required"
"""The annotation of a claim whose volume needs nothing of the nodes."""

Patch = dict[str, Any]


class Turn(Enum):
    """Who has to do something."""

    NODE = "the driver is asked"
    CONTROLLER = "the controller comes first"
    NOBODY = "it is done"


class Report(Enum):
    """What the kubelet writes into the claim's status."""

    ALL = "that the node has begun, what failed, and that it is done"
    END = "that it is done: an old controller reads nothing else"
    FAILURES = "what failed: another node has already written that it is done"


class Expansion(Struct, frozen=True):
    """What is to be done about a volume. `turn`: by whom; `size`: what the volume shall have, a
    quantity; `report`: what the claim is told of it."""

    turn: Turn
    size: str
    report: Report = Report.ALL


def expansion(claim: PersistentVolumeClaim, capacity: str) -> Expansion:
    """What is to be done, as the claim says it; `capacity`: the persistent volume's."""
    status = _status(claim)
    resize = (status.allocatedResourceStatuses or {}).get(STORAGE, "")
    if not resize and status.allocatedResources is None:
        return Expansion(Turn.NODE, capacity, Report.END)
    size = (status.allocatedResources or {}).get(STORAGE, "0")
    if resize in (PENDING, IN_PROGRESS) and size != "0":
        return Expansion(Turn.NODE, size)
    if resize or is_larger(size, size_of(claim)):
        return Expansion(Turn.CONTROLLER, size)
    return Expansion(Turn.NODE if _on_each_node(claim) else Turn.NOBODY, size, Report.FAILURES)


def is_larger(size: str, other: str) -> bool:
    """Whether a size is larger than the other.

    >>> is_larger("2Gi", "2048Mi"), is_larger("2Gi", "2047Mi")
    (False, True)
    """
    return parse_nano(size) > parse_nano(other)


def is_same(size: str, other: str) -> bool:
    """Whether both are the same amount.

    >>> is_same("2Gi", "2147483648")
    True
    """
    return parse_nano(size) == parse_nano(other)


def size_of(claim: PersistentVolumeClaim) -> str:
    """The size that the claim has, "0" if it is not known."""
    return str((_status(claim).capacity or {}).get(STORAGE, "0"))


def capacity_of(volume: PersistentVolume) -> str:
    """The size that the persistent volume has, "0" if it is not known."""
    spec = volume.spec or PersistentVolumeSpec()
    return str((spec.capacity or {}).get(STORAGE, "0"))


def name_of(claim: PersistentVolumeClaim) -> tuple[str, str]:
    """The claim's namespace and name."""
    meta = claim.metadata or ObjectMeta()
    return meta.namespace or "", meta.name or ""


def wish_of(claim: PersistentVolumeClaim) -> str:
    """The size that the user wants."""
    resources = claim.spec.resources if claim.spec is not None else None
    return str(((resources.requests if resources is not None else None) or {}).get(STORAGE, "0"))


def marked_in_progress(claim: PersistentVolumeClaim) -> Patch:
    """The patch that says that the node has begun."""
    return _patch(claim, {"allocatedResourceStatuses": {STORAGE: IN_PROGRESS}})


def marked_finished(claim: PersistentVolumeClaim, size: str) -> Patch:
    """The patch that says that the volume has that size."""
    change: dict[str, Any] = {"capacity": {STORAGE: size}}
    if (_status(claim).allocatedResourceStatuses or {}).keys() & {STORAGE}:
        change["allocatedResourceStatuses"] = {STORAGE: None}
    over = [c.type for c in _status(claim).conditions or () if c.type in RESIZE_CONDITIONS]
    if over:
        change["conditions"] = [{"$patch": "delete", "type": kind} for kind in over]
    return _patch(claim, change)


def marked_failed(claim: PersistentVolumeClaim, why: str, now: str, *, infeasible: bool) -> Patch:
    """The patch that says why it did not work, at the time `now`; `infeasible`: it never will, and
    the controller has to decide. A reason that is there already stays."""
    change: dict[str, Any] = {}
    if infeasible:
        change["allocatedResourceStatuses"] = {STORAGE: INFEASIBLE}
    conditions = _status(claim).conditions or ()
    if not any(c.type == RESIZE_ERROR and c.status == "True" for c in conditions):
        condition = {
            "type": RESIZE_ERROR,
            "status": "True",
            "lastTransitionTime": now,
            "message": f"failed to expand pvc with {why}",
        }
        change["conditions"] = [condition]
    return {"status": change} if change else {}


def _on_each_node(claim: PersistentVolumeClaim) -> bool:
    """Whether each node has to do its part, also when another one has done it."""
    modes = (claim.spec.accessModes if claim.spec is not None else None) or ()
    annotations = (claim.metadata.annotations if claim.metadata is not None else None) or {}
    return SHARED in modes and NOT_REQUIRED not in annotations


def _patch(claim: PersistentVolumeClaim, change: dict[str, Any]) -> Patch:
    """A patch that does not apply to another version of the claim."""
    version = claim.metadata.resourceVersion if claim.metadata is not None else None
    return {"metadata": {"resourceVersion": version}, "status": change}


def _status(claim: PersistentVolumeClaim) -> PersistentVolumeClaimStatus:
    return claim.status or PersistentVolumeClaimStatus()
