"""How pods are ranked with one disk for all, a disk for images and layers, and a disk for images
alone."""

from typing import Any

from kubelet_conformance.cases.eviction.common import (
    MI,
    evicted_for,
    first_victim,
    has_condition,
    hungry,
    nothing_happens,
)
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.node import Node
from kubelet_conformance.registry import Feature, Level, conformance

API, NODE, RESTART = Feature.API, Feature.NODE_RESOURCES, Feature.RESTART
VIRTUAL = Feature.VIRTUAL_TIME
REQUEST = {"memory": "8Mi", "cpu": "1m"}
NODEFS = {"evictionHard": {"nodefs.available": "1Gi"}}
IMAGEFS = {"evictionHard": {"imagefs.available": "1Gi"}}
CRIO = {"containerRuntimeEndpoint": "unix:///var/run/crio/crio.sock"}
PLENTY, LITTLE = 5000 * MI, 500 * MI
EVICTED_S = 2 * limits.EVICTION_CYCLE_S + limits.STOP_S
LOW = "The node was low on resource: ephemeral-storage. "


def writer(name: str, disk_mi: int, **more: Any) -> Any:
    """A pod with a writable layer of that size."""
    return hungry(name, disk_mi=disk_mi, requests=REQUEST, **more)


def log_something(node: Node, name: str, size_bytes: int) -> None:
    """Write another file beside the container's log."""
    node.machine.write_log(name, "main", "0.log.old", "x" * size_bytes)


async def unused_image_is_old(node: Node) -> None:
    """Images are kept for two minutes after they were first seen (GC-103)."""
    await node.run_for(150)


@conformance(
    id="imagefs-pressure",
    rules=["EVIC-023.1", "EVIC-045.2", "EVIC-040.2", "CRI-098.2"],
    needs=[API, NODE, RESTART],
    node_config=IMAGEFS,
)
async def a_disk_for_images_runs_out(node: Node) -> None:
    """With a disk of their own for images and layers, pods are ranked by their writable layers, and
    not by their logs, when it runs out. It is the first of the file systems that the runtime names;
    another one has space."""

    def another(answer: Any) -> None:
        first = answer.image_filesystems[0]
        answer.image_filesystems.add(timestamp=first.timestamp).fs_id.mountpoint = "/"

    node.runtime.on("ImageFsInfo").changes_answer(another)
    await node.machine.separate_disks()
    await node.api.run_pods(writer("small", 1), writer("large", 3))
    log_something(node, "small", 5 * MI)
    node.machine.leave_disk(LITTLE, disk="images")
    message = f"{LOW}Threshold quantity: 1Gi, available: 500Mi. "
    await evicted_for(node, "large", message, within_s=EVICTED_S)
    await has_condition(node, "DiskPressure")


@conformance(id="imagefs-inodes", rules=["EVIC-023.1", "EVIC-045.2"], needs=[API, NODE, RESTART],
             node_config={"evictionHard": {"imagefs.inodesFree": "1k"}})  # fmt: skip
async def inodes_of_the_disk_for_images_run_out(node: Node) -> None:
    """With a disk of their own for images and layers, pods are ranked by their inodes when it runs
    out of inodes."""
    await node.machine.separate_disks()
    small = hungry("small", inodes=10, requests=REQUEST)
    await node.api.run_pods(small, hungry("large", inodes=500, disk_mi=1, requests=REQUEST))
    node.machine.leave_inodes(200, disk="images")
    message_start = "The node was low on resource: inodes. Threshold quantity: 1k, available: 200. "
    await evicted_for(node, "large", message_start, within_s=EVICTED_S)
    message = (node.api.pod("large") or {})["status"]["message"]
    expect(node, "Container" not in message, "no container named by its storage", message)


@conformance(id="nodefs-ranks-logs", rules=["EVIC-045.1", "EVIC-029.6"], needs=[API, NODE, RESTART],
             node_config=NODEFS)  # fmt: skip
async def with_a_disk_for_images_logs_count_on_the_other(node: Node) -> None:
    """With a disk of their own for images and layers, pods are ranked by their logs and volumes
    when the node's disk runs out."""
    await node.machine.separate_disks()
    await node.api.run_pods(writer("layer", 900), writer("logs", 1))
    log_something(node, "logs", 2 * MI)
    node.machine.leave_disk(LITTLE)
    expect_equal(node, await first_victim(node), "logs", "victim")


@conformance(id="nodefs-reclaims-nothing", rules=["EVIC-045.3"],
             needs=[API, NODE, RESTART, VIRTUAL, Feature.IMAGE_GC], node_config=NODEFS)  # fmt: skip
async def removing_images_does_not_free_the_node_s_disk(node: Node) -> None:
    """With a disk of their own for images no image is removed when the node's disk runs out: that
    would free nothing there."""
    await node.machine.separate_disks()
    await node.api.run_pods(writer("web", 100))
    await unused_image_is_old(node)
    node.machine.leave_disk(LITTLE)
    expect_equal(node, await first_victim(node), "web", "victim")
    expect_equal(node, node.count("RemoveImage"), 0, "removed images")


@conformance(
    id="imagefs-reclaims-images",
    rules=["EVIC-045.4", "EVIC-070.4", "EVIC-070.6", "EVIC-056.4"],
    needs=[API, NODE, RESTART, VIRTUAL, Feature.IMAGE_GC],
    node_config=IMAGEFS,
)
async def unused_images_make_room_on_their_disk(node: Node) -> None:
    """When removing unused images is enough for their disk, no pod is evicted for it."""
    await node.machine.separate_disks()
    await node.api.run_pods(writer("web", 100))
    await unused_image_is_old(node)
    node.machine.leave_disk(1024 * MI - 1, disk="images")
    await node.run_until(
        lambda: node.count("RemoveImage"), within_s=EVICTED_S, what="removal of an image"
    )
    await node.run_for(2 * limits.EVICTION_CYCLE_S)
    expect_equal(node, node.count("StopContainer"), 0, "stops")
    expect(node, node.events("EvictionThresholdMet"), "an event EvictionThresholdMet")


@conformance(id="split-imagefs", rules=["EVIC-046.2", "EVIC-040.3"],
             needs=[API, NODE, RESTART, VIRTUAL, Feature.IMAGE_GC, Feature.SPLIT_DISK],
             node_config={**IMAGEFS, **CRIO})  # fmt: skip
async def images_alone_on_a_disk(node: Node) -> None:
    """When a disk that has only images runs out, pods use nothing of it and are ranked by priority
    alone."""
    await node.machine.separate_disks(split=True)
    await node.api.run_pods(writer("large", 900, priority=10), writer("low", 0, priority=1))
    node.machine.leave_disk(LITTLE, disk="images")
    expect_equal(node, await first_victim(node), "low", "victim")


@conformance(id="split-nodefs", rules=["EVIC-046.1", "EVIC-046.3"],
             needs=[API, NODE, RESTART, VIRTUAL, Feature.IMAGE_GC, Feature.SPLIT_DISK],
             node_config={**NODEFS, **CRIO})  # fmt: skip
async def layers_with_the_node_s_files(node: Node) -> None:
    """When images alone have a disk, writable layers count on the node's disk, and no image is
    removed for that one."""
    await node.machine.separate_disks(split=True)
    await node.api.run_pods(writer("few", 100), writer("most", 900))
    await unused_image_is_old(node)
    node.machine.leave_disk(LITTLE)
    expect_equal(node, await first_victim(node), "most", "victim")
    expect_equal(node, node.count("RemoveImage"), 0, "removed images")


@conformance(id="only-crio-splits", rules=["EVIC-040.3"], level=Level.DETAIL,
             needs=[API, NODE, RESTART, VIRTUAL], node_config=NODEFS)  # fmt: skip
async def other_runtimes_do_not_split(node: Node) -> None:
    """Unless the runtime is CRI-O, the kubelet does not ask it for a disk of containers and takes
    the layers to be with the images."""
    await node.machine.separate_disks(split=True)
    await node.api.run_pods(writer("layer", 900), writer("logs", 1))
    log_something(node, "logs", 2 * MI)
    node.machine.leave_disk(LITTLE)
    expect_equal(node, await first_victim(node), "logs", "victim")


@conformance(id="layout-decided-once", rules=["EVIC-040.1"], level=Level.DETAIL,
             needs=[API, NODE, RESTART, VIRTUAL], node_config=NODEFS)  # fmt: skip
async def the_layout_is_decided_at_the_start(node: Node) -> None:
    """The layout of the disks is read once, at the start: a disk for images that appears later
    changes nothing for a running kubelet."""
    await node.api.run_pods(writer("layer", 900), writer("logs", 1))
    log_something(node, "logs", 2 * MI)
    await node.machine.separate_disks(restart=False)
    node.machine.leave_disk(LITTLE)
    expect_equal(node, await first_victim(node), "layer", "victim")


@conformance(id="containerfs-not-yours", rules=["EVIC-042.1", "EVIC-042.4"], needs=[API],
             node_config={"evictionHard": {"containerfs.available": "99.9%",
                                           "containerfs.inodesFree": "99.9%"}})  # fmt: skip
async def thresholds_of_containerfs_are_ignored(node: Node) -> None:
    """A configured threshold for containerfs is accepted and ignored: the kubelet copies that of
    the disk which has the layers, and here that disk has none."""
    await node.api.run_pods(hungry("web", requests=REQUEST))
    await nothing_happens(node, for_s=2 * limits.EVICTION_CYCLE_S + 2)


@conformance(
    id="image-disk-frozen",
    rules=["EVIC-054", "EVIC-023.2", "EVIC-053.7", "EVIC-055.3"],
    needs=[API, NODE, RESTART],
    node_config=IMAGEFS,
)
async def an_old_measurement_acts_once(node: Node) -> None:
    """A measurement is acted on only once: while ImageFsInfo keeps its time stamp, no second pod is
    evicted for that disk."""
    await node.machine.separate_disks()
    plans = [writer(name, 10) for name in ("one", "two", "three")]
    await node.api.run_pods(*plans)
    node.machine.leave_disk(LITTLE, disk="images")
    node.machine.freeze_image_times()
    await first_victim(node)
    await node.run_for(4 * limits.EVICTION_CYCLE_S)
    expect_equal(node, node.event_count("EvictionThresholdMet"), 1, "events EvictionThresholdMet")
    expect_equal(node, len(node.events("Evicted")), 1, "evictions")
    node.machine.freeze_image_times(frozen=False)
    await node.run_until(
        lambda: len(node.events("Evicted")) > 1, within_s=EVICTED_S, what="another eviction"
    )


@conformance(id="reclaim-then-unrelated", rules=["EVIC-070.5", "EVIC-070.6"], level=Level.DETAIL,
             needs=[API, NODE, RESTART, VIRTUAL, Feature.IMAGE_GC],
             node_config={
                 "evictionHard": {"nodefs.available": "1Gi"},
                 "evictionSoft": {"memory.available": "200Mi"},
                 "evictionSoftGracePeriod": {"memory.available": "1h"},
             })  # fmt: skip
async def another_threshold_makes_a_reclaim_too_little(node: Node) -> None:
    """When removing images is enough for the disk, but memory is below a soft threshold whose grace
    period is not over, a pod is evicted for the disk all the same."""
    await node.api.run_pods(writer("web", 100))
    await unused_image_is_old(node)
    node.machine.leave_memory(100 * MI)
    node.machine.leave_disk(1024 * MI - 1)
    expect_equal(node, await first_victim(node), "web", "victim")
    expect(node, node.count("RemoveImage"), "an image was removed")
    message = node.events("Evicted")[0]["message"]
    expect(node, message.startswith(LOW), "a message that says that disk space was low", message)
