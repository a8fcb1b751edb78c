"""Answers system calls of another process: seccomp's user notifications.

A process that was started by `launcher` has a filter by which a few calls of it, and of its
children, wait until this loop has answered: statfs, for the sizes of disks and the types of file
systems; kill and pidfd_open, because processes that it finds in the fake's cgroups are no processes
of this machine. What must never happen here: a call is left without an answer, or a signal reaches
a process that is not the program's own.
"""

from __future__ import annotations

import array
import asyncio
import errno
import fcntl
import os
import socket
import struct
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol

from kubelet_conformance.harness.machines.given.launcher import numbers_of_this_machine

_NOTIFICATION: Final = struct.Struct("=QIIiIQ6Q")
_RESPONSE: Final = struct.Struct("=QqiI")
_RECEIVE: Final = 0xC0502100
_SEND: Final = 0xC0182101
_STILL_WAITS: Final = 0x40082102
_CONTINUE: Final = 1
_PAGE: Final = 4096
_LONGEST_PATH: Final = 4096


class Kernel(Protocol):
    """What a given machine says instead of the kernel."""

    def statfs(self, path: str) -> bytes | None:
        """The structure that statfs fills in; None: what the kernel says. Raises OSError."""

    def has_process(self, pid: int) -> bool:
        """Whether a process of that number is in its cgroups."""

    def kill(self, pid: int) -> None:
        """End that process of its cgroups."""


class CallAnswers:
    """Listens at a socket for processes that `launcher` starts, and answers their calls as `kernel`
    does, on the running loop, until `close`."""

    def __init__(self, at: Path, kernel: Kernel) -> None:
        self._kernel = kernel
        self._loop = asyncio.get_running_loop()
        self._numbers = numbers_of_this_machine()
        self._listeners: set[int] = set()
        self._door = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        self._door.setblocking(False)
        self._door.bind(str(at))
        self._door.listen()
        self._loop.add_reader(self._door, self._accept)

    def close(self) -> None:
        """Answer no more: what is still asked fails with ENOSYS."""
        self._loop.remove_reader(self._door)
        self._door.close()
        for listener in list(self._listeners):
            self._forget(listener)

    def _accept(self) -> None:
        """A process is about to become the program: take its listener."""
        connection, _ = self._door.accept()
        with connection:
            connection.setblocking(True)
            _, ancillary, _, _ = connection.recvmsg(1, socket.CMSG_SPACE(4))
        for _, _, data in ancillary:
            for listener in array.array("i", data):
                self._listeners.add(listener)
                os.set_inheritable(listener, False)
                self._loop.add_reader(listener, self._serve, listener)

    def _forget(self, listener: int) -> None:
        self._listeners.discard(listener)
        self._loop.remove_reader(listener)
        os.close(listener)

    def _serve(self, listener: int) -> None:
        """Answer one call."""
        buffer = bytearray(_NOTIFICATION.size)
        try:
            fcntl.ioctl(listener, _RECEIVE, buffer)
        except InterruptedError:
            return
        except OSError:  # the call was interrupted and comes again, or no process is left
            if self._is_over(listener):
                self._forget(listener)
            return
        number, pid, _, call, _, _, *arguments = _NOTIFICATION.unpack(buffer)
        response = _RESPONSE.pack(number, 0, 0, _CONTINUE)
        try:
            if not self._does(listener, number, pid, call, arguments):
                return
            response = _RESPONSE.pack(number, 0, 0, 0)
        except OSError as error:
            response = _RESPONSE.pack(number, 0, -(error.errno or errno.EIO), 0)
        finally:
            with suppress(OSError):  # the process has gone on without: interrupted, or killed
                fcntl.ioctl(listener, _SEND, response)

    def _is_over(self, listener: int) -> bool:
        """Whether no process with the filter is left."""
        import select

        poll = select.poll()
        poll.register(listener, select.POLLIN)
        return any(event & select.POLLHUP for _, event in poll.poll(0))

    def _does(self, listener: int, number: int, pid: int, call: int, arguments: list[int]) -> bool:
        """Do the call for the process; False when the kernel is to do it. Raises OSError to refuse
        it."""
        first, second, *_ = arguments
        if call == self._numbers.kill:
            return self._kill(pid, _signed(first), second)
        if call == self._numbers.pidfd_open:
            if self._kernel.has_process(_signed(first)):
                raise PermissionError(errno.EPERM, "such processes have no descriptors")
            return False
        try:
            path = _path_in(pid, first) if call == self._numbers.statfs else _opened(pid, first)
            statfs = self._kernel.statfs(path)
            if statfs is not None:
                fcntl.ioctl(listener, _STILL_WAITS, struct.pack("=Q", number))
                _write(pid, second, statfs)
        except OSError as error:
            if error.errno in (errno.ESRCH, errno.EIO, errno.EFAULT):
                return False  # the kernel finds out
            raise
        return statfs is not None

    def _kill(self, caller: int, pid: int, signal: int) -> bool:
        if self._kernel.has_process(pid):
            if signal:
                self._kernel.kill(pid)
            return True
        if not is_of(caller, pid):
            raise ProcessLookupError(errno.ESRCH, os.strerror(errno.ESRCH))
        return False


def _signed(argument: int) -> int:
    """The first 32 bits of a call's argument, as the C type int."""
    value = argument & 0xFFFFFFFF
    return value - (1 << 32) if value >> 31 else value


def is_of(caller: int, pid: int) -> bool:
    """Whether process `pid` is the caller or below it."""
    group = _process_of(caller)
    while pid > 1:
        if pid in (caller, group):
            return True
        pid = _status(pid, "PPid")
    return False


def _process_of(thread: int) -> int:
    return _status(thread, "Tgid")


def _status(pid: int, field: str) -> int:
    try:
        with open(f"/proc/{pid}/status") as file:
            return int(next(line.split()[1] for line in file if line.startswith(f"{field}:")))
    except (FileNotFoundError, ProcessLookupError):
        return 0


def _path_in(pid: int, address: int) -> str:
    """The text at that address of the process, up to its zero byte."""
    text = b""
    memory = os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
    try:
        while b"\0" not in text and len(text) < _LONGEST_PATH:
            at = address + len(text)
            text += os.pread(memory, _PAGE - at % _PAGE, at)
    finally:
        os.close(memory)
    return os.fsdecode(text.partition(b"\0")[0])


def _opened(pid: int, descriptor: int) -> str:
    return os.readlink(f"/proc/{pid}/fd/{descriptor & 0xFFFFFFFF}")


def _write(pid: int, address: int, content: bytes) -> None:
    memory = os.open(f"/proc/{pid}/mem", os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.pwrite(memory, content, address)
    finally:
        os.close(memory)
