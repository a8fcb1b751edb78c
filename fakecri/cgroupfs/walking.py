"""Patterns over paths, as pathlib has them: `glob` and `rglob`.

Directories that are removed during the walk are left out.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Protocol, TypeVar


class Walkable(Protocol):
    """A path, as far as patterns need it."""

    @property
    def name(self) -> str: ...

    def is_dir(self) -> bool: ...

    def iterdir(self: P) -> Iterator[P]: ...


P = TypeVar("P", bound=Walkable)


def glob(start: P, parts: tuple[str, ...]) -> Iterator[P]:
    """The paths below `start` that fit the parts of a pattern; `**` is any depth of directories."""
    if not parts:
        yield start
        return
    first, rest = parts[0], parts[1:]
    if first == "**":
        while rest[:1] == ("**",):
            rest = rest[1:]
        if not start.is_dir():
            return
        yield from glob(start, rest)
        for path in _children(start):
            if path.is_dir():
                yield from glob(path, (first, *rest))
        return
    for path in _children(start):
        if fnmatchcase(path.name, first) and (not rest or path.is_dir()):
            yield from glob(path, rest)


def _children(path: P) -> list[P]:
    try:
        return list(path.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []


def pattern_parts(pattern: str) -> tuple[str, ...]:
    """The names and wildcards of a pattern. Raises ValueError for an empty or absolute one."""
    if pattern.startswith("/") or not split(pattern):
        raise ValueError(f"pattern: wanted names such as */cgroup.procs, got {pattern!r}")
    return split(pattern)


def split(path: str | os.PathLike[str]) -> tuple[str, ...]:
    """The names in a path, relative or absolute.

    >>> split("/kubepods//burstable/")
    ('kubepods', 'burstable')
    """
    return tuple(name for name in os.fspath(path).split("/") if name not in ("", "."))
