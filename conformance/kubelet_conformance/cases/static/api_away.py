"""Static pods while the API server does not answer: they run all the same."""

from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect_equal
from kubelet_conformance.harness.manifests import pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.registry import Feature, conformance

API, RESTART = Feature.API, Feature.RESTART


@conformance(id="mirror-refused", rules=["MIRR-021.4", "MIRR-026.3"], needs=[API], alone=True)
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
