"""What a law is, and how laws are asked: `Law`, `Breach`, `Seen`."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property

from msgspec import Struct

from kubelet_conformance.laws.history import History
from kubelet_conformance.laws.lives import Lives, lives_of


class Seen:
    """A history, and what several laws work out of it, once."""

    def __init__(self, history: History) -> None:
        self.history = history

    @cached_property
    def lives(self) -> Lives:
        """Of sandboxes and containers."""
        return lives_of(self.history)


class Law(Struct, frozen=True):
    """Something that holds of every history of a right kubelet."""

    name: str
    """Words with dashes."""
    rules: tuple[str, ...]
    """The rules that it stands for."""
    says: str
    """What holds, in a sentence."""
    breaches: Callable[[Seen], Iterable[str]]
    """What of a history is against it, a sentence each."""


Check = Callable[[Seen], Iterable[str]]


def law(*rules: str) -> Callable[[Check], Law]:
    """Makes a function the law of its name (`one_running`: `one-running`) that stands for these
    rules; the first paragraph of its docstring says what holds."""

    def make(check: Check) -> Law:
        name = getattr(check, "__name__", "").replace("_", "-")
        said = inspect.getdoc(check) or ""
        return Law(name, rules, " ".join(said.split("\n\n")[0].split()), check)

    return make


class Breach(Struct, frozen=True):
    """What of a history is against a law."""

    law: Law
    what: str

    def __str__(self) -> str:
        return f"law {self.law.name} ({', '.join(self.law.rules)}): {self.what}"


def laws_in(text: str) -> tuple[str, ...]:
    """The names of the laws whose breaches are lines of a text, each once.

    >>> laws_in("law one-running (LIFE-114.5): a/b is started\\nlaw one-running (LIFE-114.5): c/d")
    ('one-running',)
    """
    return tuple(dict.fromkeys(re.findall(r"^law ([\w-]+) \(", text, re.MULTILINE)))


def ask(laws: Iterable[Law], history: History) -> Iterator[Breach]:
    """What of the history is against these laws."""
    seen = Seen(history)
    for each in laws:
        for what in each.breaches(seen):
            yield Breach(each, what)
