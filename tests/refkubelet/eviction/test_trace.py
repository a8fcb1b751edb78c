"""Why a pod was evicted, as a line of the log."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from eviction_world import MEMORY, MI, Node
from pods import container, make_pod

from refkubelet.config.eviction_grammar import parse_thresholds
from refkubelet.config.eviction_thresholds import Threshold
from refkubelet.cri.usage import ContainerUsage
from refkubelet.eviction.cycle import Observation
from refkubelet.eviction.evictor import EvictionMetrics
from refkubelet.eviction.layout import (
    Layout,
)
from refkubelet.eviction.trace import rank_line, threshold_line
from refkubelet.host.disk_use import DiskUse
from refkubelet.stats.usage import PodFiles, PodUsage

pytestmark = pytest.mark.virtual_time

GI = 1 << 30


def uses(memory: int = 0, *, disk: int = 0, logs: int = 0, processes: int = 0) -> PodUsage:
    row = ContainerUsage(
        container_id="id",
        name="main",
        pod_uid="p",
        pod_name="p",
        pod_namespace="n",
        memory_working_set_bytes=memory,
        memory_time_ns=0,
        cpu_usage_core_ns=None,
        cpu_usage_nano_cores=None,
        rootfs_used_bytes=disk,
        rootfs_inodes_used=3,
    )
    return PodUsage((row,), None, processes, PodFiles({"main": DiskUse(logs, 2)}))


def threshold(signal: str, text: str, **more: Any) -> Threshold:
    (found,) = parse_thresholds({signal: text}, {}, {}, more.get("reclaim", {}))
    return found


def test_lines_of_thresholds_EVIC_053() -> None:
    seen = Observation(50 * MI, GI)
    line = threshold_line(threshold("memory.available", "10%"), seen)
    assert line == "memory.available 50Mi of 107374184, hard (EVIC-020 EVIC-053)"
    soft = parse_thresholds({}, {"pid.available": "2k"}, {"pid.available": "90s"}, {})[0]
    line = threshold_line(soft, Observation(1500, 4000))
    assert line == "pid.available 1500 of 2k, soft for 90 s (EVIC-025 EVIC-053)"
    reclaim = threshold("nodefs.available", "1Gi", reclaim={"nodefs.available": "5%"})
    assert threshold_line(reclaim, seen).endswith("hard, wanted 5% more (EVIC-022 EVIC-053)")


@pytest.mark.parametrize(
    ("signal", "layout", "usage", "wanted"),
    [
        (
            "memory.available",
            Layout.ONE,
            uses(2 * MI),
            "uses 2Mi, request 1Mi, priority 7 (EVIC-080)",
        ),
        ("memory.available", Layout.ONE, None, "no statistics, priority 7 (EVIC-080 EVIC-083)"),
        ("pid.available", Layout.ONE, uses(processes=9), "9 processes, priority 7 (EVIC-082)"),
        (
            "nodefs.available",
            Layout.ONE,
            uses(disk=3 * MI, logs=MI),
            "uses 4Mi, request 0, priority 7 (EVIC-081 EVIC-044)",
        ),
        (
            "imagefs.inodesFree",
            Layout.DEDICATED,
            uses(disk=3 * MI, logs=MI),
            "uses 3 inodes, priority 7 (EVIC-081 EVIC-045)",
        ),
        (
            "imagefs.available",
            Layout.SPLIT,
            uses(disk=3 * MI, logs=MI),
            "uses 0, request 0, priority 7 (EVIC-081 EVIC-046)",
        ),
    ],
)  # fmt: skip
def test_lines_of_ranks_EVIC_080_EVIC_081_EVIC_082(
    signal: str, layout: Layout, usage: Any, wanted: str
) -> None:
    pod = make_pod(container(memory="1Mi"), priority=7)
    assert (
        rank_line(pod, usage, signal=signal, layout=layout, place=(2, 5))
        == f"rank 2 of 5: {wanted}"
    )


async def test_every_decision_is_told_with_its_rules(caplog: pytest.LogCaptureFixture) -> None:
    hog = make_pod(container(memory="500Mi"), name="hog", priority=2)
    node = Node(make_pod(name="vital", priority=2 * 10**9), hog)
    node.memory_mi.update(vital=500, hog=450)
    with caplog.at_level(logging.INFO, "refkubelet.eviction"):
        await node.manager(**MEMORY).synchronize()
    assert [record.getMessage() for record in caplog.records] == [
        "memory.available 50Mi of 100Mi, hard (EVIC-020 EVIC-053)",
        "eviction manager: cannot evict a critical pod default/vital (uid-vital) (EVIC-085)",
        "evicting hog_default: memory.available, rank 2 of 2: uses 450Mi, request 500Mi, "
        "priority 2 (EVIC-080); grace 1 s (EVIC-086 EVIC-087)",
    ]


async def test_evictions_are_counted_by_signal_EVIC_096() -> None:
    node = Node(make_pod(name="hog"), make_pod(name="calm"))
    node.memory_mi.update(hog=950)
    manager = node.manager(**MEMORY)
    await manager.synchronize()
    assert dict(manager.metrics.evictions) == {"memory.available": 1}
    assert manager.metrics.stats_age["memory.available"].in_bucket[0] == 1


def test_ages_of_measurements_EVIC_096() -> None:
    metrics = EvictionMetrics()
    metrics.acted_on({"a": 10**9, "unknown": 0}, 4 * 10**9)
    assert set(metrics.stats_age) == {"a"}
    assert metrics.stats_age["a"].sum_s == 3.0
