"""Files of cases and scenarios that a user names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

SUFFIXES: Final = (".yaml", ".yml")
_ID: Final = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_ALONE: Final = frozenset(
    {
        *("--long", "--check-since", "--write-baseline"),
        *("--pdb", "--co", "--collect-only", "--exitfirst", "--"),
    }
)
"""Long options without a value."""


def named_files(words: Sequence[str]) -> list[str]:
    """Those words of a command line that name files of cases or directories of scenarios."""
    return [word for word in _free(words) if _is_named(word)]


def named_cases(words: Sequence[str]) -> list[str]:
    """Those that are IDs of cases, and nothing that is here."""
    return [w for w in _free(words) if _ID.fullmatch(w) and not Path(w).exists()]


def _free(words: Sequence[str]) -> list[str]:
    """The words that are neither options nor values of options."""
    pairs = zip(["", *words], words, strict=False)
    return [w for before, w in pairs if not (w.startswith("-") or _takes_value(before))]


def _is_named(word: str) -> bool:
    path = Path(word)
    return path.suffix in (*SUFFIXES, ".py") or path.is_dir() or ("/" in word and "::" not in word)


def _takes_value(word: str) -> bool:
    """Whether the next word may belong to this option: to a long one without `=`, or to one of
    pytest's with a letter."""
    long = word.startswith("--") and "=" not in word and word not in _ALONE
    return long or word in ("-c", "-p", "-k", "-o", "-m", "-n", "-r", "-W")


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
