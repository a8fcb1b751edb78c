"""The pod's part of a resize: its cgroup, the runtime's word about it, memory that is used."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import grpc
import pytest
from kubecri.v1 import api_pb2 as cri
from loops import virtual_loop
from pods import make_pod
from runtime_doubles import Events, Failure, Probes, ScriptedTarget, record, status

from refkubelet.container_manager.cgroups.removal import CgroupError
from refkubelet.cri.client import CriClient
from refkubelet.kuberuntime.common.runtime_deps import NodeShares, RuntimeDeps
from refkubelet.kuberuntime.common.runtime_options import RuntimeOptions
from refkubelet.kuberuntime.decisions.pod_resize import (
    LowerLimits,
    MemoryUsage,
    lower_limits,
    merged,
    pod_limits_of,
    refused_decrease,
    sandbox_update,
)
from refkubelet.kuberuntime.decisions.resize_actions import ComputeAmounts, ContainerUpdate
from refkubelet.kuberuntime.manager import RuntimeManager
from refkubelet.model.cgroups.limits import ResourceConfig
from refkubelet.model.objects import Container, Pod
from simclock import Ids, Rng

pytestmark = pytest.mark.virtual_time

MIB = 1 << 20
NOW = ResourceConfig(204, 20_000, 100_000, 128 * MIB)


# -- decisions -----------------------------------------------------------------------------------


def memory(amount: int | None) -> ResourceConfig:
    return ResourceConfig(memory_limit_bytes=amount)


@pytest.mark.parametrize(
    ("wanted", "before", "after"),
    [
        (memory(256), [memory(256)], []),
        (memory(64), [], [memory(64)]),
        (memory(128), [], []),
        (memory(None), [], []),  # a limit cannot be taken away
    ],
)
def test_memory_grows_first_and_shrinks_last_CG_065_CG_067(
    wanted: ResourceConfig, before: list[ResourceConfig], after: list[ResourceConfig]
) -> None:
    steps = pod_limits_of("memory", memory(128), wanted)
    assert (list(steps.before), list(steps.after)) == (before, after)


QUOTA = ResourceConfig(cpu_quota_us=30_000, cpu_period_us=100_000)
LESS = ResourceConfig(cpu_quota_us=10_000, cpu_period_us=100_000)
SHARES, FEWER = ResourceConfig(cpu_shares=300), ResourceConfig(cpu_shares=100)


@pytest.mark.parametrize(
    ("wanted", "before", "after"),
    [
        ((30_000, 300), [QUOTA, SHARES], []),
        ((10_000, 100), [], [FEWER, LESS]),
        ((30_000, 100), [QUOTA], [FEWER]),
        ((10_000, 300), [SHARES], [LESS]),
        ((20_000, 204), [], []),
        ((None, 300), [SHARES], []),
    ],
)
def test_requests_never_exceed_limits_on_the_way_CG_065(
    wanted: tuple[int | None, int],
    before: list[ResourceConfig],
    after: list[ResourceConfig],
) -> None:
    config = ResourceConfig(wanted[1], wanted[0], 100_000, 64 * MIB)
    steps = pod_limits_of("cpu", NOW, config)
    assert (list(steps.before), list(steps.after)) == (before, after)


def test_a_first_limit_counts_as_more_CG_065() -> None:
    unlimited = ResourceConfig(204, -1, 100_000, -1)
    assert pod_limits_of("cpu", unlimited, merged(unlimited, QUOTA)).before == (QUOTA,)
    assert pod_limits_of("memory", unlimited, memory(5)).before == (memory(5),)


def test_the_runtime_is_told_the_limits_without_the_overhead_CG_065() -> None:
    pod = make_pod("main", overhead={"cpu": "50m", "memory": "8Mi"})
    told = sandbox_update(ResourceConfig(256, 30_000, 100_000, 72 * MIB), pod)
    assert told == cri.LinuxContainerResources(
        cpu_shares=204, cpu_quota=25_000, cpu_period=100_000, memory_limit_in_bytes=64 * MIB
    )
    plain = sandbox_update(NOW, make_pod("main"))
    assert (plain.cpu_shares, plain.memory_limit_in_bytes) == (204, 128 * MIB)


@pytest.mark.parametrize(
    ("lower", "usage", "problem"),
    [
        ((100, {}), (99, {}), None),
        (
            (100, {}),
            (100, {}),
            "attempting to set pod memory limit (100) below current usage (100)",
        ),
        ((100, {}), (None, {}), "missing pod memory usage"),
        ((None, {"a": 50}), (90, {"a": 49, "b": 80}), None),
        (
            (None, {"a": 50}),
            (90, {"a": 50}),
            'attempting to set container "a" memory limit (50) below current usage (90)',
        ),
        ((None, {"a": 50}), (90, {"a": None}), 'missing container "a" memory usage'),
        (
            (None, {"a": 50}),
            (None, {"a": 60}),
            'attempting to set container "a" memory limit (50) below current usage (60)',
        ),
        (
            (100, {"a": 50}),
            (None, {"a": None}),
            '[missing pod memory usage, missing container "a" memory usage]',
        ),
    ],
)
def test_limits_below_what_is_used_are_refused_CG_066(
    lower: tuple[Any, Any], usage: tuple[Any, Any], problem: str | None
) -> None:
    """The message about a container names the usage of the pod, as kubelet 1.36.2 does."""
    told = refused_decrease(LowerLimits(*lower), MemoryUsage(*usage))
    assert told == (None if problem is None else f"cannot decrease memory limits: {problem}")


def update(before_mib: int, after_mib: int, resource: str = "memory") -> ContainerUpdate:
    before, after = (
        ComputeAmounts(100, 100, mib * MIB, mib * MIB) for mib in (before_mib, after_mib)
    )
    return ContainerUpdate("c-1", Container("main"), resource, before=before, after=after)


@pytest.mark.parametrize(
    ("updates", "now", "wanted", "pod", "containers"),
    [
        ([], 100, 50, 50, {}),
        ([], 100, 100, None, {}),
        ([], 50, 100, None, {}),
        ([], None, 50, 50, {}),
        ([], 100, None, None, {}),
        ([update(9, 8)], 100, 100, None, {"main": 8 * MIB}),
        ([update(0, 8)], 100, 100, None, {"main": 8 * MIB}),  # a first limit
        ([update(8, 9)], 100, 100, None, {}),
        ([update(8, 8)], 100, 100, None, {}),
        ([update(8, 0)], 100, 100, None, {}),
        ([update(9, 8, "cpu")], 100, 100, None, {}),
        ([update(9, 8, "cpu"), update(9, 8)], 100, 50, 50, {"main": 8 * MIB}),
    ],
)
def test_which_memory_limits_get_lower_CG_066(
    updates: list[ContainerUpdate],
    now: int | None,
    wanted: int | None,
    pod: int | None,
    containers: dict[str, int],
) -> None:
    lower = lower_limits(updates, memory(now), memory(wanted))
    assert lower == LowerLimits(pod, containers)
    assert bool(lower) is (pod is not None or bool(containers))


def test_without_groups_only_containers_have_limits_CG_066() -> None:
    assert lower_limits([update(9, 8)], None, None) == LowerLimits(None, {"main": 8 * MIB})
    assert not lower_limits([], None, None)
    assert LowerLimits(0, {})


def test_what_else_a_group_has_is_told_too_CG_065() -> None:
    config = ResourceConfig(cpus="0-1", unified={"memory.low": "5"})
    told = sandbox_update(config, make_pod("main"))
    assert told == cri.LinuxContainerResources(cpuset_cpus="0-1", unified={"memory.low": "5"})
    assert sandbox_update(ResourceConfig(), make_pod("main", overhead={"cpu": "1"})) == (
        cri.LinuxContainerResources()
    )
    assert merged(config, ResourceConfig()) == config
    assert merged(ResourceConfig(), config) == config


# -- carrying it out -----------------------------------------------------------------------------


class Cgroups:
    """The group of one pod in memory."""

    def __init__(self, now: ResourceConfig, wanted: ResourceConfig) -> None:
        self.now = now
        self.wanted = wanted
        self.used_bytes = 10 * MIB
        self.refuses: Exception | None = None
        self.unreadable = False
        self.told: list[str] = []

    def config_of(self, pod: Pod) -> ResourceConfig:
        return self.wanted

    def read_config(self, pod: Pod, resource: str) -> ResourceConfig:
        if self.unreadable:
            raise FileNotFoundError(resource)
        if resource == "memory":
            return ResourceConfig(memory_limit_bytes=self.now.memory_limit_bytes)
        return ResourceConfig(self.now.cpu_shares, self.now.cpu_quota_us, self.now.cpu_period_us)

    def write_config(self, pod: Pod, config: ResourceConfig) -> None:
        if self.refuses is not None:
            raise self.refuses
        self.now = merged(self.now, config)

    def memory_usage_bytes(self, pod: Pod) -> int:
        return self.used_bytes


BIG = ResourceConfig(256, 30_000, 100_000, 192 * MIB)
SMALL_ASK = {
    "requests": {"cpu": "200m", "memory": "64Mi"},
    "limits": {"cpu": "200m", "memory": "128Mi"},
}
BIG_ASK = {
    "requests": {"cpu": "250m", "memory": "64Mi"},
    "limits": {"cpu": "300m", "memory": "192Mi"},
}


class Bench:
    def __init__(self, root: Path, now: ResourceConfig, wanted: ResourceConfig, **answers: Any):
        self.cgroups = Cgroups(now, wanted)
        self.target = ScriptedTarget(**answers)
        deps = RuntimeDeps(
            virtual_loop().clock,
            Ids(Rng(0)),
            Events(),
            node=NodeShares(pod_cgroups=lambda: self.cgroups),
        )
        options = RuntimeOptions(root_dir=root, pod_logs_dir=root / "logs", container_logs_dir=None)
        self.manager = RuntimeManager(CriClient(self.target), deps, options)

    async def sync(self, asking: dict[str, Any], **more: Any) -> Any:
        pod = make_pod({"name": "main", "resources": asking}, **more)
        return await self.manager.sync_pod(pod, status(record(pod, "main")), Probes())

    def calls(self) -> list[str]:
        return [m for m in self.target.methods() if m.startswith("Update")]

    async def resize(self, before: dict[str, Any], after: dict[str, Any]) -> Any:
        await self.sync(before)
        self.target.calls.clear()
        return await self.sync(after)


async def test_growing_tells_the_runtime_writes_and_updates_CG_065(tmp_path: Path) -> None:
    bench = Bench(tmp_path, NOW, BIG)
    result = await bench.resize(SMALL_ASK, BIG_ASK)
    assert result.ok
    assert result.resized
    assert bench.cgroups.now == BIG
    pod, container = "UpdatePodSandboxResources", "UpdateContainerResources"
    assert bench.calls() == [pod, container, pod, pod, container]


@pytest.mark.parametrize(
    "failure",
    [
        Failure(grpc.StatusCode.UNIMPLEMENTED, "unknown method"),
        Failure(grpc.StatusCode.UNKNOWN, "method UpdatePodSandboxResources not implemented"),
    ],
)
async def test_a_runtime_that_does_not_know_the_call_is_no_obstacle_CG_065(
    tmp_path: Path, failure: Failure
) -> None:
    bench = Bench(tmp_path, NOW, BIG, UpdatePodSandboxResources=failure)
    assert (await bench.resize(SMALL_ASK, BIG_ASK)).ok
    assert bench.cgroups.now == BIG


async def test_a_runtime_that_refuses_ends_the_resize_before_anything_changes_CG_065(
    tmp_path: Path,
) -> None:
    failure = Failure(grpc.StatusCode.UNKNOWN, "too big")
    bench = Bench(tmp_path, NOW, BIG, UpdatePodSandboxResources=failure)
    result = await bench.resize(SMALL_ASK, BIG_ASK)
    assert result.resize_error == (
        "failed to notify runtime for UpdatePodSandboxResources (resource=memory); resize "
        'rejected: updatePodSandboxResources failed for sanboxID "s0": rpc error: code = '
        "Unknown desc = too big"
    )
    assert bench.cgroups.now == NOW
    assert bench.calls() == ["UpdatePodSandboxResources"]


async def test_a_kernel_that_refuses_is_told_to_the_runtime_CG_065(tmp_path: Path) -> None:
    bench = Bench(tmp_path, NOW, BIG)
    bench.cgroups.refuses = CgroupError("no such group")
    result = await bench.resize(SMALL_ASK, BIG_ASK)
    assert result.resize_error == "no such group"
    told = [r.resources.memory_limit_in_bytes // MIB
            for r in bench.target.requests("UpdatePodSandboxResources")]  # fmt: skip
    assert told == [192, 128]
    bench.cgroups.refuses = None
    assert (await bench.sync(BIG_ASK)).ok
    assert bench.cgroups.now == BIG


async def test_an_unreadable_group_ends_the_resize_CG_065(tmp_path: Path) -> None:
    bench = Bench(tmp_path, NOW, BIG)
    bench.cgroups.unreadable = True
    result = await bench.resize(SMALL_ASK, BIG_ASK)
    assert result.resize_error == (
        'unable to get pod cgroup memory config for pod "web_default(uid-web)"'
    )
    assert bench.calls() == []


def stats(name: str, usage_bytes: int) -> Any:
    return cri.ListContainerStatsResponse(
        stats=[
            cri.ContainerStats(
                attributes=cri.ContainerAttributes(
                    id="main-0", metadata=cri.ContainerMetadata(name=name)
                ),
                memory=cri.MemoryUsage(usage_bytes=cri.UInt64Value(value=usage_bytes)),
            )
        ]
    )


@pytest.mark.parametrize(("used_mib", "done"), [(127, True), (128, False), (150, False)])
async def test_memory_shrinks_while_it_is_not_used_CG_066(
    tmp_path: Path, used_mib: int, done: bool
) -> None:
    used = used_mib * MIB
    bench = Bench(tmp_path, BIG, NOW, ListContainerStats=lambda _: stats("main", used))
    bench.cgroups.used_bytes = used
    result = await bench.resize(BIG_ASK, SMALL_ASK)
    assert result.ok is done
    assert bench.cgroups.now == (NOW if done else BIG)
    (request,) = bench.target.requests("ListContainerStats")
    assert request.filter.pod_sandbox_id == "s0"
    if not done:
        assert result.resize_error == (
            "cannot decrease memory limits: [attempting to set pod memory limit "
            f"({128 * MIB}) below current usage ({used}), attempting to set container "
            f'"main" memory limit ({128 * MIB}) below current usage ({used})]'
        )


async def test_usage_that_cannot_be_read_ends_the_resize_CG_066(tmp_path: Path) -> None:
    failure = Failure(grpc.StatusCode.UNAVAILABLE, "away")
    bench = Bench(tmp_path, BIG, NOW, ListContainerStats=failure)
    result = await bench.resize(BIG_ASK, SMALL_ASK)
    assert result.resize_error == 'unable to read memory usage for pod "web_default(uid-web)"'


async def test_the_pods_own_resources_are_resized_and_noted_CG_064_CG_065(tmp_path: Path) -> None:
    bench = Bench(tmp_path, NOW, BIG)
    own = {"requests": {"cpu": "250m"}, "limits": {"cpu": "300m", "memory": "192Mi"}}
    before = {"requests": {"cpu": "200m"}, "limits": {"cpu": "200m", "memory": "128Mi"}}
    bench.manager.note_pod_level(make_pod({"name": "main"}, resources=before))
    assert not (await bench.sync({}, resources=before)).resized
    bench.target.calls.clear()
    result = await bench.sync({}, resources=own)
    assert result.resized
    assert bench.cgroups.now == BIG
    pod = make_pod({"name": "main"}, resources=own)
    running = status(record(pod, "main"))
    assert not bench.manager.resize_in_progress(pod, running)
    assert not (await bench.sync({}, resources=own)).resized


async def test_resources_of_the_pod_that_are_new_are_a_resize_CG_064_6(tmp_path: Path) -> None:
    """A pod that was made without any gets some while it runs: its cgroup follows, once."""
    bench = Bench(tmp_path, NOW, BIG)
    small = make_pod({"name": "main", "resources": SMALL_ASK})
    await bench.manager.sync_pod(small, status(), Probes())  # starts it
    assert not (await bench.sync(SMALL_ASK)).resized
    own = {"requests": {"cpu": "250m"}, "limits": {"cpu": "300m", "memory": "192Mi"}}
    pod = make_pod({"name": "main", "resources": SMALL_ASK}, resources=own)
    running = status(record(pod, "main"))
    assert bench.manager.resize_in_progress(pod, running)
    assert (await bench.sync(SMALL_ASK, resources=own)).resized
    assert bench.cgroups.now == BIG
    assert bench.target.requests("UpdateContainerResources") == []
    assert not bench.manager.resize_in_progress(pod, running)
    assert not (await bench.sync(SMALL_ASK, resources=own)).resized


async def test_a_kubelet_without_a_checkpoint_writes_only_what_differs_CG_064_6(
    tmp_path: Path,
) -> None:
    bench = Bench(tmp_path, BIG, BIG)
    own = {"requests": {"cpu": "250m"}, "limits": {"cpu": "300m", "memory": "192Mi"}}
    await bench.sync({}, resources=own)
    assert bench.calls() == []
    assert not (await bench.sync({}, resources=own)).resized
