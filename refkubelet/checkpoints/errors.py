"""What can be wrong with a file that outlives the kubelet. Pure."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from refkubelet.golang.strconv import quoted

CORRUPT: Final = "checkpoint is corrupted"  # upstream's word for a checksum that does not fit


class CheckpointError(ValueError):
    """The text of a file is not what a kubelet wrote; says what was wanted and what was found."""


class StateFileError(Exception):
    """A file is there and cannot be used; the text says why, in upstream's words where it has
    them. The kubelet must not start with such a file: the wiring makes a `ConfigError` of it."""


def drain_and_delete(problem: str, checkpoint: str, path: Path) -> str:
    """The text of a start failure: the problem, and what the user can do. `checkpoint` names the
    file: `the CPU manager`."""
    return (
        f"{problem}, please drain this node and delete {checkpoint} checkpoint file "
        f"{quoted(str(path))} before restarting Kubelet"
    )
