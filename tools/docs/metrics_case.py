"""Records what /metrics of a kubelet shows, for tools/docs/keep_metrics.py: after the start, with a
pod that runs and one that has ended, and when the first is gone. METRICS_DIR: where pages go."""

from __future__ import annotations

import os
from pathlib import Path

from kubelet_conformance.harness.manifests import container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import exits
from kubelet_conformance.registry import Feature, conformance

SETTLED_S = 8.0
WEBSOCKET = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
    "Sec-WebSocket-Protocol": "v5.channel.k8s.io",
}


@conformance(id="record-metrics", rules=["SRV-036"], needs=[Feature.STATUS])
async def the_pages_of_a_short_life_are_recorded(node: Node) -> None:
    """The page of a node without pods, with two pods (and after a command in one), and after the
    end of one."""
    await record(node, "start")
    await node.apply_static(pod("web"))
    await node.wait_running("web")
    await node.apply_static(pod("job", container("main", exits(3)), restartPolicy="Never"))
    await node.run_for(SETTLED_S)
    path = f"/exec/default/{node.runtime.pod_name('web')}/main?command=true&output=1"
    await node.kubelet.get(path, headers=WEBSOCKET, for_s=1.0)
    await record(node, "pods")
    await node.remove_static("web")
    await node.run_for(SETTLED_S)
    await record(node, "end")


async def record(node: Node, name: str) -> None:
    """Write the page to a file of that name."""
    page = (await node.kubelet.get("/metrics")).text
    Path(os.environ["METRICS_DIR"], f"{name}.prom").write_text(page, encoding="utf-8")
