"""The system calls that mount and unmount. A harness mounts some hundred times in a run: a process
of `mount` or `umount` for each costs more than what it does."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import Final

SHARED: Final = 1 << 20
PRIVATE: Final = 1 << 18
RECURSIVE: Final = 0x4000
NEW_MOUNTS: Final = 0x20000
DETACH: Final = 2

_libc = ctypes.CDLL(None, use_errno=True)


def mount_memory(place: Path, options: str = "mode=755") -> None:
    """Mount a file system in memory at the directory `place`. Raises OSError."""
    _mount("tmpfs", place, "tmpfs", 0, options)


def make_shared(place: Path) -> None:
    """Let what is mounted below the mount at `place` be seen in other namespaces, too. Raises
    OSError."""
    _mount(None, place, None, SHARED, None)


def unmount(place: Path) -> None:
    """Detach the newest mount at `place`; one that is in use goes away with its last user. Raises
    OSError."""
    _check(_libc.umount2(os.fsencode(place), DETACH), place)


def own_namespace() -> None:
    """From now on nobody else sees what this process mounts, and it sees nothing that others mount;
    its mounts end with it and its children. Only for a process with one thread. Raises OSError."""
    root = Path("/")
    _check(_libc.unshare(NEW_MOUNTS), root)
    _mount(None, root, None, PRIVATE | RECURSIVE, None)


def _mount(
    source: str | None, place: Path, kind: str | None, flags: int, options: str | None
) -> None:
    words = (source, os.fspath(place), kind)
    encoded = [None if word is None else os.fsencode(word) for word in words]
    data = None if options is None else options.encode()
    _check(_libc.mount(*encoded, ctypes.c_ulong(flags), data), place)


def _check(result: int, place: Path) -> None:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(place))
