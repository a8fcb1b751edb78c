"""Pods whose containers have stopped: what is still done for them, and what is not any more."""

from typing import Any

from kubelet_conformance.cases.cgroups.leftovers import freeze, leave_process, thaw
from kubelet_conformance.cases.lifecycle.answers.api_pods import api_running
from kubelet_conformance.cases.lifecycle.ending.shutdown import CRITICAL, run_all, stubborn
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import exits, runs
from kubelet_conformance.registry import Feature, conformance

API, FAULTS, STATUS = Feature.API, Feature.FAULTS, Feature.STATUS
RESTART, KILL = Feature.RESTART, Feature.OUTSIDE_KILL


@conformance(id="finished-pod-changed", rules=["LIFE-031.5"], needs=[API])
async def a_change_of_a_finished_pod_leads_to_nothing(node: Node) -> None:
    """A new label of a pod that has succeeded, and whose cleanup is done, leads to no call that
    changes something in the runtime."""
    job = pod("job", container("main", exits(0, after_s=1)), restartPolicy="Never")
    await node.api.create_pod(job)
    await node.run_until(
        lambda: node.api.phase("job") == "Succeeded" and node.count("StopPodSandbox", pod="job"),
        within_s=limits.START_S + limits.STOP_S,
        what="job has ended",
    )
    await node.run_for(limits.STOP_S)
    before = node.writes("job")
    for value in ("one", "two"):
        await node.api.patch_pod("job", {"metadata": {"labels": {"look": value}}})
        await node.run_for(limits.WATCH_S + limits.NOTICE_S)
    expect_equal(node, node.writes("job"), before, "calls for job")
    expect_equal(node, node.api.phase("job"), "Succeeded", "phase")


@conformance(id="stop-of-what-is-gone", rules=["LIFE-143.6", "CRI-009"], needs=[API, FAULTS])
async def a_container_that_the_runtime_does_not_know_counts_as_stopped(node: Node) -> None:
    """When StopContainer says that there is no such container, the pod's end goes on: its sandbox
    is stopped, no event tells of a failure, and the pod is removed from the API."""
    await node.api.create_pod(pod("web", container("main", runs()), grace_s=2))
    await api_running(node, "web")
    await node.run_for(limits.NOTICE_S)
    node.runtime.on("StopContainer", pod="web").fails("NOT_FOUND", "no such container", times=1)
    await node.api.delete_pod("web")
    await node.run_until(
        lambda: node.api.pod("web") is None,
        within_s=limits.STOP_S + limits.NOTICE_S,
        what="the pod is gone",
    )
    await node.events_arrive()
    expect_equal(node, node.count("StopContainer", pod="web"), 1, "stops of main")
    expect_equal(node, len(node.events("FailedKillPod", pod="web")), 0, "events FailedKillPod")


@conformance(id="orphan-comes-back", rules=["LIFE-036.5"], needs=[STATUS, RESTART], alone=True)
async def a_pod_that_comes_back_after_its_kill_starts_at_once(node: Node) -> None:
    """A restarted kubelet kills a pod without a manifest. When the manifest comes back as soon as
    that is done, a new pod of the same UID starts before the next cleanup, 2 s after the kill."""
    plan = pod("web", grace_s=2, metadata={"uid": "11111111-2222-3333-4444-666666666666"})
    await node.apply_static(plan)
    await node.wait_running("web")
    await node.run_for(limits.NOTICE_S)
    await node.kubelet.stop()
    await node.remove_static("web")
    await node.kubelet.start()
    await node.run_until(
        lambda: node.count("StopPodSandbox", pod="web"),
        within_s=limits.START_S + limits.HOUSEKEEPING_S + limits.STOP_S,
        what="StopPodSandbox of web",
    )
    await node.apply_static(plan)
    await node.run_until(
        lambda: node.count("StartContainer", pod="web") == 2,
        within_s=limits.START_S + limits.STOP_S,
        what="web runs again",
    )
    killed_s = node.times_s("StopContainer", pod="web")[0]
    again_s = node.times_s("RunPodSandbox", pod="web")[1]
    late_s = round(again_s - killed_s, 2)
    expect(node, late_s < 0.8 * limits.HOUSEKEEPING_S, "a sandbox before the cleanup", late_s)


@conformance(
    id="ended-while-away",
    rules=["LIFE-073.1", "LIFE-031.2"],
    needs=[API, RESTART, KILL],
)
async def how_a_pod_ended_while_the_kubelet_was_away_is_shown(node: Node) -> None:
    """A pod that has ended while the kubelet was away, and that another client has marked as
    Failed, is only cleaned up by the next kubelet; its status tells then how its container
    ended."""
    await node.api.create_pod(pod("web", restartPolicy="Never"))
    await api_running(node, "web")
    await node.run_for(limits.NOTICE_S)
    await node.kubelet.stop()
    await node.runtime.kill_container("main", pod="web")
    await node.runtime.stop_sandbox("web")
    await node.api.patch_pod("web", {"status": {"phase": "Failed"}}, status=True)
    await node.kubelet.start()

    def end() -> Any:
        return node.api.container("web", "main").get("state", {}).get("terminated")

    await node.run_until(
        end, within_s=limits.START_S + limits.STATUS_PASS_S + limits.NOTICE_S, what="the end of web"
    )
    told = end()
    expect_equal(node, told.get("exitCode"), 137, "exit code")
    expect(node, told.get("containerID"), "the container that ended", told)
    expect_equal(node, node.count("StopContainer", pod="web"), 0, "stops")
    expect_equal(node, node.api.phase("web"), "Failed", "phase")


@conformance(
    id="ended-before-its-turn",
    rules=["LIFE-031.7"],
    needs=[API, KILL, Feature.SHUTDOWN, Feature.CGROUPS, Feature.CGROUP_V1],
    node_config={
        "shutdownGracePeriodByPodPriority": [
            {"priority": 0, "shutdownGracePeriodSeconds": 12},
            {"priority": 2000000000, "shutdownGracePeriodSeconds": 30},
        ]
    },
)
async def a_pod_that_has_stopped_before_is_not_waited_for(node: Node) -> None:
    """While ordinary pods end for a shutdown the container of a critical pod dies for good, and
    what it left in its cgroup cannot die. When the turn of critical pods comes the shutdown is not
    held up for that one: its containers have stopped."""
    core = pod("core", grace_s=25, restartPolicy="Never", **CRITICAL)
    await run_all(node, stubborn("web"), core)
    process, group = leave_process(node, "core")
    await freeze(node, process)
    node.machine.shut_down()
    await node.run_for(limits.NOTICE_S)
    await node.runtime.kill_container("main", pod="core")
    await node.run_until(
        lambda: node.count("StopPodSandbox", pod="core"),
        within_s=limits.STOP_S,
        what="core has ended by itself",
    )
    expect(node, node.machine.holds_up_shutdown, "the shutdown is held up for web")
    await node.run_until(
        lambda: not node.machine.holds_up_shutdown,
        within_s=12 + limits.STOP_S,
        what="the machine may go down",
    )
    expect_equal(node, node.cgroups.is_gone(*group), False, "the cgroup of core is gone")
    thaw(node)
    node.cgroups.remove("ice")
