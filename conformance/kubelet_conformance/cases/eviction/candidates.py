"""Which pods may be evicted, by what they are measured, and what is reclaimed before."""

from typing import Any

from fakecri import stops, uses
from kubelet_conformance.cases.eviction.common import (
    BY_CONTAINER,
    CYCLE_S,
    MI,
    evicted_for,
    first_victim,
    has_condition,
    hungry,
    nothing_happens,
)
from kubelet_conformance.cases.images.stored import change_images, gone, preload, user_of
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal, expect_order
from kubelet_conformance.harness.manifests import OTHER_IMAGE, container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import exits, runs
from kubelet_conformance.registry import Feature, conformance

API, NODE, SHORT = Feature.API, Feature.NODE_RESOURCES, Feature.SHORTAGE
FAULTS, RESTART, VIRTUAL = Feature.FAULTS, Feature.RESTART, Feature.VIRTUAL_TIME
MEMORY = "memory.available"
HARD: dict[str, Any] = {"evictionHard": {MEMORY: "200Mi"}}
NODEFS: dict[str, Any] = {"evictionHard": {"nodefs.available": "1Gi"}}
IMAGEFS: dict[str, Any] = {"evictionHard": {"imagefs.available": "1Gi"}}
SMALL = {"memory": "8Mi", "cpu": "1m"}
OLD_S = 150  # images are kept for two minutes after they were first seen (GC-103)


@conformance(
    id="rank-by-the-cgroup", rules=["EVIC-029.2", "EVIC-029.3", "EVIC-080.3"],
    needs=[API, NODE, Feature.CGROUPS, FAULTS], node_config={**BY_CONTAINER, **HARD},
)  # fmt: skip
async def pods_are_ranked_by_their_cgroups(node: Node) -> None:
    """Pods are ranked by the memory of their cgroups, whatever the runtime says of their
    containers; the message about the one that is evicted has what the runtime says."""

    def lie(answer: Any) -> None:
        for row in answer.stats:
            pod_name = row.attributes.labels["io.kubernetes.pod.name"]
            used_mi = 900 if pod_name == node.runtime.pod_name("a-little") else 77
            row.memory.working_set_bytes.value = used_mi * MI

    await node.api.run_pods(hungry("a-little", memory_mi=50), hungry("much", memory_mi=120))
    with node.runtime.on("ListContainerStats").changes_answer(lie):
        node.machine.leave_memory(150 * MI)
        expect_equal(node, await first_victim(node), "much", "victim")
    message = node.events("Evicted")[0]["message"]
    expect(node, "Container main was using 77Mi, request is 0" in message, "77Mi told", message)


@conformance(
    id="rank-without-cgroups", rules=["EVIC-029.2", "EVIC-080.3"], needs=[API, NODE],
    node_config={
        **BY_CONTAINER, **HARD, "cgroupsPerQOS": False, "enforceNodeAllocatable": []
    },
)  # fmt: skip
async def pods_without_cgroups_are_ranked_by_their_containers(node: Node) -> None:
    """Where pods have no cgroups the memory of a pod is the sum of its containers."""
    work = runs(stops(1), uses(memory_bytes=60 * MI))
    both = pod("two", container("a", work), container("b", work))
    await node.api.run_pods(hungry("one", memory_mi=80), both)
    node.machine.leave_memory(150 * MI)
    expect_equal(node, await first_victim(node), "two", "victim")


@conformance(
    id="pid-sum-of-containers", rules=["EVIC-029.4", "EVIC-082.2"], needs=[API, SHORT],
    node_config={"evictionHard": {"pid.available": "1k"}},
)  # fmt: skip
async def the_processes_of_all_containers_count(node: Node) -> None:
    """The processes of a pod are those of all of its containers."""
    work = runs(stops(1), uses(pids=30))
    resources = {"requests": SMALL}
    both = pod("two", *(container(name, work, resources=resources) for name in ("a", "b")))
    await node.api.run_pods(hungry("one", processes=40, requests=SMALL), both)
    await node.machine.run_short("pid.available", 500)
    expect_equal(node, await first_victim(node), "two", "victim")


@conformance(
    id="late-pods-are-candidates", rules=["EVIC-052.1", "EVIC-055.6"], needs=[API, NODE],
    node_config={**HARD, "evictionPressureTransitionPeriod": "10s"},
)  # fmt: skip
async def pods_that_came_later_may_be_evicted(node: Node) -> None:
    """Whatever pods the kubelet has at that moment are ranked: one that came after an earlier
    eviction is evicted next, and one that has gone meanwhile is not."""
    await node.api.run_pods(hungry("a-small", memory_mi=40), hungry("first", memory_mi=120))
    await node.api.run_pods(hungry("gone", memory_mi=90))
    node.machine.leave_memory(150 * MI)
    expect_equal(node, await first_victim(node), "first", "victim")
    node.machine.leave_memory(900 * MI)
    await has_condition(node, "MemoryPressure", "False")
    await node.api.delete_pod("gone", grace_s=1)
    await node.api.run_pods(hungry("late", memory_mi=120, requests=SMALL))
    node.machine.leave_memory(150 * MI)
    await node.run_until(
        lambda: len(node.events("Evicted")) > 1, within_s=CYCLE_S, what="another eviction"
    )
    await node.events_arrive()
    names = [event["involvedObject"]["name"] for event in node.events("Evicted")]
    expect_equal(node, names[:2], ["first", "late"], "victims")
    expect(node, "gone" not in names, "no eviction of a pod that is gone", names)


@conformance(
    id="layers-are-measured-with-images", rules=["EVIC-024", "EVIC-042.2"],
    needs=[API, NODE, RESTART], node_config=IMAGEFS,
)  # fmt: skip
async def a_full_node_is_no_full_disk_of_layers(node: Node) -> None:
    """With a disk of their own for images and layers, the threshold of that disk, which holds for
    layers, too, is not met because the node's own disk is full."""
    await node.machine.separate_disks()
    await node.api.run_pods(hungry("web", disk_mi=50, requests=SMALL))
    node.machine.leave_disk(100 * MI)
    await nothing_happens(node)


@conformance(
    id="admission-pressure-first", rules=["EVIC-110.1", "EVIC-110.2", "EVIC-111.4"],
    needs=[API, NODE], node_config=HARD,
)  # fmt: skip
async def pressure_is_asked_about_first(node: Node) -> None:
    """A pod that could not run on this node anyway is refused for the pressure while there is some,
    and nothing is asked of the runtime for it; without pressure it is refused for the other reason,
    and a pod without requests starts."""
    strange = pod("strange", nodeSelector={"no": "such"})
    await node.api.run_pods(pod("before"))
    node.machine.leave_memory(150 * MI)
    await has_condition(node, "MemoryPressure")
    node.machine.leave_memory(900 * MI)
    await node.run_for(limits.EVICTION_CYCLE_S + 1)
    await node.api.create_pod(strange)
    within_s = limits.START_S + limits.STATUS_PASS_S
    await node.run_until(lambda: node.api.phase("strange") == "Failed", within_s=within_s)
    reason = (node.api.pod("strange") or {})["status"]["reason"]
    expect_equal(node, reason, "Evicted", "reason")
    await node.run_for(2 * limits.HOUSEKEEPING_S)
    calls = [call.method for call in node.calls(pod="strange")]
    expect_equal(node, calls, [], "calls for a pod that was refused")


@conformance(
    id="restart-admits-running-pods", rules=["EVIC-112.2", "EVIC-112.1"],
    needs=[API, NODE, FAULTS, RESTART],
    node_config={
        "evictionSoft": {MEMORY: "200Mi"},
        "evictionSoftGracePeriod": {MEMORY: "1h"},
    },
)  # fmt: skip
async def pods_that_run_are_admitted_again_under_pressure(node: Node) -> None:
    """A kubelet that starts under pressure does not know of it before its first look: the pods that
    run are admitted again, one without requests, too."""
    await node.api.run_pods(hungry("web", memory_mi=10))
    node.machine.leave_memory(150 * MI)
    await has_condition(node, "MemoryPressure")
    await node.kubelet.stop()
    with node.runtime.on("ImageFsInfo").delays(8):
        await node.kubelet.start()
        await node.run_for(2 * limits.EVICTION_CYCLE_S)
    await node.run_until(lambda: node.running("web"), within_s=limits.START_S, what="web runs")
    expect_equal(node, node.api.phase("web"), "Running", "phase of web")
    expect_equal(node, node.count("StopContainer"), 0, "stops")
    expect_equal(node, node.event_count("Evicted"), 0, "events Evicted")


@conformance(
    id="reclaim-order", rules=["EVIC-071.3", "EVIC-071.1", "EVIC-070.1"],
    needs=[API, NODE, VIRTUAL, Feature.IMAGE_GC], node_config=NODEFS,
)  # fmt: skip
async def containers_then_sandboxes_then_logs(node: Node) -> None:
    """Under disk pressure the dead containers of a pod that has ended go first, then its sandbox,
    then what is left of logs of pods that are not there any more."""
    work = exits(0, uses(disk_bytes=700 * MI), after_s=1)
    await node.api.create_pod(pod("done", container("main", work), restartPolicy="Never"))
    await node.run_until(
        lambda: node.api.phase("done") == "Succeeded", within_s=2 * limits.START_S, what="the end"
    )
    # Container GC comes every 60 s; the next one is not due while this case looks.
    await node.run_for(65 - node.now_s % 60)
    stale = node.machine.directory("logs") / "default_gone_0123"
    stale.mkdir(parents=True)
    node.machine.leave_disk(500 * MI)
    await node.run_until(lambda: not stale.exists(), within_s=CYCLE_S, what="the logs are removed")
    expect_order(
        node,
        node.writes("done")[-3:],
        ["RemoveContainer main/0", "StopPodSandbox/0", "RemovePodSandbox/0"],
        "removal",
    )


@conformance(
    id="reclaim-images-in-order", rules=["EVIC-072.1", "EVIC-072.2", "EVIC-072.4"],
    needs=[API, NODE, VIRTUAL, FAULTS, Feature.IMAGE_GC, Feature.REGISTRY], node_config=NODEFS,
)  # fmt: skip
async def unused_images_go_the_longest_unused_first(node: Node) -> None:
    """Under disk pressure every image goes that no container uses and that is not pinned, one that
    was never used before one that was; images of running and of ended containers stay."""
    changed = change_images(pinned={"pinned": True}, size={"never": 1, "used": 1})
    setup = container("setup", exits(0), image=OTHER_IMAGE)
    main = container("main", runs(stops(1), uses(disk_bytes=10 * MI)))
    with node.runtime.on("ListImages").changes_answer(changed):
        await node.api.run_pods(pod("web", main, init=[setup]))
        await preload(node, "never", "pinned")
        await node.api.create_pod(await user_of(node, "used"))
        await node.run_for(310)  # images are looked for every 5 minutes
        await node.api.delete_pod("used")
        await node.run_for(310 + OLD_S)
        node.machine.leave_disk(500 * MI)
        expect_equal(node, await first_victim(node), "web", "victim")
        before = node.calls("StopContainer", pod="web")[0].started_s
        count = sum(call.started_s < before for call in node.calls("RemoveImage"))
        await node.run_for(limits.EVICTION_CYCLE_S)
    expect_equal(node, gone(node)[:count], ["never", "used"], "images removed before the eviction")
    expect(node, "pinned" not in gone(node), "the pinned image stays", gone(node))


@conformance(
    id="reclaim-before-the-sources", rules=["EVIC-071.4"],
    needs=[API, NODE, VIRTUAL, RESTART, Feature.IMAGE_GC], node_config=NODEFS,
)  # fmt: skip
async def nothing_of_unheard_pods_is_reclaimed(node: Node) -> None:
    """A kubelet that has not heard of its pods yet, because the API server is slow, removes none of
    their dead containers under disk pressure."""
    work = exits(0, after_s=1)
    await node.api.create_pod(pod("done", container("main", work), restartPolicy="Never"))
    await node.run_until(
        lambda: node.api.phase("done") == "Succeeded", within_s=2 * limits.START_S, what="the end"
    )
    await node.kubelet.stop()
    node.machine.leave_disk(500 * MI)
    with node.api.slow("GET", "/api/v1/pods", 60):
        await node.kubelet.start()
        await node.run_for(40)
        expect_equal(node, node.count("RemoveContainer"), 0, "removals of containers")
    await node.run_until(
        lambda: node.count("RemoveContainer", pod="done"),
        within_s=60 + limits.START_S + 2 * CYCLE_S,
        what="the removal of the dead container",
    )


@conformance(
    id="limit-of-the-first-volume", rules=["EVIC-100.3"], needs=[API, Feature.STATUS],
    node_config={"volumeStatsAggPeriod": "5s"}, alone=True,
)  # fmt: skip
async def the_first_volume_above_its_limit_is_told(node: Node) -> None:
    """Of two volumes above their limits the first one in the spec is told, and no other."""
    volumes = [{"name": name, "emptyDir": {"sizeLimit": "64Ki"}} for name in ("z", "a")]
    mounts = [{"name": name, "mountPath": f"/{name}"} for name in ("z", "a")]
    main = container("main", runs(stops(1)), volumeMounts=mounts)
    await node.api.run_pods(pod("web", main, volumes=volumes))
    for name in ("z", "a"):
        node.machine.write_volume_file("web", name, "file", "x" * 100_000)
    text = 'Usage of EmptyDir volume "z" exceeds the limit "64Ki". '
    within_s = 2 * 5 + 5 + 2 * limits.EVICTION_CYCLE_S + limits.STOP_S
    await evicted_for(node, "web", text, within_s=within_s)
    expect_equal(node, (node.api.pod("web") or {})["status"]["message"], text, "message")


@conformance(
    id="image-numbers-do-not-count", rules=["EVIC-028.2", "EVIC-028.1"], needs=[API, NODE, FAULTS],
    node_config=IMAGEFS,
)  # fmt: skip
async def what_the_runtime_says_of_its_use_does_not_count(node: Node) -> None:
    """What the runtime says that its images use is not looked at: the file system at its mount
    point is measured."""

    def lie(answer: Any) -> None:
        for row in (*answer.image_filesystems, *answer.container_filesystems):
            row.used_bytes.value = 1 << 60
            row.inodes_used.value = 1 << 60

    await node.api.run_pods(hungry("web", disk_mi=50, requests=SMALL))
    with node.runtime.on("ImageFsInfo").changes_answer(lie):
        await nothing_happens(node)


@conformance(
    id="evicted-stays-over-a-restart", rules=["EVIC-095.2", "EVIC-095.1"],
    needs=[API, NODE, RESTART], node_config=HARD,
)  # fmt: skip
async def an_evicted_pod_is_not_started_by_the_next_kubelet(node: Node) -> None:
    """A pod that was evicted is not started again when there is room: not by this kubelet, and not
    by the next one."""
    await node.api.run_pods(hungry("web", memory_mi=100))
    node.machine.leave_memory(150 * MI)
    await evicted_for(node, "web", "The node was low on resource: memory. ", within_s=2 * CYCLE_S)
    node.machine.leave_memory(4000 * MI)
    await node.run_for(limits.SYNC_ERROR_S + limits.NOTICE_S)
    expect_equal(node, node.count("StartContainer", pod="web"), 1, "starts")
    await node.kubelet.restart()
    await node.run_for(limits.START_S + limits.SYNC_ERROR_S)
    expect_equal(node, node.count("StartContainer", pod="web"), 1, "starts by both kubelets")
    expect_equal(node, node.count("RunPodSandbox", pod="web"), 1, "sandboxes")
    expect_equal(node, node.api.phase("web"), "Failed", "phase")


@conformance(
    id="rank-cache-of-containers", rules=["EVIC-026.2", "EVIC-026.1", "EVIC-080.3"],
    needs=[API, NODE, Feature.CGROUPS, Feature.CGROUP_V1], node_config=HARD,
)  # fmt: skip
async def page_cache_below_a_pod_does_not_count_either(node: Node) -> None:
    """With cgroup v1 inactive page cache of groups below that of a pod is no part of what the pod
    uses."""
    await node.api.run_pods(hungry("cached", memory_mi=50), hungry("web", memory_mi=80))
    below = (*node.cgroups.of_pod("cached"), "below")
    node.cgroups.make(*below)
    node.cgroups.fill_cache(100 * MI, *below)
    node.machine.leave_memory(150 * MI)
    expect_equal(node, await first_victim(node), "web", "victim")


@conformance(
    id="thresholds-by-flags", rules=["EVIC-002.2", "EVIC-002.1"], needs=[API, NODE, RESTART],
    alone=True,
)  # fmt: skip
async def thresholds_may_be_flags(node: Node) -> None:
    """`--eviction-soft` and its grace period are lists of `signal<value` and `signal=value`, which
    hold over the configuration's."""
    await node.kubelet.restart(
        f"--eviction-soft={MEMORY}<200Mi,nodefs.available<1Mi",
        f"--eviction-soft-grace-period={MEMORY}=15s,nodefs.available=1m",
    )
    await node.api.run_pods(hungry("web", memory_mi=100))
    node.machine.leave_memory(150 * MI)
    await has_condition(node, "MemoryPressure")
    text = "The node was low on resource: memory. Threshold quantity: 200Mi, available: 150Mi. "
    await evicted_for(node, "web", text, within_s=15 + 2 * CYCLE_S)
