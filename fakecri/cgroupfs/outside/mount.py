"""`mount`: a CgroupFS as a real mount, for other processes, by FUSE; `mount_requests`: any files.

libfuse blocks, so it runs in a process of its own (`fuse_process`) and asks over a socket; the fake
stays where it is, on this loop. A process that opens a file of the mount waits for this loop. What
must never happen here: the loop's own thread opens one (nor `cwd=` of a subprocess, for whose
change of directory the thread waits): they wait for each other until `fuse_process` gives up. Needs
Linux with /dev/fuse, libfuse (2.9 or 3), the extra `[fuse]`, and root or fusermount.
"""

from __future__ import annotations

import asyncio
import ctypes.util
import errno
import importlib.util
import marshal
import os
import shutil
import signal
import socket
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, closing, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

from fakecri.cgroupfs.filesystem import CgroupFS
from fakecri.cgroupfs.outside.adoption import Adoption
from fakecri.cgroupfs.outside.count import Count
from fakecri.cgroupfs.outside.errors import OutsideError, require_empty
from fakecri.cgroupfs.outside.requests import Requests
from simclock.loop_thread import LoopThread

T = TypeVar("T")
find_library: Final = cache(ctypes.util.find_library)
"""Looks once for each name: that runs other programs."""
_DEVICE: Final = "/dev/fuse"
_PROGRAM: Final = str(Path(__file__).with_name("fuse_process.py"))
"""By its path: it needs nothing else of this package, and starts faster without."""
_MESSAGE_BYTES: Final = 1 << 18
_START_S: Final = 20
"""Real seconds; the process itself counts them, since the time of a loop may be another."""
_STOP_S: Final = 10.0


class Answering(Protocol):
    """What does file operations; `requests.Requests` is one."""

    def answer(self, operation: str, *arguments: Any) -> Any:
        """The result of one operation. Raises OSError as the kernel does."""
        ...

    def on_structure(self, told: Callable[[], None]) -> None:
        """From now on call `told` when directories or files have come or gone: what `getattr` and
        `readdir` answered before may be wrong after that, and only after that."""
        ...

    def close(self) -> None:
        """Close the files that other processes left open."""
        ...


class Mount:
    """A mounted fake. `directory`: where; `wait_unmounted` returns once it has been unmounted."""

    def __init__(self, directory: Path, process: Process) -> None:
        self.directory = directory
        self._process = process

    async def wait_unmounted(self) -> None:
        await self._process.wait()


@asynccontextmanager
async def mount(
    fs: CgroupFS, directory: str | Path, *, real_processes: bool = False
) -> AsyncIterator[Mount]:
    """Mount `fs` at an empty directory until the block ends.

    `real_processes`: processes of this machine may be written into cgroup.procs; they leave when
    they end, and cgroup.kill and the OOM killer of the fake kill them for real. Without it only
    processes of the fake exist. Raises OutsideError, with the reason in one line, where it cannot
    be mounted.
    """
    adoption = Adoption(fs) if real_processes else None
    try:
        async with mount_requests(Requests(fs, adoption), directory) as mounted:
            yield mounted
    finally:
        if adoption is not None:
            adoption.close()


@asynccontextmanager
async def mount_requests(requests: Answering, directory: str | Path) -> AsyncIterator[Mount]:
    """Mount what `requests` answers at an empty directory until the block ends, and close it. All
    is asked on the running loop. Raises OutsideError, as `mount` does."""
    at = Path(directory).absolute()
    require_empty(at, "mount")
    _require_fuse()
    own_end, other_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    loop = asyncio.get_running_loop()
    mounted = asyncio.Event()
    try:
        with own_end, other_end, closing(Count.create()) as structure:
            requests.on_structure(structure.add)
            own_end.setblocking(False)
            process = await _start(other_end, structure, at)
            loop.add_reader(own_end, _serve, own_end, requests, mounted)
            try:
                other_end.close()
                await _until_mounted(process, mounted, at)
                yield Mount(at, process)
            finally:
                await _stop(process)
                loop.remove_reader(own_end)
    finally:
        requests.close()


@contextmanager
def mount_in_background(
    fs: CgroupFS, directory: str | Path, *, real_processes: bool = False
) -> Iterator[Callable[[Callable[[], T]], T]]:
    """The same for code without a loop: `fs` lives on a loop in a thread until the block ends.

    The block gets a function that runs others in that thread, the only place where `fs` may be
    used: `run(lambda: fs.spawn("/pods"))`. Raises OutsideError.
    """
    thread = LoopThread(asyncio.new_event_loop())
    mounting = mount(fs, directory, real_processes=real_processes)
    try:
        thread.run(mounting.__aenter__)
        try:
            yield thread.run
        finally:
            thread.run(lambda: mounting.__aexit__(None, None, None))
    finally:
        thread.stop()


def why_no_mount() -> str:
    """What this machine lacks for `mount`, in a sentence that says what to install; "": nothing.

    For tests: `pytest.mark.skipif(bool(why_no_mount()), reason=why_no_mount())`.
    """
    if importlib.util.find_spec("mfusepy") is None:
        return "the Python module mfusepy is missing; pip install 'refkubelet[fuse]'"
    if not os.path.exists(_DEVICE):
        return f"{_DEVICE} is missing: this machine has no FUSE"
    if not os.access(_DEVICE, os.R_OK | os.W_OK):
        return f"{_DEVICE} may not be opened by this user"
    if not _library():
        return "libfuse is missing; install it (Debian: apt-get install libfuse3-3)"
    if os.geteuid() != 0 and not (shutil.which("fusermount3") or shutil.which("fusermount")):
        return "fusermount is missing; run as root, or install it (Debian: apt-get install fuse3)"
    return ""


def _library() -> str:
    """The path or name of libfuse, as `mfusepy` finds it; "": this machine has none."""
    if path := os.environ.get("FUSE_LIBRARY_PATH"):
        return path
    named = os.environ.get("FUSE_LIBRARY_NAME")
    candidates = (find_library(name) for name in ([named] if named else ["fuse", "fuse3"]))
    return next(filter(None, candidates), "")


def _require_fuse() -> None:
    if lacks := why_no_mount():
        raise OutsideError(f"mount: {lacks}, or use plain files (fakecri cgroupfs project)")


async def _start(theirs: socket.socket, structure: Count, at: Path) -> Process:
    descriptors = [theirs.fileno(), structure.fd]
    words = (*descriptors, at, os.getpid(), _START_S)
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", _PROGRAM, *map(str, words)),
        pass_fds=descriptors,
        stderr=PIPE,
        env={**os.environ, "FUSE_LIBRARY_PATH": _library()},
    )


def _serve(ours: socket.socket, requests: Answering, mounted: asyncio.Event) -> None:
    """Answer one request; nobody waits for the answer to `release`."""
    message = ours.recv(_MESSAGE_BYTES)
    if not message:  # it ended
        asyncio.get_running_loop().remove_reader(ours)
        return
    operation, arguments = marshal.loads(message)
    if operation == "release":
        with suppress(OSError):
            requests.answer(operation, *arguments)
        return
    answer: tuple[int, Any] = (errno.EIO, None)
    try:
        if operation == "mounted":
            mounted.set()
            answer = (0, None)
        else:
            answer = (0, requests.answer(operation, *arguments))
    except OSError as error:
        answer = (error.errno or errno.EIO, None)
    finally:  # whatever happened: the process that asked cannot be killed while it waits
        with suppress(BrokenPipeError):
            ours.send(marshal.dumps(answer))


async def _until_mounted(process: Process, mounted: asyncio.Event, at: Path) -> None:
    waits = [asyncio.ensure_future(w) for w in (mounted.wait(), process.wait())]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()
    if mounted.is_set():
        return
    if process.returncode == -signal.SIGALRM:
        raise OutsideError(f"mount {at}: not there after {_START_S} s; is the machine busy?")
    assert process.stderr is not None
    error_text = (await process.stderr.read()).decode(errors="replace").strip()
    reason = error_text.splitlines()[-1] if error_text else f"exit code {process.returncode}"
    reason = reason.removeprefix("OSError: ").removeprefix("ImportError: ")
    raise OutsideError(f"mount {at}: {reason}{_hint(reason)}")


def _hint(reason: str) -> str:
    if "fusermount" in reason:
        return "; run as root, or install fusermount (Debian: fuse3)"
    return ""


async def _stop(process: Process) -> None:
    """End the process. libfuse unmounts on SIGTERM even while other processes use the mount."""
    with suppress(ProcessLookupError):
        process.send_signal(signal.SIGTERM)
    try:
        await asyncio.wait_for(process.communicate(), _STOP_S)
    except TimeoutError:
        process.kill()
        await process.communicate()
