"""Statuses of pods that end, or of which something ends: what comes when, and what stays."""

from typing import Any

from fakecri import stops
from kubelet_conformance.cases.lifecycle.answers.api_pods import api_running
from kubelet_conformance.cases.status.conditions import condition, status, until
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import MISSING_IMAGE, container, pod, sidecar
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import exits, ignores_term, in_turn, runs
from kubelet_conformance.registry import Feature, conformance

API, FAULTS, KILL = Feature.API, Feature.FAULTS, Feature.OUTSIDE_KILL


def written(node: Node, name: str = "web") -> list[dict[str, Any]]:
    """The statuses in the patches of that pod."""
    requests = node.api.requests("PATCH", f"/pods/{name}/status$")
    return [r.body["status"] for r in requests if r.status < 300]


@conformance(id="phase-waits-for-the-end", rules=["STAT-027.1"], needs=[API])
async def a_terminal_phase_waits_for_the_containers(node: Node) -> None:
    """While the containers of a pod past its deadline still stop, the API does not show it as
    Failed."""
    slow = container("main", ignores_term())
    await node.api.run_pods(pod("web", slow, grace_s=5, activeDeadlineSeconds=3))
    await node.run_until(
        lambda: node.count("StopContainer", pod="web"), within_s=3 + limits.NOTICE_S, what="a stop"
    )
    await node.run_for(3)
    expect_equal(node, node.api.phase("web"), "Running", "phase while main stops")
    expect(node, node.calls("StopContainer")[0].ended_s is None, "main still stops")
    await node.run_until(
        lambda: node.api.phase("web") == "Failed", within_s=5 + limits.STOP_S, what="Failed"
    )


@conformance(id="evicted-status", rules=["STAT-027.2", "STAT-027.1"], needs=[API, Feature.PRESSURE])
async def an_evicted_pod_is_shown_as_disrupted_when_it_has_ended(node: Node) -> None:
    """The condition DisruptionTarget of an evicted pod comes together with the phase Failed, after
    its containers have stopped."""
    slow = container(
        "main",
        runs(stops(1, after_s=1.5)),
        resources={"requests": {"memory": "1Mi"}},  # no best-effort pod: those are not admitted
    )
    await node.api.run_pods(pod("web", slow))
    async with node.kubelet.pressure("memory.available"):
        await node.run_until(
            lambda: node.api.phase("web") == "Failed",
            within_s=limits.START_S + limits.EVICTION_CYCLE_S + limits.STOP_S,
            what="Failed",
        )
    await node.run_for(limits.STATUS_PASS_S)
    ending = (node.api.phase("web"), status(node).get("reason"))
    expect_equal(node, ending, ("Failed", "Evicted"), "phase and reason")
    expect_equal(node, condition(node, "DisruptionTarget").get("status"), "True", "the condition")
    first = next(
        body
        for body in written(node)
        if any(c.get("type") == "DisruptionTarget" for c in body.get("conditions") or ())
    )
    expect_equal(node, first.get("phase"), "Failed", "phase in the patch with DisruptionTarget")


@conformance(
    id="ended-and-back",
    rules=["STAT-008.3", "STAT-008.4", "STAT-008.6"],
    needs=[API],
)
async def containers_that_may_run_again_are_shown_running_again(node: Node) -> None:
    """A container that failed under OnFailure and a sidecar are shown as running again after their
    end, in pods that do not restart otherwise."""
    once = in_turn(exits(1, after_s=3), runs())
    clean = in_turn(exits(0, after_s=3), runs())
    plans = {
        "failed": pod("failed", container("main", once), restartPolicy="OnFailure"),
        "side": pod(
            "side", container("work"), init=[sidecar("main", clean)], restartPolicy="Never"
        ),
    }
    await node.api.run_pods(*plans.values())
    for name in plans:
        await runs_again(node, name)


@conformance(id="ended-and-back-own", rules=["STAT-008.4"], needs=[API], since="1.35")
async def a_container_with_an_own_policy_is_shown_running_again(node: Node) -> None:
    """A container whose own policy is Always is shown as running again after its end, in a pod with
    policy Never."""
    main = container("main", in_turn(exits(0, after_s=3), runs()), restartPolicy="Always")
    await node.api.run_pods(pod("own", main, restartPolicy="Never"))
    await runs_again(node, "own")


async def runs_again(node: Node, name: str) -> None:
    """Expect the API to show the container main of that pod running after one restart."""
    await node.run_until(
        lambda: (
            node.api.container(name, "main").get("restartCount") == 1
            and "running" in node.api.container(name, "main")["state"]
        ),
        within_s=3 + limits.STATUS_PASS_S,
        what=f"main of {name} running again at the API",
    )


@conformance(
    id="deleted-before-init", rules=["STAT-010.2", "STAT-010.3", "LIFE-205.2"], needs=[API]
)
async def a_pod_deleted_while_it_initialised(node: Node) -> None:
    """A pod that is deleted before its first init container has run ends as Failed; that container
    gets an exit code, and those after it still wait."""
    absent = container("i1", image=MISSING_IMAGE, imagePullPolicy="Never")
    plan = pod("web", init=[absent, container("i2")], metadata={"finalizers": ["example.com/look"]})
    await node.api.create_pod(plan)
    await node.run_until(
        lambda: node.events("ErrImageNeverPull", pod="web"), within_s=limits.START_S
    )
    await node.api.delete_pod("web", grace_s=2)
    await node.run_until(
        lambda: node.api.phase("web") == "Failed", within_s=2 + limits.STOP_S, what="Failed"
    )
    ended = {
        name: (node.api.container("web", name)["state"].get("terminated") or {}).get("exitCode")
        for name in ("i1", "i2", "main")
    }
    expect_equal(node, ended, {"i1": 137, "i2": None, "main": None}, "exit codes")
    await node.api.patch_pod("web", {"metadata": {"finalizers": None}})


@conformance(
    id="sandbox-lost-conditions",
    rules=["STAT-043.1", "STAT-042.4", "LIFE-180"],
    needs=[API, FAULTS, KILL],
)
async def conditions_of_a_pod_whose_sandbox_is_lost(node: Node) -> None:
    """While a lost sandbox cannot be made again PodReadyToStartContainers is False; Initialized
    stays True while init containers run anew."""
    await node.api.run_pods(pod("web", init=[container("i1", exits(0, after_s=1))]))
    await until(node, "Ready", "True")
    before = len(written(node))
    with node.runtime.on("RunPodSandbox").fails("UNKNOWN", "no sandbox today"):
        await node.runtime.stop_sandbox("web")
        await until(node, "PodReadyToStartContainers", "False", 2 * limits.NOTICE_S)
    await until(node, "Ready", "True", limits.SYNC_ERROR_S + 2 * limits.START_S)
    expect_equal(node, node.count("StartContainer", container="i1"), 2, "runs of i1")
    back = [
        c
        for body in written(node)[before:]
        for c in body.get("conditions") or ()
        if c.get("type") == "Initialized" and c.get("status") == "False"
    ]
    expect_equal(node, back, [], "conditions Initialized=False after it was True")


@conformance(id="ended-stays-ended", rules=["STAT-008.1", "STAT-008.2"], needs=[API])
async def a_container_that_ended_for_good_is_never_shown_otherwise(node: Node) -> None:
    """In a pod with policy Never a container that ended keeps its exit in the status, even if its
    dead container is removed behind the kubelet's back."""
    await node.api.create_pod(
        pod("web", container("main"), container("done", exits(3)), restartPolicy="Never")
    )
    await api_running(node, "web")
    await node.run_until(
        lambda: "terminated" in node.api.container("web", "done").get("state", {}),
        within_s=limits.START_S,
        what="done has ended",
    )
    await node.runtime.forget("web", container="done")
    for _ in range(20):
        await node.run_for(0.5)
        state = node.api.container("web", "done")["state"]
        code = (state.get("terminated") or {}).get("exitCode")
        expect_equal(node, code, 3, "exit code of done")


@conformance(
    id="late-status-is-not-ready",
    rules=["STAT-028.1", "STAT-028.2", "STAT-028.3"],
    needs=[API, Feature.PRESSURE],
)
async def a_status_from_before_the_end_is_not_ready_at_the_end(node: Node) -> None:
    """A status that was made while the containers ran, and that reaches the API server as Failed,
    has Ready and ContainersReady False for the reason that the pod has failed, with the generation
    of the pod."""
    main = container("main", resources={"requests": {"memory": "1Mi"}})
    await node.api.run_pods(pod("web", main))
    await node.run_for(limits.NOTICE_S)
    generation = (node.api.pod("web") or {})["metadata"].get("generation")
    async with node.kubelet.pressure("memory.available"):
        with node.api.slow("GET", "/pods/web$", 4):
            await node.run_until(
                lambda: node.api.phase("web") == "Failed",
                within_s=limits.START_S + limits.EVICTION_CYCLE_S + limits.STOP_S + 2 * 4,
                what="Failed",
            )
            for kind in ("Ready", "ContainersReady"):
                row = condition(node, kind)
                found = (row.get("status"), row.get("reason"), row.get("observedGeneration"))
                expect_equal(node, found, ("False", "PodFailed", generation), kind)


@conformance(id="refused-loses-its-conditions", rules=["STAT-022.7"], needs=[API, Feature.PRESSURE])
async def what_a_refused_pod_had_is_gone_at_the_server(node: Node) -> None:
    """A pod that runs, and that a restarted kubelet refuses, has neither conditions nor containers
    at the API server until they have been looked at again: nothing of what was true is left."""
    main = container("main", resources={"requests": {"memory": "1Mi"}})
    await node.api.run_pods(pod("web", main))
    before = len(node.statuses("web"))

    def bare() -> list[dict[str, Any]]:
        after = node.statuses("web")[before:]
        return [each for each in after if not each.get("containerStatuses")]

    async with node.kubelet.pressure("pid.available"):
        await node.run_until(
            bare,
            within_s=limits.START_S + limits.EVICTION_CYCLE_S,
            what="a status without containers",
        )
        expect_equal(node, bare()[0].get("conditions") or [], [], "its conditions")
