"""The dimensions of the conformance suite: result files, traces, scenario files; see `growth`."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final

import msgspec
from growth import Dimension, Meter

from kubelet_conformance.registry import Selection, select
from kubelet_conformance.report import pages
from kubelet_conformance.report.compare import Slack, compared
from kubelet_conformance.report.differences import differences, lines
from kubelet_conformance.results_file import document, read
from kubelet_conformance.results_run import RunFile
from kubelet_conformance.results_schema import (
    FORMAT,
    CaseLine,
    Product,
    RunEnd,
    RunHead,
    TraceLine,
)
from kubelet_conformance.scenarios.reading import load_scenario
from kubelet_conformance.sources import all_cases
from kubelet_conformance.traces.entries import Entry, Trace
from kubelet_conformance.traces.waits import waits_of
from kubeobjects.structs import replace

METHODS: Final = ("CreateContainer", "StartContainer", "ContainerStatus")


def trace_of(calls: int, other: str = "") -> Trace:
    """A trace of a pod that restarts; `other`: a call that only this one has, in its middle."""
    made = [(METHODS[n % len(METHODS)], n // len(METHODS)) for n in range(calls)]
    if other:
        made.insert(calls // 2, (other, 0))
    entries = [
        Entry(float(n), "call", name, "web", "main", attempt, n + 0.1)
        for n, (name, attempt) in enumerate(made)
    ]
    return Trace(tuple(entries), float(calls))


def result_lines(cases: int, shard: str, first: int) -> Iterator[msgspec.Struct]:
    """The lines of a result file."""
    product = Product("refkubelet", "1.36.0")
    yield RunHead(
        format=FORMAT,
        suite="1.36.0",
        kubelet=product,
        runtime=Product("fakecri", "1.36.0"),
        began="2026-01-31T12:00:00Z",
        time="virtual",
        seeds=(1,),
        shard=shard,
    )
    for number in range(first, first + cases):
        yield CaseLine(
            id=f"case-{number}",
            area=f"area-{number % 10}",
            title=f"It does {number}",
            level="must",
            rules=("LIFE-002.1",),
            verdict="failed" if number % 7 == 0 else "passed",
            seed=1,
            messages="one\ntwo" if number % 7 == 0 else "",
        )
        yield TraceLine(f"case-{number}", trace_of(6), 1)
    yield RunEnd(1.0, 0.5)


def write_results(path: Path, cases: int, shard: str = "", first: int = 0) -> Path:
    with path.open("wb") as file:
        for line in result_lines(cases, shard, first):
            file.write(msgspec.json.encode(line) + b"\n")
    return path


def page_of(run: RunFile) -> str:
    return pages.run_page(
        head=run.head,
        runtime=run.runtime,
        end=run.end,
        cases=run.cases,
        traces=run.raw_trace,
        rules={"LIFE-002": "text"},
    )


def results(size: int, meter: Meter) -> None:
    """A result file of many cases: read, made a page and a document of, and compared."""
    with tempfile.TemporaryDirectory() as name:
        one = write_results(Path(name) / "one.jsonl", size)
        other = write_results(Path(name) / "other.jsonl", size)
        with meter:
            a, b = read(one), read(other)
            page_of(a)
            document(a)
            list(lines(a, b, list(differences(a, b, Slack()))))


def parts(size: int, meter: Meter) -> None:
    """Many parts of one run, which are joined."""
    with tempfile.TemporaryDirectory() as name:
        files = [
            write_results(Path(name) / f"{n}.jsonl", 3, f"{n + 1}/{size}", 3 * n)
            for n in range(size)
        ]
        with meter:
            assert len(read(*files).cases) == 3 * size


def traces(size: int, meter: Meter, other: str = "") -> None:
    """Two traces of many calls of a pod, side by side, and the waits of one of them."""
    a, b = trace_of(size), trace_of(size, other)
    with meter:
        compared(a, b)
        waits_of(a.entries)


def scenario_steps(size: int, meter: Meter) -> None:
    """A scenario with many pods, steps and expectations: read and checked."""
    pods = "".join(f"  p{n}: {{spec: {{containers: [{{name: main}}]}}}}\n" for n in range(size))
    steps = "".join(f"  - create: p{n}\n  - mark: m{n}\n  - delete: p{n}\n" for n in range(size))
    wanted = "".join(
        f"  - pod: {{name: p{n}, there: false}}\n    within: 60s\n    says: It is gone\n"
        for n in range(size)
    )
    text = (
        "id: many-steps\ntitle: Many pods come and go\nrules: [LIFE-002.1]\n"
        f"pods:\n{pods}steps:\n{steps}expect:\n{wanted}"
    )
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "many.yaml"
        path.write_text(text)
        with meter:
            load_scenario(path)


def filters(size: int, meter: Meter) -> None:
    """Cases of which some are chosen by ID, rule and word."""
    known = all_cases()
    cases = [replace(known[n % len(known)], id=f"case-{n}") for n in range(size)]
    chosen = Selection(ids=tuple(f"case-{n}" for n in range(0, size, 2)))
    with meter:
        assert len(select(cases, chosen)) == (size + 1) // 2


DIMENSIONS: Final = {
    "results": Dimension("cases in result files", 20, results),
    "parts": Dimension("parts of a run that are joined", 3, parts),
    "equal-traces": Dimension("calls in two traces that are alike", 20, traces),
    "traces": Dimension("calls in two traces", 20, partial(traces, other="StopContainer")),
    "scenario": Dimension("pods and steps of a scenario", 3, scenario_steps),
    "filters": Dimension("cases that are chosen by ID", 20, filters),
}
