"""Where the fake may differ from a real containerd, and why. Everything else must be equal.

A row without a good reason does not belong here. Rows are looked up by the comparison in
`pairs.py`, only for the versions they name; a test holds that every row says why. What a run used
of them is printed in docs/verified.md.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final, TypeAlias


@dataclass(frozen=True, slots=True)
class Row:
    """One difference. `since` and `before` bound the containerd versions that have it."""

    since: str = field(default="", kw_only=True)
    before: str = field(default="", kw_only=True)

    def holds(self, version: str) -> bool:
        """Whether `version` (`1.7.24~ds1`; "" is not a containerd's) has the difference."""
        found = _numbers(version)
        if self.since and found < _numbers(self.since):
            return False
        return not self.before or found < _numbers(self.before)

    @property
    def versions(self) -> str:
        """In words: `all`, `2.1 and later`, `before 1.7.22`."""
        low = f"{self.since} and later" if self.since else ""
        return ", ".join(
            part for part in (low, self.before and f"before {self.before}") if part
        ) or ("all")


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])


@dataclass(frozen=True, slots=True)
class FieldRow(Row):
    """A field that is not compared. `method` and `path` may be patterns."""

    method: str
    path: str
    reason: str

    def __str__(self) -> str:
        return f"field `{self.path}`"


@dataclass(frozen=True, slots=True)
class CodeRow(Row):
    """Two codes that count as the same answer of `method`. `*` is any code; the patterns say
    for which texts, and one of the fake's settles that the texts differ too."""

    method: str
    real: str
    fake: str
    reason: str
    pattern: str = "*"
    fake_text: str = "*"

    def __str__(self) -> str:
        text = next((t for t in (self.pattern, self.fake_text) if t != "*"), "")
        real = "what it would be in a ready one" if self.real == "*" else self.real
        fake = "any answer" if self.fake == "*" else self.fake
        return f"{real}; the fake: {fake}" + (f" (`{text}`)" if text else "")


@dataclass(frozen=True, slots=True)
class TextRow(Row):
    """A text of a real error (pattern) that the fake says in other words."""

    method: str
    pattern: str
    reason: str

    def __str__(self) -> str:
        return f"text `{self.pattern}`"


@dataclass(frozen=True, slots=True)
class RaceRow(Row):
    """A failure (pattern) of one of two identical calls at once that is an accident of containerd:
    the same call alone succeeds, as the fake's does at once."""

    method: str
    pattern: str
    reason: str

    def __str__(self) -> str:
        return f"one of two calls at once: `{self.pattern}`"


AnyRow: TypeAlias = FieldRow | CodeRow | TextRow | RaceRow

FROM_A_FILE: Final = "images imported from a file have no repo digest"
NO_CONTENT: Final = "the fake's images have no content"
MEASURED: Final = "measured, not played"
RUNC: Final = "the text of a failed start is runc's; the fake says what its behaviour says"
IDEMPOTENT: Final = "the fake is idempotent like 1.6.36, 1.7.22 and later (CRI-023)"

PINNED: Final = "1.6 pins no image, later ones do not pin one from a file (CRI-093)"

FIELDS: Final = (
    FieldRow(
        "ContainerStatus", "status.user", "containerd has it since 2.0 (CRI-084)", before="2.0"
    ),
    FieldRow(
        "ContainerStatus",
        "status.stop_signal",
        "containerd has it since 2.3 (CRI-084)",
        before="2.3",
    ),
    FieldRow(
        "ContainerStatus", "status.image_id", "containerd has it since 2.3 (CRI-083)", before="2.3"
    ),
    FieldRow(
        "ListContainers",
        "containers.image_id",
        "containerd has it since 2.3 (CRI-083)",
        before="2.3",
    ),
    FieldRow("ContainerStatus", "status.image_ref", f"{FROM_A_FILE}, so containerd shows the id"),
    FieldRow("*", "images.repo_digests", FROM_A_FILE),
    FieldRow("*", "image.repo_digests", FROM_A_FILE),
    FieldRow("*Image*", "images.pinned", PINNED),
    FieldRow("*Image*", "image.pinned", PINNED),
    FieldRow("*", "images.size", NO_CONTENT),
    FieldRow("*", "image.size", NO_CONTENT),
    FieldRow("ContainerStatus", "status.message", RUNC),
    FieldRow("ContainerStats", "stats.cpu", MEASURED),
    FieldRow("ContainerStats", "stats.memory", MEASURED),
    FieldRow("*Stats", "stats.writable_layer", MEASURED),
    FieldRow("ListContainerStats", "stats.cpu", MEASURED),
    FieldRow("ListContainerStats", "stats.memory", MEASURED),
    FieldRow("*PodSandboxStats", "stats.linux.cpu", MEASURED),
    FieldRow("*PodSandboxStats", "stats.linux.memory", MEASURED),
    FieldRow("*PodSandboxStats", "stats.linux.network", MEASURED),
    FieldRow("*PodSandboxStats", "stats.linux.process", MEASURED),
    FieldRow("*PodSandboxStats", "stats.linux.containers.cpu", MEASURED),
    FieldRow("*PodSandboxStats", "stats.linux.containers.memory", MEASURED),
    FieldRow("*PodSandboxStats", "stats.linux.containers.writable_layer", MEASURED),
    FieldRow(
        "Status",
        "status.conditions",
        "containerd adds a condition of its own, ContainerdHasNoDeprecationWarnings (CRI-130)",
        since="1.7",
    ),
    FieldRow("Status", "features", "containerd has it since 2.0 (CRI-132)", before="2.0"),
    FieldRow("Status", "runtime_handlers", "containerd has it since 2.0 (CRI-132)", before="2.0"),
)

CODES: Final = (
    CodeRow("StopContainer", "NOT_FOUND", "OK", IDEMPOTENT, before="1.7"),
    CodeRow("StopPodSandbox", "NOT_FOUND", "OK", IDEMPOTENT, before="1.7"),
    CodeRow(
        "RuntimeConfig",
        "UNIMPLEMENTED",
        "OK",
        "containerd has it since 2.0 (CRI-133)",
        before="2.0",
    ),
    CodeRow(
        "UpdatePodSandboxResources",
        "UNIMPLEMENTED",
        "*",
        "containerd has it since 2.3 (CRI-122)",
        before="2.3",
    ),
    CodeRow(
        "ListPodSandboxStats",
        "UNKNOWN",
        "OK",
        "on 1.6 one sandbox that has ended spoils the answer for all (CRI-124)",
        before="1.7",
    ),
    CodeRow(
        "*",
        "FAILED_PRECONDITION",
        "UNKNOWN",
        "a name that is taken: the fake has the code of 1.x (CRI-025)",
        "failed to reserve *",
        since="2.1",
    ),
    CodeRow(
        "PodSandboxStats",
        "UNAVAILABLE",
        "UNKNOWN",
        "of a sandbox that has ended: the fake has the code of 1.6 (CRI-124)",
        "* is not in ready state: unavailable",
        since="1.7",
    ),
    CodeRow(
        "CreateContainer",
        "*",
        "NOT_FOUND",
        "containerd 2.1 alone creates containers in a sandbox that has ended (CRI-040)",
        fake_text="failed to get sandbox container task: no running task found: *",
        since="2.1",
        before="2.2",
    ),
)

TEXTS: Final = (
    TextRow("StartContainer", "failed to create containerd task: *", RUNC),
    TextRow("*", "*prefix can't be empty", "1.6 writes a capital P, and so the fake", since="1.7"),
    TextRow(
        "CreateContainer",
        "failed to reserve container name *; check if another CreateContainer request *",
        "the advice is new",
        since="2.1",
    ),
    TextRow(
        "CreateContainer",
        "failed to check if this is a checkpoint image: *",
        "2.1 asks first whether the image is a checkpoint (CRI-051)",
        since="2.1",
        before="2.2",
    ),
    TextRow(
        "PodSandboxStats",
        "* is not in ready state: unavailable",
        "the last word is that of the code",
        since="1.7",
    ),
    TextRow(
        "ExecSync",
        "*OCI runtime exec failed: exec failed: args must not be empty",
        "1.x ends it with the word unknown, and so the fake",
        since="2.1",
    ),
    TextRow(
        "RunPodSandbox",
        "unable to get OCI runtime for sandbox *",
        "2.1 names the sandbox first",
        since="2.1",
    ),
)

RACES: Final = (
    RaceRow(
        "*",
        '*failed to kill container "*": ttrpc: closed*',
        "the first kill ended the task and its connection while the second was on its way",
    ),
    RaceRow(
        "*PodSandbox",
        "*failed to destroy network for sandbox *",
        "both calls take the network down, and a CNI plugin can do that once",
    ),
    RaceRow(
        "Remove*",
        "*: container is already in removing state",
        "containerd refuses the second call while the first still works",
    ),
    RaceRow(
        "Remove*",
        "*: container is still running, to stop first",
        "the kill of the first call was not yet told to the second",
    ),
    RaceRow(
        "Remove*",
        "*get container info: container * not found",
        "the first call removed it between two steps of the second",
    ),
)
