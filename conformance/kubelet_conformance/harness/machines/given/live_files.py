"""The files of a given machine that change while the kubelet runs, for a FUSE mount: the cgroups of
the fake node, texts that are made when they are opened, and links whose target is made when they
are followed.

`/cgroup` is the fake's cgroup file system, everything else a text or a link. What must never happen
here: a number that is older than the opening of its file.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Mapping
from typing import Any, Final

from fakecri.cgroupfs import CgroupFS
from fakecri.cgroupfs.outside.requests import Requests

CGROUP: Final = "/cgroup"
_FIRST: Final = 1 << 32
"""Descriptors of texts begin here; those of cgroup files are small."""


class LiveFiles:
    """Does file operations on the cgroups `fs`, on `texts`: path -> what makes its text, and on
    `links`: path -> what makes its target."""

    def __init__(
        self,
        fs: CgroupFS,
        texts: Mapping[str, Callable[[], str]],
        links: Mapping[str, Callable[[], str]] | None = None,
    ) -> None:
        self._cgroups = Requests(fs)
        self._texts = texts
        self._links = links or {}
        self._open: dict[int, bytes] = {}
        self._next = _FIRST

    def answer(self, operation: str, *arguments: Any) -> Any:
        """The result of one operation. Raises OSError as the kernel does."""
        subject = arguments[0]
        if isinstance(subject, int):
            if subject < _FIRST:
                return self._cgroups.answer(operation, *arguments)
            return self._of_open(operation, *arguments)
        if subject == CGROUP or subject.startswith(f"{CGROUP}/"):
            below = [a.removeprefix(CGROUP) or "/" if isinstance(a, str) else a for a in arguments]
            return self._cgroups.answer(operation, *below)
        return self._of_path(operation, *arguments)

    def on_structure(self, told: Callable[[], None]) -> None:
        """From now on call `told` when directories or files of the cgroups have come or gone; the
        texts and links are always there."""
        self._cgroups.on_structure(told)

    def close(self) -> None:
        """Close what other processes left open."""
        self._cgroups.close()
        self._open.clear()

    def _of_path(self, operation: str, path: str, *rest: Any) -> Any:
        match operation:
            case "getattr":
                return self._attributes(path)
            case "readdir":
                return self._entries(path) if rest[0] == 0 else []
            case "open" if path in self._texts:
                self._next += 1
                self._open[self._next] = self._texts[path]().encode()
                return self._next
            case "readlink" if path in self._links:
                return self._links[path]()
        raise _refused(errno.EACCES)

    def _of_open(self, operation: str, number: int, *rest: Any) -> Any:
        match operation:
            case "read":
                size, offset = rest
                return self._open[number][offset : offset + size]
            case "release":
                del self._open[number]
                return None
        raise _refused(errno.EACCES)

    def _attributes(self, path: str) -> dict[str, int]:
        if path in self._texts:
            return {"st_mode": stat.S_IFREG | 0o444, "st_nlink": 1}
        if path in self._links:
            return {"st_mode": stat.S_IFLNK | 0o777, "st_nlink": 1}
        if path == "/" or self._names(path):
            return {"st_mode": stat.S_IFDIR | 0o555, "st_nlink": 2}
        raise _refused(errno.ENOENT)

    def _entries(self, path: str) -> list[tuple[str, int]]:
        return [(name, 0) for name in sorted(self._names(path))]

    def _names(self, path: str) -> set[str]:
        """What is directly below."""
        above = path.rstrip("/") + "/"
        paths = [*self._texts, *self._links, CGROUP]
        return {p.removeprefix(above).split("/")[0] for p in paths if p.startswith(above)}


def _refused(number: int) -> OSError:
    return OSError(number, os.strerror(number))
