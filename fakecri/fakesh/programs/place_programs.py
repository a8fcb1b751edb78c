"""Programs that tell of files and places: `find`, `stat`, `mount`, `df`, `realpath`, `mktemp`, and
`expr`, which tells of words."""

from __future__ import annotations

import fnmatch
import posixpath
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from fakecri.fakesh.invocations.invocation import USAGE, Invocation, Program
from fakecri.fakesh.programs.file_programs import operands

MOUNTS: Final = "/proc/mounts"
_MOST_NAMES: Final = 1000


async def _find(run: Invocation) -> int:
    """`find [PLACE...] [-name PATTERN] [-type f|d] [-maxdepth NUMBER]`."""
    words, places = list(run.command[1:]), list[str]()
    while words and not words[0].startswith("-"):
        places.append(words.pop(0))
    given = dict(zip(words[::2], words[1::2], strict=False))
    if len(words) % 2 or not set(given) <= {"-name", "-type", "-maxdepth"}:
        await run.err("find: the fake knows only: -name PATTERN, -type f|d, -maxdepth NUMBER\n")
        return 1
    deepest = int(given["-maxdepth"][:4]) if given.get("-maxdepth", "x").isdecimal() else 100
    code = 0
    for place in places or ["."]:
        path = run.path(place)
        if not (run.files.is_directory(path) or run.files.is_file(path)):
            await run.err(f"find: {place}: No such file or directory\n")
            code = 1
            continue
        for name, kind in _below(run, place, deepest):
            fits = fnmatch.fnmatchcase(posixpath.basename(name), given.get("-name", "*"))
            if fits and kind in given.get("-type", "fd"):
                await run.out(f"{name}\n")
    return code


def _below(run: Invocation, name: str, deepest: int) -> Iterator[tuple[str, str]]:
    """A place and all below it, with "d" for directories and "f" for files."""
    path = run.path(name)
    directory = run.files.is_directory(path)
    yield name, "d" if directory else "f"
    if directory and deepest > 0:
        for inner in run.files.names_in(path):
            yield from _below(run, posixpath.join(name, inner), deepest - 1)


async def _stat(run: Invocation) -> int:
    """`stat [-c FORMAT] FILE...` with %n, %s, %F, %a, %A, %u, %g."""
    words, shape = list(run.command[1:]), "  File: %n\n  Size: %s\t%F\nAccess: (%a/%A)"
    if words[:1] == ["-c"] and len(words) > 1:
        shape, words = words[1], words[2:]
    code = 0
    for name in words:
        path = run.path(name)
        directory = run.files.is_directory(path)
        if not directory and not run.files.is_file(path, lenient=run.lenient):
            await run.err(f"stat: can't stat '{name}': No such file or directory\n")
            code = 1
            continue
        kinds = ("directory", "755", "drwxr-xr-x") if directory else (
            "regular file", "644", "-rw-r--r--"
        )  # fmt: skip
        known = dict(zip("FaA", kinds, strict=True))
        known |= {"n": name, "s": str(run.files.size(path)), "u": "0", "g": "0", "%": "%"}
        await run.out(re.sub("%(.)", lambda m: known.get(m[1], m[0]), shape) + "\n")  # noqa: B023
    return code


async def _mount(run: Invocation) -> int:
    """What is mounted; it mounts nothing."""
    if run.command[1:]:
        why = "permission denied (are you root?)"
        if run.security.may("mount", "SYS_ADMIN"):
            why = "the fake mounts nothing"
        await run.err(f"mount: {why}\n")
        return 1
    for line in run.files.read(MOUNTS).decode("utf-8", "replace").splitlines():
        device, place, kind, options = line.split()[:4]
        await run.out(f"{device} on {place} type {kind} ({options})\n")
    return 0


async def _df(run: Invocation) -> int:
    """The mounted places that fit; how much is free is not known."""
    wanted = {run.path(name) for name in operands(run)[1]}
    await run.out("Filesystem           1K-blocks      Used Available Use% Mounted on\n")
    for line in run.files.read(MOUNTS).decode("utf-8", "replace").splitlines():
        device, place = line.split()[:2]
        if not wanted or place in wanted:
            await run.out(f"{device:20} {0:9} {0:9} {0:9}   0% {place}\n")
    return 0


async def _realpath(run: Invocation) -> int:
    for name in operands(run)[1]:
        await run.out(f"{run.path(name)}\n")
    return 0


async def _mktemp(run: Invocation) -> int:
    """`mktemp [-d] [PATTERN]`."""
    letters, names = operands(run)
    pattern = names[0] if names else "/tmp/tmp.XXXXXX"
    stem, count = pattern.rstrip("X"), len(pattern) - len(pattern.rstrip("X"))
    for number in range(_MOST_NAMES):
        name = f"{stem}{number:0{count}}"
        path = run.path(name)
        if not (run.files.is_directory(path) or run.files.is_file(path)):
            break
    try:
        make = run.files.make_directory if "d" in letters else run.files.open_for_writing
        make(path, name=name)
    except OSError as error:
        await run.err(f"mktemp: {error.filename}: {error.strerror}\n")
        return 1
    await run.out(f"{name}\n")
    return 0


_SUMS: Final[Mapping[str, Callable[[int, int], int]]] = {
    "+": int.__add__,
    "-": int.__sub__,
    "*": int.__mul__,
    "/": lambda a, b: int(a / b),
    "%": lambda a, b: a - b * int(a / b),
}
_COMPARED: Final[Mapping[str, Callable[[int], bool]]] = {
    "<": lambda sign: sign < 0,
    "<=": lambda sign: sign <= 0,
    "=": lambda sign: sign == 0,
    "==": lambda sign: sign == 0,
    "!=": lambda sign: sign != 0,
    ">=": lambda sign: sign >= 0,
    ">": lambda sign: sign > 0,
}


async def _expr(run: Invocation) -> int:
    """`expr A SIGN B`, `expr length TEXT`: from left to right."""
    words = list(run.command[1:])
    try:
        if words[:1] == ["length"] and len(words) == 2:
            value = str(len(words[1]))
        else:
            value = words.pop(0)
            while words:
                value = _joined(value, words.pop(0), words.pop(0))
    except (ValueError, IndexError, OverflowError):
        await run.err("expr: syntax error\n")
        return USAGE
    except ZeroDivisionError:
        await run.err("expr: division by zero\n")
        return USAGE
    await run.out(f"{value}\n")
    return int(value in ("", "0"))


def _joined(left: str, sign: str, right: str) -> str:
    """Raises ValueError, ZeroDivisionError."""
    if sign in _COMPARED:
        try:
            one, other = int(left), int(right)
            order = (one > other) - (one < other)
        except ValueError:
            order = (left > right) - (left < right)
        return str(int(_COMPARED[sign](order)))
    if sign == ":":
        found = re.match(re.sub(r"\\([()])", r"\1", right), left)
        whole = len(found[0]) if found else 0
        return (found[1] if found else "") if r"\(" in right else str(whole)
    if sign not in _SUMS:
        raise ValueError(sign)
    return str(_SUMS[sign](int(left[:18]), int(right[:18])))


def _grep_with(option: str) -> Program:
    async def program(run: Invocation) -> int:
        return await run.run("grep", option, *run.command[1:])

    return program


PLACE_PROGRAMS: Final[Mapping[str, Program]] = {
    "df": _df,
    "egrep": _grep_with("-E"),
    "expr": _expr,
    "fgrep": _grep_with("-F"),
    "find": _find,
    "mktemp": _mktemp,
    "mount": _mount,
    "realpath": _realpath,
    "stat": _stat,
}
