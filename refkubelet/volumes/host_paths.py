"""Checks the type of hostPath volumes, and makes the file or directory for `OrCreate` (NODE-204).

What must never happen here: a FIFO or a device is opened.
Upstream: pkg/volume/hostpath/host_path.go.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from typing import Final

from lightkube.models.core_v1 import HostPathVolumeSource

DIRECTORY_MODE: Final = 0o755
FILE_MODE: Final = 0o644
CHECKS: Final[dict[str, tuple[Callable[[int], bool], str]]] = {
    "Directory": (stat.S_ISDIR, "a directory"),
    "DirectoryOrCreate": (stat.S_ISDIR, "a directory"),
    "File": (stat.S_ISREG, "a file"),
    "FileOrCreate": (stat.S_ISREG, "a file"),
    "Socket": (stat.S_ISSOCK, "a socket file"),
    "CharDevice": (stat.S_ISCHR, "a character device"),
    "BlockDevice": (stat.S_ISBLK, "a block device"),
}


class HostPathError(Exception):
    """The path on the node is not of the required type; the text is upstream's."""


def check_host_path(source: HostPathVolumeSource) -> None:
    """Check the type of the path, following links; make it if the type ends with OrCreate. Raises
    `HostPathError`, OSError."""
    path, kind = source.path, source.type
    if ".." in path.split("/"):
        raise HostPathError(f"invalid HostPath `{path}`: must not contain '..'")
    if not kind:
        return
    if kind not in CHECKS:
        raise HostPathError(f"{kind} is an invalid volume type")
    if "\0" in path:
        raise HostPathError(f"invalid HostPath {path!r}: embedded null byte")
    if kind.endswith("OrCreate") and not os.path.exists(path):
        _make(path, kind)
        return
    holds, kind_words = CHECKS[kind]
    try:
        mode = os.stat(path).st_mode
    except OSError:
        mode = 0
    if not holds(mode):
        raise HostPathError(f"hostPath type check failed: {path} is not {kind_words}")


def _make(path: str, kind: str) -> None:
    if kind == "DirectoryOrCreate":
        os.makedirs(path, mode=DIRECTORY_MODE, exist_ok=True)
    else:
        flags = os.O_CREAT | os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
        os.close(os.open(path, flags, FILE_MODE))
