"""What a parsed script is made of: commands, pipelines, lists, loops, branches, as plain values."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct


class Redirection(Struct, frozen=True):
    """`sign`: `>`, `>>`, `<` or `>&`; the descriptor that is redirected, and its target."""

    descriptor: int
    sign: str
    target: str


class Command(Struct, frozen=True):
    """A simple command: assignments, then words, as written."""

    assignments: tuple[tuple[str, str], ...]
    words: tuple[str, ...]


class Redirected(Struct, frozen=True):
    """A command with redirections of its own."""

    inner: Node
    redirections: tuple[Redirection, ...]


class Pipeline(Struct, frozen=True):
    """Commands, each reading what the one before writes."""

    parts: tuple[Node, ...]
    negated: bool = False


class AndOr(Struct, frozen=True):
    """A pipeline, then others after `&&` and `||`."""

    first: Node
    rest: tuple[tuple[str, Node], ...]


class Background(Struct, frozen=True):
    """`... &`: a job that the shell does not wait for."""

    inner: Node


class Sequence(Struct, frozen=True):
    """Commands, one after the other."""

    items: tuple[Node, ...]


class If(Struct, frozen=True):
    """Conditions with what is done for each, and what is done if none holds."""

    branches: tuple[tuple[Node, Node], ...]
    otherwise: Node


class Loop(Struct, frozen=True):
    """`while`, or `until`."""

    condition: Node
    body: Node
    until: bool


class For(Struct, frozen=True):
    """A loop over words; None: over the arguments of the script."""

    name: str
    words: tuple[str, ...] | None
    body: Node


class Case(Struct, frozen=True):
    """A word and branches with patterns; the first branch that fits is run."""

    word: str
    items: tuple[tuple[tuple[str, ...], Node], ...]


class Subshell(Struct, frozen=True):
    """`( ... )`: runs in a process of its own, so its variables are lost afterwards."""

    body: Node


class Function(Struct, frozen=True):
    """`name() ...`: the definition of a function."""

    name: str
    body: Node


Node: TypeAlias = (
    Command | Redirected | Pipeline | AndOr | Background | Sequence | If | Loop | For | Case
    | Subshell | Function
)  # fmt: skip
