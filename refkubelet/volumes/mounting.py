"""Mounts for volumes, in three variants: real ones, none, and those of a simulated node.

What must never happen here: a mount or unmount outside the directory of a pod; a mount that the
runtime does not see is used.
Upstream: k8s.io/mount-utils.
"""

from __future__ import annotations

import ctypes
import errno
import logging
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Protocol

from refkubelet.host.directories import is_mount_point, mount_points_below
from refkubelet.host.untrusted_files import PathBelow

log = logging.getLogger(__name__)

MS_BIND: Final = 0x1000
MNT_DETACH: Final = 2
UMOUNT_NOFOLLOW: Final = 8
DIRECTORY_MODE: Final = 0o750
FILE_MODE: Final = 0o640
_PEER: Final = 4  # bytes of a process id in SO_PEERCRED's answer


class Mounts(Protocol):
    """What volumes ask of the mount table."""

    def bind(self, place: PathBelow, target: str) -> str:
        """Bind `place` to `target`; returns the path to use, `target`, or that of `place` if it was
        not mounted. Raises OSError."""

    def tmpfs(self, directory: str, size_bytes: int) -> bool:
        """Mount a filesystem in memory of that size (0: the kernel's default); False: it is mounted
        already. Raises OSError."""

    def huge_pages(self, directory: str, page_bytes: int) -> bool:
        """Mount a filesystem of pages of that size; False: it is mounted already. Raises
        OSError."""

    def unmount_below(self, directory: str) -> None:
        """Unmount everything at or below the directory. Raises OSError."""


class NoMounts:
    """For a kubelet that may not mount, or whose mounts the runtime would not see. A container that
    writes into a volume could then replace a subpath between its check and CreateContainer."""

    def bind(self, place: PathBelow, target: str) -> str:
        """Where it was found."""
        return place.path

    def tmpfs(self, directory: str, size_bytes: int) -> bool:
        """Always an error."""
        text = "this kubelet cannot mount: it must be root, in the mount namespace of the runtime"
        raise OSError(errno.EPERM, text)

    def huge_pages(self, directory: str, page_bytes: int) -> bool:
        """Always an error."""
        return self.tmpfs(directory, 0)

    def unmount_below(self, directory: str) -> None:
        """Raise OSError if anything is mounted there, so that nothing is deleted through a
        mount."""
        if mount_points_below(directory):
            raise OSError(errno.EBUSY, f"something is mounted below {directory}")


class SimulatedMounts:
    """For a node with simulated containers: nothing is mounted, since no process would see it."""

    def bind(self, place: PathBelow, target: str) -> str:
        """Where it was found."""
        return place.path

    def tmpfs(self, directory: str, size_bytes: int) -> bool:
        """Use the plain directory."""
        return False

    def huge_pages(self, directory: str, page_bytes: int) -> bool:
        """Use the plain directory."""
        return False

    def unmount_below(self, directory: str) -> None:
        """Do nothing."""


class RealMounts:
    """Mounts in this process's mount namespace. `runtime_pid`: a process in the runtime's mount
    namespace; None: it is the same namespace."""

    def __init__(self, runtime_pid: int | None = None) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._runtime_pid = runtime_pid

    def bind(self, place: PathBelow, target: str) -> str:
        """Mount exactly the opened file or directory at `target` (NODE-211)."""
        if not _is_same(place.descriptor, target):
            self._unmount(target)
            _make_target(target, directory=place.is_directory)
            self._mount(f"/proc/self/fd/{place.descriptor}", target, None, MS_BIND, None)
        if self._runtime_sees(target):
            return target
        self._unmount(target)
        return place.path

    def tmpfs(self, directory: str, size_bytes: int) -> bool:
        """Mount a tmpfs, if there is none yet (NODE-203); without swap, if the kernel supports
        that."""
        return self._mounted(directory, lambda: self._mount_tmpfs(directory, size_bytes))

    def huge_pages(self, directory: str, page_bytes: int) -> bool:
        """Mount a hugetlbfs, if nothing is mounted there yet (NODE-203)."""
        options = f"pagesize={page_bytes}"
        return self._mounted(
            directory, lambda: self._mount("nodev", directory, "hugetlbfs", 0, options)
        )

    def _mounted(self, directory: str, mount: Callable[[], None]) -> bool:
        """Mount, unless something is mounted there; whether that was done. Raises OSError, also if
        the runtime does not see the mount."""
        is_new = not is_mount_point(directory)
        if is_new:
            mount()
        if not self._runtime_sees(directory):
            if is_new:
                self._unmount(directory)
            text = "the runtime does not see what this kubelet mounts: their namespaces differ"
            raise OSError(errno.EPERM, text)
        return is_new

    def _mount_tmpfs(self, directory: str, size_bytes: int) -> None:
        size = f"size={size_bytes}" if size_bytes > 0 else ""
        try:
            self._mount("tmpfs", directory, "tmpfs", 0, f"{size},noswap".lstrip(","))
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
            self._mount("tmpfs", directory, "tmpfs", 0, size)

    def unmount_below(self, directory: str) -> None:
        """Unmount all, the newest first."""
        for point in mount_points_below(directory):
            self._unmount(point)

    def _runtime_sees(self, target: str) -> bool:
        """Whether the mount is in the runtime's namespace; False once that process has ended."""
        if self._runtime_pid is None:
            return True
        table = Path(f"/proc/{self._runtime_pid}/mountinfo")
        try:
            return is_mount_point(target, table)
        except OSError as error:
            log.warning("cannot read the runtime's mounts: %s", error)
            return False

    def _mount(
        self, source: str, target: str, kind: str | None, flags: int, options: str | None
    ) -> None:
        self._check(self._libc.mount(*map(_c, (source, target, kind)), flags, _c(options)), target)

    def _unmount(self, target: str) -> None:
        """Detach a mount; one that is in use goes away with its last user."""
        try:
            self._check(self._libc.umount2(_c(target), MNT_DETACH | UMOUNT_NOFOLLOW), target)
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.ENOENT):  # not mounted, not there
                raise

    def _check(self, result: int, target: str) -> None:
        if result != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), target)


def mounts_for(endpoint: str) -> Mounts:
    """The mounts that work with the runtime behind a `unix://` endpoint: `RealMounts`, or
    `NoMounts` if this process is not root or cannot find the runtime's process."""
    if os.geteuid() != 0:
        return NoMounts()
    try:
        pid = _listener(endpoint.removeprefix("unix://"))
        same = os.path.samefile(f"/proc/{pid}/ns/mnt", "/proc/self/ns/mnt")
    except OSError as error:
        log.warning(
            "cannot find the mounts of the runtime at %s; nothing is mounted: %s", endpoint, error
        )
        return NoMounts()
    return RealMounts(None if same else pid)


def _listener(path: str) -> int:
    """The id of the process that listens at a socket. Raises OSError."""
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(1.0)
        client.connect(path)
        answer = client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 3 * _PEER)
    return int.from_bytes(answer[:_PEER], "little", signed=True)


def _c(text: str | None) -> Any:
    return None if text is None else os.fsencode(text)


def _is_same(descriptor: int, target: str) -> bool:
    """Whether the opened file is mounted at `target` already."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.lstat(target))
    except FileNotFoundError:
        return False


def _make_target(target: str, *, directory: bool) -> None:
    """Make an empty directory or file as the mount point."""
    os.makedirs(os.path.dirname(target), mode=DIRECTORY_MODE, exist_ok=True)
    if os.path.isdir(target) != directory:
        try:
            os.unlink(target)
        except IsADirectoryError:
            os.rmdir(target)
        except FileNotFoundError:
            pass
    if directory:
        os.makedirs(target, mode=DIRECTORY_MODE, exist_ok=True)
    else:
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, FILE_MODE))
