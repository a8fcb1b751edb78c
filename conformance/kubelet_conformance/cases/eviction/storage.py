"""Local storage limits of pods: volumes, the pod as a whole, its containers."""

from typing import Any

from fakecri import stops, uses
from kubelet_conformance.cases.eviction.common import MI, evicted_for, hungry
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import PodPlan, container, pod, sidecar
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import exits, runs
from kubelet_conformance.registry import Feature, Level, conformance

API, STATUS = Feature.API, Feature.STATUS
FAST = {"volumeStatsAggPeriod": "5s"}
MEASURED_S = 2 * 5 + 5 + 2 * limits.EVICTION_CYCLE_S + limits.STOP_S
EVICTED_S = 3 * limits.EVICTION_CYCLE_S + limits.STOP_S
VOLUME = 'Usage of EmptyDir volume "scratch" exceeds the limit "64Ki". '


def with_volume(name: str, *, medium: str = "", limit: str = "64Ki", **spec: Any) -> PodPlan:
    """A pod with an emptyDir that may not become larger than `limit`."""
    volume = {"name": "scratch", "emptyDir": {"sizeLimit": limit, "medium": medium}}
    mounts = [{"name": "scratch", "mountPath": "/scratch"}]
    main = container("main", runs(stops(1)), volumeMounts=mounts)
    return pod(name, main, volumes=[volume], **spec)


def limited(name: str, disk_mi: int, limit: str, **spec: Any) -> PodPlan:
    """A pod with one container that writes so much into its writable layer."""
    return hungry(name, disk_mi=disk_mi, limits={"ephemeral-storage": limit}, **spec)


@conformance(
    id="volume-limit",
    rules=["EVIC-100.1", "EVIC-103", "EVIC-093.3", "EVIC-094.2"],
    needs=[API, STATUS],
    node_config=FAST,
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
    await node.events_arrive()
    event = node.events("Evicted")[0]
    expect_equal(node, event["message"], VOLUME, "message of the event")
    expect_equal(node, event["metadata"].get("annotations"), None, "annotations of the event")
    expect_equal(node, node.api.phase("fine"), "Running", "phase of the other")


@conformance(
    id="volume-limit-late",
    rules=["EVIC-103", "EVIC-029.7", "EVIC-007.5"],
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
    rules=["EVIC-100.2"],
    needs=[API, STATUS],
    node_config=FAST,
)
async def a_volume_in_memory_has_a_limit_too(node: Node) -> None:
    """A pod whose emptyDir in memory holds more than its sizeLimit is evicted, too: its mount takes
    whole pages."""
    await node.api.run_pods(with_volume("full", medium="Memory", limit="5000"))
    node.machine.write_volume_file("full", "scratch", "file", "x" * 8000)
    await evicted_for(node, "full", VOLUME.replace("64Ki", "5k"), within_s=MEASURED_S)


@conformance(id="container-limit", rules=["EVIC-102.1", "EVIC-103"], needs=[API], alone=True)
async def a_container_above_its_storage_limit_ends_the_pod(node: Node) -> None:
    """A pod is evicted when one container wrote more than its ephemeral-storage limit, although the
    sum of all containers' limits is not reached."""
    work = runs(stops(1), uses(disk_bytes=40 * MI))
    small, large = ({"limits": {"ephemeral-storage": text}} for text in ("20Mi", "500Mi"))
    main, other = container("main", work, resources=small), container("b", resources=large)
    await node.api.run_pods(pod("web", main, other, grace_s=20))
    message = 'Container main exceeded its local ephemeral storage limit "20Mi". '
    await evicted_for(node, "web", message, within_s=EVICTED_S)
    timeouts = [c.request.timeout for c in node.calls("StopContainer")]
    expect_equal(node, timeouts, [2, 2], "timeouts of StopContainer")


@conformance(
    id="pod-limit", rules=["EVIC-101.1", "EVIC-101.2", "EVIC-101.3"], needs=[API], alone=True
)
async def a_pod_above_the_sum_of_its_limits_is_ended(node: Node) -> None:
    """The writes of a container without limit count against the sum of the other containers'
    limits."""
    work = runs(stops(1), uses(disk_bytes=40 * MI))
    sizes = {"limits": {"ephemeral-storage": "20Mi"}}
    await node.api.run_pods(pod("web", container("main", resources=sizes), container("b", work)))
    text = "Pod ephemeral local storage usage exceeds the total limit of containers 20Mi. "
    await evicted_for(node, "web", text, within_s=EVICTED_S)


@conformance(
    id="pod-limit-form", rules=["SRC-036.5", "EVIC-101.2"], needs=[API, Feature.STATUS], alone=True
)
async def a_sum_of_limits_is_shown_like_its_first_part(node: Node) -> None:
    """The message about a pod above the sum of its limits has the sum in the family of suffixes of
    the first limit that is not 0: decimal before a binary one, and the other way round."""
    for name, texts, total in (
        ("decimal", ("0Mi", "1M", "1Mi"), "2048576"),
        ("binary", ("0", "1Mi", "1024k"), "2024Ki"),
    ):
        sizes = [{"limits": {"ephemeral-storage": text}} for text in texts]
        named = zip("abc", sizes, strict=True)
        work = runs(stops(1), uses(disk_bytes=40 * MI))
        parts = [container(each, resources=size) for each, size in named]
        await node.api.run_pods(pod(name, *parts, container("d", work)))
        text = f"Pod ephemeral local storage usage exceeds the total limit of containers {total}. "
        await evicted_for(node, name, text, within_s=EVICTED_S)


@conformance(id="limits-all-at-once", rules=["EVIC-086.1", "EVIC-101.2"], needs=[API], alone=True)
async def all_offenders_end_in_one_cycle(node: Node) -> None:
    """Two pods above their limits are evicted in the same cycle, and a pod within its limit keeps
    running."""
    plans = [limited(name, 40, "20Mi") for name in ("one", "two")]
    await node.api.run_pods(*plans, limited("fine", 10, "20Mi"))
    for name in ("one", "two"):
        await evicted_for(node, name, "Pod ephemeral", within_s=EVICTED_S)
    first, two = (node.times_s("StopContainer", pod=name)[0] for name in ("one", "two"))
    expect(node, abs(first - two) < limits.EVICTION_CYCLE_S - 1, "both in one cycle", (first, two))
    expect_equal(node, node.api.phase("fine"), "Running", "phase of the pod within its limit")


@conformance(id="limits-not-critical", rules=["EVIC-085.3", "EVIC-101.2"], needs=[API], alone=True)
async def critical_pods_may_exceed_their_limits(node: Node) -> None:
    """A pod of a system priority that is above its storage limit keeps running."""
    vital = limited("vital", 40, "20Mi", priority=2_000_000_000)
    await node.api.run_pods(vital, limited("web", 40, "20Mi"))
    await evicted_for(node, "web", "Pod ephemeral", within_s=EVICTED_S)
    await node.run_for(limits.EVICTION_CYCLE_S)
    expect_equal(node, node.api.phase("vital"), "Running", "phase of the critical pod")


@conformance(
    id="limits-switched-off",
    rules=["EVIC-007.3"],
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
    rules=["EVIC-101.2"],
    needs=[API],
    node_config={"evictionHard": {"memory.available": "0%"}},
)
async def limits_need_no_thresholds(node: Node) -> None:
    """Storage limits hold on a node without any eviction threshold."""
    await node.api.run_pods(limited("web", 40, "20Mi"))
    await evicted_for(node, "web", "Pod ephemeral", within_s=EVICTED_S)


@conformance(
    id="limits-one-cycle",
    rules=["EVIC-086.1", "EVIC-101.2"],
    needs=[API, Feature.VIRTUAL_TIME],
    alone=True,
)
async def offenders_end_without_another_look(node: Node) -> None:
    """All pods above their limits are evicted before the kubelet measures again; a pod above its
    request, and one whose init container has a large limit, keep running."""
    disk = {"ephemeral-storage": "10Mi"}
    asks = hungry("asks", disk_mi=40, requests=disk, limits={"ephemeral-storage": "100Mi"})
    init = container("init", exits(0), resources={"limits": {"ephemeral-storage": "100Mi"}})
    work = runs(stops(1), uses(disk_bytes=40 * MI))
    small = container("main", resources={"limits": {"ephemeral-storage": "20Mi"}})
    large_init = pod("large-init", small, container("b", work), init=[init])
    await node.api.run_pods(
        limited("one", 40, "20Mi"), limited("two", 40, "20Mi"), asks, large_init
    )
    for name in ("one", "two"):
        await evicted_for(node, name, "Pod ephemeral", within_s=EVICTED_S)
    kinds = ("StopContainer", "ImageFsInfo")
    methods = [call.method for call in node.calls() if call.method in kinds]
    stop_calls = methods[methods.index("StopContainer") :][:2]
    expect_equal(node, stop_calls, ["StopContainer"] * 2, "no measurement between the two")
    await node.run_for(limits.EVICTION_CYCLE_S)
    for name in ("asks", "large-init"):
        expect_equal(node, node.api.phase(name), "Running", f"phase of {name}")


@conformance(id="limit-of-sidecar", rules=["EVIC-102.2"], needs=[API], alone=True)
async def a_sidecar_has_no_limit_of_its_own(node: Node) -> None:
    """A sidecar may write more than its own storage limit, while the pod stays within the sum."""
    work = runs(uses(disk_bytes=40 * MI))
    small, large = ({"limits": {"ephemeral-storage": text}} for text in ("20Mi", "500Mi"))
    helper = sidecar("helper", work, resources=small)
    await node.api.run_pods(pod("web", container("main", resources=large), init=[helper]))
    await node.run_for(2 * limits.EVICTION_CYCLE_S + limits.STOP_S)
    expect_equal(node, node.api.phase("web"), "Running", "phase")


@conformance(
    id="limits-of-logs", rules=["EVIC-101.1", "EVIC-102.1"], needs=[API, STATUS], alone=True
)
async def logs_count_against_limits(node: Node) -> None:
    """The logs of a container count against its own limit and against that of its pod, and so do
    other files beside the logs of the pod."""
    small, large = ({"limits": {"ephemeral-storage": text}} for text in ("1Mi", "500Mi"))
    main = container("main", runs(stops(1)), resources=small)
    free = container("free", runs(stops(1)))
    await node.api.run_pods(
        pod("own", main, container("b", runs(stops(1)), resources=large)),
        pod("all", main, free),
        pod("beside", main, free),
        pod("fine", main, free),
    )
    for name, place in (("own", "main"), ("all", "free"), ("beside", "")):
        node.machine.write_log(name, place, "0.log.old", "x" * 2 * MI)
    message = 'Container main exceeded its local ephemeral storage limit "1Mi". '
    await evicted_for(node, "own", message, within_s=EVICTED_S)
    for name in ("all", "beside"):
        text = "Pod ephemeral local storage usage exceeds the total limit of containers 1Mi. "
        await evicted_for(node, name, text, within_s=EVICTED_S)
    expect_equal(node, node.api.phase("fine"), "Running", "phase of the other")


@conformance(
    id="limits-in-order",
    rules=["EVIC-100.1", "EVIC-101.1"],
    needs=[API, STATUS],
    node_config=FAST,
    alone=True,
)
async def volumes_are_looked_at_first(node: Node) -> None:
    """A volume counts against the limit of its pod, but the limit of the volume is looked at first,
    of every volume that has one; a sizeLimit of 0 is none."""
    names = {"a": "1Mi", "b": "64Ki", "c": "0", "d": ""}
    volumes = [{"name": n, "emptyDir": {"sizeLimit": s} if s else {}} for n, s in names.items()]
    mounts = [{"name": name, "mountPath": f"/{name}"} for name in names]
    resources = {"limits": {"ephemeral-storage": "80Ki"}}
    main = container("main", runs(stops(1)), resources=resources, volumeMounts=mounts)
    unlimited = container("main", runs(stops(1)), volumeMounts=mounts)
    await node.api.run_pods(
        pod("volume", main, volumes=volumes),
        pod("whole", main, volumes=volumes),
        pod("free", unlimited, volumes=volumes),
    )
    for name, volume in (("volume", "b"), ("whole", "d"), ("free", "c"), ("free", "d")):
        node.machine.write_volume_file(name, volume, "file", "x" * 100_000)
    message = 'Usage of EmptyDir volume "b" exceeds the limit "64Ki". '
    await evicted_for(node, "volume", message, within_s=MEASURED_S)
    message = "Pod ephemeral local storage usage exceeds the total limit of containers 80Ki. "
    await evicted_for(node, "whole", message, within_s=MEASURED_S)
    await node.run_for(limits.EVICTION_CYCLE_S)
    expect_equal(node, node.api.phase("free"), "Running", "phase of the pod without limits")


@conformance(
    id="limit-on-two-disks",
    rules=["EVIC-102.1"],
    needs=[API, Feature.NODE_RESOURCES, Feature.RESTART],
)
async def a_layer_on_another_disk_is_not_the_container_s(node: Node) -> None:
    """With a disk of their own for images and layers, the layer does not count against the limit of
    its container."""
    await node.machine.separate_disks()
    work = runs(stops(1), uses(disk_bytes=40 * MI))
    small, large = ({"limits": {"ephemeral-storage": text}} for text in ("20Mi", "500Mi"))
    plan = pod("web", container("main", work, resources=small), container("b", resources=large))
    await node.api.run_pods(plan)
    await node.run_for(2 * limits.EVICTION_CYCLE_S + limits.STOP_S)
    expect_equal(node, node.api.phase("web"), "Running", "phase")
