"""The delays of a crash loop: none at first, then 10 s, doubling to 5 minutes or to the configured
maximum."""

from typing import Any

from conformance.harness import limits
from conformance.harness.expect import expect, expect_equal, expect_spans
from conformance.harness.limits import restart_after
from conformance.harness.manifests import OTHER_IMAGE, ExecProbe, container, pod, sidecar
from conformance.harness.node import Node
from conformance.harness.workload import exits, in_turn, runs
from conformance.registry import Feature, Level, conformance

STATUS, VIRTUAL = Feature.STATUS, Feature.VIRTUAL_TIME
SHORT = {"crashLoopBackOff": {"maxContainerRestartPeriod": "2s"}}


async def starts(node: Node, count: int, within_s: float, name: str = "main") -> list[float]:
    """Run until the container has been started `count` times, and return the times of its
    starts."""
    await node.run_until(
        lambda: node.count("StartContainer", container=name) >= count,
        within_s=within_s,
        what=f"start {count} of {name}",
    )
    return node.times_s("StartContainer", container=name)


@conformance(
    id="backoff-series", rules=["BACK-001", "BACK-002", "BACK-011"], needs=[STATUS, VIRTUAL]
)
async def crash_delays_double_up_to_five_minutes(node: Node) -> None:
    """A container that exits at once is restarted at once, then after 10, 20, 40, 80, 160, 300 and
    300 s."""
    await node.apply_static(pod("web", container("main", exits(1))))
    delays = [0, 10, 20, 40, 80, 160, 300, 300]
    late_s = sum(restart_after(d).high_s for d in delays)
    times = await starts(node, len(delays) + 1, within_s=late_s)
    expect_spans(node, times, [restart_after(d) for d in delays], "starts of a crash loop")


@conformance(id="backoff-first", rules=["BACK-001"], needs=[STATUS])
async def the_first_restart_is_immediate_and_the_second_waits(node: Node) -> None:
    """The first restart comes with the next relist, the second not before 10 s."""
    await node.apply_static(pod("web", container("main", exits(1))))
    times = await starts(node, 3, within_s=25)
    expect_spans(node, times, [restart_after(0), restart_after(10)], "first two restarts")


@conformance(id="backoff-maximum", rules=["BACK-013"], needs=[STATUS], node_config=SHORT)
async def the_configured_maximum_limits_every_delay(node: Node) -> None:
    """With crashLoopBackOff.maxContainerRestartPeriod 2s every delay after the first is 2 s."""
    await node.apply_static(pod("web", container("main", exits(1))))
    times = await starts(node, 6, within_s=40)
    delays = [0, 2, 2, 2, 2]
    expect_spans(node, times, [restart_after(d) for d in delays], "starts of a crash loop")


@conformance(
    id="backoff-from-the-end", rules=["BACK-001", "BACK-002"], needs=[STATUS], node_config=SHORT
)
async def the_delay_counts_from_the_end_of_the_container(node: Node) -> None:
    """The delay runs from the end of the dead container, not from its start."""
    await node.apply_static(pod("web", container("main", exits(1, after_s=3))))
    times = await starts(node, 4, within_s=40)
    spans = [restart_after(delay_s).after(3) for delay_s in (0, 2, 2)]
    expect_spans(node, times, spans, "starts of a container that lives 3 s")


@conformance(id="backoff-after-success", rules=["BACK-001"], needs=[STATUS])
async def exit_zero_is_delayed_just_the_same(node: Node) -> None:
    """With policy Always a container that ends with 0 is delayed like a failing one."""
    await node.apply_static(pod("web", container("main", exits(0))))
    times = await starts(node, 3, within_s=25)
    expect_spans(node, times, [restart_after(0), restart_after(10)], "first two restarts")


@conformance(id="backoff-reset", rules=["BACK-003"], needs=[STATUS, VIRTUAL])
async def ten_minutes_of_life_reset_the_delay(node: Node) -> None:
    """After a run of more than 10 minutes the series begins again; the delay is 10 s at most."""
    crash = exits(1)
    work = in_turn(*[crash] * 3, exits(1, after_s=640), *[crash] * 2)
    await node.apply_static(pod("web", container("main", work)))
    times = await starts(node, 6, within_s=2000)
    after_long = limits.Span(640, 640 + restart_after(10).high_s)
    spans = [*map(restart_after, (0, 10, 20)), after_long, restart_after(10)]
    expect_spans(node, times, spans, "starts around a run of 640 s")


@conformance(id="backoff-kept", rules=["BACK-003"], needs=[STATUS, VIRTUAL])
async def five_minutes_of_life_do_not_reset_the_delay(node: Node) -> None:
    """After a run of less than 10 minutes the series goes on: 10, 20, then 40 s."""
    await goes_on_after(node, run_s=200, delay_s=40)


async def goes_on_after(node: Node, *, run_s: float, delay_s: float) -> None:
    """Expect a delay of `delay_s` after three crashes and then a run of `run_s` seconds."""
    crash = exits(1)
    work = in_turn(*[crash] * 3, exits(1, after_s=run_s), crash)
    await node.apply_static(pod("web", container("main", work)))
    times = await starts(node, 5, within_s=2 * (run_s + 100))
    spans = [*map(restart_after, (0, 10, 20)), restart_after(delay_s).after(run_s)]
    expect_spans(node, times, spans, f"starts around a run of {run_s} s")


@conformance(
    id="backoff-kept-short-maximum",
    rules=["BACK-003", "BACK-013"],
    needs=[STATUS, VIRTUAL],
    node_config={"crashLoopBackOff": {"maxContainerRestartPeriod": "20s"}},
)
async def a_short_maximum_does_not_shorten_the_ten_minutes(node: Node) -> None:
    """With a maximum of 20 s a run of 100 s does not reset the delay, which stays at 20 s."""
    await goes_on_after(node, run_s=100, delay_s=20)


@conformance(id="backoff-forgotten", rules=["BACK-007"], needs=[STATUS, Feature.RESTART])
async def a_kubelet_restart_forgets_the_delays(node: Node) -> None:
    """A restarted kubelet starts a container in back-off without delay, and the delays begin again
    at 10 s: they are not stored."""
    await node.apply_static(pod("web", container("main", exits(1))))
    await starts(node, 2, within_s=limits.START_S + limits.NOTICE_S)
    await node.run_for(limits.NOTICE_S)
    expect_equal(node, node.count("StartContainer", container="main"), 2, "starts in back-off")
    await node.kubelet.restart()
    await starts(node, 3, within_s=limits.START_S)
    times = await starts(node, 4, within_s=25)
    expect_spans(node, times[2:], [restart_after(10)], "the first delay of the new kubelet")


@conformance(id="backoff-independent", rules=["BACK-015"], needs=[STATUS], node_config=SHORT)
async def containers_of_a_pod_wait_independently(node: Node) -> None:
    """While one container waits in back-off, another one of the pod keeps running, and is restarted
    without a wait when it ends."""
    calm, crash = container("calm", in_turn(exits(1, after_s=4), runs())), exits(1)
    await node.apply_static(pod("web", calm, container("crash", crash)))
    await starts(node, 4, within_s=30, name="crash")
    times = await starts(node, 2, within_s=10, name="calm")
    spans = [limits.Span(4, 4 + restart_after(0).high_s)]
    expect_spans(node, times, spans, "first restart of calm")


@conformance(id="backoff-init-blocks", rules=["BACK-015"], needs=[STATUS], node_config=SHORT)
async def an_init_container_in_back_off_blocks_the_pod(node: Node) -> None:
    """A crashing init container waits like any other, and nothing that comes after it starts
    meanwhile."""
    init = [container("setup", in_turn(exits(1), exits(1), exits(1), exits(0)))]
    await node.apply_static(pod("web", container("main"), init=init))
    times = await starts(node, 4, within_s=30, name="setup")
    expect_spans(node, times, [restart_after(d) for d in (0, 2, 2)], "starts of setup")
    main = await starts(node, 1, within_s=limits.NOTICE_S)
    expect(node, main[0] > times[3], "main after the success of setup", main[0] - times[3])


@conformance(id="backoff-sidecar", rules=["BACK-015"], needs=[STATUS], node_config=SHORT)
async def a_crashing_sidecar_waits_without_blocking(node: Node) -> None:
    """A crashing sidecar waits like any other container, but the main container starts all the
    same."""
    init = [sidecar("side", exits(1, after_s=1))]
    await node.apply_static(pod("web", container("main"), init=init))
    times = await starts(node, 4, within_s=30, name="side")
    spans = [restart_after(delay_s).after(1) for delay_s in (0, 2, 2)]
    expect_spans(node, times, spans, "starts of side")
    expect_equal(node, node.count("StartContainer", container="main"), 1, "starts of main")


@conformance(id="backoff-new-uid", rules=["BACK-005", "MIRR-002"], needs=[STATUS])
async def an_edited_manifest_starts_without_delay_of_the_old_pod(node: Node) -> None:
    """A static pod with a new manifest is a new pod: its container does not inherit the delay of
    the old one."""
    await node.apply_static(pod("web", container("main", exits(1))))
    await starts(node, 3, within_s=25)
    # Now in a back-off of 20 s; the new pod waits for its turn at most 17 s (MIRR-002).
    again = pod("web", container("main", exits(1)), metadata={"labels": {"v": "2"}})
    await node.apply_static(again)
    await node.run_until(
        lambda: node.count("RunPodSandbox") == 2,
        within_s=limits.STATIC_SUCCESSOR_S + limits.START_S,
        what="the sandbox of the new pod",
    )
    times = await starts(node, 5, within_s=limits.START_S + limits.NOTICE_S)
    expect_spans(node, times[3:], [restart_after(0)], "the new pod's first restart")
    created = node.calls("CreateContainer", since_s=node.times_s("RunPodSandbox")[1])
    expect_equal(node, [c.attempt for c in created], [0, 1], "attempts of the new pod")


@conformance(id="backoff-new-image", rules=["BACK-005", "BACK-019"], needs=[STATUS, Feature.API])
async def a_changed_image_starts_without_the_delay_of_the_old_one(node: Node) -> None:
    """A container in back-off whose image is changed starts at once, and its delays begin again at
    10 s."""
    await node.api.create_pod(pod("web", container("main", exits(1))))
    await starts(node, 3, within_s=25)
    await node.run_for(limits.NOTICE_S)  # now in a back-off of 20 s
    expect_equal(node, node.count("StartContainer", container="main"), 3, "starts in back-off")
    changed = dict((node.api.pod("web") or {})["spec"]["containers"][0])
    await node.api.patch_pod("web", {"spec": {"containers": [{**changed, "image": OTHER_IMAGE}]}})
    times = await starts(node, 4, within_s=limits.START_S)
    times = await starts(node, 5, within_s=restart_after(10).high_s)
    expect_spans(node, times[3:], [restart_after(10)], "the next restart")


@conformance(
    id="backoff-new-resources",
    rules=["BACK-005", "CG-064"],
    needs=[STATUS, Feature.API, Feature.CGROUPS],
)
async def other_resources_start_without_the_delay_of_the_old_ones(node: Node) -> None:
    """A container in back-off that is resized starts at once."""
    asked: dict[str, Any] = {"requests": {"cpu": "10m"}}
    await node.api.create_pod(pod("web", container("main", exits(1), resources=asked)))
    await starts(node, 3, within_s=25)
    await node.run_for(limits.NOTICE_S)  # now in a back-off of 20 s
    expect_equal(node, node.count("StartContainer", container="main"), 3, "starts in back-off")
    await node.api.resize_pod("web", "main", {"requests": {"cpu": "20m"}})
    await starts(node, 4, within_s=limits.START_S)


@conformance(
    id="liveness-not-delayed", rules=["BACK-017"], level=Level.SHOULD, needs=[STATUS, VIRTUAL]
)
async def the_first_liveness_restarts_are_not_delayed(node: Node) -> None:
    """A container that its liveness probe kills every 30 s is started again in the same sync."""
    probe = ExecProbe(until_s=30)
    await node.apply_static(pod("web", container("main", probes={"liveness": probe})))
    await starts(node, 3, within_s=120)
    for number in (0, 1):
        stop = node.ended_s(node.calls("StopContainer", container="main")[number])
        start = node.times_s("StartContainer", container="main")[number + 1]
        expect(node, start - stop < 1.0, "start right after the stop", f"{start - stop:.2f} s")
