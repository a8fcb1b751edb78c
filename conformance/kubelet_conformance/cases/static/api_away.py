"""Static pods while the API server does not answer: they run all the same."""

from typing import Any

from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import exits
from kubelet_conformance.registry import Feature, conformance

API, RESTART = Feature.API, Feature.RESTART


@conformance(
    id="mirror-refused", rules=["MIRR-021.4", "MIRR-026.3", "LIFE-070.7"], needs=[API], alone=True
)
async def a_refused_mirror_does_not_delay_the_pod(node: Node) -> None:
    """While the API server refuses to create pods a static pod starts; its mirror pod is created
    when the server accepts it."""
    with node.api.fails("POST", "/pods$"):
        await node.apply_static(pod("web"))
        await node.wait_running("web")
        expect_equal(node, node.api.pod("web"), None, "mirror")
    await node.kubelet.stop()
    await node.kubelet.start()
    await node.run_until(
        lambda: node.api.pod("web"), within_s=limits.START_S + limits.STATUS_PASS_S, what="a mirror"
    )


@conformance(id="mirror-late-quiet", rules=["STAT-025.2"], needs=[API, Feature.VIRTUAL_TIME])
async def a_late_mirror_gets_the_status_that_was_there_before(node: Node) -> None:
    """A mirror pod that could not be made for a while has the status of its static pod within one
    pass after it was made, although that status has not changed since."""
    with node.api.fails("POST", "/pods$"):
        await node.apply_static(pod("web"))
        await node.wait_running("web")
        await node.run_for(limits.STATUS_PASS_S + limits.NOTICE_S)
    await node.run_until(lambda: node.api.pod("web"), within_s=120, what="a mirror")
    await node.run_until(
        lambda: node.api.phase("web") == "Running",
        within_s=limits.STATUS_PASS_S + 1,
        what="the mirror shows Running",
    )


@conformance(
    id="api-away-at-start",
    rules=[
        "SRC-070.1",
        "SRC-070.3",
        "SRC-071.1",
        "SRC-071.2",
        "SRC-071.6",
        "SRC-072.1",
        "SRC-072.2",
        "SRC-072.3",
        "SRC-072.4",
    ],
    needs=[API, RESTART],
)
async def with_no_api_since_the_start_pods_start_but_do_not_stop(node: Node) -> None:
    """Until a restarted kubelet has got its pods from the API server for the first time, the pods
    of the server run on, a removed manifest leaves its pod running, and an edited one its former
    version."""
    await node.api.run_pods(pod("job"))
    await node.apply_static(pod("edited"))
    await node.wait_running("edited")
    await node.kubelet.stop()
    with node.api.down():
        await node.kubelet.start()
        await node.apply_static(pod("web"))
        await node.wait_running("web")
        await node.remove_static("web")
        await node.apply_static(pod("edited", metadata={"labels": {"v": "2"}}))
        await node.run_for(3 * limits.HOUSEKEEPING_S)
        expect_equal(node, node.count("StopContainer"), 0, "stops while the API is away")
        expect_equal(node, node.count("RunPodSandbox", pod="edited"), 1, "sandboxes of edited")
    await node.run_until(
        lambda: node.count("StopContainer", pod="web"),
        within_s=60 + limits.STOP_S,
        what="web stops when the API is back",
    )
    await node.run_until(
        lambda: node.count("RunPodSandbox", pod="edited") == 2,
        within_s=limits.STOP_S + limits.STATIC_SUCCESSOR_S,
        what="the new version of edited starts",
    )
    expect_equal(node, node.count("StopContainer", pod="job"), 0, "stops of job")


@conformance(id="api-away-later", rules=["SRC-072.5"], needs=[API], alone=True)
async def an_api_outage_does_not_hold_up_static_pods(node: Node) -> None:
    """When the API server fails later, manifests start and stop pods as usual."""
    await node.apply_static(pod("old"))
    await node.wait_running("old")
    await node.run_for(limits.NOTICE_S)
    with node.api.down():
        await node.apply_static(pod("new"))
        await node.wait_running("new")
        await node.remove_static("old")
        await node.run_until(
            lambda: node.count("StopPodSandbox", pod="old"), within_s=limits.STOP_S
        )


@conformance(
    id="api-away-garbage",
    rules=["SRC-071.4", "SRC-071.1"],
    needs=[API, RESTART, Feature.VIRTUAL_TIME],
)
async def garbage_of_pods_that_are_not_known_yet_stays(node: Node) -> None:
    """A restarted kubelet that cannot ask the API server for its pods removes none of their dead
    containers and sandboxes, though it collects garbage; when it has asked, they belong to pods
    that are still there."""
    both = (container("done", exits(0)), container("main"))
    await node.api.create_pod(pod("half", *both, restartPolicy="Never"))
    await node.api.create_pod(pod("over", container("done", exits(0)), restartPolicy="Never"))
    await node.run_until(
        lambda: (
            node.api.phase("over") == "Succeeded"
            and "terminated" in node.api.container("half", "done").get("state", {})
        ),
        within_s=limits.START_S + limits.STOP_S,
        what="both have ended",
    )
    await node.run_for(limits.STOP_S)
    removals = ("RemoveContainer", "RemovePodSandbox", "StopContainer")
    before = {method: node.count(method) for method in removals}
    await node.kubelet.stop()
    with node.api.down():
        await node.kubelet.start()
        await node.run_for(limits.SETTLE_S + limits.GC_PERIOD_S + limits.NOTICE_S)
        after = {method: node.count(method) for method in removals}
        expect_equal(node, after, before, "removals and stops while the API is away")
    await node.run_for(limits.GC_PERIOD_S + limits.NOTICE_S)
    expect_equal(node, node.count("StopContainer"), before["StopContainer"], "stops")
    state = node.api.container("half", "done")["state"]
    expect(node, "terminated" in state, "done in half still has its exit", state)


@conformance(
    id="sources-before-housekeeping",
    rules=["SRC-070.2", "SRC-071.1"],
    needs=[API, RESTART, Feature.FAULTS, Feature.VIRTUAL_TIME],
    alone=True,
)
async def pods_that_wait_to_be_taken_over_are_not_killed(node: Node) -> None:
    """While the runtime is not ready a restarted kubelet is told its pods by the API server and
    does nothing for them. When the runtime is ready no pod is killed as unknown, whatever the
    kubelet does first; it is so each time."""

    def broken(answer: Any) -> None:
        for condition in answer.status.conditions:
            condition.status = condition.type != "RuntimeReady"

    await node.api.run_pods(pod("job"))
    for _ in range(4):
        await node.kubelet.stop()
        with node.api.slow("GET", "/api/v1/pods$", limits.SETTLE_S + 8):
            await node.kubelet.start()
            await node.run_for(limits.SETTLE_S)
            with node.runtime.on("Status").changes_answer(broken):
                await node.run_for(14)  # the runtime is asked every 5 s
        await node.run_for(5 + limits.START_S + limits.HOUSEKEEPING_S)
        expect_equal(node, node.count("StopContainer"), 0, "stops")
        expect_equal(node, node.count("StartContainer"), 1, "starts")


@conformance(id="services-late", rules=["SRC-040"], needs=[API, RESTART])
async def a_static_pod_does_not_wait_for_the_services(node: Node) -> None:
    """A restarted kubelet that has no list of services yet starts its static pods; a pod of the API
    server starts when the list is there."""
    await node.kubelet.stop()
    with node.api.fails("GET", "/api/v1/services$"):
        await node.kubelet.start()
        await node.apply_static(pod("web"))
        await node.api.create_pod(pod("job"))
        await node.wait_running("web")
        await node.run_until(
            lambda: node.count("RunPodSandbox", pod="job"),
            within_s=limits.START_S,
            what="the sandbox of job",
        )
        await node.run_for(limits.NOTICE_S)
        expect_equal(node, node.count("StartContainer", pod="job"), 0, "starts of job")
    await node.run_until(
        lambda: node.count("StartContainer", pod="job"),
        within_s=60 + limits.SYNC_ERROR_S,
        what="job starts when there is a list of services",
    )
