"""A file or directory of this machine, as a volume that is mounted into a container shows it.

What must never happen here: something outside of that place is read or written. A symbolic link
that leads out of it is not there, as in a container that has nothing else of the machine.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
from typing import Final

from msgspec import Struct

from fakecri.process.identity import Identity

LARGEST_READ: Final = 64 * 1024 * 1024
_READ, _WRITE = 4, 2


def _refuse(number: int, path: str) -> OSError:
    return OSError(number, os.strerror(number), path)


class HostDirectory(Struct, frozen=True):
    """`root`: a path of this machine; `identity`: whose programs look at it. `below`: a relative
    path, "" for the root itself. Every method but those that answer yes or no raises OSError."""

    root: str
    identity: Identity
    read_only: bool = False
    recursive: bool = False
    """Whether mounts below the root are read-only, too."""

    def _real(self, below: str) -> str:
        root = os.path.realpath(self.root)
        path = os.path.realpath(os.path.join(root, below)) if below else root
        if path != root and not path.startswith(root.rstrip("/") + "/"):
            raise _refuse(errno.ENOENT, below)
        return path

    def _place_of(self, below: str) -> str:
        """Of a name that need not be there: the real path of its directory, and the name."""
        if not below:
            return self._real("")
        return os.path.join(self._real(os.path.dirname(below)), os.path.basename(below))

    def _stat(self, below: str) -> os.stat_result | None:
        try:
            return os.stat(self._real(below))
        except OSError:
            return None

    def is_directory(self, below: str) -> bool:
        found = self._stat(below)
        return found is not None and stat.S_ISDIR(found.st_mode)

    def is_file(self, below: str) -> bool:
        found = self._stat(below)
        return found is not None and not stat.S_ISDIR(found.st_mode)

    def size(self, below: str) -> int:
        found = self._stat(below)
        return found.st_size if found is not None else 0

    def names(self, below: str) -> list[str]:
        """What is in a directory, sorted."""
        self._require(os.stat(self._real(below)), _READ, below)
        return sorted(os.listdir(self._real(below)))

    def read(self, below: str) -> bytes:
        """What is in a file: of an ordinary one, for devices and pipes could keep the fake
        waiting."""
        descriptor = os.open(self._real(below), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            found = os.fstat(descriptor)
            if stat.S_ISDIR(found.st_mode):
                raise _refuse(errno.EISDIR, below)
            if not stat.S_ISREG(found.st_mode):
                raise _refuse(errno.EACCES, below)
            self._require(found, _READ, below)
            return file.read(LARGEST_READ)

    def open_for_writing(self, below: str, *, append: bool) -> None:
        """It is there from now on, empty unless it is appended to."""
        place = self._writable(below)
        flags = os.O_WRONLY | os.O_CREAT | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW
        os.close(os.open(place, flags | (0 if append else os.O_TRUNC), 0o644))

    def append(self, below: str, data: bytes) -> None:
        """More bytes at its end."""
        flags = os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW
        with os.fdopen(os.open(self._writable(below), flags), "ab") as file:
            file.write(data)

    def remove(self, below: str) -> None:
        os.unlink(self._entry(below))

    def remove_tree(self, below: str) -> None:
        """A directory and all below it."""
        shutil.rmtree(self._entry(below))

    def make_directory(self, below: str) -> None:
        os.mkdir(self._entry(below))

    def _entry(self, below: str) -> str:
        """A name in a directory that may be changed; the root itself is a mount and stays."""
        if not below:
            raise _refuse(errno.EBUSY, below)
        self.require_writable(below, entry=True)
        return self._place_of(below)

    def _writable(self, below: str) -> str:
        """The real path of a file that may be written, or made."""
        self.require_writable(below)
        return self._real(below) if self._stat(below) is not None else self._place_of(below)

    def require_writable(self, below: str, *, entry: bool = False) -> None:
        """Refuse what a read-only mount, or the owner and the mode of a file, refuse. `entry`: the
        name in its directory is what changes."""
        found = None if entry else self._stat(below)
        place = below if found is not None else os.path.dirname(below)
        known = found or os.stat(self._real(place))
        same_mount = known.st_dev == os.stat(self._real("")).st_dev
        if self.read_only and (self.recursive or same_mount):
            raise _refuse(errno.EROFS, below)
        self._require(known, _WRITE, below)

    def _require(self, found: os.stat_result, want: int, below: str) -> None:
        if self.identity.uid == 0:
            return
        mode = found.st_mode
        shift = 0
        if self.identity.uid == found.st_uid:
            shift = 6
        elif found.st_gid in self.identity.groups:
            shift = 3
        if not (mode >> shift) & want:
            raise _refuse(errno.EACCES, below)
