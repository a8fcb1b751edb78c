"""Patterns over paths, as pathlib has them: `glob` and `rglob`.

Directories that go while somebody walks are left out. What must never happen here: a walk changes
what it walks over.
"""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fakecri.cgroupfs.path import CgroupPath


def glob(start: CgroupPath, parts: tuple[str, ...]) -> Iterator[CgroupPath]:
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


def _children(path: CgroupPath) -> list[CgroupPath]:
    try:
        return list(path.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []
