"""The lines of a result file, made of a run of the harness, and results made of lines."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Sequence
from datetime import datetime
from typing import Literal

from kubelet_conformance.harness.machines.cgroup_trees import machine_version
from kubelet_conformance.harness.runs.case_run import Outcome, Result
from kubelet_conformance.harness.runs.choice import JUMPING_TIME, REAL_TIME, Choice
from kubelet_conformance.harness.runs.offered import (
    CONTAINERD,
    FAKE,
    FAKE_SOCKET,
    IN_PROCESS,
    PROCESS,
)
from kubelet_conformance.harness.runs.processes import processors
from kubelet_conformance.registry import Case, Level, Selection
from kubelet_conformance.results_schema import (
    FORMAT,
    CaseLine,
    Host,
    LevelName,
    Product,
    RunHead,
    TraceLine,
    Verdict,
    told,
)
from kubelet_conformance.summary import of_seed
from simclock.distribution import own_version


def head_line(choices: Sequence[Choice], selection: Selection, *, now: datetime) -> RunHead:
    """The first line of a run; `choices`: one for each seed."""
    choice = choices[0]
    shard = "" if selection.shard == (1, 1) else "{}/{}".format(*selection.shard)
    return RunHead(
        format=FORMAT,
        suite=own_version(),
        kubelet=kubelet_of(choice),
        runtime=runtime_of(choice),
        began=f"{now:%Y-%m-%dT%H:%M:%SZ}",
        time=_time(choice),
        seeds=tuple(each.seed for each in choices) if choice.virtual else (),
        latency=choice.latency if choice.virtual else None,
        speed=choice.speed,
        level=level_name(selection.level.name),
        whole=selection.is_whole,
        chosen=selection.words,
        shard=shard,
        kubelet_flags=choice.kubelet_flags,
        kubelet_config=choice.kubelet_config,
        jobs=choice.jobs,
        long=choice.long,
        host=host_facts(),
        load=round(os.getloadavg()[0], 1),
    )


def _time(choice: Choice) -> Literal["virtual", "real", "jump", "faster"]:
    if choice.virtual:
        return "virtual"
    if choice.speed is not None:
        return "faster"
    return "jump" if choice.warped else "real"


def kubelet_of(choice: Choice) -> Product:
    """The kubelet: ours has this distribution's version, a program the one that it tells."""
    if choice.kubelet in (IN_PROCESS, PROCESS):
        return Product("refkubelet", choice.kubernetes_version or own_version(), choice.kubelet)
    release = choice.kubelet_release
    version = ".".join(map(str, release)) if release else ""
    return Product(os.path.basename(choice.kubelet), version, choice.kubelet)


def runtime_of(choice: Choice) -> Product:
    """The runtime, as far as it is known before it is asked."""
    if choice.runtime in (FAKE, FAKE_SOCKET):
        return Product("fakecri", own_version(), choice.runtime)
    if choice.runtime == CONTAINERD:
        return Product("containerd", choice.containerd_version, choice.runtime)
    return Product(choice.runtime, "", choice.runtime)


def host_facts() -> Host:
    """This machine."""
    uname = platform.uname()
    return Host(
        system=uname.system,
        kernel=uname.release,
        machine=uname.machine,
        processors=processors(),
        memory_bytes=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        cgroups=machine_version(),
        root=os.geteuid() == 0,
        python="{}.{}.{}".format(*sys.version_info[:3]),
    )


def case_line(result: Result, choice: Choice) -> CaseLine:
    """The line of a case that has ended, or was not run; `choice`: of the run."""
    case = result.case
    passed = result.outcome is Outcome.PASSED
    reason, expected, seen = ("", "", "") if passed else told(result.detail)
    return CaseLine(
        id=case.id,
        area=case.area,
        title=case.title,
        level=level_name(case.level.name),
        rules=case.rules,
        verdict=_verdict(result.outcome),
        seed=result.seed,
        reason=reason,
        expected=expected,
        seen=seen,
        messages="" if passed or result.detail == reason else result.detail,
        log=result.log,
        warning=result.warning,
        shared=result.shared,
        case_s=round(result.case_s, 3),
        real_s=round(result.real_s, 3),
        file=case.file,
        repeat="" if passed else of_seed(choice, result.seed).repeat(case.id, case.file),
    )


async def _not_here(_: object) -> None:
    raise NotImplementedError("a case of a result file cannot be run")


def result_of(line: CaseLine) -> Result:
    """What a line says, as the run had it; the case has what results are told with."""
    case = Case(
        id=line.id,
        area=line.area,
        title=line.title,
        rules=line.rules,
        level=Level[line.level.upper()],
        needs=frozenset(),
        body=_not_here,
        file=line.file,
    )
    return Result(
        case,
        Outcome(line.verdict),
        line.messages or line.reason,
        case_s=line.case_s,
        real_s=line.real_s,
        seed=line.seed,
        warning=line.warning,
        shared=line.shared,
        log=line.log,
    )


def choice_of(head: RunHead) -> Choice:
    """The choice of that run, as far as the lines that repeat its cases tell it."""
    unset = Choice()
    return Choice(
        kubelet=head.kubelet.chosen,
        runtime=head.runtime.chosen,
        seed=head.seeds[0] if head.seeds else unset.seed,
        latency=unset.latency if head.latency is None else head.latency,
        time=JUMPING_TIME if head.time == "jump" else REAL_TIME,
        speed=head.speed,
        long=head.long,
        kubelet_flags=head.kubelet_flags,
        kubelet_config=head.kubelet_config,
    )


def trace_line(result: Result) -> TraceLine | None:
    """The line with the trace of a case; None where none was kept."""
    if result.record is None:
        return None
    return TraceLine(result.case.id, result.record, result.seed)


def _verdict(outcome: Outcome) -> Verdict:
    return outcome.value


def level_name(name: str) -> LevelName:
    """A level as files have it."""
    return name.lower()  # type: ignore[return-value]
