"""Where scenarios are: those of this package, and files that a user names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

_PACKAGE: Final = Path(__file__).parents[1]
SUFFIXES: Final = (".yaml", ".yml")
AREA: Final = "bugs"
"""The area of all scenarios."""
_ALONE: Final = frozenset(
    {"--long", "--check-since", "--pdb", "--co", "--collect-only", "--exitfirst", "--"}
)
"""Long options without a value."""


def shipped_directory() -> Path:
    """The directory of the fixtures: inside the package when it is installed, beside it in a
    checkout."""
    inside = _PACKAGE / "fixtures"
    return (inside if inside.is_dir() else _PACKAGE.parents[1] / "fixtures") / "bugs"


def shipped() -> list[Path]:
    """The scenarios of this package, in the order of their names; each has the name of its ID."""
    return sorted(shipped_directory().glob("*.yaml"))


def is_shipped(file: Path) -> bool:
    """Whether the file is one of them."""
    return file.absolute().parent == shipped_directory().absolute()


def named_files(words: Sequence[str]) -> list[str]:
    """Those words of a command line that name files of cases or directories of scenarios."""
    pairs = zip(["", *words], words, strict=False)
    return [word for before, word in pairs if _is_named(word) and not _takes_value(before)]


def _is_named(word: str) -> bool:
    path = Path(word)
    if word.startswith("-"):
        return False
    return path.suffix in (*SUFFIXES, ".py") or path.is_dir()


def _takes_value(word: str) -> bool:
    """Whether the next word may belong to this option: to a long one without `=`, or to one of
    pytest's with a letter."""
    long = word.startswith("--") and "=" not in word and word not in _ALONE
    return long or word in ("-c", "-p", "-k", "-o", "-m", "-n", "-W")


def in_files(names: Iterable[str]) -> list[Path]:
    """The files that are meant: the scenarios of a directory, sorted, and the others as they are. A
    directory without scenarios stays as it is, for the caller to tell."""
    paths: list[Path] = []
    for name in names:
        path = Path(name)
        if path.is_dir():
            paths += sorted(p for p in path.iterdir() if p.suffix in SUFFIXES) or [path]
        else:
            paths.append(path)
    return paths
