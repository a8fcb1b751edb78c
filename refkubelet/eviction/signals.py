"""What the machine has left, as values: one observation per signal, and the layout of the disks.
Pure.

A signal without observation is never pressure (EVIC-027). `observer.py` makes them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from refkubelet.eviction.layout import Layout


@dataclass(frozen=True, slots=True)
class Observation:
    """Bytes, inodes or pids; `time_ns` says how fresh it is (EVIC-053 step 7), 0 = unknown."""

    available: int
    capacity: int
    time_ns: int = 0


@dataclass(frozen=True, slots=True)
class NodeObservations:
    """All signals of one look at the machine, and the layout of its disks (EVIC-040)."""

    signals: Mapping[str, Observation]
    layout: Layout = Layout.ONE


def layout_of(node_device: str, image_device: str, container_device: str) -> Layout:
    """EVIC-040. Containers apart from images on a disk that is not the node's count as split,
    wherever they lie."""
    if image_device == node_device:
        return Layout.ONE
    return Layout.DEDICATED if container_device == image_device else Layout.SPLIT
