"""In-place resize: running containers get other CPU and memory, or are restarted for it."""

from typing import Any

from conformance.harness import limits
from conformance.harness.expect import expect_equal, expect_order
from conformance.harness.manifests import container, pod
from conformance.harness.node import Node
from conformance.registry import Feature, conformance

API = Feature.API


def asking(cpu: str, memory: str) -> dict[str, Any]:
    """Requests and limits alike."""
    return {"requests": {"cpu": cpu, "memory": memory}, "limits": {"cpu": cpu, "memory": memory}}


@conformance(id="resize-running", rules=["CG-064", "CG-065"], needs=[API, Feature.RESIZE])
async def a_resize_updates_the_running_container(node: Node) -> None:
    """More memory and CPU: UpdateContainerResources for memory, then for CPU; no restart."""
    main = container("main", resources=asking("100m", "64Mi"))
    await node.create_pod(pod("web", main, container("other")))
    await node.run_until(
        lambda: node.count("StartContainer", container="other"), within_s=limits.START_S
    )
    await node.run_for(limits.NOTICE_S)
    await node.resize_pod("web", "main", asking("200m", "96Mi"))
    await node.run_until(
        lambda: node.count("UpdateContainerResources", container="main") == 2,
        within_s=limits.NOTICE_S,
        what="two updates of main",
    )
    told = [c.request.linux for c in node.calls("UpdateContainerResources", container="main")]
    seen = [(r.memory_limit_in_bytes >> 20, r.cpu_quota) for r in told]
    expect_equal(node, seen, [(96, 10_000), (96, 20_000)], "memory limit in MiB, CPU quota")
    await node.run_for(limits.NOTICE_S)
    expect_equal(node, node.count("UpdateContainerResources"), 2, "updates")
    expect_equal(node, node.count("StopContainer", pod="web"), 0, "stops")


@conformance(id="resize-restart", rules=["CG-064", "LIFE-115"], needs=[API, Feature.RESIZE])
async def a_resize_restarts_the_container_where_its_policy_says_so(node: Node) -> None:
    """With resizePolicy RestartContainer for memory the container is stopped and started again,
    with its new memory, in the same sandbox."""
    policy = [{"resourceName": "memory", "restartPolicy": "RestartContainer"}]
    main = container("main", resources=asking("100m", "64Mi"), resizePolicy=policy)
    await node.create_pod(pod("web", main))
    await node.run_until(
        lambda: node.count("StartContainer", container="main"), within_s=limits.START_S
    )
    await node.run_for(limits.NOTICE_S)
    await node.resize_pod("web", "main", asking("100m", "96Mi"))
    await node.run_until(
        lambda: node.count("StartContainer", container="main") == 2,
        within_s=limits.NOTICE_S + limits.STOP_S,
        what="a second start of main",
    )
    expect_order(
        node,
        node.writes("web"),
        ["StopContainer main/0", "CreateContainer main/1", "StartContainer main/1"],
        "stop, then the next attempt",
    )
    made = node.calls("CreateContainer", container="main")[1].request.config.linux.resources
    expect_equal(node, made.memory_limit_in_bytes, 96 << 20, "memory limit")
    expect_equal(node, node.count("UpdateContainerResources"), 0, "updates")
    expect_equal(node, node.count("RunPodSandbox", pod="web"), 1, "sandboxes")
