"""What a parsed script is made of: commands, pipelines, lists, loops, branches, as plain values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Redirection:
    """`sign`: `>`, `>>`, `<` or `>&`; the descriptor that is redirected, and its target."""

    descriptor: int
    sign: str
    target: str


@dataclass(frozen=True, slots=True)
class Command:
    """A simple command: assignments, then words, as written."""

    assignments: tuple[tuple[str, str], ...]
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Redirected:
    """A command with redirections of its own."""

    inner: Node
    redirections: tuple[Redirection, ...]


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Commands, each reading what the one before writes."""

    parts: tuple[Node, ...]
    negated: bool = False


@dataclass(frozen=True, slots=True)
class AndOr:
    """A pipeline, then others after `&&` and `||`."""

    first: Node
    rest: tuple[tuple[str, Node], ...]


@dataclass(frozen=True, slots=True)
class Background:
    """`... &`: a job that the shell does not wait for."""

    inner: Node


@dataclass(frozen=True, slots=True)
class Sequence:
    """Commands, one after the other."""

    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class If:
    """Conditions with what is done for each, and what is done if none holds."""

    branches: tuple[tuple[Node, Node], ...]
    otherwise: Node


@dataclass(frozen=True, slots=True)
class Loop:
    """`while`, or `until`."""

    condition: Node
    body: Node
    until: bool


@dataclass(frozen=True, slots=True)
class For:
    """A loop over words; None: over the arguments of the script."""

    name: str
    words: tuple[str, ...] | None
    body: Node


@dataclass(frozen=True, slots=True)
class Case:
    """A word and branches with patterns; the first branch that fits is run."""

    word: str
    items: tuple[tuple[tuple[str, ...], Node], ...]


@dataclass(frozen=True, slots=True)
class Subshell:
    """`( ... )`: runs in a process of its own, so its variables are lost afterwards."""

    body: Node


@dataclass(frozen=True, slots=True)
class Function:
    """`name() ...`: the definition of a function."""

    name: str
    body: Node


Node: TypeAlias = (
    Command | Redirected | Pipeline | AndOr | Background | Sequence | If | Loop | For | Case
    | Subshell | Function
)  # fmt: skip
