"""From the tokens of a script to what it does: commands, pipelines, lists, loops, branches. Pure.

The grammar is that of POSIX sh, with `[[` as busybox has it.
"""

from __future__ import annotations

import re
from typing import Final

from fakecri.fakesh.shell.nodes import (
    AndOr,
    Background,
    Case,
    Command,
    For,
    Function,
    If,
    Loop,
    Node,
    Pipeline,
    Redirected,
    Redirection,
    Sequence,
    Subshell,
)
from fakecri.fakesh.shell.scan import ScriptError, Token, Unfinished, Unsupported, tokens

_RESERVED: Final = frozenset(
    ("if", "then", "elif", "else", "fi", "while", "until", "do", "done", "for", "in", "case")
) | frozenset(("esac", "{", "}", "!"))
_REFUSED: Final = frozenset(("select", "function", "coproc"))
_IN_TEST: Final = {"&&": "-a", "||": "-o"}
_ASSIGNMENT: Final = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_NAME: Final = re.compile(r"[A-Za-z_]\w*")
_SEPARATORS: Final = frozenset((";", "\n"))


def parse(script: str) -> Sequence:
    """What a script does. Raises ScriptError, of which `Unsupported` is what may be right.

    >>> parse("echo a; exit 3").items[1]
    Command(assignments=(), words=('exit', '3'))
    """
    try:
        reader = _Parser(tokens(script))
        body = reader.sequence(frozenset())
        reader.require_end()
    except RecursionError:
        raise ScriptError("syntax error: nested too deeply") from None
    return body


class _Parser:
    def __init__(self, found: list[Token]) -> None:
        self._tokens = found
        self._at = 0

    def _peek(self) -> Token | None:
        return self._tokens[self._at] if self._at < len(self._tokens) else None

    def _operator(self) -> str:
        token = self._peek()
        return token.text if token is not None and token.kind == "operator" else ""

    def _word(self) -> str:
        token = self._peek()
        return token.text if token is not None and token.kind == "word" else ""

    def _unexpected(self) -> ScriptError:
        token = self._peek()
        if token is None:
            return Unfinished("syntax error: unexpected end of file")
        shown = "newline" if token.text == "\n" else f'"{token.text}"'
        return ScriptError(f"syntax error: unexpected {shown}")

    def _skip_newlines(self) -> None:
        while self._operator() == "\n":
            self._at += 1

    def _expect(self, text: str) -> None:
        self._skip_newlines()
        if text not in (self._word(), self._operator()):
            raise self._unexpected()
        self._at += 1

    def require_end(self) -> None:
        if self._peek() is not None:
            raise self._unexpected()

    def sequence(self, ends: frozenset[str], *, needed: bool = False) -> Sequence:
        """Up to the end, or one of `ends`, which is left."""
        items: list[Node] = []
        while True:
            while self._operator() in _SEPARATORS and self._operator() not in ends:
                if self._operator() == ";":
                    raise self._unexpected()
                self._at += 1
            token = self._peek()
            if token is None or token.text in ends:
                break
            item = self._and_or()
            if self._operator() == "&":
                item = Background(item)
            items.append(item)
            if self._operator() in ("&", *_SEPARATORS):
                self._at += 1
            elif self._peek() is not None and self._operator() not in ends:
                raise self._unexpected()
        if needed and not items:
            raise self._unexpected()
        return Sequence(tuple(items))

    def _and_or(self) -> Node:
        first, rest = self._pipeline(), []
        while (sign := self._operator()) in ("&&", "||"):
            self._at += 1
            self._skip_newlines()
            rest.append((sign, self._pipeline()))
        return AndOr(first, tuple(rest)) if rest else first

    def _pipeline(self) -> Node:
        negated = self._word() == "!"
        self._at += negated
        parts = [self._command()]
        while self._operator() == "|":
            self._at += 1
            self._skip_newlines()
            parts.append(self._command())
        return Pipeline(tuple(parts), negated) if negated or len(parts) > 1 else parts[0]

    def _command(self) -> Node:
        word, sign = self._word(), self._operator()
        made: Node
        if word in _REFUSED:
            raise Unsupported(f"the fake's sh does not know {word}")
        if sign == "(":
            self._at += 1
            made = Subshell(self.sequence(frozenset((")",)), needed=True))
            self._expect(")")
        elif word in _COMPOUND:
            self._at += 1
            made = _COMPOUND[word](self)
        elif word in _RESERVED:
            raise self._unexpected()
        elif _NAME.fullmatch(word) and self._is_operator(1, "(") and self._is_operator(2, ")"):
            self._at += 3
            self._skip_newlines()
            made = Function(word, self._command())
        else:
            return self._simple()
        redirections = self._redirections()
        return Redirected(made, redirections) if redirections else made

    def _is_operator(self, ahead: int, text: str) -> bool:
        tokens_left = self._tokens[self._at + ahead : self._at + ahead + 1]
        return [(t.kind, t.text) for t in tokens_left] == [("operator", text)]

    def _redirections(self) -> tuple[Redirection, ...]:
        found = []
        while (token := self._peek()) is not None and token.kind == "redirection":
            found.append(self._redirection(token))
        return tuple(found)

    def _redirection(self, token: Token) -> Redirection:
        self._at += 1
        target = self._word()
        if not target:
            raise self._unexpected()
        self._at += 1
        digits = token.text.rstrip("<>&|")
        sign = token.text[len(digits) :].replace("|", "")
        descriptor = int(digits) if digits else int(not sign.startswith("<"))
        if descriptor > 2 or (descriptor == 0) != sign.startswith("<"):
            raise Unsupported(f"the fake's sh does not know {token.text}")
        return Redirection(descriptor, sign, target)

    def _simple(self) -> Node:
        assignments: list[tuple[str, str]] = []
        words: list[str] = []
        redirections: list[Redirection] = []
        while (token := self._peek()) is not None:
            if words[:1] == ["[["] and words[-1] != "]]" and token.text in _IN_TEST:
                self._at += 1
                words.append(_IN_TEST[token.text])
                continue
            if token.kind == "operator":
                break
            if token.kind == "redirection":
                redirections.append(self._redirection(token))
                continue
            self._at += 1
            matched = _ASSIGNMENT.fullmatch(token.text)
            if matched and not words:
                assignments.append((matched[1], matched[2]))
            else:
                words.append(token.text)
        if not (assignments or words or redirections):
            raise self._unexpected()
        made = Command(tuple(assignments), tuple(words))
        return Redirected(made, tuple(redirections)) if redirections else made

    # -- what begins with a reserved word --------------------------------------------------------

    def _if(self) -> Node:
        branches, otherwise = [], Sequence(())
        while True:
            condition = self.sequence(frozenset(("then",)), needed=True)
            self._expect("then")
            ends = frozenset(("elif", "else", "fi"))
            branches.append((condition, self.sequence(ends, needed=True)))
            if self._word() != "elif":
                break
            self._at += 1
        if self._word() == "else":
            self._at += 1
            otherwise = self.sequence(frozenset(("fi",)), needed=True)
        self._expect("fi")
        return If(tuple(branches), otherwise)

    def _loop(self, *, until: bool) -> Node:
        condition = self.sequence(frozenset(("do",)), needed=True)
        return Loop(condition, self._do(), until)

    def _do(self) -> Node:
        self._expect("do")
        body = self.sequence(frozenset(("done",)), needed=True)
        self._expect("done")
        return body

    def _for(self) -> Node:
        name, words = self._word(), None
        if not _NAME.fullmatch(name):
            raise self._unexpected()
        self._at += 1
        self._skip_newlines()
        if self._word() == "in":
            self._at += 1
            words = self._words()
        if self._operator() in _SEPARATORS:
            self._at += 1
        return For(name, words, self._do())

    def _words(self) -> tuple[str, ...]:
        found = []
        while self._word():
            found.append(self._word())
            self._at += 1
        return tuple(found)

    def _case(self) -> Node:
        word = self._word()
        if not word:
            raise self._unexpected()
        self._at += 1
        self._expect("in")
        items = []
        self._skip_newlines()
        while self._word() != "esac":
            items.append(self._case_item())
            self._skip_newlines()
        self._expect("esac")
        return Case(word, tuple(items))

    def _case_item(self) -> tuple[tuple[str, ...], Node]:
        self._at += self._operator() == "("
        patterns = [self._word()]
        self._at += 1
        while self._operator() == "|":
            patterns.append(self._tokens[self._at + 1].text if self._is_word(1) else "")
            self._at += 2
        if not all(patterns):
            raise self._unexpected()
        self._expect(")")
        body = self.sequence(frozenset((";;", "esac")))
        if self._operator() == ";;":
            self._at += 1
        return tuple(patterns), body

    def _is_word(self, ahead: int) -> bool:
        return [t.kind for t in self._tokens[self._at + ahead : self._at + ahead + 1]] == ["word"]

    def _group(self) -> Node:
        body = self.sequence(frozenset(("}",)), needed=True)
        self._expect("}")
        return body


_COMPOUND: Final = {
    "if": _Parser._if,
    "while": lambda reader: reader._loop(until=False),
    "until": lambda reader: reader._loop(until=True),
    "for": _Parser._for,
    "case": _Parser._case,
    "{": _Parser._group,
}
