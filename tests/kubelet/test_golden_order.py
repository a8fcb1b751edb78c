"""The order of CRI calls equals that of the recorded real kubelet (golden s01, s02, s03, s08)."""

from __future__ import annotations

from pathlib import Path

import pytest
from golden import GOLDEN, observed, recorded
from node_world import Node, on_node

from fakecri import exits, ignores, replies, stops
from refkubelet.config.kubelet_config import CrashLoopBackOff


def program_latencies(node: Node) -> None:
    """Calls take about as long as they did on the recorded machine."""
    for method, seconds in (
        ("RunPodSandbox", 0.15),
        ("CreateContainer", 0.015),
        ("StartContainer", 0.075),
        ("StopPodSandbox", 0.1),
    ):
        node.cri.on(method).delays(seconds)


def test_one_pod_from_start_to_removal_s01(tmp_path: Path) -> None:
    async def body(node: Node) -> None:
        program_latencies(node)
        node.cri.behaves(stops(0, after_s=0.2))
        node.copy(GOLDEN / "s01" / "manifest.yaml", "one.yaml")
        await node.until(lambda: node.phase("one-golden") == "Running", 5)
        await node.clock.sleep(70)
        node.remove("one.yaml")
        await node.until(lambda: node.cri.count("RemovePodSandbox") == 1, 130)
        await node.clock.sleep(24)
        assert observed(node.cri.calls()) == recorded("s01")

    on_node(body, tmp_path)


@pytest.mark.parametrize(("scenario", "maximum_s"), [("s02", 300.0), ("s03", 5.0)])
def test_crash_loop_s02_s03(tmp_path: Path, scenario: str, maximum_s: float) -> None:
    async def body(node: Node) -> None:
        program_latencies(node)
        node.cri.behaves(exits(3, after_s=1), container="main")
        node.copy(GOLDEN / scenario / "manifest.yaml", "crash.yaml")
        await node.until(lambda: node.cri.count("RemoveContainer") == 8, 2000, 1.0)
        node.remove("crash.yaml")
        await node.until(lambda: node.cri.count("RemoveContainer") == 9, 70)
        expected = recorded(scenario)  # s02 was recorded up to StopPodSandbox
        assert observed(node.cri.calls())[: len(expected)] == expected

    on_node(body, tmp_path, crash_loop_back_off=CrashLoopBackOff(maximum_s))


def test_removal_with_a_hook_and_a_stubborn_container_s08(tmp_path: Path) -> None:
    async def body(node: Node) -> None:
        program_latencies(node)
        node.cri.behaves(ignores("SIGTERM"), container="stubborn")
        node.cri.behaves(
            stops(0, after_s=0.05),
            replies(["/bin/sh", "-c", "sleep 2"], delay_s=2.05),
            container="hook",
        )
        node.copy(GOLDEN / "s08" / "manifest.yaml", "term.yaml")
        await node.until(lambda: node.phase("term-golden") == "Running", 5)
        await node.clock.sleep(3.2)
        node.remove("term.yaml")
        await node.until(lambda: node.cri.count("RemoveContainer") == 2, 70)
        assert observed(node.cri.calls()) == recorded("s08")

    on_node(body, tmp_path)
