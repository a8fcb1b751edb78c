"""Writes docs/pod-workers.md from the table of transitions in refkubelet/pod_workers.

`python tools/docs/render_pod_workers.py` rewrites the file; with `--check` it says whether the file
is current. The diagram shows what changes a state; the table below it shows every row.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from refkubelet.pod_workers.transitions import TRANSITIONS, WorkInput, WorkState

TARGET = Path(__file__).parents[2] / "docs" / "pod-workers.md"
INTRODUCTION = """\
# The life of a pod worker

One worker per pod UID, one step at a time, never backwards. This page is made from the table in
[transitions.py](../refkubelet/pod_workers/transitions.py) by `tools/docs/render_pod_workers.py`; a
pair of state and input that is not listed is a bug and raises. What the states do:

| state | step of the worker |
|---|---|
| sync | SyncPod: bring the pod nearer to what is wanted (LIFE-070) |
| terminating | SyncTerminatingPod: stop its containers and sandboxes (LIFE-071) |
| terminated | SyncTerminatedPod: publish the last status, clean up (LIFE-073) |
| finished | none: the record waits for housekeeping, which forgets it (LIFE-039) |

"""


def diagram() -> Iterator[str]:
    """A mermaid state diagram: one arrow per change of state."""
    yield "stateDiagram-v2"
    yield f"    [*] --> {_name(WorkState.SYNCING)}: first update (LIFE-031 row 2)"
    yield f"    [*] --> {_name(WorkState.TERMINATED)}: first update, long over (LIFE-031 row 2)"
    arrows: dict[tuple[WorkState, WorkState], list[str]] = {}
    for (state, work_input), row in TRANSITIONS.items():
        if row.to is not state:
            arrows.setdefault((state, row.to), []).append(f"{work_input.value} ({row.rule})")
    for (before, after), inputs in arrows.items():
        yield f"    {_name(before)} --> {_name(after)}: {'<br>'.join(inputs)}"
    yield f"    {_name(WorkState.FINISHED)} --> [*]: forgotten by housekeeping (LIFE-039)"


def _name(state: WorkState) -> str:
    return str(state.value)


def table() -> Iterator[str]:
    """Every row, in the order of states and inputs."""
    yield "| state | input | next state | what the worker does | rule |"
    yield "|---|---|---|---|---|"
    for state in WorkState:
        for work_input in WorkInput:
            row = TRANSITIONS.get((state, work_input))
            if row is not None:
                cells = (state.value, work_input.value, row.to.value, row.action.value, row.rule)
                yield f"| {' | '.join(cells)} |"


def page() -> str:
    """The whole file."""
    drawing = "\n".join(diagram())
    rows = "\n".join(table())
    return f"{INTRODUCTION}```mermaid\n{drawing}\n```\n\n## Every row\n\n{rows}\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 0: current or rewritten; 1: `--check` found it old."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing")
    if not parser.parse_args(arguments).check:
        TARGET.write_text(page())
        return 0
    if TARGET.exists() and TARGET.read_text() == page():
        return 0
    print(f"{TARGET} is not current; rewrite it with: python tools/docs/{Path(__file__).name}")
    return 1


if __name__ == "__main__":
    sys.exit(main())
