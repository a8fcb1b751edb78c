"""`sh`: `sh -c SCRIPT [NAME ARGUMENT...]`, or `sh` with the script as its input.

The language is in `fakecri.shell`. On a terminal `sh` shows a prompt.
"""

from __future__ import annotations

from typing import Final

from fakecri.fakesh.invocations.invocation import USAGE, Invocation
from fakecri.fakesh.shell.builtins import BUILTINS
from fakecri.fakesh.shell.control import Exit
from fakecri.fakesh.shell.grammar import parse
from fakecri.fakesh.shell.interpreter import Shell
from fakecri.fakesh.shell.scan import ScriptError, Unfinished
from fakecri.process.pipes import read_line

PROMPT: Final = "/ # "
MORE: Final = "> "
_OPTIONS: Final = frozenset("aceiluxv")


async def sh(run: Invocation) -> int:
    """Run `sh`; the exit code is that of the script, 2 for one that cannot be run."""
    words = list(run.command[1:])
    options: set[str] = set()
    while words and words[0].startswith("-") and set(words[0][1:]) <= _OPTIONS and words[0] != "-":
        options |= set(words.pop(0)[1:])
    shell = _shell(run)
    shell.options = options & set("eux")
    if "c" in options:
        if not words:
            await run.err("sh: -c requires an argument\n")
            return USAGE
        script, *rest = words
        shell.script, shell.arguments = (rest[0] if rest else "sh"), rest[1:]
        return await shell.run_script(script)
    if words and words[0] != "-":
        return await _run_file(shell, words)
    return await _run_lines(shell)


def _shell(run: Invocation) -> Shell:
    names = {"PWD": run.cwd, "IFS": " \t\n", **run.env}
    return Shell(run, names, BUILTINS, exported=set(run.env))


async def _run_file(shell: Shell, words: list[str]) -> int:
    path = shell.run.path(words[0])
    try:
        script = shell.run.files.read(path, lenient=shell.run.lenient, name=words[0])
    except OSError as error:
        await shell.run.err(f"sh: can't open '{words[0]}': {error.strerror}\n")
        return USAGE
    shell.script, shell.arguments = words[0], words[1:]
    return await shell.run_script(script.decode("utf-8", "replace"))


async def _run_lines(shell: Shell) -> int:
    """Run what is typed or piped in, as soon as it is a whole command; a loop takes several
    lines."""
    run, begun = shell.run, ""
    while True:
        if run.tty:
            await run.out(PROMPT if not begun else MORE)
        line = await read_line(run.stdin)
        begun += line.decode("utf-8", "replace")
        if line and not _is_whole(begun):
            continue
        try:
            if begun.strip():
                await shell.evaluate(begun)
        except Exit as end:
            if not (run.tty and end.wrong_script and line):
                return end.code
        if not line:
            return shell.code
        begun = ""


def _is_whole(script: str) -> bool:
    try:
        parse(script)
    except Unfinished:
        return False
    except ScriptError:
        return True
    return True
