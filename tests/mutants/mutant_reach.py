"""Which cases reach the lines that a mutant of a table changes: no other case can notice it.

A change counts by the statement it is in; what is executed while a module is imported (constants,
tables, signatures) is reached by every case that executes a function of the module.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mutant_probes import At
from mutant_tables import ROOT, Hunk, Mutant, start_of


def numbers_of(mutant: Mutant, numbers: Mapping[At, int]) -> set[int]:
    """The numbers of the statements by which a case can reach the mutant's changes."""
    found: set[int] = set()
    for hunk in mutant.hunks:
        inside = concerned((ROOT / hunk.file).read_text(), hunk)
        found |= {
            number
            for (file, line, _), number in numbers.items()
            if file == hunk.file and (line in inside or not inside)
        }
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
