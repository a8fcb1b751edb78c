"""Which cases reach the lines that a mutant changes: no other case can notice it.

The cases are run once on refkubelet as it is, with a tracer that looks at these lines only. A
change counts by the statement it is in, because a tracer sees the beginning of a statement; what is
executed while a module is imported (constants, tables, signatures) is reached by every case that
executes a function of the module.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import CodeType, FrameType
from typing import Any, Final

from mutant_in_place import ROOT
from mutant_tables import Hunk, Mutant, start_of

ANY: Final = 0
"""Instead of the number of a line: any function of the file."""
Line = tuple[str, int]
"""A file below the root of the repository, and a line of it."""


@dataclass(slots=True)
class Reach:
    """The cases that execute a line, of the lines that were looked at."""

    cases: dict[Line, set[str]] = field(default_factory=dict)

    def add(self, case: str, lines: Collection[Line]) -> None:
        """Note that the case executes these lines."""
        for line in lines:
            self.cases.setdefault(line, set()).add(case)

    def of(self, mutant: Mutant) -> set[str]:
        """The cases that reach one of the mutant's changes."""
        return {case for line in lines_of(mutant) for case in self.cases.get(line, ())}


def lines_of(mutant: Mutant) -> set[Line]:
    """The lines by which a case can reach the mutant's changes."""
    found: set[Line] = set()
    for hunk in mutant.hunks:
        inside = concerned((ROOT / hunk.file).read_text(), hunk)
        found |= {(hunk.file, line) for line in inside or {ANY}}
    return found


class Tracer:
    """For `sys.settrace`: collects in `seen` which of the wanted lines are executed."""

    def __init__(self, wanted: Collection[Line]) -> None:
        self._wanted = {(str(ROOT / file), line): (file, line) for file, line in wanted}
        self._files = {path for path, _ in self._wanted}
        self._of_code: dict[int, dict[int, Line]] = {}  # by id: hashing a code object is slow
        self.seen: set[Line] = set()

    def __call__(self, frame: FrameType, event: str, arg: object) -> Any:
        """A function is entered, or goes on. Its lines are looked at where one is wanted."""
        code = frame.f_code
        lines = self._of_code.get(id(code))
        if lines is None:
            lines = self._of_code[id(code)] = self._lines_in(code)
        if not lines:
            return None
        if ANY in lines:
            self.seen.add(lines[ANY])
        return self._line

    def _lines_in(self, code: CodeType) -> dict[int, Line]:
        path = code.co_filename
        if path not in self._files:
            return {}
        numbers = {ANY, *(number for _, _, number in code.co_lines() if number)}
        return {n: self._wanted[path, n] for n in numbers if (path, n) in self._wanted}

    def _line(self, frame: FrameType, event: str, arg: object) -> Any:
        line = self._of_code[id(frame.f_code)].get(frame.f_lineno)
        if event == "line" and line:
            self.seen.add(line)
        return self._line


def recorded(
    cases: Sequence[Any], choice: Any, wanted: Collection[Line]
) -> list[tuple[str, set[Line]]]:
    """Run the cases; for each the wanted lines that it executes."""
    from kubelet_conformance.harness.runs.virtual import run_virtual_case

    tracer = Tracer(wanted)
    found = []
    for case in cases:
        tracer.seen = set()
        sys.settrace(tracer)
        try:
            run_virtual_case(case, choice)
        finally:
            sys.settrace(None)
        found.append((case.id, tracer.seen))
    return found


def concerned(text: str, hunk: Hunk) -> set[int]:
    """The lines of the statements in functions that a hunk touches; none when it touches something
    that is executed at import.

    >>> text = "A = 1\\n\\ndef f(x):\\n    y = (x +\\n      1)\\n    return y\\n"
    >>> sorted(concerned(text, Hunk("a.py", ("      1)",), ("      2)",))))
    [4, 5]
    >>> concerned(text, Hunk("a.py", ("A = 1",), ("A = 2",)))
    set()
    """
    touched = _touched(text, hunk)
    found: set[int] = set()
    for statement, inside in _statements(ast.parse(text), inside=False):
        last = _head_end(statement)
        own = set(range(statement.lineno, last + 1))
        if touched & own:
            if not inside:
                return set()
            found |= own
    return found


def _touched(text: str, hunk: Hunk) -> set[int]:
    """The lines that a hunk removes, and those beside what it inserts."""
    size = len(hunk.old)
    first = start_of(hunk, text) + 1
    same_before = _common(hunk.old, hunk.new)
    same_after = _common(hunk.old[::-1], hunk.new[::-1])
    same_after = min(same_after, size - same_before, len(hunk.new) - same_before)
    begin, end = first + same_before, first + size - same_after
    return set(range(begin, end)) or {begin - 1, begin}


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    count = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        count += 1
    return count


def _statements(node: ast.AST, *, inside: bool) -> Iterator[tuple[ast.stmt, bool]]:
    """All statements, and whether they are inside a function."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt):
            yield child, inside
        function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
        yield from _statements(child, inside=inside or function)


def _head_end(statement: ast.stmt) -> int:
    """The last line of a statement without the statements in its body."""
    bodies: Mapping[str, Any] = vars(statement)
    firsts = [
        part[0].lineno
        for part in bodies.values()
        if isinstance(part, list) and part and isinstance(part[0], ast.stmt)
    ]
    return max(min(firsts) - 1, statement.lineno) if firsts else statement.end_lineno or 0
