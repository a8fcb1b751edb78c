"""The gate EventedPLEG (alpha): the kubelet follows the runtime's events instead of listing."""

from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal, expect_spans
from kubelet_conformance.harness.manifests import container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import exits, in_turn, runs
from kubelet_conformance.registry import Feature, Level, conformance

STATUS, FAULTS, KILL = Feature.STATUS, Feature.FAULTS, Feature.OUTSIDE_KILL
EVENTS = Feature.EVENTS
GATE = {"featureGates": {"EventedPLEG": True}}
STREAM = "GetContainerEvents"
CACHE_TIME_S = 6.0  # 5 s, and what may still be on its way
MAX_STREAM_ERRORS = 5


def plain_lists(node: Node, since_s: float) -> int:
    """The relists, and the few other lists that have no filter either."""
    lists = node.calls("ListPodSandbox", since_s=since_s)
    return sum(not c.request.filter.ListFields() for c in lists)


@conformance(
    id="evented-listens", rules=["PLEG-301", "PLEG-302"], level=Level.DETAIL,
    needs=[STATUS, KILL, EVENTS], node_config=GATE,
)  # fmt: skip
async def a_death_is_heard_of(node: Node) -> None:
    """With EventedPLEG the runtime is not listed every second, and a container that ends is still
    replaced at once."""
    await node.apply_static(pod("web"))
    await node.wait_running("web")
    streams = node.calls(STREAM, since_s=-60)  # it may be older than the case
    expect_equal(node, [call.deadline_s for call in streams], [None], "deadlines of the stream")
    await node.run_for(2 * CACHE_TIME_S)
    since = node.now_s
    await node.run_for(10)
    expect(
        node, plain_lists(node, since) <= 4, "next to no lists in 10 s", plain_lists(node, since)
    )
    killed = node.now_s
    await node.runtime.kill_container("main", pod="web")
    await node.run_until(
        lambda: node.count("StartContainer", container="main") == 2,
        within_s=limits.NOTICE_S,
        what="a second start of main",
    )
    created = node.times_s("CreateContainer", container="main")[1]
    late = 0.5 + node.slack_s
    expect(node, created - killed <= late, "a restart within 0.5 s", f"{created - killed:.2f} s")


@conformance(
    id="evented-back-off", rules=["PLEG-302", "BACK-001"], level=Level.DETAIL,
    needs=[STATUS, EVENTS], node_config=GATE, since="1.35")  # fmt: skip
async def a_crash_loop_goes_on_without_lists(node: Node) -> None:
    """With EventedPLEG a container that crashes is restarted with the usual delays."""
    await node.apply_static(
        pod("web", container("main", in_turn(exits(1), exits(2, after_s=1), runs())))
    )
    await node.run_until(
        lambda: node.count("StartContainer", container="main") == 3,
        within_s=limits.restart_after(10).high_s + 2 * CACHE_TIME_S + limits.START_S,
        what="three starts of main",
    )
    times = node.times_s("StartContainer", container="main")
    expect_spans(node, times[1:], [limits.restart_after(10).after(1)], "the second restart")
    await node.wait_running("web")
    status = node.container("web", "main")
    expect_equal(node, status["restartCount"], 2, "restart count")
    expect_equal(node, status["lastState"]["terminated"]["exitCode"], 2, "last exit code")


@conformance(
    id="evented-stop", rules=["PLEG-302", "LIFE-071"], level=Level.DETAIL,
    needs=[STATUS, EVENTS], node_config=GATE,
)  # fmt: skip
async def a_removed_pod_ends_without_lists(node: Node) -> None:
    """With EventedPLEG a removed pod is stopped once, and a new pod can have its name."""
    await node.apply_static(pod("web"))
    await node.wait_running("web")
    await node.remove_static("web")
    await node.run_until(
        lambda: node.count("StopPodSandbox", pod="web"),
        within_s=limits.STOP_S + CACHE_TIME_S,
        what="StopPodSandbox",
    )
    await node.apply_static(pod("web", metadata={"labels": {"version": "2"}}))
    await node.run_until(
        lambda: node.count("RunPodSandbox") == 2,
        within_s=limits.STATIC_SUCCESSOR_S + 2 * CACHE_TIME_S,
        what="the sandbox of the second version",
    )
    await node.wait_running("web")
    expect_equal(node, node.count("StopContainer"), 1, "stops of containers")


@conformance(
    id="evented-falls-back", rules=["PLEG-301"], level=Level.DETAIL,
    needs=[STATUS, FAULTS, KILL, Feature.RESTART], node_config=GATE,
)  # fmt: skip
async def without_events_the_runtime_is_listed_again(node: Node) -> None:
    """After five broken streams of events no other one is opened, and the runtime is listed every
    second."""
    await node.kubelet.stop()
    before = node.count(STREAM)
    with node.runtime.on(STREAM).fails("UNIMPLEMENTED", "no events here"):
        await node.kubelet.start()
        await node.apply_static(pod("web"))
        await node.wait_running("web")
        await node.run_for(2)
    expect_equal(node, node.count(STREAM) - before, MAX_STREAM_ERRORS, "calls for events")
    since = node.now_s
    await node.run_for(6)
    expect(node, plain_lists(node, since) >= 5, "at least five relists in 6 s", node.now_s)
    await node.runtime.kill_container("main", pod="web")
    await node.run_until(
        lambda: node.count("StartContainer", container="main") == 2,
        within_s=limits.NOTICE_S,
        what="a second start of main",
    )
    expect_equal(node, node.count(STREAM) - before, MAX_STREAM_ERRORS, "calls for events in all")


@conformance(
    id="evented-stream-breaks-after-a-failed-start", rules=["PLEG-302", "LIFE-032"],
    level=Level.DETAIL, needs=[STATUS, EVENTS, FAULTS], node_config=GATE,
)  # fmt: skip
async def a_pod_that_failed_to_start_before_the_events_broke_is_started(node: Node) -> None:
    """With EventedPLEG a pod whose sandbox could not be made is tried again, although the stream of
    events breaks while the kubelet still reads what another pod does."""
    with node.runtime.on("ContainerStatus", pod="slow").delays(8.0):
        await node.apply_static(pod("slow"))
        await node.run_until(
            lambda: node.count("ContainerStatus", pod="slow"),
            within_s=limits.START_S,
            what="a slow reading",
        )
        with node.runtime.on("RunPodSandbox", pod="web").fails("UNKNOWN", "no network"):
            await node.apply_static(pod("web"))
            await node.run_until(
                lambda: node.count("RunPodSandbox", pod="web"),
                within_s=limits.START_S,
                what="a failed start",
            )
            with node.runtime.away():
                await node.run_for(0.1)
    await node.run_until(
        lambda: "running" in node.states("web", "main"),
        within_s=8 + 2 * CACHE_TIME_S + limits.SYNC_ERROR_S,
        what="web runs",
    )
