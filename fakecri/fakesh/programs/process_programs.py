"""Programs about processes and what the kernel gives them: `ps`, `pgrep`, `pidof`, `dd`, ...

They answer as busybox does.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Mapping
from typing import Final

from fakecri.fakesh.invocations.files import MOST_BYTES
from fakecri.fakesh.invocations.invocation import NOT_FOUND, PIECE_BYTES, USAGE, Invocation, Program
from fakecri.fakesh.invocations.process_table import Entry
from fakecri.fakesh.programs.file_programs import operands
from fakecri.fakesh.shell.redirections import opened_for_writing
from fakecri.process.pipes import Discard, Output

_KILLED: Final = 137
_TIMED_OUT: Final = 143
_PAUSE_S: Final = 0.001
"""So an endless copy takes time, also where time is virtual, and can be ended."""
_UNITS: Final = {"": 1, "c": 1, "w": 2, "b": 512, "k": 1024, "K": 1024, "M": 1 << 20, "G": 1 << 30}
_SIZE: Final = re.compile(r"(\d{1,12})([cwbkKMG]?)(?:i?B)?")
_ENDLESS: Final = ("/dev/zero", "/dev/urandom", "/dev/random")


def _entries(run: Invocation) -> list[Entry]:
    return run.table.entries() if run.seen is None else run.seen()


async def _ps(run: Invocation) -> int:
    """Every process, whatever the options say."""
    users = {0: "root", 65534: "nobody"}
    await run.out("PID   USER     TIME  COMMAND\n")
    for entry in _entries(run):
        user = users.get(entry.uid, str(entry.uid))
        await run.out(f"{entry.pid:5} {user:8}  0:00 {' '.join(entry.command)}\n")
    return 0


async def _pgrep(run: Invocation) -> int:
    """`pgrep [-f] [-l] [-x] PATTERN`: never itself."""
    letters, words = operands(run)
    if len(words) != 1:
        await run.err("pgrep: a pattern is missing\n")
        return USAGE
    match = re.fullmatch if "x" in letters else re.search
    code = 1
    for entry in _entries(run):
        text = " ".join(entry.command) if "f" in letters else entry.name
        if match(words[0], text) and entry.command != run.command:
            code = 0
            await run.out(f"{entry.pid} {entry.name}\n" if "l" in letters else f"{entry.pid}\n")
    return code


async def _pidof(run: Invocation) -> int:
    """The newest first."""
    names = {name.rpartition("/")[2] for name in operands(run)[1]}
    found = [str(entry.pid) for entry in reversed(_entries(run)) if entry.name in names]
    await run.out(" ".join(found) + "\n" if found else "")
    return int(not found)


async def _kill(run: Invocation) -> int:
    """`kill [-SIGNAL] 1`: of other processes no program of the fake hears a signal."""
    words, signal, code = list(run.command[1:]), "TERM", 0
    if words[:1] == ["-s"]:
        words = words[1:]
        words[:1] = [f"-{words[0]}"] if words else []
    if words and words[0].startswith("-"):
        text = words.pop(0)[1:].upper().removeprefix("SIG")
        signal = {"15": "TERM", "9": "KILL"}.get(text, text)
    for number in words:
        if number == "1" and run.signal_main is not None:
            run.signal_main(signal)
        else:
            await run.err(f"kill: can't kill pid {number}: No such process\n")
            code = 1
    return code


async def _timeout(run: Invocation) -> int:
    """`timeout [-s SIGNAL] [-k SECONDS] SECONDS COMMAND...`."""
    words = list(run.command[1:])
    while words and words[0] in ("-s", "-k", "-t"):
        words = words[2:] if words[0] != "-t" else words[1:]
    try:
        limit_s = float(words[0].removesuffix("s")) if len(words) > 1 else -1.0
    except ValueError:
        limit_s = -1.0
    if not limit_s >= 0:
        await run.err("timeout: the fake knows only: timeout SECONDS COMMAND\n")
        return USAGE
    try:
        return await asyncio.wait_for(run.run(*words[1:]), limit_s or None)
    except TimeoutError:
        top = (run.processes.pid, run.command)
        if top not in ((entry.pid, entry.command) for entry in run.table.entries()):
            await run.err("Terminated\n")  # which the shell around it says
        return _TIMED_OUT


async def _xargs(run: Invocation) -> int:
    """`xargs [-n NUMBER] [COMMAND...]`."""
    words, most = list(run.command[1:]), 1000
    if words[:1] == ["-n"] and words[1:2] and words[1].isdecimal():
        most, words = max(1, int(words[1][:6])), words[2:]
    data = bytearray()
    while piece := await run.stdin.read(PIECE_BYTES):
        data += piece
    given = data.decode("utf-8", "replace").split()
    code = 0
    for at in range(0, max(len(given), 1), most):
        code = code or await run.run(*(words or ["echo"]), *given[at : at + most])
    return code


def _size(text: str) -> int:
    """`20M`, `4k`, `512`. Raises ValueError."""
    found = _SIZE.fullmatch(text)
    if found is None or not int(found[1]):
        raise ValueError(text)
    return int(found[1]) * _UNITS[found[2]]


async def _dd(run: Invocation) -> int:
    """`if=`, `of=`, `bs=`, `count=`: it needs memory for one block."""
    given = dict(word.partition("=")[::2] for word in run.command[1:])
    try:
        block = _size(given.get("bs", "512"))
        count = int(given["count"]) if "count" in given else None
    except ValueError as error:
        await run.err(f"dd: invalid number: {error}\n")
        return 1
    if not run.take_memory(block):
        return _KILLED
    if block > MOST_BYTES:
        await run.err("dd: memory exhausted\n")
        return 1
    blocks = copied = 0
    try:
        output = _output(run, given.get("of", ""))
        async for piece in _pieces(run, given.get("if", ""), block):
            if blocks == count:
                break
            await output.write(piece)
            blocks, copied = blocks + 1, copied + len(piece)
    except BrokenPipeError:
        raise
    except OSError as error:
        await run.err(f"dd: {error.filename}: {error.strerror}\n")
        return 1
    await run.err(f"{blocks}+0 records in\n{blocks}+0 records out\n{copied} bytes copied\n")
    return 0


def _output(run: Invocation, name: str) -> Output:
    """Raises OSError."""
    if run.path(name) == "/dev/null":
        return Discard()
    return opened_for_writing(run, name, append=False) if name else run.stdout


async def _pieces(run: Invocation, name: str, block: int) -> AsyncIterator[bytes]:
    """What is read, block by block; endless for /dev/zero and its like. Raises OSError."""
    while name and run.path(name) in _ENDLESS:
        await asyncio.sleep(_PAUSE_S)
        yield bytes(block)
    if name:
        data = run.files.read(run.path(name), lenient=run.lenient, name=name)
        for at in range(0, len(data), block):
            yield data[at : at + block]
        return
    while piece := await run.stdin.read(block):
        yield piece


async def _sync(run: Invocation) -> int:
    return 0


async def _brctl(run: Invocation) -> int:
    """`addbr`, `delbr`: whether it may change the network; no bridge is kept."""
    if run.command[1:2] not in (("addbr",), ("delbr",)) or len(run.command) != 3:
        await run.err("brctl: the fake knows only: addbr NAME, delbr NAME\n")
        return USAGE
    if not run.security.may("ioctl", "NET_ADMIN"):
        await run.err(f"brctl: bridge {run.command[2]}: Operation not permitted\n")
        return 1
    return 0


async def _ipcs(run: Invocation) -> int:
    """Shared memory: its namespace has none, for no program of the fake makes any."""
    await run.out("------ Shared Memory Segments --------\n")
    await run.out("key        shmid      owner      perms      bytes      nattch     status\n\n")
    return 0


async def _nohup(run: Invocation) -> int:
    return await run.run(*run.command[1:]) if run.command[1:] else NOT_FOUND


PROCESS_PROGRAMS: Final[Mapping[str, Program]] = {
    "brctl": _brctl,
    "dd": _dd,
    "ipcs": _ipcs,
    "kill": _kill,
    "nohup": _nohup,
    "pgrep": _pgrep,
    "pidof": _pidof,
    "ps": _ps,
    "sync": _sync,
    "timeout": _timeout,
    "xargs": _xargs,
}
