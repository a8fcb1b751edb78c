"""Writes and reads result files (`kubelet-conformance run --results FILE`).

The format is in `results_schema`: JSON lines, written as results come, so that the file of a run
that was killed can be read. What must never happen here: a damaged line is skipped in
silence.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import msgspec

from kubelet_conformance.results_schema import (
    FORMAT,
    KINDS,
    WORST_FIRST,
    CaseLine,
    Line,
    Product,
    RunEnd,
    RunHead,
    RuntimeTold,
    TraceLine,
)
from kubelet_conformance.traces.entries import Trace

Key = tuple[str, int | None]
"""Case ID and seed."""


class ResultsError(ValueError):
    """A file is no result file; the text names the file, the line, and what to do."""


class ResultsWriter:
    """A result file that is being written. Raises OSError when it cannot be opened."""

    def __init__(self, path: Path) -> None:
        self._file: IO[bytes] = path.open("wb", buffering=0)

    def write(self, line: Line) -> None:
        """Add a line. Raises OSError."""
        self._file.write(msgspec.json.encode(line) + b"\n")

    def close(self) -> None:
        """Close the file; a second call does nothing."""
        self._file.close()


@dataclass(frozen=True, slots=True)
class RunFile:
    """What a result file says."""

    path: Path
    head: RunHead
    cases: tuple[CaseLine, ...]
    """In the order in which they ended."""
    places: Mapping[Key, tuple[int, int]] = field(repr=False)
    """Case and seed -> where its trace is in the file: offset and length in bytes."""
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
        return None if raw is None else _decoded(raw, TraceLine, f"{self.path}: trace").trace

    def raw_trace(self, case: CaseLine) -> bytes | None:
        """The line that has it."""
        place = self.places.get((case.id, case.seed))
        if place is None:
            return None
        with self.path.open("rb") as file:
            file.seek(place[0])
            return file.read(place[1])

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


def read(path: Path) -> RunFile:
    """Read a result file; the traces stay in it until they are asked for. Raises ResultsError."""
    try:
        return _read(path)
    except OSError as error:
        raise ResultsError(
            f"cannot read {path}: {(error.strerror or str(error)).lower()}"
        ) from None


def _read(path: Path) -> RunFile:
    head: RunHead | None = None
    runtime: Product | None = None
    end: RunEnd | None = None
    cases: list[CaseLine] = []
    places: dict[Key, tuple[int, int]] = {}
    cut = False
    for number, (offset, raw) in enumerate(_lines(path), 1):
        where = f"{path}:{number}"
        if not raw.endswith(b"\n") and not _is_json(raw):
            cut = True
            break
        kind = _kind(raw, where)
        if number == 1:
            head = _head(raw, kind, where)
        elif kind is TraceLine:
            line = _decoded(raw, _TraceKey, where)
            places[line.case, line.seed] = (offset, len(raw))
        elif kind is CaseLine:
            cases.append(_decoded(raw, CaseLine, where))
        elif kind is RuntimeTold:
            runtime = _decoded(raw, RuntimeTold, where).runtime
        elif kind is RunEnd:
            end = _decoded(raw, RunEnd, where)
    if head is None:
        raise ResultsError(f"{path}: no result file: it is empty")
    return RunFile(path, head, tuple(cases), places, runtime or head.runtime, end, cut)


class _TraceKey(msgspec.Struct, frozen=True):
    """Whose trace a line has, without the trace."""

    case: str
    seed: int | None = None


class _Kind(msgspec.Struct, frozen=True):
    kind: str


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """The lines that are not empty, each with its offset."""
    offset = 0
    with path.open("rb") as file:
        for raw in file:
            if raw.strip():
                yield offset, raw
            offset += len(raw)


def _is_json(raw: bytes) -> bool:
    try:
        msgspec.json.decode(raw, type=msgspec.Raw)
    except msgspec.DecodeError:
        return False
    return True


def _kind(raw: bytes, where: str) -> Any:
    try:
        kind = msgspec.json.decode(raw, type=_Kind).kind
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ResultsError(
            f"{where}: no line of a result file ({error}); wanted what "
            "`kubelet-conformance run --results FILE` writes"
        ) from None
    return KINDS.get(kind)  # a kind of a newer version is left out


def _head(raw: bytes, kind: Any, where: str) -> RunHead:
    """The first line. Raises ResultsError, also for a format that this version cannot read."""
    if kind is not RunHead:
        raise ResultsError(f"{where}: no result file: wanted a line of kind run first")
    head: RunHead = _decoded(raw, RunHead, where)
    if head.format != FORMAT:
        raise ResultsError(
            f"{where}: format {head.format}, this version reads {FORMAT}: use the version that "
            f"wrote it ({head.suite})"
        )
    return head


def _decoded(raw: bytes, kind: Any, where: str) -> Any:
    try:
        return msgspec.json.decode(raw, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ResultsError(f"{where}: {error}") from None


# -- what tables are made of ---------------------------------------------------------------------


def document(run: RunFile) -> dict[str, Any]:
    """The run in numbers, for tools/docs/keep_conformance.py and its like:

    - `kubelet`, `runtime`: product and version; `time`, `jobs`, `latency`, `long`, `level`, `whole`
    - `seed`; of a run with several `seeds` instead, per seed how many cases had which verdict:
      `{"3": {"passed": 544, "failed": 1}}`
    - `date`: UTC, YYYY-MM-DD; `real_s`: wall time of it all, of a run that was killed that of its
      cases; `load`
    - `areas`: per area `case_s` and `real_s`
    - `cases`: per case ID `area`, `level`, `outcome`, and `detail`, the reason unless it passed;
      with several seeds the worst outcome, and `seeds`, per outcome the seeds that had it
    """
    areas: dict[str, dict[str, float]] = {}
    for case in run.cases:
        of_area = areas.setdefault(case.area, {"case_s": 0.0, "real_s": 0.0})
        of_area["case_s"] = round(of_area["case_s"] + case.case_s, 3)
        of_area["real_s"] = round(of_area["real_s"] + case.real_s, 3)
    head = run.head
    return {
        "kubelet": str(head.kubelet),
        "runtime": str(run.runtime),
        "time": head.time,
        "jobs": head.jobs,
        "latency": head.latency,
        **_seeds(run.cases, head.seeds),
        "level": head.level,
        "whole": head.whole,
        "long": head.long,
        "date": head.began[:10],
        "real_s": run.end.real_s if run.end else round(sum(c.real_s for c in run.cases), 3),
        "load": run.end.load if run.end else head.load,
        "areas": areas,
        "cases": {
            name: _case(worst, [case for case in run.cases if case.id == name], head.seeds)
            for name, worst in run.worst().items()
        },
    }


def _seeds(cases: Sequence[CaseLine], seeds: Sequence[int]) -> dict[str, Any]:
    if len(seeds) < 2:
        return {"seed": seeds[0] if seeds else None}
    counts = {
        str(seed): dict(Counter(case.verdict for case in cases if case.seed == seed))
        for seed in seeds
    }
    return {"seeds": counts}


def _case(worst: CaseLine, found: Sequence[CaseLine], seeds: Sequence[int]) -> dict[str, Any]:
    """What the document says about a case with these results, one for each seed."""
    document: dict[str, Any] = {"area": worst.area, "level": worst.level, "outcome": worst.verdict}
    if worst.verdict != "passed":
        document["detail"] = worst.messages or worst.reason
    if len(seeds) > 1:
        by_verdict: dict[str, list[int]] = {}
        for case in found:
            by_verdict.setdefault(case.verdict, []).append(case.seed or 0)
        document["seeds"] = by_verdict
    return document
