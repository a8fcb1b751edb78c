"""Probes that no pod may have: the manifest that asks for one is refused."""

from typing import Any

from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect_equal
from kubelet_conformance.harness.manifests import container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.registry import Feature, conformance

RUN: dict[str, Any] = {"exec": {"command": ["true"]}}
REFUSED: dict[str, dict[str, Any]] = {
    "without-handler": {"livenessProbe": {"periodSeconds": 5}},
    "two-handlers": {"readinessProbe": {**RUN, "tcpSocket": {"port": 80}}},
    "digits": {"livenessProbe": {"httpGet": {"port": "8080"}}},
    "no-port": {"startupProbe": {"httpGet": {"port": 0}}},
    "no-tcp-port": {"livenessProbe": {"tcpSocket": {"port": 65536}}},
    "no-grpc-port": {"livenessProbe": {"grpc": {"port": 65536}}},
    "two-successes": {"livenessProbe": {**RUN, "successThreshold": 2}},
    "two-starts": {"startupProbe": {**RUN, "successThreshold": 2}},
    "grace-of-readiness": {"readinessProbe": {**RUN, "terminationGracePeriodSeconds": 5}},
    "grace-of-zero": {"livenessProbe": {**RUN, "terminationGracePeriodSeconds": 0}},
}


@conformance(
    id="probes-refused",
    rules=[
        "PROBE-001.2",
        "PROBE-003.3",
        "PROBE-003.4",
        "PROBE-060.3",
        "PROBE-061.2",
        "PROBE-061.3",
        "SRC-037.2",
    ],
    needs=[Feature.STATUS],
    alone=True,
)
async def probes_that_cannot_be_are_refused(node: Node) -> None:
    """Manifests with a probe of a plain init container, without a handler or with two, of a port
    that is none, with a successThreshold or a grace period where there is none, are refused each;
    the same things in their places are not."""
    for name, fields in REFUSED.items():
        await node.apply_static(pod(name, container("main", **fields)))
    for kind in ("liveness", "readiness", "startup"):
        probed: dict[str, Any] = {f"{kind}Probe": RUN}
        await node.apply_static(pod(f"init-{kind}", init=[container("i", **probed)]))
    good: dict[str, Any] = {
        "readinessProbe": {**RUN, "successThreshold": 2},
        "livenessProbe": {**RUN, "terminationGracePeriodSeconds": 1},
        "startupProbe": {"tcpSocket": {"port": 65535}, "failureThreshold": 100},
    }
    await node.apply_static(pod("web", container("main", **good)))
    await node.wait_running("web")
    await node.run_for(limits.NOTICE_S)
    names = {str(c.request.config.metadata.name) for c in node.calls("RunPodSandbox")}
    expect_equal(node, names, {f"web-{node.name}"}, "pods with a sandbox")
