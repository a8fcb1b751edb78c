"""How unquoted words are read: a table of meanings, a reader of numbers, and what tags do. Pure.

`STRICT`: a word means what is written; only `true`, `false`, `null`, `~` and decimal numbers are no
texts, and tags do not count. `kubeobjects.yaml.go_words` has the words of Kubernetes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from msgspec import Struct

Scalar: TypeAlias = str | int | float | bool | None

_INTEGER: Final = re.compile(r"[-+]?[0-9]{1,300}\Z")
_FLOAT: Final = re.compile(r"[-+]?([0-9]{1,300}(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]{1,9})?\Z")


class ScalarError(ValueError):
    """The scalar does not fit its tag, or is not a JSON value. `upstream`: the whole error of
    Kubernetes, if it has other words."""

    def __init__(self, problem: str, upstream: str = "") -> None:
        super().__init__(problem)
        self.upstream = upstream


class Words(Struct, frozen=True):
    """How unquoted words are read. `meanings`: those that are no texts; `number`: the number of a
    text that is not empty, or None; `tagged`: the value of a text, its tag and what it means
    without, or None if tags do not count."""

    meanings: Mapping[str, bool | float | None]
    number: Callable[[str], int | float | None]
    tagged: Callable[[str, str, Scalar], Scalar] | None = None

    def plain(self, text: str) -> Scalar:
        """What an unquoted word without a tag means."""
        if text in self.meanings:
            return self.meanings[text]
        number = self.number(text)
        return text if number is None else number

    def scalar(self, text: str, tag: str | None = None, *, plain: bool = True) -> Scalar:
        """What a scalar means. `plain`: neither quoted nor a block; `tag`: its explicit tag.
        Raises `ScalarError`."""
        if tag is not None and self.tagged is not None:
            return self.tagged(text, tag, self.plain(text))
        return self.plain(text) if plain else text


def _decimal_number(text: str) -> int | float | None:
    if _INTEGER.match(text):
        return int(text)
    return float(text) if _FLOAT.match(text) else None


STRICT: Final = Words(
    {"true": True, "false": False, "null": None, "~": None, "": None}, _decimal_number
)


def whole_text(text: str) -> str:
    """The text with characters for pairs of surrogates, as JSON writes an emoji, and U+FFFD for
    halves of pairs, as in Go."""
    if not any("\ud800" <= letter <= "\udfff" for letter in text):
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
