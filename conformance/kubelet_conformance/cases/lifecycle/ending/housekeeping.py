"""What housekeeping does about pods that are gone, or have come again."""

from kubelet_conformance.cases.lifecycle.answers.api_pods import api_running
from kubelet_conformance.cases.lifecycle.ending.overlaps import timeouts
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect_equal
from kubelet_conformance.harness.manifests import container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import ignores_term
from kubelet_conformance.registry import Feature, conformance

API, STATUS, FAULTS = Feature.API, Feature.STATUS, Feature.FAULTS


@conformance(id="gone-and-not-stopped", rules=["LIFE-039.5"], needs=[API, FAULTS])
async def a_pod_that_is_gone_and_cannot_be_stopped_is_tried_at_every_cleanup(node: Node) -> None:
    """A pod that has vanished from the API and whose container cannot be stopped is tried again
    every 2 s, not only after the back-off of a failed sync."""
    await node.api.create_pod(pod("web"))
    await api_running(node, "web")
    container_stays = node.runtime.on("StopContainer", pod="web").fails("UNKNOWN", "no shim")
    sandbox_stays = node.runtime.on("StopPodSandbox", pod="web").fails("UNKNOWN", "no shim")
    with container_stays, sandbox_stays:
        await node.api.delete_pod("web", grace_s=0)
        await node.run_until(
            lambda: node.count("StopContainer", pod="web") >= 4,
            within_s=limits.NOTICE_S + 3 * limits.HOUSEKEEPING_S,
            what="four tries to stop the container",
        )
    await node.run_until(
        lambda: any(c.succeeded for c in node.calls("StopPodSandbox", pod="web")),
        within_s=limits.HOUSEKEEPING_S + limits.NOTICE_S,
        what="web is stopped",
    )


@conformance(
    id="same-uid-again",
    rules=["LIFE-039.6", "LIFE-004.3", "LIFE-031.4"],
    needs=[STATUS],
    alone=True,
)
async def a_pod_that_comes_again_while_it_ends_runs_again(node: Node) -> None:
    """A static pod whose manifest is removed, and written again with the same UID while its
    container is being stopped, is made again in the clean-up that finds its end."""
    plan = pod(
        "web",
        container("main", ignores_term()),
        grace_s=4,
        metadata={"uid": "11111111-2222-3333-4444-555555555555"},
    )
    await node.apply_static(plan)
    await node.wait_running("web")
    await node.remove_static("web")
    await node.run_until(
        lambda: node.count("StopContainer", pod="web"), within_s=limits.STOP_S, what="the stop"
    )
    await node.apply_static(plan)
    await node.run_until(
        lambda: node.count("StartContainer", pod="web") == 2,
        within_s=4 + limits.STOP_S + 2 * limits.HOUSEKEEPING_S + limits.START_S,
        what="a second start",
    )
    expect_equal(node, timeouts(node, "main"), [4], "timeouts of StopContainer")


@conformance(
    id="gone-before-its-start",
    rules=["LIFE-039.2", "LIFE-034.3"],
    needs=[API, STATUS, Feature.RESTART],
)
async def a_pod_that_waited_for_its_turn_and_is_gone_never_starts(node: Node) -> None:
    """A second version of a static pod waits for the first one, which is not stopped before the
    kubelet has reached the API server. When both are gone by then, the first one is stopped, and
    the second one does not start in its place; nothing is known of it, so that it runs when it
    comes again."""
    second = pod("web", grace_s=2, metadata={"labels": {"v": "2"}})
    await node.kubelet.stop()
    with node.api.down():
        await node.kubelet.start()
        await node.apply_static(pod("web", grace_s=2))
        await node.wait_running("web")
        await node.apply_static(second)
        await node.run_for(2 * limits.NOTICE_S)
        await node.remove_static("web")
        await node.run_for(2 * limits.NOTICE_S)
        expect_equal(node, node.count("StopContainer"), 0, "stops while the API is away")
    await node.run_until(
        lambda: node.count("StopPodSandbox", pod="web"),
        within_s=60 + limits.STOP_S,
        what="web stops when the API is back",
    )
    await node.run_for(limits.STATIC_SUCCESSOR_S + limits.NOTICE_S)
    expect_equal(node, node.count("RunPodSandbox", pod="web"), 1, "sandboxes of web")
    await node.apply_static(second)
    await node.run_until(
        lambda: node.count("StartContainer", pod="web") == 2,
        within_s=20 + limits.START_S,
        what="the second version runs",
    )
