"""Opens what pods and users can touch: no wait, no link out of its root, no more bytes than asked.

Whatever a container can write to, or a user can put into a directory, may be a FIFO, a device, a
link to a file of the node, or of any size, and may change between two looks at it. So a file is
first opened as a place (O_PATH: nothing is read, no FIFO waits, no device notices), what it is is
asked of the descriptor, and only a regular file is then opened for reading, without waiting.
Paths below a root are walked part by part, from descriptor to descriptor; `PathBelow` is where such
a walk ended, and stays that file or directory whatever becomes of its name.

What must never happen here: a wait; a file outside the root; a directory made outside the root.
A filesystem whose server does not answer can still make any look at it wait.
Upstream: pkg/volume/util/subpath/subpath_linux.go, pkg/util/tail.
"""

from __future__ import annotations

import errno
import os
import stat
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Final

from msgspec import Struct

MAX_LINKS: Final = 40  # as the kernel's
_PLACE: Final = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_READ: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_CAREFUL: Final = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class NotRegularError(OSError):
    """Neither a regular file nor a directory: a FIFO, a socket, a device."""


class TooLargeError(OSError):
    """The file has more bytes than are read of it."""


class OutsideError(OSError):
    """The path, or a link in it, leads out of its root."""


# -- reading -----------------------------------------------------------------------------------


def read_whole(path: str | os.PathLike[str], limit_bytes: int, *, follow_links: bool) -> bytes:
    """A file of at most that many bytes. `follow_links`: the path may be, and lead through, links
    to anywhere; else its last part is no link. Raises OSError: `TooLargeError`, `NotRegularError`,
    IsADirectoryError and the like."""
    flags = os.O_PATH | os.O_CLOEXEC if follow_links else _PLACE
    place = os.open(path, flags)
    try:
        return read_place(place, limit_bytes, str(path))
    finally:
        os.close(place)


def holds(path: str, data: bytes) -> bool:
    """Whether the file holds exactly these bytes; a link does not."""
    try:
        return read_whole(path, len(data), follow_links=False) == data
    except OSError:
        return False


def open_regular(path: str, flags: int) -> int:
    """`os.open` for an opener of `open`: no link, nothing but a regular file, no wait. With O_CREAT
    one is made, with mode 0600, where nothing is. Raises OSError."""
    try:
        return _open_regular(path, flags)
    except FileNotFoundError:
        if not flags & os.O_CREAT:
            raise
    return _open_regular(path, flags)  # a file that was there has vanished between two looks


def _open_regular(path: str, flags: int) -> int:
    if flags & os.O_CREAT:
        try:
            return os.open(path, flags | os.O_EXCL | _CAREFUL, 0o600)
        except FileExistsError:
            if flags & os.O_EXCL:
                raise
    place = os.open(path, _PLACE)
    try:
        _check_regular(os.fstat(place).st_mode, path)
        careful = (flags & ~os.O_CREAT) | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
        return os.open(f"/proc/self/fd/{place}", careful)
    finally:
        os.close(place)


def write_in_place(path: str, data: bytes, mode: int) -> None:
    """Make the regular file hold these bytes and have that mode; one that is there keeps its
    inode, which containers may have mounted. The directory must be the kubelet's own. Raises
    OSError, also where there is a link or anything else."""
    file = open_regular(path, os.O_WRONLY | os.O_CREAT)
    with open(file, "wb") as target:
        os.ftruncate(file, 0)
        target.write(data)
        os.fchmod(file, mode)


def read_place(place: int, limit_bytes: int, path: str = "") -> bytes:
    """The same of a descriptor (O_PATH), which stays open; `path` is for errors."""
    with _readable(place, path) as file:
        data = bytearray()
        while chunk := os.read(file, limit_bytes + 1 - len(data)):
            data += chunk
            if len(data) > limit_bytes:
                text = f"File is larger than {limit_bytes} bytes"
                raise TooLargeError(errno.EFBIG, text, path)
        return bytes(data)


def read_tail(path: str, limit_bytes: int, trusted: Iterable[str] = ()) -> bytes:
    """The last bytes of a file, at most that many; no part of its path may be a link, but for those
    of the directories that are `trusted`, where the path begins with one. Raises OSError."""
    root = _trusted_root(path, trusted)
    with opened_below(root, os.path.relpath(path, root), links=False) as place:
        return place.tail(limit_bytes)


def fingerprint(path: str) -> tuple[int, ...]:
    """Which file has that name and when it was changed last, without opening it: as long as this is
    the same, so are its bytes. Nothing where there is no file, or none that can be seen."""
    try:
        seen = os.stat(path, follow_symlinks=False)
    except (OSError, ValueError):
        return ()
    return (seen.st_dev, seen.st_ino, seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns)


def open_log(path: str, trusted: Iterable[str] = ()) -> int:
    """A descriptor for reading of a regular file, found as by `read_tail`; the caller closes it.
    Raises OSError."""
    root = _trusted_root(path, trusted)
    with opened_below(root, os.path.relpath(path, root), links=False) as place:
        _check_regular(os.fstat(place.descriptor).st_mode, path)
        return os.open(f"/proc/self/fd/{place.descriptor}", _READ)


def open_below(root: str, path: str) -> int:
    """A descriptor for reading of the regular file or directory that `path` is below `root`; links
    are followed as long as they stay below it. The caller closes it. Raises OSError (`OutsideError`
    for what leads out), and ValueError for a path that holds a zero byte."""
    with opened_below(root, path) as place:
        if not place.is_directory:
            _check_regular(os.fstat(place.descriptor).st_mode, path)
        return os.open(f"/proc/self/fd/{place.descriptor}", _READ)


def _trusted_root(path: str, trusted: Iterable[str]) -> str:
    return max((t for t in trusted if path.startswith(f"{t.rstrip('/')}/")), key=len, default="/")


@contextmanager
def _readable(place: int, path: str) -> Iterator[int]:
    """A descriptor for reading of the same file."""
    _check_regular(os.fstat(place).st_mode, path)
    file = os.open(f"/proc/self/fd/{place}", _READ)
    try:
        yield file
    finally:
        os.close(file)


def _check_regular(mode: int, path: str) -> None:
    if stat.S_ISLNK(mode):
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if not stat.S_ISREG(mode):
        raise NotRegularError(errno.EINVAL, "Not a regular file", path)


@contextmanager
def opened_place(name: str, *, dir_fd: int | None = None) -> Iterator[int]:
    """A descriptor (O_PATH) of what has the name in the directory `dir_fd`, or of a path whose
    directories are the kubelet's own: of the thing itself, be it a link. Raises OSError."""
    place = os.open(name, _PLACE, dir_fd=dir_fd)
    try:
        yield place
    finally:
        os.close(place)


def change_group(place: int, group: int) -> None:
    """Give what was opened with O_PATH to the group; of a link the link itself. Raises OSError."""
    os.chown(f"/proc/self/fd/{place}", -1, group)


def change_mode(place: int, mode: int) -> None:
    """Change the mode of what was opened with O_PATH, and is no link. Raises OSError."""
    os.chmod(f"/proc/self/fd/{place}", mode)


# -- walking -----------------------------------------------------------------------------------


class PathBelow(Struct, frozen=True):
    """What a walk came to. `descriptor`: opened with O_PATH, closed with the walk; `path`: where
    that was, links replaced."""

    descriptor: int
    path: str

    @property
    def is_directory(self) -> bool:
        return stat.S_ISDIR(os.fstat(self.descriptor).st_mode)

    def read(self, limit_bytes: int) -> bytes:
        """The whole file; raises like `read_whole`."""
        return read_place(self.descriptor, limit_bytes, self.path)

    def tail(self, limit_bytes: int) -> bytes:
        """The last bytes, at most that many. Raises OSError."""
        with _readable(self.descriptor, self.path) as file:
            size = os.fstat(file).st_size
            return os.pread(file, limit_bytes, max(0, size - limit_bytes))


@contextmanager
def opened_below(
    root: str | os.PathLike[str],
    path: str,
    *,
    links: bool = True,
    make_mode: int | None = None,
) -> Iterator[PathBelow]:
    """Walk from `root`, which may be or lead through links, to `path` below it.

    `links`: those below the root are followed as long as they stay below it; else they are
    refused. `make_mode`: directories of `path` that are missing are made with that mode, whatever
    the umask is; where a link leads must be there. Raises OSError: `OutsideError` for what leads
    out of the root, FileNotFoundError, NotADirectoryError, ELOOP. Raises ValueError for a path that
    holds a zero byte.
    """
    top = os.path.realpath(root)
    parts = _split(path, path)
    with ExitStack() as stack:
        fd = os.open(top, os.O_PATH | os.O_CLOEXEC | (os.O_DIRECTORY if parts else 0))
        stack.callback(os.close, fd)
        walk = _Walk(
            stack, top, path, [fd], names=[], left=deque(parts), links=links, make_mode=make_mode
        )
        walk.go()
        yield PathBelow(walk.fds[-1], os.path.join(top, *walk.names))


@dataclass(slots=True)
class _Walk:
    """A walk under way: `fds` and `names` of the parts walked through, from the root on; `left` are
    those still to come, of which the first `of_links` were not asked for, but are where links lead.
    """

    held: ExitStack  # closes the descriptors at the end
    top: str  # the root, without links
    wanted: str  # the path that was asked for, for errors
    fds: list[int]  # of the parts walked through, from the root on
    names: list[str]  # of the same parts, without the root
    left: deque[str]  # the parts still to come
    links: bool  # links are followed
    make_mode: int | None  # of directories that are made where there are none; None: none is
    links_seen: int = 0  # how many were followed: the kernel allows 40
    of_links: int = 0  # how many of `left` come from links, and were not asked for

    def go(self) -> None:
        while self.left:
            part = self.left.popleft()
            asked_for = self.of_links == 0
            self.of_links -= not asked_for
            if part == "..":
                self._up()
            else:
                self._down(part, may_make=asked_for)

    def _up(self) -> None:
        """Only links lead up."""
        if not self.names:
            raise _outside(self.wanted, self.top)
        self.names.pop()
        self.fds.pop()

    def _down(self, part: str, *, may_make: bool) -> None:
        fd = self._open(part, self.make_mode if may_make else None)
        self.held.callback(os.close, fd)
        mode = os.fstat(fd).st_mode
        if stat.S_ISLNK(mode):
            self._follow(fd)
            return
        if self.left and not stat.S_ISDIR(mode):
            text = os.strerror(errno.ENOTDIR)
            raise NotADirectoryError(errno.ENOTDIR, text, os.path.join(self.top, *self.names, part))
        self.fds.append(fd)
        self.names.append(part)

    def _open(self, part: str, make_mode: int | None) -> int:
        above = self.fds[-1]
        try:
            return os.open(part, _PLACE, dir_fd=above)
        except FileNotFoundError:
            if make_mode is None:
                raise
        os.mkdir(part, make_mode, dir_fd=above)
        descriptor = os.open(part, _PLACE | os.O_DIRECTORY, dir_fd=above)
        try:
            os.chmod(f"/proc/self/fd/{descriptor}", make_mode)  # the umask took bits away
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    def _follow(self, link: int) -> None:
        self.links_seen += 1
        if not self.links or self.links_seen > MAX_LINKS:
            path = os.path.join(self.top, self.wanted)
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
        target = os.readlink("", dir_fd=link)
        if target.startswith("/"):
            if target != self.top and not target.startswith(f"{self.top}/"):
                raise _outside(self.wanted, self.top)
            target = target[len(self.top) :]
            del self.names[:], self.fds[1:]
        parts = [part for part in target.split("/") if part not in ("", ".")]
        self.left.extendleft(reversed(parts))
        self.of_links += len(parts)


def _split(path: str, shown: str) -> list[str]:
    """The parts of a relative path; raises `OutsideError` for one that leads up or is absolute."""
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if path.startswith("/") or ".." in parts:
        raise OutsideError(errno.EXDEV, "Path must stay below its root", shown)
    return parts


def _outside(path: str, root: str) -> OutsideError:
    return OutsideError(errno.EXDEV, f"Path leads out of {root}", path)
