"""What /metrics shows of the PLEG, the pods and their workers (PLEG-013, PLEG-303, MIRR-036)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from node_world import Node, running_node
from pods import manifest

from fakecri import exits

pytestmark = pytest.mark.virtual_time


def numbers(node: Node) -> dict[str, float]:
    """`name{labels}` -> value of everything that is not a part of a histogram."""
    text = node.kubelet.metrics.text()
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    found = dict(line.rsplit(" ", 1) for line in lines if "_bucket" not in line)
    return {name.removeprefix("kubelet_"): float(value) for name, value in found.items()}


async def test_pods_and_containers_are_counted_PLEG_013_MIRR_036(tmp_path: Path) -> None:
    async with running_node(tmp_path, api=True) as node:
        node.cri.behaves(exits(0), pod="job")
        node.apply(manifest())
        await node.create(manifest(name="job", restartPolicy="Never"))
        await node.clock.sleep(10)
        seen = numbers(node)
        assert seen["running_pods"] == 1
        assert seen['running_containers{container_state="running"}'] == 1
        assert seen['running_containers{container_state="exited"}'] == 1
        assert seen['desired_pods{static="true"}'] == seen['desired_pods{static=""}'] == 1
        assert seen['active_pods{static="true"}'] == 1
        assert seen['active_pods{static=""}'] == 0
        assert seen["mirror_pods"] == 1
        assert seen['working_pods{config="desired",lifecycle="sync",static="true"}'] == 1
        assert seen['working_pods{config="desired",lifecycle="terminated",static=""}'] == 1


async def test_relists_are_timed_PLEG_013(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await node.clock.sleep(10.5)
        seen = numbers(node)
        assert seen["pleg_relist_duration_seconds_count"] == 11
        assert seen["pleg_relist_interval_seconds_count"] == 10
        assert seen["pleg_relist_interval_seconds_sum"] == 10
        assert seen["pleg_discard_events"] == 0
        now_s = node.clock.wall_ns() / 1e9
        assert seen["pleg_last_seen_seconds"] == now_s - 0.5
        assert seen["evented_pleg_connection_error_count"] == 0


async def test_streams_of_events_are_counted_PLEG_303(tmp_path: Path) -> None:
    async with running_node(tmp_path, featureGates={"EventedPLEG": True}) as node:
        node.apply(manifest())
        await node.clock.sleep(5)
        seen = numbers(node)
        assert seen["evented_pleg_connection_success_count"] == 1
        assert seen["evented_pleg_connection_error_count"] == 0
        assert seen["evented_pleg_connection_latency_seconds_count"] >= 4  # sandbox and container


async def test_a_uid_that_came_back_and_a_stranger_are_counted_MIRR_006_LIFE_072(
    tmp_path: Path,
) -> None:
    async with running_node(tmp_path) as node:
        node.apply(manifest())
        await node.clock.sleep(5)
        node.remove()
        await node.clock.sleep(0.5)
        node.apply(manifest())
        restarted = node.kubelet.loop.housekeeping.metrics.restarted.values
        await node.until(lambda: restarted["true",] > 0, 60)
        assert numbers(node)['restarted_pods_total{static="true"}'] == 1
        node.remove()
        await node.stop()
        await node.start()
        await node.clock.sleep(10)
        assert numbers(node)["orphaned_runtime_pods_total"] == 1


async def test_evictions_are_counted_by_signal_EVIC_096(tmp_path: Path) -> None:
    async with running_node(tmp_path, api=True, evictionHard={"memory.available": "1Gi"}) as node:
        await node.create(manifest())
        await node.until(lambda: node.phase("web") == "Running")
        machine = node.cri.node
        machine.use_memory(machine.memory_bytes)
        await node.until(lambda: node.phase("web") != "Running", 30)
        machine.use_memory(0)
        await node.clock.sleep(30)
        seen = numbers(node)
        assert seen['evictions{eviction_signal="memory.available"}'] == 1
        assert seen['eviction_stats_age_seconds_count{eviction_signal="memory.available"}'] == 1


async def test_the_text_is_what_prometheus_reads(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await node.clock.sleep(3)
        text = node.kubelet.metrics.text()
        assert "# TYPE kubelet_running_pods gauge" in text
        assert "# TYPE kubelet_pleg_relist_duration_seconds histogram" in text
        assert re.search(r'kubelet_pleg_relist_duration_seconds_bucket\{le="\+Inf"\} 3\.0', text)


async def test_refusals_preemptions_and_removed_images_are_counted_GC_106_PREE_007(
    tmp_path: Path,
) -> None:
    async with running_node(
        tmp_path, api=True, maxPods=1, imageMaximumGCAge="5m", imageMinimumGCAge="1m"
    ) as node:
        await node.create(manifest(name="two", nodeSelector={"no": "such"}))
        await node.until(lambda: node.phase("two") == "Failed")
        await node.create(manifest(name="one", terminationGracePeriodSeconds=1))
        await node.until(lambda: node.phase("one") == "Running")
        await node.create(manifest(name="three"))
        await node.create(manifest(name="four", priority=2_000_000_000))
        await node.until(lambda: node.phase("four") == "Running")
        await node.clock.sleep(700)
        seen = numbers(node)
        assert seen['admission_rejections_total{reason="Other"}'] == 1
        assert seen['admission_rejections_total{reason="OutOfpods"}'] == 1
        assert seen['preemptions{preemption_signal="pods"}'] == 1
        assert (
            seen['image_garbage_collected_total{reason="age"}'] == 1
        )  # the other one, of sandboxes, is pinned
        assert seen["graceful_shutdown_start_time_seconds"] == 0
