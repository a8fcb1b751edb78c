"""Removes what a container has left in a volume of the fake driver.

`shutil.rmtree` goes down as deep as the tree is, and opens what was a directory a moment ago: where
a container exchanges it for a FIFO, it waits for ever.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Final

_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_IDLE_LOOKS: Final = 100
"""Looks at the top, one after the other, in which nothing could be removed."""
_LOOKS: Final = 100_000
"""Looks at the top in all: each takes a level of the tree, and whoever goes on writing ends it."""


def remove_tree(path: Path) -> None:
    """Remove the directory and all below it, however deep; no link is followed, and nothing but
    directories is opened. What cannot be removed stays: no error is raised."""
    try:
        top = os.open(path, _DIRECTORY)
    except OSError:
        return
    try:
        _empty(top)
    finally:
        os.close(top)
    try:
        path.rmdir()
    except OSError:
        return


def _empty(top: int) -> None:
    """Remove all that is in the open directory. Deeper directories are moved up first, so that only
    two are open at a time."""
    unused = (f".removed-{number}" for number in count())
    idle_looks = 0
    for _ in range(_LOOKS):
        names = os.listdir(top)
        if not names or idle_looks == _IDLE_LOOKS:
            return
        is_removed = [_remove(name, top, unused) for name in names]
        idle_looks = 0 if any(is_removed) else idle_looks + 1


def _remove(name: str, top: int, unused: Iterator[str]) -> bool:
    """Remove one entry of the top; False: it could not be, or is something else by now."""
    try:
        if _unlink(name, top):
            return True
        below = os.open(name, _DIRECTORY, dir_fd=top)
        try:
            for child in os.listdir(below):
                if not _unlink(child, below):
                    os.rename(child, next(unused), src_dir_fd=below, dst_dir_fd=top)
        finally:
            os.close(below)
        os.rmdir(name, dir_fd=top)
    except OSError:
        return False
    return True


def _unlink(name: str, directory: int) -> bool:
    """Remove an entry that is no directory; False: it is one, or may not be removed."""
    try:
        os.unlink(name, dir_fd=directory)
    except (IsADirectoryError, PermissionError):
        return False
    return True
