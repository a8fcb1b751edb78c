"""Result files that tests write themselves."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kubelet_conformance.results_file import ResultsWriter
from kubelet_conformance.results_schema import (
    FORMAT,
    CaseLine,
    Line,
    Product,
    RunEnd,
    RunHead,
    TraceLine,
)
from kubelet_conformance.traces.entries import Entry, Trace


def case_line(id: str, verdict: Any = "passed", **more: Any) -> CaseLine:
    """A case of the area backoff, level must, that cites BACK-001."""
    shown: dict[str, Any] = {
        "area": "backoff",
        "title": f"What {id} shows.",
        "level": "must",
        "rules": ("BACK-001",),
        "seed": 1,
        "case_s": 450.0,
        "real_s": 130.0,
    }
    return CaseLine(id=id, verdict=verdict, **{**shown, **more})


def head_line(**more: Any) -> RunHead:
    """A virtual run of refkubelet with seed 1."""
    shown: dict[str, Any] = {
        "format": FORMAT,
        "suite": "1.36.0",
        "kubelet": Product("refkubelet", "1.36.0", "refkubelet"),
        "runtime": Product("fakecri", "1.36.0", "fake"),
        "began": "2030-01-02T03:04:05Z",
        "time": "virtual",
        "seeds": (1,),
        "latency": 1.0,
    }
    return RunHead(**{**shown, **more})


def write_lines(file: Path, *lines: Line) -> Path:
    """A result file with these lines."""
    writer = ResultsWriter(file)
    for line in lines:
        writer.write(line)
    writer.close()
    return file


def write_run(
    file: Path,
    cases: Mapping[str, Mapping[str, Any]],
    *,
    real_s: float = 1.0,
    load: float = 0.5,
    **head: Any,
) -> Path:
    """A whole run. `cases`: ID -> fields of its line; with `seeds` a line for each of these."""
    lines = [
        case_line(id, **{**fields, "seed": seed})
        for id, fields in (
            (name, {k: v for k, v in told.items() if k != "seeds"}) for name, told in cases.items()
        )
        for seed in cases[id].get("seeds", (fields.get("seed", 1),))
    ]
    return write_lines(file, head_line(**head), *lines, RunEnd(real_s, load))


def crash_trace(*delays_s: float) -> Trace:
    """A container that exits at once, and is started again after each of these delays."""
    entries = [Entry(0.0, "call", "RunPodSandbox", "web", attempt=0, until_s=0.05)]
    at_s = 0.1
    for attempt, delay_s in enumerate((0.0, *delays_s)):
        at_s += delay_s
        entries += [
            Entry(at_s, "call", "CreateContainer", "web", "main", attempt, at_s + 0.01),
            Entry(at_s + 0.02, "call", "StartContainer", "web", "main", attempt, at_s + 0.03),
            Entry(at_s + 0.03, "state", "running", "web", "main", attempt),
            Entry(at_s + 0.04, "state", "exited", "web", "main", attempt, told="exit code 1"),
        ]
    return Trace(tuple(entries), at_s + 1)


def trace_line(id: str, trace: Trace, seed: int | None = 1) -> TraceLine:
    return TraceLine(id, trace, seed)
