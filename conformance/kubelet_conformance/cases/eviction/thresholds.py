"""The configuration of thresholds: what is refused, what is the default, and where a threshold
lies exactly."""

from typing import Any

from kubelet_conformance.cases.eviction.common import (
    CYCLE_S,
    MI,
    evicted_for,
    has_condition,
    hungry,
    nothing_happens,
)
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.registry import Feature, conformance

API, NODE, VIRTUAL = Feature.API, Feature.NODE_RESOURCES, Feature.VIRTUAL_TIME
MEMORY, DISK = "memory.available", "nodefs.available"
NOTHING: dict[str, Any] = {"evictionHard": None}
GI = 1024 * MI
DISK_BYTES, INODES = 100 * GI, 6_553_600
QUICK = {"evictionPressureTransitionPeriod": "1s"}

REFUSED: dict[str, dict[str, Any]] = {
    "unsupported eviction signal disk.available": {"evictionHard": {"disk.available": "1Gi"}},
    f"eviction percentage threshold {DISK} must be >= 0%: -5%": {"evictionHard": {DISK: "-5%"}},
    f"eviction percentage threshold {DISK} must be <= 100%: 110%": {"evictionHard": {DISK: "110%"}},
    f"eviction threshold {MEMORY} must be positive: 0": {"evictionHard": {MEMORY: "0"}},
    "unable to parse quantity's suffix": {"evictionHard": {MEMORY: "1K"}},
    "unable to parse numeric part of quantity": {"evictionHard": {MEMORY: "Ei"}},
    "quantities must match the regular expression": {"evictionHard": {MEMORY: "some"}},
    'strconv.ParseFloat: parsing "ten": invalid syntax': {"evictionHard": {DISK: "ten%"}},
    **{
        f"time: {words} {text!r}".replace("'", '"'): {
            "evictionSoft": {MEMORY: "1Mi"},
            "evictionSoftGracePeriod": {MEMORY: text},
        }
        for text, words in {"30": "missing unit in duration", "-": "invalid duration"}.items()
    },
    'time: unknown unit "d" in duration "1h1d"': {
        "evictionSoft": {MEMORY: "1Mi"},
        "evictionSoftGracePeriod": {MEMORY: "1h1d"},
    },
    f"grace period must be specified for the soft eviction threshold {MEMORY}": {
        "evictionSoft": {MEMORY: "1Mi"}
    },
    "invalid eviction grace period specified: -30s, must be a positive value": {
        "evictionSoft": {MEMORY: "1Mi"},
        "evictionSoftGracePeriod": {MEMORY: "-30s"},
    },
    f"eviction percentage minimum reclaim {DISK} must be positive: 0%": {
        "evictionMinimumReclaim": {DISK: "0%"}
    },
    f"negative eviction minimum reclaim specified for {MEMORY}": {
        "evictionMinimumReclaim": {MEMORY: "-1Mi"}
    },
}
"""What the kubelet says -> the fields that it must not accept."""


@conformance(
    id="thresholds-refused",
    rules=["EVIC-001.2", "EVIC-003.4", "EVIC-003.5", "EVIC-003.6", "EVIC-004.1", "EVIC-004.2",
           "EVIC-005.1", "EVIC-005.2"],
    needs=[API, Feature.RESTART],
)  # fmt: skip
async def wrong_thresholds_stop_the_start(node: Node) -> None:
    """A kubelet does not start with a threshold, grace period or minimum reclaim that is wrong, and
    says what is."""
    fine: dict[str, Any] = {
        "evictionHard": {MEMORY: "1Mi"}, "evictionSoft": {}, "evictionSoftGracePeriod": {},
        "evictionMinimumReclaim": {},
    }  # fmt: skip
    for words, config in REFUSED.items():
        error_text = (await node.kubelet.refused_start(**{**fine, **config})).replace('\\"', '"')
        expect(node, words in error_text, f"the words {words!r}", error_text[-600:])
        await node.kubelet.start()


@conformance(
    id="thresholds-unused", rules=["EVIC-001.1", "EVIC-003.2", "EVIC-004.3"], needs=[API, NODE],
    node_config={
        "evictionHard": {
            MEMORY: "0%", DISK: "100%", "allocatableMemory.available": "1Mi", "pid.available": "1",
        },
        "evictionSoftGracePeriod": {"imagefs.available": "1m"},
    },
)  # fmt: skip
async def signals_can_be_switched_off(node: Node) -> None:
    """Thresholds of 0% and 100% switch a signal off, and a grace period without a threshold is
    accepted."""
    await node.api.run_pods(hungry("web", memory_mi=50))
    node.machine.leave_memory(1 * MI)
    node.machine.leave_disk(1 * MI)
    await nothing_happens(node)


@conformance(
    id="thresholds-default", rules=["EVIC-006.1", "EVIC-022.2"], needs=[API, NODE, Feature.RESTART],
    node_config={**NOTHING, **QUICK},
)  # fmt: skip
async def without_thresholds_there_are_defaults(node: Node) -> None:
    """Without evictionHard pods are evicted below 100 MiB of memory, 10 % of the disk, 15 % of that
    of the images, and 5 % of the inodes of both."""
    await node.machine.separate_disks()
    machine = node.machine
    machine.leave_memory(101 * MI)
    machine.leave_disk(DISK_BYTES * 11 // 100)
    machine.leave_disk(DISK_BYTES * 16 // 100, disk="images")
    for disk in ("node", "images"):
        machine.leave_inodes(INODES * 6 // 100, disk=disk)
    await nothing_happens(node, for_s=limits.EVICTION_CYCLE_S + limits.NODE_STATUS_S)
    machine.leave_memory(99 * MI)
    await has_condition(node, "MemoryPressure")
    for disk in ("node", "images"):
        machine.leave_disk(DISK_BYTES * (9 if disk == "node" else 14) // 100, disk=disk)
        await has_condition(node, "DiskPressure")
        machine.leave_disk(DISK_BYTES // 2, disk=disk)
        await has_condition(node, "DiskPressure", "False")
        machine.leave_inodes(INODES * 4 // 100, disk=disk)
        await has_condition(node, "DiskPressure")
        machine.leave_inodes(INODES // 2, disk=disk)
        await has_condition(node, "DiskPressure", "False")


@conformance(
    id="thresholds-replace-defaults", rules=["EVIC-006.2", "EVIC-006.3"],
    needs=[API, NODE, Feature.RESTART],
    node_config={"evictionHard": {MEMORY: "200Mi"}, **QUICK},
    since="1.33",
)  # fmt: skip
async def thresholds_replace_all_defaults(node: Node) -> None:
    """With evictionHard only its own thresholds hold; with mergeDefaultEvictionSettings those that
    it does not name are the defaults."""
    node.machine.leave_disk(DISK_BYTES // 100)
    await nothing_happens(node, for_s=limits.EVICTION_CYCLE_S + limits.NODE_STATUS_S)
    await node.kubelet.restart(mergeDefaultEvictionSettings=True)
    await has_condition(node, "DiskPressure")
    expect_equal(
        node, node.api.node_condition("MemoryPressure").get("status"), "False", "MemoryPressure"
    )
    node.machine.leave_memory(150 * MI)
    await has_condition(node, "MemoryPressure")


@conformance(
    id="threshold-share", rules=["EVIC-003.1", "EVIC-020.2"], needs=[API, NODE],
    node_config={"evictionHard": {MEMORY: "12.5%"}},
)  # fmt: skip
async def a_share_may_have_a_fraction(node: Node) -> None:
    """A threshold of 12.5% is an eighth of all memory."""
    await node.api.run_pods(hungry("web", memory_mi=100))
    node.machine.leave_memory(1024 * MI)
    await nothing_happens(node, for_s=limits.EVICTION_CYCLE_S + limits.NODE_STATUS_S)
    node.machine.leave_memory(1020 * MI)
    message = "The node was low on resource: memory. Threshold quantity: 1Gi, available: 1020Mi. "
    await evicted_for(node, "web", message, within_s=2 * CYCLE_S)


@conformance(
    id="threshold-share-of-pids", rules=["EVIC-025.1", "EVIC-025.2"], needs=[API, NODE],
    node_config={"evictionHard": {"pid.available": "3%"}},
)  # fmt: skip
async def a_share_of_the_processes(node: Node) -> None:
    """A threshold of pid.available in percent is a share of the most processes there may be."""
    node.machine.leave_pids(990)
    await nothing_happens(node, for_s=limits.EVICTION_CYCLE_S + limits.NODE_STATUS_S)
    node.machine.leave_pids(975)
    await has_condition(node, "PIDPressure")


@conformance(
    id="threshold-share-of-pods", rules=["EVIC-008.1", "EVIC-021.2", "EVIC-060.1"],
    needs=[API, NODE],
    node_config={"evictionHard": {MEMORY: "5%"}, "kubeReserved": {"memory": "7Gi"}},
)  # fmt: skip
async def a_share_of_what_pods_may_use(node: Node) -> None:
    """For all pods together, a threshold in percent is a share of the limit of their cgroup."""
    await node.api.run_pods(hungry("web", memory_mi=700))
    await nothing_happens(node)
    await node.api.run_pods(hungry("more", memory_mi=280))
    await has_condition(node, "MemoryPressure")
    await evicted_for(node, "web", "The node was low on resource: memory. ", within_s=2 * CYCLE_S)


@conformance(
    id="threshold-of-pods-hard-only", rules=["EVIC-008.1", "EVIC-008.2"], needs=[API, NODE],
    node_config={
        "evictionHard": {MEMORY: "50Mi"},
        "evictionSoft": {MEMORY: "200Mi"},
        "evictionSoftGracePeriod": {MEMORY: "1s"},
        "evictionMinimumReclaim": {MEMORY: "200Mi"},
        "kubeReserved": {"memory": "7Gi"},
    },
)  # fmt: skip
async def only_hard_thresholds_hold_for_all_pods(node: Node) -> None:
    """For the memory of all pods together there are the hard thresholds, with their minimum
    reclaim, and not the soft ones."""
    names = ("a", "b", "c", "d", "e")
    await node.api.run_pods(*(hungry(name, memory_mi=180) for name in names))
    await nothing_happens(node)  # 124 MiB are left
    await node.api.run_pods(hungry("more", memory_mi=90))  # 34; then 214, and 394
    await node.run_until(
        lambda: node.event_count("Evicted") == 2, within_s=3 * CYCLE_S, what="two evictions"
    )
    await node.run_for(2 * limits.EVICTION_CYCLE_S)
    expect_equal(node, node.event_count("Evicted"), 2, "evictions")


@conformance(
    id="transition-default", rules=["EVIC-007.1"], needs=[API, NODE, VIRTUAL],
    node_config={"evictionHard": {MEMORY: "200Mi"}},
)  # fmt: skip
async def a_condition_stays_for_five_minutes(node: Node) -> None:
    """Without evictionPressureTransitionPeriod a condition stays for 5 minutes after the
    pressure."""
    await stays_for_five_minutes(node)


@conformance(
    id="transition-of-zero", rules=["EVIC-007.1"], needs=[API, NODE, VIRTUAL],
    node_config={"evictionHard": {MEMORY: "200Mi"}, "evictionPressureTransitionPeriod": "0s"},
)  # fmt: skip
async def a_transition_period_of_zero_is_the_default(node: Node) -> None:
    """With evictionPressureTransitionPeriod 0s a condition stays for 5 minutes, too."""
    await stays_for_five_minutes(node)


async def stays_for_five_minutes(node: Node) -> None:
    """Expect that MemoryPressure ends 300 s after the last look that saw the pressure."""
    node.machine.leave_memory(100 * MI)
    await has_condition(node, "MemoryPressure")
    node.machine.leave_memory(900 * MI)
    await node.run_for(280)
    await node.api.create_pod(pod("web"))
    await node.run_until(
        lambda: node.api.phase("web") == "Failed", within_s=limits.START_S, what="web is refused"
    )
    await node.run_for(300 + limits.EVICTION_CYCLE_S - 280 + limits.NODE_STATUS_S)
    status = node.api.node_condition("MemoryPressure").get("status")
    expect_equal(node, status, "False", "MemoryPressure after 5 minutes")
