"""What the runtime says of itself: its conditions, and what its handlers can do."""

from typing import Any

from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect_equal
from kubelet_conformance.harness.manifests import container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.registry import Feature, conformance

API, STATUS, FAULTS, KILL = Feature.API, Feature.STATUS, Feature.FAULTS, Feature.OUTSIDE_KILL
STATUS_PERIOD_S = 5.0  # NODE-050
NODE_UPDATE_S = 7.0 + 10.4 + limits.START_S  # NODE-002 and NODE-010


@conformance(id="cri-condition-missing", rules=["CRI-130.1"], needs=[STATUS, FAULTS], alone=True)
async def a_condition_that_is_not_told_is_not_true(node: Node) -> None:
    """If Status has two conditions and NetworkReady is not among them, pods that need the network
    wait."""

    def renamed(answer: Any) -> None:
        for condition in answer.status.conditions:
            if condition.type == "NetworkReady":
                condition.type = "SomethingElse"

    await node.apply_static(pod("before"))
    await node.wait_running("before")
    with node.runtime.on("Status").changes_answer(renamed):
        await node.run_for(STATUS_PERIOD_S + 1)
        await node.apply_static(pod("web"))
        await node.run_for(STATUS_PERIOD_S)
        expect_equal(node, node.count("RunPodSandbox", pod="web"), 0, "sandboxes of web")


@conformance(id="cri-conditions-of-others", rules=["CRI-130.3"], needs=[STATUS, FAULTS], alone=True)
async def other_conditions_and_their_order_do_not_matter(node: Node) -> None:
    """A further condition that is false, and conditions in another order, change nothing: pods
    start."""

    def shuffled(answer: Any) -> None:
        rows = list(answer.status.conditions)
        answer.status.ClearField("conditions")
        answer.status.conditions.add(type="ContainerdHasNoDeprecationWarnings", status=False)
        answer.status.conditions.extend(reversed(rows))
        answer.status.conditions.add(type="Unknown", status=False, reason="Why", message="because")

    with node.runtime.on("Status").changes_answer(shuffled):
        await node.run_for(STATUS_PERIOD_S + 1)
        await node.apply_static(pod("web"))
        await node.wait_running("web")


def without_features(answer: Any) -> None:
    """A change of Status: the default handler can do nothing, and `other` can do one thing."""
    answer.ClearField("runtime_handlers")
    answer.ClearField("features")
    for name, recursive in (("", False), ("users", False), ("mounts", True)):
        handler = answer.runtime_handlers.add(name=name)
        handler.features.recursive_read_only_mounts = recursive
        handler.features.user_namespaces = name == "users"


@conformance(
    id="cri-handler-features", rules=["CRI-132.1", "CRI-132.2", "LIFE-147.5", "LIFE-146.1"],
    needs=[API, FAULTS], since="1.33", alone=True)  # fmt: skip
async def what_a_handler_cannot_do_is_refused(node: Node) -> None:
    """Whether a pod can have users of its own is asked of the handler of its class, and of no
    other; a pod that cannot gets no sandbox, and an event says why."""
    node.runtime.on("Status").changes_answer(without_features)
    await node.api.create_runtime_class("with-users", "users")
    await node.api.create_runtime_class("with-mounts", "mounts")
    await node.run_for(STATUS_PERIOD_S + 1)
    classes = {"plain": None, "able": "with-users", "unable": "with-mounts"}
    for name, each in classes.items():
        fields: dict[str, Any] = {"runtimeClassName": each} if each else {}
        await node.api.create_pod(pod(name, hostUsers=False, **fields))
    await node.run_until(
        lambda: (
            all(node.events("FailedCreatePodSandBox", pod=name) for name in ("plain", "unable"))
            and node.count("RunPodSandbox", pod="able")
        ),
        within_s=2 * limits.START_S,
        what="two refusals and one sandbox",
    )
    messages = {
        name: node.events("FailedCreatePodSandBox", pod=name)[0]["message"]
        for name in ("plain", "unable")
    }
    start = "Failed to create pod sandbox: can't set `spec.hostUsers: false`, "
    expected_messages = {
        "plain": f"{start}runtime does not support user namespaces",
        "unable": f'{start}RuntimeClass handler "mounts" does not support user namespaces',
    }
    expect_equal(node, messages, expected_messages, "messages of the events")
    handler = node.calls("RunPodSandbox", pod="able")[0].request.runtime_handler
    expect_equal(node, handler, "users", "handler of able")
    refused = [n for n in ("plain", "unable") if node.count("RunPodSandbox", pod=n)]
    expect_equal(node, refused, [], "sandboxes of the others")


@conformance(
    id="cri-mounts-not-recursive",
    rules=["CRI-132.2", "LIFE-148.1", "LIFE-148.2"],
    needs=[API, FAULTS],
    alone=True,
)
async def a_handler_without_recursive_mounts_is_not_asked_for_them(node: Node) -> None:
    """recursiveReadOnly IfPossible is not asked of a handler that can do other things and not that,
    and Enabled keeps the container waiting."""

    def users_only(answer: Any) -> None:
        without_features(answer)
        answer.runtime_handlers[0].features.user_namespaces = True

    node.runtime.on("Status").changes_answer(users_only)
    await node.run_for(STATUS_PERIOD_S + 1)
    mounts = {
        mode: [{"name": "d", "mountPath": "/d", "readOnly": True, "recursiveReadOnly": mode}]
        for mode in ("IfPossible", "Enabled")
    }
    maybe = container("maybe", volumeMounts=mounts["IfPossible"])
    must = container("must", volumeMounts=mounts["Enabled"])
    volumes = [{"name": "d", "emptyDir": {}}]
    await node.api.create_pod(pod("web", maybe, must, volumes=volumes))
    await node.run_until(
        lambda: (
            node.count("CreateContainer", container="maybe")
            and node.api.container("web", "must").get("state", {}).get("waiting", {}).get("reason")
            == "CreateContainerConfigError"
        ),
        within_s=limits.START_S + limits.STATUS_PASS_S,
        what="maybe is created, must waits",
    )
    made_mounts = node.calls("CreateContainer", container="maybe")[0].request.config.mounts
    recursive = [m.recursive_read_only for m in made_mounts if m.container_path == "/d"]
    expect_equal(node, recursive, [False], "recursive_read_only")
    expect_equal(node, node.count("CreateContainer", container="must"), 0, "creations of must")


@conformance(
    id="cri-groups-policy-unknown",
    rules=["CRI-132.3", "LIFE-224.4"],
    needs=[API, FAULTS],
    since="1.33",
    alone=True,
)
async def strict_groups_need_a_runtime_that_knows_them(node: Node) -> None:
    """A pod with supplementalGroupsPolicy Strict is refused where the runtime does not know it. The
    kubelet reads that in its Node, so the pod comes when the Node has been written."""

    def without_groups(answer: Any) -> None:
        answer.features.ClearField("supplemental_groups_policy")
        answer.features.SetInParent()  # a runtime that tells features, and not this one

    node.runtime.on("Status").changes_answer(without_groups)
    await node.run_for(STATUS_PERIOD_S + NODE_UPDATE_S)  # the Node has been written since
    strict = {"supplementalGroups": [7], "supplementalGroupsPolicy": "Strict"}
    await node.api.create_pod(pod("web", securityContext=strict))
    await node.run_until(
        lambda: node.api.phase("web") == "Failed", within_s=limits.START_S, what="Failed"
    )
    status = (node.api.pod("web") or {})["status"]
    reason = "SupplementalGroupsPolicyNotSupported"
    expect_equal(node, status.get("reason"), reason, "reason")
