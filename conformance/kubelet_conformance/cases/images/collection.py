"""Collection of unused images, every 5 minutes: by usage of the images' disk, and by age."""

import re
from typing import Any

from kubelet_conformance.cases.images.seen import PULLED_S, wait_running
from kubelet_conformance.cases.images.stored import (
    PERIOD_S,
    change_images,
    gone,
    image_disk_bytes,
    preload,
    user_of,
)
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal, expect_spans
from kubelet_conformance.harness.limits import Span
from kubelet_conformance.harness.manifests import container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import exits
from kubelet_conformance.registry import Feature, KnownBug, Level, conformance

NEEDS = [Feature.STATUS, Feature.IMAGE_GC, Feature.VIRTUAL_TIME, Feature.RESTART, Feature.REGISTRY]
DISK = [*NEEDS, Feature.FAULTS, Feature.NODE_RESOURCES]
# Some part of every disk is used, so with these thresholds it is always too full.
TOO_FULL = {
    "imageGCHighThresholdPercent": 1,
    "imageGCLowThresholdPercent": 0,
    "imageMinimumGCAge": "1s",
}
SEVENTY_TO_FIFTY = {
    "imageGCHighThresholdPercent": 70,
    "imageGCLowThresholdPercent": 50,
    "imageMinimumGCAge": "1s",
}
ROUND_S = PERIOD_S + limits.NOTICE_S


@conformance(
    id="image-gc-unused",
    rules=["GC-102.1", "GC-102.3", "GC-101.2", "CRI-083.5"],
    needs=[*NEEDS, Feature.FAULTS],
    node_config=TOO_FULL,
)
async def unused_images_go_and_used_ones_stay(node: Node) -> None:
    """When the images' disk is too full, images that nothing uses are removed; those of running and
    of finished containers (by their id, whatever name the runtime lists), and those that the
    runtime has pinned stay."""

    def named(answer: Any) -> None:
        for row in answer.containers:
            row.image.image = "localhost/as-written:1"

    node.runtime.on("ListContainers").changes_answer(named)
    await preload(node, "spare", "pinned")
    await node.apply_static(pod("web"))
    job = await user_of(node, "job", workload=exits(0))
    job.manifest["spec"]["restartPolicy"] = "Never"
    await node.apply_static(job)
    await wait_running(node, "web")
    await node.run_until(
        lambda: node.phase("job") == "Succeeded", within_s=PULLED_S, what="the job has ended"
    )
    with node.runtime.on("ListImages").changes_answer(change_images(pinned={"pinned": True})):
        await node.kubelet.restart()  # the first round sees the images, the second removes some
        await node.run_until(lambda: "spare" in gone(node), within_s=ROUND_S, what="spare is gone")
        await node.run_for(limits.NOTICE_S)
    staying = {"job", "pinned", "busybox"}
    expect(node, not staying & set(gone(node)), f"{sorted(staying)} stay", gone(node))


@conformance(
    id="image-gc-mounted",
    rules=["GC-102.2"],
    needs=[*NEEDS, Feature.IMAGE_VOLUMES],
    node_config=TOO_FULL,
    since="1.35",
)
async def mounted_images_stay(node: Node) -> None:
    """When the images' disk is too full, an image that is a volume of a running pod stays."""
    await preload(node, "spare", "mounted")
    host = (await node.runtime.registry()).open_host
    data = {"name": "data", "image": {"reference": f"{host}/mounted:1"}}
    mount = [{"name": "data", "mountPath": "/data"}]
    await node.apply_static(pod("web", container("main", volumeMounts=mount), volumes=[data]))
    await wait_running(node, "web")
    await node.kubelet.restart()  # the first round sees the images, the second removes some
    await node.run_until(lambda: "spare" in gone(node), within_s=ROUND_S, what="spare is gone")
    await node.run_for(limits.NOTICE_S)
    expect(node, "mounted" not in gone(node), "the mounted image stays", gone(node))


@conformance(
    id="image-gc-thresholds",
    rules=["GC-101.2", "GC-101.3", "GC-103.3"],
    needs=DISK,
    node_config=SEVENTY_TO_FIFTY,
)
async def images_go_from_the_high_threshold_down_to_the_low_one(node: Node) -> None:
    """Nothing is removed while the used share, rounded up, is below the high threshold; at it as
    many images go as it takes to get down to the low one, and no more. The first of the runtime's
    image file systems counts."""

    def another(answer: Any) -> None:
        answer.image_filesystems.add().fs_id.mountpoint = "/nowhere"

    node.runtime.on("ImageFsInfo").changes_answer(another)
    whole = await image_disk_bytes(node)
    names = ("one", "two", "three", "four", "five", "six")
    await preload(node, *names)
    sizes = change_images(size=dict.fromkeys(names, whole // 20))
    with node.runtime.on("ListImages").changes_answer(sizes):
        node.machine.leave_disk(int(0.311 * whole))
        await node.kubelet.restart()
        await node.run_for(ROUND_S)
        expect_equal(node, gone(node), [], "images removed at 69 %")
        node.machine.leave_disk(int(0.305 * whole))
        await node.run_until(
            lambda: len(set(gone(node)) & set(names)) >= 4,
            within_s=ROUND_S,
            what="four images of 5 % are removed",
        )
        await node.run_for(limits.NOTICE_S)
    expect_equal(node, len(set(gone(node)) & set(names)), 4, "images of 5 % removed for 19.5 %")


@conformance(
    id="image-gc-order",
    rules=["GC-103.1"],
    needs=[*DISK, Feature.API],
    node_config=SEVENTY_TO_FIFTY,
)
async def images_that_were_not_used_for_longest_go_first(node: Node) -> None:
    """Images that were never used are removed first, the one that was there first before the other,
    and then those that were used, by the time of their last use."""
    whole = await image_disk_bytes(node)
    sizes = {"first": 10, "second": 30, "past": 10, "late": 50}  # thousandths of the disk
    changed = change_images(size={name: whole * n // 1000 for name, n in sizes.items()})
    with node.runtime.on("ListImages").changes_answer(changed):
        for name in ("late", "past"):
            await node.api.create_pod(await user_of(node, name))
        await preload(node, "first")
        await wait_running(node, "past")
        await wait_running(node, "late")
        await node.kubelet.restart()
        await node.run_for(PERIOD_S / 2)
        await node.api.delete_pod("past")
        await preload(node, "second")
        await node.run_for(PERIOD_S)
        await node.api.delete_pod("late")
        node.machine.leave_disk(whole // 20)
        await node.run_until(
            lambda: "late" in gone(node), within_s=ROUND_S, what="all unused images are removed"
        )
    order = [name for name in gone(node) if name in sizes]
    expect_equal(node, order, list(sizes), "order of removal")


@conformance(
    id="image-gc-young",
    rules=["GC-103.2", "GC-103.4"],
    needs=[*NEEDS, Feature.API],
    node_config={**TOO_FULL, "imageMinimumGCAge": "7m"},
)
async def young_images_stay(node: Node) -> None:
    """The usage rule leaves an image alone for imageMinimumGCAge after the kubelet has first seen
    it, whenever it was used; a restarted kubelet sees every image for the first time."""
    await node.api.create_pod(await user_of(node, "used"))
    await preload(node, "early")
    await wait_running(node, "used")
    await node.kubelet.restart()
    await node.run_for(PERIOD_S / 2)
    await preload(node, "later")
    await node.run_for(PERIOD_S)
    expect_equal(node, gone(node), [], "images removed before the minimum age")
    await node.api.delete_pod("used")
    await node.run_until(
        lambda: {"early", "used"} <= set(gone(node)), within_s=ROUND_S, what="early and used go"
    )
    await node.run_for(limits.NOTICE_S)
    expect(node, "later" not in gone(node), "later stays: it was seen 5 min ago", gone(node))
    await node.kubelet.restart()
    await node.run_for(limits.START_S + limits.NOTICE_S)
    expect(node, "later" not in gone(node), "later stays after the restart", gone(node))


@conformance(
    id="image-gc-off",
    rules=["GC-101.4"],
    needs=DISK,
    node_config={**TOO_FULL, "imageGCHighThresholdPercent": 100},
)
async def a_high_threshold_of_100_switches_the_usage_rule_off(node: Node) -> None:
    """With imageGCHighThresholdPercent 100 no image is removed, however full the disk is."""
    await preload(node, "spare")
    node.machine.leave_disk((await image_disk_bytes(node)) // 500)
    await node.kubelet.restart()
    await node.run_for(ROUND_S + limits.NOTICE_S)
    expect_equal(node, gone(node), [], "removed images")


@conformance(id="image-gc-refused", rules=["GC-101.5"], needs=[Feature.RESTART], node_config={})
async def thresholds_must_differ(node: Node) -> None:
    """A kubelet whose low threshold equals the high one does not start."""
    log = await node.kubelet.refused_start(
        imageGCHighThresholdPercent=60, imageGCLowThresholdPercent=60
    )
    expect(node, "imageGCLowThresholdPercent" in log, "the field in the log", log)


@conformance(
    id="image-gc-no-capacity", rules=["GC-105.2", "NODE-070.3"], needs=[*DISK, Feature.API]
)
async def a_disk_without_a_size_is_told(node: Node) -> None:
    """A disk of images whose size is 0 is no full one: an event about the node says so, and no
    image is removed."""
    await preload(node, "spare")
    await node.machine.image_disk_without_size()
    await node.run_until(
        lambda: node.events("InvalidDiskCapacity"), within_s=ROUND_S, what="InvalidDiskCapacity"
    )
    event = node.events("InvalidDiskCapacity")[0]
    event_fields = event["type"], event["involvedObject"]["kind"], event["message"]
    expected_fields = ("Warning", "Node", "invalid capacity 0 on image filesystem")
    expect_equal(node, event_fields, expected_fields, "type, object, message")
    expect_equal(node, gone(node), [], "removed images")


def told_too_little(node: Node, whole: int, freed: int) -> None:
    """Expect the events of a disk of so many bytes on which too few were freed."""
    message = node.events("FreeDiskSpaceFailed")[0]["message"]
    size = f"{whole / 1024**3:.1f} GiB"
    message_pattern = (
        rf"Insufficient free disk space on the node's image filesystem \(7[56]% of {size} used\)\. "
        rf"Failed to free sufficient space by deleting unused images \(freed {freed} bytes\)"
        r"\. Investigate disk usage, as it could be used by active images, logs, volumes, or other "
        r"data\."
    )
    expect(node, re.fullmatch(message_pattern, message), f"message like {message_pattern}", message)
    for event in (*node.events("FreeDiskSpaceFailed"), *node.events("ImageGCFailed")):
        about = (event["type"], event["involvedObject"]["kind"], event["message"])
        expect_equal(node, about, ("Warning", "Node", message), "type, object, message")


@conformance(
    id="image-gc-not-enough",
    rules=["GC-105.1", "GC-105.3", "GC-106", "GC-101.1", "NODE-070.3"],
    needs=[*DISK, Feature.API],
    node_config=SEVENTY_TO_FIFTY,
    since="1.35",
)
async def too_little_freed_is_told(node: Node) -> None:
    """An image that cannot be removed counts as not freed, and the others go all the same; what is
    still too little is told in an event about the node; and a collection that fails is told from
    the second failure in a row on, 5 minutes after the first."""
    whole = await image_disk_bytes(node)
    names = ("one", "two", "three")
    await preload(node, *names)
    await node.api.create_pod(pod("web"))
    await wait_running(node, "web")
    sizes = change_images(size=dict.fromkeys([*names, "busybox:2"], whole // 10))
    with node.runtime.on("ListImages").changes_answer(sizes):
        await node.kubelet.stop()
        with node.runtime.on("ListImages").fails("UNKNOWN", "no lists today"):
            await node.kubelet.start()  # the first failure
            await node.run_for(limits.START_S)
        await node.run_for(PERIOD_S)  # a good round
        node.machine.leave_disk(whole // 4)
        with node.runtime.on("RemoveImage").fails("UNKNOWN", "held by a snapshot", times=1):
            await node.run_until(
                lambda: node.count("RemoveImage") >= 4, within_s=ROUND_S, what="four removals"
            )
            await node.run_for(limits.NOTICE_S)
        expect_equal(node, sorted(set(gone(node))), ["busybox:2", *sorted(names)], "tried images")
        expect_equal(node, node.events("ImageGCFailed"), [], "events after one failure in a row")
        await node.run_until(
            lambda: node.events("ImageGCFailed"), within_s=ROUND_S, what="an event ImageGCFailed"
        )
    told_too_little(node, whole, freed=whole // 10)
    times = node.times_s("RemoveImage")
    gap = [Span(PERIOD_S - 1, PERIOD_S + 3)]
    expect_spans(node, [times[0], times[-1]], gap, "rounds of collection")


@conformance(
    id="image-gc-age",
    rules=["GC-104", "GC-101.4"],
    level=Level.SHOULD,
    needs=[*NEEDS, Feature.API],
    node_config={
        "imageMaximumGCAge": "7m",
        "imageMinimumGCAge": "1s",
        "imageGCHighThresholdPercent": 100,
    },
)
async def images_that_are_unused_for_long_go(node: Node) -> None:
    """With imageMaximumGCAge an image that has been unused for longer is removed, however empty the
    disk is, but not before the kubelet itself has run for that long; used images stay, and those
    that were used less long ago."""
    await node.api.create_pod(await user_of(node, "used"))
    await preload(node, "spare")
    await wait_running(node, "used")
    await node.kubelet.restart()
    await node.run_for(PERIOD_S + PERIOD_S / 2)
    expect_equal(node, gone(node), [], "images removed within the maximum age")
    await node.api.delete_pod("used")
    await node.run_until(
        lambda: "spare" in gone(node), within_s=ROUND_S, what="the unused image is removed"
    )
    await node.run_for(limits.NOTICE_S)
    expect(node, "used" not in gone(node), "the image used 5 min ago stays", gone(node))


@conformance(
    id="image-gc-age-first",
    rules=["GC-101.1"],
    needs=DISK,
    node_config={**SEVENTY_TO_FIFTY, "imageMaximumGCAge": "7m"},
    bugs=[KnownBug("", "Images are collected for space that was free already.")],
)
async def the_age_rule_comes_before_the_usage_rule(node: Node) -> None:
    """When removing images that are too old brings the disk below the high threshold, no other
    image is removed to get down to the low one."""
    whole = await image_disk_bytes(node)
    await preload(node, "old")
    await node.apply_static(await user_of(node, "young"))
    await wait_running(node, "young")
    await node.kubelet.restart()
    await node.run_for(1.2 * PERIOD_S)  # young was seen in use
    await node.remove_static("young")
    await node.run_for(0.4 * PERIOD_S)
    node.machine.leave_disk(int(0.31 * whole) - 10**6)  # an image has 2 MB
    await node.run_until(lambda: "old" in gone(node), within_s=ROUND_S, what="old is removed")
    await node.run_for(limits.NOTICE_S)
    expect(node, "young" not in gone(node), "young stays", gone(node))
