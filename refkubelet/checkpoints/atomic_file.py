"""Writes the kubelet's own state files, so that a power cut leaves the old text or the new one; and
reads them, whatever became of them.

What must never happen here: a file that is half written, or empty, under its own name; a state file
that others than the kubelet's user can read.
Upstream: pkg/kubelet/util/store/filestore.go.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

from refkubelet.checkpoints.content import json_value

FILE_MODE: Final = 0o600
_TEMPORARY: Final = ".tmp"


def read_json(path: Path) -> Any:
    """The JSON value of a file. Raises OSError, and `CheckpointError` for what is not JSON."""
    return json_value(path.read_bytes())


def write_whole(path: Path, data: bytes, *, directory_mode: int | None = None) -> None:
    """Replace the file by one with these bytes, mode 0600, once they are on the disk.

    `directory_mode`: make its directory with this mode if it is missing; None: it must be there.
    Raises OSError, and then the old file is still there.
    """
    if directory_mode is not None:
        path.parent.mkdir(mode=directory_mode, parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}{_TEMPORARY}")
    flags = os.O_CREAT | os.O_WRONLY | os.O_TRUNC
    with open(os.open(temporary, flags, FILE_MODE), "wb") as out:
        out.write(data)
        out.flush()
        os.fsync(out.fileno())
    temporary.replace(path)
