"""The commands that change the shell itself, and those that need to know it."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from typing import Final

from fakecri.fakesh.invocations.invocation import NOT_FOUND, USAGE
from fakecri.fakesh.shell.control import Break, Exit, Return
from fakecri.fakesh.shell.grammar import parse
from fakecri.fakesh.shell.interpreter import DEEPEST, Builtin, Shell
from fakecri.fakesh.shell.scan import ScriptError
from fakecri.fakesh.shell.words import separators
from fakecri.process.pipes import read_line

_SIGNALS: Final = {"1": "HUP", "2": "INT", "3": "QUIT", "9": "KILL", "15": "TERM", "0": "EXIT"}
_NUMBERS: Final = {name: int(number) for number, name in _SIGNALS.items()} | {
    "USR1": 10,
    "USR2": 12,
}
_TERMINATED: Final = 143
_KNOWN_OPTIONS: Final = frozenset("eux")
_LONG_OPTIONS: Final = {"errexit": "e", "nounset": "u", "xtrace": "x", "pipefail": "pipefail"}


def _code(shell: Shell, arguments: list[str]) -> int:
    if not arguments:
        return shell.code
    number = _number(arguments[0])
    return USAGE if number is None else number & 0xFF


def _number(text: str) -> int | None:
    return int(text) if text.isdecimal() and len(text) < 10 else None


async def _exit(shell: Shell, arguments: list[str]) -> int:
    raise Exit(_code(shell, arguments))


async def _return(shell: Shell, arguments: list[str]) -> int:
    raise Return(_code(shell, arguments) if arguments else None)


def _jump(*, goes_on: bool) -> Builtin:
    async def jump(shell: Shell, arguments: list[str]) -> int:
        levels = (_number(arguments[0]) if arguments else None) or 1
        if not shell.loops:
            return 0
        raise Break(levels, goes_on=goes_on)

    return jump


async def _nothing(shell: Shell, arguments: list[str]) -> int:
    return 0


async def _cd(shell: Shell, arguments: list[str]) -> int:
    wanted = arguments[0] if arguments else shell.names.get("HOME", "/")
    if wanted == "-":
        wanted = shell.names.get("OLDPWD", "/")
    path = shell.run.path(wanted)
    if not shell.run.files.is_directory(path):
        await shell.run.err(f"sh: cd: can't cd to {wanted}: No such file or directory\n")
        return USAGE
    shell.names["OLDPWD"], shell.names["PWD"] = shell.run.cwd, path
    shell.run = replace(shell.run, cwd=path)
    return 0


async def _export(shell: Shell, arguments: list[str]) -> int:
    for argument in arguments:
        name, sign, value = argument.partition("=")
        shell.exported.add(name)
        if sign:
            shell.names[name] = value
    return 0


async def _local(shell: Shell, arguments: list[str]) -> int:
    for argument in arguments:
        name, _, value = argument.partition("=")
        shell.outer_names.setdefault(name, shell.names.get(name))
        shell.names[name] = value
    return 0


async def _unset(shell: Shell, arguments: list[str]) -> int:
    for name in arguments:
        shell.names.pop(name, None)
        shell.functions.pop(name, None)
    return 0


async def _set(shell: Shell, arguments: list[str]) -> int:
    while arguments and arguments[0][:1] in ("-", "+") and len(arguments[0]) > 1:
        word = arguments.pop(0)
        if word == "--":
            shell.arguments = arguments
            return 0
        letters = set(word[1:]) & _KNOWN_OPTIONS
        if "o" in word[1:]:
            letters |= {_LONG_OPTIONS.get(arguments[0], "")} if arguments else set()
            arguments = arguments[1:]
        shell.options = shell.options | letters if word[0] == "-" else shell.options - letters
    if arguments:
        shell.arguments = arguments
    return 0


async def _shift(shell: Shell, arguments: list[str]) -> int:
    count = _number(arguments[0]) if arguments else 1
    if count is None:
        await shell.run.err(f"sh: shift: Illegal number: {arguments[0]}\n")
        return USAGE
    if count > len(shell.arguments):
        return 1
    shell.arguments = shell.arguments[count:]
    return 0


async def _read(shell: Shell, arguments: list[str]) -> int:
    """`read [-r] [NAME...]`: each name gets a word, the last name the rest of the line."""
    names = [a for a in arguments if not a.startswith("-")] or ["REPLY"]
    ifs = shell.names.get("IFS", " \t\n")
    line = await read_line(shell.run.stdin)
    rest = line.decode("utf-8", "replace").removesuffix("\n")
    if "-r" not in arguments:
        rest = re.sub(r"\\(.)", r"\1", rest)
    blanks = "".join(char for char in ifs if char.isspace())
    rest = rest.strip(blanks)
    for name in names[:-1]:
        between = re.search(separators(ifs), rest)
        start, end = between.span() if between else (len(rest), len(rest))
        shell.names[name], rest = rest[:start], rest[end:]
    shell.names[names[-1]] = rest
    return 0 if line.endswith(b"\n") else 1


async def _source(shell: Shell, arguments: list[str]) -> int:
    """`. FILE`: run a file in this very shell."""
    if not arguments:
        await shell.run.err("sh: .: filename argument required\n")
        return USAGE
    try:
        path = shell.run.path(arguments[0])
        data = shell.run.files.read(path, lenient=shell.run.lenient, name=arguments[0])
    except OSError as error:
        text = f"sh: .: can't open '{arguments[0]}': {error.strerror}\n"
        await shell.run.err(text)
        raise Exit(USAGE) from None
    if shell.depth >= DEEPEST:
        raise ScriptError("too many scripts within one another")
    shell.depth += 1
    try:
        return await shell.do(parse(data.decode("utf-8", "replace")))
    except Return as end:
        return shell.code if end.code is None else end.code
    finally:
        shell.depth -= 1


async def _trap(shell: Shell, arguments: list[str]) -> int:
    arguments = arguments[1:] if arguments[:1] == ["--"] else arguments
    if not arguments:
        return 0
    action, *signals = arguments
    for signal in signals or [action]:
        name = _SIGNALS.get(signal, signal.upper().removeprefix("SIG"))
        if action == "-" or not signals:
            shell.traps.pop(name, None)
        else:
            shell.traps[name] = action
        if name == "TERM":
            shell.trap_stop(traps=name in shell.traps)
    return 0


async def _wait(shell: Shell, arguments: list[str]) -> int:
    processes = shell.run.processes
    jobs = [job for n in arguments if (job := processes.job(n)) is not None]
    if arguments and not jobs:
        return NOT_FOUND
    jobs = jobs or processes.running()
    if jobs and not await _all_done(shell, jobs):
        return _TERMINATED
    if not arguments:
        return 0
    return _TERMINATED if jobs[-1].cancelled() else jobs[-1].result()


async def _all_done(shell: Shell, jobs: list[asyncio.Task[int]]) -> bool:
    """Wait until the jobs have ended; False: a signal for which there is a trap came first."""
    signalled = asyncio.create_task(shell.run.stop.wait())
    waiting = asyncio.create_task(asyncio.wait(jobs))
    traps = bool(shell.traps.get("TERM")) and not shell.stop_heard
    try:
        await asyncio.wait(
            (waiting, signalled) if traps else (waiting,), return_when=asyncio.FIRST_COMPLETED
        )
        return waiting.done()
    finally:
        signalled.cancel()
        waiting.cancel()


async def _kill(shell: Shell, arguments: list[str]) -> int:
    signal = "TERM"
    if arguments[:1] == ["-s"]:
        signal, arguments = (arguments[1:2] or ["TERM"])[0], arguments[2:]
    elif arguments and arguments[0].startswith("-"):
        signal, arguments = arguments[0][1:], arguments[1:]
    signal = _SIGNALS.get(signal, signal.upper().removeprefix("SIG"))
    code = 0
    for number in arguments:
        job = shell.run.processes.job(number)
        if number == str(shell.run.processes.pid) and signal in ("EXIT", *_NUMBERS):
            await _kill_itself(shell, signal)
        elif job is not None:
            job.cancel()
        elif number == "1" and shell.run.signal_main is not None:
            shell.run.signal_main(signal)
        else:
            await shell.run.err(f"sh: can't kill pid {number}: No such process\n")
            code = 1
    return code


async def _kill_itself(shell: Shell, signal: str) -> None:
    if signal == "EXIT":  # 0: is it there?
        return
    if signal in shell.traps:
        await shell.evaluate(shell.traps[signal])
    elif signal == "KILL" or shell.run.processes.pid != 1:  # which hears no other (CRI-058)
        raise Exit(128 + _NUMBERS.get(signal, 15))


async def _exec(shell: Shell, arguments: list[str]) -> int:
    if not arguments:
        return 0
    raise Exit(await shell.call(arguments, {}, in_place=True))


async def _eval(shell: Shell, arguments: list[str]) -> int:
    return await shell.do(parse(" ".join(arguments)))


async def _command(shell: Shell, arguments: list[str]) -> int:
    if arguments[:1] not in (["-v"], ["-V"]):
        return await shell.call(arguments, {}) if arguments else 0
    return await _which(shell, arguments[1:])


async def _which(shell: Shell, arguments: list[str]) -> int:
    code = 0
    for name in arguments:
        if name in BUILTINS or name in shell.functions:
            await shell.run.out(f"{name}\n")
        elif replace(shell.run, command=(name,)).find() is not None:
            await shell.run.out(f"/bin/{name.rsplit('/', 1)[-1]}\n")
        else:
            code = NOT_FOUND
    return code


async def _umask(shell: Shell, arguments: list[str]) -> int:
    if not arguments:
        await shell.run.out("0022\n")
    return 0


BUILTINS: Final[dict[str, Builtin]] = {
    ".": _source,
    ":": _nothing,
    "break": _jump(goes_on=False),
    "cd": _cd,
    "command": _command,
    "continue": _jump(goes_on=True),
    "eval": _eval,
    "exec": _exec,
    "exit": _exit,
    "export": _export,
    "kill": _kill,
    "local": _local,
    "read": _read,
    "readonly": _export,
    "return": _return,
    "set": _set,
    "shift": _shift,
    "source": _source,
    "trap": _trap,
    "type": _which,
    "ulimit": _nothing,
    "umask": _umask,
    "unset": _unset,
    "wait": _wait,
}
