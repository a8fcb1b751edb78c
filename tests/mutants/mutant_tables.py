"""Mutants: wrong kubelets, each a change of a line or a few that breaks one clause of a rule.

A file `tests/mutants/<area>.txt` has those of an area. A line without indentation is the name of a
mutant; below it, with two spaces, are words and places, and below a place, with four spaces, the
lines there as in a diff:

    reset-late
      Rule: BACK-003.2
      Breaks: The reset comes after twice the configured maximum instead of 600 s.
      refkubelet/kuberuntime/decisions/backoff.py: BackOff.next
        -        if elapsed > RESET_S:
        +        if elapsed > 2 * self.max_s:

`Rule` is the clause it breaks (several with commas), `Breaks` says how. `Survives` is there only
for a mutant that no case can notice, and says why. `Fixture` names the fixtures (fixtures/bugs)
that are about what it breaks: each of them has to notice it. `Law` names the laws
(`kubelet_conformance.laws`) that have to. A place is a file below the root of
the repository and a function in it; without a function the whole file is looked at. A line that is
kept begins with a space instead of the sign.

The mutants of `runtime.txt` are wrong runtimes: changes of the fake one, fakecri. What a runtime
does is not for the suite to judge; the contract tests (tests/verified/test_cri_*.py), which the
fake and a real containerd pass, have to notice them.

Here a table is read, and mutants are applied to the text of a module. Line numbers do not count:
the lines that a place keeps and removes must stand exactly once in its function. So a mutant
outlives changes around it, and says so when its own place has changed.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from fnmatch import fnmatch
from functools import lru_cache
from pathlib import Path
from typing import Final

HOME: Final = Path(__file__).parent
ROOT: Final = HOME.parents[1]
MUTATED: Final = ("kubeobjects", "refkubelet")
"""The packages that a wrong kubelet may differ in. (mutmut's are in pyproject.toml.)"""
RUNTIME: Final = "runtime"
"""The area of wrong runtimes: no cases, but the contract tests of runtimes have to notice them."""
IN_TABLES: Final = (*MUTATED, "fakecri")
"""The packages that any mutant of the tables may differ in."""
WORDS: Final = ("Rule", "Breaks", "Survives", "Fixture", "Law")
CLAUSE: Final = re.compile(r"[A-Z]{2,5}-\d{3}(\.\d{1,2})?")
_PLACE: Final = re.compile(r"([\w/.-]+\.\w+):(?: ([\w.]+))?")


class MutantError(ValueError):
    """A table cannot be read, or a mutant does not fit; the text names it and what to do."""


@dataclass(frozen=True, slots=True)
class Hunk:
    """One place: the lines that must stand there, and those that stand there instead."""

    file: str
    """Below the root of the repository, as `refkubelet/pleg/compute.py`."""
    old: tuple[str, ...]
    new: tuple[str, ...]
    function: str = ""
    """The function or class with these lines, as `BackOff.next`; "": the whole file."""

    def lines(self) -> Iterator[str]:
        """As a table has them."""
        for kind, line in _marked(self.old, self.new):
            yield kind + line


@dataclass(frozen=True, slots=True)
class Mutant:
    """One wrong kubelet."""

    name: str
    """Area and own name, as `backoff/reset-late`."""
    rules: tuple[str, ...]
    """The clauses it breaks (`BACK-003.2`), or rules that have one clause only."""
    breaks: str
    """What is wrong with this kubelet, a sentence."""
    survives: str
    """Why no case can notice it; "" where one must."""
    hunks: tuple[Hunk, ...]
    fixtures: tuple[str, ...] = ()
    """The fixtures that must notice it."""
    laws: tuple[str, ...] = ()
    """The laws that must notice it."""

    @property
    def area(self) -> str:
        """The name of its table."""
        return self.name.partition("/")[0]

    def texts(self, root: Path = ROOT) -> dict[str, str]:
        """The modules that it changes, by file: their texts. Raises MutantError where a hunk does
        not fit."""
        found: dict[str, str] = {}
        for hunk in self.hunks:
            if hunk.file not in found:
                hunks = [each for each in self.hunks if each.file == hunk.file]
                found[hunk.file] = applied(hunks, (root / hunk.file).read_text())
        return found


def tables(home: Path = HOME) -> list[Path]:
    """The files of all areas."""
    return sorted(home.glob("*.txt"))


def read_all(chosen: Sequence[str] = (), home: Path = HOME) -> list[Mutant]:
    """All mutants, or those whose name, area or glob is in `chosen`. Raises MutantError."""
    mutants = [mutant for table in tables(home) for mutant in read(table)]
    for word in chosen:
        if not any(_is_meant(mutant, word) for mutant in mutants):
            raise MutantError(f"{word}: no such mutant or area below {home.name}/")
    if not chosen:
        return mutants
    return [mutant for mutant in mutants if any(_is_meant(mutant, word) for word in chosen)]


def _is_meant(mutant: Mutant, word: str) -> bool:
    name = word.removesuffix(".txt").removeprefix("tests/mutants/")
    return name in (mutant.area, mutant.name.partition("/")[2]) or fnmatch(mutant.name, name)


def read(table: Path) -> list[Mutant]:
    """The mutants of a table. Raises MutantError."""
    return [_mutant(f"{table.stem}/{name}", lines) for name, lines in _blocks(table.read_text())]


def _blocks(text: str) -> Iterator[tuple[str, list[str]]]:
    """The names in a table, and the lines below each."""
    name, lines = "", list[str]()
    for line in text.splitlines():
        if line and not line.startswith((" ", "#")):
            if name:
                yield name, lines
            name, lines = line.strip(), []
        elif not line.startswith("#"):
            lines.append(line)
    if name:
        yield name, lines


def _mutant(name: str, lines: Iterable[str]) -> Mutant:
    words: dict[str, str] = {}
    places: list[tuple[str, str, list[str]]] = []
    for line in lines:
        if line.startswith("    ") or not line:
            if places:
                places[-1][2].append(line[4:])
            elif line:
                raise MutantError(f"{name}: {line.strip()!r}: wanted a place before lines")
            continue
        word, colon, text = line.strip().partition(":")
        place = _PLACE.fullmatch(line.strip())
        if colon and word in WORDS and word not in words and not places:
            words[word] = text.strip()
        elif place:
            places.append((place[1], place[2] or "", []))
        else:
            known = ", ".join(WORDS)
            raise MutantError(f"{name}: {line.strip()!r}: wanted {known}, each once, or a place")
    return _checked(name, words, tuple(_hunk(name, *place) for place in places))


def _checked(name: str, words: dict[str, str], hunks: tuple[Hunk, ...]) -> Mutant:
    rules = tuple(rule.strip() for rule in words.get("Rule", "").split(","))
    if not all(CLAUSE.fullmatch(rule) for rule in rules):
        raise MutantError(f"{name}: Rule: wanted clauses as BACK-003.2, not {words.get('Rule')!r}")
    if not words.get("Breaks"):
        raise MutantError(f"{name}: Breaks: wanted a sentence that says what is wrong")
    if not hunks:
        raise MutantError(f"{name}: it has no place")
    fixtures = tuple(words.get("Fixture", "").replace(",", " ").split())
    laws = tuple(words.get("Law", "").replace(",", " ").split())
    return Mutant(name, rules, words["Breaks"], words.get("Survives", ""), hunks, fixtures, laws)


def _hunk(name: str, file: str, function: str, lines: list[str]) -> Hunk:
    while lines and not lines[-1]:  # empty lines before the next mutant
        lines.pop()
    old = tuple(line[1:] for line in lines if line[:1] in (" ", "-", ""))
    new = tuple(line[1:] for line in lines if line[:1] in (" ", "+", ""))
    if not file.endswith(".py"):
        raise MutantError(f"{name}: {file}: wanted a module")
    if old == new:
        raise MutantError(f"{name}: the lines of {file} change nothing")
    return Hunk(file, old, new, function)


def start_of(hunk: Hunk, text: str) -> int:
    """The index of the line in the module's text where the hunk's lines begin. Raises MutantError
    where they do not stand exactly once in its function."""
    lines, size = text.splitlines(), len(hunk.old)
    places = [
        n
        for begin, end in _spans(text).get(hunk.function, ())
        for n in range(begin, end - size + 1)
        if tuple(lines[n : n + size]) == hunk.old
    ]
    if len(places) != 1:
        wanted = "\n".join(hunk.old)
        where = f"{hunk.file}: {hunk.function}".removesuffix(": ")
        raise MutantError(
            f"{where}: these lines stand there {len(places)} times, wanted once:\n{wanted}"
        )
    return places[0]


def holder(text: str, start: int, hunk: Hunk) -> str:
    """The innermost function or class of a module around the hunk's lines, which begin at the index
    `start`, in which they stand once; "": the module."""
    end = start + len(hunk.old)
    around = [
        (last - first, name)
        for name, places in _spans(text).items()
        for first, last in places
        if first <= start and end <= last
    ]
    for _, name in sorted(around):
        try:
            if start_of(replace(hunk, function=name), text) == start:
                return name
        except MutantError:
            continue
    return ""


def _marked(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The lines that are kept, removed and put there, with the signs of a diff."""
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    for kind, i, j, k, m in matcher.get_opcodes():
        if kind == "equal":
            yield from ((" ", line) for line in old[i:j])
        else:
            yield from (("-", line) for line in old[i:j])
            yield from (("+", line) for line in new[k:m])


@lru_cache(64)
def _spans(text: str) -> dict[str, list[tuple[int, int]]]:
    """Where each function and class of a module is: the indexes of its first line and behind its
    last one; two of one name, as for two platforms, are there twice. "" is the module."""
    spans: dict[str, list[tuple[int, int]]] = {"": [(0, text.count("\n") + 1)]}
    waiting: list[tuple[str, ast.AST]] = [("", ast.parse(text))]
    while waiting:
        above, node = waiting.pop()
        for child in ast.iter_child_nodes(node):
            name = above
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                name = f"{above}.{child.name}".lstrip(".")
                first = min([child.lineno, *(d.lineno for d in child.decorator_list)]) - 1
                spans.setdefault(name, []).append((first, child.end_lineno or first))
            waiting.append((name, child))
    return spans


def applied(hunks: Sequence[Hunk], text: str) -> str:
    """The module's text with the hunks applied. Raises MutantError where one does not fit.

    >>> applied([Hunk("a.py", ("one", "two"), ("one", "2"))], "zero\\none\\ntwo\\n")
    'zero\\none\\n2\\n'
    """
    starts = sorted(((start_of(hunk, text), hunk) for hunk in hunks), key=lambda at: -at[0])
    lines = text.splitlines()
    for start, hunk in starts:
        lines[start : start + len(hunk.old)] = hunk.new
    return "\n".join(lines) + "\n"
