"""The messages of the pod sources: whole sets in, operations out.

A source always sends its complete set (SRC-060); the merge turns two sets into operations
(SRC-064), and the sync loop handles one operation at a time (LIFE-001).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from refkubelet.model.objects import Pod


class PodSource(Enum):
    """Where a pod comes from; the value of annotation kubernetes.io/config.source (SRC-034)."""

    FILE = "file"
    HTTP = "http"
    API = "api"


class PodOperation(Enum):
    """What happened to the pods of an update (LIFE-002)."""

    ADD = "ADD"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    REMOVE = "REMOVE"
    RECONCILE = "RECONCILE"


@dataclass(frozen=True, slots=True)
class PodUpdate:
    """One operation on some pods of one source; ADD may be empty (SRC-064)."""

    operation: PodOperation
    source: PodSource
    pods: tuple[Pod, ...] = ()
