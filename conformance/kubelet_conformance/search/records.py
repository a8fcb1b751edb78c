"""What a campaign writes down: JSON lines, a head and a line for each world, so that it can go on
where it was stopped."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal

import msgspec
from msgspec import Struct

from kubelet_conformance.search.playing import Breach

FORMAT: Final = 1


class SearchError(ValueError):
    """A search cannot be done as it was asked for; the text says why."""


class Head(Struct, frozen=True, kw_only=True, tag="search", tag_field="kind"):
    """The first line: what all worlds of the file have in common."""

    format: int = FORMAT
    suite: str
    """The version of this package."""
    kubelet: str
    size: str
    laws: tuple[str, ...] = ()
    """Only these were asked; empty: all."""
    beside: str = ""
    """The other kubelet; "": none."""
    began: str
    """When, in UTC."""

    @property
    def asked(self) -> str:
        """What was asked of which worlds."""
        beside = f" beside {self.beside}" if self.beside else ""
        laws = f", only laws {', '.join(self.laws)}" if self.laws else ""
        return f"worlds of size {self.size} on {self.kubelet}{beside}{laws}"


class Excused(Struct, frozen=True):
    """A breach that is known."""

    law: str
    excuse: str
    """The name of the excuse."""


class Met(Struct, frozen=True, kw_only=True, tag="world", tag_field="kind"):
    """The line of one world."""

    seed: int
    kinds: tuple[str, ...]
    """What can be in it."""
    struck: tuple[str, ...] = ()
    """What its calls have met: `failing StartContainer`; and which were under way when a kubelet
    was killed (`killed in StartContainer`) or stopped."""
    trace: str = ""
    """A digest of its calls and their moments: in virtual time equal for equal code, wherever it is
    played."""
    transitions: tuple[str, ...] = ()
    """Those of pod workers that were met, by refkubelet in this process: `sync: end`."""
    verdict: Literal["holds", "excused", "broken", "error"]
    breaches: tuple[Breach, ...] = ()
    """Those that nothing excuses."""
    excused: tuple[Excused, ...] = ()
    unasked: tuple[str, ...] = ()
    """Broken laws that were not asked for."""
    error: str = ""
    world_s: float = 0.0
    real_s: float = 0.0
    cpu_s: float = 0.0
    """Seconds of processor time that it took, programs that it started included."""


Line = Head | Met
_DECODER: Final = msgspec.json.Decoder(Line)


def line_of(line: Line) -> bytes:
    """The line as the file has it."""
    return msgspec.json.encode(line) + b"\n"


def read_lines(path: Path, option: str = "--resume") -> tuple[Head, list[Met]]:
    """What a file of an earlier campaign has: of each seed its last line. A line that was cut off
    at the end counts as not written. Raises SearchError, whose text begins with the option."""
    try:
        text = path.read_bytes()
    except OSError as error:
        raise SearchError(f"{option} {path}: {error.strerror}") from None
    lines = list(_decoded(f"{option} {path}", text))
    if not lines or not isinstance(lines[0], Head):
        raise SearchError(f"{option} {path}: its first line is none of a search")
    by_seed = {line.seed: line for line in lines if isinstance(line, Met)}
    return lines[0], list(by_seed.values())


def _decoded(name: str, text: bytes) -> Iterator[Line]:
    whole, _, _cut_off = text.rpartition(b"\n")
    for number, line in enumerate(whole.splitlines(), start=1):
        try:
            yield _DECODER.decode(line)
        except msgspec.MsgspecError as error:
            raise SearchError(f"{name}:{number}: no line of a search: {error}") from None
