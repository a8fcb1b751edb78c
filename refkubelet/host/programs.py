"""Runs programs of the node: bytes in, bytes out, and nothing of them is left behind.

A program gets a session of its own, so that what it starts ends with it. What must never happen
here: a program that outlives the wait for it; more of its output is kept than asked for.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, Protocol

MAX_OUTPUT_BYTES: Final = 1024 * 1024
MAX_COMPLAINT_BYTES: Final = 4096
STDERR: Final = 2


class ProgramError(Exception):
    """The program cannot be started, or printed too much; the text says so."""


@dataclass(frozen=True, slots=True)
class Program:
    """What to run. `environment`: the whole of it; `stdin` may hold secrets and is never shown, as
    little as the environment."""

    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    stdin: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True)
class Finished:
    """How it ended. `code`: below zero the signal that ended it; `complaint`: the beginning of what
    it wrote to stderr."""

    code: int
    output: bytes = field(default=b"", repr=False)
    complaint: bytes = field(default=b"", repr=False)


class Programs(Protocol):
    """Who runs programs: processes, or a double in virtual time."""

    async def run(self, program: Program) -> Finished:
        """Run it to its end; when this is cancelled, it is ended with all that it has started.
        Raises `ProgramError`."""


class Processes:
    """`Programs` as processes of this machine."""

    async def run(self, program: Program) -> Finished:
        """Run the program to its end. Cancelling ends it, and all it has started. Raises
        `ProgramError`."""
        # A start that is cancelled would wait for who holds the pipes, and know nobody to end.
        starting = asyncio.ensure_future(_start(program))
        try:
            transport, watched = await asyncio.shield(starting)
        except asyncio.CancelledError:
            with suppress(ProgramError):
                await _end(*await starting)
            raise
        try:
            _feed(transport, program.stdin)
            await watched.closed
        finally:
            await _end(transport, watched)
        return Finished(
            transport.get_returncode() or 0, bytes(watched.output), bytes(watched.complaint)
        )


async def _start(program: Program) -> tuple[asyncio.SubprocessTransport, _Watched]:
    loop = asyncio.get_running_loop()
    try:
        return await loop.subprocess_exec(
            lambda: _Watched(loop),
            *program.command,
            env=dict(program.environment),
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise ProgramError(f"{program.command[0]}: cannot be started: {why.lower()}") from None


async def _end(transport: asyncio.SubprocessTransport, watched: _Watched) -> None:
    """End the program and what it has started."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(transport.get_pid(), signal.SIGKILL)
    transport.close()
    await watched.exited


class _Watched(asyncio.SubprocessProtocol):
    """Collects what a process writes. `exited`: it has ended; `closed`: and nothing of what it
    started can write any more, or a `ProgramError`."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.output, self.complaint = bytearray(), bytearray()
        self.exited: asyncio.Future[None] = loop.create_future()
        self.closed: asyncio.Future[None] = loop.create_future()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == STDERR:  # the rest is dropped, so that the program need not wait
            self.complaint += data[: MAX_COMPLAINT_BYTES - len(self.complaint)]
            return
        self.output += data[: MAX_OUTPUT_BYTES + 1 - len(self.output)]
        if len(self.output) > MAX_OUTPUT_BYTES and not self.closed.done():
            text = f"it printed more than {MAX_OUTPUT_BYTES} bytes"
            self.closed.set_exception(ProgramError(text))

    def process_exited(self) -> None:
        if not self.exited.done():
            self.exited.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.closed.done():
            self.closed.set_result(None)


def _feed(transport: asyncio.SubprocessTransport, data: bytes) -> None:
    """A program need not read what it is given."""
    stdin = transport.get_pipe_transport(0)
    assert isinstance(stdin, asyncio.WriteTransport)
    stdin.write(data)
    stdin.write_eof()
