"""Pods with resource claims, on a node without a driver for them."""

from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect_equal
from kubelet_conformance.harness.manifests import PodPlan, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.registry import Feature, conformance

NEEDS = [Feature.API, Feature.STATUS]
REASON = "FailedPrepareDynamicResources"
NAMED = {"name": "gpu", "resourceClaimName": "gpu-1"}
OF_TEMPLATE = {"name": "gpu", "resourceClaimTemplateName": "gpus"}
SYNC_S = 90.0 + limits.START_S  # LIFE-037: 60 s times [1, 1.5)
"""A sync that ended without an error is done again after the usual time."""


def wants(claim: dict[str, str]) -> PodPlan:
    return pod("web", resourceClaims=[claim])


async def told(node: Node, text: str) -> None:
    """Wait for the event; the pod has no sandbox, and is shown as Pending."""
    message = f"Failed to prepare dynamic resources: prepare dynamic resources: {text}"
    await node.run_until(
        lambda: any(event["message"] == message for event in node.events(REASON)),
        within_s=SYNC_S,
        what=f"an event {REASON}: {message}",
    )
    expect_equal(node, node.count("RunPodSandbox", pod="web"), 0, "sandboxes")
    static_pod = node.pod("web") or {}
    expect_equal(node, static_pod.get("status", {}).get("phase"), "Pending", "phase")


@conformance(id="claim-missing", rules=["LIFE-130.4"], needs=NEEDS, since="1.34")
async def a_claim_that_is_missing_keeps_its_pod_waiting(node: Node) -> None:
    """A pod with a ResourceClaim that does not exist gets no sandbox, and an event says so."""
    await node.api.create_pod(wants(NAMED))
    missing = 'resourceclaims.resource.k8s.io "gpu-1" not found'
    await told(node, f"fetch ResourceClaim gpu-1: {missing}")


@conformance(id="claim-without-driver", rules=["LIFE-130.4"], needs=NEEDS, since="1.34")
async def a_claim_whose_driver_is_missing_keeps_its_pod_waiting(node: Node) -> None:
    """A pod with a device of a driver that is not on the node gets no sandbox, and an event names
    the driver."""
    await node.api.create_pod(wants(NAMED))
    await node.run_until(
        lambda: node.events(REASON), within_s=limits.START_S, what=f"an event {REASON}"
    )
    web = node.api.pod("web") or {}
    uid = web.get("metadata", {}).get("uid", "")
    await node.api.create_resource_claim("gpu-1", "gpu.example.com", pod_uid=uid)
    await told(node, "DRA driver gpu.example.com is not registered")


@conformance(id="claim-not-needed", rules=["LIFE-130.4"], needs=NEEDS, since="1.34")
async def a_pod_starts_when_no_claim_is_needed(node: Node) -> None:
    """A pod whose claim is to be made of a template waits until its status names the claim; it
    starts when the status says that there is none to make."""
    await node.api.create_pod(wants(OF_TEMPLATE))
    await told(node, 'pod "default/web": ResourceClaim not created yet')
    status = {"status": {"resourceClaimStatuses": [{"name": "gpu"}]}}
    await node.api.patch_pod("web", status, status=True)
    await node.run_until(lambda: node.running("web"), within_s=SYNC_S, what="web runs")
