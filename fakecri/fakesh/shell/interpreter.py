"""Runs what was parsed: commands with their streams, pipelines, lists, loops, functions.

One `Shell` is one process of `sh`; pipelines and `( )` run in copies of it. Jobs behind `&` are
tasks of the loop and belong to the whole program (`Invocation.processes`). What must never happen
here: an endless loop of a script keeps the loop from others, or a task outlives the program.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from fakecri.fakesh.invocations.invocation import USAGE, Invocation
from fakecri.fakesh.shell import control, nodes, pipelines, words
from fakecri.fakesh.shell.control import Break, Exit, Return
from fakecri.fakesh.shell.grammar import parse
from fakecri.fakesh.shell.scan import ScriptError, Unsupported
from fakecri.process.pipes import Collected, ended

_STEPS_BETWEEN_PAUSES: Final = 100
_PAUSE_S: Final = 0.01
"""A loop that does nothing else takes this time now and then, also in virtual time, so that it can
be ended."""
_MOST_JOBS: Final = 200


Builtin: TypeAlias = "Callable[[Shell, list[str]], Awaitable[int]]"
"""A command of the shell itself: gets the shell and its arguments, gives its exit code."""
DEEPEST: Final = 25
"""How deep processes, functions and files of scripts may be nested."""


@dataclass(slots=True)
class Shell:
    """A process of the shell."""

    run: Invocation
    """Its command, streams, files and environment."""
    names: dict[str, str]
    """All variables."""
    builtins: Mapping[str, Builtin]
    """The commands of the shell itself, by name."""
    arguments: list[str] = field(default_factory=list)
    """`$1` and so on."""
    script: str = "sh"
    """`$0`."""
    exported: set[str] = field(default_factory=set)
    """Which variables programs get."""
    functions: dict[str, nodes.Node] = field(default_factory=dict)
    """Their bodies by name."""
    traps: dict[str, str] = field(default_factory=dict)
    """Scripts by signal (EXIT, TERM, ...)."""
    options: set[str] = field(default_factory=set)
    """What `set` has switched on: e, u, x, pipefail."""
    code: int = 0
    """`$?`."""
    substituted: int = 0
    """The exit code of the last `$( )` of the command that is being run; 0 for none."""
    loops: int = 0
    """How many loops it is in."""
    last_job: asyncio.Task[int] | None = None
    """`$!`; None: there is none."""
    depth: int = 0
    """How many processes and functions it is within."""
    unguarded: bool = True
    """Whether `set -e` counts here: not in conditions."""
    steps: int = 0
    """Commands that were run, for the pauses between them."""
    stop_heard: bool = False
    """The trap for TERM has run."""
    outer_names: dict[str, str | None] = field(default_factory=dict)
    """What `local` names of the running function were outside."""

    def trap_stop(self, *, traps: bool) -> None:
        """Say whether the script handles the stop signal of the container itself. It counts only in
        the first process of a container."""
        if self.run.processes.pid == 1 and not self.depth:
            self.run.traps_stop(traps)

    def around(self) -> words.Surroundings:
        """What the words of the script may refer to."""
        return words.Surroundings(
            names=self.names,
            special=self._special,
            arguments=lambda: self.arguments,
            run=self._output_of,
            names_of=lambda pattern: self.run.files.matching(pattern, self.run.cwd),
            strict="u" in self.options,
        )

    def _special(self, name: str) -> str | None:
        if name.isdecimal():
            known = [self.script, *self.arguments]
            number = int(name[:9])
            return known[number] if number < len(known) else None
        job = "" if self.last_job is None else str(self.run.processes.number_of(self.last_job))
        fixed = {
            "?": str(self.code),
            "$": str(self.run.processes.pid),
            "!": job,
            "-": "".join(sorted(self.options & set("eux"))),
        }
        return str(len(self.arguments)) if name == "#" else fixed.get(name)

    async def _output_of(self, script: str) -> str:
        out = Collected()
        inner = self.copy(replace(self.run, stdout=out))
        self.code = self.substituted = await inner.run_script(script)
        return bytes(out.data).decode("utf-8", "replace").replace("\0", "")

    def copy(self, run: Invocation) -> Shell:
        """A process of its own, for a subshell or a part of a pipeline. It does not inherit traps.
        Raises ScriptError when processes are nested too deep."""
        if self.depth >= DEEPEST:
            raise ScriptError("too many processes below one another")
        return replace(
            self,
            run=run,
            names=dict(self.names),
            arguments=list(self.arguments),
            exported=set(self.exported),
            functions=dict(self.functions),
            traps={},
            options=set(self.options),
            depth=self.depth + 1,
        )

    # -- running -----------------------------------------------------------------------------

    async def run_script(self, script: str) -> int:
        """Run a script to its end, with what `exit` and traps do; returns its exit code."""
        try:
            try:
                code = await self.evaluate(script)
            except Break:
                code = self.code
            except Return as end:
                code = self.code if end.code is None else end.code
        except Exit as end:
            code = end.code
        if "EXIT" in self.traps:
            self.code = code
            try:
                await self.evaluate(self.traps.pop("EXIT"))
            except Exit as end:
                code = end.code
        return code

    async def evaluate(self, script: str) -> int:
        """Run a script in this shell; returns the exit code of its last command. A script that
        cannot be run is an error on stderr and ends the shell with code 2."""
        try:
            return await self.do(parse(script))
        except ScriptError as error:
            if self.run.lenient and isinstance(error, Unsupported):
                return 0
            await self.run.err(f"sh: {error}\n")
            self.code = USAGE
            raise Exit(USAGE, wrong_script=True) from None

    async def do(self, node: nodes.Node) -> int:
        """Run one part of a script; its exit code becomes `$?`."""
        self.steps += 1
        if self.steps % _STEPS_BETWEEN_PAUSES == 0:
            await asyncio.sleep(_PAUSE_S)
        if self.traps.get("TERM") and self.run.stop.is_set() and not self.stop_heard:
            await self._trap()
        self.code = await self._do(node)
        return self.code

    async def _trap(self) -> None:
        self.stop_heard, code = True, self.code
        await self.evaluate(self.traps["TERM"])
        self.code = code

    async def _do(self, node: nodes.Node) -> int:
        match node:
            case nodes.Command():
                return await self.checked(await self._command(node))
            case nodes.Redirected():
                return await pipelines.redirect(self, node)
            case nodes.Pipeline():
                return await pipelines.pipe(self, node)
            case nodes.AndOr():
                return await control.and_or(self, node)
            case nodes.Background():
                return self._start_job(node.inner)
            case nodes.Sequence():
                for item in node.items:
                    await self.do(item)
                return self.code if node.items else 0
            case nodes.If():
                return await control.choose(self, node)
            case nodes.Loop():
                return await control.loop(self, node)
            case nodes.For():
                return await control.loop_over(self, node)
            case nodes.Case():
                return await control.case(self, node)
            case nodes.Subshell():
                inner = self.copy(self.run)
                return await self.checked(await inner.run_node(node.body))
            case nodes.Function():
                self.functions[node.name] = node.body
                return 0

    async def run_node(self, node: nodes.Node) -> int:
        """Run one part of a script in this shell as a process of its own, which `exit` ends."""
        try:
            return await self.do(node)
        except Exit as end:
            return end.code
        except (Break, Return):
            return self.code
        except ScriptError as error:
            await self.run.err(f"sh: {error}\n")
            return USAGE

    async def checked(self, code: int) -> int:
        """The exit code of a command; with `set -e` one that is not 0 ends the shell."""
        if code and self.unguarded and "e" in self.options:
            raise Exit(code)
        return code

    async def condition(self, node: nodes.Node) -> bool:
        """Whether a part of a script ends with 0; `set -e` does not count in it."""
        outer, self.unguarded = self.unguarded, False
        try:
            return await self.do(node) == 0
        finally:
            self.unguarded = outer

    def _start_job(self, node: nodes.Node) -> int:
        if len(self.run.processes.running()) >= _MOST_JOBS:
            raise ScriptError("can't fork: Resource temporarily unavailable")
        inner = self.copy(replace(self.run, stdin=ended()))
        self.last_job = self.run.processes.start(inner.run_node(node))
        return 0

    # -- commands ----------------------------------------------------------------------------

    async def expand(self, raw: str) -> list[str]:
        """The words that a word of the script becomes."""
        return await words.to_words(raw, self.around())

    async def _command(self, node: nodes.Command) -> int:
        self.substituted = 0
        expanded = [word for raw in node.words for word in await self.expand(raw)]
        given = {name: await words.to_text(raw, self.around()) for name, raw in node.assignments}
        if not expanded:
            self.names.update(given)
            return self.substituted
        if "x" in self.options:
            await self.run.err(f"+ {' '.join(expanded)}\n")
        return await self.call(expanded, given)

    async def call(
        self, expanded: Sequence[str], given: dict[str, str], *, in_place: bool = False
    ) -> int:
        """Run a function, a command of the shell itself, or a program; `given`: variables for it
        alone."""
        name = expanded[0]
        if name in self.functions:
            return await self._function(self.functions[name], list(expanded[1:]), given)
        if name in self.builtins:
            outer = {key: self.names.get(key) for key in given}
            self.names.update(given)
            try:
                return await self.builtins[name](self, list(expanded[1:]))
            finally:
                if name not in ("exec", "export", "eval"):
                    self._put_back(outer)
        env = {key: self.names[key] for key in self.exported if key in self.names}
        return await self.run.run(*expanded, in_place=in_place, env={**env, **given})

    def _put_back(self, names: Mapping[str, str | None]) -> None:
        """Give variables their former values; None: unset."""
        for name, value in names.items():
            self.names.pop(name, None)
            if value is not None:
                self.names[name] = value

    async def _function(self, body: nodes.Node, arguments: list[str], given: dict[str, str]) -> int:
        if self.depth >= DEEPEST:
            raise ScriptError("too many functions within one another")
        outer, self.arguments = self.arguments, arguments
        names, self.outer_names = self.outer_names, {}
        self.names.update(given)
        self.depth += 1
        try:
            return await self.do(body)
        except Return as end:
            return self.code if end.code is None else end.code
        finally:
            self._put_back(self.outer_names)
            self.arguments, self.outer_names = outer, names
            self.depth -= 1
