"""The updates of pod sources for the sync loop: an operation on some pods.

A source always delivers its complete set (SRC-060). `refkubelet.pods.merge` compares it with the
previous set and makes operations (SRC-064); the sync loop handles one at a time (LIFE-001).
"""

from __future__ import annotations

from enum import Enum

from msgspec import Struct

from refkubelet.model.objects import Pod


class PodSource(Enum):
    """The source of a pod, the value of annotation kubernetes.io/config.source (SRC-034)."""

    FILE = "file"
    HTTP = "http"
    API = "api"


class PodOperation(Enum):
    """The operation of an update (LIFE-002)."""

    ADD = "ADD"  # the source has them for the first time
    UPDATE = "UPDATE"  # spec, labels or annotations changed
    DELETE = "DELETE"  # they got a deletionTimestamp
    REMOVE = "REMOVE"  # the source has them no longer
    RECONCILE = "RECONCILE"  # only their status changed


class PodUpdate(Struct, frozen=True):
    """One operation on some pods of one source; ADD may be empty (SRC-064)."""

    operation: PodOperation
    source: PodSource
    pods: tuple[Pod, ...] = ()
