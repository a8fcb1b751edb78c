"""Graceful shutdown: groups and times as decisions, then the manager beside a fake logind."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from loops import virtual_loop
from pods import make_pod

from fakecri.machine.logind import FakeLock, FakeLogind
from refkubelet.admission.admit_handler import PodAdmitAttributes
from refkubelet.config import ConfigError
from refkubelet.config.load import load_config
from refkubelet.config.schema.kubelet_config import KubeletConfiguration
from refkubelet.config.schema.kubelet_config import ShutdownGracePeriodByPodPriority as ByPriority
from refkubelet.model.objects import Pod, PodStatus
from refkubelet.model.pod import uid
from refkubelet.node.shutdown import (
    ShutdownGroup,
    grace_s,
    pods_by_group,
    shut_down_status,
    shutdown_groups,
)
from refkubelet.node.shutdown_manager import (
    NodeShutdownManager,
    ShutdownDeps,
    ShutdownSourceError,
)
from refkubelet.node.shutdown_state import FILE_NAME, ShutdownTimes, load_times, store_times

pytestmark = pytest.mark.virtual_time

CRITICAL = 2_000_000_000
pytestmark = pytest.mark.virtual_time

GROUPS = (ShutdownGroup(0, 6), ShutdownGroup(CRITICAL, 4))


def pod(name: str, priority: int | None = None, grace_s: int | None = 30) -> Pod:
    return make_pod(name=name, uid=name, priority=priority, terminationGracePeriodSeconds=grace_s)


def settings(**fields: Any) -> KubeletConfiguration:
    return KubeletConfiguration(**fields)


BY_PRIORITY = (ByPriority(100, 5), ByPriority(10, 7))


@pytest.mark.parametrize(
    ("config", "groups"),
    [
        (settings(), ()),
        (
            settings(shutdown_grace_period_s=30.0),
            (ShutdownGroup(0, 30), ShutdownGroup(CRITICAL, 0)),
        ),
        (
            settings(shutdown_grace_period_s=30.5, shutdown_grace_period_critical_pods_s=10.0),
            (ShutdownGroup(0, 20), ShutdownGroup(CRITICAL, 10)),
        ),
        (
            settings(shutdown_grace_period_by_pod_priority=BY_PRIORITY),
            (ShutdownGroup(10, 7), ShutdownGroup(100, 5)),
        ),
        (
            settings(shutdown_grace_period_s=30.0, feature_gates={"GracefulNodeShutdown": False}),
            (),
        ),
        (
            settings(
                shutdown_grace_period_by_pod_priority=BY_PRIORITY,
                feature_gates={"GracefulNodeShutdownBasedOnPodPriority": False},
            ),
            (),
        ),
    ],
)
def test_groups_of_a_configuration_NODE_060(
    config: KubeletConfiguration, groups: tuple[ShutdownGroup, ...]
) -> None:
    assert shutdown_groups(config) == groups


THREE = (ShutdownGroup(10, 1), ShutdownGroup(100, 2), ShutdownGroup(1000, 3))


@pytest.mark.parametrize(
    ("priority", "group"),
    [(None, 10), (-5, 10), (9, 10), (10, 10), (99, 10), (100, 100), (999, 100), (5000, 1000)],
)
def test_the_group_of_a_pod_NODE_062(priority: int | None, group: int) -> None:
    found = pods_by_group(THREE, [pod("a", priority)])
    assert [(one.priority, len(pods)) for one, pods in found] == [(group, 1)]


def test_a_pod_without_priority_has_0_NODE_062() -> None:
    groups = (ShutdownGroup(-1, 1), ShutdownGroup(1, 1))
    assert [group.priority for group, _ in pods_by_group(groups, [pod("a")])] == [-1]


@given(st.lists(st.integers(-10, 2000), max_size=8))
def test_every_pod_is_in_one_group_and_groups_come_in_order_NODE_062(priorities: list[int]) -> None:
    pods = [pod(f"p{n}", priority) for n, priority in enumerate(priorities)]
    found = pods_by_group(THREE, pods)
    assert sorted(uid(p) for _, members in found for p in members) == sorted(map(uid, pods))
    assert [group for group, _ in found] == [g for g in THREE if g in dict(found)]


@pytest.mark.parametrize(("own", "wanted"), [(30, 6), (6, 6), (2, 2), (0, 0), (None, 6)])
def test_the_time_of_a_pod_NODE_062(own: int | None, wanted: int) -> None:
    assert grace_s(pod("a", grace_s=own), GROUPS[0]) == wanted


@pytest.mark.parametrize(
    ("before", "after"), [("Running", "Failed"), ("Succeeded", "Succeeded"), ("Failed", "Failed")]
)
def test_the_status_of_a_pod_NODE_063(before: str, after: str) -> None:
    status = shut_down_status(pod("a"))(PodStatus(phase=before))
    text = "Pod was terminated in response to imminent node shutdown."
    assert (status.phase, status.reason, status.message) == (after, "Terminated", text)
    condition = (status.conditions or [])[0]
    assert (condition.type, condition.status) == ("DisruptionTarget", "True")
    assert (condition.reason, condition.message) == ("TerminationByKubelet", text)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (
            "shutdownGracePeriod: 10s\nfeatureGates: {GracefulNodeShutdown: false}",
            "specifying shutdownGracePeriod or shutdownGracePeriodCriticalPods requires feature "
            "gate GracefulNodeShutdown",
        ),
        (
            "shutdownGracePeriodByPodPriority: [{priority: 1, shutdownGracePeriodSeconds: 2}]\n"
            "featureGates: {GracefulNodeShutdownBasedOnPodPriority: false}",
            "Specifying shutdownGracePeriodByPodPriority requires feature gate "
            "GracefulNodeShutdownBasedOnPodPriority",
        ),
        (
            "shutdownGracePeriod: 10s\nshutdownGracePeriodByPodPriority: [{priority: 1}]",
            "Cannot specify both shutdownGracePeriodByPodPriority and shutdownGracePeriod at the "
            "same time",
        ),
    ],
)
def test_configurations_that_cannot_be_NODE_060(text: str, error: str, tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    head = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
    file.write_text(head + text)
    with pytest.raises(ConfigError, match=error):
        load_config(file)


# The times of the last shutdown


def test_times_are_kept_NODE_064(tmp_path: Path) -> None:
    file = tmp_path / FILE_NAME
    assert load_times(file) == ShutdownTimes()
    store_times(file, ShutdownTimes(1_800_000_000_000_000_000))
    assert file.read_text() == (
        '{"startTime":"2027-01-15T08:00:00.000000000Z","endTime":"0001-01-01T00:00:00Z"}'
    )
    both = ShutdownTimes(1_800_000_000_000_000_000, 1_800_000_007_000_000_000)
    store_times(file, both)
    assert load_times(file) == both
    assert [path.name for path in tmp_path.iterdir()] == [FILE_NAME]


def test_a_file_that_cannot_be_understood_is_ignored_NODE_064(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / FILE_NAME
    file.write_text('{"startTime": 5}')
    assert load_times(file) == ShutdownTimes()
    assert f"{file}: wanted the times of the last shutdown" in caplog.text
    store_times(tmp_path / "no" / "such" / "place", ShutdownTimes())
    assert "cannot write the times of the shutdown" in caplog.text


# The manager


class World:
    """A manager beside a fake logind. Pods end after as many seconds as `slow` says, at once
    otherwise. `log`: (seconds, what)."""

    def __init__(
        self, directory: Path, *pods: Pod, slow: dict[str, float], logind: FakeLogind
    ) -> None:
        loop = virtual_loop()
        self.clock = loop.clock
        self.logind = logind
        self.log: list[tuple[float, str]] = []
        self.told = 0
        self.slow = slow
        self.manager = NodeShutdownManager(
            GROUPS,
            self.logind,
            ShutdownDeps(
                clock=loop.clock,
                events=self,
                active_pods=lambda: pods,
                kill_pod=self.kill,
                tell_node_status=self.tell,
                state_file=directory / FILE_NAME,
            ),
        )

    def tell(self) -> None:
        self.told += 1

    def note(self, what: str) -> None:
        self.log.append((round(self.clock.monotonic_s(), 3), what))

    def node_event(self, type_: str, reason: str, message: str) -> None:
        self.note(f"{type_} {reason} {message}")

    def pod_event(self, *_: Any, **__: Any) -> None:
        raise AssertionError("a shutdown is no event of a pod")

    async def kill(
        self, pod: Pod, status_fn: Callable[[PodStatus], PodStatus], grace_s: int
    ) -> None:
        self.note(f"kill {uid(pod)} {grace_s}")
        await self.clock.sleep(self.slow.get(uid(pod), 0.0))
        if uid(pod) == "broken":
            raise TimeoutError("too slow")
        self.note(f"ended {uid(pod)}")


@asynccontextmanager
async def beside(
    directory: Path,
    *pods: Pod,
    slow: dict[str, float] | None = None,
    logind: FakeLogind | None = None,
) -> AsyncIterator[World]:
    """A world with a running manager."""
    world = World(directory, *pods, slow=slow or {}, logind=logind or FakeLogind())
    running = asyncio.create_task(world.manager.run())
    await asyncio.sleep(0.01)
    try:
        yield world
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def test_the_lock_is_held_and_nothing_else_happens_NODE_060(tmp_path: Path) -> None:
    async with beside(tmp_path, pod("a")) as world:
        assert len(world.logind.locks) == 1
        assert world.logind.delay_s == 10.0  # as long as all groups together
        assert world.manager.admit(PodAdmitAttributes(pod("a"))) is None
        assert world.manager.not_ready() == []
    assert world.log == []
    assert world.logind.locks == []  # a kubelet that has stopped holds up nothing


BEGINS = "Normal Shutdown Shutdown manager detected shutdown event"
CALLED_OFF = "Normal Shutdown Shutdown manager detected shutdown cancellation"


async def test_groups_end_one_after_the_other_in_their_time_NODE_062(tmp_path: Path) -> None:
    pods = pod("core", CRITICAL), pod("slow"), pod("broken", grace_s=3)
    async with beside(tmp_path, *pods, slow={"slow": 8.0, "broken": 2.0, "core": 1.0}) as world:
        world.logind.shut_down()
        await asyncio.sleep(1)
        assert world.manager.not_ready() == ["node is shutting down"]
        refused = world.manager.admit(PodAdmitAttributes(pod("new")))
        assert refused is not None
        assert (refused.reason, refused.message) == (
            "NodeShutdown",
            "Pod was rejected as the node is shutting down.",
        )
        assert world.told == 1
        assert world.logind.delayed
        await asyncio.sleep(30)
        assert not world.logind.delayed

    assert world.log == [
        (0.01, BEGINS),
        (0.01, "kill slow 6"),
        (0.01, "kill broken 3"),
        (6.01, "kill core 4"),  # slow is late, and goes on ending
        (7.01, "ended core"),
        (8.01, "ended slow"),
    ]
    times = load_times(tmp_path / FILE_NAME)
    assert times.began_ns is not None
    assert times.ended_ns is not None
    assert times.ended_ns - times.began_ns == 7_000_000_000
    assert world.manager.times.ended_ns is not None


async def test_pods_that_have_ended_are_not_waited_for_NODE_062(tmp_path: Path) -> None:
    async with beside(tmp_path, pod("web"), pod("core", CRITICAL), slow={"web": 1.5}) as world:
        world.logind.shut_down()
        await asyncio.sleep(2)
        assert not world.logind.delayed
    assert (1.51, "kill core 4") in world.log


async def test_a_shutdown_that_is_called_off_NODE_064(tmp_path: Path) -> None:
    async with beside(tmp_path) as world:
        world.logind.shut_down()
        await asyncio.sleep(1)
        world.logind.call_off()
        await asyncio.sleep(1)
        assert world.manager.not_ready() == []
        assert world.manager.admit(PodAdmitAttributes(pod("new"))) is None
        assert len(world.logind.locks) == 1  # for the next one

    assert world.log == [(0.01, BEGINS), (1.01, CALLED_OFF)]


async def test_who_allows_too_little_time_is_asked_once_and_watched_NODE_064(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with beside(tmp_path, logind=FakeLogind(stubborn=True)) as world:
        await asyncio.sleep(60)
        assert world.logind.locks == []
        assert world.logind.asked_s == [10.0]
        assert "shutdowns can be delayed for 5 s, but shutdownGracePeriod needs 10" in caplog.text
        world.logind.delay_s = 10.0  # as another program's file says
        await asyncio.sleep(1.1)
        assert len(world.logind.locks) == 1

    assert world.logind.asked_s == [10.0]


async def test_who_could_not_be_asked_is_asked_again_NODE_064(tmp_path: Path) -> None:
    async with beside(tmp_path, logind=Deaf()) as world:
        await asyncio.sleep(5)
        assert world.logind.asked_s == [10.0]
        assert len(world.logind.locks) == 1


async def test_a_logind_that_has_forgotten_is_asked_anew_NODE_064(tmp_path: Path) -> None:
    async with beside(tmp_path, logind=Flaky()) as world:
        world.logind.delay_s = 5.0
        await asyncio.sleep(3)  # its connection has broken meanwhile
        assert world.logind.asked_s == [10.0, 10.0]
        assert len(world.logind.locks) == 1


async def test_a_manager_that_does_not_run_does_not_listen(tmp_path: Path) -> None:
    async with beside(tmp_path, logind=Lockless()) as world:
        assert world.logind.listening == 0
        await asyncio.sleep(10)
        assert world.logind.listening == 1

    assert world.logind.listening == 0


class Lockless(FakeLogind):
    """Every second lock is refused."""

    wanted = 0

    async def inhibit(self) -> FakeLock:
        self.wanted += 1
        if self.wanted % 2:
            raise ShutdownSourceError("no locks today")
        return await super().inhibit()


class Deaf(FakeLogind):
    """Three times it cannot be asked for more time."""

    tries = 0

    async def set_longest_delay(self, delay_s: float) -> None:
        self.tries += 1
        if self.tries <= 3:
            raise ShutdownSourceError("there is no systemd here")
        await super().set_longest_delay(delay_s)


class Flaky(FakeLogind):
    """The first connection breaks after a second."""

    connections = 0

    def signals(self) -> Any:
        self.connections += 1
        return _breaks() if self.connections == 1 else super().signals()


async def _breaks() -> AsyncIterator[bool]:
    await asyncio.sleep(1)
    raise ShutdownSourceError("the bus is gone")
    yield True


async def test_a_lost_connection_is_made_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with beside(tmp_path, logind=Flaky()) as world:
        await asyncio.sleep(3)
        assert "shutdowns of the node are not noticed: the bus is gone" in caplog.text
        assert len(world.logind.locks) == 1  # one lock, not one for each connection
        world.logind.shut_down()
        await asyncio.sleep(0.1)
        assert world.manager.not_ready() == ["node is shutting down"]
