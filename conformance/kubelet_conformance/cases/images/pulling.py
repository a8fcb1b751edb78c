"""Pulls that succeed, fail, and succeed again, and the delays between them."""

import re
from functools import partial

from kubelet_conformance.cases.images.seen import (
    PULL_RETRY_S,
    PULLED_S,
    error_of,
    expect_about,
    pulls,
    wait_event,
    wait_running,
    wait_waiting,
    waiting,
)
from kubelet_conformance.harness.expect import expect, expect_equal, expect_spans
from kubelet_conformance.harness.limits import Span
from kubelet_conformance.harness.manifests import MISSING_IMAGE, container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import exits, in_turn, runs
from kubelet_conformance.registry import Feature, conformance

API, STATUS, FAULTS, REGISTRY = Feature.API, Feature.STATUS, Feature.FAULTS, Feature.REGISTRY


@conformance(
    id="pull-success", rules=["BACK-204.1", "BACK-204.2"], needs=[API, STATUS, REGISTRY], alone=True
)
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
    await node.events_arrive()
    pulled = list(node.events("Pulled", pod="web"))
    expect_equal(node, len(pulled), 1, "events Pulled")
    expect_about(node, pulled[0], "Normal")
    size = next(
        c.response.image.size
        for c in node.calls("ImageStatus")
        if c.request.image.image == image and c.response.HasField("image")
    )
    message_pattern = (
        rf'Successfully pulled image "{re.escape(image)}" in ([0-9.hmsµ]+) \([0-9.hmsµ]+ '
        rf"including waiting\)\. Image size: {size} bytes\."
    )
    text = pulled[0]["message"]
    expect(node, re.fullmatch(message_pattern, text), f"message like {message_pattern}", text)


@conformance(
    id="pull-missing-tag",
    rules=["BACK-204.3", "BACK-204.4", "BACK-205.3", "CRI-096", "CRI-009.5"],
    needs=[API, STATUS, REGISTRY],
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


@conformance(
    id="pull-outage",
    rules=["BACK-206.5", "BACK-207", "BACK-204.1", "BACK-204.4"],
    needs=[API, STATUS, REGISTRY],
    since="1.32",
)
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
    pulling_count = node.event_count("Pulling", pod="web")
    expect_equal(node, pulling_count, len(pulls(node, image)), "events Pulling, one for each pull")


@conformance(
    id="pull-back-off-series",
    rules=["BACK-206.2", "BACK-207"],
    needs=[STATUS, REGISTRY, Feature.VIRTUAL_TIME],
    node_config={"crashLoopBackOff": {"maxContainerRestartPeriod": "15s"}},
    since="1.35",
)
async def pull_delays_double_up_to_five_minutes(node: Node) -> None:
    """Failing pulls are repeated after 10, 20, 40, 80, 160, 300 and 300 s, each at the next sync of
    the pod, which comes every 10 to 15 s; the delays of crash loops do not matter."""
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


@conformance(
    id="pull-back-off-slow", rules=["BACK-206.2"], needs=[STATUS, FAULTS, REGISTRY], alone=True
)
async def the_back_off_begins_with_the_failure(node: Node) -> None:
    """The delay counts from the end of a pull that failed, however long it took."""
    registry = await node.runtime.registry()
    image = f"{registry.open_host}/nothing:1"
    with node.runtime.on("PullImage").delays(16):
        await node.apply_static(pod("web", container("main", image=image)))
        await node.run_until(
            lambda: len(pulls(node, image)) == 3,
            within_s=PULLED_S + 10 + 20 + 2 * 16 + 2 * PULL_RETRY_S,
            what="three pulls",
        )
    first, second, third = pulls(node, image)
    gaps = [node.time_s(second) - node.ended_s(first), node.time_s(third) - node.ended_s(second)]
    expect(node, gaps[0] >= 10 and gaps[1] >= 20, "10 and 20 s after the end of a pull", gaps)


@conformance(id="pull-back-off-causes", rules=["BACK-206.5"], needs=[STATUS, FAULTS], since="1.32")
async def the_back_off_tells_the_last_failure(node: Node) -> None:
    """The message during a back-off has the reason and the text of the failure before it, also when
    an earlier one was another."""
    rules = node.runtime.on("PullImage")
    rules.fails("UNKNOWN", "RegistryUnavailable: at first", times=1)
    image = MISSING_IMAGE
    start = f'Back-off pulling image "{image}": '
    await node.apply_static(pod("web", container("main", image=image)))
    text = await wait_waiting(node, "web", "ImagePullBackOff")
    why = f"image pull failed for {image} because the registry is unavailable: at first"
    expect_equal(node, text, f"{start}RegistryUnavailable: {why}", "message after the first pull")
    with rules.fails("UNKNOWN", "no room"):
        await node.run_until(
            lambda: waiting(node, "web").get("message") == f"{start}ErrImagePull: no room",
            within_s=20 + 3 * PULL_RETRY_S,
            what="a message with the second failure",
        )


@conformance(
    id="pull-back-off-kept",
    rules=["BACK-206.3", "BACK-206.4"],
    needs=[STATUS, FAULTS, REGISTRY, Feature.VIRTUAL_TIME],
    node_config={"crashLoopBackOff": {"maxContainerRestartPeriod": "1s"}},
    since="1.35",
)
async def the_back_off_outlives_a_success_and_ends_after_ten_minutes(node: Node) -> None:
    """A pull that succeeds leaves the delay as it is: a failure minutes later doubles it. One that
    comes more than 600 s after the last one begins with 10 s again."""
    registry = await node.runtime.registry()
    await registry.add("app:1")
    image = f"{registry.open_host}/app:1"
    work = in_turn(exits(1, after_s=30), exits(1, after_s=400), exits(1, after_s=700), runs())
    main = container("main", work, image=image, imagePullPolicy="Always")
    await node.apply_static(pod("web", main))

    def started(times: int) -> bool:
        return node.count("StartContainer", pod="web") == times

    for run_s, delay_s in ((30, 20), (400, 40), (700, 10)):
        await wait_running(node, "web")
        starts = node.count("StartContainer", pod="web")
        with node.runtime.on("PullImage").fails("UNKNOWN", "not now", times=1 if starts > 1 else 2):
            await node.run_until(
                partial(started, starts + 1),
                within_s=run_s + 10 + delay_s + 3 * PULL_RETRY_S,
                what=f"start {starts + 1}",
            )
        failed, good = pulls(node, image)[-2:]
        gap_s = node.time_s(good) - node.ended_s(failed)
        span = Span(delay_s, delay_s + PULL_RETRY_S)
        expect(node, gap_s in span, f"the next pull {span} after the failure", f"{gap_s:.2f} s")


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


@conformance(id="pull-back-off-shared", rules=["BACK-206.1"], needs=[STATUS, REGISTRY])
async def the_back_off_is_one_per_pod_and_image(node: Node) -> None:
    """Two containers of a pod with the same missing image cause one pull, because they share its
    back-off; another image does not."""
    registry = await node.runtime.registry()
    image = f"{registry.open_host}/nothing:1"
    another = f"{registry.open_host}/nothing:2"
    names = {"main": image, "other": image, "third": another}
    await node.apply_static(pod("web", *(container(name, image=i) for name, i in names.items())))
    await wait_waiting(node, "web", "ImagePullBackOff", "other")
    first = node.time_s(pulls(node, image, "web")[0])
    at_once = [c for c in pulls(node, another) if node.time_s(c) < first + 9]
    expect_equal(node, len(at_once), 1, "pulls of the other image in 9 s")
    soon = [c for c in pulls(node, image, "web") if node.time_s(c) < first + 10]
    expect_equal(node, len(soon), 1, "pulls of the pod in 10 s")


@conformance(id="pull-back-off-of-one-pod", rules=["BACK-206.1"], needs=[STATUS, REGISTRY])
async def the_back_off_of_a_pod_holds_up_no_other_one(node: Node) -> None:
    """While an image is backed off for one pod, another pod that comes is given a pull of it."""
    registry = await node.runtime.registry()
    image = f"{registry.open_host}/nothing:1"
    await node.apply_static(pod("web", container("main", image=image)))
    await node.run_until(
        lambda: any(node.ended_s(call) >= 0 for call in pulls(node, image, "web")),
        within_s=PULLED_S,
        what="the first pull has failed",
    )
    failed_s = node.ended_s(pulls(node, image, "web")[0])
    await node.apply_static(pod("next", container("main", image=image)))
    await node.run_until(
        lambda: pulls(node, image, "next"), within_s=PULLED_S, what="a pull for the other pod"
    )
    after_s = node.time_s(pulls(node, image, "next")[0]) - failed_s
    expect(node, after_s < 10, "a pull during the other pod's back-off", after_s)


@conformance(id="pull-deadline", rules=["CRI-006", "BACK-208.6"], needs=[STATUS, REGISTRY])
async def a_pull_has_no_deadline(node: Node) -> None:
    """PullImage carries no deadline, because a big image may take its time."""
    registry = await node.runtime.registry()
    await registry.add("app:1")
    image = f"{registry.open_host}/app:1"
    await node.apply_static(pod("web", container("main", image=image)))
    await wait_running(node, "web")
    expect_equal(node, pulls(node, image)[0].deadline_s, None, "deadline of PullImage")
