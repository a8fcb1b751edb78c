"""A very small `sh`: words and quotes, `$NAME`, `;`, `&&`, `||`, `>&2`, and `exit`.

`sh -c SCRIPT` runs the script; `sh` alone runs the lines of its input, with a prompt on a terminal.
Anything else of the language (pipes, files, loops) is refused by name with exit code 2, never
half-done. Parsing is pure; `Script` is what it makes.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from fakecri.streaming.commands import BUILT_IN, USAGE, Invocation, Program

PROMPT: Final = "/ # "
_JOINTS: Final = frozenset({";", "&&", "||"})
_PUNCTUATION: Final = frozenset(";&|<>()")
_NAME: Final = re.compile(r"\$(?:\{(\w+)\}|(\w+)|(\?))")


class ScriptError(ValueError):
    """The script is not in the part of the language that this shell knows."""


@dataclass(frozen=True, slots=True)
class Step:
    """One command; `joint` says when: `;` always, `&&` after success, `||` after failure."""

    joint: str
    words: tuple[str, ...]
    to_stderr: bool = False


def parse(script: str) -> tuple[Step, ...]:
    """The steps of a script. Raises: ScriptError.

    >>> [(step.joint, step.words) for step in parse("echo a && exit 3")]
    [(';', ('echo', 'a')), ('&&', ('exit', '3'))]
    """
    lexer = shlex.shlex(script.replace("\n", " ; "), posix=False, punctuation_chars=";&|<>()")
    lexer.whitespace_split = True
    lexer.commenters = "#"
    steps: list[Step] = []
    joint, words, to_stderr = ";", list[str](), False
    try:
        tokens = list(lexer)
    except ValueError as error:
        raise ScriptError(f"syntax error: {error}") from None
    at = 0
    while at < len(tokens):
        token = tokens[at]
        if token in _JOINTS:
            if words:
                steps.append(Step(joint, tuple(words), to_stderr))
            elif token != ";":
                raise ScriptError(f'syntax error: unexpected "{token}"')
            joint, words, to_stderr = token, [], False
        elif token == ">&" and tokens[at + 1 : at + 2] == ["2"]:
            to_stderr = True
            words = words[:-1] if words[-1:] == ["1"] else words
            at += 1
        elif set(token) <= _PUNCTUATION:
            raise ScriptError(f"the fake's sh knows ; && || and >&2 only, not {token}")
        else:
            words.append(token)
        at += 1
    if words:
        steps.append(Step(joint, tuple(words), to_stderr))
    return tuple(steps)


def expand(word: str, env: Mapping[str, str], last_code: int) -> str:
    """A word without its quotes, variables replaced where quotes allow it.

    >>> expand('''a"$X"'$X' ''', {"X": "1"}, 0)
    'a1$X'
    """

    def value(found: re.Match[str]) -> str:
        return str(last_code) if found[3] else env.get(found[1] or found[2], "")

    pieces = re.findall(r"'[^']*'|\"(?:\\.|[^\"])*\"|\\.|[^'\"\\]+", word.strip())
    expanded = []
    for piece in pieces:
        if piece.startswith("'"):
            expanded.append(piece[1:-1])
        elif piece.startswith('"'):
            expanded.append(re.sub(r"\\([\"\\$`])", r"\1", _NAME.sub(value, piece[1:-1])))
        elif piece.startswith("\\"):
            expanded.append(piece[1:])
        else:
            expanded.append(_NAME.sub(value, piece))
    return "".join(expanded)


class _Exit(Exception):
    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


async def sh(run: Invocation) -> int:
    """`sh -c SCRIPT [NAME ARGUMENT...]`, or `sh` with the script as its input."""
    arguments = run.command[1:]
    try:
        if arguments[:1] == ("-c",):
            if len(arguments) < 2:
                await run.err("sh: -c requires an argument\n")
                return USAGE
            positional = {str(i): text for i, text in enumerate(arguments[2:])}
            return await _run_script(run, arguments[1], 0, positional)
        if arguments:
            await run.err(f"sh: can't open '{arguments[0]}': No such file or directory\n")
            return USAGE
        return await _run_lines(run)
    except _Exit as end:
        return end.code


async def _run_lines(run: Invocation) -> int:
    code = 0
    while True:
        if run.tty:
            await run.out(PROMPT)
        line = await run.stdin.readline()
        if not line:
            return code
        code = await _run_script(run, line.decode("utf-8", "replace"), code, {})


async def _run_script(
    run: Invocation, script: str, code: int, positional: Mapping[str, str]
) -> int:
    try:
        steps = parse(script)
    except ScriptError as error:
        if run.lenient:
            return 0
        await run.err(f"sh: {error}\n")
        return USAGE
    for step in steps:
        if step.joint == ";" or (step.joint == "&&") == (code == 0):
            code = await _run_step(run, step, code, {**run.env, **positional})
    return code


async def _run_step(run: Invocation, step: Step, last_code: int, names: Mapping[str, str]) -> int:
    words = tuple(expand(word, names, last_code) for word in step.words)
    if words[0] == "exit":
        given = words[1] if len(words) > 1 else str(last_code)
        raise _Exit(int(given) & 0xFF if given.isdigit() else USAGE)
    return await run.run(*words, stdout=run.stderr if step.to_stderr else run.stdout)


PROGRAMS: Final[Mapping[str, Program]] = {**BUILT_IN, "sh": sh, "bash": sh}
"""Everything that is in a fake container from the start."""
