"""Removes a directory tree that a container may have filled, of any depth and size.

Deeper directories are moved up to the top before they are emptied, so that only two directories are
open at a time. A mount point cannot be moved, so mounts are never emptied. What takes another shape
while it is removed is left to the next look at the top; a removal that does not come to its end,
because something is put there again and again, fails, and the caller tries again later.

What must never happen here: a link is followed; a wait; recursion.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Generator, Iterator
from itertools import count
from typing import Final

from refkubelet.host.untrusted_files.walking import DIRECTORY, MOST_ENTRIES

_IDLE_LOOKS: Final = 100
"""Looks at the top one after the other in which nothing could be removed."""
_CHANGED: Final = {
    *(errno.ENOENT, errno.ENOTDIR, errno.ELOOP),
    *(errno.EISDIR, errno.ENOTEMPTY, errno.EEXIST),
}
"""Errors of entries that are something else by now."""


def removed_now(path: str) -> None:
    """As `removed`, at once: for trees that the kubelet wrote, which are small."""
    for _ in removed(path):
        pass


def removed(path: str) -> Generator[None]:
    """Remove a file, or a directory and all below it, an entry at each step. The directories above
    must be the kubelet's own, and nothing may be mounted at `path`. Raises OSError, also if there
    is a mount below."""
    try:
        if not stat.S_ISDIR(os.lstat(path).st_mode):
            os.unlink(path)
            return
    except FileNotFoundError:
        return
    top = os.open(path, DIRECTORY)
    try:
        yield from _emptied(top, path)
    finally:
        os.close(top)
    os.rmdir(path)


def _emptied(top: int, path: str) -> Iterator[None]:
    unused = (f".removed-{number}" for number in count())
    steps = idle_looks = 0
    while steps < MOST_ENTRIES and idle_looks < _IDLE_LOOKS:
        is_empty, idle_looks = True, idle_looks + 1
        with os.scandir(top) as entries:
            for entry in entries:
                is_empty = False
                for is_gone in _without(entry.name, top, unused):
                    yield
                    steps += 1
                    idle_looks = 0 if is_gone else idle_looks
        if is_empty:
            return
    raise OSError(errno.ENOTEMPTY, "Something is put there while it is removed", path)


def _without(name: str, top: int, unused: Iterator[str]) -> Iterator[bool]:
    """Remove an entry of the top; at each step whether that removed something. Raises OSError, but
    not for what has changed meanwhile."""
    try:
        if _unlinked(name, top):
            yield True
            return
        moved = _move(name, top, top, unused)
        yield from _flattened(moved, top, unused)
        os.rmdir(moved, dir_fd=top)
        yield True
    except OSError as error:
        if error.errno not in _CHANGED:
            raise
        yield False


def _flattened(name: str, top: int, unused: Iterator[str]) -> Iterator[bool]:
    """Empty one directory of the top: remove its files, move its directories up."""
    fd = os.open(name, DIRECTORY, dir_fd=top)
    try:
        with os.scandir(fd) as entries:
            for entry in entries:
                if not _unlinked(entry.name, fd):
                    _move(entry.name, fd, top, unused)
                yield True
    finally:
        os.close(fd)


def _move(name: str, fd: int, top: int, unused: Iterator[str]) -> str:
    """Move a directory to the top, under an unused name, and return that. Raises OSError (EBUSY)
    for a mount point."""
    new = next(candidate for candidate in unused if not _is_there(candidate, top))
    os.rename(name, new, src_dir_fd=fd, dst_dir_fd=top)
    return new


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
