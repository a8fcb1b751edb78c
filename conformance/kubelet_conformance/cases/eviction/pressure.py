"""A node under memory pressure by a threshold far above what is available, so that it works on
every machine."""

from typing import Any

from fakecri import stops
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal, expect_order
from kubelet_conformance.harness.manifests import PodPlan, container, hook, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import runs
from kubelet_conformance.registry import Feature, Level, conformance

API, STATUS, FAULTS, PRESSURE = Feature.API, Feature.STATUS, Feature.FAULTS, Feature.PRESSURE
MEMORY = "memory.available"
# A restarted kubelet needs its first stats, a cycle, and the stop of the pod.
EVICTED_S = limits.START_S + 2 * limits.EVICTION_CYCLE_S + limits.STOP_S


def burstable(name: str, **spec: Any) -> PodPlan:
    """A pod with a request, which therefore starts under memory pressure (EVIC-110).

    The request is small, because the threshold leaves the node little allocatable memory.
    """
    fields: dict[str, Any] = {"resources": {"requests": {"memory": "1Mi", "cpu": "1m"}}}
    return pod(name, container("main", runs(stops(1)), **fields), **spec)


async def evicted(node: Node, name: str, *, within_s: float = EVICTED_S) -> None:
    """Run until the API shows the pod as Failed."""
    await node.run_until(
        lambda: node.api.phase(name) == "Failed", within_s=within_s, what=f"{name} evicted"
    )


@conformance(
    id="evict-hard",
    rules=["EVIC-087.1", "EVIC-088.1", "EVIC-094.1", "EVIC-094.2", "EVIC-094.5", "EVIC-095.1",
           "EVIC-095.2", "EVIC-095.3", "LIFE-031.6", "LIFE-166.2"],
    needs=[API, PRESSURE],
    node_config={"evictionMaxPodGracePeriod": 7},
)  # fmt: skip
async def a_hard_threshold_evicts_with_the_minimum_grace(node: Node) -> None:
    """Below a hard threshold a pod is stopped with 2 s, whatever its grace period and
    evictionMaxPodGracePeriod; it is Failed and not Ready, stays so, and its container is
    removed."""
    await node.api.run_pods(burstable("web", grace_s=20))
    async with node.kubelet.pressure(MEMORY):
        await evicted(node, "web")
        timeouts = [c.request.timeout for c in node.calls("StopContainer", pod="web")]
        expect_equal(node, timeouts, [2], "timeouts of StopContainer")
        status = (node.api.pod("web") or {})["status"]
        expect_equal(node, status["reason"], "Evicted", "reason")
        start = "The node was low on resource: memory. Threshold quantity: "
        expect(node, status["message"].startswith(start), f"message {start!r}...", status)
        conditions = {c["type"]: c for c in status["conditions"]}
        readiness = [conditions[kind]["status"] for kind in ("Ready", "ContainersReady")]
        expect_equal(node, readiness, ["False"] * 2, "Ready and ContainersReady when it is Failed")
        target = conditions.get("DisruptionTarget", {})
        wanted_target = ("True", "TerminationByKubelet", status["message"])
        target_fields = tuple(target.get(name) for name in ("status", "reason", "message"))
        expect_equal(node, target_fields, wanted_target, "DisruptionTarget")
        await node.run_until(
            lambda: node.count("RemoveContainer", pod="web"),
            within_s=limits.STATUS_PASS_S,
            what="the removal of the container",
        )
    await node.run_for(limits.NOTICE_S)
    expect(node, node.api.pod("web"), "the evicted pod is still at the API")
    expect_equal(node, node.count("StartContainer", pod="web"), 1, "starts")


@conformance(id="evict-generation", rules=["EVIC-094.2"], needs=[API, PRESSURE], since="1.34")
async def the_condition_of_an_eviction_has_a_generation(node: Node) -> None:
    """DisruptionTarget of an evicted pod has the pod's generation as observedGeneration."""
    await node.api.run_pods(burstable("web"))
    async with node.kubelet.pressure(MEMORY):
        await evicted(node, "web")
    web = node.api.pod("web") or {}
    actual = {c["type"]: c.get("observedGeneration") for c in web["status"]["conditions"]}
    expect_equal(node, actual.get("DisruptionTarget"), web["metadata"]["generation"], "generation")


@conformance(id="evict-not-static", rules=["EVIC-085.1", "SRC-039"], needs=[STATUS, PRESSURE])
async def static_pods_are_never_evicted(node: Node) -> None:
    """Under pressure a static pod keeps running, even one without requests."""
    await node.apply_static(pod("web"))
    await node.wait_running("web")
    async with node.kubelet.pressure(MEMORY):
        await node.run_for(2 * limits.EVICTION_CYCLE_S + 2)
        expect_equal(node, node.count("StopContainer"), 0, "stops")
        await node.run_until(lambda: node.running("web"), within_s=limits.START_S)


@conformance(id="static-admitted", rules=["EVIC-110.3", "SRC-039"], needs=[STATUS, PRESSURE])
async def static_pods_start_under_pressure(node: Node) -> None:
    """A static pod starts on a node under memory pressure."""
    async with node.kubelet.pressure(MEMORY):
        await node.run_for(limits.EVICTION_CYCLE_S + 2)
        await node.apply_static(pod("web"))
        await node.wait_running("web")


@conformance(id="evict-not-critical", rules=["EVIC-085.3"], needs=[API, PRESSURE])
async def pods_of_system_priority_are_never_evicted(node: Node) -> None:
    """The ordinary pod is evicted, and the one with priority 2000000000 keeps running."""
    await node.api.run_pods(
        burstable("vital", priority=2_000_000_000), burstable("web", priority=1_000_000_000)
    )
    async with node.kubelet.pressure(MEMORY):
        await evicted(node, "web")
        await node.run_for(limits.EVICTION_CYCLE_S + 2)
        expect_equal(node, node.count("StopContainer", pod="vital"), 0, "stops of vital")
        expect_equal(node, node.api.phase("vital"), "Running", "phase of vital")


@conformance(
    id="evict-phase-withheld",
    rules=["EVIC-094.3", "EVIC-094.4", "EVIC-090.1", "EVIC-089.1", "LIFE-190"],
    needs=[API, PRESSURE, FAULTS],
)
async def the_eviction_shows_when_the_containers_are_gone(node: Node) -> None:
    """Until StopContainer has returned, the API shows the evicted pod as Running without a reason;
    the event is there before."""
    await node.api.run_pods(burstable("web"))
    node.runtime.on("StopContainer", pod="web").delays(4)
    async with node.kubelet.pressure(MEMORY):
        await node.run_until(
            lambda: node.count("StopContainer", pod="web"), within_s=EVICTED_S, what="the stop"
        )
        await node.run_for(2.5)
        status = (node.api.pod("web") or {})["status"]
        fields = status["phase"], status.get("reason"), status.get("message")
        expect_equal(node, fields, ("Running", None, None), "phase, reason, message while it stops")
        kinds = [condition["type"] for condition in status["conditions"]]
        expect(node, "DisruptionTarget" not in kinds, "no DisruptionTarget while it stops", kinds)
        expect_equal(node, node.event_count("Evicted", pod="web"), 1, "events while it stops")
        await evicted(node, "web")


@conformance(id="evict-prestop", rules=["EVIC-088.2", "LIFE-143"], needs=[API, PRESSURE])
async def a_prestop_hook_runs_at_an_eviction(node: Node) -> None:
    """An evicted pod's preStop hook runs, and holds up the stop no longer than the grace period of
    the eviction, 1 s."""
    fields: dict[str, Any] = {"resources": {"requests": {"memory": "1Mi"}}}
    hooks = {"preStop": hook(takes_s=8)}
    main = container("main", runs(stops(1)), hooks=hooks, **fields)
    web = pod("web", main, grace_s=20)
    await node.api.run_pods(web)
    async with node.kubelet.pressure(MEMORY):
        await evicted(node, "web")
        expect_order(
            node, node.writes("web"), ["ExecSync main/0", "StopContainer main/0"], "hook, then stop"
        )
        hook_s, stop_s = (
            node.times_s(name, pod="web")[0] for name in ("ExecSync", "StopContainer")
        )
        waited_s = stop_s - hook_s
        held_up = 0.9 <= waited_s <= 3 + node.slack_s
        expect(node, held_up, "the stop 1 s after the hook began", f"{waited_s:.2f} s")


@conformance(
    id="pressure-condition",
    rules=["EVIC-060.1", "EVIC-060.2", "EVIC-056.1", "EVIC-056.2", "EVIC-056.3"],
    needs=[API, PRESSURE],
)
async def pressure_shows_in_the_node(node: Node) -> None:
    """The Node gets MemoryPressure=True and an event EvictionThresholdMet."""
    async with node.kubelet.pressure(MEMORY):
        await node.run_until(
            lambda: node.api.node_condition("MemoryPressure").get("status") == "True",
            within_s=2 * limits.EVICTION_CYCLE_S + limits.START_S,
            what="MemoryPressure",
        )
        row = node.api.node_condition("MemoryPressure")
        expected = ("KubeletHasInsufficientMemory", "kubelet has insufficient memory available")
        expect_equal(node, (row["reason"], row["message"]), expected, "reason and message")
        await node.run_until(
            lambda: node.events("EvictionThresholdMet"),
            within_s=limits.EVICTION_CYCLE_S + 2,
            what="an event EvictionThresholdMet",
        )
        event = node.events("EvictionThresholdMet")[0]
        expected = ("Warning", "Attempting to reclaim memory")
        expect_equal(node, (event["type"], event["message"]), expected, "type and message")


@conformance(
    id="pressure-refuses",
    rules=["EVIC-110.4", "EVIC-111.1", "EVIC-111.3", "EVIC-111.4", "LIFE-011"],
    needs=[API, PRESSURE],
)
async def best_effort_pods_are_refused_under_memory_pressure(node: Node) -> None:
    """Under memory pressure a pod without requests is rejected: it is Failed with reason Evicted,
    and no CRI call is made for it."""
    async with node.kubelet.pressure(MEMORY):
        await node.run_until(
            lambda: node.api.node_condition("MemoryPressure").get("status") == "True",
            within_s=2 * limits.EVICTION_CYCLE_S + limits.START_S,
            what="MemoryPressure",
        )
        await node.api.create_pod(pod("web"))
        await node.run_until(
            lambda: node.api.phase("web") == "Failed",
            within_s=limits.STATUS_PASS_S + limits.START_S,
            what="web rejected",
        )
        status = (node.api.pod("web") or {})["status"]
        message = "Pod was rejected: The node had condition: [MemoryPressure]. "
        expect_equal(node, (status["reason"], status["message"]), ("Evicted", message), "status")
        expect_equal(node, node.count("RunPodSandbox", pod="web"), 0, "sandboxes")
        rows = [(event["type"], event["message"]) for event in node.events("Evicted", pod="web")]
        text = message.removeprefix("Pod was rejected: ")
        expect_equal(node, rows, [("Warning", text)], "events about the refusal")


@conformance(id="pressure-cycle", rules=["EVIC-050"], level=Level.SHOULD, needs=[API, PRESSURE])
async def several_pods_are_evicted_one_after_the_other(node: Node) -> None:
    """While the pressure lasts, the next pod is evicted only after the one before has been cleaned
    up."""
    await node.api.run_pods(burstable("one"), burstable("two"))
    async with node.kubelet.pressure(MEMORY):
        for name in ("one", "two"):
            await evicted(node, name, within_s=EVICTED_S + 35)
        first, two = (node.times_s("StopContainer", pod=n)[0] for n in ("one", "two"))
        expect(node, abs(first - two) >= 0.5, "evictions 0.5 s apart", f"{first:.2f}, {two:.2f}")


@conformance(
    id="evict-stop-hangs",
    rules=[
        "EVIC-089.2",
        "EVIC-089.3",
        "EVIC-089.4",
        "EVIC-090.2",
        "EVIC-086.2",
        "LIFE-040",
        "LIFE-245",
        "LIFE-190",
        "LIFE-040.3",
        "LIFE-040.4",
    ],
    needs=[API, FAULTS, PRESSURE],
)
async def an_eviction_that_takes_too_long_is_told(node: Node) -> None:
    """When an evicted pod has not stopped after 10 s, an event says so (Warning
    ExceededGracePeriod); the pod is not Failed yet, the kill goes on, and no other pod is evicted
    meanwhile."""
    await node.api.run_pods(burstable("web"), burstable("other", priority=5))
    rule = node.runtime.on("StopContainer", pod="web").hangs()
    async with node.kubelet.pressure(MEMORY):
        await node.run_until(
            lambda: node.count("StopContainer", pod="web"), within_s=EVICTED_S, what="StopContainer"
        )
        stop_s = node.times_s("StopContainer", pod="web")[0]
        await node.run_until(
            lambda: node.events("ExceededGracePeriod", pod="web"),
            within_s=10 + limits.NOTICE_S,
            what="event ExceededGracePeriod",
        )
        event = node.events("ExceededGracePeriod", pod="web")[0]
        text = "Container runtime did not kill the pod within specified grace period."
        expect_equal(node, (event["type"], event["message"]), ("Warning", text), "type and message")
        expect(node, node.now_s - stop_s >= 9, "10 s after StopContainer", node.now_s - stop_s)
        expect_equal(node, node.api.phase("web"), "Running", "phase while its container runs")
        expect_equal(node, node.event_count("Evicted"), 1, "evictions")
        expect_equal(node, node.count("StopContainer", pod="other"), 0, "stops of the other pod")
        rule.release()
        await evicted(node, "web", within_s=limits.STOP_S + limits.NOTICE_S)
        expect_equal(node, node.count("StopContainer", pod="web"), 1, "stops of web")
        expect_equal(node, node.event_count("Evicted", pod="web"), 1, "evictions of web")


@conformance(
    id="evict-late-status", rules=["EVIC-094.5", "STAT-028.1", "LIFE-190.2"], needs=[API, PRESSURE]
)
async def a_failed_pod_is_not_ready_however_late_it_is_told(node: Node) -> None:
    """A status that was made when the eviction began, with Ready True, and that reaches the API
    server when the containers are gone, has Ready and ContainersReady False beside Failed."""
    await node.api.run_pods(burstable("web"))
    async with node.kubelet.pressure(MEMORY):
        with node.api.slow("GET", "/pods/web$", 4):
            await evicted(node, "web", within_s=EVICTED_S + 2 * 4)
    patches = node.api.requests("PATCH", "/pods/web/status")
    first = next(r.body["status"] for r in patches if r.body["status"].get("phase") == "Failed")
    states = {c["type"]: c["status"] for c in first["conditions"]}
    values = [states.get(kind) for kind in ("Ready", "ContainersReady")]
    expect_equal(node, values, ["False"] * 2, "Ready and ContainersReady in the patch with Failed")
