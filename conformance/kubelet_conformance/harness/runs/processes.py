"""Virtual cases on all processors. A virtual case needs nothing from outside and leaves nothing
behind, so any process can run it."""

from __future__ import annotations

import os
import signal
from collections.abc import Generator, Sequence
from typing import Final

from kubelet_conformance.harness.runs.case_run import Result
from kubelet_conformance.harness.runs.choice import Choice
from kubelet_conformance.harness.runs.forked import RunGroup, one_by_one, run_forked
from kubelet_conformance.harness.runs.virtual import run_virtual_case
from kubelet_conformance.registry import Case

END_WITHIN_S: Final = 5.0


def processors() -> int:
    """The number of processors that this process may use."""
    return len(os.sched_getaffinity(0))


def run_virtual_cases(
    wanted: Sequence[tuple[Case, Choice]], count: int
) -> Generator[tuple[int, Result], None, None]:
    """Run the cases in `count` processes; yields the place of each in `wanted` and its result, as
    they end."""
    return run_forked(_prepare, [[one] for one in wanted], count, END_WITHIN_S)


def _prepare() -> RunGroup:
    # What a case has made, its directory above all, is undone on the way out.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    return one_by_one(run_virtual_case)
