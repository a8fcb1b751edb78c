"""Pods under the runtime's events instead of lists (gate EventedPLEG), in virtual time."""

from __future__ import annotations

from pathlib import Path

import pytest
from node_world import running_node
from pods import manifest

from fakecri import exits

pytestmark = pytest.mark.virtual_time

GATE = {"EventedPLEG": True}


async def test_a_sandbox_that_fails_halfway_is_tried_once_a_second_PLEG_302(tmp_path: Path) -> None:
    """As without events; a runtime that takes no time is no reason for more."""

    async with running_node(tmp_path, featureGates=GATE) as node:
        node.cri.on("RunPodSandbox").fails_halfway()
        node.apply(manifest())
        await node.clock.sleep(30)
        assert 25 <= len(node.cri.calls("RunPodSandbox")) <= 31


async def test_more_events_than_the_queue_holds_stop_nothing_PLEG_303(tmp_path: Path) -> None:
    async with running_node(tmp_path, featureGates=GATE) as node:
        many = [f"c{n}" for n in range(30)]
        for number in range(40):
            node.apply(manifest(*many, name=f"w{number}"), f"{number}.yaml")
        await node.until(lambda: len(node.cri.containers()) == 1200)
        await node.restart()
        await node.clock.sleep(5)
        node.apply(manifest(name="new"))
        await node.until(lambda: node.phase("new-golden") == "Running", 20)


async def test_work_done_in_a_lost_sandbox_is_not_done_again_PLEG_302(tmp_path: Path) -> None:
    async with running_node(tmp_path, featureGates=GATE) as node:
        node.cri.behaves(exits(0, after_s=1), container="work")
        node.apply(manifest("work", "web", name="job", restartPolicy="OnFailure"))
        await node.clock.sleep(10)
        node.cri.on("StartContainer", container="web").fails("UNKNOWN", "not now", times=1)
        node.cri.stop_sandbox()
        await node.clock.sleep(30)
        starts = [c.subject.container for c in node.cri.calls("StartContainer")]
        assert sorted(starts) == ["web", "web", "web", "work"]
