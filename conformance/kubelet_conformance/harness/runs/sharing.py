"""Runs cases that share a kubelet: several at a time, each in the place of one that has ended.

The verdict of a case that passes beside others counts. One that does not is run again with a
kubelet of its own, and that verdict counts; what was seen beside others is told if it was another.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Final

from kubelet_conformance.harness.kubelets.base import KubeletDied, NodePaths
from kubelet_conformance.harness.kubelets.watches import MachineLacks
from kubelet_conformance.harness.runs.case_run import Outcome, Result
from kubelet_conformance.harness.runs.choice import Traces
from kubelet_conformance.harness.runs.real import case_directory
from kubelet_conformance.harness.runs.shared_kubelet import SharedKubelet
from kubelet_conformance.registry import Case

KubeletFactory = Callable[[Case, NodePaths], AbstractAsyncContextManager[SharedKubelet]]
"""Makes a kubelet that runs, as a case wants it, in these directories; it ends with the block."""
AT_A_TIME: Final = 12
"""How many cases use a kubelet at the same time."""


async def run_beside(
    cases: Sequence[Case],
    shared_kubelet: KubeletFactory,
    base: Path,
    ended: Callable[[Result], None],
    *,
    traces: Traces = "none",
    at_a_time: int = AT_A_TIME,
) -> None:
    """Run the cases with as few kubelets as can be, in directories below `base`; `ended` is called
    with each result. A case that has not passed, or could not be run, is to be run again, alone."""
    waiting = deque(cases)
    begun = -1
    while waiting and begun != len(waiting):  # a kubelet that does not start would not start again
        begun = len(waiting)
        with contextlib.suppress(KubeletDied, MachineLacks, OSError):
            async with case_directory(base) as directory:
                paths = NodePaths(directory)
                paths.make()
                async with shared_kubelet(waiting[0], paths) as kubelet:
                    await _with_one(kubelet, waiting, traces, ended, at_a_time)
    for case in waiting:
        ended(Result(case, Outcome.ERROR, "there is no kubelet to share", shared=True))


async def _with_one(
    kubelet: SharedKubelet,
    waiting: deque[Case],
    traces: Traces,
    ended: Callable[[Result], None],
    at_a_time: int,
) -> None:
    """Run the waiting cases with that kubelet, as long as it is good for further ones."""

    async def one_after_the_other() -> None:
        while waiting and not kubelet.spent:
            ended(await kubelet.run(waiting.popleft(), traces))

    async with asyncio.TaskGroup() as group:
        for _ in range(min(at_a_time, len(waiting))):
            group.create_task(one_after_the_other())
