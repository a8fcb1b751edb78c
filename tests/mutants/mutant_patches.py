"""Mutants: wrong kubelets, each a small patch of refkubelet that breaks one clause of a rule.

A mutant is a file `tests/mutants/<area>/<name>.patch`: a head of `Word: text` lines, an empty
line, and a unified diff against the root of the repository, which `git apply` takes, too. A line
of the head that begins with two spaces continues the one above.

    Rule: BACK-003.2
    Breaks: The reset comes after twice the configured maximum instead of 600 s.

`Rule` is the clause it breaks (several with commas), `Breaks` says how. `Survives` is there only
for a mutant that no case can notice, and says why. `Fixture` names the fixtures (fixtures/bugs)
that are about what it breaks: each of them has to notice it.

Here a patch is read and applied to the text of a module. Line numbers do not count: the lines
that a hunk keeps and removes must stand exactly once in the file. So a mutant outlives changes
around it, and says so when its own place has changed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Final

HOME: Final = Path(__file__).parent
MUTATED: Final = ("kubeobjects", "refkubelet")
"""The packages that a wrong kubelet may differ in. (mutmut's are in pyproject.toml.)"""
HEAD_WORDS: Final = ("Rule", "Breaks", "Survives", "Fixture")
CLAUSE: Final = re.compile(r"[A-Z]{2,5}-\d{3}(\.\d{1,2})?")


class MutantError(ValueError):
    """A patch cannot be read or does not fit; the text names it and what to do."""


@dataclass(frozen=True, slots=True)
class Hunk:
    """One place of a file: the lines that must stand there, and those that stand there instead."""

    file: str
    """Below the root of the repository, as `refkubelet/pleg/compute.py`."""
    old: tuple[str, ...]
    new: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Mutant:
    """One wrong kubelet."""

    name: str
    """Folder and file without its ending, as `backoff/reset-late`."""
    rules: tuple[str, ...]
    """The clauses it breaks (`BACK-003.2`), or rules that have one clause only."""
    breaks: str
    """What is wrong with this kubelet, a sentence."""
    survives: str
    """Why no case can notice it; "" where one must."""
    hunks: tuple[Hunk, ...]
    fixtures: tuple[str, ...] = ()
    """The fixtures that must notice it."""

    @property
    def area(self) -> str:
        """Its folder."""
        return self.name.partition("/")[0]

    @property
    def modules(self) -> dict[str, tuple[Hunk, ...]]:
        """What is changed in each module, by the module's dotted name."""
        found: dict[str, tuple[Hunk, ...]] = {}
        for hunk in self.hunks:
            module = hunk.file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
            found[module] = (*found.get(module, ()), hunk)
        return found


def read_all(chosen: Sequence[str] = (), home: Path = HOME) -> list[Mutant]:
    """All mutants, or those whose name, area or glob is in `chosen`. Raises MutantError."""
    mutants = [read(file) for file in sorted(home.glob("*/*.patch"))]
    for word in chosen:
        if not any(_is_meant(mutant, word) for mutant in mutants):
            raise MutantError(f"{word}: no such mutant or area below {home.name}/")
    if not chosen:
        return mutants
    return [mutant for mutant in mutants if any(_is_meant(mutant, word) for word in chosen)]


def _is_meant(mutant: Mutant, word: str) -> bool:
    name = word.removesuffix(".patch").removeprefix("tests/mutants/")
    return name in (mutant.area, mutant.name.partition("/")[2]) or fnmatch(mutant.name, name)


def read(file: Path) -> Mutant:
    """One patch file. Raises MutantError."""
    name = f"{file.parent.name}/{file.stem}"
    head, separator, diff = file.read_text().partition("\n\n")
    if not separator:
        raise MutantError(f"{name}: wanted a head, an empty line and a diff")
    words = _head(name, head)
    rules = tuple(rule.strip() for rule in words.get("Rule", "").split(","))
    if not all(CLAUSE.fullmatch(rule) for rule in rules):
        raise MutantError(f"{name}: Rule: wanted clauses as BACK-003.2, not {words.get('Rule')!r}")
    if not words.get("Breaks"):
        raise MutantError(f"{name}: Breaks: wanted a sentence that says what is wrong")
    hunks = tuple(_hunks(name, diff.splitlines()))
    if not hunks:
        raise MutantError(f"{name}: the diff has no hunk")
    fixtures = tuple(words.get("Fixture", "").replace(",", " ").split())
    return Mutant(name, rules, words["Breaks"], words.get("Survives", ""), hunks, fixtures)


def _head(name: str, head: str) -> dict[str, str]:
    words: dict[str, str] = {}
    last = ""
    for line in head.splitlines():
        word, colon, text = line.partition(":")
        if line.startswith("  ") and last:
            words[last] += " " + line.strip()
        elif colon and word in HEAD_WORDS and word not in words:
            last = word
            words[word] = text.strip()
        else:
            raise MutantError(f"{name}: {line!r}: a head has {', '.join(HEAD_WORDS)}, each once")
    return words


def _hunks(name: str, diff: Sequence[str]) -> Iterator[Hunk]:
    """The hunks of a unified diff; what `git diff` writes beside them is passed over."""
    file = ""
    old: list[str] = []
    new: list[str] = []
    in_hunk = False
    for line in [*diff, "@@"]:
        kind, text = line[:1], line[1:]
        if in_hunk and kind in (" ", "", "-", "+") and not line.startswith(("--- ", "+++ ")):
            if kind != "+":
                old.append(text)
            if kind != "-":
                new.append(text)
            continue
        if in_hunk and line.startswith("\\"):  # "No newline at end of file"
            continue
        if in_hunk:
            yield _hunk(name, file, old, new)
            old, new = [], []
        in_hunk = line.startswith("@@")
        if line.startswith("+++ "):
            file = text[3:].strip().removeprefix("b/")


def _hunk(name: str, file: str, old: list[str], new: list[str]) -> Hunk:
    while old and new and not old[-1] and not new[-1]:  # empty lines at the end of the patch file
        old, new = old[:-1], new[:-1]
    if not file.endswith(".py"):
        raise MutantError(f"{name}: a hunk of {file or 'no file'}: wanted a module")
    if old == new:
        raise MutantError(f"{name}: a hunk of {file} changes nothing")
    return Hunk(file, tuple(old), tuple(new))


def applied(hunks: Sequence[Hunk], text: str) -> str:
    """The module's text with the hunks applied. Raises MutantError where one does not fit.

    >>> applied([Hunk("a.py", ("one", "two"), ("one", "2"))], "zero\\none\\ntwo\\n")
    'zero\\none\\n2\\n'
    """
    lines = text.splitlines()
    for hunk in hunks:
        size = len(hunk.old)
        places = [n for n in range(len(lines) - size + 1) if tuple(lines[n : n + size]) == hunk.old]
        if len(places) != 1:
            wanted = "\n".join(hunk.old)
            raise MutantError(
                f"{hunk.file}: these lines stand there {len(places)} times, wanted once:\n{wanted}"
            )
        lines[places[0] : places[0] + size] = hunk.new
    return "\n".join(lines) + "\n"
