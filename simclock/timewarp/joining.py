"""Become a program in warped time.

The process that is to become the program has a helper, which traces it until it has executed the
program, puts the clock in, lets go of it and ends. So the program keeps the process ID, the parent,
the standard streams and everything else that it was started with, and nothing traces it later.
"""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Sequence
from typing import NoReturn

from simclock.timewarp.architectures import Architecture, this_architecture
from simclock.timewarp.install import install
from simclock.timewarp.members import Kind, Members
from simclock.timewarp.pages import TimePage
from simclock.timewarp.refusal import CannotWarp
from simclock.timewarp.requirements import require
from simclock.timewarp.tracing import Traced

ALLOW_TRACER, ANYBODY = 0x59616D61, -1  # PR_SET_PTRACER
READY = b"+"


def become(argv: Sequence[str], page: TimePage) -> NoReturn:
    """Replace this process by the program `argv[0]`, found as a shell finds it, in the time of
    `page`. Raises: CannotWarp; OSError when it cannot be executed."""
    path = _found(argv[0])
    if path is None:
        raise CannotWarp(f"{argv[0]}: no such program")
    require(path)
    members = Members(page)
    row = members.join(Kind.STARTING, pid=os.getpid())
    try:
        _have_helper(page, members, row, this_architecture())
        os.set_inheritable(page.fd, True)
        os.execv(path, list(argv))
    except BaseException:
        members.become(row, Kind.FREE)
        raise


def _found(name: str) -> str | None:
    """The program of that name, as a shell finds it; None: there is none."""
    if os.path.dirname(name):
        return name if os.path.isfile(name) and os.access(name, os.X_OK) else None
    import shutil  # not at the top: suites name their programs by paths, and are quicker without

    return shutil.which(name)


def _have_helper(page: TimePage, members: Members, row: int, machine: Architecture) -> None:
    """Fork the helper; returns when it traces this process. It is no child of this process, as the
    program would not expect one. Raises: CannotWarp."""
    us = os.getpid()
    reading, writing = os.pipe()
    ctypes.CDLL(None).prctl(ALLOW_TRACER, ctypes.c_ulong(ANYBODY), 0, 0, 0)
    child = os.fork()
    if child == 0:
        if os.fork() == 0:
            os.close(reading)
            _help(us, writing, page, members, row, machine)
        os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    message = os.read(reading, 1000)
    os.close(reading)
    if message != READY:
        raise CannotWarp(message.decode() or "the helper of the program ended")


def _help(
    pid: int, told: int, page: TimePage, members: Members, row: int, machine: Architecture
) -> NoReturn:
    """What the helper does. Errors before the program runs go to the pipe `told`, later ones to
    standard error, and end the program."""
    program = Traced(pid, machine)
    try:
        program.seize()
    except CannotWarp as problem:
        os.write(told, str(problem).encode())
        os._exit(1)
    try:
        os.write(told, READY)
        os.close(told)
        if not program.to_exec():
            os._exit(0)
        install(program, page, page.fd, machine)
        members.become(row, Kind.PROGRAM)
        program.detach()
    except BaseException as problem:
        words = str(problem) if isinstance(problem, CannotWarp) else repr(problem)
        os.write(2, f"timewarp: {words}\n".encode())
        os.kill(pid, signal.SIGKILL)
        os._exit(1)
    os._exit(0)
