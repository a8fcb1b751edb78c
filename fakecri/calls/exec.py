"""Commands in containers: ExecSync (CRI-111, CRI-112), and what Exec, Attach and PortForward check.

ExecSync is answered by the container's `replies(...)`, else by its programs.
The programs are those of streaming exec, the small built-in shell among them. Files that were never
made or removed are taken to be there. What must never happen here: a command outlives its container
or its time limit.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import grpc
from kubecri.v1 import api_pb2 as pb

from fakecri import fakesh, process, programs
from fakecri.behaviors.plan import next_reply
from fakecri.clockwork.clockwork import Clockwork
from fakecri.core.objects import Container, State
from fakecri.core.runtime import SIGKILLED, Core
from fakecri.errors import CriError, deadline_exceeded, unknown
from fakecri.programs.known import Known
from fakecri.words import behaviors as words
from fakecri.words.behaviors import Reply

T = TypeVar("T")


class ExecSync:
    """Answers ExecSync on a core. `programs_of` has the programs of a container by name."""

    def __init__(
        self,
        core: Core,
        clockwork: Clockwork,
        programs_of: Callable[[Container], Known],
    ) -> None:
        self._core = core
        self._clockwork = clockwork
        self._programs_of = programs_of

    async def answer(self, request: pb.ExecSyncRequest) -> pb.ExecSyncResponse:
        """Run one command to its end, or to `request.timeout` seconds (0: none)."""
        container = self._core.find_container(request.container_id, "ExecSync")
        if container.state is not State.RUNNING:
            state = f"container is in CONTAINER_{container.state.name} state"
            raise unknown(f"failed to exec in container: {state}")
        command = tuple(request.cmd)
        if not command:
            raise unknown(
                f'failed to exec in container: failed to start exec "{self._core.ids.hex()}": '
                "OCI runtime exec failed: exec failed: args must not be empty: unknown"
            )
        limit_s = float(request.timeout) if request.timeout > 0 else None
        rule = container.reply_rule(command, container.age_s(self._core.now_ns()))
        if rule is None:
            return await self._run(container, command, limit_s)
        return await self._reply(container, rule, command, limit_s)

    async def _reply(
        self,
        container: Container,
        rule: words.replies,
        command: tuple[str, ...],
        limit_s: float | None,
    ) -> pb.ExecSyncResponse:
        context = container.exec_context(rule, command, self._core.now_ns(), limit_s)
        if rule.handler is None:
            reply = await next_reply(rule, context)
        else:
            in_time = await self._in_time(container, next_reply(rule, context), limit_s)
            if in_time is None:
                return pb.ExecSyncResponse(exit_code=SIGKILLED)
            reply = in_time
        takes_s = reply.delay_s if limit_s is None else min(reply.delay_s, limit_s)
        if takes_s > 0 and await self._clockwork.exit_of(container, within_s=takes_s):
            return pb.ExecSyncResponse(exit_code=SIGKILLED)
        if limit_s is not None and reply.delay_s > limit_s:
            raise _too_late(limit_s)
        return _response(reply)

    async def _run(
        self, container: Container, command: tuple[str, ...], limit_s: float | None
    ) -> pb.ExecSyncResponse:
        stdout, stderr = process.Collected(), process.Collected()
        invocation = programs.invocation_in(
            container,
            command,
            self._programs_of(container),
            stdout=stdout,
            stderr=stderr,
            lenient=container.run.plan.runs is None,
        )
        program = invocation.find()
        if program is None:
            raise self.not_started(invocation)
        try:
            code = await self._in_time(container, fakesh.exit_code_of(program, invocation), limit_s)
            await self._drained(container, invocation)
        finally:
            invocation.processes.end()
        return pb.ExecSyncResponse(
            exit_code=SIGKILLED if code is None else code & 0xFF,
            stdout=bytes(stdout.data),
            stderr=bytes(stderr.data),
        )

    def not_started(self, invocation: fakesh.Invocation) -> CriError:
        """There is no such program."""
        return unknown(fakesh.exec_failed(invocation, self._core.ids.hex()))

    async def _drained(self, container: Container, invocation: fakesh.Invocation) -> None:
        """The answer waits for what runs on behind `&`, beyond the time limit (CRI-113)."""
        if invocation.processes.running() and container.state is State.RUNNING:
            await self._in_time(container, _zero_after(invocation.processes.finished()), None)

    async def _in_time(
        self, container: Container, work: Coroutine[Any, Any, T], limit_s: float | None
    ) -> T | None:
        """What `work` gives, None if the container ended first. Raises CriError when it is too
        late."""
        task = asyncio.create_task(work)
        exited = asyncio.create_task(self._clockwork.exit_of(container, within_s=limit_s))
        try:
            await asyncio.wait((task, exited), return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return task.result()
            if exited.result():
                return None
            raise _too_late(limit_s)
        finally:
            for part in (task, exited):
                part.cancel()
            await asyncio.gather(task, exited, return_exceptions=True)


async def _zero_after(work: Coroutine[Any, Any, None]) -> int:
    await work
    return 0


def _response(reply: Reply) -> pb.ExecSyncResponse:
    return pb.ExecSyncResponse(
        exit_code=reply.exit_code, stdout=reply.stdout.encode(), stderr=reply.stderr.encode()
    )


def _too_late(limit_s: float | None) -> CriError:
    return deadline_exceeded(
        f"failed to exec in container: timeout {limit_s:g}s exceeded: context deadline exceeded"
    )


def check_streams(
    core: Core, request: pb.ExecRequest | pb.AttachRequest | pb.PortForwardRequest
) -> None:
    """Refuse a request for streams as containerd does, before it gets a URL (CRI-116).

    Raises CriError, in this order: NOT_FOUND for an unknown id; UNKNOWN for a container that is not
    RUNNING or a sandbox that is not ready; INVALID_ARGUMENT without stdin, stdout and stderr, and
    for stderr beside a tty.
    """
    if isinstance(request, pb.PortForwardRequest):
        if not core.find_sandbox(request.pod_sandbox_id, "PortForward").ready:
            raise unknown("sandbox container is not running")
        return
    method = "Exec" if isinstance(request, pb.ExecRequest) else "Attach"
    container = core.find_container(request.container_id, method)
    if container.state is not State.RUNNING:
        raise unknown(f"container is in CONTAINER_{container.state.name} state")
    if not (request.stdin or request.stdout or request.stderr):
        text = "one of stdin, stdout, or stderr must be set"
        raise CriError(grpc.StatusCode.INVALID_ARGUMENT, text)
    if request.tty and request.stderr:
        text = "tty and stderr cannot both be true"
        raise CriError(grpc.StatusCode.INVALID_ARGUMENT, text)
