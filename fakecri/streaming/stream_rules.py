"""What a test programs for the streams: commands, attach handlers, ports. The newest rule wins."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

from fakecri import fakesh
from fakecri.behaviors.matching import Match, Subject
from fakecri.rules.faults import Rule, RuleBook
from kubeobjects.arguments import arguments_told

TcpHandler: TypeAlias = Callable[
    [asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None] | None
]
"""Serves one connection; the same shape as the callback of `asyncio.start_server`."""
Target: TypeAlias = int | str | TcpHandler


class _StreamRule(Rule):
    def __init__(self, what: str, match: Match) -> None:
        super().__init__(what)
        self.match = match


class CommandRule(_StreamRule):
    """Containers have a program under a name."""

    def __init__(self, name: str, program: fakesh.Program, match: Match) -> None:
        super().__init__(f"the command {name!r} in containers ({match})", match)
        self.name = name
        self.program = program


class AttachRule(_StreamRule):
    """What an attached client talks to."""

    def __init__(self, program: fakesh.Program, match: Match) -> None:
        super().__init__(f"attach to containers ({match})", match)
        self.program = program


class PortRule(_StreamRule):
    """What listens on a port of pods."""

    def __init__(self, port: int, target: Target, match: Match) -> None:
        super().__init__(f"port {port} of pods ({match})", match)
        self.port = port
        self.target = target


@arguments_told
class Programs:
    """What a test has programmed for the streams: `rules`, oldest first; the newest one that fits
    acts."""

    def __init__(self) -> None:
        self.rules = RuleBook()

    def command(
        self,
        name: str,
        program: fakesh.Program,
        *,
        pod: str | None = None,
        container: str | None = None,
        image: str | None = None,
    ) -> Rule:
        """Give a program to the containers that fit: `program(Invocation) -> exit code` (None: 0),
        which may be async. It counts for ExecSync, Exec and scripts, from now on until the returned
        rule ends.

        Names may be patterns (`web*`). The program runs for every command whose first word is
        `name` or ends with `/name`, unless a `replies(...)` behaviour of the container answers.
        """
        return self.rules.add(CommandRule(name, program, Match(pod, container, image)))

    def attach(
        self,
        program: fakesh.Program,
        *,
        pod: str | None = None,
        container: str | None = None,
        image: str | None = None,
    ) -> Rule:
        """Let clients that attach to containers that fit talk to `program(Invocation)`, instead of
        following the container's output."""
        return self.rules.add(AttachRule(program, Match(pod, container, image)))

    def forward(self, port: int, *, to: Target, pod: str | None = None) -> Rule:
        """Let port `port` (0: every port) of the pods that fit lead to `to`.

        `to`: the number of a port of this machine, a text `host:port`, or a handler as
        `asyncio.start_server` takes it: `async def handler(reader, writer)`. Raises ValueError for
        a port that is none.
        """
        if not 0 <= port <= 65535:
            raise ValueError(f"port: wanted 0 to 65535, got {port}")
        if not callable(to):
            address(to)
        return self.rules.add(PortRule(port, to, Match(pod)))

    def commands_of(self, subject: Subject) -> Mapping[str, fakesh.Program]:
        """The programs that `command` has given to one container, by name."""
        found: dict[str, fakesh.Program] = {}
        for rule in self.rules:
            if isinstance(rule, CommandRule) and rule.match.fits(subject):
                found[rule.name] = _counted(rule, rule.program)
        return found

    def attach_of(self, subject: Subject) -> fakesh.Program | None:
        """The program that clients attached to one container talk to; None: they follow its
        output."""
        for rule in reversed(self.rules):
            if isinstance(rule, AttachRule) and rule.match.fits(subject):
                return _counted(rule, rule.program)
        return None

    def port_of(self, subject: Subject, port: int) -> Target | None:
        """Where a port of a pod leads; None: nothing listens there."""
        for rule in reversed(self.rules):
            if isinstance(rule, PortRule) and rule.port in (0, port) and rule.match.fits(subject):
                rule.take()
                return rule.target
        return None


def _counted(rule: Rule, program: fakesh.Program) -> fakesh.Program:
    def run(invocation: object) -> Awaitable[int | None] | int | None:
        rule.take()
        return program(invocation)  # type: ignore[arg-type]

    return run


def address(to: int | str) -> tuple[str, int]:
    """Host and port of a target. Raises ValueError.

    >>> address(80), address("[::1]:80")
    (('127.0.0.1', 80), ('::1', 80))
    """
    if isinstance(to, int):
        host, port = "127.0.0.1", to
    else:
        host, _, text = to.rpartition(":")
        if not host or not text.isdigit():
            raise ValueError(f"to: wanted a port, 'host:port' or a handler, got {to!r}")
        port = int(text)
    if not 1 <= port <= 65535:
        raise ValueError(f"to: wanted a port from 1 to 65535, got {port}")
    return host.strip("[]"), port


async def run_handler(
    handler: TcpHandler, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Run a TCP handler to its end, then close its connection."""
    try:
        result = handler(reader, writer)
        if inspect.isawaitable(result):
            await result
    finally:
        writer.close()
