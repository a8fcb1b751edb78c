"""Programs that read lines and write some of them: `grep`, `head`, `tail`, `wc`, `seq`, ..."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Mapping
from typing import Final

from fakecri.invocations.invocation import PIECE_BYTES, USAGE, Invocation, Program, idle
from fakecri.programs.file_programs import operands
from fakecri.shell.redirections import opened_for_writing

_LINES: Final = 10
_PAUSE_S: Final = 0.001


async def _lines(run: Invocation, names: list[str]) -> AsyncIterator[bytes]:
    """Of the files, or of the input. Raises: OSError."""
    if not names:
        while line := await run.stdin.readline():
            yield line
        return
    for name in names:
        for line in run.files.read(run.path(name), lenient=run.lenient, name=name).splitlines(True):
            yield line


async def _failed(run: Invocation, error: OSError, code: int = 1) -> int:
    await run.err(f"{run.command[0]}: {error.filename}: {error.strerror}\n")
    return code


async def _grep(run: Invocation) -> int:
    """`-q`, `-v`, `-i`, `-c`, `-E`, `-F`. 0: found, 1: not found, 2: not to be understood."""
    letters, words = operands(run)
    if not words:
        await run.err("grep: a pattern is missing\n")
        return USAGE
    text = words[0] if "F" not in letters else re.escape(words[0])
    try:
        pattern = re.compile(text.encode(), re.IGNORECASE if "i" in letters else 0)
    except re.error as error:
        await run.err(f"grep: bad regex '{words[0]}': {error}\n")
        return USAGE
    count = 0
    try:
        async for line in _lines(run, words[1:]):
            if bool(pattern.search(line.rstrip(b"\n"))) != ("v" in letters):
                count += 1
                if not letters & {"q", "c"}:
                    await run.stdout.write(line)
    except BrokenPipeError:
        raise
    except OSError as error:
        return await _failed(run, error, USAGE)
    if "c" in letters:
        await run.out(f"{count}\n")
    return int(not count)


def _count_of(run: Invocation) -> tuple[int, list[str], bool]:
    """How many lines, the files, and whether to follow."""
    words, count, follow, names = list(run.command[1:]), _LINES, False, list[str]()
    while words:
        word = words.pop(0)
        if word in ("-f", "-F"):
            follow = True
        elif word == "-n" and words:
            count = int(words.pop(0).lstrip("+-"))
        elif word.startswith("-n") or (word.startswith("-") and word[1:].isdecimal()):
            count = int(word.removeprefix("-n").lstrip("-"))
        else:
            names.append(word)
    return count, names, follow


async def _head(run: Invocation) -> int:
    return await _end_of(run, first=True)


async def _tail(run: Invocation) -> int:
    return await _end_of(run, first=False)


async def _end_of(run: Invocation, *, first: bool) -> int:
    try:
        count, names, follow = _count_of(run)
    except ValueError:
        await run.err(f"{run.command[0]}: invalid number\n")
        return 1
    kept: list[bytes] = []
    try:
        async for line in _lines(run, names):
            if first and len(kept) == count:
                break
            kept = [*kept, line] if first else [*kept, line][-count:]
    except OSError as error:
        return await _failed(run, error)
    await run.stdout.write(b"".join(kept if count else []))
    return await idle(run) if follow else 0


async def _wc(run: Invocation) -> int:
    letters, names = operands(run)
    try:
        data = b"".join([line async for line in _lines(run, names)])
    except OSError as error:
        return await _failed(run, error)
    counts = {"l": data.count(b"\n"), "w": len(data.split()), "c": len(data)}
    shown = [str(number) for letter, number in counts.items() if not letters or letter in letters]
    await run.out(" ".join([*shown, *names]) + "\n")
    return 0


async def _seq(run: Invocation) -> int:
    try:
        numbers = [int(word) for word in run.command[1:]]
    except ValueError:
        numbers = []
    if not 1 <= len(numbers) <= 3:
        await run.err("seq: invalid number\n")
        return 1
    first = numbers[0] if len(numbers) > 1 else 1
    step = numbers[1] if len(numbers) == 3 else 1
    for number in range(first, numbers[-1] + (1 if step > 0 else -1), step or 1):
        await run.out(f"{number}\n")
    return 0


async def _sort(run: Invocation) -> int:
    letters, names = operands(run)
    try:
        lines = [line.rstrip(b"\n") + b"\n" async for line in _lines(run, names)]
    except OSError as error:
        return await _failed(run, error)
    lines = list(dict.fromkeys(lines)) if "u" in letters else lines
    lines.sort(key=_leading_number if "n" in letters else lambda line: (0, line))
    await run.stdout.write(b"".join(reversed(lines) if "r" in letters else lines))
    return 0


def _leading_number(line: bytes) -> tuple[int, bytes]:
    found = re.match(rb"\s*(-?\d{1,18})", line)
    return (int(found[1]) if found else 0), line


async def _cut(run: Invocation) -> int:
    """`-d CHARACTER -f NUMBER`, written together or apart."""
    words, sign, number, names = list(run.command[1:]), "\t", "", list[str]()
    while words:
        word = words.pop(0)
        if word[:2] in ("-d", "-f"):
            value = word[2:] or (words.pop(0) if words else "")
            sign, number = (value, number) if word[1] == "d" else (sign, value)
        else:
            names.append(word)
    if not number.isdecimal() or len(sign) != 1:
        await run.err("cut: the fake knows only: -d CHARACTER -f NUMBER\n")
        return USAGE
    try:
        async for line in _lines(run, names):
            fields = line.rstrip(b"\n").split(sign.encode())
            at = int(number) - 1 if len(fields) > 1 else 0
            await run.stdout.write((fields[at] if at < len(fields) else b"") + b"\n")
    except BrokenPipeError:
        raise
    except OSError as error:
        return await _failed(run, error)
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
    text = _ESCAPED.sub(lambda found: _ESCAPES.get(found[1], found[1]), word)

    def spread(found: re.Match[str]) -> str:
        return "".join(map(chr, range(ord(found[1]), ord(found[2]) + 1)))

    return _RANGE.sub(spread, text).encode("latin-1", "replace")


async def _tee(run: Invocation) -> int:
    letters, names = operands(run)
    outputs = [run.stdout]
    try:
        outputs += [opened_for_writing(run, name, append="a" in letters) for name in names]
    except OSError as error:
        return await _failed(run, error)
    while data := await run.stdin.read(PIECE_BYTES):
        for output in outputs:
            await output.write(data)
    return 0


async def _yes(run: Invocation) -> int:
    text = " ".join(run.command[1:]) or "y"
    while True:
        await run.out(f"{text}\n")
        await asyncio.sleep(_PAUSE_S)


async def _basename(run: Invocation) -> int:
    words = run.command[1:]
    name = (words[0].rstrip("/") or "/").rsplit("/", 1)[-1] if words else ""
    await run.out((name.removesuffix(words[1]) if len(words) > 1 else name) + "\n")
    return 0


async def _dirname(run: Invocation) -> int:
    head, sign, _ = "".join(run.command[1:2]).rstrip("/").rpartition("/")
    await run.out((head or ("/" if sign else ".")) + "\n")
    return 0


_SPECIFIER: Final = re.compile(r"%(-?\d*)([sdci%b])|\\(.)")
_ESCAPED: Final = re.compile(r"\\(.)")
_RANGE: Final = re.compile(r"(.)-(.)")
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "\\": "\\", "a": "\a", "b": "\b"}


async def _printf(run: Invocation) -> int:
    """`%s`, `%d`, `%c`, `%b` with a width, and escapes; the format is used again for more words."""
    if len(run.command) < 2:
        await run.err("printf: a format is missing\n")
        return USAGE
    shape, words = run.command[1], list(run.command[2:])
    while True:
        before = len(words)

        def filled(found: re.Match[str]) -> str:
            width, kind, escaped = found.groups()
            if escaped:
                return _ESCAPES.get(escaped, f"\\{escaped}")
            if kind == "%":
                return "%"
            word = words.pop(0) if words else ("0" if kind in "di" else "")
            word = word[:1] if kind == "c" else word
            return f"{word:{'<' if width.startswith('-') else '>'}{abs(int(width or 0)) or ''}}"

        await run.out(_SPECIFIER.sub(filled, shape))
        if not words or len(words) == before:
            return 0


TEXT_PROGRAMS: Final[Mapping[str, Program]] = {
    "basename": _basename,
    "cut": _cut,
    "dirname": _dirname,
    "grep": _grep,
    "head": _head,
    "printf": _printf,
    "seq": _seq,
    "sort": _sort,
    "tail": _tail,
    "tee": _tee,
    "tr": _tr,
    "wc": _wc,
    "yes": _yes,
}
