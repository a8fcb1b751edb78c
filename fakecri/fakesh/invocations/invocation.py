"""What a program is, and one run of it.

A program is a function of one `Invocation`, async or not; it reads and writes while it runs, and
returns its exit code (None: 0).
"""

from __future__ import annotations

import asyncio
import inspect
import posixpath
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, Final, TypeAlias

from fakecri.fakesh.invocations.files import Files, image_files
from fakecri.fakesh.invocations.process_table import Entry, ProcessTable
from fakecri.fakesh.invocations.processes import Processes
from fakecri.process.identity import ROOT, Identity
from fakecri.process.pipes import Discard, Output, Terminal, ended
from fakecri.process.security import Security

NOT_FOUND: Final = 127
SHELL_ERROR: Final = 126
BROKEN_PIPE: Final = 141
USAGE: Final = 2
PIECE_BYTES: Final = 64 * 1024


@dataclass(frozen=True, slots=True, eq=False)
class Invocation:
    """One run of one program. Every field but `command` has a default."""

    command: tuple[str, ...]
    """The program's name and its arguments."""
    _: KW_ONLY
    pod: str = ""
    """The name of its pod."""
    namespace: str = ""
    """The namespace of its pod."""
    container: str = ""
    """The name of its container."""
    address: str = ""
    """Of its pod; "": it is on the host's network."""
    identity: Identity = ROOT
    """User and groups it runs as."""
    files: Files = field(default_factory=image_files)
    """The files of its container."""
    now_ns: Callable[[], int] = lambda: 0
    """The fake's time, nanoseconds since 1970."""
    traps_stop: Callable[[bool], None] = lambda traps: None
    """Call it with True in a main process that says itself what the stop signal does, with False to
    leave that to the fake again."""
    signal_main: Callable[[str], None] | None = None
    """Send a signal (TERM, KILL, ...) to the process with the number 1; None: there is none."""
    env: Mapping[str, str] = field(default_factory=dict)
    """The environment."""
    stdin: asyncio.StreamReader = field(default_factory=ended)
    """At its end at once where the caller gave none."""
    stdout: Output = field(default_factory=Discard)
    """Nowhere by default."""
    stderr: Output = field(default_factory=Discard)
    """With `tty` it is `stdout`."""
    tty: bool = False
    """On a terminal: lines end with CR LF."""
    terminal: Terminal = field(default_factory=Terminal)
    """Its size: 0 by 0 until the caller says another."""
    programs: Mapping[str, Program] = field(default_factory=dict)
    """The programs of the container by name."""
    lenient: bool = False
    """Files that were never made or removed are taken to be there, as ExecSync wants it of
    containers whose programs do not really run."""
    any_program: bool = False
    """Programs that are not in `programs` are there, too, and succeed."""
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when a container whose main process this is gets its stop signal."""
    cwd: str = "/"
    """The working directory."""
    processes: Processes = field(default_factory=Processes)
    """What runs beside it in the same program."""
    security: Security = field(default_factory=Security)
    """What the kernel lets it do."""
    table: ProcessTable = field(default_factory=ProcessTable)
    """The processes of its container."""
    seen: Callable[[], list[Entry]] | None = None
    """The processes of its process namespace; None: those of `table`."""
    take_memory: Callable[[int], bool] = lambda size_bytes: True
    """Take that much memory; False: the kernel killed the process for it."""

    def path(self, name: str) -> str:
        """The absolute path of a file."""
        return posixpath.normpath(posixpath.join(self.cwd, name)).replace("//", "/")

    async def out(self, text: str) -> None:
        """Write text to stdout."""
        await self.stdout.write(text.encode(errors="surrogateescape"))

    async def err(self, text: str) -> None:
        """Write text to stderr."""
        await self.stderr.write(text.encode(errors="surrogateescape"))

    def find(self) -> Program | None:
        """The program that `command` names, by its last path component; None if there is none."""
        name = self.command[0].rsplit("/", 1)[-1]
        if self._is_masked():
            return None
        found = self.programs.get(self.command[0]) or self.programs.get(name)
        return found or (nothing if self.any_program and name else None)

    def _is_masked(self) -> bool:
        name = self.command[0]
        return (self.path(name) if "/" in name else f"/bin/{name}") in self.security.masked

    def why_not_found(self) -> str:
        """What runc says of a program that `find` does not find (CRI-056, CRI-111)."""
        name = self.command[0]
        if self._is_masked():
            return "permission denied"
        if "/" not in name:
            return "executable file not found in $PATH"
        there = self.files.is_file(self.path(name)) or self.files.is_directory(self.path(name))
        return "permission denied" if there else f"stat {name}: no such file or directory"

    async def run(self, *command: str, in_place: bool = False, **changes: Any) -> int:
        """Run another program with the same streams; its exit code, 127 if there is none.
        `in_place`: in the place of this one, as `exec` does."""
        inner = replace(self, command=command, **changes)
        program = inner.find()
        if program is None:
            denied = inner.why_not_found() == "permission denied"
            why = "Permission denied" if denied else "not found"
            shell = next((word for word in self.command[:1] if word.endswith("sh")), "sh")
            await self.err(f"{shell}: {command[0]}: {why}\n")
            return SHELL_ERROR if denied else NOT_FOUND
        try:
            pid = self.processes.pid if in_place else self.table.next_pid()
            with self.table.running(pid, self.identity.uid, command):
                return await _finished(program, inner)
        except BrokenPipeError:
            return BROKEN_PIPE


def exec_failed(invocation: Invocation, exec_id: str) -> str:
    """What containerd says of an exec whose program is not there (CRI-111)."""
    why = invocation.why_not_found()
    return (
        f'failed to exec in container: failed to start exec "{exec_id}": '
        "OCI runtime exec failed: exec failed: unable to start container process: "
        f'exec: "{invocation.command[0]}": {why}: unknown'
    )


Program: TypeAlias = Callable[[Invocation], "Awaitable[int | None] | int | None"]


async def exit_code_of(program: Program, invocation: Invocation) -> int:
    """Run a program, written as an async function or a plain one; its exit code."""
    table, identity = invocation.table, invocation.identity
    with table.running(invocation.processes.pid, identity.uid, invocation.command):
        return await _finished(program, invocation)


async def _finished(program: Program, invocation: Invocation) -> int:
    result = program(invocation)
    if inspect.isawaitable(result):
        result = await result
    return result or 0


async def nothing(run: Invocation) -> int:
    """A program that is there, and of which nothing else is known."""
    return 0
