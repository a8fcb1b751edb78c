"""Reads the names in one directory, and looks at single entries: no link followed, no wait, no more
names than asked.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from refkubelet.host.untrusted_files.walking import DIRECTORY, Met

MOST_NAMES: Final = 100_000
"""The most entries of one directory that anybody is told of."""


@contextmanager
def opened_directory(directory: str | os.PathLike[str] | int) -> Iterator[int]:
    """A descriptor of the directory, which may be one already. The last part of the path is no
    link. Raises OSError."""
    if isinstance(directory, int):
        yield directory
        return
    fd = os.open(directory, DIRECTORY)
    try:
        yield fd
    finally:
        os.close(fd)


def listed(directory: str | os.PathLike[str] | int, most: int = MOST_NAMES) -> list[str]:
    """The names in a directory, sorted; of a larger one the first `most` that the kernel tells. The
    last part of the path is no link; an open descriptor is as good. Raises OSError."""
    with opened_directory(directory) as fd, os.scandir(fd) as entries:
        names = [entry.name for _, entry in zip(range(most), entries, strict=False)]
    return sorted(names)


def looked_at(directory: str | os.PathLike[str], most: int = MOST_NAMES) -> Iterator[Met]:
    """The entries of a directory, each with its status; of a larger one the first `most`. The last
    part of the path is no link. What vanishes meanwhile is left out. Raises OSError."""
    with opened_directory(directory) as fd, os.scandir(fd) as entries:
        for _, entry in zip(range(most), entries, strict=False):
            try:
                status = entry.stat(follow_symlinks=False)
            except OSError:
                continue
            yield Met(entry.name, fd, status)


def directories_in(path: str, most: int = MOST_NAMES) -> list[str]:
    """The paths of the directories in that one, sorted; none if it is none, or not there. Raises
    OSError."""
    try:
        with opened_directory(path) as fd, os.scandir(fd) as entries:
            paths = [
                os.path.join(path, entry.name)
                for _, entry in zip(range(most), entries, strict=False)
                if entry.is_dir(follow_symlinks=False)
            ]
    except (FileNotFoundError, NotADirectoryError):
        return []
    return sorted(paths)


def entry_status(path: str, *, dir_fd: int | None = None) -> os.stat_result | None:
    """What lies there, links not followed; None: nothing, or it cannot be looked at."""
    try:
        return os.stat(path, dir_fd=dir_fd, follow_symlinks=False)
    except (OSError, ValueError):
        return None


def is_directory(name: str, above: int) -> bool:
    """Whether an entry of the open directory `above` is a directory itself."""
    status = entry_status(name, dir_fd=above)
    return status is not None and stat.S_ISDIR(status.st_mode)
