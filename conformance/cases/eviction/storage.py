"""Local storage limits of pods: volumes, the pod as a whole, its containers."""

from typing import Any

from conformance.cases.eviction.common import MI, evicted_for, hungry
from conformance.harness import limits
from conformance.harness.expect import expect, expect_equal
from conformance.harness.manifests import PodPlan, container, pod
from conformance.harness.node import Node
from conformance.harness.workload import runs
from conformance.registry import Feature, Level, conformance

API, STATUS = Feature.API, Feature.STATUS
FAST = {"volumeStatsAggPeriod": "5s"}
MEASURED_S = 2 * 5 + 5 + 2 * limits.EVICTION_CYCLE_S + limits.STOP_S
EVICTED_S = 3 * limits.EVICTION_CYCLE_S + limits.STOP_S
VOLUME = 'Usage of EmptyDir volume "scratch" exceeds the limit "64Ki". '


def with_volume(name: str, *, medium: str = "", **spec: Any) -> PodPlan:
    """A pod with an emptyDir that may not become larger than 64 KiB."""
    volume = {"name": "scratch", "emptyDir": {"sizeLimit": "64Ki", "medium": medium}}
    mounts = [{"name": "scratch", "mountPath": "/scratch"}]
    main = container("main", runs(stop_exit_code=1), volumeMounts=mounts)
    return pod(name, main, volumes=[volume], **spec)


def limited(name: str, disk_mi: int, limit: str, **spec: Any) -> PodPlan:
    """A pod with one container that writes so much into its writable layer."""
    return hungry(name, disk_mi=disk_mi, limits={"ephemeral-storage": limit}, **spec)


@conformance(
    id="volume-limit", rules=["EVIC-100", "EVIC-103"], needs=[API, STATUS], node_config=FAST
)
async def a_volume_above_its_limit_ends_the_pod(node: Node) -> None:
    """A pod whose emptyDir holds more than its sizeLimit is evicted, and another pod keeps
    running."""
    await node.api.run_pods(with_volume("full"), with_volume("fine"))
    node.machine.write_volume_file("full", "scratch", "file", "x" * 100_000)
    node.machine.write_volume_file("fine", "scratch", "file", "x" * 10_000)
    await evicted_for(node, "full", VOLUME, within_s=MEASURED_S)
    status = (node.api.pod("full") or {})["status"]
    expect_equal(node, status["message"], VOLUME, "message")
    kinds = [c["type"] for c in status["conditions"]]
    expect(node, "DisruptionTarget" not in kinds, "no condition DisruptionTarget", kinds)
    event = node.events("Evicted")[0]
    expect_equal(node, event["message"], VOLUME, "message of the event")
    expect_equal(node, event["metadata"].get("annotations"), None, "annotations of the event")
    expect_equal(node, node.api.phase("fine"), "Running", "phase of the other")


@conformance(
    id="volume-limit-late",
    rules=["EVIC-103"],
    level=Level.SHOULD,
    needs=[API, STATUS, Feature.VIRTUAL_TIME],
)
async def volumes_are_measured_every_one_or_two_minutes(node: Node) -> None:
    """A volume is measured at most once a minute, so a pod above its limit lives that long."""
    await node.api.run_pods(with_volume("full"))
    await node.run_for(65)  # measured empty in the first minute
    node.machine.write_volume_file("full", "scratch", "file", "x" * 100_000)
    began_s = node.now_s
    await evicted_for(node, "full", VOLUME, within_s=120 + EVICTED_S)
    waited_s = node.now_s - began_s
    expect(node, waited_s > 20, "the eviction after more than 20 s", f"{waited_s:.0f} s")


@conformance(
    id="volume-in-memory-limit",
    rules=["EVIC-100"],
    needs=[API, STATUS, Feature.NODE_RESOURCES],
    node_config=FAST,
)
async def a_volume_in_memory_has_a_limit_too(node: Node) -> None:
    """A pod whose emptyDir in memory holds more than its sizeLimit is evicted, too."""
    await node.api.run_pods(with_volume("full", medium="Memory"))
    node.machine.write_volume_file("full", "scratch", "file", "x" * 100_000)
    await evicted_for(node, "full", VOLUME, within_s=MEASURED_S)


@conformance(id="container-limit", rules=["EVIC-102", "EVIC-103"], needs=[API])
async def a_container_above_its_storage_limit_ends_the_pod(node: Node) -> None:
    """A pod is evicted when one container wrote more than its ephemeral-storage limit, although the
    sum of all containers' limits is not reached."""
    work = runs(disk_bytes=40 * MI, stop_exit_code=1)
    small, large = ({"limits": {"ephemeral-storage": text}} for text in ("20Mi", "500Mi"))
    plan = pod("web", container("main", work, resources=small), container("b", resources=large))
    await node.api.run_pods(plan)
    wanted = 'Container main exceeded its local ephemeral storage limit "20Mi". '
    await evicted_for(node, "web", wanted, within_s=EVICTED_S)
    timeouts = [c.request.timeout for c in node.calls("StopContainer")]
    expect_equal(node, timeouts, [2, 2], "timeouts of StopContainer")


@conformance(id="pod-limit", rules=["EVIC-101"], needs=[API])
async def a_pod_above_the_sum_of_its_limits_is_ended(node: Node) -> None:
    """The writes of a container without limit count against the sum of the other containers'
    limits."""
    work = runs(disk_bytes=40 * MI, stop_exit_code=1)
    asked = {"limits": {"ephemeral-storage": "20Mi"}}
    await node.api.run_pods(pod("web", container("main", resources=asked), container("b", work)))
    wanted = "Pod ephemeral local storage usage exceeds the total limit of containers 20Mi. "
    await evicted_for(node, "web", wanted, within_s=EVICTED_S)


@conformance(id="limits-all-at-once", rules=["EVIC-086", "EVIC-102"], needs=[API])
async def all_offenders_end_in_one_cycle(node: Node) -> None:
    """Two pods above their limits are evicted in the same cycle, and a pod within its limit keeps
    running."""
    plans = [limited(name, 40, "20Mi") for name in ("one", "two")]
    await node.api.run_pods(*plans, limited("fine", 10, "20Mi"))
    for name in ("one", "two"):
        await evicted_for(node, name, "Pod ephemeral", within_s=EVICTED_S)
    one, two = (node.times_s("StopContainer", pod=name)[0] for name in ("one", "two"))
    expect(node, abs(one - two) < limits.EVICTION_CYCLE_S - 1, "both in one cycle", (one, two))
    expect_equal(node, node.api.phase("fine"), "Running", "phase of the pod within its limit")


@conformance(id="limits-not-critical", rules=["EVIC-085", "EVIC-102"], needs=[API])
async def critical_pods_may_exceed_their_limits(node: Node) -> None:
    """A pod of a system priority that is above its storage limit keeps running."""
    vital = limited("vital", 40, "20Mi", priority=2_000_000_000)
    await node.api.run_pods(vital, limited("web", 40, "20Mi"))
    await evicted_for(node, "web", "Pod ephemeral", within_s=EVICTED_S)
    await node.run_for(limits.EVICTION_CYCLE_S)
    expect_equal(node, node.api.phase("vital"), "Running", "phase of the critical pod")


@conformance(
    id="limits-switched-off",
    rules=["EVIC-100", "EVIC-007"],
    needs=[API, STATUS],
    node_config={**FAST, "localStorageCapacityIsolation": False},
)
async def limits_can_be_switched_off(node: Node) -> None:
    """With localStorageCapacityIsolation off no pod is evicted for a volume above its limit."""
    await node.api.run_pods(with_volume("web"))
    node.machine.write_volume_file("web", "scratch", "file", "x" * 100_000)
    await node.run_for(MEASURED_S)
    expect_equal(node, node.api.phase("web"), "Running", "phase")


@conformance(
    id="limits-without-thresholds",
    rules=["EVIC-102"],
    needs=[API],
    node_config={"evictionHard": {"memory.available": "0%"}},
)
async def limits_need_no_thresholds(node: Node) -> None:
    """Storage limits hold on a node without any eviction threshold."""
    await node.api.run_pods(limited("web", 40, "20Mi"))
    await evicted_for(node, "web", "Pod ephemeral", within_s=EVICTED_S)
