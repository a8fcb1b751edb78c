"""Writes and reads result files (`kubelet-conformance run --results FILE`).

The format is in `results_schema`: JSON lines, written as results come, so that the file of a run
that was killed can be read. What must never happen here: a damaged line is skipped in
silence.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import msgspec

from kubelet_conformance.results_run import (
    Key,
    ResultsError,
    RunFile,
    decoded,
    joined,
)
from kubelet_conformance.results_schema import (
    FORMAT,
    KINDS,
    CaseLine,
    Line,
    RunEnd,
    RunHead,
    RuntimeTold,
    TraceLine,
)


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


def read(*paths: Path) -> RunFile:
    """Read a result file, or several that are parts of one run, in files of their own or behind
    each other in one; the traces stay there until they are asked for. Raises ResultsError."""
    return joined([run for path in paths for run in read_all(path)])


def read_all(path: Path) -> list[RunFile]:
    """The runs in a file: one, or several that were put behind each other. Raises ResultsError."""
    runs: list[_Reading] = []
    try:
        for number, (offset, raw) in enumerate(_lines(path), 1):
            where = f"{path}:{number}"
            if not raw.endswith(b"\n") and not _is_json(raw):
                if runs:
                    runs[-1].cut = True
                break
            kind = _kind(raw, where)
            if kind is RunHead or not runs:
                runs.append(_Reading(path, _head(raw, kind, where)))
            else:
                runs[-1].take(kind, raw, offset, where)
    except OSError as error:
        raise ResultsError(
            f"cannot read {path}: {(error.strerror or str(error)).lower()}"
        ) from None
    if not runs:
        raise ResultsError(f"{path}: no result file: it is empty")
    return [run.ended() for run in runs]


class _Reading:
    """A run whose lines are being read."""

    def __init__(self, path: Path, head: RunHead) -> None:
        self._path = path
        self._head = head
        self._runtime = head.runtime
        self._end: RunEnd | None = None
        self._cases: list[CaseLine] = []
        self._places: dict[Key, tuple[Path, int, int]] = {}
        self.cut = False

    def take(self, kind: Any, raw: bytes, offset: int, where: str) -> None:
        """Add a line that is not the first. Raises ResultsError."""
        if kind is TraceLine:
            line = decoded(raw, _TraceKey, where)
            self._places[line.case, line.seed] = (self._path, offset, len(raw))
        elif kind is CaseLine:
            self._cases.append(decoded(raw, CaseLine, where))
        elif kind is RuntimeTold:
            self._runtime = decoded(raw, RuntimeTold, where).runtime
        elif kind is RunEnd:
            self._end = decoded(raw, RunEnd, where)

    def ended(self) -> RunFile:
        """What was read."""
        return RunFile(
            self._path,
            self._head,
            tuple(self._cases),
            self._places,
            self._runtime,
            self._end,
            self.cut,
        )


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
    head: RunHead = decoded(raw, RunHead, where)
    if head.format != FORMAT:
        raise ResultsError(
            f"{where}: format {head.format}, this version reads {FORMAT}: use the version that "
            f"wrote it ({head.suite})"
        )
    return head


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
