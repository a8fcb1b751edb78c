"""Paths into a CgroupFS, with the methods and the errors that pathlib.Path has for them."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from typing import Final, Protocol

from fakecri.cgroupfs.interface.open_file import OpenFile
from fakecri.cgroupfs.interface.tree import Cgroup, InterfaceFile
from fakecri.cgroupfs.interface.values import MAX_WRITE_BYTES, named, refuse
from fakecri.cgroupfs.usage import Places, UsedPlace
from fakecri.cgroupfs.walking import glob, pattern_parts, split
from kubeobjects.arguments import arguments_told

_MODES: Final = ("r", "w", "a", "r+", "w+", "a+", "rt", "wt", "at")
_PLAIN: Final = MAX_WRITE_BYTES // 4
"""So many characters never are more bytes than one write may have."""


class FileSystem(Places, Protocol):
    """What a path needs of its file system; `filesystem.CgroupFS` is one."""

    def path(self, path: str = "/") -> CgroupPath:
        """A path from the root."""


@arguments_told
class CgroupPath(UsedPlace[FileSystem]):
    """A place in the fake file system, there or not: pathlib's methods, and what `UsedPlace` adds.

    Errors are OSErrors with the kernel's errno; the path is their file name.
    """

    __slots__ = ()

    def __truediv__(self, name: str | os.PathLike[str]) -> CgroupPath:
        return CgroupPath(self.fs, (*self.parts, *split(name)))

    def joinpath(self, *names: str) -> CgroupPath:
        path = self
        for name in names:
            path = path / name
        return path

    def __repr__(self) -> str:
        return f"CgroupPath({str(self)!r})"

    def __fspath__(self) -> str:
        return str(self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CgroupPath) and self.fs is other.fs and self.parts == other.parts

    def __hash__(self) -> int:
        return hash(self.parts)

    def __lt__(self, other: CgroupPath) -> bool:
        return self.parts < other.parts

    @property
    def parent(self) -> CgroupPath:
        return CgroupPath(self.fs, self.parts[:-1])

    def with_name(self, name: str) -> CgroupPath:
        return CgroupPath(self.fs, (*self.parts[:-1], name))

    def glob(self, pattern: str) -> Iterator[CgroupPath]:
        """The paths below that fit a pattern such as `*/cgroup.procs`; `**` is any depth of
        directories. Raises ValueError for an empty or absolute pattern."""
        return glob(self, pattern_parts(pattern))

    def rglob(self, pattern: str) -> Iterator[CgroupPath]:
        """The paths at any depth below that fit a pattern."""
        return glob(self, ("**", *pattern_parts(pattern)))

    def is_dir(self) -> bool:
        return not isinstance(self._found(), InterfaceFile | None)

    def is_file(self) -> bool:
        return isinstance(self._found(), InterfaceFile)

    def exists(self) -> bool:
        return self._found() is not None

    def iterdir(self) -> Iterator[CgroupPath]:
        """The files in a directory, then the directories. Raises ENOENT, ENOTDIR."""
        with self._errors():
            if self.is_file():
                raise refuse(errno.ENOTDIR)
            entity = self._need()
            if isinstance(entity, Cgroup):
                names = [*entity.file_names(), *entity.children]
            else:
                names = list(self.fs.mounts)
        return iter([CgroupPath(self.fs, (*self.parts, name)) for name in names])

    def mkdir(self, mode: int = 0o777, *, parents: bool = False, exist_ok: bool = False) -> None:
        """Make a cgroup. `mode` has no effect: root may do everything (CG-100)."""
        try:
            with self._errors():
                self._parent().mkdir(self.name)
        except FileNotFoundError:
            if not parents or not self.parts:
                raise
            self.parent.mkdir(mode, parents=True, exist_ok=True)
            self.mkdir(mode, exist_ok=exist_ok)
        except FileExistsError:
            if not exist_ok or not self.is_dir():
                raise

    def rmdir(self) -> None:
        """Remove a cgroup. Raises EBUSY with groups or live processes in it (CG-102)."""
        with self._errors():
            entity = self._need()
            if isinstance(entity, InterfaceFile):
                raise refuse(errno.ENOTDIR)
            if not isinstance(entity, Cgroup):
                raise refuse(errno.EBUSY)
            entity.rmdir()

    def rename(self, target: CgroupPath | str) -> CgroupPath:
        """Rename a cgroup, within its directory, with v1 only (CG-101). `target`: a path, or a text
        from the root on."""
        target = self.fs.path(target) if isinstance(target, str) else target
        with self._errors():
            parent = target._parent()
            entity = self._need()
            if target != self and target.parts[: len(self.parts)] == self.parts:
                raise refuse(errno.EINVAL)
            if target != self and self.parts[: len(target.parts)] == target.parts:
                raise refuse(errno.ENOTEMPTY)
            if isinstance(entity, InterfaceFile):
                raise refuse(
                    errno.ENOTDIR if self._parent().hierarchy.version == 1 else errno.EPERM
                )
            if target != self:
                self._cgroup().rename(parent, target.name)
        return target

    def unlink(self) -> None:
        """Never allowed: EPERM for a file, EISDIR for a directory (CG-101)."""
        with self._errors():
            raise refuse(errno.EPERM if isinstance(self._need(), InterfaceFile) else errno.EISDIR)

    def stat(self) -> os.stat_result:
        """Kind, mode, links and size. Everything belongs to root; times are 0 (CG-100)."""
        entity = self._found()
        if entity is None:
            with self._errors():
                entity = self._need()
        if isinstance(entity, InterfaceFile):
            return os.stat_result((stat.S_IFREG | entity.mode, 0, 0, 1, 0, 0, 0, 0, 0, 0))
        links = 2 + (len(entity.children) if isinstance(entity, Cgroup) else len(self.fs.mounts))
        return os.stat_result((stat.S_IFDIR | 0o755, 0, 0, links, 0, 0, 0, 0, 0, 0))

    def open(self, mode: str = "r+", *, create: bool = False) -> OpenFile:
        """Open a file, to read it again, poll it, wait for changes or set a trigger.

        `mode` is that of pathlib for text (r, w, a, with or without +); root may do all of it.
        `create`, or a mode of w or a, stands for O_CREAT: EACCES for a name that is not there
        (CG-101).
        """
        if mode not in _MODES:
            raise ValueError(f"mode: wanted one of {', '.join(_MODES)}, got {mode!r}")
        create = create or mode[0] != "r"
        self.fs.before_use()
        with self._errors():
            entity = self._found()
            if entity is None and create and self._parent():
                raise refuse(errno.EACCES)
            entity = self._need()
            if not isinstance(entity, InterfaceFile):
                raise refuse(errno.EISDIR)
            return OpenFile(self.fs, self._parent(), entity, str(self))

    def read_text(self, encoding: str | None = None, errors: str | None = None) -> str:
        """The text of a file. The arguments are those of pathlib; every file is ASCII."""
        self.fs.before_use()
        interface = self.fs.file_at(self.parts)
        if interface is not None and interface[1].read is not None:  # as nearly always
            try:
                return interface[1].read(interface[0])
            except OSError as error:
                raise named(error, str(self)) from None
        with self.open() as opened:
            return opened.read()

    def read_bytes(self) -> bytes:
        return self.read_text().encode()

    def write_text(self, data: str, encoding: str | None = None, errors: str | None = None) -> int:
        """Write a text with one write(2); "" does nothing. Returns the number of characters."""
        self.fs.before_use()
        interface = self.fs.file_at(self.parts)
        if interface is not None and interface[1].write is not None and 0 < len(data) < _PLAIN:
            try:
                interface[1].write(interface[0], data.partition("\0")[0])
            except OSError as error:
                raise named(error, str(self)) from None
            return len(data)
        with self.open(create=True) as opened:
            return opened.write(data)

    def write_bytes(self, data: bytes) -> int:
        return self.write_text(data.decode())

    def watch(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call `callback` whenever the kernel says that a file has changed; returns what ends that.

        Such files are cgroup.events, memory.events, pids.events and the hugetlb events. It is
        called, too, when the group is removed.
        """
        with self._errors():
            if not self.is_file():
                raise refuse(errno.ENOENT if not self.exists() else errno.EISDIR)
            watchers = self._parent().watchers.setdefault(self.name, [])
        watchers.append(callback)
        return lambda: watchers.remove(callback)
