"""Records of containers that are gone: what runs again because of it, what does not, and how
restarts are counted then."""

from pathlib import Path
from shutil import rmtree

from kubecri.v1 import api_pb2 as cri

from fakecri import prints
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal, expect_order
from kubelet_conformance.harness.manifests import ExecProbe, container, pod, sidecar
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import exits, in_turn, runs
from kubelet_conformance.registry import Feature, KnownBug, conformance

API, STATUS = Feature.API, Feature.STATUS
KILL, FAULTS = Feature.OUTSIDE_KILL, Feature.FAULTS
OFTEN = {"crashLoopBackOff": {"maxContainerRestartPeriod": "1s"}}


async def remove(node: Node, name: str) -> None:
    """Remove the newest container of that name behind the kubelet's back, running or not."""
    container_id = node.calls("StartContainer", container=name)[-1].request.container_id
    request = cri.RemoveContainerRequest(container_id=container_id)
    await node.runtime.direct.call("RemoveContainer", request)


async def look_again(node: Node, name: str) -> None:
    """Change a label of the pod, so that the kubelet syncs it; a removed record alone leads to no
    sync (LIFE-003)."""
    await node.run_for(limits.NOTICE_S)
    await node.api.patch_pod(name, {"metadata": {"labels": {"look": "again"}}})


def removed(node: Node, name: str) -> list[int]:
    """The attempts of the containers of that name that the kubelet has removed, in order."""
    return [c.attempt for c in node.calls("RemoveContainer", container=name)]


@conformance(
    id="init-record-removed",
    rules=["LIFE-120.2", "LIFE-173.2", "LIFE-175.3"],
    needs=[STATUS, Feature.RESTART],
    bugs=[
        KnownBug(
            "131317", "A completed init container without its record shows as waiting", fixed="1.36"
        )
    ],
)
async def an_init_container_whose_record_was_removed_does_not_run_again(node: Node) -> None:
    """While the regular container runs, nothing is started for init containers whose dead instances
    were removed, by a restarted kubelet either; the status says that they have completed."""
    init = [container("first", exits(0)), container("second", exits(0))]
    await node.apply_static(pod("web", init=init))
    await node.run_until(lambda: node.running("web"), within_s=limits.START_S + limits.NOTICE_S)
    await remove(node, "first")
    await remove(node, "second")
    await node.run_for(limits.NOTICE_S)
    await node.kubelet.restart()
    await node.run_for(limits.START_S + 2 * limits.NOTICE_S)
    counts = [node.count("CreateContainer", container=name) for name in ("first", "second", "main")]
    expect_equal(node, counts, [1, 1, 1], "creations of first, second and main")
    for name in ("first", "second"):
        ended = node.container("web", name).get("state", {}).get("terminated", {})
        exit_fields = (ended.get("exitCode"), ended.get("reason"))
        expect_equal(node, exit_fields, (0, "Completed"), f"exit code and reason of {name}")
        expect(node, node.container("web", name)["ready"], f"{name} is ready", "not ready")
    expect_equal(node, node.phase("web"), "Running", "phase")


@conformance(
    id="sidecar-record-removed", rules=["LIFE-120.1", "LIFE-161.2", "LIFE-181.3"], needs=[STATUS]
)
async def a_sidecar_whose_record_was_removed_is_started_again(node: Node) -> None:
    """A running sidecar that was removed behind the kubelet's back is started again beside the
    running regular container, and the plain init container before it is not. Until its startup
    probe has succeeded, the pod stays Running and Initialized."""
    side = sidecar("side", probes={"startup": ExecProbe(from_s=2, failure_threshold=30)})
    await node.apply_static(pod("web", init=[container("setup", exits(0)), side]))
    await node.run_until(
        lambda: node.running("web", "side", "main"), within_s=limits.START_S + 2 + limits.NOTICE_S
    )
    await remove(node, "side")
    await node.run_until(
        lambda: node.count("StartContainer", container="side") == 2,
        within_s=2 * limits.NOTICE_S,
        what="a second start of side",
    )
    await node.run_for(limits.NOTICE_S)
    counts = [node.count("StartContainer", container=name) for name in ("setup", "side", "main")]
    expect_equal(node, counts, [1, 2, 1], "starts of setup, side and main")
    expect_equal(node, node.phases("web"), ["Pending", "Running"], "phases")
    conditions = [c for s in node.statuses("web") for c in s.get("conditions", ())]
    values = [condition["status"] for condition in conditions if condition["type"] == "Initialized"]
    expect(node, "False" not in values[values.index("True") :], "Initialized stays True", values)


@conformance(
    id="count-from-logs", rules=["LIFE-132.2"], needs=[STATUS], node_config=OFTEN, since="1.35"
)
async def without_a_record_restarts_are_counted_by_the_logs(node: Node) -> None:
    """When all instances of a container are gone, the next one has the number after that of the
    newest log."""
    work = in_turn(*[exits(1, prints("a line"), after_s=1.0)] * 3, runs(prints("last")))
    await node.apply_static(pod("web", container("main", work)))
    await node.run_until(
        lambda: (
            node.count("StartContainer", container="main") == 4
            and node.container("web", "main").get("restartCount") == 3
            and node.running("web")
        ),
        within_s=limits.START_S + 3 * (1 + limits.restart_after(1).high_s),
        what="the fourth instance runs",
    )
    await node.run_for(limits.NOTICE_S)
    numbers = removed(node, "main")
    for call in node.calls("StartContainer", container="main"):
        if call.attempt not in numbers:
            request = cri.RemoveContainerRequest(container_id=call.request.container_id)
            await node.runtime.direct.call("RemoveContainer", request)
    await node.run_until(
        lambda: node.count("CreateContainer", container="main") == 5,
        within_s=2 * limits.NOTICE_S,
        what="another instance",
    )
    attempts = [c.attempt for c in node.calls("CreateContainer", container="main")]
    expect_equal(node, attempts, [0, 1, 2, 3, 4], "attempts")


@conformance(
    id="count-never-falls", rules=["LIFE-173.3"], needs=[STATUS], node_config=OFTEN, since="1.36"
)
async def the_restart_count_does_not_fall_when_all_is_lost(node: Node) -> None:
    """When the instances of a container and their logs are gone, the next one is number 0 in the
    runtime, but the restart count that is shown stays. Kubelets see to that since they restart all
    containers of a pod (gate RestartAllContainersOnContainerExits)."""
    await node.apply_static(pod("web", container("main", in_turn(exits(1, after_s=1), runs()))))
    await node.run_until(
        lambda: node.container("web", "main").get("restartCount") == 1 and node.running("web"),
        within_s=limits.START_S + 1 + limits.restart_after(1).high_s + limits.NOTICE_S,
        what="the second instance runs",
    )
    await node.run_for(limits.NOTICE_S)
    (sandbox,) = node.calls("RunPodSandbox", pod="web")
    rmtree(Path(sandbox.request.config.log_directory) / "main", ignore_errors=True)
    for call in node.calls("StartContainer", container="main"):
        if call.attempt not in removed(node, "main"):
            request = cri.RemoveContainerRequest(container_id=call.request.container_id)
            await node.runtime.direct.call("RemoveContainer", request)
    await node.run_until(
        lambda: node.count("StartContainer", container="main") == 3,
        within_s=2 * limits.NOTICE_S,
        what="a third instance",
    )
    await node.run_for(limits.NOTICE_S)
    counts = [
        c["restartCount"] for s in node.statuses("web") for c in s.get("containerStatuses") or []
    ]
    expect_equal(node, counts, sorted(counts), "restart counts that never fall")


@conformance(
    id="init-old-instances", rules=["LIFE-130.3"], needs=[STATUS], node_config=OFTEN, since="1.35"
)
async def of_a_retried_init_container_only_the_newest_instance_stays(node: Node) -> None:
    """Before an init container that has failed is started again, its older instances are removed,
    and never the newest one."""
    setup = container("setup", in_turn(*[exits(1)] * 3, exits(0)))
    await node.apply_static(pod("web", init=[setup]))
    await node.run_until(
        lambda: node.running("web"),
        within_s=limits.START_S + 3 * limits.restart_after(1).high_s + limits.NOTICE_S,
        what="main runs after the fourth try of setup",
    )
    numbers = removed(node, "setup")
    expect(node, {0, 1} <= set(numbers), "removed instances 0 and 1", numbers)
    expect(node, 3 not in numbers, "the newest instance, number 3, stays", numbers)
    times = {c.attempt: node.time_s(c) for c in node.calls("RemoveContainer", container="setup")}
    created = node.times_s("CreateContainer", container="setup")
    expect(node, times[0] <= created[2] + 1e-3, "0 is removed before number 2 is made", times)


@conformance(
    id="new-sandbox-init-removed",
    rules=["LIFE-130.2", "LIFE-111.4", "LIFE-111.5", "BACK-104.6", "LIFE-111.1"],
    needs=[STATUS, KILL],
    node_config=OFTEN,
    since="1.35",
)
async def before_a_new_sandbox_the_records_of_init_containers_are_removed(node: Node) -> None:
    """For a new sandbox all instances of init containers are removed first, so that each runs
    again, in order; one of OnFailure that had succeeded does not."""
    init = [container(name, exits(0)) for name in ("first", "second")]
    short_lived = container("done", exits(0, after_s=1))
    plan = pod("web", container("main"), short_lived, init=init, restartPolicy="OnFailure")
    await node.apply_static(plan)
    other = pod(
        "other", container("goes-on"), container("over", exits(0)), restartPolicy="OnFailure"
    )
    await node.apply_static(other)
    await node.run_until(
        lambda: (
            node.running("web", "main")
            and "terminated" in node.container("web", "done").get("state", {})
            and "terminated" in node.container("other", "over").get("state", {})
        ),
        within_s=limits.START_S + 2 * limits.NOTICE_S,
        what="main runs, and done has ended",
    )
    for name in ("web", "other"):
        await node.runtime.stop_sandbox(name)
    await node.run_until(
        lambda: (
            node.count("RunPodSandbox") == 4
            and node.running("web", "main")
            and node.running("other", "goes-on")
        ),
        within_s=limits.START_S + 3 * limits.NOTICE_S + limits.restart_after(1).high_s,
        what="main runs in a new sandbox",
    )
    again_s = node.times_s("RunPodSandbox", pod="web")[1]
    new = [c.container for c in node.calls("StartContainer", pod="web", since_s=again_s)]
    expect_equal(node, node.count("CreateContainer", container="over"), 1, "creations of over")
    expect_equal(node, new, ["first", "second", "main"], "starts in the new sandbox")
    for name in ("first", "second"):
        times = node.times_s("RemoveContainer", container=name)
        expect(node, times and times[0] <= again_s, f"{name} removed before the sandbox", times)


@conformance(
    id="created-left-behind",
    rules=["LIFE-114.3", "LIFE-131.3", "BACK-101.2"],
    needs=[STATUS, FAULTS, Feature.RESTART],
)
async def a_container_that_was_only_created_is_replaced(node: Node) -> None:
    """A container that a kubelet had created and not started when it died is replaced by the next
    attempt, also in a pod with policy Never."""
    rule = node.runtime.on("StartContainer", container="main").hangs()
    await node.apply_static(pod("job", container("main"), restartPolicy="Never"))
    await node.run_until(
        lambda: node.count("StartContainer", container="main"), within_s=limits.START_S
    )
    await node.kubelet.kill()
    rule.remove()
    await node.kubelet.start()
    await node.run_until(
        lambda: node.running("job"),
        within_s=limits.START_S + limits.SYNC_ERROR_S,
        what="main runs",
    )
    writes = ["CreateContainer main/0", "CreateContainer main/1", "StartContainer main/1"]
    expect_order(node, node.writes("job"), writes, "a new attempt")


@conformance(
    id="created-is-shown",
    rules=["LIFE-170.2", "LIFE-114.3", "LIFE-170.4"],
    needs=[STATUS, FAULTS, Feature.RESTART],
)
async def a_container_that_was_only_created_waits_without_a_reason(node: Node) -> None:
    """A container that a kubelet had created and not started when it died waits without a reason
    until the next kubelet has replaced it; it has not ended."""
    rule = node.runtime.on("StartContainer", container="main").hangs()
    await node.apply_static(pod("web"))
    await node.run_until(
        lambda: node.count("StartContainer", container="main"), within_s=limits.START_S
    )
    await node.kubelet.kill()
    rule.remove()
    node.runtime.on("CreateContainer", container="main").delays(4)
    await node.kubelet.start()
    await node.run_until(
        lambda: node.count("CreateContainer", container="main") == 2,
        within_s=limits.START_S + limits.SYNC_ERROR_S,
        what="a second creation",
    )
    await node.run_for(2)
    state = node.container("web", "main").get("state", {})
    expect_equal(node, state, {"waiting": {}}, "state of main while it is made again")
    await node.wait_running("web")
    last = node.container("web", "main").get("lastState", {})
    expect(node, "terminated" not in last, "no end in the last state: nothing had run", last)


@conformance(id="start-error-forgotten", rules=["LIFE-070.12", "LIFE-070.3"], needs=[API, FAULTS])
async def the_reason_of_a_failed_start_is_forgotten(node: Node) -> None:
    """The reason of a start that failed before is not shown again after a later exit."""
    node.runtime.on("CreateContainer", container="main").fails("UNKNOWN", "no space", times=1)
    work = in_turn(exits(6, after_s=3), runs())
    await node.api.create_pod(pod("web", container("main", work)))
    await node.run_until(
        lambda: node.count("StartContainer", container="main"),
        within_s=limits.START_S + limits.SYNC_ERROR_S,
        what="main starts after its failed creation",
    )
    await node.run_for(1)
    node.runtime.on("StartContainer", container="main").delays(3)
    await node.run_until(
        lambda: (
            node.api.container("web", "main").get("restartCount") == 1
            and "running" in node.api.container("web", "main")["state"]
        ),
        within_s=2 + 3 + limits.START_S + limits.NOTICE_S,
        what="the second instance runs",
    )
    await node.run_until(
        lambda: node.states("web", "main")[-1:] == ["running"], within_s=limits.NOTICE_S
    )
    states = node.states("web", "main")
    after = states[states.index("running") :]
    expect(node, "waiting(CreateContainerError)" not in after, "no old reason", states)


@conformance(id="last-state-kept", rules=["LIFE-170.3"], needs=[API], since="1.36")
async def how_a_container_ended_is_shown_without_its_record(node: Node) -> None:
    """lastState stays when the dead instance is removed behind the kubelet's back. Kubelets do so
    since they restart all containers of a pod, which removes them (gate
    RestartAllContainersOnContainerExits)."""
    await node.api.create_pod(pod("web", container("main", in_turn(exits(6, after_s=3), runs()))))
    await node.run_until(
        lambda: (
            node.api.container("web", "main").get("restartCount") == 1
            and "running" in node.api.container("web", "main")["state"]
        ),
        within_s=3 + 2 * limits.START_S + limits.NOTICE_S,
        what="the second instance runs",
    )
    (first, _) = node.calls("StartContainer", container="main")
    request = cri.RemoveContainerRequest(container_id=first.request.container_id)
    await node.runtime.direct.call("RemoveContainer", request)
    await look_again(node, "web")
    await node.run_for(2 * limits.NOTICE_S)
    last = node.api.container("web", "main").get("lastState", {}).get("terminated", {})
    expect_equal(node, last.get("exitCode"), 6, "exit code in lastState")


@conformance(
    id="sidecars-die-together", rules=["LIFE-121.2", "LIFE-122.2"], needs=[STATUS, KILL, FAULTS]
)
async def sidecars_that_die_together_start_in_their_order(node: Node) -> None:
    """Two sidecars that were killed start again in the order of the spec, the second one in the
    same sync even if the first cannot be created."""
    await node.apply_static(pod("web", init=[sidecar("one"), sidecar("two")]))
    await node.run_until(lambda: node.running("web", "one", "two", "main"), within_s=8)
    await node.run_for(limits.NOTICE_S)
    node.runtime.on("CreateContainer", container="one").fails("UNKNOWN", "no space", times=1)
    for name in ("one", "two"):
        await node.runtime.kill_container(name, pod="web")
    await node.run_until(
        lambda: node.count("StartContainer", container="two") == 2,
        within_s=limits.NOTICE_S + limits.RELIST_S,
        what="two starts again",
    )
    order = ["CreateContainer one/1", "CreateContainer two/1"]
    expect_order(node, node.writes("web"), order, "one is tried before two")
    await node.run_until(
        lambda: node.count("StartContainer", container="one") == 2,
        within_s=limits.SYNC_ERROR_S + limits.START_S,
        what="one starts again",
    )
    expect_equal(node, node.count("StartContainer", container="main"), 1, "starts of main")
