"""How the kubelet makes, adopts and loses its Node object."""

from functools import partial
from itertools import pairwise
from typing import Any

from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal, expect_spans
from kubelet_conformance.harness.limits import Span
from kubelet_conformance.harness.manifests import pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.registry import Feature, Level, conformance

API, RESTART = Feature.API, Feature.RESTART
NODES = r"/api/v1/nodes$"
THE_NODE = r"/api/v1/nodes/[^/]+$"
OF_THE_NODE = r"/api/v1/nodes/[^/]+/status$"
MANAGED = "volumes.kubernetes.io/controller-managed-attach-detach"
TAINT = {"key": "dedicated", "value": "tests", "effect": "NoSchedule"}
CONDITIONS = ["MemoryPressure", "DiskPressure", "PIDPressure", "Ready"]
REGISTER_S = 7.0 + limits.START_S  # NODE-002: between two tries, and a start
UPDATE_S = 10.4  # NODE-010
MIRROR_S = 90.0 + limits.NOTICE_S  # a healthy pod is synced after 60 to 90 s
CSI_NODE_S = 24.0
"""A Node is not Ready before its CSINode is made; while there is no Node that is tried at growing
intervals, the one after 10 s takes 15.4 s (in 1.31 19.5 s)."""


def posts(node: Node) -> list[Any]:
    """The requests that create a Node."""
    return list(node.api.requests("POST", NODES))


async def wait_ready(node: Node, within_s: float) -> None:
    """Run until the Node is Ready."""
    await node.run_until(
        lambda: node.api.node_condition("Ready").get("status") == "True",
        within_s=within_s,
        what="a Node that is Ready",
    )


def label(node: Node, key: str) -> str:
    """A label of the Node; "" where there is none."""
    return str((node.api.node_metadata("labels") or {}).get(key, ""))


def expect_its_metadata(node: Node, body: dict[str, Any]) -> None:
    """Expect the labels, the annotation and the taint of a new Node."""
    labels, annotations = (body["metadata"].get(kind, {}) for kind in ("labels", "annotations"))
    arch = labels.get("kubernetes.io/arch")
    expected_labels = {
        "kubernetes.io/hostname": node.name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": arch,
        "beta.kubernetes.io/os": "linux",
        "beta.kubernetes.io/arch": arch,
    }
    expect_equal(node, {key: labels.get(key) for key in expected_labels}, expected_labels, "labels")
    expect(node, arch, "an architecture among the labels", labels)
    expect_equal(node, annotations.get(MANAGED), "true", "annotation of attach and detach")
    taints = [{key: taint.get(key) for key in TAINT} for taint in body["spec"].get("taints", [])]
    expect(node, TAINT in taints, f"the taint {TAINT}", taints)


@conformance(
    id="node-registered",
    rules=[
        "NODE-002.1",
        "NODE-003",
        "NODE-010.5",
        "NODE-020",
        "NODE-021.2",
        "NODE-024.2",
        "NODE-032.1",
    ],
    needs=[API],
    node_config={"registerWithTaints": [TAINT]},
)
async def a_new_node_is_complete(node: Node) -> None:
    """The Node is created with its labels, taints, annotation and a whole status, and written to
    once more at once. The pressure conditions are told by events, and Ready only if it flips."""
    await node.run_until(lambda: posts(node), within_s=REGISTER_S, what="a new Node")
    body = posts(node)[0].body
    expect_its_metadata(node, body)
    status = body.get("status") or {}
    kinds = [condition["type"] for condition in status.get("conditions", [])]
    expect_equal(node, kinds, CONDITIONS, "conditions of the new Node, in order")
    addresses = {row["type"]: row["address"] for row in status["addresses"]}
    expect(node, "Hostname" in addresses and "InternalIP" in addresses, "both addresses", addresses)
    await node.run_until(
        lambda: node.api.requests("PATCH", OF_THE_NODE), within_s=1, what="a first update at once"
    )
    await node.run_for(UPDATE_S + 1)
    for reason in ("NodeHasSufficientMemory", "NodeHasNoDiskPressure", "NodeHasSufficientPID"):
        texts = [event["message"] for event in node.events(reason)]
        expect_equal(node, texts, [f"Node {node.name} status is now: {reason}"], "events")
    was_ready = status["conditions"][-1]["status"] == "True"
    counts = [len(node.events(reason)) for reason in ("NodeReady", "NodeNotReady")]
    expect_equal(node, counts, [0 if was_ready else 1, 0], "events NodeReady and NodeNotReady")


@conformance(id="node-registration-retried", rules=["NODE-002.2"], needs=[API, RESTART])
async def a_registration_that_fails_is_repeated(node: Node) -> None:
    """While the API server refuses the Node, it is offered again after 200 ms, then after twice as
    long each time, up to 7 s, until it is taken."""
    await node.run_until(lambda: node.api.node_uid(), within_s=REGISTER_S, what="the Node")
    await node.kubelet.stop()
    await node.api.delete_node()
    before = len(posts(node))
    with node.api.fails("POST", NODES):
        await node.kubelet.start()
        await node.run_until(
            lambda: len(posts(node)) >= before + 9, within_s=40 + limits.START_S, what="nine tries"
        )
    times = [request.started_s for request in posts(node)[before:]]
    delays = [0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 7.0, 7.0]
    expect_spans(node, times, [Span(delay, delay + 0.1) for delay in delays], "tries to register")
    await node.run_until(lambda: node.api.node_uid(), within_s=REGISTER_S, what="the Node")


async def start_with(node: Node, patch: dict[str, Any]) -> None:
    """Restart the kubelet, and change the Node's metadata while none runs."""
    await node.run_until(lambda: node.api.node_uid(), within_s=REGISTER_S, what="the Node")
    await node.kubelet.stop()
    await node.api.patch_node(patch)
    await node.kubelet.start()


@conformance(
    id="node-adopted", rules=["NODE-004.1", "NODE-004.2", "NODE-004.4"], needs=[API, RESTART]
)
async def an_existing_node_is_adopted(node: Node) -> None:
    """A kubelet that finds its Node corrects the labels and the annotation that are its own, and
    leaves other labels and the taints as they are."""
    wrong = {"kubernetes.io/hostname": "other", "team": "a"}
    changes: dict[str, Any] = {
        "metadata": {"labels": wrong, "annotations": {MANAGED: None}},
        "spec": {"taints": [TAINT]},
    }
    await start_with(node, changes)
    await node.run_until(
        lambda: label(node, "kubernetes.io/hostname") == node.name,
        within_s=REGISTER_S,
        what="the right label of the host's name",
    )
    annotations = node.api.node_metadata("annotations") or {}
    expect_equal(node, annotations.get(MANAGED), "true", "annotation of attach and detach")
    expect_equal(node, label(node, "team"), "a", "label of somebody else")
    expect_equal(node, [taint["key"] for taint in node.api.taints()], ["dedicated"], "taints")


@conformance(id="node-adopted-forbidden", rules=["NODE-004.1"], needs=[API, RESTART], since="1.32")
async def an_existing_node_is_adopted_where_nodes_may_not_be_made(node: Node) -> None:
    """A kubelet that finds its Node corrects its labels, too, where the server forbids to create
    Nodes (403)."""
    await node.run_until(lambda: node.api.node_uid(), within_s=REGISTER_S, what="the Node")
    with node.api.fails("POST", NODES, status=403):
        await start_with(node, {"metadata": {"labels": {"kubernetes.io/hostname": "other"}}})
        await node.run_until(
            lambda: label(node, "kubernetes.io/hostname") == node.name,
            within_s=REGISTER_S,
            what="the right label of the host's name, where POST is forbidden",
        )


@conformance(id="node-adopted-later", rules=["NODE-004.5"], needs=[API, RESTART])
async def an_existing_node_that_cannot_be_read_is_tried_again(node: Node) -> None:
    """While the existing Node cannot be read, it is tried again; then it is adopted."""
    with node.api.fails("GET", THE_NODE):
        await start_with(node, {"metadata": {"labels": {"kubernetes.io/hostname": "other"}}})
        await node.run_for(2)
    await node.run_until(
        lambda: label(node, "kubernetes.io/hostname") == node.name,
        within_s=REGISTER_S,
        what="the right label of the host's name",
    )


@conformance(
    id="node-lost", rules=["NODE-006.1", "NODE-006.2", "NODE-006.3"], needs=[API],
    node_config={"nodeStatusUpdateFrequency": "10s", "nodeStatusReportFrequency": "5s"},
)  # fmt: skip
async def a_node_that_is_deleted_is_not_made_again(node: Node) -> None:
    """The kubelet makes no second Node when its own is deleted, and its pods run on. A Node that
    somebody else makes under the name gets labels and status with the next update."""
    await node.run_until(lambda: node.api.node_uid(), within_s=REGISTER_S, what="the Node")
    await node.apply_static(pod("web"))
    await node.wait_running("web")
    await wait_ready(node, REGISTER_S + CSI_NODE_S)
    posts_before = len(posts(node))
    await node.api.delete_node()
    await node.run_for(limits.NOTICE_S)
    await node.apply_static(pod("later"))
    await node.run_for(2 * UPDATE_S)
    expect_equal(node, node.api.node_uid(), "", "UID of a Node")
    expect_equal(node, node.running("later"), True, "the new static pod runs")
    expect_equal(node, node.api.pod("later"), None, "a mirror of the new static pod")
    expect_equal(node, len(posts(node)), posts_before, "requests to create a Node")
    expect_equal(node, node.count("StopContainer"), 0, "stops")
    await node.api.create_node({})
    await wait_ready(node, UPDATE_S + 1)
    expect_equal(node, label(node, "kubernetes.io/os"), "linux", "label of the system")
    expect(node, label(node, "kubernetes.io/arch"), "a label of the architecture")
    await node.run_until(
        lambda: node.api.pod("later"), within_s=MIRROR_S, what="a mirror of the new static pod"
    )


@conformance(
    id="node-not-registered", rules=["NODE-005"], needs=[API, RESTART],
    node_config={"registerNode": False},
)  # fmt: skip
async def a_kubelet_that_shall_not_register_makes_no_node(node: Node) -> None:
    """With registerNode false the kubelet makes no Node; one that somebody else makes gets its
    status."""
    await node.run_for(UPDATE_S)
    expect_equal(node, len(posts(node)), 0, "requests to create a Node")
    if not node.api.node_uid():
        await node.api.create_node({})
    await wait_ready(node, CSI_NODE_S + UPDATE_S + limits.START_S)


@conformance(
    id="node-status-period", rules=["NODE-010.1"], needs=[API],
    node_config={"nodeStatusUpdateFrequency": "5s", "nodeStatusReportFrequency": "1s"},
)  # fmt: skip
async def the_status_is_looked_at_every_update_period(node: Node) -> None:
    """Where every look writes the status, because a report is due, the writes are one update period
    apart and up to 4 % more, not always the same. The Node is not read before each."""
    await node.run_for(25)
    before = len(node.api.requests("GET", THE_NODE))
    await node.run_for(35)
    reads = len(node.api.requests("GET", THE_NODE)) - before
    expect(node, reads <= 2, "next to no reads of the Node in 35 s", reads)
    times = [request.started_s for request in node.api.requests("PATCH", OF_THE_NODE)]
    gaps = [round(later - earlier, 3) for earlier, later in pairwise(times)][-7:]
    slack_s = 0.05 + node.slack_s
    expect(node, len(gaps) == 7, "seven writes of the Node in 60 s", gaps)
    expect(node, all(4.95 <= gap <= 5.2 + slack_s for gap in gaps), "5 to 5.2 s apart", gaps)
    expect(node, max(gaps) - min(gaps) > 0.01, "writes that are not evenly spaced", gaps)


@conformance(
    id="node-report-period-unset", rules=["NODE-010.3"], needs=[API],
    node_config={"nodeStatusUpdateFrequency": "5s"},
)  # fmt: skip
async def reports_are_as_frequent_as_updates_unless_said(node: Node) -> None:
    """Where only nodeStatusUpdateFrequency is set, it is the report period, too: an unchanged
    status is written again before 5 minutes are over."""
    await node.run_for(20)
    before = len(node.api.requests("PATCH", OF_THE_NODE))
    await node.run_for(22)
    write_count = len(node.api.requests("PATCH", OF_THE_NODE)) - before
    expect(node, 2 <= write_count <= 5, "2 to 5 writes of the Node in 22 s", write_count)


@conformance(
    id="node-addresses-replaced", rules=["NODE-011.6"], needs=[API],
    node_config={"nodeStatusUpdateFrequency": "1s", "nodeStatusReportFrequency": "4s"},
)  # fmt: skip
async def addresses_that_the_node_has_not_are_removed(node: Node) -> None:
    """An address in the Node's status that the kubelet does not know is gone with its next
    report."""
    await node.run_until(
        lambda: node.api.node_status("addresses"), within_s=REGISTER_S, what="addresses"
    )
    own = node.api.node_status("addresses")
    foreign = {"type": "InternalDNS", "address": "elsewhere"}
    await node.api.patch_node({"status": {"addresses": [*own, foreign]}}, status=True)
    await node.run_until(
        lambda: foreign not in node.api.node_status("addresses"),
        within_s=1.5 * 4 + 3,
        what="the foreign address is gone",
    )
    expect_equal(node, node.api.node_status("addresses"), own, "addresses")


@conformance(
    id="node-pods-per-core", needs=[API, Feature.NODE_RESOURCES],
    rules=["NODE-030.2", "NODE-030.3"], machine={"cores": 4},
    node_config={"podsPerCore": 2, "localStorageCapacityIsolation": False},
)  # fmt: skip
async def pods_per_core_lowers_the_number_of_pods(node: Node) -> None:
    """The Node takes as many pods as its cores allow, but no more than maxPods. Without
    localStorageCapacityIsolation it offers no ephemeral storage."""
    await node.run_until(lambda: node.api.capacity("cpu"), within_s=REGISTER_S, what="the Node")
    cores = int(node.api.capacity("cpu"))
    expect_equal(node, node.api.capacity("pods"), str(2 * cores), "pods with podsPerCore 2")
    expect_equal(node, node.api.capacity("ephemeral-storage"), "", "ephemeral storage")
    await node.kubelet.restart(maxPods=3)
    await node.run_until(
        lambda: node.api.capacity("pods") == "3", within_s=REGISTER_S, what="maxPods"
    )


@conformance(
    id="node-events",
    rules=["NODE-070.1", "NODE-070.2", "NODE-070.4"],
    needs=[Feature.API],
    alone=True,
)
async def events_tell_of_the_start_and_of_what_the_scheduler_may_do(node: Node) -> None:
    """The start of the kubelet is an event of its Node, and so are the Node's being made
    unschedulable and schedulable again, once each."""
    await node.run_until(node.api.node_uid, within_s=limits.START_S, what="a Node object")
    for unschedulable, reason in ((True, "NodeNotSchedulable"), (False, "NodeSchedulable")):
        await node.run_for(limits.NODE_STATUS_S)
        expect_equal(node, node.event_count(reason), 0, f"events {reason} before the change")
        await node.api.patch_node({"spec": {"unschedulable": unschedulable}})
        await node.run_until(
            partial(node.events, reason), within_s=limits.NODE_STATUS_S, what=f"event {reason}"
        )
    await node.run_for(limits.NODE_STATUS_S)
    messages = {
        "Starting": "Starting kubelet.",
        "NodeNotSchedulable": f"Node {node.name} status is now: NodeNotSchedulable",
        "NodeSchedulable": f"Node {node.name} status is now: NodeSchedulable",
    }
    for reason, text in messages.items():
        event_fields = [(e["type"], e["message"], e.get("count", 1)) for e in node.events(reason)]
        expect_equal(node, event_fields, [("Normal", text, 1)], f"type, message, count of {reason}")
        event = node.events(reason)[0]
        about, namespace = event["involvedObject"], event["metadata"]["namespace"]
        event_object = about["kind"], about["name"], namespace
        expect_equal(node, event_object, ("Node", node.name, "default"), f"what {reason} is about")
        source = {"component": "kubelet", "host": node.name}
        expect_equal(node, event["source"], source, f"source of {reason}")


def _impossible(answer: Any) -> None:
    for image in answer.images:
        image.size = 2**64 - 1


@conformance(
    id="node-image-impossible",
    rules=["CRI-011.1", "NODE-035"],
    level=Level.SHOULD,
    needs=[API, Feature.FAULTS],
    node_config={"nodeStatusUpdateFrequency": "5s", "nodeStatusReportFrequency": "5s"},
)
async def an_image_of_an_impossible_size_spoils_no_status(node: Node) -> None:
    """A runtime tells of images whose size no API object can hold: the Node's status has them, in
    numbers that it can hold, and goes on being written."""
    with node.runtime.on("ListImages").changes_answer(_impossible):
        await node.run_until(
            lambda: node.api.node_status("images"), within_s=90, what="images in the Node's status"
        )
        sizes = [image["sizeBytes"] for image in node.api.node_status("images")]
        fits = all(-(2**63) <= size < 2**63 for size in sizes)
        expect(node, fits, "sizes that the API can hold", sizes)
        before = len(node.api.requests("PATCH", OF_THE_NODE))
        await node.run_for(12)
        answers = [r.status for r in node.api.requests("PATCH", OF_THE_NODE)][before:]
        good = len(answers) >= 1 and set(answers) == {200}
        expect(node, good, "further writes of the status that succeed", answers)
