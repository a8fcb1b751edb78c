"""Programs that change or sum up what they read: `sed`, `uniq`, `tac`, `md5sum`, `base64`, ..."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Callable, Mapping
from typing import Final

from msgspec import Struct

from fakecri.fakesh.invocations.invocation import PIECE_BYTES, USAGE, Invocation, Program
from fakecri.fakesh.programs.file_programs import operands
from fakecri.fakesh.programs.text_programs import expression, failed, lines_of, reading

_COMMAND: Final = re.compile(r"(?:(\d+|\$)|/((?:\\.|[^/\\])*)/)?\s*([pdq]|s(.))")


async def _whole(run: Invocation, name: str) -> bytes:
    """A file, or the input for `-`. Raises OSError."""
    if name != "-":
        return run.files.read(run.path(name), lenient=run.lenient, name=name)
    data = bytearray()
    while piece := await run.stdin.read(PIECE_BYTES):
        data += piece
    return bytes(data)


def _sum(kind: str) -> Program:
    async def digest(run: Invocation) -> int:
        code = 0
        for name in operands(run)[1] or ["-"]:
            try:
                data = await _whole(run, name)
            except OSError as error:
                code = await failed(run, error)
                continue
            await run.out(f"{hashlib.new(kind, data).hexdigest()}  {name}\n")
        return code

    return digest


async def _base64(run: Invocation) -> int:
    letters, names = operands(run)
    data = await _whole(run, names[0] if names else "-")
    try:
        made = base64.b64decode(data) if "d" in letters else base64.encodebytes(data)
    except binascii.Error:
        await run.err("base64: truncated input\n")
        return 1
    await run.stdout.write(made)
    return 0


async def _uniq(run: Invocation) -> int:
    """`uniq [-c] [-d] [-u] [FILE]`."""
    letters, names = operands(run)
    groups: list[tuple[bytes, int]] = []
    async for line in lines_of(run, names[:1]):
        if groups and groups[-1][0] == line:
            groups[-1] = (line, groups[-1][1] + 1)
        else:
            groups.append((line, 1))
    for line, count in groups:
        if (count > 1 or "d" not in letters) and (count == 1 or "u" not in letters):
            await run.stdout.write((f"{count:7} ".encode() if "c" in letters else b"") + line)
    return 0


def _each(change: Callable[[list[bytes]], list[bytes]]) -> Program:
    """A program that writes the lines that it reads otherwise."""

    async def program(run: Invocation) -> int:
        lines = [line async for line in lines_of(run, operands(run)[1])]
        await run.stdout.write(b"".join(change(lines)))
        return 0

    return reading(program)


class _Edit(Struct, frozen=True):
    """One command of `sed`: where it counts (a line, `$`, a pattern; neither: everywhere) and what
    it does."""

    line: str
    where: re.Pattern[bytes] | None
    what: str
    pattern: re.Pattern[bytes] | None = None
    text: bytes = b""
    flags: str = ""

    def fits(self, number: int, text: bytes, *, last: bool) -> bool:
        if self.where is not None:
            return self.where.search(text) is not None
        return not self.line or (last if self.line == "$" else number == int(self.line))

    def substituted(self, line: bytes) -> tuple[bytes, int]:
        """The line, and how often the pattern was found in it."""
        assert self.pattern is not None
        return self.pattern.subn(self.text, line, count=0 if "g" in self.flags else 1)


def _edits(script: str, letters: set[str]) -> list[_Edit]:
    """Raises ValueError for what the fake does not know."""
    found, rest = [], script.strip()
    while rest:
        match = _COMMAND.match(rest)
        if match is None:
            raise ValueError(rest)
        line, where, what, sign = match.groups()
        rest = rest[match.end() :]
        given = None if where is None else expression(where, letters)
        if sign is None:
            found.append(_Edit(line or "", given, what))
        else:
            pattern, text, rest = _between(rest, sign)
            flags = re.match(r"[gpI]*", rest)
            assert flags is not None
            rest = rest[flags.end() :]
            more = letters | ({"i"} if "I" in flags[0] else set())
            found.append(
                _Edit(
                    line=line or "",
                    where=given,
                    what="s",
                    pattern=expression(pattern, more),
                    text=_replacement(text),
                    flags=flags[0],
                )
            )
        rest = rest.strip().removeprefix(";").strip()
    return found


def _between(rest: str, sign: str) -> tuple[str, str, str]:
    """Pattern, text and what follows. Raises ValueError."""
    one = rf"((?:\\.|[^\\{re.escape(sign)}])*){re.escape(sign)}"
    match = re.match(one + one, rest, re.DOTALL)
    if match is None:
        raise ValueError(f"s{sign}{rest}")
    plain = [part.replace(f"\\{sign}", sign) for part in match.groups()]
    return plain[0], plain[1], rest[match.end() :]


def _replacement(text: str) -> bytes:
    """`&` is what was found, `\\1` a group of it."""
    made = re.sub(r"\\(.)|&", lambda m: _sign(m[0], m[1]), text, flags=re.DOTALL)
    return made.encode(errors="surrogateescape")


def _sign(whole: str, char: str | None) -> str:
    if whole == "&":
        return r"\g<0>"
    assert char is not None
    if char.isdecimal():
        return rf"\g<{char}>"
    return {"n": "\n", "t": "\t"}.get(char, char.replace("\\", "\\\\"))


async def _sed(run: Invocation) -> int:
    """`sed [-n] [-E] [-i] [-e] SCRIPT [FILE...]` with the commands s, p, d and q."""
    scripts, letters, words = list[str](), set[str](), list(run.command[1:])
    names = []
    while words:
        word = words.pop(0)
        if word == "-e" and words:
            scripts.append(words.pop(0))
        elif word.startswith("-") and len(word) > 1:
            letters |= set(word[1:].replace("r", "E"))
        else:
            names.append(word)
    script = ";".join(scripts) if scripts or not names else names.pop(0)
    try:
        edits = _edits(script, letters & {"E"})
    except (ValueError, re.error) as error:
        await run.err(f"sed: the fake knows only the commands s, p, d, q; not {error}\n")
        return USAGE
    for group in [[name] for name in names] if "i" in letters else [names]:
        lines = [line async for line in lines_of(run, group)]
        made = b"".join(_edited(lines, edits, quiet="n" in letters))
        if "i" in letters:
            run.files.open_for_writing(run.path(group[0]), name=group[0])
            run.files.append(run.path(group[0]), made)
        else:
            await run.stdout.write(made)
    return 0


def _edited(lines: list[bytes], edits: list[_Edit], *, quiet: bool) -> list[bytes]:
    made: list[bytes] = []
    for number, whole in enumerate(lines, 1):
        line, end = whole.rstrip(b"\n"), whole[len(whole.rstrip(b"\n")) :]
        shown = quits = False
        for edit in edits:
            if not edit.fits(number, line, last=number == len(lines)):
                continue
            if edit.what == "d":
                shown = True
                break
            if edit.what == "q":
                quits = True
                break
            count = 1
            if edit.what == "s":
                line, count = edit.substituted(line)
            if edit.what == "p" or ("p" in edit.flags and count):
                made.append(line + (end or b"\n"))
        if not (shown or quiet):
            made.append(line + end)
        if quits:
            break
    return made


def _reversed(lines: list[bytes]) -> list[bytes]:
    return [line.rstrip(b"\n")[::-1] + b"\n" for line in lines]


STREAM_PROGRAMS: Final[Mapping[str, Program]] = {
    "base64": reading(_base64),
    "md5sum": _sum("md5"),
    "rev": _each(_reversed),
    "sed": reading(_sed),
    "sha1sum": _sum("sha1"),
    "sha256sum": _sum("sha256"),
    "tac": _each(lambda lines: lines[::-1]),
    "uniq": reading(_uniq),
}
