"""What is resized, and what is not where a feature gate is off."""

from typing import Any

from kubelet_conformance.cases.lifecycle.resizing.common import (
    IN_PROGRESS,
    NEEDS,
    RESIZE_S,
    api_condition,
    asking,
    resized,
    run_pod,
    until,
    updates,
)
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.harness.workload import runs
from kubelet_conformance.registry import conformance

ALLOCATED = "allocated_pods_state"


def off(gate: str) -> dict[str, Any]:
    """A configuration with that feature gate off."""
    return {"featureGates": {gate: False}}


async def resize_setup(node: Node) -> None:
    """A pod whose plain init container `setup` runs, and is resized to 200m."""
    setup = container("setup", runs(), resources=asking("100m", "64Mi"))
    await node.api.create_pod(pod("web", init=[setup]))
    await node.run_until(
        lambda: "running" in node.api.container("web", "setup").get("state", {}),
        within_s=limits.START_S,
        what="setup runs",
    )
    await node.run_for(limits.NOTICE_S)
    await node.api.resize_pod("web", "setup", asking("200m", "64Mi"), init=True)


@conformance(id="resize-init-container", rules=["CG-061.9", "CG-064.2"], needs=NEEDS, since="1.36")
async def a_running_init_container_is_resized(node: Node) -> None:
    """An init container that is no sidecar is resized while it runs, and its resources are
    allocated."""
    await resize_setup(node)
    await until(node, lambda: updates(node, "setup"), "setup is updated")
    text = node.machine.read_root_file(ALLOCATED)
    expect(node, "setup" in text and "200m" in text, f"200m for setup in {text!r}")


@conformance(
    id="resize-init-container-off",
    rules=["CG-061.9"],
    needs=NEEDS,
    node_config=off("InPlacePodVerticalScalingInitContainers"),
    since="1.36",
)
async def without_the_gate_a_running_init_container_is_not_resized(node: Node) -> None:
    """With InPlacePodVerticalScalingInitContainers off an init container that is no sidecar keeps
    the resources that it was started with, and none of its are allocated."""
    await resize_setup(node)
    await node.run_for(RESIZE_S)
    expect_equal(node, updates(node, "setup"), [], "updates of setup")
    text = node.machine.read_root_file(ALLOCATED)
    expect(node, "main" in text and "setup" not in text, f"main and not setup in {text!r}")


@conformance(
    id="resize-whole-pod-off",
    rules=["CG-061.7"],
    needs=NEEDS,
    node_config=off("InPlacePodLevelResourcesVerticalScaling"),
    since="1.36",
)
async def without_the_gate_a_pod_is_not_resized_as_a_whole(node: Node) -> None:
    """With InPlacePodLevelResourcesVerticalScaling off a change of spec.resources reaches neither
    the pod's cgroup nor containers that have no limits of their own; those with some are resized
    as ever."""
    own = container("own", resources=asking("100m", "64Mi"))
    plan = pod("web", container("main"), own, resources=asking("300m", "256Mi"))
    await run_pod(node, plan)
    await node.api.resize_whole_pod("web", asking("400m", "256Mi"))
    await node.run_for(RESIZE_S)
    calls = [*updates(node), *updates(node, "own"), *node.calls("UpdatePodSandboxResources")]
    expect_equal(node, calls, [], "calls for a resize")
    expect_equal(node, api_condition(node, "web", IN_PROGRESS), {}, "PodResizeInProgress")
    await node.api.resize_pod("web", "own", asking("150m", "64Mi"))
    await resized(node, "web")
    expect_equal(node, updates(node), [], "updates of main")
    expect_equal(node, len(updates(node, "own")), 1, "updates of own")
