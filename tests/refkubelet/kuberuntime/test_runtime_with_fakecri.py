"""The runtime manager and the PLEG on a fake runtime, in virtual time: call orders as recorded."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from golden_recording import Recording
from loops import virtual_loop
from pods import make_pod
from runtime_doubles import UID, Events, Probes

from fakecri import FakeCRI, exits, ignores, replies
from refkubelet.cri.client import CriClient
from refkubelet.kuberuntime.common.runtime_deps import RuntimeDeps
from refkubelet.kuberuntime.common.runtime_options import DnsOptions, RuntimeOptions
from refkubelet.kuberuntime.gc import ContainerDeletor
from refkubelet.kuberuntime.manager import RuntimeManager
from refkubelet.kuberuntime.reading.pod_reader import running_pod
from refkubelet.kuberuntime.results import PodSyncResult
from refkubelet.model.objects import Pod
from refkubelet.pleg import GenericPLEG, PodCache, PodLifecycleEventType
from refkubelet.status.restart_all import is_restarting_all
from simclock import Ids, Rng, VirtualLoop

pytestmark = pytest.mark.virtual_time

READS = ("List", "Version", "Status", "ImageFsInfo", "PodSandboxStatus", "ContainerStatus")
IMAGE = {"image": "localhost/busybox:1"}


class OneWorker:
    """A pod worker reduced to its loop: wait for a newer status, sync, wait for a reason to sync
    again (an event, or the end of a back-off)."""

    def __init__(self, cri: FakeCRI, root: Path, loop: VirtualLoop) -> None:
        client = CriClient(cri)
        options = RuntimeOptions(
            root_dir=root / "kubelet",
            pod_logs_dir=root / "logs",
            container_logs_dir=None,
            dns=DnsOptions(cluster_dns=("10.0.0.10",)),
        )
        self.clock = loop.clock
        self.events = Events()
        deps = RuntimeDeps(loop.clock, Ids(Rng(7)), self.events)
        self.runtime = RuntimeManager(client, deps, options)
        self.cache = PodCache(loop.clock)
        self.pleg = GenericPLEG(self.runtime, self.cache, loop.clock)
        self.deletor = ContainerDeletor(client, options, loop.clock)
        self.probes = Probes()
        self.wake = asyncio.Event()
        self.results: list[PodSyncResult] = []

    async def run(self, pod: Pod) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.pleg.run())
            tasks.create_task(self._forward_events())
            tasks.create_task(self.deletor.run())
            tasks.create_task(self._work(pod))

    async def _forward_events(self) -> None:
        while True:
            event = await self.pleg.events.get()
            if event.type is PodLifecycleEventType.CONTAINER_DIED:
                self.deletor.delete_containers_in_pod(event.data, self.cache.get(event.uid))
            if event.type is not PodLifecycleEventType.CONTAINER_REMOVED:
                self.wake.set()

    async def _work(self, pod: Pod) -> None:
        t_s = 0.0
        while True:
            status = await self.cache.get_newer_than(UID, t_s)
            self.wake.clear()
            restarting_all = is_restarting_all(pod, status, None)
            result = await self.runtime.sync_pod(
                pod, status, self.probes, restarting_all=restarting_all
            )
            self.results.append(result)
            t_s = self.cache.stamp_s()
            if result.containers_reset:
                self.wake.set()  # sync again at once
            if result.ok and result.actions:
                self.pleg.request_relist(UID)
            expiry_s = result.min_backoff_expiry_s()
            wait_s = 60.0 if expiry_s is None else max(0.0, expiry_s - self.clock.monotonic_s())
            try:
                async with asyncio.timeout(wait_s):
                    await self.wake.wait()
            except TimeoutError:
                continue


@asynccontextmanager
async def one_worker(root: Path, pod: Pod) -> AsyncIterator[tuple[OneWorker, FakeCRI]]:
    """The worker of the pod, at work."""
    loop = virtual_loop()
    cri = FakeCRI()
    worker = OneWorker(cri, root, loop)
    task = asyncio.ensure_future(worker.run(pod))
    try:
        yield worker, cri
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def until(
    condition: Callable[[], bool], limit_s: float = 2000.0, step_s: float = 0.01
) -> None:
    """Look every `step_s` of virtual time."""
    loop = asyncio.get_running_loop()
    end_s = loop.time() + limit_s
    while not condition():
        assert loop.time() < end_s, "the condition never came true"
        await asyncio.sleep(step_s)


def writes(cri: FakeCRI) -> list[tuple[str, str]]:
    """(method, container) of the calls that are no reads."""
    return [(c.method, c.container or "") for c in cri.calls() if not c.method.startswith(READS)]


def recorded_writes(scenario: str, until_method: str) -> list[tuple[str, str]]:
    """The same from a recording, up to the first call of `until_method`."""
    found = []
    for row in Recording(scenario).rows("cri.jsonl"):
        method = row.get("method", "")
        if method == until_method:
            break
        if method and not method.startswith(READS):
            found.append((method, _container_of(row["request"])))
    return found


def _container_of(request: dict[str, Any]) -> str:
    if "config" in request and "pod_sandbox_id" in request:
        name: str = request["config"]["metadata"]["name"]
        return name
    if "container_id" in request:
        return str(request["container_id"]).split("/")[1]
    return ""


def without_images(calls: list[tuple[str, str]]) -> list[tuple[str, str]]:
    return [call for call in calls if call[0] != "ImageStatus"]


async def test_start_of_a_pod_as_recorded_in_s01(tmp_path: Path) -> None:
    async with one_worker(tmp_path, make_pod({"name": "main", **IMAGE})) as (_, cri):
        await until(lambda: cri.count("StartContainer") == 1)
        await asyncio.sleep(5)
        assert without_images(writes(cri)) == without_images(
            recorded_writes("s01", "StopContainer")
        )
        methods = [c.method for c in cri.calls()]
        first = methods.index("RunPodSandbox")
        starting = [m for m in methods[first:] if not m.startswith("List")]
        assert starting[:8] == [
            "RunPodSandbox",
            "PodSandboxStatus",
            "ImageStatus",
            "ImageStatus",
            "CreateContainer",
            "StartContainer",
            "PodSandboxStatus",
            "ContainerStatus",
        ]


async def test_init_containers_as_recorded_in_s06(tmp_path: Path) -> None:
    async with one_worker(tmp_path, make_pod("a", "b", init=({"name": "i1"}, {"name": "i2"}))) as (
        _,
        cri,
    ):
        cri.behaves(exits(0, after_s=1), container="i1")
        cri.behaves(exits(0, after_s=1), container="i2")
        await until(lambda: cri.count("StartContainer") == 4)
        assert without_images(writes(cri)) == without_images(
            recorded_writes("s06", "StopContainer")
        )


async def test_on_demand_relist_follows_a_start_PLEG_011(tmp_path: Path) -> None:
    """After the sync that started something the pod's own lists come at once."""

    async with one_worker(tmp_path, make_pod()) as (worker, cri):
        await until(lambda: cri.count("StartContainer") == 1)
        await until(lambda: bool(worker.cache.get(UID).running()), limit_s=0.5)
        assert worker.pleg.healthy() is None


async def test_crash_loop_series_BACK_001_BACK_011(tmp_path: Path) -> None:
    """Starts at 0, 0, 10, 30, 70, 150, 310 s; each up to one relist late, and that adds up."""

    async with one_worker(tmp_path, make_pod()) as (worker, cri):
        cri.behaves(exits(1), container="main")
        await until(lambda: cri.count("StartContainer") == 8, step_s=1.0)
        times = cri.times_s("StartContainer")
        gaps = [b - a for a, b in pairwise(times)]
        for gap, delay in zip(gaps, [0, 10, 20, 40, 80, 160, 300], strict=True):
            assert delay <= gap <= delay + 2.1
        await asyncio.sleep(3)
        assert len(worker.cache.get(UID).containers) <= 2  # one dead one is kept (GC-020)


async def test_lost_sandbox_gives_attempt_1_LIFE_101(tmp_path: Path) -> None:
    async with one_worker(tmp_path, make_pod()) as (worker, cri):
        await until(lambda: cri.count("StartContainer") == 1)
        await asyncio.sleep(2)
        cri.kill_sandbox(pod="web")
        await until(lambda: cri.count("RunPodSandbox") == 2)
        await until(lambda: bool(worker.cache.get(UID).running()))
        assert [s.attempt for s in worker.cache.get(UID).sandboxes] == [1, 0]
        assert "SandboxChanged" in worker.events.reasons()


async def test_restart_all_containers_keeps_the_sandbox_LIFE_125_BACK_110_BACK_112(
    tmp_path: Path,
) -> None:
    """Everything is stopped with 2 s and removed, then starts from the first init container."""

    rule = {"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [42]}}
    trigger = {"name": "trigger", "restartPolicy": "Never", "restartPolicyRules": [rule]}
    async with one_worker(tmp_path, make_pod(trigger, "other", init=({"name": "i1"},))) as (
        worker,
        cri,
    ):
        cri.behaves(exits(0), container="i1")
        cri.behaves(exits(42, after_s=5), container="trigger", attempt=0)
        await until(lambda: cri.count("StartContainer") == 6)
        order = [call for call in writes(cri) if call[0] in ("StopContainer", "RemoveContainer")]
        assert order == [
            ("StopContainer", "other"),
            ("RemoveContainer", "other"),
            ("RemoveContainer", "i1"),
            ("RemoveContainer", "trigger"),
        ]
        assert cri.calls("StopContainer")[0].request.timeout == 2
        assert cri.count("RunPodSandbox") == 1
        assert any(result.containers_reset for result in worker.results)


async def test_kill_pod_with_hook_and_stubborn_container_as_recorded_in_s08(tmp_path: Path) -> None:
    async with one_worker(tmp_path, POD_S08) as (worker, cri):
        cri.behaves(ignores("SIGTERM"), container="stubborn")
        cri.behaves(replies(["sleep"], delay_s=2.0), container="hook")
        await until(lambda: cri.count("StartContainer") == 2)
        await until(lambda: len(worker.cache.get(UID).running()) == 2)
        began_s = worker.clock.monotonic_s()
        running = running_pod(worker.cache.get(UID))
        assert (await worker.runtime.kill_pod(POD_S08, running)).ok
        stops = {c.container: c for c in cri.calls("StopContainer")}
        assert stops["stubborn"].request.timeout == 6
        assert stops["hook"].request.timeout == 4
        assert stops["hook"].deadline_s == 124
        assert stops["stubborn"].ended_s - began_s == pytest.approx(6.0)
        last = cri.calls("StopPodSandbox")[-1]
        assert last.started_s >= stops["stubborn"].ended_s


POD_S08 = make_pod(
    {"name": "hook", "lifecycle": {"preStop": {"exec": {"command": ["sleep"]}}}},
    "stubborn",
    terminationGracePeriodSeconds=6,
)
