"""Collection of unused images, every 5 minutes, when the images' disk is too full."""

from conformance.cases.images.seen import PULLED_S, wait_running
from conformance.harness import limits
from conformance.harness.expect import expect
from conformance.harness.manifests import IMAGE, OTHER_IMAGE, container, pod
from conformance.harness.node import Node
from conformance.harness.workload import exits
from conformance.registry import Feature, Level, conformance

NEEDS = [Feature.STATUS, Feature.IMAGE_GC, Feature.VIRTUAL_TIME]
# Some part of every disk is used, so with these thresholds it is always too full.
TOO_FULL = {
    "imageGCHighThresholdPercent": 1,
    "imageGCLowThresholdPercent": 0,
    "imageMinimumGCAge": "1s",
}
PERIOD_S = 300.0  # GC-101


def ids_of(node: Node, name: str) -> set[str]:
    """The IDs under which the runtime listed that image."""
    return {
        image.id
        for call in node.calls("ListImages")
        for image in (call.response.images if call.response else ())
        if name in image.repo_tags
    }


def removed(node: Node) -> set[str]:
    """The images that the kubelet asked the runtime to remove."""
    return {call.request.image.image for call in node.calls("RemoveImage")}


@conformance(
    id="image-gc-unused",
    rules=["GC-101", "GC-102"],
    needs=[*NEEDS, Feature.REGISTRY],
    node_config=TOO_FULL,
)
async def unused_images_go_and_used_ones_stay(node: Node) -> None:
    """When the images' disk is too full, images that no container uses are removed; those of
    running and of finished containers stay."""
    registry = await node.runtime.registry()
    await registry.add("done:1")
    done = f"{registry.open_host}/done:1"
    await node.apply_static(pod("web"))
    finished = pod("job", container("main", exits(0), image=done), restartPolicy="Never")
    await node.apply_static(finished)
    await wait_running(node, "web")
    await node.run_until(
        lambda: node.phase("job") == "Succeeded", within_s=PULLED_S, what="the job has ended"
    )
    await node.run_until(
        lambda: removed(node) & ids_of(node, OTHER_IMAGE),
        within_s=PERIOD_S + limits.NOTICE_S,
        what="the unused image is removed",
    )
    # An image is seen at one round and removed at the next, if nothing uses it.
    await node.run_for(PERIOD_S + limits.NOTICE_S)
    for name in (IMAGE, done):
        expect(node, ids_of(node, name), f"{name} among the listed images", "not listed")
        expect(node, not removed(node) & ids_of(node, name), f"{name} stays", removed(node))


@conformance(
    id="image-gc-not-enough",
    rules=["GC-105"],
    needs=[*NEEDS, Feature.API],
    node_config=TOO_FULL,
)
async def too_little_freed_is_told(node: Node) -> None:
    """When the used images alone are too much, an event about the node says so, and another one
    when that happens a second time in a row."""
    await node.api.create_pod(pod("web"))
    await wait_running(node, "web")
    await node.run_until(
        lambda: node.events("ImageGCFailed"),
        within_s=2 * PERIOD_S + limits.NOTICE_S,
        what="an event ImageGCFailed",
    )
    texts = {e["message"] for e in node.events("FreeDiskSpaceFailed")}
    start = "Insufficient free disk space on the node's image filesystem ("
    expect(node, texts and all(t.startswith(start) for t in texts), f"messages {start}...", texts)
    events = [*node.events("FreeDiskSpaceFailed"), *node.events("ImageGCFailed")]
    about = {(e["type"], e["involvedObject"]["kind"]) for e in events}
    expect(node, about == {("Warning", "Node")}, "warnings about the Node", about)
    failed = {e["message"] for e in node.events("ImageGCFailed")}
    expect(node, failed <= texts, "ImageGCFailed with a text of FreeDiskSpaceFailed", failed)


@conformance(
    id="image-gc-age",
    rules=["GC-104"],
    level=Level.SHOULD,
    needs=NEEDS,
    node_config={"imageMaximumGCAge": "4m", "imageMinimumGCAge": "1s"},
)
async def images_that_are_unused_for_long_go(node: Node) -> None:
    """With imageMaximumGCAge an image that has been unused for longer is removed, however empty the
    disk is, but not before the kubelet itself has run for that long; used images stay."""
    await node.apply_static(pod("web"))
    await wait_running(node, "web")
    await node.run_for(200)
    expect(node, not removed(node), "nothing is removed within the maximum age", removed(node))
    await node.run_until(
        lambda: removed(node) & ids_of(node, OTHER_IMAGE),
        within_s=PERIOD_S + limits.NOTICE_S,
        what="the unused image is removed",
    )
    await node.run_for(PERIOD_S + limits.NOTICE_S)
    expect(node, not removed(node) & ids_of(node, IMAGE), "the used image stays", removed(node))
