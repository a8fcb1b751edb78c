"""The process that libfuse runs in. It passes every file operation on to the owner of the CgroupFS.

`mount` starts it with a socket; each request and each answer is one message, written by `marshal`:
both ends are the same Python, and a library for messages takes longer to import than all the rest.
The process ends, and the mount with it, on SIGTERM, on the death of its parent, or after an
unmount. It makes up no answer: all come from the other end. Those about directories and attributes
are kept until the other end has counted up a number, which it does when any of them may have
changed; and what follows the end of a file is its end.

It is run by its path and imports nothing of this package, to start fast.
"""

from __future__ import annotations

import ctypes
import errno
import marshal
import mmap
import os
import signal
import socket
import sys
from typing import Any

try:
    import mfusepy
except OSError as error:  # the module is there, the library that it works with is not
    raise ImportError(f"{error}; install libfuse (Debian: libfuse3-3)") from error

MESSAGE_BYTES = 1 << 18
CHUNK_BYTES = 1 << 16
"""The most bytes of a file in one message."""
_PR_SET_PDEATHSIG = 1
_PATIENCE_S = 30.0
"""An owner that does not answer for so long waits for its own mount; then the mount ends."""


class _Operations(mfusepy.Operations):  # type: ignore[misc]
    """The operations that libfuse calls, passed on. Names, arguments and results are libfuse's."""

    use_ns = True
    flag_nopath = True
    flag_nullpath_ok = True

    def __init__(self, owner: socket.socket, count: memoryview) -> None:
        self._owner = owner
        self._count = count
        self._kept_at = -1
        self._kept: dict[tuple[str, str], tuple[int, Any]] = {}
        self._directories: dict[int, str] = {}
        self._last = 0
        self._ends: dict[int, int] = {}
        """Open file -> where a read found its end."""

    def _tell(self, operation: str, *arguments: Any) -> None:
        self._owner.send(marshal.dumps((operation, arguments)))

    def _ask(self, operation: str, *arguments: Any) -> Any:
        return _result(*self._answer(operation, *arguments))

    def _about(self, operation: str, path: str) -> Any:
        """What does not change until the number is counted up."""
        counted = self._count[0]
        if counted != self._kept_at:
            self._kept.clear()
            self._kept_at = counted
        answer = self._kept.get((operation, path))
        if answer is None:
            answer = self._list(path) if operation == "readdir" else self._answer(operation, path)
            self._kept[operation, path] = answer
        return _result(*answer)

    def _list(self, path: str) -> tuple[int, Any]:
        """All of a directory, which comes in parts."""
        names: list[Any] = []
        while True:
            code, part = self._answer("readdir", path, len(names))
            if code or not part:
                return code, names
            names += part

    def _answer(self, operation: str, *arguments: Any) -> tuple[int, Any]:
        self._tell(operation, *arguments)
        try:
            answer = self._owner.recv(MESSAGE_BYTES)
        except TimeoutError:
            self._owner.close()
            mfusepy.fuse_exit()
            answer = b""
        if not answer:
            raise OSError(errno.ENODEV, os.strerror(errno.ENODEV))
        code, result = marshal.loads(answer)
        return code, result

    def init(self, path: str) -> None:
        signal.alarm(0)
        self._ask("mounted")

    def getattr(self, path: str | None, info: Any = None) -> dict[str, int]:
        if path is None:
            raise OSError(errno.ENOENT, os.strerror(errno.ENOENT))
        return {**self._about("getattr", path), "st_uid": os.getuid(), "st_gid": os.getgid()}

    def readlink(self, path: str) -> str:
        """Asked each time: a link may lead elsewhere for each one that follows it."""
        target: str = self._ask("readlink", path)
        return target

    def opendir(self, path: str) -> int:
        """Remember the path: with nullpath_ok `readdir` is called without one."""
        self._last += 1
        self._directories[self._last] = path
        return self._last

    def releasedir(self, path: str | None, handle: int) -> int:
        del self._directories[handle]
        return 0

    def readdir(self, path: str | None, handle: int) -> list[Any]:
        names = self._about("readdir", self._directories[handle])
        return [".", "..", *((name, {"st_mode": mode}, 0) for name, mode in names)]

    def mkdir(self, path: str, mode: int) -> int:
        return self._ask("mkdir", path) or 0

    def rmdir(self, path: str) -> int:
        return self._ask("rmdir", path) or 0

    def rename(self, old: str, new: str) -> int:
        return self._ask("rename", old, new) or 0

    def unlink(self, path: str) -> int:
        return self._ask("unlink", path) or 0

    def open(self, path: str, info: Any) -> int:
        info.fh, info.direct_io = self._ask("open", path), 1
        return 0

    def create(self, path: str, mode: int, info: Any) -> int:
        info.fh, info.direct_io = self._ask("create", path), 1
        return 0

    def read(self, path: str | None, size: int, offset: int, info: Any) -> bytes:
        if offset and self._ends.get(info.fh) == offset:
            return b""
        most = min(size, CHUNK_BYTES)
        chunk: bytes = self._ask("read", info.fh, most, offset)
        if len(chunk) < most:
            self._ends[info.fh] = offset + len(chunk)
        return chunk

    def write(self, path: str | None, data: bytes, offset: int, info: Any) -> int:
        """Pass on at most a message: the fake refuses longer writes (E2BIG), and their beginning
        alike."""
        _, _, pid = mfusepy.fuse_get_context()
        self._ends.pop(info.fh, None)
        self._ask("write", info.fh, data[:CHUNK_BYTES], pid)
        return len(data)

    def release(self, path: str | None, info: Any) -> int:
        self._ends.pop(info.fh, None)
        self._tell("release", info.fh)
        return 0

    def truncate(self, path: str | None, length: int, info: Any = None) -> int:
        """Nothing to do: O_TRUNC has no effect on these files."""
        return 0

    def utimens(self, path: str | None, times: Any = None) -> int:
        """Nothing to do: these files have no times."""
        return 0


def _result(code: int, result: Any) -> Any:
    if code:
        raise OSError(code, os.strerror(code))
    return result


def main() -> None:
    """Run the mount. Arguments: the descriptors of the socket and of the file with the number, the
    directory, the id of the parent process, and how many seconds it may take."""
    number, counted, directory, parent = *map(int, sys.argv[1:3]), sys.argv[3], int(sys.argv[4])
    signal.alarm(int(sys.argv[5]))
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:
        return
    options: dict[str, Any] = {"attr_timeout": 0, "entry_timeout": 0, "negative_timeout": 0}
    if os.geteuid() == 0:
        options["allow_other"] = True
    if mfusepy.fuse_version_major == 2:
        options["big_writes"] = True  # else a write comes in pieces, and each is a command
    with socket.socket(fileno=number) as owner:
        owner.settimeout(_PATIENCE_S)
        mfusepy.FUSE(
            _Operations(owner, memoryview(mmap.mmap(counted, 8, prot=mmap.PROT_READ)).cast("Q")),
            directory,
            raw_fi=True,
            foreground=True,
            nothreads=True,
            fsname="fakecri",
            subtype="cgroupfs",
            default_permissions=True,
            **options,
        )


if __name__ == "__main__":
    main()
