"""What the words of a script stand for: quotes, variables, command and arithmetic substitution,
splitting, patterns of file names.

A word becomes parts, each quoted or not; unquoted parts are split at blanks and may be patterns.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Final

from msgspec import Struct

from fakecri.fakesh.shell.arithmetic import evaluate
from fakecri.fakesh.shell.scan import ScriptError, Unsupported, piece_end

_PARAMETER: Final = re.compile(r"[A-Za-z_]\w*|[0-9]|[?$!#@*-]")
_BRACED: Final = re.compile(
    r"(#?)([A-Za-z_]\w*|\d+|[?$!#@*-])(?:(:?[-=+?]|##?|%%?)(.*))?", re.DOTALL
)
_HOME: Final = re.compile(r"~(?=/|\Z)")
_CLASS: Final = re.compile(r"\[:(\w+):\]")
_CLASSES: Final = {
    "alnum": "a-zA-Z0-9",
    "alpha": "a-zA-Z",
    "blank": " \t",
    "digit": "0-9",
    "lower": "a-z",
    "space": " \t\n\r\f\v",
    "upper": "A-Z",
    "xdigit": "0-9a-fA-F",
}
_LONGEST: Final = 1024 * 1024
_ESCAPED_IN_DOUBLE: Final = frozenset('$`"\\')


class Part(Struct, frozen=True):
    """A piece of a word. `breaks`: a new word begins behind it, as between the words of "$@"."""

    text: str
    quoted: bool
    breaks: bool = False


@dataclass(slots=True)
class Surroundings:
    """What words may refer to. `special` has `?`, `$`, `!`, `#` and the positional parameters;
    `run` gives the output of a script; `names_of` the files that fit a pattern."""

    names: MutableMapping[str, str]
    special: Callable[[str], str | None]
    arguments: Callable[[], list[str]]
    run: Callable[[str], Awaitable[str]]
    names_of: Callable[[str], list[str]]
    strict: bool = False
    """Whether a variable that was never set is an error (`set -u`)."""


async def to_words(raw: str, around: Surroundings) -> list[str]:
    """The words that one word of a script becomes: none, one or more."""
    fields: list[list[Part]] = []
    open_field = False
    between = separators(around.names.get("IFS", " \t\n"))
    async for part in _parts(raw, around, quoted=False):
        if part.quoted:
            if not open_field:
                fields.append([])
            fields[-1].append(part)
            open_field = not part.breaks
            continue
        for i, piece in enumerate(re.split(between, part.text)):
            if i % 2:
                if piece.strip() and not open_field:
                    fields.append([])
                open_field = False
            elif piece:
                if not open_field:
                    fields.append([])
                fields[-1].append(Part(piece, False))
                open_field = True
    return [word for field in fields for word in _with_files(field, around)]


def separators(ifs: str) -> str:
    """A pattern for what separates words: blanks count once together, other characters each."""
    blanks, others = (re.escape("".join(c for c in ifs if c.isspace() == kind)) for kind in (1, 0))
    blank, other = f"[{blanks}]" if blanks else "(?!)", f"[{others}]" if others else "(?!)"
    return f"({blank}*{other}{blank}*|{blank}+)" if blanks else f"({other})"


def _with_files(field: list[Part], around: Surroundings) -> list[str]:
    text = _joined([part.text for part in field])
    if not any(not part.quoted and set("*?[") & set(part.text) for part in field):
        return [text]
    pattern = "".join(_literal(p.text) if p.quoted else p.text for p in field)
    return around.names_of(pattern) or [text]


def with_classes(pattern: str) -> str:
    """`[[:digit:]]` as `[0-9]`, which all patterns of Python know.

    >>> with_classes("[[:upper:]_]*")
    '[A-Z_]*'
    """
    return _CLASS.sub(lambda found: _CLASSES.get(found[1], ""), pattern)


def _literal(text: str) -> str:
    return re.sub(r"([*?[])", r"[\1]", text)


async def to_text(raw: str, around: Surroundings) -> str:
    """The one text that a word becomes where words are not split: in an assignment, or as the
    target of a redirection."""
    return _joined([part.text async for part in _parts(raw, around, quoted=False)])


def _joined(texts: list[str]) -> str:
    """The texts as one. Raises ScriptError for more than a variable can hold."""
    if sum(map(len, texts)) > _LONGEST:
        raise ScriptError("out of memory")
    return "".join(texts)


async def to_pattern(raw: str, around: Surroundings) -> str:
    """The pattern for `fnmatch` that a word becomes; quoted characters stand for themselves."""
    parts = [part async for part in _parts(raw, around, quoted=False)]
    return with_classes("".join(_literal(p.text) if p.quoted else p.text for p in parts))


async def _parts(raw: str, around: Surroundings, *, quoted: bool) -> AsyncIterator[Part]:
    at = 0
    if not quoted and _HOME.match(raw):
        yield Part(around.names.get("HOME", "~"), True)
        at = 1
    while at < len(raw):
        end = piece_end(raw, at) if not (quoted and raw[at] == "'") else at + 1
        piece = raw[at:end]
        at = end
        if piece[0] == "\\":
            keeps = quoted and piece[1:] not in _ESCAPED_IN_DOUBLE
            yield Part(piece if keeps else piece[1:], True)
        elif piece[0] == "'" and not quoted:
            yield Part(piece[1:-1], True)
        elif piece[0] == '"' and not quoted:
            yield Part("", True) if piece != '"$@"' else Part("", False)
            async for part in _parts(piece[1:-1], around, quoted=True):
                yield part
        elif piece[0] == "`":
            yield Part(await _output(piece[1:-1].replace("\\`", "`"), around), quoted)
        elif piece == "$":
            named = _PARAMETER.match(raw, at)
            at = named.end() if named else at
            for part in _parameter(named[0], around, quoted) if named else [Part("$", quoted)]:
                yield part
        elif piece[0] == "$":
            async for part in _substituted(piece, around, quoted):
                yield part
        else:
            yield Part(piece, quoted)


async def _substituted(piece: str, around: Surroundings, quoted: bool) -> AsyncIterator[Part]:
    """The parts that `$(( ))`, `$( )` or `${ }` becomes."""
    if piece.startswith("$(("):
        inner = "".join([p.text async for p in _parts(piece[3:-2], around, quoted=True)])
        yield Part(str(evaluate(inner, around.names)), quoted)
    elif piece.startswith("$("):
        yield Part(await _output(piece[2:-1], around), quoted)
    else:
        async for part in _braced(piece[2:-1], around, quoted):
            yield part


async def _output(script: str, around: Surroundings) -> str:
    return (await around.run(script)).rstrip("\n")


def _parameter(name: str, around: Surroundings, quoted: bool) -> list[Part]:
    if name in "@*":
        words = around.arguments()
        if name == "@" and quoted:
            return [Part(word, True, breaks=i + 1 < len(words)) for i, word in enumerate(words)]
        return [Part(" ".join(words), quoted)]
    return [Part(_required(name, around), quoted)]


def _required(name: str, around: Surroundings) -> str:
    """The value of a variable. Raises ScriptError where `set -u` counts and it was never set."""
    value = _value(name, around)
    if value is None and around.strict:
        raise ScriptError(f"{name}: parameter not set")
    return value or ""


def _value(name: str, around: Surroundings) -> str | None:
    special = around.special(name)
    return around.names.get(name) if special is None else special


async def _braced(inner: str, around: Surroundings, quoted: bool) -> AsyncIterator[Part]:
    matched = _BRACED.fullmatch(inner)
    if matched is None:
        raise Unsupported(f"the fake's sh does not know ${{{inner}}}")
    length, name, sign, rest = matched.groups()
    if name in ("@", "*") and not sign and not length:
        for part in _parameter(name, around, quoted):
            yield part
        return
    if length:
        yield Part(str(len(_required(name, around))), quoted)
        return
    if not sign:
        yield Part(_required(name, around), quoted)
        return
    value = _value(name, around)
    if sign[0] in "#%":
        pattern = await to_pattern(rest, around)
        yield Part(_cut(value or "", pattern, sign), quoted)
        return
    missing = value is None or (sign[0] == ":" and not value)
    if sign[-1] == "+":
        missing = not missing
    if not missing:
        yield Part("" if sign[-1] == "+" else value or "", quoted)
        return
    if sign[-1] == "?":
        raise ScriptError(f"{name}: {await to_text(rest, around) or 'parameter not set'}")
    if sign[-1] == "=":
        around.names[name] = await to_text(rest, around)
    async for part in _parts(rest, around, quoted=quoted):
        yield part


def _cut(value: str, pattern: str, sign: str) -> str:
    """`value` without the shortest (`#`, `%`) or longest (`##`, `%%`) part that fits the pattern,
    at its beginning or its end."""
    ends = range(len(value) + 1)
    for size in ends if len(sign) == 1 else reversed(ends):
        part = value[:size] if sign[0] == "#" else value[len(value) - size :]
        if fnmatch.fnmatchcase(part, pattern):
            return value[size:] if sign[0] == "#" else value[: len(value) - size]
    return value
