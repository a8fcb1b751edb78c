"""Pulls that succeed, fail, and succeed again, and the delays between them."""

import re

from conformance.cases.images.seen import (
    PULL_RETRY_S,
    PULLED_S,
    error_of,
    expect_about,
    pulls,
    wait_event,
    wait_running,
    wait_waiting,
)
from conformance.harness.expect import expect, expect_equal, expect_spans
from conformance.harness.limits import Span
from conformance.harness.manifests import container, pod
from conformance.harness.node import Node
from conformance.registry import Feature, conformance

API, STATUS, FAULTS, REGISTRY = Feature.API, Feature.STATUS, Feature.FAULTS, Feature.REGISTRY


@conformance(id="pull-success", rules=["BACK-204"], needs=[API, STATUS, REGISTRY])
async def a_pull_is_told_with_its_time_and_size(node: Node) -> None:
    """A pull is reported by the events Pulling and Pulled; the second has its duration and the
    image's size."""
    registry = await node.runtime.registry()
    await registry.add("app:1")
    image = f"{registry.open_host}/app:1"
    await node.api.create_pod(pod("web", container("main", image=image)))
    await wait_running(node, "web")
    pulling = await wait_event(node, "web", "Pulling", f'Pulling image "{image}"')
    expect_about(node, pulling, "Normal")
    found = list(node.events("Pulled", pod="web"))
    expect_equal(node, len(found), 1, "events Pulled")
    expect_about(node, found[0], "Normal")
    size = next(
        c.response.image.size
        for c in node.calls("ImageStatus")
        if c.request.image.image == image and c.response.HasField("image")
    )
    wanted = (
        rf'Successfully pulled image "{re.escape(image)}" in ([0-9.hmsµ]+) \([0-9.hmsµ]+ '
        rf"including waiting\)\. Image size: {size} bytes\."
    )
    text = found[0]["message"]
    expect(node, re.fullmatch(wanted, text), f"message like {wanted}", text)


@conformance(
    id="pull-missing-tag", rules=["BACK-204", "BACK-205", "CRI-096"], needs=[API, STATUS, REGISTRY]
)
async def a_missing_tag_is_told_as_the_runtime_tells_it(node: Node) -> None:
    """When the registry does not have the image, status and events have ErrImagePull with the
    runtime's message."""
    registry = await node.runtime.registry()
    await registry.add("app:1")
    image = f"{registry.open_host}/app:2"
    await node.api.create_pod(pod("web", container("main", image=image)))
    message = await wait_waiting(node, "web", "ErrImagePull")
    error = error_of(pulls(node, image)[0])
    expect(node, error.startswith("rpc error: code = NotFound desc = "), "a code NotFound", error)
    expect_equal(node, message, error, "message")
    failed = await wait_event(node, "web", "Failed", f'Failed to pull image "{image}": {error}')
    expect_about(node, failed, "Warning")
    expect_about(node, await wait_event(node, "web", "Failed", "Error: ErrImagePull"), "Warning")


@conformance(id="pull-outage", rules=["BACK-206", "BACK-207"], needs=[API, STATUS, REGISTRY])
async def an_outage_is_waited_out(node: Node) -> None:
    """While the registry does not answer, the pull fails and is backed off; once it is back, the
    next try succeeds."""
    registry = await node.runtime.registry()
    await registry.add("app:1")
    image = f"{registry.open_host}/app:1"
    await registry.stop()
    await node.api.create_pod(pod("web", container("main", image=image)))
    await node.run_until(lambda: pulls(node, image), within_s=PULLED_S, what="a pull")
    text = await wait_waiting(node, "web", "ImagePullBackOff")
    error = error_of(pulls(node, image)[0])
    back_off = f'Back-off pulling image "{image}"'
    expect_equal(node, text, f"{back_off}: ErrImagePull: {error}", "message")
    expect_about(node, await wait_event(node, "web", "BackOff", back_off), "Normal")
    expect_about(node, await wait_event(node, "web", "Failed", "Error: ImagePullBackOff"), "Warning")  # fmt: skip  # noqa: E501
    await registry.start()
    await node.run_until(
        lambda: node.running("web"),
        within_s=40 + 2 * PULL_RETRY_S,
        what="the container runs after the outage",
    )
    first, second = pulls(node, image)[:2]
    gap_s = node.time_s(second) - node.ended_s(first)
    expect(node, gap_s >= 10, "the second pull at least 10 s after the first failed", gap_s)


@conformance(
    id="pull-back-off-series",
    rules=["BACK-206", "BACK-207"],
    needs=[STATUS, REGISTRY, Feature.VIRTUAL_TIME],
)
async def pull_delays_double_up_to_five_minutes(node: Node) -> None:
    """Failing pulls are repeated after 10, 20, 40, 80, 160, 300 and 300 s, each at the next sync of
    the pod, which comes every 10 to 15 s."""
    registry = await node.runtime.registry()
    image = f"{registry.open_host}/nothing:1"
    await node.apply_static(pod("web", container("main", image=image)))
    delays = [10, 20, 40, 80, 160, 300, 300]
    spans = [Span(delay, delay + PULL_RETRY_S) for delay in delays]
    await node.run_until(
        lambda: len(pulls(node, image)) > len(delays),
        within_s=sum(span.high_s for span in spans),
        what=f"{len(delays) + 1} pulls",
    )
    times = [node.time_s(call) for call in pulls(node, image)]
    expect_spans(node, times, spans, "failing pulls")


@conformance(id="pull-pending", rules=["BACK-207", "LIFE-122"], needs=[STATUS, REGISTRY])
async def a_container_without_image_holds_no_other_up(node: Node) -> None:
    """While the image of one container cannot be pulled the pod's other container runs, and the
    phase is Pending."""
    registry = await node.runtime.registry()
    image = f"{registry.open_host}/nothing:1"
    await node.apply_static(pod("web", container("main", image=image), container("fine")))
    await wait_running(node, "web", "fine")
    await wait_waiting(node, "web", "ErrImagePull")
    expect(node, node.running("web", "fine"), "fine still runs", node.container("web", "fine"))
    expect_equal(node, node.phase("web"), "Pending", "phase")


@conformance(id="pull-back-off-shared", rules=["BACK-206"], needs=[STATUS, REGISTRY])
async def the_back_off_is_one_per_pod_and_image(node: Node) -> None:
    """Two containers of a pod with the same missing image cause one pull, because they share its
    back-off; another pod does not."""
    registry = await node.runtime.registry()
    image = f"{registry.open_host}/nothing:1"
    two = (container("main", image=image), container("other", image=image))
    await node.apply_static(pod("web", *two))
    await wait_waiting(node, "web", "ImagePullBackOff", "other")
    await node.apply_static(pod("next", container("main", image=image)))
    await node.run_until(
        lambda: pulls(node, image, "next"), within_s=PULLED_S, what="a pull of the other pod"
    )
    first = node.time_s(pulls(node, image, "web")[0])
    soon = [c for c in pulls(node, image, "web") if node.time_s(c) < first + 10]
    expect_equal(node, len(soon), 1, "pulls of the pod in 10 s")


@conformance(id="pull-deadline", rules=["CRI-006", "BACK-208"], needs=[STATUS, REGISTRY])
async def a_pull_has_no_deadline(node: Node) -> None:
    """PullImage carries no deadline, because a big image may take its time."""
    registry = await node.runtime.registry()
    await registry.add("app:1")
    image = f"{registry.open_host}/app:1"
    await node.apply_static(pod("web", container("main", image=image)))
    await wait_running(node, "web")
    expect_equal(node, pulls(node, image)[0].deadline_s, None, "deadline of PullImage")
