"""What a kubelet's log says of the pods of a case, and which of its lines a failure shows. Pure.

Lines are those of kubelet programs (klog, JSON), of refkubelet as a program and of refkubelet in
this process, whose lines begin with the seconds of the case.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

MOST_ABOUT: Final = 15
"""Lines that are kept of what is said of pods."""
MOST_LAST: Final = 20
"""Lines that are kept of the end."""
LONGEST: Final = 500
"""Characters of a line; what is longer is cut."""
GAP: Final = "..."
"""Stands between what is said of pods and the last lines."""
_LOUD: Final = re.compile(
    r"(?P<head>[WEF]\d{4} [^\]]*\] |\d{4}-\d\d-\d\d \S+ [WEC] | *\d+\.\d{3} s +[WEC] )"
    r'|\{(?=.*"(?:err"|level":"(?:warning|error)"))'
)
"""How a warning or an error begins."""
_ERROR: Final = re.compile(r'\berr="((?:[^"\\]|\\.)*)"|"err":"((?:[^"\\]|\\.)*)"')


def kept(lines: Sequence[str], pods: Iterable[str]) -> tuple[str, ...]:
    """The lines that a failed case shows: first the warnings and errors that name one of `pods`
    (names, files of static pods), each once, then the others of the last lines.

    >>> kept(["I1129 10:00:00.1 1 a.go:1] on", "E1129 10:00:01.1 1 a.go:2] no web"], ["web"])[0]
    'E1129 10:00:01.1 1 a.go:2] no web'
    """
    about = list(_about(lines, pods))[:MOST_ABOUT]
    last = [line for line in lines[-MOST_LAST:] if line not in about]
    shown = [*about, GAP, *last] if about else last
    return tuple(line if len(line) <= LONGEST else f"{line[:LONGEST]} {GAP}" for line in shown)


def _about(lines: Sequence[str], pods: Iterable[str]) -> Iterator[str]:
    """The loud lines that name a pod, without those that say the same again."""
    names = "|".join(sorted(map(re.escape, pods)))
    named = re.compile(rf"(?<![\w-])(?:{names})(?!\w)")
    said = set()
    for line in lines if names else ():
        head = _LOUD.match(line)
        message = line[head.end() :] if head else ""
        if head and message not in said and named.search(message):
            said.add(message)
            yield line


def refused_files(lines: Iterable[str], directory: str) -> dict[str, str]:
    """The files of static pods in `directory` that the kubelet complains of -> what it said last.

    >>> refused_files(['E1129 10:00:00 1 a.go:2] "No" path="/m/a.yaml" err="/m/a.yaml: bad"'], "/m")
    {'a.yaml': 'bad'}
    >>> refused_files(["     1.000 s  E pods: static pod file /m/a.yaml: spec is missing"], "/m")
    {'a.yaml': 'spec is missing'}
    """
    file_path = re.compile(rf"{re.escape(directory)}/([^\s\\\":,]+)[\\\":,]*\s*")
    refused: dict[str, str] = {}
    for line in lines:
        place = file_path.search(line) if _LOUD.match(line) else None
        if place is None:
            continue
        error = _ERROR.search(line)
        why = (error[1] or error[2]).replace('\\"', '"') if error else line[place.end() :]
        refused[place[1]] = file_path.sub("", why).strip()[:LONGEST]
    return refused
