"""Removes a tree that a container filled, however deep, wide or odd it is.

Only two directories are open at a time: what lies deeper is moved up to the top before it is
looked into, so no depth is too much, and others run in between. A place where something is mounted
cannot be moved. What must never happen here: a link is followed; a mount is emptied.
"""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Iterator
from itertools import count, islice
from typing import Final

PIECE: Final = 500
"""So many entries are removed before others may run."""
_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


async def remove_tree(path: str) -> None:
    """Remove the directory, or the file, and all below it; the directories above must be the
    kubelet's own, and nothing be mounted at the place itself. Raises OSError, also where something
    is mounted below."""
    try:
        if not stat.S_ISDIR(os.lstat(path).st_mode):
            os.unlink(path)
            return
    except FileNotFoundError:
        return
    for seen, _ in enumerate(_emptied(path), start=1):
        if seen % PIECE == 0:
            await asyncio.sleep(0)
    os.rmdir(path)


def _emptied(path: str) -> Iterator[None]:
    top = os.open(path, _DIRECTORY)
    unused = (f".removed-{number}" for number in count())
    try:
        while names := _some_names(top):
            for name in names:
                if not _unlinked(name, top):
                    moved = _move(name, top, top, unused)
                    yield from _flattened(moved, top, unused)
                    os.rmdir(moved, dir_fd=top)
                yield
    finally:
        os.close(top)


def _flattened(name: str, top: int, unused: Iterator[str]) -> Iterator[None]:
    """Empty one directory of the top: files go, directories move up."""
    fd = os.open(name, _DIRECTORY, dir_fd=top)
    try:
        while below := _some_names(fd):
            for entry in below:
                if not _unlinked(entry, fd):
                    _move(entry, fd, top, unused)
                yield
    finally:
        os.close(fd)


def _move(name: str, fd: int, top: int, unused: Iterator[str]) -> str:
    """A directory moves to the top, under a name that is not taken. Raises OSError (EBUSY) where
    something is mounted."""
    new = next(candidate for candidate in unused if not _is_there(candidate, top))
    os.rename(name, new, src_dir_fd=fd, dst_dir_fd=top)
    return new


def _some_names(fd: int) -> list[str]:
    """Some entries of a directory, none only if it is empty: it may have millions."""
    with os.scandir(fd) as entries:
        return [entry.name for entry in islice(entries, PIECE)]


def _unlinked(name: str, fd: int) -> bool:
    """Whether that was no directory, and is gone."""
    try:
        os.unlink(name, dir_fd=fd)
    except FileNotFoundError:
        return True
    except (IsADirectoryError, PermissionError):
        if not stat.S_ISDIR(os.lstat(name, dir_fd=fd).st_mode):
            raise
        return False
    return True


def _is_there(name: str, fd: int) -> bool:
    try:
        os.lstat(name, dir_fd=fd)
    except FileNotFoundError:
        return False
    return True
