"""Removes a directory tree that a container may have filled, of any depth and size.

Deeper directories are moved up to the top before they are emptied, so that only two directories are
open at a time; other tasks run in between. A mount point cannot be moved, so mounts are never
emptied. What must never happen here: a link is followed.
"""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Collection, Iterator
from itertools import count, islice
from typing import Final

PIECE: Final = 500
"""The number of entries that are removed before other tasks run."""
_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


async def remove_tree(path: str) -> None:
    """Remove a file, or a directory and all below it. The directories above must be the kubelet's
    own, and nothing may be mounted at `path`. Raises OSError, also if there is a mount below."""
    try:
        if not stat.S_ISDIR(os.lstat(path).st_mode):
            os.unlink(path)
            return
    except FileNotFoundError:
        return
    for removed, _ in enumerate(_emptied(path), start=1):
        if removed % PIECE == 0:
            await asyncio.sleep(0)
    os.rmdir(path)


def remove_empty_volumes(pod_directory: str, own: Collection[str]) -> None:
    """Remove the directories of volumes below that of a pod, but for plugins whose directories are
    in `own` (`volumes/kubernetes.io~empty-dir`). Raises OSError at one with something in it: that
    may be somebody's data (NODE-208).

    Upstream: pkg/kubelet/kubelet_volumes.go: removeOrphanedPodVolumeDirs.
    """
    for plugin in _directories(os.path.join(pod_directory, "volumes")):
        if f"volumes/{os.path.basename(plugin)}" not in own:
            for volume in _directories(plugin):
                os.rmdir(volume)


def _directories(path: str) -> list[str]:
    """The directories in that one; none if it does not exist."""
    try:
        with os.scandir(path) as entries:
            return sorted(entry.path for entry in entries if entry.is_dir(follow_symlinks=False))
    except FileNotFoundError:
        return []


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
    """Empty one directory of the top: remove its files, move its directories up."""
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
    """Move a directory to the top, under an unused name, and return that. Raises OSError (EBUSY)
    for a mount point."""
    new = next(candidate for candidate in unused if not _is_there(candidate, top))
    os.rename(name, new, src_dir_fd=fd, dst_dir_fd=top)
    return new


def _some_names(fd: int) -> list[str]:
    """Up to `PIECE` entries of a directory, which may have millions; none only if it is empty."""
    with os.scandir(fd) as entries:
        return [entry.name for entry in islice(entries, PIECE)]


def _unlinked(name: str, fd: int) -> bool:
    """Remove an entry, if it is not a directory; False: it is one."""
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
