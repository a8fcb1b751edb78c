"""File operations of other processes on a CgroupFS, one at a time.

No I/O: `answer` turns an operation's name and arguments into its result, or the OSError that the
kernel has for it. What must never happen here: an answer that differs from what the same operation
gives in-process.
"""

from __future__ import annotations

import errno
import stat
from collections.abc import Callable
from itertools import islice
from typing import Any, Final

from fakecri.cgroupfs.filesystem import CgroupFS
from fakecri.cgroupfs.interface.open_file import OpenFile
from fakecri.cgroupfs.interface.values import refuse
from fakecri.cgroupfs.outside.adoption import Adoption

PROCESS_FILES: Final = ("cgroup.procs", "cgroup.threads", "tasks")
LIST_BYTES: Final = 1 << 16
"""A part of a directory's list ends after so many bytes of names."""
VISIBLE: Final = bytes(n if n < 128 else ord("?") for n in range(256))
"""Turns bytes above ASCII into question marks, which are refused like them."""


class Requests:
    """Does file operations on `fs`. With `adoption`, real processes may be moved."""

    def __init__(self, fs: CgroupFS, adoption: Adoption | None = None) -> None:
        self._fs = fs
        self._adoption = adoption
        self._open: dict[int, OpenFile] = {}
        self._listed: list[tuple[str, int]] = []
        self._operations: dict[str, Callable[..., Any]] = {
            "getattr": self._getattr,
            "readdir": self._readdir,
            "mkdir": lambda path: self._fs.path(path).mkdir(),
            "rmdir": lambda path: self._fs.path(path).rmdir(),
            "rename": lambda old, new: self._fs.path(old).rename(self._fs.path(new)) and None,
            "unlink": lambda path: self._fs.path(path).unlink(),
            "create": lambda path: self._opened(path, create=True),
            "open": lambda path: self._opened(path, create=False),
            "read": self._read,
            "write": self._write,
            "release": self._release,
        }

    def answer(self, operation: str, *arguments: Any) -> Any:
        """The result of one operation. Raises OSError as the kernel does, ENOSYS for an unknown
        operation."""
        handler = self._operations.get(operation)
        if handler is None:
            raise refuse(errno.ENOSYS)
        return handler(*arguments)

    def on_structure(self, told: Callable[[], None]) -> None:
        """From now on call `told` when directories or files have come or gone."""
        self._fs.on_structure.append(told)

    def close(self) -> None:
        """Close the files that other processes left open."""
        for fd in list(self._open):
            self._release(fd)

    def _getattr(self, path: str) -> dict[str, int]:
        status = self._fs.path(path).stat()
        return {"st_mode": status.st_mode, "st_nlink": status.st_nlink}

    def _readdir(self, path: str, first: int) -> list[tuple[str, int]]:
        """The list of a directory from number `first` on, as much of it as one message carries;
        nothing at its end. It is made for number 0; a reader reads one list to its end before it
        begins the next."""
        if first == 0:
            at = self._fs.path(path)
            listing = [(entry.name, stat.S_IFMT(entry.stat().st_mode)) for entry in at.iterdir()]
            self._listed = listing
        part, size = [], 0
        for entry in islice(self._listed, first, None):
            part.append(entry)
            size += len(entry[0])
            if size >= LIST_BYTES:
                break
        return part

    def _opened(self, path: str, *, create: bool) -> int:
        opened = self._fs.path(path).open(create=create)
        self._open[opened.fd] = opened
        return opened.fd

    def _read(self, fd: int, size: int, offset: int) -> bytes:
        """Bytes of an open file: at offset 0 of a new snapshot, else of the last one (CG-104)."""
        opened = self._open[fd]
        if offset == 0:
            opened.seek_start()
        return opened.read(size).encode()

    def _write(self, fd: int, data: bytes, caller_pid: int) -> int:
        opened = self._open[fd]
        text = data.translate(VISIBLE).decode("ascii")
        if self._adoption is not None and opened.name in PROCESS_FILES:
            text = self._adoption.with_process(text, caller_pid)
        opened.write(text)
        return len(data)

    def _release(self, fd: int) -> None:
        self._open.pop(fd).close()
