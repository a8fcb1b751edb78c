"""A trouble that lasts is told when it begins, once a minute, and when it is over."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest
from node_world import running_node
from pods import manifest

from refkubelet.failures import REMIND_S, Complaints
from simclock import Clock

pytestmark = pytest.mark.virtual_time

log = logging.getLogger("refkubelet.test")


@pytest.fixture
def complaints(clock: Clock) -> Complaints:
    return Complaints(log, clock)


async def test_it_is_told_at_once_and_once_a_minute(
    caplog: pytest.LogCaptureFixture, complaints: Complaints
) -> None:
    caplog.set_level(logging.INFO)

    for _ in range(2 * int(REMIND_S) + 1):
        complaints.failed("the roof", OSError("leaks"), OSError)
        await asyncio.sleep(1)
    complaints.over("the roof")
    complaints.over("the roof")

    assert [record.getMessage() for record in caplog.records] == [
        "the roof: leaks",
        "the roof (61 times in 1m0s): leaks",
        "the roof (121 times in 2m0s): leaks",
        "the roof: no longer, after 121 times in 2m1s",
    ]


async def test_once_is_told_once_and_troubles_are_kept_apart(
    caplog: pytest.LogCaptureFixture, complaints: Complaints
) -> None:
    caplog.set_level(logging.INFO)

    complaints.failed("a pod", OSError("no"), OSError, key="1")
    complaints.failed("a pod", OSError("no"), OSError, key="2")
    complaints.over("1")
    complaints.failed("a bug", ZeroDivisionError(), OSError)

    told = [(record.levelname, record.getMessage()) for record in caplog.records]
    assert told == [
        ("WARNING", "a pod: no"),
        ("WARNING", "a pod: no"),
        ("ERROR", "a bug: unexpected error"),
    ]


async def test_a_runtime_that_is_away_for_two_minutes_leaves_a_short_log_NODE_051(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with running_node(tmp_path) as node:
        node.apply(manifest())
        await node.clock.sleep(5)
        caplog.clear()
        node.cri.crash()
        await node.clock.sleep(120)
    assert 3 <= len(caplog.records) <= 15


async def test_a_restart_with_a_static_pod_complains_of_nothing_MIRR_026(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with running_node(tmp_path, api=True) as node:
        node.apply(manifest())
        await node.clock.sleep(5)
        caplog.clear()
        await node.restart()
        await node.clock.sleep(5)
    assert [r.getMessage() for r in caplog.records if r.name.endswith("mirror")] == []


async def test_pods_that_end_while_the_runtime_goes_away_leave_no_traceback_LIFE_071(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """What the runtime answers last is that the containers have stopped."""
    caplog.set_level(logging.INFO)
    names = [f"p{number}" for number in range(5)]

    async with running_node(tmp_path) as node:
        for name in names:
            node.apply(manifest(name=name), f"{name}.yaml")
        await node.until(lambda: all(node.phase(f"{n}-golden") == "Running" for n in names), 10)
        node.cri.on("StopContainer").delays(3)
        for name in names:
            node.remove(f"{name}.yaml")
        await node.until(lambda: len(node.cri.calls("StopContainer")) == len(names), 10)
        lists = [
            node.cri.on(method).fails("UNAVAILABLE", "the runtime is away")
            for method in ("ListPodSandbox", "PodSandboxStatus", "ListContainers")
        ]
        await node.clock.sleep(60)
        for rule in lists:
            rule.remove()
        await node.until(lambda: node.phase("p0-golden") is None, 60)
    assert "step terminating failed: rpc error" in caplog.text
    assert "Traceback" not in caplog.text
