"""The declared workloads as behaviours of the fake runtime (`workload.shell` renders them for a
shell).

A fake could do more, but has only the behaviours that the shell rendering has, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from conformance.harness.manifests import Container, PodPlan
from conformance.harness.workload import FOREVER_S, Flag, Port, Run
from fakecri.behaviors import words as b
from fakecri.behaviors.behavior import FOREVER, Behavior


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
            if attempt is not None and run.exit_after_s is None:  # the last run may end by itself
                words.append(b.exits(run.exit_code, after_s=FOREVER_S))
            rule = cri.behaves(*words, pod=pod, container=container.name, attempt=attempt)
            rules.append(rule)
    return rules


def behaviors(run: Run) -> Iterator[Behavior]:
    """The behaviours of one run."""
    if run.exit_after_s is not None:
        yield b.exits(run.exit_code, after_s=run.exit_after_s)
    if run.ignores_term:
        yield b.ignores("SIGTERM")
    yield b.stops(run.stop_exit_code, after_s=run.stop_takes_s)
    if run.prints:
        for at_s in run.prints_at_s:
            yield b.prints(run.prints, at_s=at_s, stream=run.prints_to)
    if run.termination_message:
        yield b.writes_termination_message(run.termination_message)
    if run.memory_bytes or run.disk_bytes or run.inodes or run.processes > 1:
        yield b.uses(
            memory_bytes=run.memory_bytes,
            disk_bytes=run.disk_bytes,
            inodes=run.inodes,
            pids=run.processes,
        )
    yield from _flags(run.flags)
    for port in run.ports:
        yield from _port(port)


def _flags(flags: Sequence[Flag]) -> Iterator[Behavior]:
    """Answers to looking at a file: it exists while one of its flags says so."""
    for path in dict.fromkeys(flag.path for flag in flags):
        yield b.replies(["test", "-e", path], exit_code=1)
    for flag in flags:
        until_s = FOREVER if flag.until_s is None else flag.until_s
        yield b.replies(["test", "-e", flag.path], from_s=flag.from_s, until_s=until_s)


def _port(port: Port) -> Iterator[Behavior]:
    """What the port answers from its first second on, later, and for its redirects."""
    served = partial(
        b.serves,
        port.port,
        port.protocol,
        health=port.health,
        delay_s=port.delay_s,
        lost_bytes=port.lost_bytes,
        until_s=FOREVER if port.until_s is None else port.until_s,
    )
    yield served(port.status, from_s=port.from_s)
    if port.then_status:
        yield served(port.then_status, from_s=max(port.then_s, port.from_s))
    for path, location in port.redirects:
        yield served(port.redirect_status, path=path, location=location, from_s=port.from_s)


def _execs(container: Container) -> Iterator[Behavior]:
    for run in container.execs:
        yield b.replies(
            list(run.command), run.exit_code, run.stdout, run.stderr, delay_s=run.takes_s
        )
