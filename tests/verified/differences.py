"""Where the fake may differ from a real containerd, and why. Everything else must be equal.

A row without a good reason does not belong here. Rows are looked up by the comparison in
`pairs.py`; a test holds that every row says why.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class FieldRow:
    """A field that is not compared. `method` and `path` may be patterns."""

    method: str
    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class CodeRow:
    """Two codes that count as the same answer of `method`."""

    method: str
    real: str
    fake: str
    reason: str


@dataclass(frozen=True, slots=True)
class TextRow:
    """A text of a real error (pattern) that the fake says in other words."""

    method: str
    pattern: str
    reason: str


FIELDS: Final = (
    FieldRow("ContainerStatus", "status.user", "containerd has it since 2.0 (CRI-084)"),
    FieldRow("ContainerStatus", "status.stop_signal", "containerd has it since 2.3 (CRI-084)"),
    FieldRow("ContainerStatus", "status.image_id", "containerd has it since 2.3 (CRI-083)"),
    FieldRow("ListContainers", "containers.image_id", "containerd has it since 2.3 (CRI-083)"),
    FieldRow(
        "ContainerStatus",
        "status.image_ref",
        "images imported from a file have no repo digest, so containerd shows the id",
    ),
    FieldRow("*", "images.repo_digests", "images imported from a file have no repo digest"),
    FieldRow("*", "image.repo_digests", "images imported from a file have no repo digest"),
    FieldRow("*", "images.size", "the fake's images have no content"),
    FieldRow("*", "image.size", "the fake's images have no content"),
    FieldRow(
        "ContainerStatus",
        "status.message",
        "the text of a failed start is runc's; the fake says what its behaviour says",
    ),
    FieldRow("ContainerStats", "stats.cpu", "measured, not played"),
    FieldRow("ContainerStats", "stats.memory", "measured, not played"),
    FieldRow("*Stats", "stats.writable_layer", "measured, not played"),
    FieldRow("ListContainerStats", "stats.cpu", "measured, not played"),
    FieldRow("ListContainerStats", "stats.memory", "measured, not played"),
)

CODES: Final = (
    CodeRow(
        "StopContainer",
        "NOT_FOUND",
        "OK",
        "the fake is idempotent like 1.6.36, 1.7.22 and later (CRI-023)",
    ),
    CodeRow(
        "StopPodSandbox",
        "NOT_FOUND",
        "OK",
        "the fake is idempotent like 1.6.36, 1.7.22 and later (CRI-023)",
    ),
    CodeRow(
        "CheckpointContainer",
        "UNIMPLEMENTED",
        "*",
        "containerd has it since 2.0 (CRI-135)",
    ),
)

TEXTS: Final = (
    TextRow(
        "StartContainer",
        "failed to create containerd task: *",
        "the text of a failed start is runc's; the fake says what its behaviour says",
    ),
)
