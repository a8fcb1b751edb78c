"""A kubelet without an API server: files alone say what runs, and nobody else is waited for."""

from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import ExecProbe, container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.registry import Feature, conformance


@conformance(
    id="standalone",
    rules=["SRC-052.1", "SRC-052.2", "SRC-052.3", "SRC-070.3"],
    needs=[Feature.STATUS, Feature.RESTART],
)
async def a_kubelet_without_an_api_server_waits_for_none(node: Node) -> None:
    """Static pods run, are shown as ready and are stopped when their manifests are removed, also
    one that was removed while the kubelet was down; no API server, no mirror is waited for."""
    probes = {"readiness": ExecProbe()}
    await node.apply_static(pod("web", container("main", probes=probes)))
    await node.apply_static(pod("other"))
    await node.run_until(
        lambda: node.container("web", "main").get("ready"),
        within_s=limits.START_S + 2,
        what="web is ready",
    )
    expect_equal(node, node.phase("web"), "Running", "phase")
    expect(node, (node.pod("web") or {})["status"].get("startTime"), "startTime")
    await node.remove_static("web")
    await node.run_until(
        lambda: node.count("StopPodSandbox", pod="web"), within_s=limits.STOP_S, what="web stops"
    )
    await node.kubelet.stop()
    await node.remove_static("other")
    await node.kubelet.start()
    await node.run_until(
        lambda: node.count("StopPodSandbox", pod="other"),
        within_s=limits.SETTLE_S + limits.START_S + 2 * limits.HOUSEKEEPING_S + limits.STOP_S,
        what="other stops",
    )
