"""Why no case runs some code of refkubelet: the table lot_outside.list. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final, NamedTuple

from lot_draw import DRAWN
from mutant_tables import MutantError

TABLE: Final = Path(__file__).with_name("lot_outside.list")


class Place(NamedTuple):
    """A function that no case runs, or with statements that none runs; "": the module."""

    file: str
    function: str


class Entry(NamedTuple):
    """A line of the table."""

    file: str
    function: str
    """`*`: all of the module."""
    reason: str

    def fits(self, place: Place) -> bool:
        """Whether it is about that function.

        >>> Entry("refkubelet/cri/*", "A.*", "").fits(Place("refkubelet/cri/x.py", "A.f"))
        True
        """
        return fnmatchcase(place.file, self.file) and fnmatchcase(place.function, self.function)


def entries(text: str) -> list[Entry]:
    """The table: a reason, and below it, indented, what it is about. Raises MutantError.

    >>> entries("Only as root\\n    volumes/a.py: A.f\\n")
    [Entry(file='refkubelet/volumes/a.py', function='A.f', reason='Only as root')]
    """
    found, reason = list[Entry](), ""
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        if not line[0].isspace():
            reason = line.strip()
            continue
        if not reason:
            raise MutantError(f"{TABLE.name}: {line.strip()} stands below no reason")
        file, _, function = line.strip().partition(": ")
        found.append(Entry(f"{DRAWN}/{file}", function or "*", reason))
    return found


def reason_of(place: Place, table: Iterable[Entry]) -> str:
    """The reason why no case runs it; "": there is none."""
    return next((entry.reason for entry in table if entry.fits(place)), "")


def stale(table: Iterable[Entry], never: Iterable[Place]) -> Iterator[Entry]:
    """The lines about nothing that is never run. `never`: all that no case runs."""
    places = list(never)
    return (entry for entry in table if not any(map(entry.fits, places)))
