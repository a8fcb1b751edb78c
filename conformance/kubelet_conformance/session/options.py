"""The options of `kubelet-conformance run`, and what they say: choices, a selection."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from kubelet_conformance.ci.options import OPTIONS
from kubelet_conformance.harness.runs.choice import Choice
from kubelet_conformance.harness.runs.seeds import seeds_of
from kubelet_conformance.registry import Level, Selection, shard_of
from kubelet_conformance.shards import TimesError, read_times
from kubeobjects.structs import replace

DEFAULT: Final = Choice()


def add_options(parser: pytest.Parser) -> None:
    """Add the options of `kubelet-conformance run`."""
    parser.prog = "kubelet-conformance run"
    group = parser.getgroup("kubelet conformance")
    group.addoption("--kubelet", default=DEFAULT.kubelet, help="refkubelet (in this process, virtual time), refkubelet-process, or the path of a kubelet binary")  # fmt: skip  # noqa: E501
    group.addoption("--runtime", default=DEFAULT.runtime, help="fake (in this process), fake-socket, containerd (started in Docker), or unix:///path.sock")  # fmt: skip  # noqa: E501
    group.addoption("--kubelet-flag", action="append", default=[], metavar="FLAG", help="a further flag of the kubelet process: --kubelet-flag=--v=4 (may be repeated)")  # fmt: skip  # noqa: E501
    group.addoption("--kubelet-config", default=DEFAULT.kubelet_config, metavar="FILE", help="further fields of its KubeletConfiguration; cases may set them otherwise")  # fmt: skip  # noqa: E501
    group.addoption("--containerd-version", default=DEFAULT.containerd_version, metavar="VERSION", help="of --runtime containerd: 1.6 (default), 1.7 or 2.1")  # fmt: skip  # noqa: E501
    group.addoption("--kubernetes-version", default=DEFAULT.kubernetes_version, metavar="VERSION", help="of the kubelet, where the program does not tell the right one: 1.30.3")  # fmt: skip  # noqa: E501
    group.addoption("--seed", type=int, default=DEFAULT.seed, help="fixes every random choice of a virtual run")  # fmt: skip  # noqa: E501
    group.addoption("--seeds", type=seeds_of, metavar="SEEDS", help="a virtual run for each of these seeds: 1:20 (from 1 to 20), 3,7; instead of --seed")  # fmt: skip  # noqa: E501
    group.addoption("--latency", type=float, default=DEFAULT.latency, metavar="FACTOR", help="factor on how long the calls of a virtual run take (default 1; 0: no time)")  # fmt: skip  # noqa: E501
    group.addoption("--jobs", type=int, default=DEFAULT.jobs, help="cases at a time in a real run (default 8); in a virtual one at most one per processor")  # fmt: skip  # noqa: E501
    group.addoption("--dask", metavar="ADDRESS", help="run virtual cases on the workers of this Dask cluster: tcp://10.0.0.1:8786")  # fmt: skip  # noqa: E501
    group.addoption(
        "--time",
        default=DEFAULT.time,
        help="of a kubelet binary: real, or jump: its time jumps over waiting",
    )
    group.addoption(
        "--speed",
        type=float,
        default=DEFAULT.speed,
        metavar="N",
        help="of a kubelet binary: its time passes N times as fast, roughly",
    )
    group.addoption("--long", action="store_true", help="let a real run take the minutes that some cases last")  # fmt: skip  # noqa: E501
    group.addoption("--alone", action="store_true", help="give each case a kubelet of its own; in jumping time several share one")  # fmt: skip  # noqa: E501
    group.addoption("--check-since", action="store_true", help="run only the cases that the kubelet is too old for; one that passes is a failure: it says since= wrongly")  # fmt: skip  # noqa: E501
    group.addoption("--level", default="must", choices=["must", "should", "detail"], help="run cases of this level and the stricter ones")  # fmt: skip  # noqa: E501
    group.addoption("--area", action="append", default=[], help="only this area (may be repeated)")
    group.addoption("--rule", action="append", default=[], help="only cases of this rule (BACK-009) or family (BACK)")  # fmt: skip  # noqa: E501
    group.addoption("--id", action="append", default=[], dest="case_id", help="only this case")
    group.addoption("--disable", action="append", default=[], help="report this case as disabled")
    group.addoption("--shard", type=shard_of, default=(1, 1), metavar="K/N", help="the K-th of N parts of the chosen cases")  # fmt: skip  # noqa: E501
    group.addoption("--results", type=Path, metavar="FILE", help="write each case and how it ended to this file, as JSON lines")  # fmt: skip  # noqa: E501
    group.addoption("--traces", default="failed", choices=["none", "failed", "all"], help="of which cases the result file has what happened, call by call (default: of those that fail)")  # fmt: skip  # noqa: E501
    for name, meaning in OPTIONS.items():
        group.addoption(name, **meaning)


def choices_of(option: Any) -> list[Choice]:
    """What is to run with what: a choice for each seed."""
    choice = Choice(
        kubelet=option.kubelet,
        runtime=option.runtime,
        seed=option.seed,
        latency=option.latency,
        jobs=option.jobs,
        time=option.time,
        speed=option.speed,
        long=option.long,
        alone=option.alone,
        containerd_version=option.containerd_version,
        kubernetes_version=option.kubernetes_version,
        traces=option.traces if option.results else "none",
        check_since=option.check_since,
        kubelet_flags=tuple(option.kubelet_flag),
        kubelet_config=option.kubelet_config,
    )
    return [replace(choice, seed=seed) for seed in option.seeds or (option.seed,)]


def selection_of(option: Any) -> Selection:
    """Which cases are to run. Raises pytest.UsageError."""
    return Selection(
        ids=tuple(option.case_id),
        areas=tuple(option.area),
        rules=tuple(option.rule),
        level=Level[option.level.upper()],
        disabled=tuple(option.disable),
        shard=option.shard,
        times_s=_times(option.times),
    )


def _times(files: Sequence[Path]) -> Mapping[str, float]:
    """How long cases took in an earlier run. Raises pytest.UsageError."""
    times_s: Counter[str] = Counter()
    try:
        for file in files:
            times_s.update(read_times(file))
    except TimesError as problem:
        raise pytest.UsageError(str(problem)) from None
    return times_s
