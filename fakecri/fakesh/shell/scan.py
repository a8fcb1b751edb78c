"""From the text of a script to its tokens: words as they are written, and operators. Pure."""

from __future__ import annotations

from typing import Final

from msgspec import Struct


class ScriptError(ValueError):
    """The script cannot be run; the text says why."""


class Unfinished(ScriptError):
    """The script ends in the middle of something; with more lines it may be right."""


class Unsupported(ScriptError):
    """The script may be right, but this shell cannot run it."""


class Token(Struct, frozen=True):
    """A word (`kind` "word", its text with all quotes), an operator or a redirection. The `text` of
    a redirection may begin with a number: `2>`."""

    kind: str
    text: str


_OPERATORS: Final = ("&&", "||", ";;", ";", "&", "|", "(", ")", "\n")
_REDIRECTIONS: Final = ("<<-", "<<", ">>", ">&", "<&", ">|", ">", "<")
_REFUSED: Final = ("<<<", "&>", "<(", ">(", "|&", "((")
_ENDS: Final = frozenset(" \t\n;&|<>()")


def tokens(script: str) -> list[Token]:
    """The tokens of a script. Raises ScriptError."""
    found: list[Token] = []
    _scan(script.replace("\\\n", ""), found)
    return found


class _Document(Struct, frozen=True):
    """A here-document that has not been read: the word at `place` becomes its text."""

    place: int
    delimiter: str
    indented: bool

    @property
    def end(self) -> str:
        """The line that ends it."""
        return self.delimiter.translate(str.maketrans("", "", "\"'\\"))


def _scan(text: str, found: list[Token]) -> None:
    at, documents = 0, list[_Document]()
    while at < len(text):
        char = text[at]
        if char in " \t\r":
            at += 1
        elif char == "#":
            at = _line_end(text, at)
        elif (refused := _first(text, at, _REFUSED)) is not None:
            raise Unsupported(f"the fake's sh does not know {refused}")
        elif (operator := _first(text, at, _OPERATORS)) is not None:
            found.append(Token("operator", operator))
            at += len(operator)
            while operator == "\n" and documents:
                at = _read_document(text, at, documents.pop(0), found)
        else:
            token, at = _word_or_redirection(text, at)
            sign = token.text.lstrip("0123456789") if token.kind == "redirection" else ""
            if sign == "<<-":
                token = Token("redirection", token.text[:-1])
            found.append(token)
            if sign.startswith("<<"):
                at += len(text[at:]) - len(text[at:].lstrip(" \t"))
                end = word_end(text, at)
                documents.append(_Document(len(found), text[at:end], sign == "<<-"))
                found.append(Token("word", text[at:end]))
                at = end
    if documents:
        raise Unfinished("syntax error: unterminated here-document")


def _read_document(text: str, at: int, document: _Document, found: list[Token]) -> int:
    """Its text becomes one quoted word; the index behind it."""
    lines = []
    while True:
        if at >= len(text):
            raise Unfinished("syntax error: unterminated here-document")
        end = _line_end(text, at)
        line = text[at:end]
        line = line.lstrip("\t") if document.indented else line
        at = end + 1
        if line == document.end:
            break
        lines.append(f"{line}\n")
    body = "".join(lines)
    if document.end == document.delimiter:
        word = f'"{_as_quoted(body)}"'
    else:
        word = "'" + body.replace("'", "'\\''") + "'"
    found[document.place] = Token("word", word)
    return min(at, len(text))


def _as_quoted(body: str) -> str:
    """As it is written between double quotes: in a here-document they are plain characters."""
    made, at = [], 0
    while at < len(body):
        char = body[at]
        if char == '"':
            made.append('\\"')
        elif body.startswith('\\"', at):
            made.append('\\\\\\"')
            at += 1
        elif char in "$`\\":
            end = piece_end(body, at)
            made.append(body[at:end])
            at = end - 1
        else:
            made.append(char)
        at += 1
    return "".join(made)


def _word_or_redirection(text: str, at: int) -> tuple[Token, int]:
    digits = at
    while digits < len(text) and text[digits].isdecimal():
        digits += 1
    if text[digits : digits + 1] in ("<", ">"):
        if _first(text, digits, _REFUSED) is not None:
            raise Unsupported("the fake's sh does not know <<<")
        sign = _first(text, digits, _REDIRECTIONS) or ""
        return Token("redirection", text[at:digits] + sign), digits + len(sign)
    end = word_end(text, at)
    return Token("word", text[at:end]), end


def _first(text: str, at: int, among: tuple[str, ...]) -> str | None:
    return next((one for one in among if text.startswith(one, at)), None)


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def word_end(text: str, at: int) -> int:
    """The index behind the word that begins at `at`. Raises ScriptError for an open quote."""
    while at < len(text) and text[at] not in _ENDS:
        at = piece_end(text, at)
    return at


def piece_end(text: str, at: int) -> int:
    """The index behind the character, quoted text or substitution at `at`. Raises ScriptError."""
    char = text[at]
    if char == "\\":
        return min(at + 2, len(text))
    if char == "'":
        return _closing(text, at + 1, "'", plain=True)
    if char == '"':
        return _closing(text, at + 1, '"')
    if char == "`":
        return _closing(text, at + 1, "`", plain=True)
    if text.startswith("$((", at):
        return _arithmetic_end(text, at + 3)
    if text.startswith("$(", at):
        return _closing(text, at + 2, ")")
    if text.startswith("${", at):
        return _closing(text, at + 2, "}")
    return at + 1


def _closing(text: str, at: int, end: str, *, plain: bool = False) -> int:
    """The index behind the `end` that closes what was opened before `at`."""
    while at < len(text):
        if text[at] == end:
            return at + 1
        if plain:
            at += 2 if text[at] == "\\" and end == "`" else 1
        elif end == ")" and text[at] == "(":
            at = _closing(text, at + 1, ")")
        elif end == '"' and text[at] == "'":
            at += 1  # no quote in there
        else:
            at = piece_end(text, at)
    names = {"'": "quoted string", '"': "quoted string", "`": "backquote"}
    raise Unfinished(f"syntax error: unterminated {names.get(end, 'substitution')}")


def _arithmetic_end(text: str, at: int) -> int:
    depth = 0
    while at < len(text):
        if text.startswith("))", at) and depth == 0:
            return at + 2
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        at += 1
    raise Unfinished("syntax error: unterminated arithmetic")
