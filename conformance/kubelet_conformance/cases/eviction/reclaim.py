"""What the kubelet removes under pressure before it evicts a pod: dead containers, unused
images."""

from fakecri import stops, uses
from kubelet_conformance.cases.eviction.common import (
    CYCLE_S,
    MI,
    evicted_for,
    first_victim,
    hungry,
    nothing_happens,
)
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import OTHER_IMAGE, container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import exits, in_turn, runs
from kubelet_conformance.registry import Feature, conformance

API, NODE, VIRTUAL, GC = (
    Feature.API,
    Feature.NODE_RESOURCES,
    Feature.VIRTUAL_TIME,
    Feature.IMAGE_GC,
)
SMALL = {"memory": "8Mi", "cpu": "1m"}
NODEFS = {"evictionHard": {"nodefs.available": "1Gi"}}
IMAGEFS = {"evictionHard": {"imagefs.available": "1Gi"}}
CRIO = {"containerRuntimeEndpoint": "unix:///var/run/crio/crio.sock"}
LOW = "The node was low on resource: ephemeral-storage. "
OLD_S = 150  # images are kept for two minutes after they were first seen (GC-103)
JUST_BELOW = 1024 * MI - 1


async def ended_pod(node: Node, disk_mi: int) -> None:
    """Run a pod `done` that ends, and leaves a layer of that size, of an image of its own."""
    work = exits(0, uses(disk_bytes=disk_mi * MI), after_s=1)
    plan = pod("done", container("main", work, image=OTHER_IMAGE), restartPolicy="Never")
    await node.api.create_pod(plan)
    await node.run_until(
        lambda: node.api.phase("done") == "Succeeded", within_s=2 * limits.START_S, what="the end"
    )


async def restarted_pod(node: Node) -> None:
    """Run a pod `web` whose container was started twice, so that a dead one is kept."""
    once = in_turn(exits(1, after_s=1), runs(stops(1)))
    resources = {"requests": SMALL}
    await node.api.create_pod(pod("web", container("main", once, resources=resources)))
    await node.run_until(
        lambda: node.api.container("web", "main").get("restartCount") == 1,
        within_s=20 + limits.START_S,
        what="a restart of web",
    )


async def dead_containers_make_room(node: Node) -> None:
    """Expect that the container of a pod that has ended is removed, then its image, and that this
    is enough."""
    await restarted_pod(node)
    await ended_pod(node, 700)
    await node.run_for(OLD_S)
    expect_equal(node, node.count("RemoveContainer", pod="done"), 0, "removals before the pressure")
    node.machine.leave_disk(500 * MI)
    await node.run_until(
        lambda: node.count("RemoveImage"), within_s=CYCLE_S, what="the removal of an image"
    )
    await nothing_stops(node)
    expect_equal(node, node.count("RemoveContainer", pod="done"), 1, "removed containers of done")
    expect_equal(node, node.count("RemoveContainer", pod="web"), 0, "removed containers of web")
    removed = node.calls("RemoveContainer", pod="done")[0]
    images = node.calls("RemoveImage")
    expect(node, removed.ended_s <= images[0].started_s, "containers are removed before images")
    ids = {call.request.image.image for call in images}
    used = node.calls("CreateContainer", pod="done")[0].request.config.image.image
    expect(node, used in ids, f"the removal of {used}, too", ids)


async def nothing_stops(node: Node) -> None:
    """Let two cycles pass and expect that no container is stopped."""
    await node.run_for(2 * limits.EVICTION_CYCLE_S)
    expect_equal(node, node.count("StopContainer"), 0, "stops")


@conformance(id="reclaim-dead-nodefs", needs=[API, NODE, VIRTUAL, GC], node_config=NODEFS,
             rules=["EVIC-044.3", "EVIC-070.1", "EVIC-070.6", "EVIC-071.1", "EVIC-071.2",
                    "EVIC-072.1"])  # fmt: skip
async def dead_containers_and_images_go_for_the_disk(node: Node) -> None:
    """Under disk pressure the dead containers of pods that have ended are removed first, and then
    their images; the dead container of a pod that runs stays, and no pod is evicted."""
    await dead_containers_make_room(node)


@conformance(id="reclaim-dead-imagefs", rules=["EVIC-044.4", "EVIC-070.1"],
             needs=[API, NODE, VIRTUAL, GC], node_config=IMAGEFS)  # fmt: skip
async def dead_containers_and_images_go_for_the_disk_of_images(node: Node) -> None:
    """With one disk for all, the same is removed when the disk of the images runs out."""
    await dead_containers_make_room(node)


@conformance(id="reclaim-split", rules=["EVIC-046.3", "EVIC-046.4"],
             needs=[API, NODE, Feature.RESTART, VIRTUAL, GC, Feature.SPLIT_DISK],
             node_config={**CRIO, **IMAGEFS})  # fmt: skip
async def images_alone_make_room_on_their_disk(node: Node) -> None:
    """When a disk that has only images runs out, images are removed and dead containers stay."""
    await node.machine.separate_disks(split=True)
    await ended_pod(node, 1)
    await node.run_for(OLD_S)
    node.machine.leave_disk(JUST_BELOW, disk="images")
    await node.run_until(
        lambda: node.count("RemoveImage"), within_s=2 * CYCLE_S, what="the removal of an image"
    )
    await nothing_stops(node)
    expect_equal(node, node.count("RemoveContainer"), 0, "removed containers")


@conformance(
    id="reclaim-minimum",
    rules=["EVIC-070.5"],
    needs=[API, NODE, VIRTUAL, GC],
    node_config={**NODEFS, "evictionMinimumReclaim": {"nodefs.available": "2Gi"}},
)
async def too_little_is_reclaimed(node: Node) -> None:
    """When removing images brings the disk above the threshold and not above the minimum reclaim, a
    pod is evicted."""
    await node.api.run_pods(hungry("web", requests=SMALL))
    await node.run_for(OLD_S)
    node.machine.leave_disk(JUST_BELOW)
    await evicted_for(node, "web", LOW, within_s=2 * CYCLE_S)
    expect(node, node.count("RemoveImage"), "an image was removed")


@conformance(id="reclaim-fails", rules=["EVIC-070.2"],
             needs=[API, NODE, VIRTUAL, GC, Feature.FAULTS], node_config=NODEFS)  # fmt: skip
async def a_failed_removal_does_not_keep_pods(node: Node) -> None:
    """When images cannot be removed, a pod is evicted in the same cycle."""
    await node.api.run_pods(hungry("web", requests=SMALL))
    await node.run_for(OLD_S)
    node.runtime.on("RemoveImage").fails("UNKNOWN", "in use")
    node.machine.leave_disk(JUST_BELOW)
    await evicted_for(node, "web", LOW, within_s=2 * CYCLE_S)
    expect(node, node.count("RemoveImage"), "an attempt to remove an image")
    await node.run_until(
        lambda: node.events("EvictionThresholdMet"), within_s=limits.EVENTS_S, what="its event"
    )
    expect_equal(node, node.event_count("EvictionThresholdMet"), 1, "acting cycles")


@conformance(id="reclaim-young-images", rules=["EVIC-072.3", "EVIC-063.1"],
             needs=[API, NODE, VIRTUAL, GC], node_config=NODEFS)  # fmt: skip
async def young_images_stay(node: Node) -> None:
    """Images that the kubelet first saw less than two minutes ago stay under disk pressure."""
    await node.api.run_pods(hungry("web", requests=SMALL))
    node.machine.leave_disk(JUST_BELOW)
    expect_equal(node, await first_victim(node), "web", "victim")
    expect_equal(node, node.count("RemoveImage"), 0, "removed images")


@conformance(id="reclaim-not-for-memory", rules=["EVIC-070.3"], needs=[API, NODE, VIRTUAL, GC],
             node_config={"evictionHard": {"memory.available": "200Mi"}})  # fmt: skip
async def images_do_not_make_room_in_memory(node: Node) -> None:
    """No image is removed when memory is short."""
    await node.api.run_pods(hungry("web", memory_mi=50))
    await node.run_for(OLD_S)
    node.machine.leave_memory(100 * MI)
    expect_equal(node, await first_victim(node), "web", "victim")
    expect_equal(node, node.count("RemoveImage"), 0, "removed images")


@conformance(id="containerfs-of-images", rules=["EVIC-042.2"],
             needs=[API, NODE, Feature.RESTART], node_config=NODEFS)  # fmt: skip
async def the_node_s_threshold_is_not_that_of_the_layers(node: Node) -> None:
    """With a disk of their own for images and layers, a threshold for the disk of the node does not
    hold for the layers."""
    await node.machine.separate_disks()
    await node.api.run_pods(hungry("web", disk_mi=50, requests=SMALL))
    node.machine.leave_disk(500 * MI, disk="images")
    await nothing_happens(node)


@conformance(id="image-disk-frozen-met", rules=["EVIC-053.6", "EVIC-053.7", "EVIC-054"],
             needs=[API, NODE, Feature.RESTART, VIRTUAL],
             node_config={"evictionHard": {"imagefs.available": "1Gi", "memory.available": "200Mi"},
                          "evictionMinimumReclaim": {"imagefs.available": "1Gi"}})  # fmt: skip
async def an_old_measurement_keeps_its_threshold_met(node: Node) -> None:
    """While the runtime's measurement is old, its threshold stays met without acting, and other
    thresholds act; with a new one the minimum reclaim counts still."""
    await node.machine.separate_disks()
    plans = [hungry(name, disk_mi=10, memory_mi=10, requests=SMALL) for name in ("a", "b", "c")]
    await node.api.run_pods(*plans)
    node.machine.leave_disk(500 * MI, disk="images")
    node.machine.freeze_image_times()
    await first_victim(node)
    await node.run_for(2 * limits.EVICTION_CYCLE_S)
    expect_equal(node, len(node.events("Evicted")), 1, "evictions by one measurement")
    node.machine.leave_disk(1500 * MI, disk="images")
    node.machine.leave_memory(195 * MI)
    await node.run_until(
        lambda: len(node.events("Evicted")) == 2, within_s=CYCLE_S, what="an eviction for memory"
    )
    message = node.events("Evicted")[1]["message"]
    expect(node, "resource: memory" in message, "an eviction for memory", message)
    await node.run_for(limits.EVICTION_CYCLE_S)
    node.machine.freeze_image_times(frozen=False)
    await node.run_until(
        lambda: len(node.events("Evicted")) == 3, within_s=CYCLE_S, what="another for the disk"
    )
