"""The main processes of containers with `runs(...)`: programs on the loop that write to the log.

A program starts with its container and ends it with its exit code; whatever else ends the container
(a signal, a kill, an exit) cancels the program. What must never happen here: a program outlives its
container, or its mistake ends the fake.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, TypeAlias

from kubecri.v1 import api_pb2 as pb

from fakecri import fakesh, programs
from fakecri.behaviors.plan import Plan
from fakecri.clockwork.clockwork import Clockwork
from fakecri.core import running
from fakecri.core.file_work import LogLine
from fakecri.core.objects import Container, State
from fakecri.core.runtime import Core, News
from fakecri.programs.known import Known
from fakecri.words.behaviors import runs, start_fails
from kubeobjects.structs import replace

log = logging.getLogger("fakecri")
_FAILED: Final = 1
Tap: TypeAlias = "asyncio.Queue[tuple[str, bytes] | None]"
"""Pieces of output with the name of their stream, as they are written; None: the end."""


class MainPrograms:
    """Starts and ends the main programs. `programs_of`: the programs of a container by name."""

    def __init__(
        self,
        core: Core,
        clockwork: Clockwork,
        programs_of: Callable[[Container, Plan], Known],
    ) -> None:
        self._core = core
        self._clockwork = clockwork
        self._programs_of = programs_of
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._stdins: dict[str, asyncio.StreamReader] = {}
        self._taps: dict[str, list[Tap]] = {}

    def check(self, container: Container, plan: Plan) -> Plan:
        """The plan for a run, or one whose start fails because its program is not there (CRI-056).

        A container with stdin, and without behaviours for its end, runs its own command if that is
        a program of the fake: nothing else could answer clients that attach to it (CRI-115).
        """
        if plan.runs is None and container.config.stdin and plan.says_no_end:
            command = (*container.config.command, *container.config.args)
            if command and command[0].rsplit("/", 1)[-1] in fakesh.PROGRAMS:
                plan = replace(plan, runs=runs())
        if plan.runs is None or plan.runs.program is not None or plan.start_fails is not None:
            return plan
        command = _command(container, plan)
        if not command:
            return plan
        invocation = self._invocation(container, plan, command)
        if invocation.find() is not None:
            return plan
        text = (
            "failed to create containerd task: failed to create shim task: OCI runtime create "
            "failed: runc create failed: unable to start container process: "
            f'exec: "{command[0]}": {invocation.why_not_found()}: unknown'
        )
        return replace(plan, start_fails=start_fails(text))

    def stdin_of(self, container: Container) -> asyncio.StreamReader | None:
        """What the main program of a container reads from; None: it reads nothing."""
        return self._stdins.get(container.id)

    @contextmanager
    def tap(self, container: Container) -> Iterator[Tap | None]:
        """What the main program writes from now on, byte for byte; None: there is no main
        program."""
        if container.id not in self._tasks:
            yield None
            return
        tap: Tap = asyncio.Queue()
        taps = self._taps.setdefault(container.id, [])
        taps.append(tap)
        try:
            yield tap
        finally:
            taps.remove(tap)

    def hear(self, news: News) -> None:
        """Start the program of a container that has started; end that of one that has ended."""
        if news.kind == pb.CONTAINER_STARTED_EVENT:
            container = self._core.containers.get(news.object_id)
            if container is not None and container.run.plan.runs is not None:
                self._start(container)
        elif news.kind != pb.CONTAINER_CREATED_EVENT:
            self._stdins.pop(news.object_id, None)
            for tap in self._taps.pop(news.object_id, ()):
                tap.put_nowait(None)
            task = self._tasks.pop(news.object_id, None)
            if task is not None:
                task.cancel()

    def _start(self, container: Container) -> None:
        command = _command(container, container.run.plan)
        invocation = self._invocation(container, container.run.plan, command)
        assert container.run.plan.runs is not None
        program = container.run.plan.runs.program or (invocation.find() if command else None)
        if program is None or container.state is not State.RUNNING:
            return  # nothing to run: it idles until it is ended from outside
        container.stop.heard = invocation.stop.set
        if container.config.stdin:
            stdin = self._stdins[container.id] = asyncio.StreamReader()
            invocation = dataclasses.replace(invocation, stdin=stdin)
        task = asyncio.get_running_loop().create_task(self._play(container, program, invocation))
        self._tasks[container.id] = task

    async def _play(
        self,
        container: Container,
        program: fakesh.Program,
        invocation: fakesh.Invocation,
    ) -> None:
        try:
            code = await fakesh.exit_code_of(program, invocation) & 0xFF
        except Exception:
            log.exception("the main program of container %s failed", container.name)
            code = _FAILED
        for output in (invocation.stdout, invocation.stderr):
            assert isinstance(output, LogOutput)
            output.flush()
        invocation.processes.end()
        self._tasks.pop(container.id, None)
        if container.id in self._core.containers:
            running.kill(self._core, container, code)
            self._clockwork.pump()

    def _invocation(
        self, container: Container, plan: Plan, command: tuple[str, ...]
    ) -> fakesh.Invocation:
        def output(stream: str) -> LogOutput:
            taps = self._taps.setdefault(container.id, [])
            return LogOutput(
                core=self._core,
                clockwork=self._clockwork,
                container=container,
                stream=stream,
                taps=taps,
            )

        tty = bool(container.config.tty)
        return programs.invocation_in(
            container,
            command,
            self._programs_of(container, plan),
            stdout=output("stdout"),
            stderr=output("stdout" if tty else "stderr"),  # CRI-101
            tty=tty,
            processes=fakesh.Processes(pid=1),
        )


class LogOutput:
    """What a program writes, as lines in its container's log (CRI-103)."""

    def __init__(
        self,
        core: Core,
        clockwork: Clockwork,
        container: Container,
        stream: str,
        taps: list[Tap],
    ) -> None:
        self._core = core
        self._clockwork = clockwork
        self._container = container
        self._stream = stream
        self._taps = taps
        self._begun = b""

    async def write(self, data: bytes) -> None:
        for tap in self._taps:
            tap.put_nowait((self._stream, data))
        *lines, self._begun = (self._begun + data).split(b"\n")
        for line in lines:
            self._write(line, whole=True)
        self._clockwork.pump()

    def flush(self) -> None:
        """Write what is left without a newline, at the end of the program."""
        if self._begun:
            self._write(self._begun, whole=False)
            self._begun = b""

    def _write(self, text: bytes, *, whole: bool) -> None:
        line = LogLine(self._core.now_ns(), self._stream, text.decode(errors="replace"), whole)
        running.write_line(self._core, self._container, line)


def _command(container: Container, plan: Plan) -> tuple[str, ...]:
    """The command of the main process: that of the plan, else the container's own."""
    assert plan.runs is not None
    return plan.runs.command or (*container.config.command, *container.config.args)
