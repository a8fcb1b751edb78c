"""What a result file says, and runs in parts (`--shard K/N`), of which each has a file: `joined`
makes one run of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import msgspec

from kubelet_conformance.results_schema import (
    WORST_FIRST,
    CaseLine,
    Host,
    Product,
    RunEnd,
    RunHead,
    TraceLine,
)
from kubelet_conformance.traces.entries import Trace

ALIKE: Final = (
    *("kubelet", "kubelet_flags", "kubelet_config"),
    *("time", "seeds", "latency", "speed", "level", "chosen", "long", "suite"),
)
"""What the heads of all parts of a run say alike."""
Key = tuple[str, int | None]
"""Case ID and seed."""


class ResultsError(ValueError):
    """A file is no result file; the text names the file, the line, and what to do."""


@dataclass(frozen=True, slots=True)
class RunFile:
    """What a result file says."""

    path: Path
    head: RunHead
    cases: tuple[CaseLine, ...]
    """In the order in which they ended."""
    places: Mapping[Key, tuple[Path, int, int]] = field(repr=False)
    """Case and seed -> where its trace is: file, offset and length in bytes."""
    runtime: Product
    """The runtime, as it told itself if it did."""
    end: RunEnd | None = None
    """None: the run has not ended, or was killed."""
    cut: bool = False
    """Whether the last line was not written to its end, and is left out."""

    def trace(self, case: CaseLine) -> Trace | None:
        """The trace of a case, read from the file; None where it was not kept. Raises
        ResultsError."""
        raw = self.raw_trace(case)
        return None if raw is None else decoded(raw, TraceLine, f"{self.path}: trace").trace

    def raw_trace(self, case: CaseLine) -> bytes | None:
        """The line that has it."""
        place = self.places.get((case.id, case.seed))
        if place is None:
            return None
        path, offset, length = place
        with path.open("rb") as file:
            file.seek(offset)
            return file.read(length)

    @property
    def has_told(self) -> bool:
        """Whether the runtime has told what it is."""
        return self.runtime != self.head.runtime

    @property
    def title(self) -> str:
        """`refkubelet 1.36.0 on fakecri 1.36.0`."""
        return f"{self.head.kubelet} on {self.runtime}"

    def worst(self) -> dict[str, CaseLine]:
        """Case ID -> its worst result over all seeds."""
        by_id: dict[str, CaseLine] = {}
        for case in self.cases:
            other = by_id.get(case.id)
            if other is None or _rank(case) < _rank(other):
                by_id[case.id] = case
        return by_id


def _rank(case: CaseLine) -> int:
    return WORST_FIRST.index(case.verdict)


def decoded(raw: bytes, kind: Any, where: str) -> Any:
    """The line as what its kind has. Raises ResultsError."""
    try:
        return msgspec.json.decode(raw, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ResultsError(f"{where}: {error}") from None


def joined(runs: Sequence[RunFile]) -> RunFile:
    """The parts of a run as one. Its head says which parts they are (`1 and 3 of 4; 2 and 4
    missing`), its end has the sum of their times. Raises ResultsError for what are no parts of one
    run."""
    first = runs[0]
    if len(runs) == 1:
        return first
    for run in runs[1:]:
        _require_alike(first, run)
    _require_no_case_twice(runs)
    ends = [run.end for run in runs if run.end is not None]
    end = RunEnd(
        round(sum(end.real_s for end in ends), 3),
        max((end.load for end in ends), default=0.0),
        complete=all(end.complete for end in ends),
        chosen=max((end.chosen for end in ends), default=0),
    )
    return replace(
        first,
        head=_head_of_all([run.head for run in runs]),
        cases=tuple(case for run in runs for case in run.cases),
        places={key: place for run in runs for key, place in run.places.items()},
        runtime=next((run.runtime for run in runs if run.has_told), first.runtime),
        end=end if len(ends) == len(runs) else None,
        cut=any(run.cut for run in runs),
    )


def _head_of_all(heads: Sequence[RunHead]) -> RunHead:
    """The head of a run of which these are the heads of the parts."""
    one_machine = all(head.host == heads[0].host for head in heads)
    return msgspec.structs.replace(
        heads[0],
        began=min(head.began for head in heads),
        shard=_parts_told([head.shard for head in heads]),
        host=heads[0].host if one_machine else Host(),
        load=max(head.load for head in heads),
    )


def _require_no_case_twice(runs: Sequence[RunFile]) -> None:
    """Raise ResultsError when two parts have the same case with the same seed."""
    owners: dict[Key, RunFile] = {}
    for run in runs:
        for case in run.cases:
            other = owners.setdefault((case.id, case.seed), run)
            if other is not run:
                raise ResultsError(
                    f"{other.path} and {run.path} are no parts of one run: both have the case "
                    f"{case.id}"
                )


def is_part(shard: str) -> bool:
    """Whether a head with that `shard` is of one part, as `run --shard` writes it."""
    return "/" in shard


def missing_parts(shard: str) -> str:
    """Which parts of a run are not there, by what its head says.

    >>> missing_parts("1 and 3 of 4; 2 and 4 missing"), missing_parts("1/2"), missing_parts("")
    ('2 and 4 missing', '2 missing', '')
    """
    return (_parts_told([shard]) if is_part(shard) else shard).partition("; ")[2]


def _require_alike(first: RunFile, run: RunFile) -> None:
    """Raise ResultsError unless both are of the same kubelet and runtime, run the same way, and are
    parts of equally many."""
    pairs = {name: (getattr(first.head, name), getattr(run.head, name)) for name in ALIKE}
    pairs["runtime"] = (first.head.runtime, run.head.runtime)
    if first.has_told and run.has_told:
        pairs["runtime"] = (first.runtime, run.runtime)
    pairs["number of parts"] = (_count(first.head), _count(run.head))
    if first.end and run.end and first.end.chosen and run.end.chosen:
        pairs["number of chosen cases"] = (first.end.chosen, run.end.chosen)
    for name, (one, other) in pairs.items():
        if one != other:
            raise ResultsError(
                f"{first.path} and {run.path} are no parts of one run: {name} {_told(one)} and "
                f"{_told(other)}"
            )


def _told(value: Any) -> str:
    words = isinstance(value, tuple) and all(isinstance(word, str) for word in value)
    return (", ".join(value) or "nothing") if words else str(value)


def _count(head: RunHead) -> str:
    return head.shard.partition("/")[2] or "1"


def _parts_told(shards: Sequence[str]) -> str:
    """Which parts these are, and which are missing.

    >>> _parts_told(["1/2", "2/2"]), _parts_told(["3/4", "1/4"]), _parts_told(["", ""])
    ('1 and 2 of 2', '1 and 3 of 4; 2 and 4 missing', '')
    """
    numbers = sorted({int(shard.partition("/")[0]) for shard in shards if shard})
    if not numbers:
        return ""
    count = int(shards[0].partition("/")[2])
    missing = [number for number in range(1, count + 1) if number not in numbers]
    told = f"{_listed(numbers)} of {count}"
    return f"{told}; {_listed(missing)} missing" if missing else told


def _listed(numbers: Sequence[int]) -> str:
    *most, last = map(str, numbers)
    return f"{', '.join(most)} and {last}" if most else last
