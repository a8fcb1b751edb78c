"""One unforeseen error, in each call of each step: it touches one pod, for as long as
it lasts (LIFE-037, architecture.md)."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from node_world import Node, running_node
from pods import container, manifest
from unexpected import Calls, Tracebacks, wrap_all

from fakecri import exits
from fakecri.core.objects import State
from simclock import run_virtual

pytestmark = pytest.mark.virtual_time


def a_pod(name: str, **spec: Any) -> dict[str, Any]:
    """With a bit of everything."""
    act = {"exec": {"command": ["true"]}}
    main = container(
        cpu="1m",
        memory="1Mi",
        env=[{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
        volumeMounts=[{"name": "data", "mountPath": "/data"}],
        readinessProbe=act,
        livenessProbe=act,
        lifecycle={"postStart": act, "preStop": act},
    )
    return manifest(
        main,
        name=name,
        init=["init"],
        volumes=[{"name": "data", "emptyDir": {}}],
        terminationGracePeriodSeconds=2,
        **spec,
    )


INIT_DONE = exits(0)
MOST_RETRIES = 40  # a minute: housekeeping hurries what is gone from its source, every 2 s
THE_STOP_ITSELF = {
    "RuntimeManager.kill_pod",
    "ContainerKiller.kill_pod",
    "ContainerKiller.kill",
    "CriClient.stop_container",
}
IN_MANY_PLACES = {"Operations.of", "CounterVec.inc", "GaugeVec.set", "HistogramVec.observe"}
"""What counts: a fault there is one of each part that counts, and each tells of its own."""


@asynccontextmanager
async def watched_node(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[Node, Calls]]:
    """A node with a pod `fine`. What the steps of its pods call is noted, and fails on demand."""
    calls = Calls()
    teller = Tracebacks(calls)
    log = logging.getLogger("refkubelet")
    log.addHandler(teller)
    try:
        async with running_node(directory, api=True, maxPods=1000) as node:
            wrap_all(node.kubelet, calls, monkeypatch)
            node.cri.behaves(INIT_DONE, container="init")
            node.apply(a_pod("fine"), "fine.yaml")
            await node.until(lambda: node.phase("fine-golden") == "Running", 10)
            yield node, calls
    finally:
        log.removeHandler(teller)
        monkeypatch.undo()


async def some_lives(directory: Path) -> Calls:
    """What is called in the lives of a static pod, a pod of the API server and an orphan."""
    async with watched_node(directory, pytest.MonkeyPatch()) as (node, calls):
        node.apply(a_pod("a"), "a.yaml")
        await node.create(a_pod("b"))
        await node.until(lambda: {node.phase("a-golden"), node.phase("b")} == {"Running"}, 10)
        await node.clock.sleep(20)
        node.remove("a.yaml")
        await node.delete("b")
        await node.clock.sleep(30)
        await node.stop()
        node.remove("fine.yaml")
        await node.start()
        await node.clock.sleep(30)
    return calls


@pytest.fixture(scope="module")
def called(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """What each step calls in the life of some pods."""
    calls = run_virtual(partial(some_lives, tmp_path_factory.mktemp("called")))
    assert all(calls.seen.values())
    return {step: sorted(methods - IN_MANY_PLACES) for step, methods in calls.seen.items()}


class Sick:
    """One static pod for each method, which fails in that step."""

    def __init__(self, node: Node, calls: Calls, step: str, methods: list[str]) -> None:
        self.node = node
        self.calls = calls
        self.step = step
        self.methods = {f"p{n}": method for n, method in enumerate(methods)}

    def fall_ill(self) -> None:
        for name, method in self.methods.items():
            self.calls.faults[f"{name}-golden"] = (self.step, method)

    def recover(self) -> None:
        self.calls.faults.clear()

    def apply(self) -> None:
        for name in self.methods:
            self.node.apply(a_pod(name), f"{name}.yaml")

    def remove(self, *names: str) -> None:
        for name in names or self.methods:
            self.node.remove(f"{name}.yaml")

    def but(self, condition: Callable[[str], object]) -> dict[str, str]:
        """The pods, with their methods, for which it is not so."""
        return {n: m for n, m in self.methods.items() if not condition(f"{n}-golden")}

    async def until_all(self, condition: Callable[[str], object], limit_s: float) -> None:
        end_s = self.node.clock.monotonic_s() + limit_s
        while self.but(condition) and self.node.clock.monotonic_s() < end_s:
            await self.node.clock.sleep(0.5)
        assert self.but(condition) == {}

    def is_hit(self, name: str) -> bool:
        return self.calls.hits[name] > 0

    def is_running(self, name: str) -> bool:
        return self.node.phase(name) == "Running"

    def is_gone(self, name: str) -> bool:
        return self.node.phase(name) is None

    def is_stopped(self, name: str) -> bool:
        alive = (c for c in self.node.cri.containers() if c.state is State.RUNNING)
        return all(c.pod.name != name for c in alive)

    def retries(self, name: str) -> int:
        return self.calls.steps[name, self.step]


async def the_other_goes_on(node: Node) -> None:
    before = node.cri.count("StartContainer", pod="fine-golden")
    node.cri.kill("main", pod="fine-golden")
    await node.until(lambda: node.cri.count("StartContainer", pod="fine-golden") > before, 20)


def told_about_once(sick: Sick) -> dict[str, int]:
    """Tracebacks by method, of those with more than two: of the step, and of what it started. What
    counts the calls of the runtime fails with each of them: in a hook, a stop and a step."""
    most = {"Operations.ended": 3}
    told = sick.calls.tracebacks
    by_method = {method: told[f"{name}-golden"] for name, method in sick.methods.items()}
    return {method: count for method, count in by_method.items() if count > most.get(method, 2)}


async def test_an_unexpected_error_of_a_sync_touches_one_pod_LIFE_037(
    called: dict[str, list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with watched_node(tmp_path, monkeypatch) as (node, calls):
        sick = Sick(node, calls, "sync_pod", called["sync_pod"])
        sick.fall_ill()
        sick.apply()
        await node.clock.sleep(30)
        await the_other_goes_on(node)
        await node.clock.sleep(30)
        assert len(sick.but(sick.is_hit)) <= len(sick.methods) // 8
        assert sick.but(lambda n: not sick.is_hit(n) or 1 <= sick.retries(n) <= MOST_RETRIES) == {}
        assert told_about_once(sick) == {}
        ended = list(sick.methods)[::2]
        sick.remove(*ended)  # in spite of it
        await sick.until_all(lambda n: n[:-7] not in ended or sick.is_gone(n), 60)
        sick.recover()
        await sick.until_all(lambda n: n[:-7] in ended or sick.is_running(n), 60)


@pytest.mark.parametrize("step", ["sync_terminating_pod", "sync_terminated_pod"])
async def test_an_unexpected_error_at_the_end_of_a_pod_keeps_nothing_running_LIFE_071(
    step: str, called: dict[str, list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with watched_node(tmp_path, monkeypatch) as (node, calls):
        sick = Sick(node, calls, step, called[step])
        sick.apply()
        await sick.until_all(sick.is_running, 120)
        sick.fall_ill()
        sick.remove()
        can_stop = THE_STOP_ITSELF.isdisjoint
        await sick.until_all(
            lambda n: not can_stop([sick.methods[n[:-7]]]) or sick.is_stopped(n), 15
        )
        await the_other_goes_on(node)
        await node.clock.sleep(50)
        assert len(sick.but(sick.is_hit)) <= len(sick.methods) // 8
        assert sick.but(lambda n: not sick.is_hit(n) or 1 <= sick.retries(n) <= MOST_RETRIES) == {}
        assert told_about_once(sick) == {}
        sick.recover()
        await sick.until_all(lambda n: sick.is_gone(n) and sick.is_stopped(n), 60)
        ended = [f"{n}-golden" for n in sick.methods]
        await node.until(
            lambda: not any(s.config.metadata.name in ended for s in node.cri.sandboxes()), 150
        )


async def test_an_unexpected_error_of_the_end_of_an_orphan_is_tried_again_LIFE_072(
    called: dict[str, list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = "sync_terminating_runtime_pod"

    async with watched_node(tmp_path, monkeypatch) as (node, calls):
        sick = Sick(node, calls, step, called[step])
        sick.apply()
        await sick.until_all(sick.is_running, 60)
        sick.fall_ill()
        await node.stop()
        sick.remove()
        await node.start()
        await node.until(lambda: node.phase("fine-golden") == "Running", 20)
        await the_other_goes_on(node)
        await node.clock.sleep(50)
        assert len(sick.but(sick.is_hit)) <= len(sick.methods) // 8
        assert told_about_once(sick) == {}
        sick.recover()
        await sick.until_all(sick.is_stopped, 60)


async def test_a_pod_that_cannot_be_looked_at_keeps_no_other_from_its_turn_LIFE_004(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def surprise(*_: object) -> bool:
        raise RuntimeError("surprise")

    async with running_node(tmp_path, api=True) as node:
        await node.create(manifest(name="odd", activeDeadlineSeconds=1000))
        await node.until(lambda: node.phase("odd") == "Running", 10)
        await node.create(manifest(name="crashes"))
        await node.until(lambda: node.phase("crashes") == "Running", 10)
        monkeypatch.setattr("refkubelet.sync_loop.pod_handlers.past_active_deadline", surprise)
        for starts in (2, 3):  # the second time it waits for its back-off, in the queue
            node.cri.kill("main", pod="crashes")
            await node.until(
                lambda n=starts: node.cri.count("StartContainer", pod="crashes") == n, 30
            )
