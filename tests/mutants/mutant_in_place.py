"""Makes functions that are imported already those of a mutant: their code objects are exchanged.

Importing refkubelet and the suite anew takes a second; exchanging the code of a function takes
none. It is possible where a mutant changes nothing but the bodies of functions. What was computed
while modules were imported keeps the right values, so a mutant that is not noticed this way is
asked about again in a process that imports it (`mutant_import.py`).
"""

from __future__ import annotations

import gc
import inspect
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import NamedTuple

from mutant_tables import IN_TABLES, ROOT, MutantError


class Place(NamedTuple):
    """Where a function is defined."""

    file: str
    line: int
    qualname: str


Functions = Mapping[Place, Sequence[FunctionType]]


class NotInPlaceError(Exception):
    """The mutant changes more than the bodies of functions."""


def check_imported_from(package: ModuleType, root: Path = ROOT) -> None:
    """Raises MutantError when the package is not the one whose files the patches change: an
    installed copy, of which no line would be found."""
    if Path(str(package.__file__)).parents[1] != root:
        raise MutantError(
            f"{package.__name__} is imported from {package.__file__}, but mutants change the files "
            f"below {root}: put {root} into PYTHONPATH"
        )


def mutable_functions() -> dict[Place, list[FunctionType]]:
    """All functions that mutants may change and are imported now, also those inside decorators."""
    roots = tuple(f"{ROOT / package}/" for package in IN_TABLES)
    found: dict[Place, list[FunctionType]] = {}
    for each in gc.get_objects():
        if isinstance(each, FunctionType) and each.__code__.co_filename.startswith(roots):
            code = each.__code__
            place = Place(code.co_filename, code.co_firstlineno, code.co_qualname)
            found.setdefault(place, []).append(each)
    return found


def become_in_place(texts: Mapping[str, str], functions: Functions) -> bool:
    """Exchange the code of the functions that differ in these files; False, and nothing is changed,
    where more than bodies differs."""
    found: list[tuple[FunctionType, CodeType]] = []
    try:
        for place, code in _changed(texts):
            there = functions.get(place, ())
            if not there or any(f.__code__.co_freevars != code.co_freevars for f in there):
                return False
            found += [(function, code) for function in there]
    except NotInPlaceError:
        return False
    for function, code in found:
        function.__code__ = code
    return bool(found)


def _changed(texts: Mapping[str, str]) -> Iterator[tuple[Place, CodeType]]:
    """The functions that differ, and their new code. Raises NotInPlaceError."""
    for file, changed in texts.items():
        path = ROOT / file
        right, wrong = (
            compile(each, str(path), "exec", dont_inherit=True)
            for each in (path.read_text(), changed)
        )
        yield from _differing(right, wrong)


def _differing(right: CodeType, wrong: CodeType) -> Iterator[tuple[Place, CodeType]]:
    """The same for the body of a module or class: what is in it besides functions must be equal."""
    if not _same(right, wrong, deep=False):
        raise NotInPlaceError
    pairs = zip(right.co_consts, wrong.co_consts, strict=True)
    for old, new in pairs:
        if not isinstance(old, CodeType):
            continue
        if not old.co_flags & inspect.CO_OPTIMIZED:  # the body of a class
            yield from _differing(old, new)
        elif not _same(old, new, deep=True):
            yield Place(old.co_filename, old.co_firstlineno, old.co_qualname), new


def _same(one: CodeType, other: CodeType, *, deep: bool) -> bool:
    """Whether both do the same, apart from line numbers; without `deep`: apart from the functions
    and classes that they define."""
    parts = ("co_code", "co_names", "co_varnames", "co_freevars", "co_cellvars", "co_flags")
    if any(getattr(one, part) != getattr(other, part) for part in parts):
        return False
    if one.co_exceptiontable != other.co_exceptiontable:
        return False
    if len(one.co_consts) != len(other.co_consts):
        return False
    return all(
        _same_constant(a, b, deep) for a, b in zip(one.co_consts, other.co_consts, strict=True)
    )


def _same_constant(one: object, other: object, deep: bool) -> bool:
    if isinstance(one, CodeType) and isinstance(other, CodeType):
        return _same(one, other, deep=True) if deep else one.co_name == other.co_name
    return type(one) is type(other) and repr(one) == repr(other)
