"""How long it takes until a failing liveness probe has ended a container: a table made of a run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from kubelet_conformance.traces.entries import Entry

HEAD: Final = """
| pod | 1st failure | 3rd failure | stopped | has ended | runs again | waits before later restarts |
| --- | --- | --- | --- | --- | --- | --- |
"""


def times_table(entries: Sequence[Entry]) -> str:
    """The pods that were started, by when they run again. Seconds after the container's first
    start; waits from the end of an instance to the start of the next."""
    again = [(e.at_s, e.pod) for e in entries if e.what == "StartContainer" and e.attempt == 1]
    rows = (f"| `{pod}` | {' | '.join(_times(entries, pod))} |\n" for _, pod in sorted(again))
    return HEAD + "".join(rows)


def _times(entries: Sequence[Entry], pod: str) -> Iterator[str]:
    mine = [entry for entry in entries if entry.pod == pod]
    starts = [_end(entry) for entry in mine if entry.what == "StartContainer"]
    failures = [_end(entry) for entry in mine if entry.kind == "probe" and entry.error]
    stop = next(entry.at_s for entry in mine if entry.what == "StopContainer")
    ends = [entry.at_s for entry in mine if entry.what == "exited"]
    for at_s in (failures[0], failures[2], stop, ends[0], starts[1]):
        yield f"{at_s - starts[0]:.1f} s"
    waits = [start - end for end, start in zip(ends[1:], starts[2:], strict=False)]
    yield ", ".join(f"{wait:.0f} s" for wait in waits)


def _end(entry: Entry) -> float:
    return entry.at_s if entry.until_s is None else entry.until_s
