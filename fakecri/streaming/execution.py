"""What Exec and Attach do, whatever carries their streams.

The container's `replies(...)` answer first, then the programs; a container that ends takes its
commands with it (exit code 137). What must never happen here: a program outlives its caller's
connection, or an error of a program ends the server.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any, Final

from kubecri.v1 import api_pb2 as pb
from msgspec import Struct

from fakecri import fakesh
from fakecri.behaviors.plan import next_reply
from fakecri.core.objects import Container, State
from fakecri.core.runtime import SIGKILLED, Core
from fakecri.errors import CriError, unknown
from fakecri.process.pipes import (
    Discard,
    Output,
    Terminal,
    TerminalOutput,
    Valve,
    cook,
    ended,
)
from fakecri.programs.environment import invocation_in
from fakecri.streaming.session import Channels, Outcome, Runtime
from fakecri.streaming.stream_rules import Programs

log = logging.getLogger(__name__)
FIRST_SIZE_WAIT_S: Final = 0.2
"""How long a program waits for the first size of its terminal, which comes right after the
start."""
PIECE_BYTES: Final = 64 * 1024


async def execute(runtime: Runtime, request: pb.ExecRequest, channels: Channels) -> Outcome:
    """Run one command in a container, to its end or the container's (exit code 137).

    What the runtime refuses and what a test's program raises are failures in the outcome. Raises
    ConnectionError when the caller is gone. CRI-111, CRI-115.
    """
    try:
        container = running_container(runtime.core, request.container_id)
        command = tuple(request.cmd)
        if not command:
            raise unknown("failed to start exec: args must not be empty")
        invocation_of = _invocations(runtime, container, command, request.tty)
        async with _console(channels, request.tty) as console:
            invocation = invocation_of(console)
            program = _answer_of(runtime, container, command) or invocation.find()
            if program is None:
                raise unknown(fakesh.exec_failed(invocation, runtime.core.ids.hex()))
            work = _to_the_end(program, invocation)
            code = await _while_running(runtime, container, work)
            return Outcome(SIGKILLED if code is None else code)
    except (ConnectionError, asyncio.CancelledError):
        raise
    except Exception as error:
        return _failed("executing command in", "a command", error)


async def _to_the_end(program: fakesh.Program, invocation: fakesh.Invocation) -> int:
    """The exit code of a program, once the jobs that it left behind have ended, too (CRI-113)."""
    try:
        code = await fakesh.exit_code_of(program, invocation)
        await invocation.processes.finished()
        return code & 0xFF
    except BrokenPipeError:
        return fakesh.BROKEN_PIPE
    finally:
        invocation.processes.end()


async def attach(
    runtime: Runtime, programs: Programs, request: pb.AttachRequest, channels: Channels
) -> Outcome:
    """Follow the output of a container from now on, until it ends; or run the program that the test
    has given with `attach`. Failures as in `execute`."""
    try:
        container = running_container(runtime.core, request.container_id)
        tty = bool(container.config.tty)
        invocation_of = _invocations(runtime, container, (), tty)
        async with _console(channels, tty) as console:
            invocation = invocation_of(console)
            program = programs.attach_of(container.subject)
            if program is None:
                await _follow(runtime, container, invocation)
            else:
                await _while_running(runtime, container, fakesh.exit_code_of(program, invocation))
        return Outcome()
    except (ConnectionError, asyncio.CancelledError):
        raise
    except Exception as error:
        return _failed("attaching to", "an attach handler", error)


def _failed(doing: str, what: str, error: Exception) -> Outcome:
    """The outcome for an error: what the runtime refuses, or a mistake in a program of the test.

    `doing` and `what`: words for texts, such as `attaching to` and `an attach handler`.
    """
    if isinstance(error, CriError):
        return Outcome(failure=f"error {doing} container: {error.details()}")
    log.error("%s of the test failed", what, exc_info=error)
    return Outcome(failure=f"error {doing} container: {type(error).__name__}: {error}")


def running_container(core: Core, container_id: str) -> Container:
    """The container with that id. Raises CriError if there is none or it does not run (CRI-116)."""
    container = core.find_container(container_id)
    if container.state is not State.RUNNING:
        raise unknown(f"container is in CONTAINER_{container.state.name} state")
    return container


# -- the parts -----------------------------------------------------------------------------------


class _Console(Struct, frozen=True):
    stdin: asyncio.StreamReader
    stdout: Output
    stderr: Output
    terminal: Terminal


@asynccontextmanager
async def _console(channels: Channels, tty: bool) -> AsyncIterator[_Console]:
    """The caller's streams as a program sees them. With a terminal, tasks beside the program follow
    its size and edit what is typed."""
    terminal, stdin = Terminal(), channels.stdin or ended()
    stdout = channels.stdout or Discard()
    if not tty:
        yield _Console(stdin, stdout, channels.stderr or Discard(), terminal)
        return
    screen = TerminalOutput(stdout)
    async with AsyncExitStack() as stack:
        if channels.resize is not None:
            stack.push_async_callback(stop, asyncio.create_task(terminal.follow(channels.resize)))
            with suppress(TimeoutError):
                async with asyncio.timeout(FIRST_SIZE_WAIT_S):
                    await terminal.changed()
        if channels.stdin is not None:
            room = asyncio.Event()
            room.set()
            stdin = Valve(room.clear, room.set).reader()
            work = cook(channels.stdin, screen, stdin, room)
            stack.push_async_callback(stop, asyncio.create_task(work))
        yield _Console(stdin, screen, screen, terminal)


def _invocations(
    runtime: Runtime, container: Container, command: tuple[str, ...], tty: bool
) -> Callable[[_Console], fakesh.Invocation]:
    programs = runtime.programs_of(container)

    def make(console: _Console) -> fakesh.Invocation:
        return invocation_in(
            container,
            command,
            programs,
            stdin=console.stdin,
            stdout=console.stdout,
            stderr=console.stderr,
            tty=tty,
            terminal=console.terminal,
        )

    return make


def _answer_of(
    runtime: Runtime, container: Container, command: tuple[str, ...]
) -> fakesh.Program | None:
    """A program that gives the answer of the container's `replies(...)`; None: no rule fits."""
    now_ns = runtime.core.now_ns()
    rule = container.reply_rule(command, container.age_s(now_ns))
    if rule is None:
        return None
    context = container.exec_context(rule, command, now_ns, None)

    async def answer(run: fakesh.Invocation) -> int:
        reply = await next_reply(rule, context)
        await asyncio.sleep(reply.delay_s)
        for text, output in ((reply.stdout, run.stdout), (reply.stderr, run.stderr)):
            if text:
                await output.write(text.encode())
        return reply.exit_code

    return answer


async def _follow(runtime: Runtime, container: Container, run: fakesh.Invocation) -> None:
    """Write what the container writes from now on. What the caller types goes to the main
    program."""
    stdin = runtime.main_programs.stdin_of(container)
    typing = asyncio.create_task(_pour(run.stdin, stdin, container))
    try:
        with runtime.main_programs.tap(container) as tap:
            if tap is None:
                await _follow_log(runtime, container, run)
                return
            while (piece := await tap.get()) is not None:
                stream, data = piece
                await (run.stderr if stream == "stderr" else run.stdout).write(data)
    finally:
        await stop(typing)


async def _follow_log(runtime: Runtime, container: Container, run: fakesh.Invocation) -> None:
    line_count = len(container.output.lines)
    with runtime.clockwork.changes() as changed:
        while True:
            for line in container.output.lines[line_count:]:
                output = run.stderr if line.stream == "stderr" else run.stdout
                await output.write(line.text.encode() + b"\n")
                line_count += 1
            if not _lives(runtime, container):
                return
            if line_count == len(container.output.lines):
                await changed.wait()
                changed.clear()


def _lives(runtime: Runtime, container: Container) -> bool:
    return container.state is State.RUNNING and container.id in runtime.core.containers


async def _pour(
    typed: asyncio.StreamReader, stdin: asyncio.StreamReader | None, container: Container
) -> None:
    """Pass on what is typed to the main program; None: drop it. With `stdin_once` the program's
    input ends with that of the first caller."""
    while data := await typed.read(PIECE_BYTES):
        if stdin is not None:
            stdin.feed_data(data)
    if stdin is not None and container.config.stdin_once:
        stdin.feed_eof()


async def _while_running(
    runtime: Runtime, container: Container, work: Coroutine[Any, Any, int]
) -> int | None:
    """The result of `work`; None if the container ended first."""
    task = asyncio.create_task(work)
    try:
        with runtime.clockwork.changes() as changed:
            while not task.done() and _lives(runtime, container):
                change = asyncio.create_task(changed.wait())
                try:
                    await asyncio.wait((task, change), return_when=asyncio.FIRST_COMPLETED)
                finally:
                    change.cancel()
                changed.clear()
        for _ in range(3):  # what it was about to do when its container ended
            await asyncio.sleep(0)
        return task.result() if task.done() else None
    finally:
        await stop(task)


async def stop(task: asyncio.Task[Any]) -> None:
    """Cancel a task and wait for its end. Its errors are dropped."""
    task.cancel()
    await asyncio.wait((task,))
    if not task.cancelled():
        task.exception()
