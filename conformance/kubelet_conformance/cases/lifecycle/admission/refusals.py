"""Pods that a node refuses: each reason and message, and that nothing is done for them."""

from typing import Any

from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import PodPlan, container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.registry import Feature, conformance

API = Feature.API
REFUSED_S = limits.START_S + limits.STATUS_PASS_S
RESTART_ALL = "RestartAllContainersOnContainerExits"
NO_LEVEL = {"PodLevelResources": False, "InPlacePodLevelResourcesVerticalScaling": False}


async def refused(node: Node, plan: PodPlan, reason: str, message: str) -> None:
    """Create the pod and expect that it is Failed with that reason and message, in status and
    event, and that no call was made for it."""
    await node.api.create_pod(plan)
    name = plan.name
    await node.run_until(lambda: node.api.phase(name) == "Failed", within_s=REFUSED_S)
    status = (node.api.pod(name) or {})["status"]
    expected_status = (reason, f"Pod was rejected: {message}")
    expect_equal(node, (status["reason"], status["message"]), expected_status, "status")
    await node.run_until(  # events take their time
        lambda: node.events(reason, pod=name), within_s=limits.NOTICE_S, what=f"event {reason}"
    )
    event_fields = [(event["type"], event["message"]) for event in node.events(reason, pod=name)]
    expect_equal(node, event_fields, [("Warning", message)], "event")
    expect_equal(node, node.count("RunPodSandbox", pod=name), 0, "sandboxes")


@conformance(
    id="admit-os",
    rules=[
        "LIFE-224",
        "LIFE-002.2",
        "LIFE-010.4",
        "LIFE-011.1",
        "LIFE-011.2",
        "LIFE-011.3",
        "LIFE-011.4",
    ],
    needs=[API],
)
async def a_pod_for_another_system_is_refused(node: Node) -> None:
    """A pod whose field or label names Windows is refused on Linux."""
    message = "Failed to admit pod as the OS field doesn't match node OS"
    await refused(node, pod("field", os={"name": "windows"}), "PodOSNotSupported", message)
    label = {"labels": {"kubernetes.io/os": "windows"}}
    text = "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label"
    await refused(node, pod("label", metadata=label), "PodOSSelectorNodeLabelDoesNotMatch", text)


@conformance(id="admit-sysctl", rules=["LIFE-222"], needs=[API])
async def an_unsafe_kernel_setting_is_refused(node: Node) -> None:
    """A sysctl that is neither safe nor allowed is refused."""
    context = {"sysctls": [{"name": "kernel.msgmax", "value": "65536"}]}
    text = 'forbidden sysctl: "kernel.msgmax" not allowlisted'
    await refused(node, pod("web", securityContext=context), "SysctlForbidden", text)


@conformance(id="admit-apparmor", rules=["LIFE-227"], needs=[API, Feature.NO_APPARMOR])
async def a_profile_of_apparmor_needs_apparmor(node: Node) -> None:
    """Where the kernel has no AppArmor a pod that wants a profile for itself or for a container is
    refused; one that is unconfined runs."""
    text = "Cannot enforce AppArmor: AppArmor is not enabled on the host"
    shared = {"appArmorProfile": {"type": "RuntimeDefault"}}
    await refused(node, pod("default", securityContext=shared), "AppArmor", text)
    own = {"appArmorProfile": {"type": "Localhost", "localhostProfile": "mine"}}
    plan = pod("own", container("main", securityContext=own))
    await refused(node, plan, "AppArmor", text)
    free = {"appArmorProfile": {"type": "Unconfined"}}
    await node.api.run_pods(pod("free", securityContext=free))


@conformance(
    id="admit-name", rules=["LIFE-226", "LIFE-225.4"], needs=[API], node_config={"maxPods": 1}
)
async def what_does_not_fit_is_told_in_order(node: Node) -> None:
    """A pod that neither fits nor belongs on this node is refused because it does not fit: that is
    checked first."""
    await node.api.create_pod(pod("one"))
    await node.run_until(lambda: node.api.phase("one") == "Running", within_s=limits.START_S)
    text = "Node didn't have enough resource: pods, requested: 1, used: 1, capacity: 1"
    await refused(node, pod("two", nodeSelector={"no": "such"}), "OutOfpods", text)


@conformance(id="admit-ports", rules=["LIFE-226"], needs=[API], alone=True)
async def a_taken_host_port_is_refused(node: Node) -> None:
    """A pod that wants a port of the node that another pod has is refused."""
    ports: dict[str, Any] = {"ports": [{"containerPort": 80, "hostPort": 8080}]}
    await node.api.create_pod(pod("one", container("main", **ports)))
    await node.run_until(lambda: node.api.phase("one") == "Running", within_s=limits.START_S)
    text = "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports"
    await refused(node, pod("two", container("main", **ports)), "NodePorts", text)


@conformance(
    id="admit-features",
    rules=["LIFE-228", "LIFE-228.1", "LIFE-228.2"],
    needs=[API],
    node_config={"featureGates": {RESTART_ALL: False, **NO_LEVEL}},
    since="1.36",
)
async def a_pod_that_needs_what_is_switched_off_is_refused(node: Node) -> None:
    """Pods that use features whose gates are off are refused: they do not run without them."""
    exits = {"operator": "In", "values": [1]}
    rules: dict[str, Any] = {
        "restartPolicy": "Never",
        "restartPolicyRules": [{"action": "RestartAllContainers", "exitCodes": exits}],
    }
    text = f"Pod requires node features that are not available: {RESTART_ALL}"
    await refused(node, pod("web", container("main", **rules)), "PodFeatureUnsupported", text)
    level = {"requests": {"cpu": "10m"}}
    text = "PodLevelResources feature gate is disabled"
    await refused(node, pod("level", resources=level), "PodLevelResourcesNotSupported", text)


@conformance(id="node-features", rules=["NODE-035"], needs=[API], since="1.36", alone=True)
async def the_node_tells_what_it_and_its_runtime_can(node: Node) -> None:
    """The Node lists the runtime's handlers in order, whether the runtime supports
    supplementalGroupsPolicy, and the features that pods may need."""
    await node.api.create_pod(pod("web"))
    await node.run_until(lambda: node.api.phase("web") == "Running", within_s=limits.START_S)
    await node.run_until(
        lambda: node.api.node_status("declaredFeatures"),
        within_s=limits.STATUS_PASS_S,
        what="the features in the Node's status",
    )
    await node.run_until(
        lambda: any(call.response is not None for call in node.calls("Status")),
        within_s=limits.STATUS_PASS_S,
        what="the runtime is asked for its status",
    )
    call = next(call for call in node.calls("Status") if call.response is not None)
    names = sorted(handler.name for handler in call.response.runtime_handlers)
    handlers = node.api.node_status("runtimeHandlers") or []
    expect_equal(node, [handler.get("name", "") for handler in handlers], names, "runtime handlers")
    groups = call.response.features.supplemental_groups_policy
    features = node.api.node_status("features") or {}  # none where the runtime tells none
    has_policy = features.get("supplementalGroupsPolicy", False)
    expect_equal(node, has_policy, groups, "supplementalGroupsPolicy")
    declared = node.api.node_status("declaredFeatures") or []
    expect(node, RESTART_ALL in declared, f"{RESTART_ALL} declared", declared)
    expect_equal(node, declared, sorted(declared), "declared features in order")
