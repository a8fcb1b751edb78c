"""Goes through all that is below a directory, of any depth and size, while a container changes it.

How it works. From descriptor to descriptor: an entry is looked at where it lies, a directory is
opened there (O_DIRECTORY and O_NOFOLLOW: the kernel refuses anything else before it opens it), and
no path is looked up twice. Of the directories between the top and the place only the `WINDOW`
deepest are open; of one that is shut the entries are handed out at once, and the names of its
directories are kept. The way back leads through `..`, which must be the very directory that the
walk came through; one that was moved meanwhile is left, with all that is still to come in it.

What must never happen here: a link is followed, a wait, recursion, a number of descriptors or an
amount of memory that grows with what a container has made.
Upstream walks with paths: pkg/volume/volume_linux.go: walkDeep; pkg/volume/util/fsquota/common.
"""

from __future__ import annotations

import errno
import os
import stat
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from typing import Any, Final

WINDOW: Final = 8
"""How many directories are open at a time, with two descriptors each."""
MOST_ENTRIES: Final = 20_000_000
MOST_KEPT_BYTES: Final = 64 * 1024 * 1024
"""Of names of directories that are still to come."""
_KEPT_BYTES: Final = 60  # of an object beside its letters
_LONGEST_SHOWN: Final = 200
DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_VANISHED: Final = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP}  # of an entry that is another by now

Refused = Callable[[str, OSError], None]
"""Is told of what could not be looked at: its path below the top, empty for the top, and why."""


@dataclass(frozen=True, slots=True)
class Met:
    """An entry. `above`: a descriptor of the directory in which `name` is, good until the next
    entry is asked for; `status`: of the entry itself, links not followed; `level`: the directory
    in a walk, None at its top."""

    name: str
    above: int
    status: os.stat_result
    level: _Level | None = field(default=None, repr=False, compare=False)

    @property
    def is_directory(self) -> bool:
        return stat.S_ISDIR(self.status.st_mode)

    @property
    def path(self) -> str:
        """The path below the top of the walk, as the walk went: for logs, not for looking up."""
        return self.name if self.level is None else self.level.path(self.name)


def _anywhere(status: os.stat_result) -> bool:
    return True


def _ignored(path: str, error: OSError) -> None:
    """A `Refused` that keeps it to itself: for callers that leave out what cannot be looked at."""


def walked(
    top: int,
    *,
    enters: Callable[[os.stat_result], bool] = _anywhere,
    refused: Refused = _ignored,
    most_entries: int = MOST_ENTRIES,
    most_kept_bytes: int = MOST_KEPT_BYTES,
) -> Iterator[Met]:
    """All that is below the directory `top`, a descriptor that stays open, without itself; a
    directory comes before what is in it.

    `enters`: whether to go into a directory with that status. Raises OSError (EFBIG) after
    `most_entries`, and when names of directories take more than `most_kept_bytes`; also if the top
    cannot be read.
    """
    walk = _Walk(top, enters, refused, most_kept_bytes)
    with closing(walk):
        for number, met in enumerate(walk.entries()):
            if number >= most_entries:
                raise too_many(f"more than {most_entries} entries")
            yield met


def too_many(what: str) -> OSError:
    """The error for a tree that is larger than anything that is gone through."""
    return OSError(errno.EFBIG, f"Too much to go through: {what}")


def shown_path(path: str) -> str:
    """A path for a log: one line, no more of it than anybody reads, its end rather than its
    beginning.

    >>> shown_path("a\\nb"), len(shown_path("d/" * 5000))
    ("'a\\\\nb'", 201)
    """
    if len(path) > _LONGEST_SHOWN:
        path = "…" + path[-_LONGEST_SHOWN:]
    return path if path.isprintable() else ascii(path)


class _Level:
    """A directory between the top and the place of the walk. `fd` None: it is shut, and `kept` has
    the names of directories that are still to come; `above` None: it is the top."""

    __slots__ = ("above", "entries", "fd", "identity", "kept", "name")

    def __init__(self, fd: int, name: str, above: _Level | None = None) -> None:
        """Takes `fd` over, also when it raises OSError."""
        self.name = name
        self.above = above
        self.fd: int | None = fd
        self.kept: deque[str] = deque()
        try:
            self.identity = _identity(os.fstat(fd))
            self.entries: Any = os.scandir(fd)
        except OSError:
            os.close(fd)
            raise

    def shut(self) -> None:
        if self.fd is not None:
            self.entries.close()
            os.close(self.fd)
            self.entries, self.fd = iter(()), None

    def reopen(self, fd: int) -> None:
        """Go on with the names that are kept. Takes `fd` over."""
        self.fd, self.entries = fd, _NoEntries()

    def path(self, *entry: str) -> str:
        """The path of the directory below the top, or of an entry in it."""
        names, level = [*entry], self
        while level.above is not None:
            names.insert(0, level.name)
            level = level.above
        return "/".join(names)


class _NoEntries:
    """In the place of `os.scandir`, for a directory of which all entries were handed out."""

    def __iter__(self) -> _NoEntries:
        return self

    def __next__(self) -> os.DirEntry[str]:
        raise StopIteration

    def close(self) -> None:
        """Nothing is open."""


class _Walk:
    def __init__(
        self,
        top: int,
        enters: Callable[[os.stat_result], bool],
        refused: Refused,
        most_kept_bytes: int,
    ) -> None:
        self._top = top
        self._enters = enters
        self._refused = refused
        self._room_bytes = most_kept_bytes
        self._levels = [_Level(os.open(".", DIRECTORY, dir_fd=top), "")]
        self._first_open = 0  # of the levels; those above it are shut

    def close(self) -> None:
        for level in self._levels:
            level.shut()

    def entries(self) -> Iterator[Met]:
        while self._levels:
            level = self._levels[-1]
            met = self._next(level)
            if met is not None:
                yield met
                name = met.name if self._goes_into(met) else None
            elif level.kept:
                name = self._taken(level)
            else:
                self._leave()
                continue
            if name is not None and self._enter(level, name):
                yield from self._shut_one()

    def _goes_into(self, met: Met) -> bool:
        return met.is_directory and self._enters(met.status)

    def _next(self, level: _Level) -> Met | None:
        """The next entry that is there; None: there is no other."""
        while True:
            try:
                entry = next(level.entries, None)
            except OSError as error:
                self._tell(level.path(), error)
                return None
            if entry is None:
                return None
            try:
                status = entry.stat(follow_symlinks=False)
            except OSError as error:
                self._tell(level.path(entry.name), error)
                continue
            above = level.fd if level.fd is not None else self._top
            return Met(entry.name, above, status, level)

    def _enter(self, above: _Level, name: str) -> bool:
        """Go into a directory, if it is one still."""
        try:
            fd = os.open(name, DIRECTORY, dir_fd=above.fd)
        except OSError as error:
            self._tell(above.path(name), error)
            return False
        if not self._enters(os.fstat(fd)):
            os.close(fd)
            return False
        try:
            self._levels.append(_Level(fd, name, above))
        except OSError as error:
            self._tell(above.path(name), error)
            return False
        return True

    def _leave(self) -> None:
        """Back to the directory above."""
        level = self._levels.pop()
        fd = level.fd
        assert fd is not None
        if self._levels and self._levels[-1].fd is None:
            above = self._levels[-1]
            try:
                above.reopen(self._above(fd, above))
            except OSError as error:
                self._tell(level.path(), error)
                self._back_to_the_top()
            self._first_open = len(self._levels) - 1
        level.shut()

    def _above(self, fd: int, above: _Level) -> int:
        """A descriptor of the directory that the walk came through. Raises OSError."""
        if len(self._levels) == 1:
            return os.open(".", DIRECTORY, dir_fd=self._top)
        descriptor = os.open("..", DIRECTORY, dir_fd=fd)
        if _identity(os.fstat(descriptor)) != above.identity:
            os.close(descriptor)
            raise OSError(errno.ESTALE, "Moved meanwhile")
        return descriptor

    def _back_to_the_top(self) -> None:
        for level in self._levels[1:]:
            self._room_bytes += sum(len(name) + _KEPT_BYTES for name in level.kept)
        del self._levels[1:]
        with suppress(OSError):
            self._levels[0].reopen(os.open(".", DIRECTORY, dir_fd=self._top))
            return
        self._levels.clear()

    def _shut_one(self) -> Iterator[Met]:
        """Shut the uppermost of the open directories, if too many are: its entries are handed out
        now. Raises OSError (EFBIG)."""
        if len(self._levels) - self._first_open <= WINDOW:
            return
        level = self._levels[self._first_open]
        self._first_open += 1
        while (met := self._next(level)) is not None:
            yield met
            if self._goes_into(met):
                level.kept.append(met.name)
                self._room_bytes -= len(met.name) + _KEPT_BYTES
                if self._room_bytes < 0:
                    raise too_many("the names of directories to come take too much memory")
        level.shut()

    def _taken(self, level: _Level) -> str:
        name = level.kept.popleft()
        self._room_bytes += len(name) + _KEPT_BYTES
        return name

    def _tell(self, path: str, error: OSError) -> None:
        if error.errno not in _VANISHED:
            self._refused(path, error)


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino
