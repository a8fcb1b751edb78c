"""The programs that are in every fake container, and what a program is.

A program is an async function of one `Invocation`; it reads and writes while it runs, and returns
its exit code (None: 0). These are the small ones; `sh` is in `shell.py`. What must never happen
here: a program touches the machine it really runs on.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias

from fakecri.core.objects import Container
from fakecri.streaming.pipes import Discard, Output, Terminal, ended

NOT_FOUND: Final = 127
USAGE: Final = 2
PIECE_BYTES: Final = 64 * 1024
PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True, slots=True)
class Invocation:
    """One run of one program.

    `stdin` is at its end at once when the caller gave none. With `tty`, `stderr` is `stdout` and
    lines end with CR LF, as on a terminal. `container` is the fake's (its name, pod, ...).
    `lenient`: files and programs that nobody made are taken to be there and fine, as ExecSync wants
    it. `stop` is set when a container whose main process this is gets its stop signal.
    """

    command: tuple[str, ...]
    container: Any = None
    env: Mapping[str, str] = field(default_factory=dict)
    stdin: asyncio.StreamReader = field(default_factory=ended)
    stdout: Output = field(default_factory=Discard)
    stderr: Output = field(default_factory=Discard)
    tty: bool = False
    terminal: Terminal = field(default_factory=Terminal)
    programs: Mapping[str, Program] = field(default_factory=dict)
    lenient: bool = False
    stop: asyncio.Event = field(default_factory=asyncio.Event)

    async def out(self, text: str) -> None:
        """Write text to stdout."""
        await self.stdout.write(text.encode())

    async def err(self, text: str) -> None:
        """Write text to stderr."""
        await self.stderr.write(text.encode())

    def find(self) -> Program | None:
        """The program that `command` names, by its last path component; None if there is none."""
        name = self.command[0].rsplit("/", 1)[-1]
        return self.programs.get(self.command[0]) or self.programs.get(name)

    async def run(self, *command: str, **changes: Any) -> int:
        """Run another program with the same streams; its exit code, 127 if there is none."""
        inner = replace(self, command=command, **changes)
        program = inner.find()
        if program is None and self.lenient:
            return 0
        if program is None:
            await self.err(f"sh: {command[0]}: not found\n")
            return NOT_FOUND
        return await exit_code_of(program, inner)


Program: TypeAlias = Callable[[Invocation], "Awaitable[int | None] | int | None"]


async def exit_code_of(program: Program, invocation: Invocation) -> int:
    """Run a program, written as an async function or a plain one; its exit code."""
    result = program(invocation)
    if inspect.isawaitable(result):
        result = await result
    return result or 0


def env_of(container: Container, *, tty: bool = False) -> dict[str, str]:
    """The environment of a program in a container."""
    env = {"PATH": PATH, "HOSTNAME": container.sandbox.config.hostname or container.pod.name}
    env |= {"TERM": "xterm"} if tty else {}
    return env | {v.key: v.value.decode("utf-8", "replace") for v in container.config.envs}


async def _echo(run: Invocation) -> int:
    words = run.command[1:]
    newline = "" if words[:1] == ("-n",) else "\n"
    await run.out(" ".join(words[0 if newline else 1 :]) + newline)
    return 0


async def _cat(run: Invocation) -> int:
    code = 0
    for name in run.command[1:] or ("-",):
        if name != "-" and not run.lenient:
            await run.err(f"cat: can't open '{name}': No such file or directory\n")
            code = 1
        while name == "-" and (data := await run.stdin.read(PIECE_BYTES)):
            await run.stdout.write(data)
    return code


_UNITS_S: Final = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


async def _sleep(run: Invocation) -> int:
    try:
        wait_s = sum(map(_seconds, run.command[1:]))
    except ValueError:
        wait_s = -1.0
    if len(run.command) < 2 or not wait_s >= 0:
        await run.err(f"sleep: invalid number '{' '.join(run.command[1:])}'\n")
        return 1
    return await _idle(run) if wait_s == float("inf") else await asyncio.sleep(wait_s, 0)


def _seconds(text: str) -> float:
    """`5`, `0.5`, `2m`, `inf`. Raises: ValueError."""
    unit = _UNITS_S.get(text[-1:], 0.0)
    return float(text[:-1]) * unit if unit else float(text)


async def _idle(run: Invocation) -> int:
    """Runs until somebody ends it."""
    await asyncio.get_running_loop().create_future()
    return 0


async def _tail(run: Invocation) -> int:
    return await _idle(run) if "-f" in run.command else 0


async def _env(run: Invocation) -> int:
    await run.out("".join(f"{name}={value}\n" for name, value in run.env.items()))
    return 0


async def _stty(run: Invocation) -> int:
    if run.command[1:] != ("size",):
        await run.err("stty: the fake knows only: stty size\n")
        return USAGE
    if not run.tty:
        await run.err("stty: standard input: Not a tty\n")
        return 1
    await run.out(f"{run.terminal.rows} {run.terminal.columns}\n")
    return 0


async def _hostname(run: Invocation) -> int:
    await run.out(run.env.get("HOSTNAME", "") + "\n")
    return 0


async def _id(run: Invocation) -> int:
    security = run.container.config.linux.security_context
    uid, gid = security.run_as_user.value, security.run_as_group.value
    name = security.run_as_username or ("root" if uid == 0 else str(uid))
    told = {
        (): f"uid={uid}({name}) gid={gid}",
        ("-u",): str(uid),
        ("-g",): str(gid),
        ("-nu",): name,
        ("-un",): name,
    }
    if run.command[1:] not in told:
        await run.err("id: the fake knows only: -u, -g, -nu\n")
        return USAGE
    await run.out(f"{told[run.command[1:]]}\n")
    return 0


def _true(run: Invocation) -> int:
    return 0


def _false(run: Invocation) -> int:
    return 1


BUILT_IN: Final[Mapping[str, Program]] = {
    "cat": _cat,
    "echo": _echo,
    "env": _env,
    "false": _false,
    "hostname": _hostname,
    "id": _id,
    "sleep": _sleep,
    "stty": _stty,
    "tail": _tail,
    "top": _idle,
    "true": _true,
}
