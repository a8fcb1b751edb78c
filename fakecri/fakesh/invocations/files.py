"""The files of a container: in memory those of its image and what programs write; beside them the
volumes that are directories of this machine (`host_directory`).
"""

from __future__ import annotations

import errno
import fnmatch
import os
import posixpath
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final

from fakecri.fakesh.invocations.host_directory import HostDirectory
from fakecri.process.accounts import Accounts, text_of

_OF_IMAGE: Final = ("/bin", "/dev", "/dev/shm", "/etc", "/proc", "/root", "/sys", "/tmp", "/var")
MOST_BYTES: Final = 64 * 1024 * 1024
"""What the files of one container may hold together."""


def _error(number: int, name: str) -> OSError:
    return OSError(number, os.strerror(number), name)


@contextmanager
def _called(name: str) -> Iterator[None]:
    """Errors are told of this name, not of the place on this machine."""
    try:
        yield
    except OSError as error:
        raise _error(error.errno or errno.EIO, name) from None


class Files:
    """Paths are absolute and normal (`Invocation.path` makes them so); `name` is what errors call
    the file."""

    def __init__(self, may_write: Callable[[str], int] = lambda path: 0) -> None:
        self._files: dict[str, bytes] = {}
        self._directories = {"/", *_OF_IMAGE}
        self._gone: set[str] = set()
        self._may_write = may_write
        self._volumes: dict[str, HostDirectory] = {}

    def put(self, path: str, data: bytes) -> None:
        """A file that is there from the start, with the directories above it."""
        self._files[path] = data
        self.put_directory(posixpath.dirname(path))

    def put_directory(self, path: str) -> None:
        """A directory that is there from the start, with those above it."""
        while path not in self._directories:
            self._directories.add(path)
            path = posixpath.dirname(path)

    def mask(self, path: str) -> None:
        """What is at `path` is empty from now on."""
        if path in self._files:
            self._files[path] = b""
        elif path in self._directories:
            self._forget(path)
            self._directories.add(path)

    def mount(self, path: str, volume: HostDirectory) -> None:
        """From now on a file or directory of this machine is at `path`."""
        if volume.is_directory(""):
            self.put_directory(path)
        else:
            self.put(path, b"")
        self._volumes[path] = volume

    def _volume(self, path: str) -> tuple[HostDirectory, str] | None:
        """The volume that a path is in, and the rest of the path; None: it is in memory."""
        place = path
        while place not in self._volumes:
            if place == "/":
                return None
            place = posixpath.dirname(place)
        return self._volumes[place], path[len(place) :].lstrip("/")

    def read(self, path: str, *, lenient: bool = False, name: str = "") -> bytes:
        """What is in it. `lenient`: a file that was never made or removed is there and empty.
        Raises OSError."""
        if found := self._volume(path):
            with _called(name or path):
                return found[0].read(found[1])
        if path in self._files:
            return self._files[path]
        if path in self._directories:
            raise _error(errno.EISDIR, name or path)
        if path == "/dev/null" or self._is_taken_to_be(path, lenient=lenient):
            return b""
        raise _error(errno.ENOENT, name or path)

    def _is_taken_to_be(self, path: str, *, lenient: bool) -> bool:
        return lenient and path not in self._gone

    def is_file(self, path: str, *, lenient: bool = False) -> bool:
        if found := self._volume(path):
            return found[0].is_file(found[1])
        if path in self._files or path == "/dev/null":
            return True
        return path not in self._directories and self._is_taken_to_be(path, lenient=lenient)

    def is_directory(self, path: str) -> bool:
        if found := self._volume(path):
            return found[0].is_directory(found[1])
        return path in self._directories

    def size(self, path: str) -> int:
        """Its bytes, 0 for what is no file."""
        if found := self._volume(path):
            return found[0].size(found[1])
        return len(self._files.get(path, b""))

    def names_in(self, directory: str) -> list[str]:
        """What is in a directory, sorted; nothing in one that may not be read."""
        if inside := self._volume(directory):
            with suppress(OSError):
                return inside[0].names(inside[1])
            return []
        found = {p for p in (*self._files, *self._directories) if p != "/"}
        return sorted(posixpath.basename(p) for p in found if posixpath.dirname(p) == directory)

    def matching(self, pattern: str, cwd: str) -> list[str]:
        """The paths that fit, as the pattern is written: from `cwd` or from the root."""
        whole = posixpath.normpath(posixpath.join(cwd, pattern))
        parts = whole.strip("/").split("/")
        found = ["/"]
        for part in parts:
            found = [
                posixpath.join(directory, name)
                for directory in found
                for name in self.names_in(directory)
                if fnmatch.fnmatchcase(name, part) and name.startswith(".") == part.startswith(".")
            ]
        if pattern.startswith("/"):
            return sorted(found)
        return sorted(posixpath.relpath(path, cwd) for path in found)

    def open_for_writing(self, path: str, *, append: bool = False, name: str = "") -> None:
        """It is there from now on, empty unless it is appended to. Raises OSError."""
        if path in ("/dev/null", "/dev/tty"):
            return
        if found := self._volume(path):
            with _called(name or path):
                found[0].open_for_writing(found[1], append=append)
            return
        self._require_place(path, name or path)
        if path in self._directories:
            raise _error(errno.EISDIR, name or path)
        self._gone.discard(path)
        self._files[path] = self._files.get(path, b"") if append else b""

    def _require_place(self, path: str, name: str) -> None:
        if not self.is_directory(posixpath.dirname(path)):
            raise _error(errno.ENOENT, name)
        if refused := self._may_write(path):
            raise _error(refused, name)

    def append(self, path: str, data: bytes) -> None:
        """More bytes at its end. Raises OSError when there is no more room."""
        if found := self._volume(path):
            with _called(path):
                found[0].append(found[1], data)
            return
        if path in self._files:
            if sum(map(len, self._files.values())) + len(data) > MOST_BYTES:
                raise _error(errno.ENOSPC, path)
            self._files[path] += data

    def remove(self, path: str, *, lenient: bool = False, name: str = "") -> None:
        """Remove a file. `name`: what the error calls it, by default its path. Raises OSError."""
        if not self.is_file(path, lenient=lenient):
            there = self.is_directory(path)
            raise _error(errno.EISDIR if there else errno.ENOENT, name or path)
        if found := self._volume(path):
            with _called(name or path):
                found[0].remove(found[1])
            return
        self._require_place(path, name or path)
        self._files.pop(path, None)
        self._gone.add(path)

    def remove_tree(self, path: str, *, name: str = "") -> None:
        """Remove a directory and all below it. Raises OSError."""
        if path == "/":
            raise _error(errno.EBUSY, name or path)
        if found := self._volume(path):
            with _called(name or path):
                found[0].remove_tree(found[1])
            return
        if refused := self._may_write(path):
            raise _error(refused, name or path)
        self._forget(path)

    def _forget(self, path: str) -> None:
        below = [p for p in self._files if p.startswith(f"{path}/")]
        self._gone.update(below)
        for one in below:
            del self._files[one]
        self._directories -= {p for p in self._directories if f"{p}/".startswith(f"{path}/")}

    def make_directory(self, path: str, *, parents: bool = False, name: str = "") -> None:
        """Make a directory, with `parents` also those above it that are missing. Raises OSError."""
        if self.is_directory(path) and parents:
            return
        if self.is_directory(path) or self.is_file(path):
            raise _error(errno.EEXIST, name or path)
        if parents:
            self.make_directory(posixpath.dirname(path), parents=True, name=name)
        if found := self._volume(path):
            with _called(name or path):
                found[0].make_directory(found[1])
            return
        self._require_place(path, name or path)
        self._directories.add(path)


class FileOutput:
    """A stream into a file."""

    def __init__(self, files: Files, path: str) -> None:
        self._files = files
        self._path = path

    async def write(self, data: bytes) -> None:
        self._files.append(self._path, data)


def image_files() -> Files:
    """The files of an image alone."""
    return with_users(Files())


def with_users(files: Files, accounts: Accounts | None = None) -> Files:
    """The same files with those that name users and groups."""
    known = accounts or Accounts()
    files.put("/etc/passwd", text_of(known.passwd))
    files.put("/etc/group", text_of(known.group))
    return files
