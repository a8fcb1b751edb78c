"""Programs that read lines and write some of them: `grep`, `head`, `tail`, `wc`, `sort`, ..."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Final

from msgspec import Struct

from fakecri.fakesh.invocations.escapes import unescaped
from fakecri.fakesh.invocations.invocation import PIECE_BYTES, USAGE, Invocation, Program
from fakecri.fakesh.programs.built_in import idle
from fakecri.fakesh.programs.file_programs import operands
from fakecri.fakesh.shell.redirections import opened_for_writing
from fakecri.fakesh.shell.words import with_classes
from fakecri.process.pipes import read_line

_LINES: Final = 10
_PAUSE_S: Final = 0.001
"""A program that prints much takes this time now and then, also in virtual time, so that it can be
ended."""
_RANGE: Final = re.compile(r"(.)-(.)")


async def lines_of(run: Invocation, names: list[str]) -> AsyncIterator[bytes]:
    """The lines of the files, or of the input. Raises OSError."""
    if not names:
        while line := await read_line(run.stdin):
            yield line
        return
    for name in names:
        for line in run.files.read(run.path(name), lenient=run.lenient, name=name).splitlines(True):
            yield line


async def failed(run: Invocation, error: OSError, code: int = 1) -> int:
    await run.err(f"{run.command[0]}: {error.filename}: {error.strerror}\n")
    return code


def reading(program: Callable[[Invocation], Awaitable[int]], code: int = 1) -> Program:
    """The program, which ends with that code when a file cannot be read or written."""

    async def told(run: Invocation) -> int:
        try:
            return await program(run)
        except BrokenPipeError:
            raise
        except OSError as error:
            return await failed(run, error, code)

    return told


async def _knows(run: Invocation, letters: set[str], known: str) -> bool:
    """Whether the fake knows all of the options. If not it says so: an answer to other options
    would be worse than none."""
    if letters <= set(known):
        return True
    names = ", ".join(f"-{letter}" for letter in known)
    await run.err(f"{run.command[0]}: the fake knows only: {names}\n")
    return False


def expression(text: str, letters: set[str]) -> re.Pattern[bytes]:
    """The regular expression of `grep`. Raises re.error."""
    if "F" in letters:
        text = re.escape(text)
    elif "E" not in letters:  # there it is the other way about: `\|` is a sign, `|` is not
        signs = re.compile(r"\\\\|\\?[|(){}+?]")
        text = signs.sub(lambda sign: sign[0][1:] if len(sign[0]) > 1 else f"\\{sign[0]}", text)
    around = r"(?<!\w)(?:{})(?!\w)" if "w" in letters else "^(?:{})$" if "x" in letters else "{}"
    return re.compile(
        around.format(with_classes(text)).encode(), re.IGNORECASE if "i" in letters else 0
    )


async def _grep(run: Invocation) -> int:
    """`grep`: exit code 0 for a match, 1 for none, 2 for a pattern that makes no sense."""
    letters, words = operands(run)
    if not await _knows(run, letters, "qvicnowxEFsh"):
        return USAGE
    if not words:
        await run.err("grep: a pattern is missing\n")
        return USAGE
    try:
        pattern = expression(words[0], letters)
    except re.error as error:
        await run.err(f"grep: bad regex '{words[0]}': {error}\n")
        return USAGE
    count = number = 0
    async for line in lines_of(run, words[1:]):
        number += 1
        found = [m[0] for m in pattern.finditer(line.rstrip(b"\n"))]
        if bool(found) != ("v" in letters):
            count += 1
            await _tell(run=run, letters=letters, number=number, found=found, line=line)
    if "c" in letters:
        await run.out(f"{count}\n")
    return int(not count)


async def _tell(
    run: Invocation, letters: set[str], number: int, found: list[bytes], line: bytes
) -> None:
    if letters & {"q", "c"}:
        return
    start = f"{number}:".encode() if "n" in letters else b""
    for part in [one + b"\n" for one in found if one] if "o" in letters else [line]:
        await run.stdout.write(start + part)


class _End(Struct, frozen=True):
    """What `head` and `tail` show: `count` lines (or bytes) at the beginning or the end of a text;
    with `others` (`head -n -2`, `tail -n +3`) all but those at the other side."""

    count: int
    of_bytes: bool
    others: bool
    follow: bool
    names: list[str]


def _end_wanted(run: Invocation, *, first: bool) -> _End:
    """What the arguments of `head` (`first`) or `tail` ask for. Raises ValueError."""
    words, number, of_bytes, follow, names = list(run.command[1:]), "", False, False, list[str]()
    while words:
        word = words.pop(0)
        if word in ("-f", "-F") and not first:
            follow = True
        elif word[:2] in ("-n", "-c"):
            of_bytes = word[1] == "c"
            number = word[2:] or (words.pop(0) if words else "none")
        elif word.startswith("-") and word[1:].isdecimal():
            number = word[1:]
        elif word.startswith("-") and word != "-":
            raise ValueError(word)
        else:
            names.append(word)
    others = number.startswith("-" if first else "+")
    count = abs(int(number)) if number else _LINES
    return _End(count=count, of_bytes=of_bytes, others=others, follow=follow, names=names)


async def _head(run: Invocation) -> int:
    return await _end_of(run, first=True)


async def _tail(run: Invocation) -> int:
    return await _end_of(run, first=False)


async def _end_of(run: Invocation, *, first: bool) -> int:
    try:
        wanted = _end_wanted(run, first=first)
    except ValueError:
        await run.err(f"{run.command[0]}: the fake knows only: -n NUMBER, -c NUMBER, -f\n")
        return 1
    kept: list[bytes] = []
    enough = first and not wanted.others and not wanted.of_bytes
    async for line in lines_of(run, wanted.names):
        if enough and len(kept) == wanted.count:
            break
        kept.append(line)
    data = b"".join(kept)
    parts = [data[i : i + 1] for i in range(len(data))] if wanted.of_bytes else kept
    await run.stdout.write(b"".join(_of_end(parts, wanted, first=first)))
    return await idle(run) if wanted.follow else 0


def _of_end(parts: list[bytes], wanted: _End, *, first: bool) -> list[bytes]:
    count = min(wanted.count, len(parts))
    if first:
        return parts[: len(parts) - count if wanted.others else count]
    return parts[max(count - 1, 0) if wanted.others else len(parts) - count :]


async def _wc(run: Invocation) -> int:
    letters, names = operands(run)
    if not await _knows(run, letters, "lwc"):
        return 1
    data = b"".join([line async for line in lines_of(run, names)])
    counts = {"l": data.count(b"\n"), "w": len(data.split()), "c": len(data)}
    shown = [str(number) for letter, number in counts.items() if not letters or letter in letters]
    await run.out(" ".join([*shown, *names]) + "\n")
    return 0


async def _sort(run: Invocation) -> int:
    letters, names = operands(run)
    if not await _knows(run, letters, "nru"):
        return USAGE
    lines = [line.rstrip(b"\n") + b"\n" async for line in lines_of(run, names)]
    lines = list(dict.fromkeys(lines)) if "u" in letters else lines
    lines.sort(key=_leading_number if "n" in letters else lambda line: (0, line))
    await run.stdout.write(b"".join(reversed(lines) if "r" in letters else lines))
    return 0


def _leading_number(line: bytes) -> tuple[int, bytes]:
    found = re.match(rb"\s*(-?\d{1,18})", line)
    return (int(found[1]) if found else 0), line


async def _cut(run: Invocation) -> int:
    """`cut -d CHARACTER -f NUMBER`, written together or apart."""
    words, sign, number, names = list(run.command[1:]), "\t", "", list[str]()
    while words:
        word = words.pop(0)
        if word[:2] in ("-d", "-f"):
            value = word[2:] or (words.pop(0) if words else "")
            sign, number = (value, number) if word[1] == "d" else (sign, value)
        else:
            names.append(word)
    if not number.isdecimal() or not int(number[:9]) or len(sign) != 1:
        await run.err("cut: the fake knows only: -d CHARACTER -f NUMBER\n")
        return USAGE
    async for line in lines_of(run, names):
        fields = line.rstrip(b"\n").split(sign.encode())
        at = int(number[:9]) - 1 if len(fields) > 1 else 0
        await run.stdout.write((fields[at] if at < len(fields) else b"") + b"\n")
    return 0


async def _tr(run: Invocation) -> int:
    """`tr FROM TO`, `tr -d FROM`: single characters and ranges."""
    letters, words = operands(run)
    sets = [_characters(word) for word in words]
    if len(sets) != (1 if "d" in letters else 2) or not all(sets):
        await run.err("tr: the fake knows only: tr FROM TO, tr -d FROM\n")
        return USAGE
    while data := await run.stdin.read(PIECE_BYTES):
        if "d" in letters:
            data = data.translate(None, sets[0])
        else:
            to = sets[1].ljust(len(sets[0]), sets[1][-1:])[: len(sets[0])]
            data = data.translate(bytes.maketrans(sets[0], to))
        await run.stdout.write(data)
    return 0


def _characters(word: str) -> bytes:
    text = unescaped(word)

    def spread(found: re.Match[str]) -> str:
        return "".join(map(chr, range(ord(found[1]), ord(found[2]) + 1)))

    return _RANGE.sub(spread, text).encode("utf-8", "surrogateescape")


async def _tee(run: Invocation) -> int:
    letters, names = operands(run)
    outputs = [run.stdout]
    outputs += [opened_for_writing(run, name, append="a" in letters) for name in names]
    while data := await run.stdin.read(PIECE_BYTES):
        for output in outputs:
            await output.write(data)
    return 0


TEXT_PROGRAMS: Final[Mapping[str, Program]] = {
    "cut": reading(_cut),
    "grep": reading(_grep, USAGE),
    "head": reading(_head),
    "sort": reading(_sort),
    "tail": reading(_tail),
    "tee": reading(_tee),
    "tr": _tr,
    "wc": reading(_wc),
}
