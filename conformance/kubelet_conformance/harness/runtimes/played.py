"""The declared workloads as behaviours of the fake runtime (`workload.shell` renders them for a
shell).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fakecri.words.behaviors import Behavior, exits, replies
from kubelet_conformance.harness.manifests import Container, PodPlan
from kubelet_conformance.harness.workload import DEFAULT_STOP, FOREVER_S, Run, files_of, of_kind


def teach(cri: Any, pod: str, plan: PodPlan) -> list[Any]:
    """Program `cri` (a FakeCRI) for the containers of `plan`, run as pod `pod`, and return the
    rules made.

    The last run of a workload holds for every attempt, each earlier one for its own.
    """
    rules = []
    for container in plan.containers:
        *first, last = container.workload.runs
        runs: list[tuple[int | None, Run]] = [(None, last), *enumerate(first)]
        for attempt, run in runs:
            words = [*behaviors(run), *_execs(container)]
            if attempt is not None and not of_kind(exits, run):  # the last run may end by itself
                words.append(exits(after_s=FOREVER_S))
            rule = cri.behaves(*words, pod=pod, container=container.name, attempt=attempt)
            rules.append(rule)
    return rules


def behaviors(run: Run) -> Iterator[Behavior]:
    """The behaviours of one run. A file is not there but when it is said to be."""
    yield DEFAULT_STOP
    for command in dict.fromkeys(file.command for file in files_of(run)):
        yield replies(command, exit_code=1)
    yield from run


def _execs(container: Container) -> Iterator[Behavior]:
    for run in container.execs:
        yield replies(list(run.command), run.exit_code, run.stdout, run.stderr, delay_s=run.takes_s)
