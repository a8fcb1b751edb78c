"""What somebody else has changed of the Node: the kubelet compares with what is at the API server,
puts right what is its own, and leaves the rest alone."""

from collections.abc import Mapping
from copy import deepcopy
from functools import partial
from typing import Any

from kubelet_conformance.cases.status.node_ready import spoiled
from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.node import Node
from kubelet_conformance.registry import Feature, conformance

API, RESTART = Feature.API, Feature.RESTART
NODES = r"/api/v1/nodes$"
OF_THE_NODE = r"/api/v1/nodes/[^/]+/status$"
MANAGED = "volumes.kubernetes.io/controller-managed-attach-detach"
UPDATE_S = 10.4  # NODE-010
REGISTER_S = 7.0 + limits.START_S  # NODE-002: between two tries, and a start
READY_S = limits.START_S + 3 * UPDATE_S
"""Until a new Node is Ready: a kubelet that cannot write its CSINode at once tries it again."""
CALM_S = 2 * UPDATE_S
"""After this time nothing of a Node that is Ready changes any more."""
OWN = ("addresses", "allocatable", "capacity", "daemonEndpoints", "nodeInfo")
"""Fields of the status that each kubelet has, and that are all its own."""
PROVIDED_IP = "alpha.kubernetes.io/provided-node-ip"
LISTED_S = 30.0  # NODE-035: between two lists of images
SUFFICIENT = ("NodeHasSufficientMemory", "NodeHasNoDiskPressure", "NodeHasSufficientPID")


async def calm(node: Node) -> dict[str, Any]:
    """Run until the Node is Ready and nothing changes any more; its status."""
    await node.run_until(
        lambda: node.api.node_condition("Ready").get("status") == "True",
        within_s=READY_S,
        what="a Node that is Ready",
    )
    await node.run_for(CALM_S)
    return deepcopy(status(node))


def status(node: Node) -> dict[str, Any]:
    """The status of the Node; it is not to be changed."""
    now: dict[str, Any] = node.api.node_object().get("status") or {}
    return now


async def change(node: Node, **fields: Any) -> None:
    """Write these fields of the Node's status, as another client would."""
    await node.api.patch_node({"status": fields}, status=True)


def with_condition(now: Mapping[str, Any], kind: str, **fields: Any) -> list[dict[str, Any]]:
    """The conditions of a status, with other `fields` in the one of that type."""
    return [c | fields if c["type"] == kind else c for c in now["conditions"]]


def label(node: Node, key: str) -> str:
    """A label of the Node; "" where there is none."""
    return str((node.api.node_metadata("labels") or {}).get(key, ""))


@conformance(
    id="node-ready-unknown-repaired",
    rules=["NODE-015.1", "NODE-021.1", "NODE-024.1"],
    needs=[API],
    alone=True,
)
async def a_node_that_was_given_up_is_ready_with_the_next_update(node: Node) -> None:
    """After an outage the controller of nodes has made Ready Unknown: the next update makes it True
    again, with an event and a new lastTransitionTime, and does not wait for a report."""
    settled = await calm(node)
    before, events_before = node.api.node_condition("Ready"), node.event_count("NodeReady")
    unknown = {"status": "Unknown", "reason": "NodeStatusUnknown", "message": "no word of it"}
    await change(node, conditions=with_condition(settled, "Ready", **unknown))
    await node.run_until(
        lambda: node.api.node_condition("Ready").get("reason") == "KubeletReady",
        within_s=UPDATE_S + 1,
        what="Ready with the reason KubeletReady",
    )
    after = node.api.node_condition("Ready")
    expect_equal(node, after["status"], "True", "status of Ready")
    expect_equal(node, after["message"], before["message"], "message of Ready")
    moved = after["lastTransitionTime"] != before["lastTransitionTime"]
    expect(node, moved, "another lastTransitionTime", after["lastTransitionTime"])
    await node.run_for(limits.EVENTS_S)
    expect_equal(node, node.event_count("NodeReady"), events_before + 1, "events NodeReady")


@conformance(
    id="node-conditions-repaired", rules=["NODE-015.1", "NODE-015.3"], needs=[API], alone=True
)
async def conditions_of_the_kubelet_are_put_right(node: Node) -> None:
    """A pressure condition with another status, one that was removed, and Ready with another reason
    are as before with the next update. A condition of somebody else stays."""
    settled = await calm(node)
    events_before = node.event_count("NodeHasNoDiskPressure")
    foreign = {"type": "example.com/Seen", "status": "True", "reason": "Mine", "message": "yes"}
    own = settled["conditions"]
    changes = {
        "another DiskPressure": with_condition(settled, "DiskPressure", status="True", reason="X"),
        "another reason of Ready": with_condition(settled, "Ready", reason="Other"),
        "another message of Ready": with_condition(settled, "Ready", message="other"),
        "no PIDPressure": [c for c in own if c["type"] != "PIDPressure"],
        "no Ready": [c for c in own if c["type"] != "Ready"],
    }
    expected = {c["type"]: (c["status"], c["reason"], c["message"]) for c in [foreign, *own]}
    for change_name, changed in changes.items():
        await node.run_for(1.0)  # the update that repaired the last change is over
        await change(node, conditions=[foreign, *changed])
        await node.run_until(
            lambda: (
                {
                    c["type"]: (c["status"], c.get("reason"), c.get("message"))
                    for c in status(node)["conditions"]
                }
                == expected
            ),
            within_s=UPDATE_S + 1,
            what=f"the conditions {expected} after there was {change_name}",
        )
    await node.run_for(limits.EVENTS_S)
    times = node.event_count("NodeHasNoDiskPressure")
    expect_equal(node, times, events_before + 1, "events NodeHasNoDiskPressure")


@conformance(id="node-status-repaired", rules=["NODE-015.1"], needs=[API], alone=True)
async def fields_of_the_kubelet_are_put_right(node: Node) -> None:
    """Addresses, amounts, ports, the facts about the machine and images that somebody else has
    changed are as before with the next update."""
    before = await calm(node)
    info = {name: "other" for name in before["nodeInfo"] if name not in ("swap", "bootID")}
    await change(
        node,
        addresses=[{"type": "Hostname", "address": "elsewhere"}],
        capacity={"cpu": "99", "memory": "1Gi", "pods": "7"},
        allocatable={"cpu": "98", "memory": "1Mi", "pods": "6"},
        daemonEndpoints={"kubeletEndpoint": {"Port": 9}},
        nodeInfo=info,
        images=[{"names": ["example.com/other:1"], "sizeBytes": 5}],
    )
    own_fields = {name: before.get(name) for name in (*OWN, "images")}
    await node.run_until(
        lambda: {name: status(node).get(name) for name in own_fields} == own_fields,
        within_s=UPDATE_S + 1,
        what=f"the status as before: {own_fields}",
    )


@conformance(id="node-features-repaired", rules=["NODE-015.1"], needs=[API], alone=True)
async def features_of_the_kubelet_are_put_right(node: Node) -> None:
    """Handlers and features of the runtime, and what the kubelet declares, that somebody else has
    changed are as before with the next update."""
    before = await calm(node)
    names = ("features", "runtimeHandlers", "declaredFeatures")
    own_fields = {name: before[name] for name in names if name in before}
    wrong = {
        "features": {"supplementalGroupsPolicy": not before.get("features", {}).get(
            "supplementalGroupsPolicy", False
        )},
        "runtimeHandlers": [{"name": "other"}],
        "declaredFeatures": ["Other"],
    }  # fmt: skip
    await change(node, **{name: wrong[name] for name in own_fields})
    await node.run_until(
        lambda: {name: status(node).get(name) for name in own_fields} == own_fields,
        within_s=UPDATE_S + 1,
        what=f"the status as before: {own_fields}",
    )


@conformance(
    id="node-foreign-fields-kept", rules=["NODE-015.3", "NODE-015.4"], needs=[API], alone=True
)
async def what_others_own_stays_and_is_no_reason_to_write(node: Node) -> None:
    """Labels, annotations, taints, conditions and attached volumes of others stay, and so does what
    somebody wrote into a pressure condition beside its status. None of it makes the kubelet write
    its status."""
    settled = await calm(node)
    taint = {"key": "example.com/mine", "effect": "PreferNoSchedule"}
    labels = {"example.com/mine": "yes", "beta.kubernetes.io/os": "other"}
    await node.api.patch_node(
        {
            "metadata": {"labels": labels, "annotations": {"example.com/mine": "yes"}},
            "spec": {"taints": [*node.api.taints(), taint]},
        }
    )
    settled["conditions"] = with_condition(settled, "MemoryPressure", reason="Mine", message="mine")
    foreign = {"type": "example.com/Seen", "status": "True", "reason": "Mine", "message": "yes"}
    volumes = [{"name": "example.com/volume", "devicePath": ""}]
    await change(node, conditions=[*settled["conditions"], foreign], volumesAttached=volumes)
    before = len(node.api.requests("PATCH", OF_THE_NODE))
    await node.run_for(2 * UPDATE_S)
    write_count = len(node.api.requests("PATCH", OF_THE_NODE)) - before
    expect_equal(node, write_count, 0, "writes of the status after changes of what others own")
    labels_after = {key: label(node, key) for key in labels}
    expect_equal(node, labels_after, labels, "labels")
    annotations = node.api.node_metadata("annotations") or {}
    expect_equal(node, annotations.get("example.com/mine"), "yes", "annotation")
    expect(node, taint["key"] in [t["key"] for t in node.api.taints()], "the taint")
    expect_equal(node, node.api.node_condition("MemoryPressure")["reason"], "Mine", "reason")
    expect_equal(node, node.api.node_condition("example.com/Seen")["status"], "True", "condition")
    expect_equal(node, node.api.node_status("volumesAttached"), volumes, "volumesAttached")


@conformance(id="node-labels-repaired", rules=["NODE-015.2"], needs=[API], alone=True)
async def labels_of_system_and_architecture_are_put_back(node: Node) -> None:
    """The labels of the system and of the architecture that somebody has changed, or removed, are
    back with the next update. The label of the host's name is not put back while the kubelet
    runs."""
    await calm(node)
    arch = label(node, "kubernetes.io/arch")
    for wrong in ("other", None):
        labels = {"kubernetes.io/os": wrong, "kubernetes.io/arch": wrong}
        await node.api.patch_node(
            {"metadata": {"labels": {**labels, "kubernetes.io/hostname": "other"}}}
        )
        await node.run_until(
            lambda: (
                (label(node, "kubernetes.io/os"), label(node, "kubernetes.io/arch"))
                == ("linux", arch)
            ),
            within_s=UPDATE_S + 1,
            what=f"the labels after they were {wrong}",
        )
        expect_equal(node, label(node, "kubernetes.io/hostname"), "other", "label of the host")


def shows_allocatable(node: Node, resource: str, amount: str) -> bool:
    return bool(node.api.allocatable(resource) == amount)


def is_told_again(node: Node, reason: str, before: int) -> bool:
    return node.event_count(reason) > before


def says_managed(node: Node, wanted: str | None) -> bool:
    return bool((node.api.node_metadata("annotations") or {}).get(MANAGED) == wanted)


@conformance(
    id="node-resource-advertised", rules=["NODE-015.5", "NODE-031.3"], needs=[API], alone=True
)
async def resources_that_somebody_offers_become_allocatable(node: Node) -> None:
    """An extended resource that somebody writes into the Node's capacity is allocatable with the
    next update, in the amount of then; once removed it is not."""
    await calm(node)
    for amount in ("4", "6"):
        await change(node, capacity={"example.com/dongle": amount})
        await node.run_until(
            partial(shows_allocatable, node, "example.com/dongle", amount),
            within_s=UPDATE_S + 1,
            what=f"{amount} allocatable dongles",
        )
    expect_equal(node, node.api.capacity("example.com/dongle"), "6", "dongles in capacity")
    await change(node, capacity={"example.com/dongle": None})
    await node.run_until(
        lambda: not node.api.allocatable("example.com/dongle"),
        within_s=UPDATE_S + 1,
        what="no allocatable dongles",
    )


@conformance(id="node-huge-pages-adopted", rules=["NODE-004.3", "NODE-015.5"], needs=[API, RESTART])
async def sizes_of_huge_pages_that_are_gone_are_removed_at_the_start(node: Node) -> None:
    """A size of huge pages that the Node shows and the machine has not is gone from capacity and
    allocatable after the start of a kubelet, and resources that are not in the Node are added."""
    before = await calm(node)
    await node.kubelet.stop()
    stale = {"hugepages-3Mi": "300Mi", "pods": None}
    await change(node, capacity=stale, allocatable=stale)
    await node.kubelet.start()
    await node.run_until(
        lambda: (
            not node.api.capacity("hugepages-3Mi") and not node.api.allocatable("hugepages-3Mi")
        ),
        within_s=REGISTER_S,
        what="no hugepages-3Mi",
    )
    await node.run_until(
        lambda: node.api.capacity("pods") == before["capacity"]["pods"],
        within_s=UPDATE_S + 1,
        what="pods in capacity",
    )
    memory = before["allocatable"]["memory"]
    await node.run_until(
        lambda: node.api.allocatable("memory") == memory,
        within_s=UPDATE_S + 1,
        what=f"allocatable memory {memory}",
    )


@conformance(id="node-pressure-told-at-start", rules=["NODE-021.3"], needs=[API, RESTART])
async def a_kubelet_tells_at_each_start_that_there_is_no_pressure(node: Node) -> None:
    """A kubelet that finds its Node tells the three events of a node without pressure again, as
    for a new one."""
    await calm(node)
    before = {reason: node.event_count(reason) for reason in SUFFICIENT}
    await node.kubelet.restart()
    for reason in SUFFICIENT:
        await node.run_until(
            partial(is_told_again, node, reason, before[reason]),
            within_s=REGISTER_S,
            what=f"another event {reason}",
        )


@conformance(id="node-attach-detach-off", rules=["NODE-004.2"], needs=[API, RESTART])
async def a_kubelet_that_attaches_volumes_itself_says_so_in_its_node(node: Node) -> None:
    """A kubelet that finds its Node and shall attach volumes itself removes the annotation that a
    controller does; one that shall not puts it back."""
    await calm(node)
    for managed, annotation in ((False, None), (True, "true")):
        await node.kubelet.restart(enableControllerAttachDetach=managed)
        await node.run_until(
            partial(says_managed, node, annotation),
            within_s=REGISTER_S,
            what=f"the annotation {annotation}",
        )


@conformance(id="node-lists-emptied", rules=["NODE-015.6"], needs=[API, Feature.FAULTS], alone=True)
async def lists_that_have_nothing_any_more_are_removed(node: Node) -> None:
    """Images and handlers that the runtime does not name any more are not in the Node any more."""
    before = await calm(node)
    expect(node, before.get("images"), "images in the Node")

    def without_images(answer: Any) -> None:
        del answer.images[:]

    def without_handlers(answer: Any) -> None:
        del answer.runtime_handlers[:]

    with (
        node.runtime.on("ListImages").changes_answer(without_images),
        node.runtime.on("Status").changes_answer(without_handlers),
    ):
        await node.run_until(
            lambda: (
                not node.api.node_status("images") and not node.api.node_status("runtimeHandlers")
            ),
            within_s=LISTED_S + UPDATE_S + 1,
            what="neither images nor handlers in the Node",
        )


@conformance(
    id="node-provided-ip-removed", rules=["NODE-015.3", "NODE-015.7"], needs=[API], alone=True
)
async def the_annotation_for_a_cloud_provider_is_removed(node: Node) -> None:
    """The annotation with the node's address for a cloud provider is no reason to write the Node,
    and gone with the next write that has another reason."""
    await calm(node)
    await node.api.patch_node({"metadata": {"annotations": {PROVIDED_IP: "192.0.2.9"}}})
    await node.run_for(UPDATE_S)
    provided_ip = (node.api.node_metadata("annotations") or {}).get(PROVIDED_IP)
    expect_equal(node, provided_ip, "192.0.2.9", "the annotation while there is nothing to write")
    await node.api.patch_node({"metadata": {"labels": {"kubernetes.io/os": "other"}}})
    await node.run_until(
        lambda: PROVIDED_IP not in (node.api.node_metadata("annotations") or {}),
        within_s=UPDATE_S + 1,
        what="the annotation is gone",
    )


@conformance(
    id="node-change-told-per-try", rules=["NODE-021.4", "NODE-011.3"], needs=[API], alone=True
)
async def a_difference_is_told_with_each_try_to_write_it(node: Node) -> None:
    """While the API server refuses the status, each of the five tries of an update tells again that
    the Node is ready."""
    settled = await calm(node)
    events_before = node.event_count("NodeReady")
    await change(node, conditions=with_condition(settled, "Ready", status="Unknown"))
    with node.api.fails("PATCH", OF_THE_NODE):
        await node.run_for(UPDATE_S + limits.EVENTS_S)
    await node.run_for(UPDATE_S + limits.EVENTS_S)
    expect_equal(node, node.api.node_condition("Ready")["status"], "True", "status of Ready")
    times = node.event_count("NodeReady") - events_before
    expect(node, times in (5 + 1, 10 + 1), "an event for each try: five, and the last", times)


@conformance(
    id="node-made-written-at-once", rules=["NODE-010.5"], needs=[API, RESTART, Feature.FAULTS]
)
async def a_node_that_was_just_made_is_written_to_once_more(node: Node) -> None:
    """The status of a Node that the kubelet has just made is written once more at once, although
    nothing of it has changed: the runtime is not ready."""
    await calm(node)
    await node.kubelet.stop()
    await node.api.delete_node()
    with node.runtime.on("Status").changes_answer(spoiled("RuntimeReady")):
        posts_before = len(node.api.requests("POST", NODES))
        await node.kubelet.start()
        await node.run_until(
            lambda: len(node.api.requests("POST", NODES)) > posts_before,
            within_s=REGISTER_S,
            what="a new Node",
        )
        before = node.api.requests("POST", NODES)[-1].seq
        await node.run_until(
            lambda: [r for r in node.api.requests("PATCH", OF_THE_NODE) if r.seq > before],
            within_s=1,
            what="an update at once",
        )
