"""The delays of a crash loop: none at first, then 10 s, doubling to 5 minutes or to the configured
maximum."""

from typing import Any

from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal, expect_spans
from kubelet_conformance.harness.limits import restart_after
from kubelet_conformance.harness.manifests import OTHER_IMAGE, ExecProbe, container, pod, sidecar
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import exits, in_turn, runs
from kubelet_conformance.known_bugs import KnownBug
from kubelet_conformance.registry import Feature, Level, conformance

STATUS, VIRTUAL = Feature.STATUS, Feature.VIRTUAL_TIME
SHORT = {"crashLoopBackOff": {"maxContainerRestartPeriod": "2s"}}


def restart_beside_others(delay_s: float) -> limits.Span:
    """The same as `restart_after`, where another container of the pod ends at the beginning of the
    back-off: up to 1.34 that puts off the next look at the pod, which does not come when the
    back-off ends but 10 to 15 s after that end was noticed (LIFE-037). It always comes before twice
    the delay, the next one of the series."""
    return limits.Span(delay_s, 2 * delay_s - 0.5)


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
    id="backoff-series",
    rules=["BACK-001", "BACK-002.3", "BACK-002.4", "BACK-011"],
    needs=[STATUS, VIRTUAL],
)
async def crash_delays_double_up_to_five_minutes(node: Node) -> None:
    """A container that exits at once is restarted at once, then after 10, 20, 40, 80, 160, 300 and
    300 s."""
    await node.apply_static(pod("web", container("main", exits(1))))
    delays = [0, 10, 20, 40, 80, 160, 300, 300]
    late_s = sum(restart_after(d).high_s for d in delays)
    times = await starts(node, len(delays) + 1, within_s=late_s)
    expect_spans(node, times, [restart_after(d) for d in delays], "starts of a crash loop")


@conformance(id="backoff-first", rules=["BACK-001.1", "BACK-001.2"], needs=[STATUS])
async def the_first_restart_is_immediate_and_the_second_waits(node: Node) -> None:
    """The first restart comes with the next relist, the second not before 10 s."""
    await node.apply_static(pod("web", container("main", exits(1))))
    times = await starts(node, 3, within_s=25)
    expect_spans(node, times, [restart_after(0), restart_after(10)], "first two restarts")


@conformance(
    id="backoff-maximum", rules=["BACK-013.3"], needs=[STATUS], node_config=SHORT, since="1.35"
)
async def the_configured_maximum_limits_every_delay(node: Node) -> None:
    """With crashLoopBackOff.maxContainerRestartPeriod 2s every delay after the first is 2 s."""
    await node.apply_static(pod("web", container("main", exits(1))))
    times = await starts(node, 6, within_s=40)
    delays = [0, 2, 2, 2, 2]
    expect_spans(node, times, [restart_after(d) for d in delays], "starts of a crash loop")


@conformance(
    id="backoff-from-the-end",
    rules=["BACK-001.3", "BACK-002.6"],
    needs=[STATUS],
    node_config=SHORT,
    since="1.35",
)
async def the_delay_counts_from_the_end_of_the_container(node: Node) -> None:
    """The delay runs from the end of the dead container, not from its start."""
    await node.apply_static(pod("web", container("main", exits(1, after_s=3))))
    times = await starts(node, 4, within_s=40)
    spans = [restart_after(delay_s).after(3) for delay_s in (0, 2, 2)]
    expect_spans(node, times, spans, "starts of a container that lives 3 s")


@conformance(
    id="backoff-over-failed-start", rules=["BACK-006"], level=Level.SHOULD,
    needs=[STATUS, VIRTUAL, Feature.FAULTS],
)  # fmt: skip
async def a_start_that_failed_does_not_end_a_crash_loop(node: Node) -> None:
    """When a restart in a crash loop fails in the runtime, the next one waits for the next delay of
    the series, counted from the last exit: not only as long as after any failed sync. (That holds
    as long as the runtime has the record of that exit; here nobody can remove it.)"""
    node.runtime.on("RemoveContainer", container="main").fails("UNKNOWN", "busy")
    await node.apply_static(pod("web", container("main", exits(1))))
    before = await starts(node, 5, within_s=sum(restart_after(d).high_s for d in (5, 10, 20, 40)))
    node.runtime.on("StartContainer", container="main").fails("UNKNOWN", "not now", times=1)
    times = await starts(node, 7, within_s=2 * restart_after(80).high_s + 160)
    again = times[6] - times[5]
    expect_equal(node, len(before), 5, "starts before one fails")
    expect(node, again >= 40, "the rest of 160 s after the last exit", again)


@conformance(id="backoff-after-success", rules=["BACK-001.2", "BACK-003.1"], needs=[STATUS])
async def exit_zero_is_delayed_just_the_same(node: Node) -> None:
    """With policy Always a container that ends with 0 is delayed like a failing one."""
    await node.apply_static(pod("web", container("main", exits(0))))
    times = await starts(node, 3, within_s=25)
    expect_spans(node, times, [restart_after(0), restart_after(10)], "first two restarts")


@conformance(id="backoff-reset", rules=["BACK-003.1"], needs=[STATUS, VIRTUAL])
async def ten_minutes_of_life_reset_the_delay(node: Node) -> None:
    """After a run of more than 10 minutes the series begins again; the delay is 10 s at most."""
    crash = exits(1)
    work = in_turn(*[crash] * 3, exits(1, after_s=640), *[crash] * 2)
    await node.apply_static(pod("web", container("main", work)))
    times = await starts(node, 6, within_s=2000)
    after_long = limits.Span(640, 640 + restart_after(10).high_s)
    spans = [*map(restart_after, (0, 10, 20)), after_long, restart_after(10)]
    expect_spans(node, times, spans, "starts around a run of 640 s")


@conformance(id="backoff-kept", rules=["BACK-003.1"], needs=[STATUS, VIRTUAL])
async def eight_minutes_of_life_do_not_reset_the_delay(node: Node) -> None:
    """After a run of less than 10 minutes the series goes on: 10, 20, then 40 s."""
    # 500 s and this delay are less than the 600 s after which entries are dropped (BACK-004).
    await goes_on_after(node, run_s=500, delay_s=40)


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
    rules=["BACK-003.2", "BACK-013.3"],
    needs=[STATUS, VIRTUAL],
    node_config={"crashLoopBackOff": {"maxContainerRestartPeriod": "20s"}},
    since="1.35",
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


@conformance(
    id="backoff-independent", rules=["BACK-015.4", "BACK-005.2", "BACK-001.1"], needs=[STATUS]
)
async def containers_of_a_pod_wait_independently(node: Node) -> None:
    """While one container waits in back-off, the next one of the pod keeps running, and is
    restarted without a wait when it ends."""
    calm = container("calm", in_turn(exits(1, after_s=3), runs()))
    await node.apply_static(pod("web", container("crash", exits(1)), calm))
    calm_s = await starts(node, 2, within_s=20, name="calm")
    expect_spans(node, calm_s, [restart_after(0).after(3)], "first restart of calm")
    crash_s = await starts(node, 3, within_s=30, name="crash")
    expect_spans(node, crash_s, [restart_after(0), restart_beside_others(10)], "restarts of crash")


@conformance(id="backoff-two-pods", rules=["BACK-005.1"], needs=[STATUS])
async def pods_wait_independently(node: Node) -> None:
    """The back-off of one pod's container does not delay the first restart of a container with the
    same name and image in another pod."""
    await node.apply_static(pod("web", container("main", exits(1))))
    await starts(node, 2, within_s=limits.START_S + limits.NOTICE_S)
    await node.apply_static(pod("other", container("main", in_turn(exits(1, after_s=1), runs()))))
    await node.run_until(
        lambda: node.count("StartContainer", pod="other") == 2,
        within_s=limits.START_S + 1 + limits.NOTICE_S,
        what="a second start in the other pod",
    )
    times = node.times_s("StartContainer", pod="other")
    expect_spans(node, times, [restart_after(0).after(1)], "the other pod's first restart")


@conformance(id="backoff-earliest", rules=["BACK-011"], level=Level.SHOULD, needs=[STATUS, VIRTUAL])
async def a_pod_is_synced_when_its_first_back_off_ends(node: Node) -> None:
    """A container whose back-off ends soon does not wait for another one of its pod with a longer
    back-off."""
    work = in_turn(exits(1, after_s=60), exits(1, after_s=62), runs())
    web = pod("web", container("crash", exits(1)), container("main", work))
    await node.apply_static(web)
    times = await starts(node, 3, within_s=200)
    spans = [restart_after(0).after(60), restart_after(10).after(62)]
    expect_spans(node, times, spans, "restarts of main beside a container in a long back-off")


@conformance(
    id="backoff-retries",
    rules=["BACK-011"],
    level=Level.SHOULD,
    needs=[Feature.API, VIRTUAL],
    since="1.35",  # before, each error is tried again after 10 to 15 s
)
async def a_back_off_is_looked_at_again_when_it_ends(node: Node) -> None:
    """During a back-off of 80 s the pod is synced only a few times: when the container ends, maybe
    after a minute or more, and at the end."""
    await node.api.create_pod(pod("web", container("main", exits(1))))
    delays = (0, 10, 20, 40)
    await starts(node, 5, within_s=sum(restart_after(d).high_s for d in delays) + limits.START_S)
    before = node.event_count("BackOff", pod="web")
    await starts(node, 6, within_s=restart_after(80).high_s)
    events = node.event_count("BackOff", pod="web") - before
    expect(node, events <= 4, "four events BackOff at most during the 80 s", events)


@conformance(
    id="backoff-maximum-bounds",
    rules=["BACK-013.1", "BACK-013.2"],
    needs=[STATUS],
    since="1.32",
    alone=True,
)
async def a_maximum_out_of_bounds_is_refused(node: Node) -> None:
    """A kubelet does not start with a maxContainerRestartPeriod below 1 s or above 300 s, nor with
    one whose gate is off."""
    gate = {"KubeletCrashLoopBackOffMax": False}
    wrong: list[dict[str, Any]] = [
        {"crashLoopBackOff": {"maxContainerRestartPeriod": "500ms"}},
        {"crashLoopBackOff": {"maxContainerRestartPeriod": "301s"}},
        {"crashLoopBackOff": {"maxContainerRestartPeriod": "20s"}, "featureGates": gate},
    ]
    for config in wrong:
        error_text = await node.kubelet.refused_start(**config)
        named = "maxcontainerrestartperiod" in error_text.lower()
        expect(node, named, f"a log that names the field, with {config}", error_text)
        await node.kubelet.start()


@conformance(
    id="backoff-init-blocks",
    rules=["BACK-015.1", "BACK-015.2", "PROBE-042.5"],
    needs=[STATUS],
    node_config=SHORT,
    since="1.35",
)
async def an_init_container_in_back_off_blocks_the_pod(node: Node) -> None:
    """A crashing init container waits like any other, and nothing that comes after it starts
    meanwhile."""
    init = [container("setup", in_turn(exits(1), exits(1), exits(1), exits(0)))]
    await node.apply_static(pod("web", container("main"), init=init))
    times = await starts(node, 4, within_s=30, name="setup")
    expect_spans(node, times, [restart_after(d) for d in (0, 2, 2)], "starts of setup")
    main = await starts(node, 1, within_s=limits.NOTICE_S)
    expect(node, main[0] > times[3], "main after the success of setup", main[0] - times[3])
    failed = [
        entry["ready"]
        for status in node.statuses("web")
        for entry in status.get("initContainerStatuses") or []
        if entry["state"].get("terminated", {}).get("exitCode") == 1
    ]
    expect(node, failed and not any(failed), "setup not ready after its failures", failed)


@conformance(
    id="backoff-beside-others",
    rules=["BACK-011", "BACK-015.4"],
    level=Level.SHOULD,
    needs=[STATUS],
    bugs=[
        KnownBug(
            "",
            "a restart may wait for the next sync if another container ended meanwhile",
            fixed="1.35",
            by_chance=True,  # kubelet 1.34.9 passes in 4 of 10 runs
        )
    ],
)
async def a_back_off_ends_in_time_beside_others(node: Node) -> None:
    """The end of another container of the pod does not put off the restart of one that waits."""
    calm = container("calm", in_turn(exits(1, after_s=6), runs()))
    await node.apply_static(pod("web", container("crash", exits(1)), calm))
    times = await starts(node, 3, within_s=30, name="crash")
    expect_spans(node, times, [restart_after(0), restart_after(10)], "restarts of crash")


@conformance(id="backoff-sidecar", rules=["BACK-015.1", "BACK-015.3", "BACK-104.3"], needs=[STATUS])
async def a_crashing_sidecar_waits_without_blocking(node: Node) -> None:
    """A sidecar that ends, if with 0, waits like any other container, but a regular container that
    has ended starts again meanwhile, as long as another one runs."""
    main = container("main", in_turn(exits(1, after_s=4.5), runs()))
    init = [sidecar("side", exits(0, after_s=1))]
    await node.apply_static(pod("web", container("calm"), main, init=init))
    main_s = await starts(node, 2, within_s=20)
    expect_spans(node, main_s, [restart_after(0).after(4.5)], "first restart of main")
    times = await starts(node, 3, within_s=30, name="side")
    spans = [restart_after(0).after(1), restart_beside_others(10).after(1)]
    expect_spans(node, times, spans, "starts of side")


@conformance(id="backoff-new-uid", rules=["BACK-005.1", "MIRR-002"], needs=[STATUS])
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


@conformance(id="backoff-new-image", rules=["BACK-005.3"], needs=[STATUS, Feature.API])
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
    rules=["BACK-005.4", "CG-064"],
    needs=[STATUS, Feature.API, Feature.CGROUPS],
    since="1.34",
)
async def other_resources_start_without_the_delay_of_the_old_ones(node: Node) -> None:
    """A container in back-off that is resized starts at once."""
    resources: dict[str, Any] = {"requests": {"cpu": "10m"}}
    await node.api.create_pod(pod("web", container("main", exits(1), resources=resources)))
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
