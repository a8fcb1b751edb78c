"""What the kubelet learns by listing the runtime, when, and what it does about failures."""

from kubecri.v1 import api_pb2 as cri

from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal, expect_spans
from kubelet_conformance.harness.limits import Span
from kubelet_conformance.harness.manifests import container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import exits, in_turn, runs
from kubelet_conformance.registry import Feature, Level, conformance

STATUS, FAULTS, KILL = Feature.STATUS, Feature.FAULTS, Feature.OUTSIDE_KILL
RESTART, API, VIRTUAL = Feature.RESTART, Feature.API, Feature.VIRTUAL_TIME


async def restarted(node: Node, within_s: float) -> None:
    """Run until the container main of the pod web has been started twice."""
    await node.run_until(
        lambda: node.count("StartContainer", container="main") == 2,
        within_s=within_s,
        what="a second start of main",
    )


@conformance(id="relist-period", rules=["PLEG-001"], level=Level.SHOULD, needs=[STATUS])
async def everything_is_listed_every_second(node: Node) -> None:
    """Sandboxes and containers of all states are listed without a filter once a second."""
    await node.apply_static(pod("web"))
    await node.wait_running("web")
    since = node.now_s
    await node.run_for(6)
    plain = [
        node.time_s(c)
        for c in node.calls("ListPodSandbox", since_s=since)
        if not c.request.filter.ListFields()
    ]
    # Other parts of the kubelet list too: gaps are at most a second and a relist long.
    gaps = [Span(0.0, 2.0)] * (len(plain) - 1)
    expect(node, 5 <= len(plain) <= 9, "five to nine relists in 6 s", len(plain))
    expect_spans(node, plain, gaps, "relists")


@conformance(
    id="death-noticed",
    rules=["PLEG-005", "PLEG-012.1", "PLEG-002.1", "LIFE-003", "LIFE-003.1"],
    needs=[STATUS, KILL],
)
async def a_death_is_noticed_by_the_next_relist(node: Node) -> None:
    """A container that has ended is replaced after at most one relist and one sync."""
    await node.apply_static(pod("web"))
    await node.wait_running("web")
    await node.run_for(1.3)
    killed = node.now_s
    await node.runtime.kill_container("main", pod="web")
    await restarted(node, limits.NOTICE_S)
    created = node.times_s("CreateContainer", container="main")[1]
    late = 2.0 + node.slack_s
    expect(node, created - killed <= late, "a restart within 2 s", f"{created - killed:.2f} s")


@conformance(
    id="list-failure-harmless", rules=["PLEG-009"], needs=[STATUS, FAULTS, KILL], alone=True
)
async def a_failing_list_changes_nothing(node: Node) -> None:
    """While ListContainers fails nothing is stopped or started; afterwards all goes on."""
    await node.apply_static(pod("web"))
    await node.wait_running("web")
    before = node.writes("web")
    with node.runtime.on("ListContainers").fails("UNAVAILABLE", "runtime is away"):
        await node.runtime.kill_container("main", pod="web")
        await node.run_for(5)
        expect_equal(node, node.writes("web"), before, "changing calls while lists fail")
    await restarted(node, limits.NOTICE_S)


@conformance(
    id="status-failure-retried", rules=["PLEG-006.2", "PLEG-006.3"], needs=[STATUS, FAULTS, KILL]
)
async def a_failing_status_call_delays_the_news(node: Node) -> None:
    """When ContainerStatus fails at the relist that sees a container's end, a later relist reports
    that end."""
    await node.apply_static(pod("web"))
    await node.wait_running("web")
    await node.run_for(2)
    with node.runtime.on("ContainerStatus", container="main").fails("UNKNOWN", "try later"):
        await node.runtime.kill_container("main", pod="web")
        await node.run_for(4)
        expect_equal(node, node.count("CreateContainer", container="main"), 1, "creations")
    await restarted(node, limits.SYNC_ERROR_S + limits.NOTICE_S)


@conformance(
    id="dead-container-removed", rules=["LIFE-003", "GC-020", "PLEG-012.2"], needs=[STATUS]
)
async def one_dead_container_is_kept(node: Node) -> None:
    """When a container ends for the second time its older instance is removed: one dead instance is
    kept."""
    work = in_turn(exits(1), exits(1, after_s=2), runs())
    await node.apply_static(pod("web", container("main", work)))
    await node.run_until(
        lambda: node.count("RemoveContainer", container="main"),
        within_s=limits.START_S + 2 + 2 * limits.NOTICE_S,
        what="RemoveContainer of attempt 0",
    )
    await node.run_for(limits.NOTICE_S)
    removed = [c.attempt for c in node.calls("RemoveContainer", container="main")]
    expect_equal(node, set(removed), {0}, "removed attempts")


@conformance(id="dead-containers-removed", rules=["LIFE-003", "PLEG-002.1"], needs=[STATUS])
async def every_death_of_a_relist_is_told(node: Node) -> None:
    """When two containers of a pod end at the same time, the older instances of both are
    removed."""
    work = in_turn(exits(1), exits(1, after_s=2), runs())
    await node.apply_static(pod("web", container("one", work), container("two", work)))
    await node.run_until(
        lambda: all(node.count("RemoveContainer", container=name) for name in ("one", "two")),
        within_s=limits.START_S + 2 + 2 * limits.NOTICE_S,
        what="RemoveContainer of both containers",
    )
    removed = {(c.container, c.attempt) for c in node.calls("RemoveContainer", pod="web")}
    expect_equal(node, removed, {("one", 0), ("two", 0)}, "removed attempts")


@conformance(
    id="on-demand-relist", rules=["PLEG-011", "LIFE-070.14"], level=Level.SHOULD, needs=[STATUS]
)
async def after_a_start_the_pod_is_listed_at_once(node: Node) -> None:
    """After a sync that changed something that pod alone is listed at once, before the next full
    relist."""
    await node.apply_static(pod("web"))
    await node.wait_running("web")
    uid = node.calls("RunPodSandbox")[0].uid
    started = node.ended_s(node.calls("StartContainer", container="main")[0])
    scoped = [
        node.time_s(c)
        for c in node.calls("ListContainers")
        if c.request.filter.label_selector.get("io.kubernetes.pod.uid") == uid
    ]
    late = 0.5 + node.slack_s
    expect(node, any(0 <= at - started <= late for at in scoped), "a list within 0.5 s", scoped)


@conformance(id="quick-exits-counted", rules=["PLEG-002.1", "LIFE-164"], needs=[STATUS])
async def containers_that_end_between_two_relists_are_seen(node: Node) -> None:
    """Containers that start and end between two relists still lead to the right phase."""
    short_lived = [container(name, exits(code)) for name, code in (("a", 0), ("b", 0), ("c", 2))]
    await node.apply_static(pod("job", *short_lived, restartPolicy="Never"))
    await node.run_until(lambda: node.phase("job") == "Failed", within_s=limits.START_S)
    codes = [
        node.container("job", n).get("state", {}).get("terminated", {}).get("exitCode")
        for n in ("a", "b", "c")
    ]
    expect_equal(node, codes, [0, 0, 2], "exit codes")


@conformance(id="pod-ip-kept", rules=["PLEG-010.2", "LIFE-176"], needs=[STATUS])
async def a_finished_pod_keeps_its_ip(node: Node) -> None:
    """The IP stays in the status after the sandbox has been stopped."""
    await node.apply_static(
        pod("job", container("main", exits(0, after_s=5)), restartPolicy="Never")
    )
    await node.wait_running("job")

    def address() -> str:
        return str(((node.pod("job") or {}).get("status") or {}).get("podIP", ""))

    before = address()
    expect(node, before, "an IP address while the pod runs")
    await node.run_until(
        lambda: node.count("StopPodSandbox", pod="job"), within_s=5 + limits.STOP_S
    )
    await node.run_for(limits.NOTICE_S)
    expect_equal(node, address(), before, "IP address after its end")


@conformance(
    id="status-error-event",
    rules=["PLEG-104.1", "PLEG-104.2", "PLEG-006.1", "LIFE-038", "LIFE-038.2"],
    needs=[API, FAULTS, VIRTUAL],
)
async def an_unknown_status_fails_the_sync(node: Node) -> None:
    """When a pod's status could not be read, its sync fails with Warning FailedSync and is tried
    again every 10 to 15 s."""
    await node.api.create_pod(pod("web"))
    await node.run_until(lambda: node.api.phase("web") == "Running", within_s=limits.START_S)
    await node.run_for(2)
    with node.runtime.on("ContainerStatus", container="main").fails("UNKNOWN", "try later"):
        await node.runtime.kill_container("main", pod="web")
        await node.run_until(
            lambda: node.events("FailedSync", pod="web"), within_s=120, what="event FailedSync"
        )
        text = node.events("FailedSync", pod="web")[0]["message"]
        expect(node, text.startswith("error determining status: "), "text of a failed sync", text)
        before = node.event_count("FailedSync", pod="web")
        await node.run_for(48)
        more = node.event_count("FailedSync", pod="web") - before
        expect(node, 2 <= more <= 5, "two to five failed syncs in 48 s", more)
        expect_equal(node, node.count("CreateContainer"), 1, "creations")
    await restarted(node, limits.SYNC_ERROR_S + limits.NOTICE_S)


def asked_for(node: Node, method: str) -> set[str]:
    """The filters of the lists of that kind: `all`, `alive`, or the labels and IDs in words."""
    filters = set()
    for call in node.calls(method):
        filter_ = call.request.filter
        words = [f"label {key}" for key in sorted(filter_.label_selector)]
        words += ["alive"] * filter_.HasField("state") + ["id"] * bool(filter_.id)
        filters.add(" and ".join(words) or "all")
    return filters


@conformance(id="list-filters", rules=["CRI-082", "PLEG-001"], needs=[STATUS])
async def lists_are_limited_by_uid_or_state(node: Node) -> None:
    """Relists have no filter, lists of what is alive filter by state alone, and lists of one pod by
    the label with its UID."""
    await node.apply_static(pod("web"))
    await node.wait_running("web")
    await node.remove_static("web")
    await node.run_until(lambda: node.count("StopPodSandbox"), within_s=limits.STOP_S)
    await node.run_for(2 * limits.HOUSEKEEPING_S)
    by_uid = "label io.kubernetes.pod.uid"
    for method in ("ListPodSandbox", "ListContainers"):
        filters = asked_for(node, method)
        expect(
            node,
            {"all", "alive", by_uid} <= filters,
            f"{method} of all, of what is alive, of one pod",
            filters,
        )
    states = {
        c.request.filter.state.state
        for c in node.calls("ListPodSandbox")
        if c.request.filter.HasField("state")
    }
    expect_equal(node, states, {cri.SANDBOX_READY}, "states that sandboxes are asked for")
    states = {
        c.request.filter.state.state
        for c in node.calls("ListContainers")
        if c.request.filter.HasField("state")
    }
    expect_equal(node, states, {cri.CONTAINER_RUNNING}, "states that containers are asked for")


@conformance(id="short-life-noticed", rules=["PLEG-003", "PLEG-012.1"], needs=[STATUS])
async def an_instance_that_no_relist_saw_running_is_noticed(node: Node) -> None:
    """A container that starts again and ends before the next relist is noticed by that one, though
    nothing else of its pod changes: the pod is over soon after."""
    work = in_turn(exits(1, after_s=3), exits(0))
    plan = pod(
        "job", container("main", work), container("done", exits(0)), restartPolicy="OnFailure"
    )
    await node.apply_static(plan)
    await node.run_until(
        lambda: node.count("StartContainer", container="main") == 2,
        within_s=3 + limits.START_S + limits.NOTICE_S,
        what="the second start of main",
    )
    await node.run_until(
        lambda: node.phase("job") == "Succeeded", within_s=limits.NOTICE_S, what="the pod is over"
    )


@conformance(
    id="deaths-noticed-at-any-time", rules=["PLEG-001", "PLEG-012.1"], needs=[STATUS, KILL]
)
async def every_death_is_noticed_within_two_seconds(node: Node) -> None:
    """Of five containers that die at odd moments each is noticed by a relist within two seconds:
    the next one, and the time that it and a sync take."""
    names = ("a", "b", "c", "d", "e")
    await node.apply_static(pod("web", *map(container, names)))
    await node.wait_running("web", *names)
    for name in names:
        await node.run_for(3.7)
        killed_s = node.now_s
        await node.runtime.kill_container(name, pod="web")
        await node.run_until(
            lambda name=name: node.count("CreateContainer", container=name) == 2,  # type: ignore[misc]
            within_s=limits.NOTICE_S,
            what=f"{name} is made again",
        )
        took_s = node.times_s("CreateContainer", container=name)[1] - killed_s
        expect(node, took_s <= 2.0 + node.slack_s, f"{name} again within 2 s", f"{took_s:.2f} s")
